"""RisingWave's form: worked vectors, its rules on widths, NULLs and defaults, and values of every type kept."""

from __future__ import annotations

from datetime import date, datetime, time, timezone
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from historian.encoding import decode_rows, encode_risingwave, field_id, with_id
from historian.encoding.risingwave_values import write_row, write_value
from historian.errors import HistorianError, RowCorrupt, ValueUnrepresentable
from models.random_rows import tables


def batch(*columns: tuple[int, pa.DataType, list[Any]]) -> pa.RecordBatch:
    fields = [with_id(number, pa.field(f"h{number}", kind)) for number, kind, _ in columns]
    return pa.RecordBatch.from_arrays([pa.array(v, k) for _, k, v in columns], schema=pa.schema(fields))


def cells(*rows: str) -> pa.Array:
    return pa.array([bytes.fromhex(row) for row in rows], pa.binary())


INNER = pa.struct([with_id(11, pa.field("f2", pa.int32())), with_id(12, pa.field("f3", pa.bool_()))])
NESTED = pa.struct(
    [with_id(1, pa.field("f1", pa.int32())), with_id(2, pa.field("m", pa.map_(pa.string(), pa.list_(INNER))))]
)
THREE = "81 03000000 00000000 01000000 02000000 00 02 09 0500 03000000616263 03000000414243"
VECTORS = [
    (
        batch((0, pa.int16(), [5]), (1, pa.string(), ["abc"])),
        "81 02000000 00000000 01000000 00 02 0500 03000000 616263",
    ),
    (
        batch((1, pa.int32(), [7]), (2, pa.bool_(), [None]), (3, pa.string(), [""])),
        "81 03000000 01000000 02000000 03000000 00 04 04 07000000 00000000",
    ),
    (batch((0, pa.int16(), [5]), (1, pa.string(), ["abc"]), (2, pa.string(), ["ABC"])), THREE),
    (
        batch((2, pa.string(), ["ABC"]), (0, pa.int16(), [5])),
        "81 02000000 02000000 00000000 00 07 03000000414243 0500",
    ),
    (
        batch((0, NESTED, [{"f1": 5, "m": [("key", [{"f2": 6, "f3": True}])]}])),
        (
            "81 01000000 00000000 00 3c000000 81 02000000 01000000 02000000 00 04 05000000 01000000 03000000 6b6579 01"
            "01000000 01 14000000 81 02000000 0b000000 0c000000 00 04 06000000 01"
        ),
    ),
    (
        batch((0, pa.decimal128(7, 3), [Decimal("1.234")])),
        "81 01000000 00000000 00 00000300 d2040000 00000000 00000000",
    ),
    (
        batch((0, pa.decimal128(7, 1), [Decimal("-1.5")])),
        "81 01000000 00000000 00 00000180 0f000000 00000000 00000000",
    ),
    (
        batch((0, pa.decimal128(38, 0), [Decimal(-(2**64))])),
        "81 01000000 00000000 00 00000080 00000000 00000000 01000000",
    ),
    (
        batch((0, pa.timestamp("us"), [datetime(2023, 11, 30, 12, 34, 56, 123456)])),  # noqa: DTZ001
        "81 01000000 00000000 00 7081686500000000 00ca5b07",
    ),
    (batch((0, pa.date32(), [date(1970, 1, 1)])), "81 01000000 00000000 00 3bf90a00"),
    (batch((-1, pa.int16(), [5])), "81 01000000 ffffffff 00 0500"),
]


@pytest.mark.parametrize("rows,expected", VECTORS)
def test_worked_vectors_are_written_and_read(rows: pa.RecordBatch, expected: str) -> None:
    assert cells(expected) == encode_risingwave(rows)
    assert rows.to_pylist() == decode_rows(cells(expected), rows.schema).to_pylist()


