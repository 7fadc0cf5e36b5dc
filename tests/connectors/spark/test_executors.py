"""What may be wrong with executors, as Spark itself tells it, and whether asking again may help."""

from __future__ import annotations

import os
import signal
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from connectors.cli.terminal.outcome import ExitCode, exit_code
from connectors.spark import executor_report
from connectors.spark.executors import ExecutorsDiffer, ExecutorsLost, check_executors
from historian.errors import HistorianError, SinkError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def _refused(spark: Any) -> HistorianError:
    with pytest.raises(HistorianError) as raised:
        check_executors(spark)
    return raised.value


@pytest.mark.spark
def test_an_interpreter_that_executors_lack_is_named_and_not_asked_for_again(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spark.sparkContext, "pythonExec", "/no/such/python")

    error = _refused(spark)

    assert (ExecutorsDiffer, False, ExitCode.USAGE) == (type(error), error.retryable, exit_code(error))
    assert '"/no/such/python"' in str(error.found)
    assert "spark.pyspark.python" in str(error)


@pytest.mark.spark
def test_packages_that_fail_where_they_are_loaded_are_told_by_their_own_words(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_: object) -> list[tuple[str, str, str]]:
        raise OSError("a library of another processor")

    monkeypatch.setattr(executor_report, "report", lambda rows: [] if rows is None else broken(rows))

    error = _refused(spark)

    assert (ExecutorsDiffer, False) == (type(error), error.retryable)
    assert "OSError: a library of another processor" == error.found


@pytest.mark.spark
def test_an_executor_that_is_killed_meanwhile_is_asked_again(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(executor_report, "report", lambda _: os.kill(os.getpid(), signal.SIGKILL))

    error = _refused(spark)

    assert (ExecutorsLost, True, ExitCode.SINK) == (type(error), error.retryable, exit_code(error))
    assert "\n" not in str(error)
    assert "Lost task" in str(error)


def test_spark_that_has_stopped_is_not_asked_again() -> None:
    def gone(*_: object) -> object:
        raise ConnectionRefusedError

    context = SimpleNamespace(defaultParallelism=2, parallelize=gone)
    error = _refused(SimpleNamespace(sparkContext=context, _jsc=SimpleNamespace(sc=gone)))

    assert (SinkError, False, "Spark ended before its executors could be asked") == (
        type(error),
        error.retryable,
        error.what,
    )
