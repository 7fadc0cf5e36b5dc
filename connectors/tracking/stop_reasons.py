"""Why a walk stops a table, for people; docs/reference/stops.md lists how each reason begins."""

from __future__ import annotations

from historian.charsets.client_text import printable
from historian.ddl import Resolution
from historian.names import TableName

__all__ = [
    "cascades",
    "emptied_apart",
    "is_parted_late",
    "parted_in_moment",
    "parted_late",
    "renamed_out",
    "shown",
    "why_stopped",
]

_SHOWN_CHARACTERS = 200
_LATE = "a statement that separates its rows came later than rows behind it"


def cascades(sql: str) -> str:
    """A foreign key's action changes the table's rows, since the statement *sql*."""
    why = "a foreign key changes its rows without row events, as this server does not log cascades"
    return f"{why}\n  in: {shown(sql)}"


def emptied_apart(sql: str) -> str:
    """The statement *sql* takes rows away, and stands in another topic than they."""
    why = "a statement that takes its rows away stands apart from them"
    return f"{why}: which of them came before is not known\n  in: {shown(sql)}"


def parted_late(sql: str) -> str:
    """The statement *sql* takes rows away, or gives them to another table, and became visible later than rows behind it."""
    return f"{_LATE}: which of them came before is not known\n  in: {shown(sql)}"


def parted_in_moment(sql: str) -> str:
    """The statement *sql* takes rows away, or gives them to another table, and another partition has rows of its very moment."""
    why = "another partition has rows of the very moment of a statement that separates them"
    return f"{why}: which of them came before is not known\n  in: {shown(sql)}"


def is_parted_late(reason: str) -> bool:
    """Whether *reason* is one of :func:`parted_late`."""
    return reason.startswith(_LATE)


def renamed_out(name: TableName) -> str:
    """The table has another name, under which it is not captured."""
    return f"renamed to {name}, which is not captured"


def why_stopped(resolution: Resolution, sql: str) -> str:
    """What a statement did of which the log does not tell all."""
    why = "a statement was not understood"
    if resolution.kind == "dml":
        why = "changed by a statement, expected binlog_format=ROW in every session"
    elif resolution.kind == "rows":
        why = "its rows are not known any more, its schema is"
    reason, text = resolution.reason, shown(sql)
    return f"{why}: {reason}" if text in reason else f"{why}: {reason}\n  in: {text}"


def shown(sql: str) -> str:
    """The beginning of a statement, on one line where it can be."""
    return printable(sql if len(sql) <= _SHOWN_CHARACTERS else f"{sql[:_SHOWN_CHARACTERS]}...")
