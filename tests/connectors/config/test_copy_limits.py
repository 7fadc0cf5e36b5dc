"""Limits of copies that are changed while a connector runs."""

from __future__ import annotations

import pytest

from connectors.config import CopyLimits, PauseAbove, limits_in_force, limits_of_texts, limits_text, named_limits
from historian.errors import ConfigError


def test_what_people_say_holds_in_place_of_the_configuration() -> None:
    configured = CopyLimits(rows_per_s=10, pause_above=PauseAbove(threads_running=8, replica_lag_s=5))
    texts = (
        "bytes_per_second=2 MB",
        "connections=4",
        "rows_per_second=off",
        "pause_above.threads_running = off",
        "pause_above.history_list_length=7",
    )

    said = limits_of_texts(texts)
    in_force = limits_in_force(configured, [(name, value) for name, value in said.items() if value != ""])

    pause = PauseAbove(history_list_length=7, replica_lag_s=5)
    assert CopyLimits(connections=4, bytes_per_s=2_000_000, pause_above=pause) == in_force
    assert dict.fromkeys(named_limits(configured), "") == limits_of_texts(f"{n}=" for n in named_limits(configured))
    assert (
        "connections 4, bytes_per_second 2000000, pause_above.history_list_length 7, pause_above.replica_lag_seconds 5"
        == limits_text(in_force)
    )
    assert configured == limits_in_force(configured, [("of_a_later_release", 7)])


@pytest.mark.parametrize(
    "text, told",
    [
        ("rows_per_second", "expected: NAME=VALUE with one of the names connections, rows_per_second"),
        ("chunk_rows=5", "expected: NAME=VALUE with one of the names"),
        ("connections=0", "greater than or equal to 1"),
        ("connections=off", "a number from 1 to 16"),
        ("bytes_per_second=much", "found bytes_per_second=much, expected:"),
        ("pause_above.threads_running=0", "greater than or equal to 1"),
    ],
)
def test_a_wrong_limit_is_told_with_what_is_expected(text: str, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        limits_of_texts([text])
