"""Rows written under one schema read under another, by column id."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from historian.changelog.missing_columns import carry_missing
from historian.changelog.operations import CHUNK_COLUMNS, physical_name
from historian.errors import ValueUnrepresentable
from historian.schema.snapshots import BYTE_TYPES, GEOMETRIES, INTEGER_TYPES, TEXT_TYPES, Column, ColumnType, Snapshot
from historian.values.arrow_types import MAX_DECIMAL_DIGITS, arrow_type
from historian.values.texts import initial_scalar

__all__ = ["are_comparable", "carried", "project"]

_SYSTEM = [field.name for field in CHUNK_COLUMNS]

_NUMBERS = frozenset({*INTEGER_TYPES, "decimal", "float", "double"})
_TEXTS = frozenset({*TEXT_TYPES, "enum", "set", "json"})
_SHAPES = frozenset((*GEOMETRIES, "geometrycollection"))


def project(rows: pa.RecordBatch, written: Snapshot, target: Snapshot) -> pa.RecordBatch:
    """*rows*, written under *written*, as rows under *target*: system columns first, then the target's in its order.

    A column of both keeps its values; one that the rows lack reads what held when it was added; any other goes. Bitmaps
    of absent columns (:mod:`historian.changelog.missing_columns`) stand last.

    Args:
        rows: a chunk's rows (:data:`~historian.changelog.operations.CHUNK_COLUMNS`, then columns by physical name).
        written: the schema they were written under.
        target: the schema to read them under.

    Raises:
        ValueUnrepresentable: the target's type cannot hold a value exactly, or only the server knows it.
    """
    system = [name for name in _SYSTEM if name in rows.schema.names]
    arrays = [rows.column(name) for name in system]
    fields = [rows.schema.field(name) for name in system]
    for column in target.columns:
        arrays.append(carried(rows, written, column, where=f"{target.name}.{column.name}"))
        fields.append(pa.field(physical_name(column.id), arrow_type(column.type)))
    positions = {column.id: at for at, column in enumerate(written.columns)}
    places = [positions.get(column.id) for column in target.columns]
    for name, bitmaps in carry_missing(rows, places, len(written.columns)).items():
        arrays.append(bitmaps)
        fields.append(pa.field(name, bitmaps.type))
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))


def carried(rows: pa.RecordBatch, written: Snapshot, column: Column, *, where: str) -> pa.Array:
    """One column of :func:`project`: *column* of the target, in rows that were written under *written*.

    Raises:
        ValueUnrepresentable: as :func:`project`; *where* names the column.
    """
    held = written.column_by_id(column.id)
    if held is None:
        return pa.repeat(initial_scalar(column), rows.num_rows)
    return _carry(rows.column(physical_name(column.id)), held, column, arrow_type(column.type), where)


def _carry(values: pa.Array, held: Column, column: Column, kind: pa.DataType, where: str) -> pa.Array:
    if held.type == column.type and values.type == kind:
        return values
    if not are_comparable(held.type, column.type):
        raise ValueUnrepresentable(
            "values of one type cannot be read as another", where=where, expected=column.type, found=held.type
        )
    if values.type == kind:
        return values
    try:
        cast = _cast(values, kind)
        changed = _changed(values, cast)
    except pa.ArrowInvalid as error:
        raise _lossy(where, held, column, str(error)) from error
    if len(changed):
        raise _lossy(where, held, column, changed[0].as_py())
    return cast


def _cast(values: pa.Array, kind: pa.DataType) -> pa.Array:
    """Numbers as another type of number; Arrow refuses what does not fit, but lets floats round."""
    if pa.types.is_integer(values.type) and pa.types.is_decimal(kind):
        # Arrow asks for room for every integer of the type, not for those that are there.
        values = pc.cast(values, pa.decimal128(MAX_DECIMAL_DIGITS, 0))
    return pc.cast(values, kind)


def _changed(values: pa.Array, cast: pa.Array) -> pa.Array:
    """Values that a cast from or to floats did not keep."""
    if not (pa.types.is_floating(values.type) or pa.types.is_floating(cast.type)):
        return values.slice(0, 0)
    return values.filter(pc.not_equal(_cast(cast, values.type), values))


def are_comparable(held: ColumnType, wanted: ColumnType) -> bool:
    """Whether values of both types mean the same where their Arrow values are equal, so that :func:`project` tries to carry them."""
    if any(
        is_kind(arrow_type(held)) != is_kind(arrow_type(wanted))
        for is_kind in (pa.types.is_string, pa.types.is_boolean)
    ):
        return False
    if any(held.name in family and wanted.name in family for family in (_NUMBERS, _TEXTS, BYTE_TYPES, _SHAPES)):
        return True
    if held.name == wanted.name == "bit":
        return _bit_bytes(held) == _bit_bytes(wanted)
    if (held.name, wanted.name) == ("date", "datetime"):
        return True
    if held.shape == wanted.shape == "text":
        return (held.name, held.fraction) == (wanted.name, wanted.fraction)
    return held.name == wanted.name


def _bit_bytes(kind: ColumnType) -> int:
    length = kind.length or 1
    return 0 if length == 1 and kind.shape != "binary" else (length + 7) // 8


def _lossy(where: str, held: Column, column: Column, found: object) -> ValueUnrepresentable:
    return ValueUnrepresentable(
        f"a value of {held.type} does not fit {column.type}", where=where, expected="an exact value", found=found
    )
