"""A Spark session on this machine for the tables of a lake."""

from __future__ import annotations

from typing import TYPE_CHECKING

from connectors.spark.jvm import delta_jars
from connectors.spark.quiet import quiet_start
from sinks.session import spark_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["local_session"]


def local_session(name: str = "historian") -> SparkSession:
    """The running Spark session, or a new one on this machine that reads and writes Delta tables.

    Fetches Delta's jars at the first call on a machine. Stop the session with ``stop()``.

    Args:
        name: that Spark lists the session under.

    Raises:
        JvmPartMissing: the jars cannot be fetched.
    """
    with quiet_start():
        return spark_session(jars=delta_jars(), name=name)
