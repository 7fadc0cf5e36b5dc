"""An error of ours is known again in the text that Spark makes of it."""

from __future__ import annotations

import traceback

import pytest

from connectors.readers.binlog.transport.connection import ConnectionLost, NotLetIn
from connectors.readers.kafka.client import BrokerDown
from historian.errors import ConfigError, HistorianError, LogCorrupt, SinkError, UnsupportedEvent, error_in

_JOB = "Job aborted due to stage failure: Task 0 in stage 1.0 failed 4 times (executor 2): org.apache.spark.api.python.PythonException: "


def _told(error: HistorianError) -> str:
    return "".join(traceback.format_exception(error))


@pytest.mark.parametrize(
    "error",
    [
        SinkError("a file cannot be written", where="s3a://bucket/x", found="no rights", next_step="mend it"),
        LogCorrupt("a checksum is wrong", where="binlog.000001:4"),
        UnsupportedEvent("an event of another kind", where="binlog.000001:4", next_step=""),
        ConnectionLost("the server cannot be reached", where="db:3306"),
        NotLetIn("the server does not let the user in", found="Access denied"),
        BrokerDown("no broker answers"),
        ConfigError("cannot be used", problems=("missing @ $.a", "missing @ $.b"), where="shop.yaml"),
    ],
    ids=lambda error: type(error).__name__,
)
@pytest.mark.parametrize(
    "end", ["\n\nDriver stacktrace:\n", "\n\tat org.apache.spark.A.b(A.scala:1)\n", "\n SQLSTATE: 38000", ""]
)
def test_an_error_is_of_its_class_and_prints_as_it_did(error: HistorianError, end: str) -> None:
    found = error_in(f"{_JOB}{_told(error)}{end}")

    assert (type(error), str(error), error.retryable) == (
        type(found),
        str(found),
        found is not None and found.retryable,
    )


def test_of_several_the_last_one_is_the_reason() -> None:
    text = f"{_told(SinkError('first'))}\nDuring handling of the above exception:\n{_told(LogCorrupt('second'))}\n"

    assert isinstance(error_in(text), LogCorrupt)


@pytest.mark.parametrize("prefix", ["", "  ", "Caused by: org.apache.spark.api.python.PythonException: "])
def test_of_lines_that_follow_each_other_the_last_one_is_the_reason(prefix: str) -> None:
    found = error_in(
        f"{_JOB}historian.errors.SinkError: first\nits file\n{prefix}historian.errors.LogCorrupt: second\n\tat a.B"
    )

    assert (LogCorrupt, "second") == (type(found), str(found))


def test_an_error_that_another_one_tells_of_in_its_line_is_not_the_reason() -> None:
    text = (
        "historian.errors.SinkError: a plan could not be written (found historian.errors.LogCorrupt: second)\non disk"
    )
    found = error_in(text)

    assert (SinkError, text.partition(": ")[2]) == (type(found), str(found))


@pytest.mark.parametrize(
    "text",
    ["java.lang.NullPointerException: x", "historian.errors: x", "historian.errors.Any: x", "sinks.nowhere.Error: x"],
)
def test_what_is_no_error_of_ours_is_none(text: str) -> None:
    assert error_in(text) is None
