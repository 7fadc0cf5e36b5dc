"""Bytes as values: what rows of the second form hold, as Arrow arrays."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from historian.encoding.datums import Kind, kind_of
from historian.encoding.fields import field_id
from historian.encoding.kernels import containers as kernels
from historian.encoding.kernels.memory import gather, signed_values, wide_values
from historian.errors import RowCorrupt, ValueUnrepresentable

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = [
    "ColumnCells",
    "array_of",
    "boolean_array",
    "bytes_array",
    "decimal_array",
    "find",
    "fixed_array",
    "integers",
    "require",
    "require_whole",
]

_WIDEST_DECIMAL = 38
_CONTAINER = "encoded row, struct, list or map"


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnCells:
    """Values of one column as they were found in containers.

    Attributes:
        data: holds all bytes.
        starts, lengths: of each value's bytes.
        states: 0 where the column is not there, 1 where it is NULL, else 2 + the value's :class:`Kind`.
    """

    data: NDArray[np.uint8]
    starts: NDArray[np.int64]
    lengths: NDArray[np.int64]
    states: NDArray[np.int64]

    @property
    def valid(self) -> NDArray[np.bool_]:
        """Which values are there and not NULL."""
        valid: NDArray[np.bool_] = self.states >= 2
        return valid

    def take(self, chosen: NDArray[np.bool_]) -> ColumnCells:
        """Only the chosen values; the others are not there."""
        return replace(self, lengths=np.where(chosen, self.lengths, 0), states=np.where(chosen, self.states, 0))


def find(containers: ColumnCells, ids: list[int]) -> list[ColumnCells]:
    """The columns of those ids in each container. Raises :class:`RowCorrupt` where one is no valid one."""
    shape = (len(ids), len(containers.starts))
    starts, lengths, states = (np.zeros(shape, np.int64) for _ in range(3))
    wanted = np.array(ids, np.int64)
    wrong = kernels.find_columns(
        containers.data, containers.starts, containers.lengths, containers.valid, wanted, starts, lengths, states
    )
    require_whole(wrong, containers, _CONTAINER)
    return [
        ColumnCells(data=containers.data, starts=starts[w], lengths=lengths[w], states=states[w])
        for w in range(len(ids))
    ]


def array_of(found: ColumnCells, type_: pa.DataType, where: str) -> pa.Array:
    """The values as *type_*; NULL where there is none.

    Numbers are read as any type of number that holds them exactly, and everything else as what it was written as.

    Raises:
        RowCorrupt: bytes are no values of their kind.
        ValueUnrepresentable: *type_* cannot hold a value, or values of another kind were stored.
    """
    wanted = kind_of(type_)
    stored = np.flatnonzero(np.bincount(found.states, minlength=2)[2:])
    require(bool((stored < len(Kind)).all()), where)
    kinds = {Kind(code) for code in stored.tolist()}
    if kinds <= {wanted}:
        return _READ[wanted](found, type_, where)
    if wanted is Kind.DECIMAL and kinds <= {Kind.INTEGER, Kind.DECIMAL}:
        whole = found.take(found.states == 2 + Kind.INTEGER)
        numbers = _fixed(whole, pa.int64(), where).cast(pa.decimal128(_WIDEST_DECIMAL, 0))
        return pc.coalesce(_fit(numbers, type_, where), _decimals(found.take(~whole.valid), type_, where))
    raise ValueUnrepresentable(
        "encoded values are of another kind than wanted",
        where=where,
        expected=wanted.name.lower(),
        found=sorted(kind.name.lower() for kind in kinds),
        next_step="read them under the schema that they were written under",
    )


def _fit(values: pa.Array, type_: pa.DataType, where: str) -> pa.Array:
    try:
        return values.cast(type_)
    except pa.ArrowInvalid as error:
        raise ValueUnrepresentable(
            "an encoded value does not fit the column", where=where, expected=type_, found=str(error)
        ) from error


def require(right: bool, where: str) -> None:  # noqa: FBT001 a condition, like an assertion's
    """Raises :class:`RowCorrupt` where bytes are not as they have to be."""
    if not right:
        raise RowCorrupt("bytes are no encoded values of this kind", where=where)


def require_whole(wrong: int, rows: ColumnCells, what: str) -> None:
    """Raises :class:`RowCorrupt` with the first bytes of value number *wrong*, if that is not negative."""
    if wrong >= 0:
        start = rows.starts[wrong]
        begin = rows.data[start : start + min(16, rows.lengths[wrong])].tobytes()
        raise RowCorrupt(
            f"bytes are no {what}", found=f"{rows.lengths[wrong]} bytes that begin with {begin.hex(' ')!r}"
        )


def integers(found: ColumnCells, where: str, widths: tuple[int, ...] = (1, 2, 4, 8)) -> NDArray[np.int64]:
    """The values as signed numbers, 0 where there is none. Raises :class:`RowCorrupt` for others than *widths* bytes."""
    counts = np.bincount(np.minimum(found.lengths[found.valid], 16))
    require(set(np.flatnonzero(counts).tolist()) <= set(widths), where)
    numbers = np.empty(len(found.starts), np.int64)
    signed_values(found.data, found.starts, np.where(found.valid, found.lengths, 0), numbers)
    return numbers


def fixed_array(numbers: NDArray[Any], valid: NDArray[np.bool_], type_: pa.DataType) -> pa.Array:
    """Numbers in Arrow's own layout of *type_*."""
    validity = None if valid.all() else pa.array(valid).buffers()[1]
    return pa.Array.from_buffers(type_, len(valid), [validity, pa.py_buffer(np.ascontiguousarray(numbers))])


