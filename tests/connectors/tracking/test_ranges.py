"""How a plan's log is shared out."""

from __future__ import annotations

import pytest

from connectors.tracking.ranges import range_bytes_between
from historian.positions import LogPosition

MOST = 32 << 20


def _at(file: str, offset: int) -> LogPosition:
    return LogPosition(flavor="mysql", gtids="", file=file, offset=offset)


@pytest.mark.parametrize(
    "size_bytes, range_bytes",
    [(0, 8 << 20), (16 << 20, 8 << 20), (32 << 20, 16 << 20), (64 << 20, MOST), (256 << 20, MOST)],
)
def test_a_plan_of_less_log_has_shorter_ranges(size_bytes: int, range_bytes: int) -> None:
    assert range_bytes_between(_at("b.1", 90), _at("b.1", 90 + size_bytes), MOST) == range_bytes


def test_no_range_is_longer_than_wished() -> None:
    assert range_bytes_between(_at("b.1", 90), _at("b.1", 90 + (32 << 20)), 1000) == 1000


def test_files_of_a_log_are_ranges_of_their_own() -> None:
    assert range_bytes_between(_at("b.1", 90), _at("b.2", 91), MOST) == MOST
