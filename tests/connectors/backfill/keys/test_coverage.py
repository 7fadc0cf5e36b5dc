"""Rows against a bound in this process, in every form of their values, and halves of updates over the frontier."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime, timezone
from decimal import Decimal
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from connectors.backfill.forwarding import forwarded
from connectors.backfill.keys.coverage import covered, within
from connectors.backfill.keys.split_key import SplitKey
from historian.changelog.operations import CHUNK_COLUMNS, Op
from historian.errors import SourceError, ValueUnrepresentable
from historian.names import TableName
from historian.plans.key_ranges import Key, KeyRange, KeyValue
from historian.schema.snapshots import Column, ColumnType

WORD = ColumnType(name="varchar", length=9, charset="utf8mb4", collation="utf8mb4_unicode_ci")
ZERO = ColumnType(name="datetime", options="text")


def _nobody(question: str) -> Sequence[Sequence[Any]]:
    raise AssertionError(question)


def _key(*kinds: ColumnType) -> SplitKey:
    columns = tuple(Column(id=number, name=f"c{number}", type=kind) for number, kind in enumerate(kinds, 1))
    return SplitKey(table=TableName("d", "t"), index="PRIMARY", columns=columns)


def _rows(*columns: pa.Array) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(list(columns), names=[f"h{number}" for number, _ in enumerate(columns, 1)])


def _signs(kind: ColumnType, values: pa.Array, bound: KeyValue) -> list[int]:
    key, rows = _key(kind), _rows(values)
    upto = covered(rows, key, (bound,), _nobody)
    behind = within(rows, key, KeyRange(after=(bound,)), _nobody)
    assert (upto ^ behind).all()
    return list(map(int, behind))


def _utc(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=timezone.utc)  # type: ignore[misc,arg-type]


@pytest.mark.parametrize(
    "kind, values, bound, behind",
    [
        (ColumnType(name="int"), pa.array([-1, 0, 1], pa.int32()), 0, 1),
        (ColumnType(name="int"), pa.array([-1, 0], pa.int32()), 2**40, 0),
        (ColumnType(name="bigint", unsigned=True), pa.array([Decimal(2**63), Decimal(2**63 + 1)], pa.decimal128(20, 0)), 2**63, 1),
        (ColumnType(name="bigint", unsigned=True, options="text"), pa.array(["9", "10", "9223372036854775809"]), 2**63, 1),
        (ColumnType(name="bigint", unsigned=True, options="int64"), pa.array([9, 10], pa.int64()), 2**63, 0),
        (ColumnType(name="tinyint", length=1, options="boolean"), pa.array([False, True]), 0, 1),
        (ColumnType(name="bit", length=1), pa.array([False, True]), 0, 1),
        (ColumnType(name="bit", length=1, options="binary"), pa.array([b"\0", b"\1"]), 0, 1),
        (ColumnType(name="bit", length=9), pa.array([b"\0\xff", b"\1\0", b"\1\1"]), 256, 1),
        (ColumnType(name="year"), pa.array([0, 1901], pa.int16()), 0, 1),
        (ColumnType(name="decimal", precision=5, scale=2), pa.array([Decimal("-1.50"), Decimal("1.00"), Decimal("1.01")], pa.decimal128(5, 2)), "1.00", 1),
        (ColumnType(name="decimal", precision=5, scale=2), pa.array([Decimal("1.00"), Decimal("9.99")], pa.decimal128(5, 2)), "123456.789", 0),
        (ColumnType(name="decimal", precision=39, scale=1), pa.array(["-10.0", "9.0", "10.1"]), "10.0", 1),
        (ColumnType(name="date"), pa.array([date(1969, 12, 31), date(1970, 1, 1), date(1970, 1, 2)]), "1970-01-01", 1),
        (ColumnType(name="date"), pa.array([date(2020, 2, 29), date(2020, 3, 1)]), "2020-02-31", 1),
        (ColumnType(name="date"), pa.array([date(2020, 4, 30), date(2020, 5, 1)]), "2020-05-00", 1),
        (ColumnType(name="datetime", fraction=6), pa.array([_utc(1, 1, 1), _utc(2020, 1, 1, 0, 0, 0, 5), _utc(9999, 1, 1)], pa.timestamp("us")), "2020-01-01 00:00:00.000005", 1),
        (ZERO, pa.array(["0000-00-00 00:00:00", "2020-00-00 00:00:00", "2020-01-01 00:00:00"]), "2020-00-00 00:00:00", 1),
        (ColumnType(name="timestamp"), pa.array([_utc(1970, 1, 1, 0, 0, 1), _utc(2038, 1, 1)], pa.timestamp("us", "UTC")), "1970-01-01 00:00:01", 1),
        (ColumnType(name="time"), pa.array([-5_000_000, -1_000_000, 0], pa.int64()), "-00:00:01", 1),
        (ColumnType(name="time", options="text"), pa.array(["-838:59:59.000", "-00:00:02.000", "-00:00:01.000", "100:00:00.000"]), "-00:00:01.000", 1),
        (ColumnType(name="varbinary", length=9), pa.array([b"", b"a", b"a\0", b"\xff"]), "61", 2),
        (ColumnType(name="enum", labels=("z", "a"), charset="latin1", collation="latin1_bin"), pa.array(["", "z", "a"]), 1, 1),
        (ColumnType(name="varchar", charset="utf8mb4", collation="utf8mb4_bin"), pa.array(["a\t", "a", "a ", "a!"]), "61", 1),
        (ColumnType(name="varchar", charset="utf8mb4", collation="utf8mb4_0900_bin"), pa.array(["", "a", "a\t", "a "]), "61", 2),
    ],
)  # fmt: skip
def test_values_of_each_form_lie_where_the_server_has_them(
    kind: ColumnType, values: pa.Array, bound: KeyValue, behind: int
) -> None:
    assert [0] * (len(values) - behind) + [1] * behind == _signs(kind, values, bound)


def test_a_composite_key_is_decided_by_its_first_column_that_differs() -> None:
    key = _key(ColumnType(name="int"), ColumnType(name="varbinary", length=4))
    rows = _rows(pa.array([1, 1, 2, 2, 3], pa.int32()), pa.array([b"x", b"y", b"a", b"c", b"a"]))

    assert [True, True, True, False, False] == covered(rows, key, (2, "62"), _nobody).tolist()
    assert [False, True, True, False, False] == within(
        rows, key, KeyRange(after=(1, "78"), upto=(2, "62")), _nobody
    ).tolist()
    assert [True] * 5 == covered(rows, key, None, _nobody).tolist()
    assert [] == covered(rows.slice(0, 0), key, (2, "62"), _nobody).tolist()


def test_texts_are_compared_by_the_server_each_once() -> None:
    asked: list[str] = []

    def ask(question: str) -> Sequence[Sequence[Any]]:
        asked.append(question)
        return (("02",),)

    rows = _rows(pa.array(["A", "é'", "A"]))

    assert [True, False, True] == covered(rows, _key(WORD), ("62",), ask).tolist()
    expected = "SELECT CONCAT(STRCMP(_utf8mb4'A', k.b) + 1, STRCMP(_utf8mb4 x'c3a927', k.b) + 1) FROM (SELECT _utf8mb4 x'62' COLLATE utf8mb4_unicode_ci AS b) AS k"
    assert [expected] == asked


def test_many_texts_take_several_questions() -> None:
    sizes: list[int] = []

    def ask(question: str) -> Sequence[Sequence[Any]]:
        sizes.append(question.count("STRCMP"))
        return ((b"0" * sizes[-1],),)

    rows = _rows(pa.array([str(number) for number in range(1200)]))

    assert covered(rows, _key(WORD), ("62",), ask).all()
    assert [500, 500, 200] == sizes


@pytest.mark.parametrize("answer", [None, "0", "012"])
def test_an_answer_that_is_none_is_an_error(answer: str | None) -> None:
    with pytest.raises(SourceError, match="cannot compare keys"):
        covered(_rows(pa.array(["a", "b"])), _key(WORD), ("62",), lambda _: ((answer,),))


def test_a_key_that_its_form_cannot_hold_is_an_error() -> None:
    rows = _rows(pa.array([1, None], pa.int32()))

    with pytest.raises(ValueUnrepresentable, match=r"d\.t\.c1"):
        covered(rows, _key(ColumnType(name="int")), (1,), _nobody)


def _changes(*ops: Op) -> pa.RecordBatch:
    count = len(ops)
    values: dict[str, pa.Array] = {
        field.name: pa.array([0] * count, pa.int64()).cast(field.type) for field in CHUNK_COLUMNS
    }
    values |= {"op": pa.array(map(int, ops), pa.uint8()), "h1": pa.array(range(count), pa.int32())}
    return pa.RecordBatch.from_pydict(values)


@pytest.mark.parametrize(
    "covers, expected",
    [
        ((True, True), [(Op.CORRECT_FROM, 1), (Op.CORRECT_TO, 2)]),
        ((True, False), [(Op.RETRACT, 1)]),
        ((False, True), [(Op.APPEND, 2)]),
        ((False, False), []),
    ],
)
def test_an_update_over_the_frontier_keeps_its_half(covers: tuple[bool, bool], expected: list[tuple[Op, int]]) -> None:
    rows = _changes(Op.APPEND, Op.CORRECT_FROM, Op.CORRECT_TO, Op.RETRACT)

    kept = forwarded(rows, np.array([True, *covers, False]))

    found = list(zip(kept.column("op").to_pylist(), kept.column("h1").to_pylist(), strict=True))
    assert [(Op.APPEND, 0), *expected] == found
    assert rows.schema == kept.schema


def test_rows_that_are_all_covered_are_the_same() -> None:
    rows = _changes(Op.CORRECT_FROM, Op.CORRECT_TO)

    assert forwarded(rows, np.array([True, True])) is rows


def test_ranges_that_follow_each_other_hold_each_row_once() -> None:
    key = _key(ColumnType(name="int"))
    rows = _rows(pa.array([5, 1, 9, 3, 7], pa.int32()))
    bounds: list[Key | None] = [None, (3,), (3,), (8,), None]

    held = [within(rows, key, KeyRange(after=a, upto=b), _nobody) for a, b in pairwise(bounds)]

    assert [1] * 5 == np.sum(held, axis=0).tolist()
