"""A Spark session for the tables of a lake, by default on this machine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from connectors.spark.jvm import delta_jars
from connectors.spark.quiet import quiet_start
from sinks.session import runs_here, spark_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["local_session"]


def local_session(
    name: str = "historian", *, master: str | None = None, settings: Mapping[str, str] | None = None
) -> SparkSession:
    """The running Spark session, or a new one that reads and writes Delta tables.

    Fetches Delta's jars at the first call on a machine. Stop the session with ``stop()``.

    Args:
        name: that Spark lists the session under.
        master: where Spark runs, such as ``spark://head:7077``; None: where ``spark-submit`` or ``spark-defaults.conf`` says, else on
            this machine.
        settings: further Spark settings of a new session.

    Raises:
        JvmPartMissing: the jars cannot be fetched.
        SessionUnusable: the environment asks for Spark Connect.
    """
    with quiet_start(loopback=runs_here(master or (settings or {}).get("spark.master"))):
        return spark_session(jars=delta_jars(), master=master, name=name, settings=settings)
