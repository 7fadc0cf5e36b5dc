"""What is left of a timeline when all versions that went out of force before a position are forgotten."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from historian.history.index import VersionIndex
from historian.history.timeline import Horizon, TimelineEntry
from historian.names import TableName
from historian.positions import LogPosition
from historian.schema.edits import CreateTable, DropDatabase, Edit, ForgetTable, SetDatabase

__all__ = ["left_of"]


def left_of(
    index: VersionIndex, number: int, position: LogPosition, gone: frozenset[TableName]
) -> tuple[Horizon, tuple[TimelineEntry, ...]]:
    """The horizon at *position*, and what is left of the entries up to *number*, the last one at or before it.

    Of an entry that made a version which is in force there, a CREATE of it is left, under the entry's own number, place
    and statement.

    Args:
        gone: names that were gone at an earlier horizon.
    """
    catalog = index.catalog_at(number)
    known = {name for name in index.tables() if any(bound.number <= number for bound in index.name(name).bounds)}
    horizon = Horizon(
        number=number,
        position=position,
        gone=tuple(sorted((known | gone) - catalog.tables.keys() - catalog.unknown.keys())),
        next_table_id=catalog.next_table_id,
        next_column_id=catalog.next_column_id,
    )
    kept: dict[int, list[Edit]] = {}
    for made, edit in _in_force(index, number):
        kept.setdefault(made, []).append(edit)
    entries = (replace(index.entry(made), edits=tuple(edits)) for made, edits in sorted(kept.items()))
    return horizon, tuple(entries)


def _in_force(index: VersionIndex, number: int) -> Iterator[tuple[int, Edit]]:
    """What is in force after the entry *number*, as an edit, with the number of the entry that made it so."""
    databases: dict[str, tuple[int, SetDatabase]] = {}
    for made, edit in index.database_edits():
        if made > number:
            break
        if isinstance(edit, DropDatabase):
            databases.pop(edit.name, None)
        else:
            databases[edit.database.name] = (made, edit)
    yield from databases.values()
    catalog = index.catalog_at(number)
    for name in (*catalog.tables, *catalog.unknown):
        made = max(bound.number for bound in index.name(name).bounds if bound.number <= number)
        if name in catalog.tables:
            yield made, CreateTable(snapshot=catalog.tables[name])
        else:
            yield made, ForgetTable(table=name, reason=catalog.unknown[name])
