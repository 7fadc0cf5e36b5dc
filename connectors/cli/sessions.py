"""Spark for commands that read a lake."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["session"]


@contextmanager
def session(name: str) -> Iterator[SparkSession]:
    """The running session, or one for this command, named for it."""
    from pyspark.sql import SparkSession

    from connectors.jvm import delta_jars
    from sinks.session import spark_session

    running = SparkSession.getActiveSession()
    spark = running or spark_session(name=f"historian {name}", jars=delta_jars())
    try:
        yield spark
    finally:
        if running is None:
            spark.stop()
