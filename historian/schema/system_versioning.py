"""System-versioned tables of MariaDB: the two columns that say from when to when a row was current.

They are ordinary columns where a table declares them, ``GENERATED ALWAYS AS ROW START`` and ``ROW END``. Otherwise no statement and no
``information_schema`` shows them, and the log has them behind the table's own columns. A snapshot has declared ones alone.

Source: https://mariadb.com/docs/server/reference/sql-structure/temporal-tables/system-versioned-tables
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from historian.schema.snapshots import Column, ColumnType, Snapshot, UniqueKey

__all__ = ["ROW_END", "ROW_START", "keys_with_row_end", "row_end", "with_hidden_columns"]

ROW_START = "ROW START"
ROW_END = "ROW END"
"""What :attr:`Column.generation_expression` says of the two columns."""

_MOMENT = ColumnType(name="timestamp", fraction=6)
_HIDDEN = tuple(
    Column(
        id=number,
        name=name,
        type=_MOMENT,
        nullable=False,
        generated="stored",
        generation_expression=says,
        invisible=True,
    )
    for number, name, says in ((-1, "row_start", ROW_START), (-2, "row_end", ROW_END))
)


def row_end(columns: Iterable[Column]) -> Column | None:
    """The column that says when a row ceased to be current; None where no column does."""
    return next((column for column in columns if column.generation_expression == ROW_END), None)


def with_hidden_columns(snapshot: Snapshot) -> Snapshot:
    """The table as the log has it: with ``row_start`` and ``row_end`` where it is versioned and declares none."""
    if not snapshot.system_versioned or row_end(snapshot.columns) is not None:
        return snapshot
    columns = (*snapshot.columns, *_HIDDEN)
    primary_key, unique_keys = keys_with_row_end(columns, snapshot.primary_key, snapshot.unique_keys)
    return replace(snapshot, columns=columns, primary_key=primary_key, unique_keys=unique_keys)


def keys_with_row_end(
    columns: Iterable[Column], primary_key: tuple[int, ...], unique_keys: tuple[UniqueKey, ...]
) -> tuple[tuple[int, ...], tuple[UniqueKey, ...]]:
    """Primary and unique keys as the server makes them: a declared column of the row's end stands last in each."""
    end = row_end(columns)
    if end is None:
        return primary_key, unique_keys
    if primary_key and end.id not in primary_key:
        primary_key = (*primary_key, end.id)
    return primary_key, tuple(
        key
        if end.id in key.columns
        else replace(key, columns=(*key.columns, end.id), prefixes=(*key.prefixes, 0) if key.prefixes else ())
        for key in unique_keys
    )
