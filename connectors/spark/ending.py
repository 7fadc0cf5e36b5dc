"""The end of a Spark session whose process a signal may have ended first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["answers", "is_stopped", "stop"]


def answers(spark: SparkSession) -> bool:
    """Whether Spark's process is there: a signal to a whole group of processes ends it at once. True where it is to come."""
    if not getattr(spark, "has_java", True):
        return True
    try:
        spark._jvm.System.nanoTime()  # type: ignore[union-attr]  # noqa: SLF001 there is no public way to ask
    except Exception:  # noqa: BLE001 whatever Py4J makes of a closed socket
        return False
    return True


def is_stopped(spark: SparkSession) -> bool:
    """Whether no job runs in the session any more: somebody has stopped it, its cluster has let it go, or its process is gone."""
    try:
        # Another way to the context would make a session that is made late.
        context: Any = spark._jsc  # noqa: SLF001 same
        return bool(context.sc().isStopped())
    except Exception:  # noqa: BLE001 same
        return True


def stop(spark: SparkSession) -> None:
    """Stops the session, be its process there still or not."""
    try:
        spark.stop()
    except Exception:
        if answers(spark):
            raise
