"""A statement that a person gives for one that was not understood: what it does to its table alone."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from historian.ddl import Resolution, StatementContext, resolve
from historian.errors import ConfigError, UnknownTable
from historian.history.versions import touched_names
from historian.names import TableName
from historian.schema.edits import Edit, RenameTable
from historian.schema.snapshots import Catalog, Snapshot

__all__ = ["catalog_with", "edits_of", "is_stopped_by", "resolved_edits"]


def catalog_with(
    latest: Catalog, table_id: int, own: Snapshot | None, name: TableName, names: Collection[TableName]
) -> Catalog:
    """*latest* with a stopped table as it is at some place; what other tables are decides nothing.

    Args:
        table_id: of the table, 0: it was never known; *own*: what it is there, None: edits are to bring it.
        name: its name, where *own* does not tell it.
        names: all that it had, under which *latest* may know that it is not known.

    Raises:
        UnknownTable: another table has its name by now.
    """
    tables = {each: s for each, s in latest.tables.items() if s.table_id != table_id}
    wanted = name if own is None else own.name
    if wanted in tables:
        raise UnknownTable(
            "another table has the stopped one's name by now",
            where=str(wanted),
            expected=f"table id {table_id or 'none'}",
            found=f"table id {tables[wanted].table_id}, which got the name behind the stop",
            next_step="historian heal: that table goes on; where the stopped one was renamed, give its new name",
        )
    if own is not None:
        tables[wanted] = own
    highest = max((column.id for column in (own.columns if own else ())), default=0)
    unknown = {each: why for each, why in latest.unknown.items() if each not in names}
    return replace(latest, tables=tables, unknown=unknown, next_column_id=max(latest.next_column_id, highest + 1))


def resolved_edits(sql: str, context: StatementContext, catalog: Catalog, name: TableName) -> tuple[Edit, ...]:
    """The edits of the user's statement; "" has none.

    Raises:
        ConfigError: it is not understood, or not on the table *name* alone.
    """
    if not sql.strip():
        return ()
    resolution = resolve(sql, context, catalog)
    # That there was no NULL is for a person to say.
    if resolution.kind != "ddl" and not resolution.filled:
        reason = resolution.reason or "it changes no table"
        raise ConfigError("the given statement cannot replace the one in the log", problems=(reason,), where=sql[:200])
    edits = edits_of(resolution.edits, name)
    if len(edits) != len(resolution.edits):
        others = {str(n) for edit in resolution.edits for n in touched_names(edit)} - {str(name)}
        raise ConfigError(
            "the given statement changes other tables",
            problems=(f"it is on {', '.join(sorted(others))}",),
            where=sql[:200],
        )
    return edits


def edits_of(edits: tuple[Edit, ...], name: TableName) -> tuple[Edit, ...]:
    """Those of one table, which may be renamed among them."""
    kept: list[Edit] = []
    for edit in edits:
        if name in touched_names(edit)[:1]:
            kept.append(edit)
            name = touched_names(edit)[-1]
    return tuple(kept)


def is_stopped_by(resolution: Resolution, name: TableName) -> bool:
    """Whether a table of that name cannot go on behind a statement: its rows, or what it is, are not known. One that is renamed there goes on."""
    if resolution.kind != "not_understood":
        return resolution.kind in ("dml", "rows") and name in resolution.tables
    is_renamed = any(isinstance(edit, RenameTable) for edit in edits_of(resolution.edits, name))
    return name in resolution.unknown_behind and not is_renamed
