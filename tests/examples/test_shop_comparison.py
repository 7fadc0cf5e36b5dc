from __future__ import annotations

from datetime import date, datetime, timezone
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

from logs.recordings import shop_script

SHOP = Path(__file__).parents[2] / "examples/shop"


comparison = shop_script("comparison")


def final(columns: dict[str, tuple[str, list[str | None]]], key: tuple[str, ...]) -> object:
    return comparison.FinalTable(
        name="t",
        columns=tuple(comparison.FinalColumn(name=name, type=kind) for name, (kind, _) in columns.items()),
        key=key,
        rows=pa.table({name: pa.array(texts, pa.string()) for name, (_, texts) in columns.items()}),
    )


EVERY_TYPE = [
    ("int", "-7", pa.array([-7], pa.int32())),
    ("bigint", "18446744073709551615", pa.array([Decimal(2**64 - 1)], pa.decimal128(20, 0))),
    ("decimal", "-0.50", pa.array([Decimal("-0.50")], pa.decimal128(9, 2))),
    ("float", "0.10000000149011612", pa.array([0.1], pa.float32())),
    ("double", "1.7976931348623157e308", pa.array([1.7976931348623157e308], pa.float64())),
    ("varchar", "thé 'x'\n", pa.array(["thé 'x'\n"])),
    ("enum", "größer", pa.array(["größer"])),
    ("json", '{"a": 1.0}', pa.array(['{"a": 1.0}'])),
    ("blob", "00FF", pa.array([b"\0\xff"])),
    ("date", "1000-01-01", pa.array([date(1000, 1, 1)])),
    ("datetime", "2024-02-29 23:59:59.50", pa.array([datetime(2024, 2, 29, 23, 59, 59, 500_000)])),  # noqa: DTZ001
    (
        "timestamp",
        "2024-02-29 23:59:59.000007",
        pa.array([datetime(2024, 2, 29, 23, 59, 59, 7, timezone.utc)], pa.timestamp("us", tz="UTC")),
    ),
    ("time", "-838:59:58.25", pa.array([-3_020_398_250_000])),
    ("year", "2025", pa.array([2025], pa.int16())),
    ("bit", "1", pa.array([True])),
    ("bit", "513", pa.array([b"\2\1"])),
]


@pytest.mark.parametrize("kind,text,values", EVERY_TYPE, ids=[f"{kind} {text!r}" for kind, text, _ in EVERY_TYPE])
def test_a_value_equals_the_servers_text(kind: str, text: str, values: pa.Array) -> None:
    held = final({"id": ("int", ["1", "2"]), "v": (kind, [text, None])}, ("id",))
    found = pa.table({"v": pa.concat_arrays([values, pa.nulls(1, values.type)]), "id": pa.array([1, 2])})
    verdict = comparison.compare(found, held)
    assert (verdict.equal, verdict.rows, verdict.values, verdict.differences) == (True, 2, 4, ())


@pytest.mark.parametrize("kind,text,values", EVERY_TYPE, ids=[f"{kind} {text!r}" for kind, text, _ in EVERY_TYPE])
def test_null_is_no_value(kind: str, text: str, values: pa.Array) -> None:
    held = final({"id": ("int", ["1"]), "v": (kind, [text])}, ("id",))
    found = pa.table({"id": pa.array([1]), "v": pa.nulls(1, values.type)})
    assert comparison.compare(found, held).different_rows == 1


def test_a_difference_names_key_column_and_both_values() -> None:
    held = final({"id": ("int", ["1", "2"]), "v": ("varchar", ["a", "b"])}, ("id",))
    verdict = comparison.compare(pa.table({"id": [1, 2], "v": ["a", "c"]}), held)
    assert not verdict.equal
    assert verdict.differences == ("id=2: v: server 'b', found 'c'",)
    assert str(verdict) == "t: 2 rows, 4 values compared, 1 rows differ\n  id=2: v: server 'b', found 'c'"


def test_missing_surplus_and_doubled_rows_differ() -> None:
    held = final({"a": ("int", ["1", "2"]), "b": ("int", ["1", "1"])}, ("a", "b"))
    verdict = comparison.compare(pa.table({"a": [1, 1, 3], "b": [1, 1, 1]}), held)
    assert verdict.differences == ("a=1, b=1: there twice", "a=3, b=1: the server has no such row", "a=2, b=1: missing")


def test_rows_without_a_key_compare_as_bags() -> None:
    held = final({"a": ("int", ["1", "1", "2"]), "b": ("varchar", [None, None, "x"])}, ())
    same = pa.table({"b": pa.array(["x", None, None]), "a": [2, 1, 1]})
    assert comparison.compare(same, held).equal
    verdict = comparison.compare(same.slice(0, 2), held)
    assert verdict.differences == ("(a=1, b=None): server 2 times, found 1 times",)


def test_a_column_that_is_missing_makes_all_rows_differ() -> None:
    held = final({"id": ("int", ["1", "2"]), "v": ("varchar", ["a", "b"])}, ("id",))
    verdict = comparison.compare(pa.table({"id": [1, 2]}), held)
    assert (verdict.different_rows, verdict.differences) == (2, ("no column v; there are id",))


def test_columns_beside_the_tables_own_are_not_looked_at() -> None:
    held = final({"id": ("int", ["1"])}, ("id",))
    assert comparison.compare(pa.table({"__position": ["x"], "id": [1]}), held).equal
