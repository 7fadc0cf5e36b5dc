"""Versions of tables, and how one timeline entry makes them from the few tables that it touches."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from historian.history.timeline import TimelineEntry
from historian.names import TableName
from historian.positions import LogPosition
from historian.schema.applying import apply
from historian.schema.edits import CreateTable, DropDatabase, Edit, ForgetTable, RenameTable, SetDatabase
from historian.schema.gaps import ResumeTable, SkipLog
from historian.schema.snapshots import Catalog, Snapshot

__all__ = ["Binding", "Step", "Version", "in_force", "step", "touched_names"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """One table's schema from a timeline entry on.

    Attributes:
        number: the entry's.
        name: the table's name from here on; of a table that went, its last one.
        snapshot: None where the table went (dropped), or where its schema is not known from here on.
        edits: those of the entry that touch this table.
        unknown: why the schema is not known; None where it is, or where the table was dropped.
    """

    number: int
    table_id: int
    name: TableName
    snapshot: Snapshot | None
    edits: tuple[Edit, ...]
    entry: TimelineEntry
    unknown: str | None = None

    @property
    def unknown_since(self) -> LogPosition | None:
        """Up to where the table was known before it went on with this version; None where nothing is missing."""
        return next((edit.unknown_since for edit in self.edits if isinstance(edit, ResumeTable)), None)


def in_force(versions: Iterable[Version]) -> list[Version]:
    """*versions* of one table, in order, without those that someone has said otherwise later: what it was from a stop on.

    Others may have come between that stop and what was said.
    """
    found: list[Version] = []
    for version in versions:
        said = next((e for e in version.edits if isinstance(e, ResumeTable) and e.unknown_since is None), None)
        while said is not None and found and found[-1].snapshot != said.snapshot:
            found.pop()
        found.append(version)
    return found


@dataclass(frozen=True, slots=True)
class Binding:
    """What a name stands for from an entry on: a version, or nothing any more, or something unknown."""

    entry: TimelineEntry
    version: Version | None
    unknown: str | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """What one entry does: ``catalog`` holds the touched tables after it, ``bindings`` the touched names."""

    versions: tuple[Version, ...]
    bindings: Mapping[TableName, Binding]
    catalog: Catalog


def touched_names(edit: Edit) -> tuple[TableName, ...]:
    """Names of tables that *edit* needs or changes."""
    if isinstance(edit, CreateTable):
        return (edit.snapshot.name,)
    if isinstance(edit, RenameTable):
        return (edit.table, edit.new)
    if isinstance(edit, ResumeTable):
        return (edit.table, edit.snapshot.name)
    return () if isinstance(edit, (SetDatabase, DropDatabase, SkipLog)) else (edit.table,)


def step(entry: TimelineEntry, before: Catalog) -> Step:
    """What *entry* makes of *before*, which needs to hold the touched tables only.

    Raises:
        EditConflict: an edit does not fit.
    """
    catalog = before
    edits: dict[int, list[Edit]] = {}
    names: dict[int, TableName] = {}
    unknown: dict[int, str] = {}
    for edit in entry.edits:
        table_id = _table_id(edit, catalog)
        catalog = apply(edit, catalog)
        if table_id is None:
            continue
        edits.setdefault(table_id, []).append(edit)
        names[table_id] = touched_names(edit)[-1]
        unknown.pop(table_id, None)
        if isinstance(edit, ForgetTable):
            unknown[table_id] = edit.reason
    present = {snapshot.table_id: snapshot for snapshot in catalog.tables.values()}
    versions = {
        table_id: Version(
            number=entry.number,
            table_id=table_id,
            name=names[table_id],
            snapshot=present.get(table_id),
            edits=tuple(of_table),
            entry=entry,
            unknown=unknown.get(table_id),
        )
        for table_id, of_table in edits.items()
    }
    return Step(tuple(versions.values()), _bindings(entry, before, catalog, versions), catalog)


def _table_id(edit: Edit, catalog: Catalog) -> int | None:
    if isinstance(edit, (CreateTable, ResumeTable)):
        return edit.snapshot.table_id
    if isinstance(edit, (SetDatabase, DropDatabase, SkipLog)):
        return None
    snapshot = catalog.tables.get(edit.table)
    return None if snapshot is None else snapshot.table_id


def _bindings(
    entry: TimelineEntry, before: Catalog, after: Catalog, versions: Mapping[int, Version]
) -> dict[TableName, Binding]:
    gone = {version.name: version for version in versions.values() if version.snapshot is None}
    bindings: dict[TableName, Binding] = {}
    for name in {name for edit in entry.edits for name in touched_names(edit)}:
        snapshot = after.tables.get(name)
        version = gone.get(name) if snapshot is None else versions[snapshot.table_id]
        # The third name of a swap stands for nothing before and after.
        if version is not None or name in before.tables or name in before.unknown or name in after.unknown:
            bindings[name] = Binding(entry, version, after.unknown.get(name))
    return bindings
