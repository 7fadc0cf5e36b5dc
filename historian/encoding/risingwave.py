"""Rows in the first form, RisingWave's column-aware encoding, written and read many at a time.

Format: docs/reference/row-encoding.md, after RisingWave's ``column_aware_row_encoding.rs`` and ``value_encoding``. Structs, lists and
maps are written and read value by value.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from historian.encoding.datums import Datums, bytes_of, cells, fixed_of, valid_of
from historian.encoding.fields import field_id
from historian.encoding.kernels import plain as kernels
from historian.encoding.kernels.memory import gather, scatter, signed_values, with_prefix
from historian.encoding.risingwave_values import DAYS_BEFORE_1970, MAX_DECIMAL_SCALE, read_value, write_value
from historian.encoding.values import (
    ColumnCells,
    boolean_array,
    bytes_array,
    decimal_array,
    fixed_array,
    integers,
    require,
    require_whole,
)
from historian.errors import HistorianError, ValueUnrepresentable

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["encode_risingwave", "read_columns"]

_SECOND_US = 1_000_000


def encode_risingwave(rows: pa.RecordBatch) -> pa.Array:
    """Each row as a binary value in RisingWave's form: columns in the order of *rows*, by the ids of its fields.

    Integers of 16 bits and more, floats, booleans, texts, binaries, DATE, TIME, timestamps in microseconds (with a zone:
    timestamptz). Decimals of at most 28 digits behind the point and 96 bits, and structs, lists and maps of them.

    Raises:
        ValueUnrepresentable: a type or value that this form does not have.
        HistorianError: a field without id or two of one id; more than 2 GiB of cells.
    """
    ids, count = [field_id(field) for field in rows.schema], rows.num_rows
    if len(set(ids)) != len(ids) or any(not -(1 << 31) <= number < 1 << 31 for number in ids):
        raise HistorianError("columns cannot be told apart", expected="different ids of four bytes", found=ids)
    columns = [_datums(field, column) for field, column in zip(rows.schema, rows.columns, strict=True)]
    lengths = np.concatenate([np.zeros(0, np.int64), *(column.lengths for column in columns)])
    bounds, places = np.empty(count + 1, np.int64), np.empty(len(lengths), np.int64)
    out = np.empty(kernels.size_of_plain(len(ids), count, lengths, bounds), np.uint8)
    kernels.put_plain_heads(np.array(ids, np.int64), count, lengths, bounds, out, places)
    for j, column in enumerate(columns):
        scatter(out, places[j * count : (j + 1) * count], column.data, column.starts, column.lengths)
    whole = np.ones(count, np.bool_)
    return cells(Datums(data=out, starts=bounds[:-1], lengths=np.diff(bounds), valid=whole))


def read_columns(rows: ColumnCells, schema: pa.Schema) -> list[tuple[pa.Array, NDArray[np.bool_]]]:
    """Of rows in RisingWave's form: the values of each field of *schema*, and in which rows it is missing.

    Raises:
        RowCorrupt: a row is no valid one, or bytes are no value of the type.
        ValueUnrepresentable: the type wanted cannot hold a value.
    """
    ids = [field_id(field) & 0xFFFF_FFFF for field in schema]
    shape = (len(ids), len(rows.starts))
    starts, lengths, states = (np.zeros(shape, np.int64) for _ in range(3))
    wrong = kernels.find_plain(rows.data, rows.starts, rows.lengths, np.array(ids, np.int64), starts, lengths, states)
    require_whole(wrong, rows, "encoded row")
    columns = []
    for w, field in enumerate(schema):
        found = ColumnCells(data=rows.data, starts=starts[w], lengths=lengths[w], states=states[w])
        columns.append((_array(found, field), found.states == 0))
    return columns


def _is_plain_bytes(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_binary(kind))


def _is_fixed(kind: pa.DataType) -> bool:
    is_ = pa.types
    wide = is_.is_signed_integer(kind) and not is_.is_int8(kind)
    return bool(wide or is_.is_float32(kind) or is_.is_float64(kind) or _is_instant(kind))


def _is_instant(kind: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(kind) and kind.unit == "us" and kind.tz is not None)


def _is_timestamp(kind: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(kind) and kind.unit == "us" and kind.tz is None)


def _datums(field: pa.Field, array: pa.Array) -> Datums:
    kind, valid = array.type, valid_of(array)
    if _is_plain_bytes(kind):
        return _prefixed(bytes_of(array, valid))
    if _is_fixed(kind):
        return fixed_of(array, kind.bit_width // 8, valid)
    if pa.types.is_boolean(kind):
        return fixed_of(array.cast(pa.uint8()), 1, valid)
    if pa.types.is_date32(kind):
        days = _numbers(array, np.int32).astype(np.int64) + DAYS_BEFORE_1970
        return _table(np.where(valid, days, 0).astype(np.int32), 4, valid)
    if _is_timestamp(kind):
        return _table(_seconds_and_nanos(_numbers(array, np.int64)), 12, valid)
    if pa.types.is_decimal128(kind):
        return _decimals(array, valid, field.name)
    return _one_by_one(field, array, valid)


def _numbers(array: pa.Array, dtype: Any) -> NDArray[Any]:
    return np.frombuffer(array.buffers()[1] or b"", dtype)[array.offset : array.offset + len(array)]


def _table(values: NDArray[Any], width: int, valid: NDArray[np.bool_]) -> Datums:
    data = np.ascontiguousarray(values).view(np.uint8).ravel()
    return Datums(data=data, starts=np.arange(len(valid)) * width, lengths=np.where(valid, width, 0), valid=valid)


def _seconds_and_nanos(micros: NDArray[np.int64]) -> NDArray[Any]:
    made = np.empty(len(micros), np.dtype([("seconds", "<i8"), ("nanos", "<u4")]))
    made["seconds"], made["nanos"] = micros // _SECOND_US, micros % _SECOND_US * 1000
    return made


def _decimals(array: pa.Array, valid: NDArray[np.bool_], where: str) -> Datums:
    """Flags (scale, sign), then the 96 bits of the unscaled number without its sign."""
    scale = array.type.scale
    words = np.frombuffer(array.buffers()[1] or b"", np.uint64)[2 * array.offset : 2 * (array.offset + len(array))]
    low, high = words[0::2], words[1::2]
    negative = high >> 63 == 1
    high = np.where(negative, ~high + (low == 0), high)
    low = np.where(negative, ~low + np.uint64(1), low)
    wide = valid & (high >> 32 != 0)
    if not 0 <= scale <= MAX_DECIMAL_SCALE or wide.any():
        found = array.type if not wide.any() else array[int(np.flatnonzero(wide)[0])].as_py()
        raise ValueUnrepresentable("a decimal takes more than 96 bits or 28 places", where=where, found=found)
    made = np.empty(len(array), np.dtype([("flags", "<u4"), ("low", "<u8"), ("high", "<u4")]))
    made["flags"], made["low"], made["high"] = negative.astype(np.int64) << 31 | scale << 16, low, high
    return _table(made, 16, valid)


def _prefixed(values: Datums) -> Datums:
    lengths = np.where(values.valid, values.lengths + 4, 0)
    bounds = np.concatenate(([0], np.cumsum(lengths)))
    out = np.empty(bounds[-1], np.uint8)
    with_prefix(values.data, values.starts, values.lengths, values.valid, out, bounds)
    return Datums(data=out, starts=bounds[:-1], lengths=lengths, valid=values.valid)


def _one_by_one(field: pa.Field, array: pa.Array, valid: NDArray[np.bool_]) -> Datums:
    """Values that are written one after the other; checks what no check of a type can know."""
    values = [b"" if value is None else write_value(field.type, value, field.name) for value in array.to_pylist()]
    lengths = np.array([len(value) for value in values], np.int64)
    if (lengths[valid] == 0).any():
        raise ValueUnrepresentable("a value of no bytes would be read back as NULL", where=field.name, found=field.type)
    starts = np.concatenate(([0], np.cumsum(lengths)))[:-1]
    return Datums(data=np.frombuffer(b"".join(values), np.uint8), starts=starts, lengths=lengths, valid=valid)


def _array(found: ColumnCells, field: pa.Field) -> pa.Array:
    kind, where, valid = field.type, field.name, found.valid
    if _is_plain_bytes(kind):
        return bytes_array(_without_prefix(found, where), kind, where)
    if _is_fixed(kind):
        width = kind.bit_width // 8
        return fixed_array(integers(found, where, (width,)).astype(f"i{width}"), valid, kind)
    if pa.types.is_boolean(kind):
        return boolean_array(found, where)
    if pa.types.is_date32(kind):
        return fixed_array((integers(found, where, (4,)) - DAYS_BEFORE_1970).astype(np.int32), valid, kind)
    if _is_timestamp(kind):
        return _timestamps(found, kind, where)
    if pa.types.is_decimal128(kind):
        return _decimal_array(found, kind, where)
    return _array_one_by_one(found, field)


def _without_prefix(found: ColumnCells, where: str) -> ColumnCells:
    valid = found.valid
    require(bool((found.lengths[valid] >= 4).all()), where)
    stated = np.empty(len(valid), np.int64)
    signed_values(found.data, found.starts, np.where(valid, 4, 0), stated)
    require(bool((stated == np.where(valid, found.lengths - 4, 0)).all()), where)
    return ColumnCells(data=found.data, starts=found.starts + 4, lengths=found.lengths - 4, states=found.states)


def _records(found: ColumnCells, form: np.dtype[Any], where: str) -> NDArray[Any]:
    """Values of a fixed form, zero where there is none."""
    valid, width = found.valid, form.itemsize
    require(bool((found.lengths[valid] == width).all()), where)
    packed = np.empty(width * int(valid.sum()), np.uint8)
    gather(found.data, found.starts[valid], found.lengths[valid], packed)
    data = np.zeros((len(valid), width), np.uint8)
    data[valid] = packed.reshape(-1, width)
    return data.ravel().view(form)


def _decimal_array(found: ColumnCells, kind: pa.DataType, where: str) -> pa.Array:
    form = np.dtype(
        [("special", "u1"), ("unused", "u1"), ("scale", "u1"), ("sign", "u1"), ("low", "<u8"), ("high", "<u4")]
    )
    parts = _records(found, form, where)
    if parts["special"].any():
        raise ValueUnrepresentable("a decimal is NaN or infinite", where=where, expected=kind)
    require(not parts["unused"].any() and bool(np.isin(parts["sign"], (0, 0x80)).all()), where)
    negative, low, high = parts["sign"] != 0, parts["low"], parts["high"].astype(np.uint64)
    wide = np.empty((len(parts), 2), np.uint64)
    wide[:, 0] = np.where(negative, ~low + np.uint64(1), low)
    wide[:, 1] = np.where(negative, ~high + (low == 0), high)
    return decimal_array(wide, np.where(found.valid, parts["scale"].astype(np.int64), -1), kind, where)


def _timestamps(found: ColumnCells, kind: pa.DataType, where: str) -> pa.Array:
    valid = found.valid
    parts = _records(found, np.dtype([("seconds", "<i8"), ("nanos", "<u4")]), where)
    seconds, nanos = parts["seconds"], parts["nanos"].astype(np.int64)
    require(bool((nanos < 10**9).all()), where)
    if (nanos % 1000).any() or (np.abs(seconds) > 2**63 // _SECOND_US - 1).any():
        raise ValueUnrepresentable("a timestamp does not fit microseconds", where=where, expected=kind)
    return fixed_array(seconds * _SECOND_US + nanos // 1000, valid, kind)


def _array_one_by_one(found: ColumnCells, field: pa.Field) -> pa.Array:
    data = found.data.tobytes()
    values: list[Any] = []
    for start, length, valid in zip(found.starts.tolist(), found.lengths.tolist(), found.valid.tolist(), strict=True):
        if not valid:
            values.append(None)
            continue
        value, end = read_value(field.type, data[start : start + length], 0, field.name)
        require(end == length, field.name)
        values.append(value)
    try:
        return pa.array(values, field.type)
    except pa.ArrowInvalid as error:
        raise ValueUnrepresentable(
            "an encoded value does not fit the column", where=field.name, expected=field.type, found=str(error)
        ) from error
