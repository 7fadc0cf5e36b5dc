"""Who wrote a statement: a tool for online schema changes is known by what it calls its tables, and by what it writes beside them."""

from __future__ import annotations

import re
from collections.abc import Collection

from historian.history.online_schema_changes import TOOLS, Tool
from historian.names import TableName

__all__ = ["author"]

_HINT = re.compile(
    r"_(?:gho|ghc|ghk|del|new|old|chkpnt|sentinel|checkpoint|vrepl)\b|_vt_|_old_\d{8}|/\* gh-ost", re.IGNORECASE
)
"""What a tool's statement has somewhere; most statements are not looked at any closer."""
_NAME = re.compile(r"`((?:[^`]|``)+)`|\b(_\w+)")
_READ_CHARACTERS = 4_000


def author(statement: str, database: str, known: Collection[TableName]) -> str:
    """The tool that wrote *statement*, two joined by "or" where it may be either; "": nothing tells of a tool.

    Args:
        database: the statement's default one.
        known: all names of the history; a tool's further tables tell it from another one with the same names.
    """
    if not _HINT.search(statement):
        return ""
    signed = next((tool.name for tool in TOOLS if tool.signs and tool.signs in statement), "")
    if signed:
        return signed
    names = {quoted.replace("``", "`") or plain for quoted, plain in _NAME.findall(statement[:_READ_CHARACTERS])}
    fitting = [tool for tool in TOOLS if any(_is_own(tool, name) for name in names)]
    if len(fitting) > 1:
        bases = {base for tool in fitting for name in names if (base := _base(tool, name))}
        marked = [tool for tool in fitting if tool.marks and _has_marks(tool, database, bases, known)]
        fitting = marked or fitting
    return " or ".join(tool.name for tool in fitting)


def _is_own(tool: Tool, name: str) -> bool:
    return any(pattern and re.fullmatch(pattern, name) for pattern in (tool.shadow, tool.aside, tool.others))


def _base(tool: Tool, name: str) -> str:
    """The table that *tool* changes with a table of that *name*; "": the name does not say it."""
    for pattern in (tool.shadow, tool.aside, tool.others):
        found = re.fullmatch(pattern, name) if pattern else None
        if found is not None:
            return found.groupdict().get("base") or ""
    return ""


def _has_marks(tool: Tool, database: str, bases: Collection[str], known: Collection[TableName]) -> bool:
    """Whether the history knows a table, or a trigger, that the tool makes for one of *bases*."""
    mine = (name.table for name in known if name.database == database and "_" in name.table)
    found = [name for name in mine if re.fullmatch(tool.marks, name)]
    return any(not (base := _base(tool, name)) or base in bases for name in found)
