"""Spark for commands that read a lake."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from connectors.config import SparkConfig

__all__ = ["session"]


@contextmanager
def session(name: str, paths: Sequence[str], settings: SparkConfig | None) -> Iterator[SparkSession]:
    """The running session, or one for this command, named for it, that reads *paths*.

    *settings*: ``run.spark`` of the configuration; None: the command has no configuration.
    """
    from pyspark.sql import SparkSession

    from connectors.spark.ending import stop
    from connectors.spark.jvm_s3 import jars_for
    from connectors.spark.quiet import quiet_start
    from sinks.contract.storage import share_settings
    from sinks.session import runs_here, spark_session

    running = SparkSession.getActiveSession()
    master, conf = (None, ()) if settings is None else (settings.master, settings.conf)
    with quiet_start(loopback=runs_here(master)):
        spark = running or spark_session(
            name=f"historian {name}", jars=jars_for(paths), master=master, settings=dict(conf)
        )
    for path in paths:
        share_settings(spark, path)
    try:
        yield spark
    finally:
        if running is None:
            stop(spark)
