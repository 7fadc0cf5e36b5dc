"""Rows that are told by their values in some columns: which of a table's rows a repair looks at.

Values are of types whose equality is the same everywhere, so that a server, a log and the files of a lake tell the same rows by them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from historian.changelog.operations import physical_name
from historian.changelog.row_images import Mask
from historian.plans.key_order import has_plain_order
from historian.plans.key_ranges import Key, KeyValue
from historian.schema.snapshots import INTEGER_TYPES, ColumnType
from historian.values.arrow_types import arrow_type

__all__ = ["RowValues", "has_plain_values", "held_values", "rows_with", "stored_keys"]

_NUMBERS = frozenset((*INTEGER_TYPES, "year"))
_MAY_BE_NULL = frozenset(("date", "datetime", "timestamp"))
"""Dates that the calendar does not have are NULL in targets, and not at the server."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowValues:
    """Rows of a table that have one of *values* in *columns*, or NULL in all of them. Parts of plans, so the stored form never changes.

    Attributes:
        columns: ids.
        values: of all columns, in their order, none of them NULL.
        nulls: whether rows count that have NULL in all of them.
    """

    columns: tuple[int, ...]
    values: tuple[Key, ...] = ()
    nulls: bool = False


def has_plain_values(kind: ColumnType) -> bool:
    """Whether two values of that type are equal at a server where they are equal here.

    >>> has_plain_values(ColumnType(name="int")), has_plain_values(ColumnType(name="varchar"))
    (True, False)
    """
    return has_plain_order(kind) and kind.name not in _MAY_BE_NULL and kind.name != "time"


def stored_keys(rows: pa.RecordBatch, columns: Sequence[tuple[int, ColumnType]]) -> list[Key | None]:
    """For each of *rows* its values in *columns*; None where one of them is NULL.

    Args:
        columns: id and type of each; :func:`has_plain_values` holds for the types.
    """
    lists = [rows.column(physical_name(column_id)).to_pylist() for column_id, _ in columns]
    kinds = [kind for _, kind in columns]
    return [
        None if None in values else tuple(_stored(v, kind) for v, kind in zip(values, kinds, strict=True))
        for values in zip(*lists, strict=True)
    ]


def rows_with(rows: pa.RecordBatch | pa.Table, wanted: Collection[RowValues], types: Mapping[int, ColumnType]) -> Mask:
    """Which of *rows* are told by one of *wanted*.

    Args:
        rows: in the columns of a snapshot, under their physical names.
        types: of those columns, by id.
    """
    found = np.zeros(rows.num_rows, np.bool_)
    for each in wanted:
        found |= _with(rows, each, types)
    return found


def held_values(wanted: RowValues, at: int, kind: ColumnType) -> list[Any]:
    """The values in the column at that place, each once, as Arrow has them in a column of type *kind*."""
    return list(dict.fromkeys(_held(key[at], kind) for key in wanted.values))


def _with(rows: pa.RecordBatch | pa.Table, wanted: RowValues, types: Mapping[int, ColumnType]) -> Mask:
    cells = [rows.column(physical_name(column_id)) for column_id in wanted.columns]
    found = np.ones(rows.num_rows, np.bool_)
    for at, (cell, column_id) in enumerate(zip(cells, wanted.columns, strict=True)):
        values = pa.array(held_values(wanted, at, types[column_id]), arrow_type(types[column_id]))
        found &= _flags(pc.is_in(cell, value_set=values))
    if len(cells) > 1 and found.any():
        places = np.flatnonzero(found)
        kinds = [types[column_id] for column_id in wanted.columns]
        keys = {tuple(_held(v, kind) for v, kind in zip(key, kinds, strict=True)) for key in wanted.values}
        few = zip(*(cell.take(pa.array(places)).to_pylist() for cell in cells), strict=True)
        found[places] = [values in keys for values in few]
    if wanted.nulls:
        nulls = np.ones(rows.num_rows, np.bool_)
        for cell in cells:
            nulls &= _flags(pc.is_null(cell))
        found |= nulls
    return found


def _flags(flags: pa.Array | pa.ChunkedArray) -> Mask:
    found: Mask = np.asarray(
        flags.to_numpy() if isinstance(flags, pa.ChunkedArray) else flags.to_numpy(False), np.bool_
    )
    return found


def _stored(value: Any, kind: ColumnType) -> KeyValue:
    if kind.name in _NUMBERS:
        return int(value)
    return f"{value:f}" if kind.name == "decimal" else bytes(value).hex()


def _held(value: KeyValue, kind: ColumnType) -> Any:
    if kind.name == "decimal":
        return Decimal(value)
    if kind.name not in _NUMBERS:
        return bytes.fromhex(str(value))
    return Decimal(int(value)) if pa.types.is_decimal(arrow_type(kind)) else int(value)
