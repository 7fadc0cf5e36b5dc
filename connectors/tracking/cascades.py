"""Foreign keys that a table got under a name that is not captured: a tool's shadow, or a table before its RENAME."""

from __future__ import annotations

from collections.abc import Iterable

from historian.ddl import StatementContext, resolve
from historian.history.timeline import TimelineEntry
from historian.schema.snapshots import Catalog

__all__ = ["cascading_statement"]


def cascading_statement(entries: Iterable[TimelineEntry], context: StatementContext) -> str:
    """The text of the first of a table's *entries* that gives it a foreign key whose action the server does not log; "": none does.

    A key that was dropped again counts: who lacks it loses no row by the stop.

    Args:
        context: of a statement in the same log, for its server.
    """
    for entry in entries:
        of_entry = StatementContext(flavor=context.flavor, version=context.version, database=entry.database)
        if entry.statement and resolve(entry.statement, of_entry, Catalog()).cascades:
            return entry.statement
    return ""
