"""Ids of columns and of fields within them, on Arrow's own types: the metadata key that Parquet and Iceberg use."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from historian.changelog.operations import physical_name
from historian.errors import HistorianError
from historian.schema.snapshots import Snapshot
from historian.values.arrow_types import arrow_type

__all__ = ["field_id", "find_id", "row_schema", "with_id"]

_KEY = b"PARQUET:field_id"


def with_id(number: int, field: pa.Field) -> pa.Field:
    """*field* with an id; a struct's fields have theirs, out of the same numbers as the table's columns."""
    return field.with_metadata({**(field.metadata or {}), _KEY: str(number).encode()})


def find_id(field: pa.Field) -> int | None:
    """The id of *field*, or None."""
    text = (field.metadata or {}).get(_KEY)
    return None if text is None else int(text)


def field_id(field: pa.Field) -> int:
    """The id of *field*. Raises :class:`HistorianError` where it has none."""
    found = find_id(field)
    if found is None:
        raise HistorianError("a field has no id", where=field.name, expected=f"{_KEY.decode()} in its metadata")
    return found


def row_schema(snapshot: Snapshot, columns: Iterable[int] | None = None) -> pa.Schema:
    """The columns of *snapshot* by :func:`~historian.changelog.operations.physical_name`, with their ids.

    Args:
        snapshot: of a table.
        columns: ids of those that are wanted, in the order wanted; None: all, in the snapshot's order.

    Raises:
        HistorianError: the snapshot has no column of such an id.
    """
    by_id = {column.id: column for column in snapshot.columns}
    fields = []
    for number in by_id if columns is None else columns:
        column = by_id.get(number)
        if column is None:
            raise HistorianError("no such column", where=str(snapshot.name), expected=list(by_id), found=number)
        fields.append(with_id(number, pa.field(physical_name(number), arrow_type(column.type))))
    return pa.schema(fields)
