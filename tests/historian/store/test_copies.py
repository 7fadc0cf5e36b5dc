"""How far a copy is, and how long the rest takes at the rate so far."""

from __future__ import annotations

from dataclasses import replace

from historian.store.copies import CopyProgress, left_s

_MINUTE_US = 60_000_000


def test_the_rest_takes_as_long_as_the_rate_so_far_says() -> None:
    progress = CopyProgress(
        plan=4, rows=400, since_us=_MINUTE_US, noted_us=2 * _MINUTE_US, noted_rows=300, estimate=1000
    )

    assert 5 == progress.rows_per_s
    assert 120 == progress.left_s


def test_more_rows_than_the_server_estimated_leave_nothing_to_wait_for() -> None:
    progress = CopyProgress(plan=4, rows=400, since_us=0, noted_us=_MINUTE_US, noted_rows=300, estimate=100)

    assert 0 == progress.left_s


def test_the_rest_is_not_guessed_without_a_rate_or_an_estimate() -> None:
    assert CopyProgress(plan=1, rows=10, since_us=5, noted_us=5, estimate=100).left_s is None
    assert CopyProgress(plan=2, rows=10, since_us=5, noted_us=_MINUTE_US, noted_rows=5).left_s is None
    done = CopyProgress(plan=2, rows=10, since_us=5, noted_us=_MINUTE_US, noted_rows=5, estimate=9, is_done=True)
    assert done.left_s is None


def test_bytes_to_come_are_those_of_rows_as_wide_as_those_that_came() -> None:
    progress = CopyProgress(
        plan=4,
        rows=400,
        since_us=_MINUTE_US,
        noted_us=2 * _MINUTE_US,
        noted_rows=300,
        estimate=1000,
        size_bytes=8000,
        noted_bytes=6000,
    )

    assert (100, 20_000) == (progress.bytes_per_s, progress.estimated_bytes)
    unknown = replace(progress, size_bytes=None, noted_bytes=None)
    assert (0, None) == (unknown.bytes_per_s, unknown.estimated_bytes)
    assert replace(progress, estimate=0).estimated_bytes is None
    assert replace(progress, rows=0, size_bytes=0).estimated_bytes is None


def test_tables_that_wait_are_copied_at_the_rate_of_those_before() -> None:
    done = CopyProgress(plan=3, rows=600, since_us=0, noted_us=_MINUTE_US, noted_rows=600, estimate=600, is_done=True)
    copying = CopyProgress(plan=4, rows=0, since_us=_MINUTE_US, noted_us=_MINUTE_US, estimate=900)
    waiting = CopyProgress(plan=4, noted_us=_MINUTE_US, estimate=300)

    assert left_s([copying]) is None
    assert 120 == left_s([replace(done, since_us=1), copying, waiting])
