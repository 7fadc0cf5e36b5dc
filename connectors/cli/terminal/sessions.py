"""Spark for commands that read a lake."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["session"]


@contextmanager
def session(name: str, paths: Sequence[str]) -> Iterator[SparkSession]:
    """The running session, or one for this command, named for it, that reads *paths*."""
    from pyspark.sql import SparkSession

    from connectors.spark.ending import stop
    from connectors.spark.jvm_s3 import jars_for
    from connectors.spark.quiet import quiet_start
    from sinks.contract.storage import share_settings
    from sinks.session import spark_session

    running = SparkSession.getActiveSession()
    with quiet_start():
        spark = running or spark_session(name=f"historian {name}", jars=jars_for(paths))
    for path in paths:
        share_settings(spark, path)
    try:
        yield spark
    finally:
        if running is None:
            stop(spark)
