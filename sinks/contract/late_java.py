"""What is asked of a Spark session whose Java may not have been started yet (:class:`sinks.late_session.LateSession`), and does not start it; and the session itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

__all__ = ["environment_of", "has_java", "made"]


def has_java(spark: SparkSession) -> bool:
    """Whether the session's Java runs, so that asking it costs little."""
    found: bool = getattr(spark, "has_java", True)
    return found


def environment_of(spark: SparkSession) -> dict[str, str]:
    """What is put in here stands in the environment of the session's Python workers that start later."""
    late: dict[str, str] | None = getattr(spark, "environment", None)
    return spark.sparkContext.environment if late is None else late


def made(spark: SparkSession) -> SparkSession:
    """The session itself, which is made where it is not there yet: what is a column to Spark needs one before anybody asks for it."""
    make: Callable[[], SparkSession] | None = getattr(spark, "made", None)
    return spark if make is None else make()
