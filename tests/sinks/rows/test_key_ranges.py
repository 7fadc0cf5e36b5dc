"""Keys are cut into ranges: each key is in one, equal ones in the same, in order."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from historian.changelog.operations import CHUNK_COLUMNS, physical_name
from historian.names import TableName
from historian.schema.snapshots import Column, ColumnType, Snapshot
from historian.values.arrow_types import arrow_type
from lakes.sink_lab import decimal, text
from sinks.rows.key_ranges import key_schema, ranges_of, sampled_keys

KINDS = (text(), decimal(8, 2), ColumnType(name="double"), ColumnType(name="varbinary", length=8))
KEYS = st.tuples(
    st.sampled_from(["", "a", "A", "a ", "é", None]),
    st.sampled_from([None, 1, -2, 3]),
    st.sampled_from([0.0, -0.0, 1.5]),
    st.sampled_from([b"", b"\xff", b"\x00a"]),
)
COLUMNS = tuple(Column(id=n, name=f"c{n}", type=kind) for n, kind in enumerate((*KINDS, ColumnType(name="int")), 1))
WRITTEN = Snapshot(
    table_id=1,
    name=TableName("shop", "t"),
    columns=COLUMNS,
    primary_key=(1, 2, 3, 4),
    charset="utf8mb4",
    collation="utf8mb4_bin",
)


def _rows(keys: list[tuple[Any, ...]]) -> pa.RecordBatch:
    fields = [pa.field(physical_name(c.id), arrow_type(c.type)) for c in COLUMNS]
    system = [pa.nulls(len(keys), field.type) for field in CHUNK_COLUMNS]
    texts, numbers, floats, raws = (list(values) for values in zip(*keys, strict=True))
    data = [
        pa.array(texts, fields[0].type),
        pa.array([None if n is None else Decimal(n) for n in numbers], fields[1].type),
        pa.array(floats, fields[2].type),
        pa.array(raws, fields[3].type),
        pa.array(range(len(keys)), fields[4].type),
    ]
    return pa.RecordBatch.from_arrays([*system, *data], schema=pa.schema([*CHUNK_COLUMNS, *fields]))


@settings(deadline=None)
@given(
    keys=st.lists(KEYS, min_size=1, max_size=30), sample=st.lists(KEYS, min_size=1, max_size=9), count=st.integers(1, 6)
)
def test_equal_keys_are_in_one_range_and_ranges_are_in_order(
    keys: list[tuple[Any, ...]], sample: list[tuple[Any, ...]], count: int
) -> None:
    key = key_schema(WRITTEN)
    samples = [sampled_keys(_rows([one]), WRITTEN, key) for one in sample]
    ranges = ranges_of(samples, key, count)
    assert ranges.count <= count
    numbers = ranges.numbers(_rows(keys), WRITTEN).tolist()

    found: dict[str, set[int]] = {}
    for one, number in zip(keys, numbers, strict=True):
        assert 0 <= number < ranges.count
        found.setdefault(repr([value + 0.0 if isinstance(value, float) else value for value in one]), set()).add(number)
    assert all(len(places) == 1 for places in found.values())
    whole = [(n, k) for k, n in zip(keys, numbers, strict=True) if None not in k]
    ordered = sorted(whole, key=lambda pair: tuple(v.encode() if isinstance(v, str) else v for v in pair[1]))
    assert [number for number, _ in ordered] == sorted(number for number, _ in ordered)


def test_ranges_hold_about_the_same_number_of_keys() -> None:
    key = key_schema(WRITTEN)
    rows = _rows([(f"{number:05}", 1, 0.0, b"") for number in range(10_000)])
    ranges = ranges_of([sampled_keys(rows, WRITTEN, key)], key, 5)
    numbers = ranges.numbers(rows, WRITTEN).tolist()
    assert [numbers.count(n) for n in range(ranges.count)] == [2048, 2048, 2048, 2048, 1808]
