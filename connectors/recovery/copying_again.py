"""Which tables can be copied again, or have a copy that can be ended, and what to do about those that cannot."""

from __future__ import annotations

from typing import TYPE_CHECKING

from connectors.tracking.scope import is_noted
from historian.errors import ConfigError, SourceError, UnknownTable

if TYPE_CHECKING:
    from collections.abc import Callable

    from historian.names import TableName
    from historian.store import Store

__all__ = ["repeatable", "table_id_of"]


def table_id_of(store: Store, captured: Callable[[TableName], bool], name: TableName) -> int:
    """The id of a captured table.

    Raises:
        ConfigError: the configuration does not take it in.
        UnknownTable: the connector has met no such table.
    """
    if not captured(name):
        raise ConfigError(
            "the table is not captured, so no target has its rows",
            problems=(f"expected a pattern that matches {name} @ $.source.tables; with one, the next run copies it",),
        )
    snapshot = store.history().catalog.tables.get(name)
    if snapshot is None:
        raise UnknownTable(
            "the connector knows no such table",
            where=str(name),
            next_step="check the name; a table that is new at the source comes with `historian run --once`",
        )
    return snapshot.table_id


def repeatable(store: Store, captured: Callable[[TableName], bool], name: TableName) -> int:
    """The id of a table whose targets can be compared with all rows of the source.

    Raises:
        SourceError: the connector has not run yet, the table's copy is under way, or it has stopped and its schema is not known since.
        ConfigError, UnknownTable: as :func:`table_id_of`.
    """
    table_id = table_id_of(store, captured, name)
    last = store.last_plan()
    if last is None:
        raise SourceError("the connector has not run yet", where=str(name), next_step="`historian run` starts it")
    if not is_noted(captured, last):
        raise SourceError(
            "the connector has not run yet with these tables",
            where=str(name),
            next_step="`historian run --once` takes in those that are new, or are there again",
        )
    stop = store.quarantines().get(table_id)
    if stop is not None and not stop.repairable:
        raise SourceError(
            "the table has stopped, and its schema since then may be another one",
            where=str(name),
            found=stop.reason.splitlines()[0],
            next_step=f"`historian heal CONFIG --table {name} --repair` captures it again and copies it",
        )
    progress = store.copies().get(table_id)
    if stop is None and progress is not None and not progress.is_done:
        raise SourceError(
            "the table's copy is under way",
            where=str(name),
            found=f"{progress.rows} rows copied",
            next_step=f"`historian run` goes on with it; `historian backfill CONFIG --cancel --table {name}` ends it first",
        )
    return table_id