def boolean_array(found: ColumnCells, where: str) -> pa.Array:
    """Single bytes, 0 and 1, as booleans."""
    numbers = integers(found, where, (1,))
    require(bool(np.isin(numbers, (0, 1)).all()), where)
    return pa.array(numbers == 1, pa.bool_(), mask=~found.valid)


def _fixed(found: ColumnCells, type_: pa.DataType, where: str) -> pa.Array:
    numbers = integers(found, where)
    if pa.types.is_signed_integer(type_):
        return _fit(fixed_array(numbers, found.valid, pa.int64()), type_, where)
    width = type_.bit_width // 8
    require(bool((found.lengths[found.valid] == width).all()), where)
    return fixed_array(numbers.astype(f"i{width}"), found.valid, type_)


def _booleans(found: ColumnCells, _: pa.DataType, where: str) -> pa.Array:
    return boolean_array(found, where)


def _floats(found: ColumnCells, type_: pa.DataType, where: str) -> pa.Array:
    bits = integers(found, where, (4, 8))
    short = found.lengths == 4
    if pa.types.is_float32(type_) and short[found.valid].all():
        return fixed_array(bits.astype(np.int32), found.valid, type_)
    doubles = bits.view(np.float64)
    if short.any():
        doubles = np.where(short, bits.astype(np.int32).view(np.float32).astype(np.float64), doubles)
    values = fixed_array(doubles, found.valid, pa.float64())
    if pa.types.is_float64(type_):
        return values
    with np.errstate(over="ignore"):
        kept = doubles.astype(np.float32).astype(np.float64)
    lost = values.filter(pa.array(found.valid & (kept != doubles) & ~np.isnan(doubles)))
    if len(lost):
        raise ValueUnrepresentable(
            "an encoded value does not fit the column", where=where, expected=type_, found=lost[0].as_py()
        )
    return values.cast(type_)


def _decimals(found: ColumnCells, type_: pa.DataType, where: str) -> pa.Array:
    valid, lengths = found.valid, found.lengths
    require(bool(((lengths[valid] >= 2) & (lengths[valid] <= 17)).all()), where)
    wide = np.empty((len(valid), 16), np.uint8)
    wide_values(found.data, found.starts + 1, np.where(valid, lengths - 1, 0), wide)
    scales = np.full(len(valid), -1)
    scales[valid] = found.data[found.starts[valid]]
    return decimal_array(wide, scales, type_, where)


def decimal_array(wide: NDArray[Any], scales: NDArray[np.int64], type_: pa.DataType, where: str) -> pa.Array:
    """Unscaled numbers of 16 bytes, each with its own scale (-1: NULL), as *type_*.

    Raises:
        RowCorrupt: a scale that no decimal has.
        ValueUnrepresentable: the type cannot hold a value exactly.
    """
    result = pa.nulls(len(scales), type_)
    for scale in np.unique(scales[scales >= 0]):
        require(int(scale) <= _WIDEST_DECIMAL, where)
        of_scale = fixed_array(wide, scales == scale, pa.decimal128(_WIDEST_DECIMAL, int(scale)))
        result = pc.coalesce(_fit(of_scale, type_, where), result)
    return result


