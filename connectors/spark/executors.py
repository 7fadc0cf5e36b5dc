"""Whether Spark's executors have the code that the driver has: rows that others decode or write would be others."""

from __future__ import annotations

import sys
import threading
from itertools import takewhile
from typing import TYPE_CHECKING, Any, ClassVar

from connectors.spark import executor_report
from connectors.spark.ending import is_stopped
from historian.errors import HistorianError, SinkError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["ExecutorsDiffer", "ExecutorsLost", "check_executors"]

_RAISED_THERE = "Traceback (most recent call last)"
_NO_PROGRAM = "Cannot run program"
_BEHIND_A_TRACEBACK = ("at ", "SQLSTATE", "Driver stacktrace")
_OTHER_PYTHON = "PYTHON_VERSION_MISMATCH"
_TURN = threading.Lock()
"""What is pickled by value is known to the whole process, in which several connectors may ask."""


class ExecutorsDiffer(HistorianError):
    """Spark's executors lack our packages or a Python, or have others than the driver."""

    usual_next_step: ClassVar[str] = (
        "make one archive with `historian bundle historian.zip` on the driver, and give it to the executors by "
        "spark.archives=historian.zip#historian; or install the same wheel for their interpreter"
    )


class ExecutorsLost(HistorianError):
    """Spark's executors ended while they were asked, as those do whose machine went. Others may answer."""

    retryable = True
    usual_next_step: ClassVar[str] = "see the log of Spark's executors"


def check_executors(spark: SparkSession) -> None:
    """Compares what executors that are there have with what the driver has. Takes a job of small tasks.

    Raises:
        ExecutorsDiffer: an executor has no packages of ours, others, or another Python; asking again does not help.
        ExecutorsLost: they ended meanwhile: retry.
        SinkError: Spark has stopped, and answers no more.
    """
    from pyspark import cloudpickle

    context = spark.sparkContext
    by_value: Any = cloudpickle
    with _TURN:
        by_value.register_pickle_by_value(executor_report)
        try:
            tasks = max(2, min(context.defaultParallelism, 64))
            told = context.parallelize(range(tasks), tasks).mapPartitions(executor_report.report).collect()
        except Exception as error:
            raise _named(error, spark) from error
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


def _named(error: Exception, spark: SparkSession) -> HistorianError:
    """The error that a job's failure is. What a Python there has raised it raises again; what has ended it need not."""
    if is_stopped(spark):  # Such an error may have no text: its own is asked of Java.
        return SinkError("Spark ended before its executors could be asked", next_step="start the run again")
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
    if other := _line(lines, _OTHER_PYTHON):
        return ExecutorsDiffer(
            "Spark's executors run another Python than the driver",
            expected=f"Python {sys.version_info.major}.{sys.version_info.minor}",
            found=other,
            next_step="name an interpreter of that version by spark.pyspark.python",
        )
    if missing := _line(lines, _NO_PROGRAM):
        return ExecutorsDiffer(
            "Spark's executors cannot start Python",
            found=missing,
            next_step="name an interpreter that they have by spark.pyspark.python",
        )
    if _line(lines, _RAISED_THERE):
        [*_, last] = takewhile(lambda line: not line.startswith(_BEHIND_A_TRACEBACK), lines)
        return ExecutorsDiffer("Spark's executors cannot load our packages", found=last)
    return ExecutorsLost("Spark's executors ended while they were asked", found=_line(lines, "Lost task") or lines[0])


def _line(lines: list[str], text: str) -> str:
    return next((line for line in lines if text in line), "")


def _without_patch(text: str) -> str:
    """What an executor tells, where the third number of its Python does not matter."""
    python, _, ours = text.partition(", ")
    return f"{python.rpartition('.')[0]}, {ours}"
