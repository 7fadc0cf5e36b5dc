"""The end of a run whose Spark is gone."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from connectors.spark.ending import is_stopped, stop
from sinks.late_session import LateSession


class Late(LateSession):
    """One whose Java is there, or gone, and whose session must not be made."""

    def __init__(self, *, lives: bool) -> None:
        super().__init__({})
        self._lives = lives

    @property
    def has_java(self) -> bool:
        """It was started; whether it lives, it must be asked."""
        return True

    @property
    def _jvm(self) -> Any:
        def now() -> int:
            if not self._lives:
                raise ConnectionRefusedError
            return 1

        return SimpleNamespace(java=SimpleNamespace(lang=SimpleNamespace(System=SimpleNamespace(nanoTime=now))))

    def made(self) -> Any:
        pytest.fail("a session is made")


class Session:
    """A session whose process ends while it is told to stop, or that cannot stop."""

    def __init__(self, *, lives: bool) -> None:
        self._lives = lives

    @property
    def _jvm(self) -> Any:
        if self._lives:
            return SimpleNamespace(System=SimpleNamespace(nanoTime=lambda: 1))
        raise ConnectionRefusedError

    def stop(self) -> None:
        raise ConnectionRefusedError


def test_spark_that_dies_while_it_is_stopped_has_stopped() -> None:
    stop(Session(lives=False))  # type: ignore[arg-type]


def test_spark_that_cannot_stop_is_an_error() -> None:
    with pytest.raises(ConnectionRefusedError):
        stop(Session(lives=True))  # type: ignore[arg-type]


@pytest.mark.parametrize("lives", [True, False])
def test_a_session_that_is_not_made_yet_has_stopped_with_its_java(lives: bool) -> None:
    assert (not lives) == is_stopped(Late(lives=lives))  # type: ignore[arg-type]