def bytes_array(found: ColumnCells, type_: pa.DataType, where: str) -> pa.Array:
    """The bytes themselves as texts or binaries. Raises :class:`RowCorrupt` where a text is no UTF-8."""
    lengths = np.where(found.valid, found.lengths, 0)
    ends = np.concatenate(([0], np.cumsum(lengths)))
    data = np.empty(ends[-1], np.uint8)
    gather(found.data, found.starts, lengths, data)
    validity = None if found.valid.all() else pa.array(found.valid).buffers()[1]
    buffers = [validity, pa.py_buffer(ends.astype(np.int32)), pa.py_buffer(data)]
    array = pa.Array.from_buffers(type_, len(lengths), buffers)
    if pa.types.is_string(type_):
        try:
            array.validate(full=True)
        except pa.ArrowInvalid as error:
            raise RowCorrupt("a text is no UTF-8", where=where, found=str(error)) from error
    return array


def _containers(found: ColumnCells, type_: pa.DataType, where: str) -> pa.Array:
    if pa.types.is_struct(type_):
        return _structs(found, type_, where)
    validity = None if found.valid.all() else pa.array(found.valid).buffers()[1]
    if pa.types.is_map(type_):
        first, entries = _entries(found, type_, where)
    else:
        first, elements = _elements(found)
        entries = array_of(elements, type_.value_type, f"{where}[]")
    offsets = pa.py_buffer(first.astype(np.int32))
    return pa.Array.from_buffers(type_, len(found.starts), [validity, offsets], children=[entries])


def _structs(found: ColumnCells, type_: pa.DataType, where: str) -> pa.Array:
    fields = [type_.field(i) for i in range(type_.num_fields)]
    columns = find(found, [field_id(field) for field in fields])
    arrays = [array_of(c, f.type, f"{where}.{f.name}") for c, f in zip(columns, fields, strict=True)]
    validity = None if found.valid.all() else pa.array(found.valid).buffers()[1]
    return pa.Array.from_buffers(type_, len(found.starts), [validity], children=arrays)


def _elements(found: ColumnCells) -> tuple[NDArray[np.int64], ColumnCells]:
    """Where each list's elements begin, and all elements."""
    first = np.zeros(len(found.starts) + 1, np.int64)
    wrong = kernels.count_elements(found.data, found.starts, found.lengths, found.valid, first)
    require_whole(wrong, found, _CONTAINER)
    starts, lengths, states = (np.zeros(first[-1], np.int64) for _ in range(3))
    wrong = kernels.find_elements(found.data, found.starts, found.lengths, first, starts, lengths, states)
    require_whole(wrong, found, _CONTAINER)
    return first, ColumnCells(data=found.data, starts=starts, lengths=lengths, states=states)


def _entries(found: ColumnCells, type_: pa.DataType, where: str) -> tuple[NDArray[np.int64], pa.Array]:
    """Where each map's entries begin, and all entries: a map is a list of keys and one of items."""
    first, both = _elements(found)
    require(bool((np.diff(first)[found.valid] == 2).all()), where)
    require(bool((both.states == 2 + Kind.CONTAINER).all()), where)
    (bounds, keys), (item_bounds, items) = (_elements(_part(found, both, first[:-1] + part)) for part in (0, 1))
    require(bool((bounds == item_bounds).all() and keys.valid.all()), where)
    arrays = [
        array_of(keys, type_.key_type, f"{where} keys"),
        array_of(items, type_.item_type, f"{where} items"),
    ]
    return bounds, pa.StructArray.from_arrays(arrays, fields=[type_.key_field, type_.item_field])


def _part(found: ColumnCells, both: ColumnCells, at: NDArray[np.int64]) -> ColumnCells:
    """One of the two lists of each map; not there where the map is not."""
    shape = len(found.starts)
    starts, lengths, states = (np.zeros(shape, np.int64) for _ in range(3))
    here, at = found.valid, at[found.valid]
    starts[here], lengths[here], states[here] = both.starts[at], both.lengths[at], both.states[at]
    return replace(both, starts=starts, lengths=lengths, states=states)


_READ: dict[Kind, Callable[[ColumnCells, pa.DataType, str], pa.Array]] = {
    Kind.CONTAINER: _containers,
    Kind.INTEGER: _fixed,
    Kind.FLOAT: _floats,
    Kind.DECIMAL: _decimals,
    Kind.BOOLEAN: _booleans,
    Kind.TEXT: bytes_array,
    Kind.BYTES: bytes_array,
    Kind.DATE: _fixed,
    Kind.TIMESTAMP: _fixed,
    Kind.INSTANT: _fixed,
}
