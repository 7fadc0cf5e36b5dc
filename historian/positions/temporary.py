"""Temporary tables that a session has open behind a position."""

from __future__ import annotations

from dataclasses import dataclass

from historian.names import TableName

__all__ = ["TemporaryTable"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TemporaryTable:
    """A name that means a temporary table to one session.

    Attributes:
        session: the server's id in the high 32 bits, the thread's in the low ones.
        name: hides the real table of that name.
        doubtful: the log has no CREATE of it: what was marked as use of a temporary table was taken as done to the real one.
    """

    session: int
    name: TableName
    doubtful: bool = False
