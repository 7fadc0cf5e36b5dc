"""Which tables' rows are wanted."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass

from historian.ddl import SYSTEM_DATABASES
from historian.globs import is_exact, matches
from historian.history.online_schema_changes import NO_TOOLS, TOOLS, OnlineChanges
from historian.names import TableName

__all__ = ["EVERY_TABLE", "TableFilter", "check_pattern"]


@dataclass(frozen=True, slots=True)
class TableFilter:
    """Patterns on ``database.table``; a table is wanted if one matches it and none that begins with ``!`` does.

    The order of the patterns does not matter. ``*`` stands for any characters and ``?`` for one; the first dot of a
    pattern divides database and table. Letter case counts. Tables of the server's own databases are never wanted, nor are
    those that tools for online schema changes make for themselves.

    >>> wanted = TableFilter(("shop.*", "!shop.audit_*"))
    >>> wanted(TableName("shop", "orders")), wanted(TableName("shop", "audit_log"))
    (True, False)
    """

    patterns: tuple[str, ...] = ("*.*",)
    online_changes: OnlineChanges = NO_TOOLS

    def __post_init__(self) -> None:
        for pattern in self.patterns:
            check_pattern(pattern)
        if all(pattern.startswith("!") for pattern in self.patterns):
            raise ValueError("no pattern takes a table in; begin with *.* or a database's tables")

    def text(self) -> str:
        """As JSON: filters of the same text take in the same tables."""
        tools = [tool.name for tool in self.online_changes.tools]
        return json.dumps({"tables": self.patterns, "online_changes": tools}, separators=(",", ":"))

    @classmethod
    def parse(cls, text: str) -> TableFilter:
        """The filter of a text that :meth:`text` gave; a tool that is not known any more owns nothing."""
        fields = json.loads(text)
        tools = tuple(tool for tool in TOOLS if tool.name in fields["online_changes"])
        return cls(tuple(fields["tables"]), OnlineChanges(tools))

    def databases(self) -> frozenset[str] | None:
        """The only databases that it takes tables of; None where patterns leave open which.

        >>> TableFilter(("shop.*", "crm.notes", "!test.*")).databases() == {"shop", "crm"}, TableFilter(("s*.*",)).databases()
        (True, None)
        """
        names = {pattern.split(".", 1)[0] for pattern in self.patterns if not pattern.startswith("!")}
        return frozenset(names) if all(map(is_exact, names)) else None

    def __call__(self, name: TableName) -> bool:
        """Whether rows of the table *name* are wanted."""
        if name.database.lower() in SYSTEM_DATABASES:
            return False
        if self.online_changes.owns(name):
            return False
        wanted = (pattern for pattern in self.patterns if not pattern.startswith("!"))
        unwanted = (pattern[1:] for pattern in self.patterns if pattern.startswith("!"))
        return _any(wanted, name) and not _any(unwanted, name)


def check_pattern(pattern: str) -> None:
    """Raises ValueError for a text that is no pattern."""
    database, dot, table = pattern.removeprefix("!").partition(".")
    if not (database and dot and table):
        raise ValueError("expected DATABASE.TABLE, like shop.* or !shop.audit_*")


EVERY_TABLE = TableFilter()
"""Takes every table but the server's own."""


def _any(patterns: Iterable[str], name: TableName) -> bool:
    return any(matches(pattern.split(".", 1), name) for pattern in patterns)
