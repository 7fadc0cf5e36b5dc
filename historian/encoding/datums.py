"""Values as bytes: Arrow arrays in the second form's value encoding (docs/reference/row-encoding.md)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from historian.encoding.fields import field_id
from historian.encoding.kernels import containers as kernels
from historian.encoding.kernels.memory import scatter, trim_wide
from historian.errors import HistorianError, ValueUnrepresentable

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Datums", "Kind", "bytes_of", "cells", "datums_of", "fixed_of", "join", "kind_of", "valid_of"]

_MAX_CELLS_BYTES = 2**31 - 1


class Kind(IntEnum):
    """What a value's bytes are; stored with each value, so that bytes of one kind are never read as another."""

    CONTAINER = 0
    INTEGER = 1
    FLOAT = 2
    DECIMAL = 3
    BOOLEAN = 4
    TEXT = 5
    BYTES = 6
    DATE = 7
    TIMESTAMP = 8
    INSTANT = 9


@dataclass(frozen=True, slots=True, kw_only=True)
class Datums:
    """Values of one column: value k is ``lengths[k]`` bytes of ``data`` from ``starts[k]``; 0 bytes where not valid."""

    data: NDArray[np.uint8]
    starts: NDArray[np.int64]
    lengths: NDArray[np.int64]
    valid: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.starts)


def kind_of(type_: pa.DataType) -> Kind:
    """How values of an Arrow type are stored. Raises :class:`ValueUnrepresentable` for a type that has no form."""
    is_ = pa.types
    if is_.is_signed_integer(type_):
        return Kind.INTEGER
    if is_.is_float32(type_) or is_.is_float64(type_):
        return Kind.FLOAT
    if is_.is_decimal128(type_) and type_.scale >= 0:
        return Kind.DECIMAL
    if is_.is_boolean(type_):
        return Kind.BOOLEAN
    if is_.is_string(type_):
        return Kind.TEXT
    if is_.is_binary(type_):
        return Kind.BYTES
    if is_.is_date32(type_):
        return Kind.DATE
    if is_.is_timestamp(type_) and type_.unit == "us":
        return Kind.TIMESTAMP if type_.tz is None else Kind.INSTANT
    if is_.is_struct(type_) or is_.is_list(type_) or is_.is_map(type_):
        return Kind.CONTAINER
    raise ValueUnrepresentable("rows with values of this type cannot be encoded", found=type_)


def valid_of(array: pa.Array) -> NDArray[np.bool_]:
    """Which values are not NULL."""
    if array.null_count == 0:
        return np.ones(len(array), np.bool_)
    valid: NDArray[np.bool_] = array.is_valid().to_numpy(zero_copy_only=False)
    return valid


def _raw(buffer: pa.Buffer | None) -> NDArray[np.uint8]:
    """A buffer's bytes, not to be written to whoever made it: kernels are compiled for arrays of one kind."""
    data = np.frombuffer(buffer or b"", np.uint8)
    data.flags.writeable = False
    return data


def fixed_of(array: pa.Array, width: int, valid: NDArray[np.bool_]) -> Datums:
    """The values of an array of fixed width as Arrow holds them, little-endian."""
    count, begin = len(array), array.offset * width
    data = _raw(array.buffers()[1])[begin : begin + count * width]
    return Datums(data=data, starts=np.arange(count) * width, lengths=np.where(valid, width, 0), valid=valid)


def bytes_of(array: pa.Array, valid: NDArray[np.bool_]) -> Datums:
    """The values of a string or binary array, without a copy."""
    _, offsets, data = array.buffers()
    # The map below must not see an empty buffer's missing offsets.
    ends = np.frombuffer(offsets or b"\0\0\0\0", np.int32)[array.offset : array.offset + len(array) + 1].astype(
        np.int64
    )
    lengths = np.where(valid, np.diff(ends), 0)
    return Datums(data=_raw(data), starts=ends[:-1], lengths=lengths, valid=valid)


