"""A Spark session that is made when somebody needs more of it than Java: commits need no more, and a run with nothing to write neither."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext, suppress
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["LateSession", "begin_java", "master_of", "start_java", "tasks_of"]

_LOCAL = re.compile(r"local(?:\[(\*|\d+)(?:, *\d+)?\])?")
_QUOTA = Path("/sys/fs/cgroup/cpu.max")


class LateSession:
    """Stands for a local Spark session that is not there yet. Java starts when it is asked for, with Delta and Hadoop's settings.

    Whatever else is asked for makes the session.

    Args:
        settings: of Spark, all that there are.
        around: what Java is started in, in any thread; gives the file descriptor that is its standard error, None: that of this process.

    Attributes:
        environment: what Python workers of the session are to have in theirs.
    """

    def __init__(
        self, settings: Mapping[str, str], around: Callable[[], AbstractContextManager[int | None]] = nullcontext
    ) -> None:
        self._settings = settings
        self._around = around
        self.environment: dict[str, str] = {}
        self._made: SparkSession | None = None
        self._turn = threading.Lock()

    @property
    def master(self) -> str:
        """Where the session will run."""
        return self._settings["spark.master"]

    @property
    def is_made(self) -> bool:
        """Whether the session is there."""
        return self._made is not None

    @property
    def has_java(self) -> bool:
        """Whether Java is there."""
        from pyspark import SparkContext

        return SparkContext._jvm is not None  # noqa: SLF001 there is no public way to ask

    def setting(self, name: str) -> str | None:
        """What a setting of Spark is; None where nobody says."""
        return self._settings.get(name)

    @property
    def _jvm(self) -> Any:
        """Java's classes. Starts Java."""
        from pyspark import SparkContext

        with self._turn:
            if SparkContext._jvm is None:  # noqa: SLF001 there is no public way to Java without a context
                with self._around() as stderr:
                    start_java(self._settings, stderr)
        return SparkContext._jvm  # noqa: SLF001 same

    @property
    def _jsc(self) -> Any:
        """Java's context; as long as there is none, what answers in its place."""
        return _ContextToCome(self, self._settings) if self._made is None else self._made._jsc  # noqa: SLF001 same

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.made(), name)

    def stop(self) -> None:
        """Stops the session, where it was made; Java ends with the process."""
        if self._made is not None:
            self._made.stop()

    def made(self) -> SparkSession:
        """The session that this one stands for, made where it is not there yet."""
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
                self._made.sparkContext.environment.update(self.environment)
                self.environment = self._made.sparkContext.environment
                SparkSession._get_j_spark_session_class(self._made._jvm).setActiveSession(self._made._jsparkSession)  # noqa: SLF001 same
        return self._made


class _ContextToCome:
    """Tells Hadoop's settings, and whether Java is there."""

    def __init__(self, session: LateSession, settings: Mapping[str, str]) -> None:
        self._session, self._settings = session, settings

    def hadoopConfiguration(self) -> Any:  # noqa: N802 Java's name
        """As a Spark context makes it of its settings."""
        spark = self._session._jvm.org.apache.spark  # noqa: SLF001 our own class
        conf = spark.SparkConf()
        for name, value in self._settings.items():
            conf.set(name, value)
        return spark.deploy.SparkHadoopUtil.get().newConfiguration(conf)

    def sc(self) -> _ContextToCome:
        """The context without Java's face; the same here."""
        return self

    def isStopped(self) -> bool:  # noqa: N802 Java's name
        """No: it is to come. Fails where Java is gone."""
        if self._session.has_java:
            self._session._jvm.java.lang.System.nanoTime()  # noqa: SLF001 same
        return False


def master_of(spark: SparkSession | LateSession) -> str:
    """Where a session runs, or will run."""
    return spark.master if isinstance(spark, LateSession) else spark.sparkContext.master or ""


def start_java(settings: Mapping[str, str], stderr: int | None = None) -> None:
    """Starts Java for a session with *settings*, where it is not there yet, and loads meanwhile what Python needs beside it.

    *stderr*: the file descriptor that is its standard error; None: that of this process.
    """
    with ThreadPoolExecutor(1, "java") as pool:
        started = pool.submit(_launch, settings, stderr)
        # What PySpark needs at its first call of Java: pandas, where there is one.
        import_module("pyspark.testing.utils")
        import_module("pyarrow.dataset")
        started.result()


def _launch(settings: Mapping[str, str], stderr: int | None) -> None:
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway

    with SparkContext._lock:  # noqa: SLF001 there is no public way to Java without a context
        if SparkContext._gateway is None:  # noqa: SLF001 same
            launch: Callable[..., Any] = launch_gateway
            gateway = launch(SparkConf().setAll(list(settings.items())), {"stderr": stderr})
            SparkContext._ensure_initialized(gateway=gateway)  # noqa: SLF001 same


def begin_java(spark: SparkSession | LateSession) -> None:
    """Has Java start beside what the caller does; who asks for it waits. An error is told to those."""
    if isinstance(spark, LateSession) and not spark.has_java:
        threading.Thread(target=_ask, args=(spark,), name="historian java", daemon=True).start()


def _ask(spark: LateSession) -> None:
    with suppress(Exception):
        _ = spark._jvm  # noqa: SLF001 our own class


def tasks_of(spark: SparkSession | LateSession) -> int:
    """How many tasks a session runs at once on this machine; does not make it."""
    if isinstance(spark, LateSession) and not spark.is_made:
        found = _LOCAL.fullmatch(spark.master)
        if found is not None and spark.setting("spark.default.parallelism") is None:
            return _cores() if found[1] == "*" else int(found[1] or 1)
    return int(spark.sparkContext.defaultParallelism)


def _cores() -> int:
    """As many as Java sees."""
    cores = len(os.sched_getaffinity(0))
    quota, _, period = (_QUOTA.read_text(encoding="ascii") if _QUOTA.is_file() else "max").strip().partition(" ")
    return cores if quota == "max" else max(1, min(cores, -(-int(quota) // int(period))))
