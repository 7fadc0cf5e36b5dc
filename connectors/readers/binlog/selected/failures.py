"""A server's errors at a SELECT, by what can be done about them."""

from __future__ import annotations

from connectors.readers.binlog.transport.connection import ConnectionLost
from historian.errors import SourceError

__all__ = [
    "SelectInterrupted",
    "TableChanged",
    "is_interrupted",
    "is_of_a_changed_table",
    "refused",
    "refused_by_packet",
]

_TABLE_CHANGED = frozenset((1049, 1051, 1054, 1109, 1146, 1305, 1356, 1412, 1615))
"""No such database, table, column or function; a view that does not hold any more; a definition that has changed."""
_INTERRUPTED = frozenset((1205, 1213, 1317, 1969, 3024, 3170))
"""Lock wait time-outs, deadlocks, KILL QUERY, time and memory limits of statements."""
_DENIED = frozenset((1044, 1142, 1143, 1227))
_GONE = frozenset((0, 1053, 1927, 2006, 2013, 2014, 4031))


class TableChanged(SourceError):
    """The table is not there as the schema says: it was changed, renamed or dropped meanwhile."""


class SelectInterrupted(SourceError):
    """The server broke a SELECT off; another try may succeed."""

    retryable = True


def is_of_a_changed_table(error: SourceError) -> bool:
    """Whether the server refused a statement since a table is not there as the schema says."""
    return isinstance(error, TableChanged) or _number(error) in _TABLE_CHANGED


def is_interrupted(error: SourceError) -> bool:
    """Whether the server broke a statement off, as at a table that is locked: another try may succeed."""
    return isinstance(error, SelectInterrupted) or _number(error) in _INTERRUPTED


def _number(error: SourceError) -> int | None:
    """The server's number of an error that it gave to a statement."""
    cause = error.__cause__
    return cause.args[0] if cause is not None and cause.args else None


def refused(number: int, text: str, where: str) -> SourceError:
    """The error that a server's error *number* stands for."""
    found = f"error {number}: {text}"
    if number in _GONE:
        return ConnectionLost("the server ended the connection during a SELECT", where=where, found=found)
    if number in _TABLE_CHANGED:
        return TableChanged("a table is not as the schema says", where=where, found=found)
    if number in _INTERRUPTED:
        return SelectInterrupted("the server broke a SELECT off", where=where, found=found)
    if number in _DENIED:
        step = "GRANT SELECT on the tables to the user"
        return SourceError("the user may not read the table", where=where, found=found, next_step=step)
    return SourceError("the server refuses a SELECT", where=where, found=found)


def refused_by_packet(payload: bytes, where: str) -> SourceError:
    """The error that an error packet stands for."""
    number = int.from_bytes(payload[1:3], "little")
    text = payload[3:].decode("utf-8", "replace")
    return refused(number, text[6:] if text.startswith("#") else text, where)