def datums_of(array: pa.Array) -> Datums:
    """The values of *array*. Raises :class:`ValueUnrepresentable` for a type that has no form."""
    kind, valid, type_ = kind_of(array.type), valid_of(array), array.type
    if kind in (Kind.TEXT, Kind.BYTES):
        return bytes_of(array, valid)
    if kind is Kind.DECIMAL:
        return _decimals(array, valid)
    if kind is Kind.BOOLEAN:
        return fixed_of(array.cast(pa.uint8()), 1, valid)
    if kind is not Kind.CONTAINER:
        return fixed_of(array, type_.bit_width // 8, valid)
    if pa.types.is_struct(type_):
        return _structs(array, valid)
    return _lists(array, valid)


def _decimals(array: pa.Array, valid: NDArray[np.bool_]) -> Datums:
    """The scale, then the unscaled value in as few bytes as its sign leaves."""
    count = len(array)
    wide = _raw(array.buffers()[1])[16 * array.offset : 16 * (array.offset + count)]
    data, lengths = np.empty(17 * count, np.uint8), np.empty(count, np.int64)
    trim_wide(wide, valid, array.type.scale, data, lengths)
    return Datums(data=data, starts=np.arange(count) * 17, lengths=lengths, valid=valid)


def _structs(array: pa.Array, valid: NDArray[np.bool_]) -> Datums:
    ids = [field_id(field) for field in array.type]
    columns = [datums_of(array.field(i)) for i in range(array.type.num_fields)]
    kinds = [kind_of(field.type) for field in array.type]
    return _only(join(columns, kinds, ids, count=len(array)), valid)


def _lists(array: pa.Array, valid: NDArray[np.bool_]) -> Datums:
    offsets = array.offsets.to_numpy().astype(np.int64)
    # A NULL list may still span elements, which nobody asked for.
    counts = np.where(valid, np.diff(offsets), 0)
    first = np.concatenate(([0], np.cumsum(counts)))
    taken = np.repeat(offsets[:-1] - first[:-1], counts) + np.arange(first[-1])
    if not pa.types.is_map(array.type):
        return _only(_elements(array.values.take(pa.array(taken)), first), valid)
    parts = [_elements(part.take(pa.array(taken)), first) for part in (array.keys, array.items)]
    return _only(join(parts, [Kind.CONTAINER] * 2, None, count=len(array)), valid)


def _elements(flat: pa.Array, first: NDArray[np.int64]) -> Datums:
    """The elements of each list as a positional container."""
    elements = datums_of(flat)
    bounds, places = np.empty(len(first), np.int64), np.empty(len(elements), np.int64)
    out = np.zeros(kernels.size_of_lists(first, elements.lengths, bounds), np.uint8)
    kernels.put_list_heads(first, elements.lengths, elements.valid, int(kind_of(flat.type)), bounds, out, places)
    scatter(out, places, elements.data, elements.starts, elements.lengths)
    return _whole(out, bounds)


def join(
    columns: Sequence[Datums], kinds: Sequence[Kind], ids: Sequence[int] | None, *, count: int, checksum: bool = False
) -> Datums:
    """Containers of one value of each column; the columns are sorted by id first.

    Args:
        columns: as many values each as there are containers.
        kinds: of the columns.
        ids: of the columns; None: they are known by their place.
        count: of containers.
        checksum: whether each ends with one.

    Raises:
        HistorianError: two columns have one id, or an id takes no four bytes.
    """
    if ids is not None:
        _check_ids(ids)
    order = range(len(columns)) if ids is None else sorted(range(len(columns)), key=lambda i: ids[i])
    ordered, width = [columns[i] for i in order], len(columns)
    flags = (kernels.POSITIONAL if ids is None else 0) | (kernels.CHECKSUM if checksum else 0)
    code, names = _names(width, None if ids is None else [ids[i] for i in order])
    packed = _packed([kinds[i] for i in order])
    head = 1 + len(names) + (width + 7) // 8 + len(packed)
    totals, bounds, cursors = np.zeros(count, np.int64), np.empty(count + 1, np.int64), np.empty(count, np.int64)
    for column in ordered:
        totals += column.lengths
    out = np.zeros(kernels.size_of_rows(width, head, flags, totals, bounds), np.uint8)
    kernels.put_row_heads(width, kernels.MAGIC | flags | code << 2, names, packed, totals, bounds, out, cursors)
    for j, c in enumerate(ordered):
        kernels.put_column(j, width, head, totals, bounds, cursors, c.data, c.starts, c.lengths, c.valid, out)
    if checksum:
        kernels.put_checksums(bounds, out)
    return _whole(out, bounds)


def _names(count: int, ids: Sequence[int] | None) -> tuple[int, NDArray[np.uint8]]:
    """The number of columns and their ids as bytes, and the code of their width."""
    numbers = [count, *(ids or ())]
    code = 1 if max(numbers) < 1 << 8 else 2 if max(numbers) < 1 << 16 else 3
    return code, np.array(numbers, ("", "<u1", "<u2", "<u4")[code]).view(np.uint8)


def _packed(kinds: Sequence[Kind]) -> NDArray[np.uint8]:
    """Two kinds a byte, the first in the low half."""
    pairs = np.array([*kinds, *[0] * (len(kinds) % 2)], np.uint8).reshape(-1, 2)
    return (pairs[:, 0] | pairs[:, 1] << 4).astype(np.uint8)


def _check_ids(ids: Sequence[int]) -> None:
    if len(set(ids)) != len(ids) or any(not 0 <= number < 1 << 32 for number in ids):
        raise HistorianError("columns cannot be told apart", expected="different ids below 2**32", found=list(ids))


def _whole(out: NDArray[np.uint8], bounds: NDArray[np.int64]) -> Datums:
    return Datums(data=out, starts=bounds[:-1], lengths=np.diff(bounds), valid=np.ones(len(bounds) - 1, np.bool_))


def _only(datums: Datums, valid: NDArray[np.bool_]) -> Datums:
    return replace(datums, lengths=np.where(valid, datums.lengths, 0), valid=valid)


def cells(datums: Datums) -> pa.Array:
    """*datums*, which lie one behind the other, as binary values.

    Raises:
        HistorianError: they take more than 2 GiB, which one Arrow array cannot hold.
    """
    if len(datums.data) > _MAX_CELLS_BYTES:
        raise HistorianError(
            "encoded rows take more than an Arrow array holds",
            expected=f"at most {_MAX_CELLS_BYTES} bytes",
            found=len(datums.data),
            next_step="encode fewer rows at a time",
        )
    offsets: Any = np.append(datums.starts, len(datums.data)).astype(np.int32)
    return pa.Array.from_buffers(pa.binary(), len(datums), [None, pa.py_buffer(offsets), pa.py_buffer(datums.data)])