@pytest.mark.parametrize(
    "lengths,flag,offsets", [((251, 2), 0x81, "00ff"), ((252, 2), 0x82, "00000001"), ((70_000,), 0x81, "00")]
)
def test_offsets_are_as_wide_as_the_last_value_needs(lengths: tuple[int, ...], flag: int, offsets: str) -> None:
    columns = [(0, pa.string(), ["x" * lengths[0]]), (1, pa.int16(), [5])][: len(lengths)]
    rows = batch(*columns)

    cell = encode_risingwave(rows)[0].as_py()

    begin = 5 + 4 * len(lengths)
    assert (flag, bytes.fromhex(offsets)) == (cell[0], cell[begin : begin + len(offsets) // 2])
    assert rows == decode_rows(encode_risingwave(rows), rows.schema)


def test_offsets_of_four_bytes() -> None:
    rows = batch((0, pa.string(), ["x" * 70_000]), (1, pa.int16(), [None]), (2, pa.int16(), [None]))

    assert 0x83 == encode_risingwave(rows)[0].as_py()[0]
    assert rows == decode_rows(encode_risingwave(rows), rows.schema)


def test_a_reader_takes_other_columns_in_another_order_and_fills_in_defaults() -> None:
    wanted = batch((2, pa.string(), []), (3, pa.string(), []), (0, pa.int16(), [])).schema

    read = decode_rows(cells(THREE), wanted, {3: pa.scalar("new column")}.__getitem__)

    assert [{"h2": "ABC", "h3": "new column", "h0": 5}] == read.to_pylist()


def test_a_stored_null_stays_where_there_is_a_default() -> None:
    rows = batch((0, pa.int16(), [5]), (1, pa.string(), [None]))

    read = decode_rows(encode_risingwave(rows), rows.schema, lambda _: pa.scalar("default"))

    assert rows.to_pylist() == read.to_pylist()


def test_many_columns() -> None:
    rows = batch(*((i, pa.int16(), [i % 100 if i % 3 else None]) for i in range(20_000)))

    assert rows == decode_rows(encode_risingwave(rows), rows.schema)


@settings(deadline=None, max_examples=100)
@given(tables(more=False))
def test_columns_are_written_as_their_single_values(rows: pa.RecordBatch) -> None:
    fields = list(rows.schema)
    ids = [field_id(field) for field in fields]

    expected = [
        write_row(ids, [b"" if v is None else write_value(f.type, v, "") for f, v in zip(fields, row, strict=True)])
        for row in zip(*(column.to_pylist() for column in rows.columns), strict=True)
    ]

    assert expected == encode_risingwave(rows).to_pylist()


@settings(deadline=None, max_examples=100)
@given(tables(more=False), st.data())
def test_any_columns_in_any_order_are_read_as_written(rows: pa.RecordBatch, data: st.DataObject) -> None:
    wanted = data.draw(st.permutations(range(rows.num_columns)))[: data.draw(st.integers(1, rows.num_columns))]

    read = decode_rows(encode_risingwave(rows), pa.schema([rows.schema.field(i) for i in wanted]))

    read.validate(full=True)
    assert rows.select(wanted).to_pylist() == read.to_pylist()


def test_time_and_a_struct_without_ids() -> None:
    kind = pa.struct([pa.field("t", pa.time64("us")), pa.field("n", pa.map_(pa.string(), pa.int16()))])
    rows = batch((1, kind, [{"t": time(1, 2, 3, 4), "n": [("a", None)]}, None, {"t": None, "n": None}]))

    encoded = encode_risingwave(rows)

    assert "81 01000000 01000000 00 01 8b0e0000 a00f0000 01 01000000 01 01 01000000 61 00".replace(" ", "") == (
        encoded[0].as_py().hex()
    )
    assert rows.to_pylist() == decode_rows(encoded, rows.schema).to_pylist()


@pytest.mark.parametrize(
    "kind,value,why",
    [
        (pa.int8(), 1, "no such type"),
        (pa.decimal128(38, 0), Decimal(2**96), "96 bits"),
        (pa.decimal128(38, 29), Decimal("1e-29"), "28 places"),
        (pa.struct([]), {}, "read back as NULL"),
        (pa.struct([with_id(1, pa.field("a", pa.struct([])))]), {"a": {}}, "read back as NULL"),
    ],
)
def test_what_the_form_cannot_hold_is_refused(kind: pa.DataType, value: Any, why: str) -> None:
    with pytest.raises(ValueUnrepresentable, match=why):
        encode_risingwave(batch((1, kind, [value])))


@pytest.mark.parametrize(
    "cell,kind",
    [
        ("", pa.int16()),
        ("01 02000000", pa.int16()),
        ("80 00000000", pa.int16()),
        ("85 00000000", pa.int16()),
        ("81 ffffffff 00000000 00 0500", pa.int16()),
        ("81 01000000 00000000 03 0500", pa.int16()),
        ("81 01000000 00000000 00 050000", pa.int16()),
        ("81 01000000 00000000 00 02", pa.bool_()),
        ("81 01000000 00000000 00 04000000 616263", pa.string()),
        ("81 01000000 00000000 00 01000000 ff", pa.string()),
        ("81 01000000 00000000 00 01000000 02 0500", pa.list_(pa.int16())),
        ("81 01000000 00000000 00 01000000 01 05", pa.list_(pa.int16())),
        ("81 01000000 00000000 00 01000000 00 05", pa.list_(pa.int16())),
        ("81 01000000 00000000 00 7081686500000000 00ca9a3b", pa.timestamp("us")),
    ],
)
def test_bytes_that_are_no_row_are_refused(cell: str, kind: pa.DataType) -> None:
    with pytest.raises(RowCorrupt):
        decode_rows(cells(cell), batch((0, kind, [])).schema)


@pytest.mark.parametrize(
    "cell,kind",
    [
        ("81 01000000 00000000 00 01000000 00000000 00000000 00000000", pa.decimal128(5, 2)),
        ("81 01000000 00000000 00 00000300 d2040000 00000000 00000000", pa.decimal128(5, 2)),
        ("81 01000000 00000000 00 7081686500000000 01000000", pa.timestamp("us")),
    ],
)
def test_values_that_the_wanted_type_cannot_hold_are_refused(cell: str, kind: pa.DataType) -> None:
    with pytest.raises(ValueUnrepresentable):
        decode_rows(cells(cell), batch((0, kind, [])).schema)


@settings(deadline=None, max_examples=100)
@given(st.data())
def test_damage_is_an_error_of_ours_or_some_row(data: st.DataObject) -> None:
    rows, vector = data.draw(st.sampled_from(VECTORS))
    cell = bytearray.fromhex(vector)
    for _ in range(data.draw(st.integers(1, 3))):
        cell[data.draw(st.integers(0, len(cell) - 1))] = data.draw(st.integers(0, 255))

    try:
        read = decode_rows(pa.array([bytes(cell)], pa.binary()), rows.schema)
    except HistorianError:
        return
    read.validate(full=True)


def test_an_instant_is_microseconds() -> None:
    rows = batch((1, pa.timestamp("us", tz="UTC"), [datetime(1970, 1, 1, 0, 0, 1, tzinfo=timezone.utc)]))

    assert cells("81 01000000 01000000 00 40420f0000000000") == encode_risingwave(rows)
