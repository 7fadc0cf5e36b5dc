"""Columns dropped from encoded rows without their types, at any depth."""

from __future__ import annotations

import zlib
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from historian.encoding import decode_rows, drop_columns, encode_risingwave, encode_rows, field_id, with_id
from historian.errors import RowCorrupt
from models.random_rows import tables

THREE = bytes.fromhex("810300000000000000010000000200000000020905000300000061626303000000414243")


def test_a_column_goes_from_a_row_of_the_first_form() -> None:
    expected = bytes.fromhex("8102000000000000000200000000020500 03000000414243")

    assert expected == drop_columns(THREE, {0, 2, 7})


def test_nothing_to_drop_gives_the_row_itself() -> None:
    second = encode_rows(pa.record_batch([pa.array([1])], pa.schema([with_id(1, pa.field("a", pa.int64()))])))[
        0
    ].as_py()

    assert THREE is drop_columns(THREE, range(5))
    assert second is drop_columns(second, range(5))


def test_all_columns_may_go() -> None:
    second = encode_rows(pa.record_batch([pa.array([1])], pa.schema([with_id(1, pa.field("a", pa.int64()))])))[
        0
    ].as_py()
    empty = bytes.fromhex("e500")

    assert bytes.fromhex("8100000000") == drop_columns(THREE, ())
    assert empty + zlib.crc32(empty).to_bytes(4, "little") == drop_columns(second, ())


def test_fields_go_from_structs_in_lists_in_maps_in_structs() -> None:
    point = pa.struct([with_id(7, pa.field("x", pa.int8())), with_id(8, pa.field("y", pa.int8()))])
    whole = pa.struct([with_id(5, pa.field("m", pa.map_(pa.string(), pa.list_(point))))])
    field = with_id(1, pa.field("a", whole))
    rows = pa.RecordBatch.from_arrays(
        [pa.array([{"m": [("k", [{"x": 1, "y": 2}, None])]}, {"m": None}], whole)], schema=pa.schema([field])
    )
    one, other = encode_rows(rows).to_pylist()

    expected = _type(whole, {1, 5, 8})

    dropped = drop_columns(one, {1, 5, 8})
    assert len(dropped) == len(one) - 3  # an id, an end, a value; the kinds of two take one byte as well
    read = decode_rows(pa.array([dropped], pa.binary()), pa.schema([field.with_type(expected)]))
    assert [{"a": {"m": [("k", [{"y": 2}, None])]}}] == read.to_pylist()
    assert other is drop_columns(other, {1, 5, 8})


def _without(kind: pa.DataType, values: pa.Array, valid: set[int]) -> pa.Array:
    """The array without fields of other ids, made anew from Python values."""
    return pa.array([_value(kind, value, valid) for value in values.to_pylist()], _type(kind, valid))


def _type(kind: pa.DataType, valid: set[int]) -> pa.DataType:
    if pa.types.is_struct(kind):
        return pa.struct([f.with_type(_type(f.type, valid)) for f in kind if field_id(f) in valid])
    if pa.types.is_list(kind):
        return pa.list_(_type(kind.value_type, valid))
    return pa.map_(pa.string(), _type(kind.item_type, valid)) if pa.types.is_map(kind) else kind


def _value(kind: pa.DataType, value: Any, valid: set[int]) -> Any:
    if value is None:
        return None
    if pa.types.is_struct(kind):
        return {f.name: _value(f.type, value[f.name], valid) for f in kind if field_id(f) in valid}
    if pa.types.is_list(kind):
        return [_value(kind.value_type, each, valid) for each in value]
    return [(k, _value(kind.item_type, v, valid)) for k, v in value] if pa.types.is_map(kind) else value


def _ids(fields: list[pa.Field]) -> set[int]:
    found = set()
    waiting = [(field_id(field), field.type) for field in fields]
    while waiting:
        number, kind = waiting.pop()
        if number is not None:
            found.add(number)
        if pa.types.is_struct(kind):
            waiting += [(field_id(f), f.type) for f in kind]
        elif pa.types.is_list(kind):
            waiting.append((None, kind.value_type))
        elif pa.types.is_map(kind):
            waiting.append((None, kind.item_type))
    return found


@settings(deadline=None, max_examples=100)
@given(tables(depth=3), st.data())
def test_dropping_is_the_same_as_writing_without_the_columns(rows: pa.RecordBatch, data: st.DataObject) -> None:
    ids = _ids(list(rows.schema))
    valid = ids - data.draw(st.sets(st.sampled_from(sorted(ids)), max_size=3))
    kept = [i for i, field in enumerate(rows.schema) if field_id(field) in valid]
    fields = [rows.schema.field(i).with_type(_type(rows.schema.field(i).type, valid)) for i in kept]
    arrays = [_without(rows.schema.field(i).type, rows.column(i), valid) for i in kept]

    dropped = [drop_columns(cell, valid) for cell in encode_rows(rows).to_pylist()]

    if fields:
        assert encode_rows(pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))).to_pylist() == dropped
        assert rows.num_rows == decode_rows(pa.array(dropped, pa.binary()), pa.schema(fields)).num_rows
    else:
        assert {drop_columns(cell, ()) for cell in encode_rows(rows).to_pylist()} == set(dropped)


@settings(deadline=None, max_examples=50)
@given(tables(more=False), st.data())
def test_dropping_from_the_first_form_is_writing_without_the_columns(rows: pa.RecordBatch, data: st.DataObject) -> None:
    kept = [i for i in range(rows.num_columns) if data.draw(st.booleans())]
    valid = {field_id(rows.schema.field(i)) for i in kept}

    dropped = [drop_columns(cell, valid) for cell in encode_risingwave(rows).to_pylist()]

    if kept:
        assert encode_risingwave(rows.select(kept)).to_pylist() == dropped
    else:
        assert {bytes.fromhex("8100000000")} >= set(dropped)


@pytest.mark.parametrize(
    "row", [b"", b"\x01", THREE[:12], b"\x80" + THREE[1:], b"\xe5\x00", b"\xe5\x00\x00\x00\x00\x00"]
)
def test_damaged_rows_are_refused(row: bytes) -> None:
    with pytest.raises(RowCorrupt):
        drop_columns(row, {0})


@pytest.mark.parametrize("body", ["e4 00", "e1 00", "e5 01 01 00 01 05 01", "e5 02 0102 00 11 02 01 0000"])
def test_damage_under_a_right_checksum_is_refused(body: str) -> None:
    data = bytes.fromhex(body)

    with pytest.raises(RowCorrupt):
        drop_columns(data + zlib.crc32(data).to_bytes(4, "little"), {0})
