"""Connections to a store: how SQLite is opened, and transactions that can be tried again."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import Connection, create_engine, event
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, IntegrityError, NoSuchModuleError, OperationalError, SQLAlchemyError
from sqlalchemy.pool import NullPool, StaticPool

from historian.errors import StoreError

__all__ = ["Transactions"]

T = TypeVar("T")

_BUSY_S = 30.0
_WRITES = "historian_writes"


class Transactions:
    """Runs functions in short transactions on one database. Safe to share between threads, not between processes."""

    def __init__(self, url: str) -> None:
        try:
            parsed = make_url(url)
            self.where = parsed.render_as_string(hide_password=True)
            self._engine = create_engine(parsed, **_options(parsed))
        except (ArgumentError, NoSuchModuleError, ModuleNotFoundError) as error:
            raise StoreError(
                "not a store's URL, or its driver is missing",
                where="history.store",
                expected="a URL like sqlite:///state/shop.db",
                found=str(error),
            ) from error
        except OSError as error:
            raise StoreError("the store's directory cannot be made", where=self.where, found=str(error)) from error
        if parsed.get_backend_name() == "sqlite":
            event.listen(self._engine, "connect", _connect_sqlite)
            event.listen(self._engine, "begin", _begin_sqlite)
        # In-memory SQLite is one connection for all threads.
        self._turn = threading.RLock()

    def read(self, work: Callable[[Connection], T]) -> T:
        """What *work* returns, run on one consistent state. Raises :class:`StoreError` where the database fails."""
        return self._run(work, writes=False)

    def write(self, work: Callable[[Connection], T]) -> T:
        """What *work* returns, all of its changes made or none.

        *work* is run again where another process recorded the same in between, so that it meets what is there.
        """
        try:
            return self._run(work, writes=True)
        except IntegrityError:
            pass
        try:
            return self._run(work, writes=True)
        except IntegrityError as error:
            raise StoreError("two processes record at once", where=self.where, found=str(error.orig)) from error

    def close(self) -> None:
        """Closes all connections; the next transaction opens one again."""
        self._engine.dispose()

    def _run(self, work: Callable[[Connection], T], *, writes: bool) -> T:
        with self._turn:
            try:
                with self._engine.connect().execution_options(**{_WRITES: writes}) as connection, connection.begin():
                    return work(connection)
            except IntegrityError:
                raise
            except SQLAlchemyError as error:
                busy = isinstance(error, OperationalError) and "locked" in str(error.orig)
                raise StoreError(
                    "the history store failed",
                    where=self.where,
                    found=str(getattr(error, "orig", None) or error),
                    next_step="another process holds it; try again" if busy else None,
                ) from error


def _options(url: URL) -> dict[str, Any]:
    if url.get_backend_name() != "sqlite":
        return {"pool_pre_ping": True}
    if url.database in (None, "", ":memory:"):
        return {"poolclass": StaticPool, "connect_args": {"check_same_thread": False}}
    Path(url.database or "").parent.mkdir(parents=True, exist_ok=True)
    # No pool: a connection must not live on in a forked process.
    return {"poolclass": NullPool, "connect_args": {"timeout": _BUSY_S}}


def _connect_sqlite(connection: sqlite3.Connection, _: object) -> None:
    # The driver's own BEGIN comes late and takes no write lock; see _begin_sqlite.
    connection.isolation_level = None
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")


def _begin_sqlite(connection: Connection) -> None:
    # A transaction that reads first and then writes must hold the write lock from the start, else it can fail half-way.
    writes = connection.get_execution_options().get(_WRITES)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")
