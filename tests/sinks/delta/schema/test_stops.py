"""How a stop is told."""

from __future__ import annotations

from sinks.delta.schema.stops import inherited_stop


def test_a_reason_that_went_through_many_swaps_is_told_once_with_their_path() -> None:
    reason = "a row was lost (shop.t0); expected one\n  in: ALTER TABLE t0"
    for number in range(1, 4):
        reason = str(inherited_stop(f"shop.t{number}", reason))

    assert reason == (
        "a table's targets are those of a stopped one (shop.t3, after shop.t2, after shop.t1); "
        "found a row was lost (shop.t0); expected one\n  in: ALTER TABLE t0"
    )


def test_reasons_that_were_stored_one_in_another_are_told_once() -> None:
    begin = "a table's targets are those of a stopped one"
    stored = f"{begin} (shop.c); found {begin} (shop.b); found a row was lost (shop.a)"

    assert f"{begin} (shop.d, after shop.c, after shop.b); found a row was lost (shop.a)" == str(
        inherited_stop("shop.d", stored)
    )
