"""Who wrote a statement: a tool for online schema changes is known by what it calls its tables, and by what it writes beside them."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable

from historian.history.online_schema_changes import TOOLS, Tool
from historian.names import TableName

__all__ = ["Authors"]

_HINT = re.compile(
    r"_(?:gho|ghc|ghk|del|new|old|chkpnt|sentinel|checkpoint|vrepl)\b|_vt_|_old_\d{8}|/\* gh-ost", re.IGNORECASE
)
"""What a tool's statement has somewhere; most statements are not looked at any closer."""
_NAME = re.compile(r"`((?:[^`]|``)+)`|\b(_\w+)")
_READ_CHARACTERS = 4_000
_MARKING = tuple(tool for tool in TOOLS if tool.marks)


class Authors:
    """Tells tools by their statements.

    Args:
        known: all names of the history; a tool's further tables tell it from another one with the same names.
    """

    def __init__(self, known: Iterable[TableName] = ()) -> None:
        self._marks: dict[tuple[str, str], list[tuple[str, str]]] = defaultdict(list)
        for name in known:
            for tool in _MARKING if "_" in name.table else ():
                if re.fullmatch(tool.marks, name.table):
                    self._marks[tool.name, name.database].append((_base(tool, name.table), name.table))

    def __call__(self, statement: str, database: str) -> str:
        """The tool that wrote *statement* on a table of *database*, two joined by "or" where it may be either; "": nothing tells of one."""
        if not _HINT.search(statement):
            return ""
        signed = next((tool.name for tool in TOOLS if tool.signs and tool.signs in statement), "")
        if signed:
            return signed
        names = {quoted.replace("``", "`") or plain for quoted, plain in _NAME.findall(statement[:_READ_CHARACTERS])}
        fitting = [tool for tool in TOOLS if any(_is_own(tool, name) for name in names)]
        if len(fitting) > 1:
            bases = {base for tool in fitting for name in names if (base := _base(tool, name))}
            fitting = [tool for tool in fitting if self._has_marks(tool, database, bases)] or fitting
        return " or ".join(tool.name for tool in fitting)

    def _has_marks(self, tool: Tool, database: str, bases: Collection[str]) -> bool:
        """Whether the history knows a table, or a trigger, that the tool makes for one of *bases*."""
        for base, name in self._marks.get((tool.name, database), ()):
            # A trigger has the names of database and table in its own.
            if base in bases if base else any(f"_{each}_" in name for each in bases):
                return True
        return False


def _is_own(tool: Tool, name: str) -> bool:
    return any(pattern and re.fullmatch(pattern, name) for pattern in (tool.shadow, tool.aside, tool.others))


def _base(tool: Tool, name: str) -> str:
    """The table that *tool* changes with a table of that *name*; "": the name does not say it."""
    for pattern in (tool.shadow, tool.aside, tool.others):
        found = re.fullmatch(pattern, name) if pattern else None
        if found is not None:
            return found.groupdict().get("base") or ""
    return ""
