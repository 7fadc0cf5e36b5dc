"""Connections to an SQLite file that stay open between transactions, while they are to the file that stands there."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path
from typing import Any

from sqlalchemy import Engine, event
from sqlalchemy.exc import DisconnectionError

__all__ = ["keep_current"]

_FILE = "historian_file"

_of_a_parent: list[sqlite3.Connection] = []
"""Connections that this process has from the one that it was forked from. To close them here would end that one's locks."""


def keep_current(engine: Engine, place: Path) -> None:
    """Has connections of *engine* that stay opened anew where the file at *place* is another one by now, or none, and in a forked process."""

    def opened(_: sqlite3.Connection, record: Any) -> None:
        record.info[_FILE] = os.getpid(), _identity(place)

    def taken(connection: sqlite3.Connection, record: Any, given: Any) -> None:
        process, file = record.info[_FILE]
        if process != os.getpid():
            _of_a_parent.append(connection)
            record.dbapi_connection = given.dbapi_connection = None
        elif file == _identity(place):
            return
        # Told so, the pool opens another one.
        raise DisconnectionError

    event.listen(engine, "connect", opened)
    event.listen(engine, "checkout", taken)


def _identity(place: Path) -> tuple[int, int] | None:
    """Of the file; None: there is none."""
    try:
        found = place.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino
