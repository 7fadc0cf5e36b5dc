"""How fast rows are copied: by rows, by bytes, and the stricter of the two."""

from __future__ import annotations

import pytest

from connectors.backfill.pace import Pace
from connectors.config import CopyLimits
from connectors.readers.binlog.transport.connection import ServerAddress


@pytest.mark.parametrize(
    "limits, free_at_s",
    [
        (CopyLimits(), 100.0),
        (CopyLimits(rows_per_s=10), 102.0),
        (CopyLimits(bytes_per_s=1000), 105.0),
        (CopyLimits(rows_per_s=10, bytes_per_s=1000), 105.0),
        (CopyLimits(rows_per_s=1, bytes_per_s=1000), 120.0),
    ],
)
def test_the_stricter_limit_holds_over_all_tables(limits: CopyLimits, free_at_s: float) -> None:
    now_s = 100.0
    pace = Pace(ServerAddress(host="h", user="u"), "mysql", lambda: limits, note=lambda _: None, clock_s=lambda: now_s)
    pace.took(5, 4000)
    pace.took(15, 1000)

    assert pace.is_free == (free_at_s == 100.0)
    now_s = free_at_s - 0.01
    assert pace.is_free == (free_at_s == 100.0)
    now_s = free_at_s
    assert pace.is_free


def test_other_limits_hold_for_what_was_copied_already() -> None:
    now_s, limits = 100.0, CopyLimits(rows_per_s=1)
    pace = Pace(ServerAddress(host="h", user="u"), "mysql", lambda: limits, note=lambda _: None, clock_s=lambda: now_s)
    pace.took(1000, 1)
    now_s = 200.0
    assert not pace.is_free

    limits = CopyLimits(rows_per_s=90, connections=4)
    now_s = 300.0
    assert (not pace.is_free, limits) == (True, pace.limits)
    now_s = 308.8
    assert not pace.is_free
    now_s = 308.9
    assert pace.is_free

    limits = CopyLimits(bytes_per_s=10)
    pace.took(1000, 1000)
    now_s = 310.0
    assert pace.is_free
    pace.took(1, 20)
    now_s = 311.9
    assert not pace.is_free
    now_s = 312.0
    assert pace.is_free
