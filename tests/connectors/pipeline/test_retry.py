"""When an attempt is made again, after which pause, and when the last error is raised."""

from __future__ import annotations

import math

import pytest

from connectors.pipeline.failures import error_behind
from connectors.pipeline.retry import Failure, retried
from connectors.readers.binlog.transport.connection import ConnectionLost
from historian.errors import HistorianError, LeaseHeld, LogPurged, SinkError


class Run:
    """Attempts that end as told, on a clock that only pauses move."""

    def __init__(self, *outcomes: HistorianError | None, plans: tuple[int, ...] = ()) -> None:
        self.outcomes = list(outcomes)
        self.plans = dict.fromkeys(plans, 1)
        self.made = 0
        self.progress = 0
        self.now_s = 0.0
        self.failures: list[Failure] = []

    def attempt(self) -> str:
        self.made += 1
        self.progress += self.plans.get(self.made, 0)
        outcome = self.outcomes.pop(0)
        if outcome is not None:
            raise outcome
        return "done"

    def wait(self, seconds: float) -> bool:
        self.now_s += seconds
        return False

    def go(self, limit_s: float = math.inf) -> str | None:
        return retried(
            self.attempt,
            limit_s=limit_s,
            progress=lambda: self.progress,
            wait=self.wait,
            report=self.failures.append,
            clock_s=lambda: self.now_s,
            uniform=lambda _, most: most,
        )


def lost() -> ConnectionLost:
    return ConnectionLost("the server cannot be reached")


def test_pauses_double_up_to_a_minute() -> None:
    run = Run(*(lost() for _ in range(8)), None)

    assert "done" == run.go()
    assert [1, 2, 4, 8, 16, 32, 60, 60] == [failure.pause_s for failure in run.failures]


def test_a_written_plan_begins_the_count_anew() -> None:
    run = Run(lost(), lost(), lost(), None, plans=(3,))

    run.go()

    assert [1, 2, 1] == [failure.number for failure in run.failures]


def test_the_last_error_is_raised_when_the_time_is_up() -> None:
    run = Run(*(lost() for _ in range(9)))

    with pytest.raises(ConnectionLost):
        run.go(limit_s=10)

    assert (10, 10) == (run.now_s, sum(failure.pause_s for failure in run.failures))


@pytest.mark.parametrize("error", [LogPurged("the log is gone"), LeaseHeld("another run is alive")])
def test_what_does_not_pass_and_the_lease_of_another_run_are_raised_at_once(error: HistorianError) -> None:
    run = Run(error)

    with pytest.raises(type(error)):
        run.go()

    assert [] == run.failures


def test_a_run_that_another_one_replaced_during_an_outage_ends() -> None:
    with pytest.raises(LeaseHeld):
        Run(lost(), LeaseHeld("another run is alive"), None).go()


def test_a_signal_ends_the_pauses() -> None:
    run = Run(lost())
    run.wait = lambda _: True  # type: ignore[method-assign]

    assert run.go() is None


@pytest.mark.parametrize(
    "text,passes",
    [
        ("java.net.UnknownHostException: bucket.s3.eu-west-1.amazonaws.com", True),
        ("AWS Error SLOW_DOWN during PutObject operation", True),
        ("com.amazonaws.services.s3.model.AmazonS3Exception: (Service: S3, Status Code: 503, Request ID: 1)", True),
        (
            "software.amazon.awssdk.core.exception.SdkClientException: Unable to execute HTTP request: Connect to s3 failed",
            True,
        ),
        ("org.apache.http.ConnectionClosedException: Premature end of Content-Length delimited message body", True),
        ("S3Exception: The provided token has expired. (Service: S3, Status Code: 400) ExpiredToken", True),
        ("AWS Error ACCESS_DENIED during PutObject operation", False),
        ("java.lang.NullPointerException", False),
    ],
)
def test_storage_that_does_not_answer_may_pass(text: str, passes: bool) -> None:
    assert passes is error_behind(ValueError(text)).retryable
    assert passes is error_behind(SinkError("a target cannot be read", found=text)).retryable


def test_a_server_that_an_executor_has_lost_may_come_back() -> None:
    told = "PythonException: connectors.readers.binlog.transport.connection.ConnectionLost: the connection broke\n\tat org.apache"

    assert error_behind(ValueError(told)).retryable
