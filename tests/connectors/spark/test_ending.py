"""The end of a run whose Spark is gone."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from connectors.spark.ending import stop


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
