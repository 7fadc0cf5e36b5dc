"""Connections to an SQLite file that stay open between transactions, while they are to the file that stands there.

Between two transactions the file is whole, as if none were open. Nothing stands beside it that a copy would lack, or that a file put in its place would meet.
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import suppress
from pathlib import Path
from typing import Any

from sqlalchemy import Engine, event
from sqlalchemy.exc import DisconnectionError

__all__ = ["keep_current"]

_FILE, _CHANGES = "historian_file", "historian_changes"

_of_a_parent: list[sqlite3.Connection] = []
"""Connections that this process has from the one that it was forked from. To close them here would end that one's locks."""


def keep_current(engine: Engine, place: Path) -> None:
    """Has connections of *engine* that stay opened anew where the file at *place* is another one by now, or none, and in a forked process."""

    def opened(connection: sqlite3.Connection, record: Any) -> None:
        record.info[_FILE] = os.getpid(), _identity(place)
        record.info[_CHANGES] = connection.total_changes

    def taken(connection: sqlite3.Connection, record: Any, given: Any) -> None:
        process, file = record.info[_FILE]
        if process != os.getpid():
            _of_a_parent.append(connection)
            record.dbapi_connection = given.dbapi_connection = None
        elif file == _identity(place):
            return
        # Told so, the pool opens another one.
        raise DisconnectionError

    def given_back(connection: sqlite3.Connection | None, record: Any) -> None:
        if connection is not None and connection.total_changes != record.info[_CHANGES]:
            record.info[_CHANGES] = connection.total_changes
            _empty_log(connection)

    event.listen(engine, "connect", opened)
    event.listen(engine, "checkin", given_back)
    event.listen(engine, "checkout", taken)


def _empty_log(connection: sqlite3.Connection) -> None:
    """Moves what SQLite's log holds into the file. Where another process reads it just now, the next transaction does."""
    (patience_ms,) = connection.execute("PRAGMA busy_timeout").fetchone()
    connection.execute("PRAGMA busy_timeout = 0")
    try:
        with suppress(sqlite3.Error):  # what failed for good, the next transaction tells
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    finally:
        connection.execute(f"PRAGMA busy_timeout = {patience_ms}")


def _identity(place: Path) -> tuple[int, int] | None:
    """Of the file; None: there is none."""
    try:
        found = place.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino
