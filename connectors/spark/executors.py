"""Whether Spark's executors have the code that the driver has: rows that others decode or write would be others."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, ClassVar

from connectors.spark import executor_report
from historian.errors import HistorianError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["ExecutorsDiffer", "check_executors"]


class ExecutorsDiffer(HistorianError):
    """Spark's executors lack our packages, or have others than the driver."""

    usual_next_step: ClassVar[str] = (
        "make one archive with `historian bundle historian.zip` on the driver, and give it to the executors by "
        "spark.archives=historian.zip#historian; or install the same wheel for their interpreter"
    )


def check_executors(spark: SparkSession) -> None:
    """Compares what executors that are there have with what the driver has. Takes a job of small tasks.

    Raises:
        ExecutorsDiffer: an executor has no packages of ours, others, or another Python.
    """
    from pyspark import cloudpickle

    context = spark.sparkContext
    tasks = max(2, min(context.defaultParallelism, 64))
    by_value: Any = cloudpickle
    by_value.register_pickle_by_value(executor_report)
    try:
        told = context.parallelize(range(tasks), tasks).mapPartitions(executor_report.report).collect()
    except Exception as error:
        if "PYTHON_VERSION_MISMATCH" not in str(error):
            raise
        raise ExecutorsDiffer(
            "Spark's executors run another Python than the driver",
            expected=f"Python {sys.version_info.major}.{sys.version_info.minor}",
            found=next(line.strip() for line in str(error).splitlines() if "PYTHON_VERSION_MISMATCH" in line),
            next_step="name an interpreter of that version by spark.pyspark.python",
        ) from error
    finally:
        by_value.unregister_pickle_by_value(executor_report)
    [(_, _, ours)] = executor_report.report(None)
    different = sorted({each for each in told if _without_patch(each[2]) != _without_patch(ours)})
    if different:
        raise ExecutorsDiffer(
            "Spark's executors have another code than the driver",
            expected=ours,
            found="; ".join(f"{what} on {host} ({interpreter})" for host, interpreter, what in different[:3]),
        )


def _without_patch(text: str) -> str:
    """What an executor tells, where the third number of its Python does not matter."""
    python, _, ours = text.partition(", ")
    return f"{python.rpartition('.')[0]}, {ours}"
