"""A Spark session that is made when somebody needs more of it than Java: commits need no more, and a run with nothing to write none of it."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["LateSession", "master_of"]


class LateSession:
    """Stands for a local Spark session that is not there yet: Java is, with Delta and Hadoop's settings. Whatever else is asked for makes it.

    Args:
        settings: of Spark, all that there are.
    """

    def __init__(self, settings: Mapping[str, str]) -> None:
        self._settings = settings
        self._made: SparkSession | None = None
        self._turn = threading.Lock()

    @property
    def master(self) -> str:
        """Where the session will run."""
        return self._settings["spark.master"]

    def start_java(self) -> None:
        """Starts Java, and imports meanwhile what PySpark needs at its first call of Java: pandas, where there is one."""
        with ThreadPoolExecutor(1, "java") as pool:
            started = pool.submit(lambda: self._jvm)
            import_module("pyspark.testing.utils")
            import_module("pyarrow.dataset")
            started.result()

    @property
    def _jvm(self) -> Any:
        """Java's classes. Starts Java."""
        from pyspark import SparkConf, SparkContext

        with self._turn:
            if SparkContext._jvm is None:  # noqa: SLF001 there is no public way to Java without a context
                SparkContext._ensure_initialized(conf=SparkConf().setAll(list(self._settings.items())))  # noqa: SLF001 same
        return SparkContext._jvm  # noqa: SLF001 same

    @property
    def _jsc(self) -> Any:
        """Java's context; as long as there is none, what answers in its place."""
        return _ContextToCome(self._jvm, self._settings) if self._made is None else self._made._jsc  # noqa: SLF001 same

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self._session(), name)

    def stop(self) -> None:
        """Stops the session, where it was made; Java ends with the process."""
        if self._made is not None:
            self._made.stop()

    def _session(self) -> SparkSession:
        from pyspark.sql import SparkSession

        java = self._jvm
        with self._turn:
            if self._made is None:
                assert java is not None  # noqa: S101 started with these settings
                os.environ["PYSPARK_PYTHON"] = self._settings["spark.pyspark.python"]
                builder = SparkSession.builder
                for key, value in self._settings.items():
                    builder = builder.config(key, value)
                # In the main thread a Spark context takes SIGINT for itself.
                with ThreadPoolExecutor(1, "session") as pool:
                    self._made = pool.submit(builder.getOrCreate).result()
                SparkSession._get_j_spark_session_class(self._made._jvm).setActiveSession(self._made._jsparkSession)  # noqa: SLF001 same
        return self._made


class _ContextToCome:
    """Tells Hadoop's settings, and whether Java is there."""

    def __init__(self, jvm: Any, settings: Mapping[str, str]) -> None:
        self._jvm, self._settings = jvm, settings

    def hadoopConfiguration(self) -> Any:  # noqa: N802 Java's name
        """As a Spark context makes it of its settings."""
        spark = self._jvm.org.apache.spark
        conf = spark.SparkConf()
        for name, value in self._settings.items():
            conf.set(name, value)
        return spark.deploy.SparkHadoopUtil.get().newConfiguration(conf)

    def sc(self) -> _ContextToCome:
        """The context without Java's face; the same here."""
        return self

    def isStopped(self) -> bool:  # noqa: N802 Java's name
        """No: it is to come. Fails where Java is gone."""
        self._jvm.java.lang.System.nanoTime()
        return False


def master_of(spark: SparkSession | LateSession) -> str:
    """Where a session runs, or will run."""
    return spark.master if isinstance(spark, LateSession) else spark.sparkContext.master or ""
