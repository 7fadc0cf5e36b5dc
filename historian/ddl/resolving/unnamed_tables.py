"""Tables whose rows a logged statement may change without naming them: through views, triggers and stored functions.

Servers log a statement of a session with ``binlog_format=STATEMENT`` or MIXED as it was written. A function that changes rows they log
as ``SELECT`` of its call. What ran inside is not in the log (tried on MySQL 5.7 to 9.7, MariaDB 10.5 to 11.8). The catalog
keeps which functions a database ever had, and whether it ever had a trigger: what was dropped since is held to be there.
"""

from __future__ import annotations

from collections.abc import Collection

from historian.ddl.parsing.context import StatementContext
from historian.ddl.parsing.lexer import Tokens
from historian.ddl.resolving.resolution import tracked
from historian.names import TableName
from historian.schema.snapshots import FUNCTION, VIEW, Catalog

__all__ = ["changes_unnamed", "function_name", "triggers_name"]

_OF_SEQUENCES = frozenset(("NEXTVAL", "SETVAL", "LASTVAL", "NEXT", "PREVIOUS"))


def function_name(function: TableName) -> TableName:
    """The name under which the catalog keeps a stored function, or a package.

    >>> str(function_name(TableName("shop", "Total")))
    'shop.total()'
    """
    return TableName(function.database, f"{function.table.lower()}()")


def triggers_name(database: str) -> TableName:
    """The name under which the catalog keeps that a database has triggers, each on a table of its own database."""
    return TableName(database, "trigger()")


def changes_unnamed(
    tokens: Tokens, touched: Collection[TableName], catalog: Catalog, context: StatementContext
) -> bool:
    """Whether a logged statement that changes rows may change those of other tables than it names as its targets, *touched*."""
    if not touched:
        return _OF_SEQUENCES.isdisjoint(tokens.keys)
    if any(triggers_name(table.database) in catalog.unknown for table in touched):
        return True
    names = {reason: set[str]() for reason in (FUNCTION, VIEW)}
    for name, reason in catalog.unknown.items():
        if reason in names:
            names[reason].add(name.table.lower())
    # What stands in no catalog may be a view from before the log, or a name that WITH gives.
    if not context.uses_temporary and tokens.keys[0] != "WITH":
        known = {*catalog.tables, *catalog.unknown}
        if any(table not in known for table in tracked(tuple(touched))):
            return True
    words = [value.lower() for value in tokens.values]
    calls = {f"{word}()" for word, key in zip(words, tokens.keys[1:], strict=False) if key in ("(", ".")}
    return not (names[VIEW].isdisjoint(words) and names[FUNCTION].isdisjoint(calls))
