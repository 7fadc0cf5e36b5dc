"""Connections to a store: how SQLite is opened, and transactions that can be tried again."""

from __future__ import annotations

import os
import random
import socket
import sqlite3
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar, cast

from sqlalchemy import Connection, RootTransaction, create_engine, event
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import (
    ArgumentError,
    DBAPIError,
    IntegrityError,
    InterfaceError,
    NoSuchModuleError,
    OperationalError,
    ProgrammingError,
    SQLAlchemyError,
)
from sqlalchemy.pool import NullPool, QueuePool, StaticPool

from historian.errors import ConfigError, StoreError, StoreNotLetIn, StoreUnreachable
from historian.store.kept_connections import keep_current

__all__ = ["Transactions"]

T = TypeVar("T")

_BUSY_S = 30.0
_WRITES = "historian_writes"
_ATTEMPTS = 20
_PAUSE_S, _LONGEST_PAUSE_S = 0.001, 0.2
_DRIVERS = {"mysql": "pymysql", "mariadb": "pymysql", "postgresql": "psycopg"}
_PATIENCE: Mapping[str, Mapping[str, int]] = {
    "pymysql": {"connect_timeout": 10, "read_timeout": 900, "write_timeout": 900},
    "psycopg": {
        "connect_timeout": 10,
        "keepalives": 1,
        "keepalives_idle": 30,
        "keepalives_interval": 10,
        "keepalives_count": 3,
        "tcp_user_timeout": 60_000,
    },
}
"""How long a database may be silent, seconds (the last one in milliseconds): where the network is parted, no end of the connection is told."""
_KEEPALIVES = {
    socket.TCP_KEEPIDLE: 30,
    socket.TCP_KEEPINTVL: 10,
    socket.TCP_KEEPCNT: 3,
    socket.TCP_USER_TIMEOUT: 60_000,
}
_EXAMPLES = ("postgresql://user:password@host/database", "mysql://user:password@host/database")
_SQLITE_ARGUMENTS = {"timeout", "detect_types", "isolation_level", "check_same_thread", "cached_statements"}
_ACCESS_DENIED = 1045
_CONFLICTS = {1020, 1213, "40001", "40P01", "42P07"}
"""Of MySQL and MariaDB "record has changed since last read" and "deadlock found"; of PostgreSQL the like, and "relation exists"."""


class Transactions:
    """Runs functions in short transactions on one database. Safe to share between threads, not between processes."""

    def __init__(self, url: str) -> None:
        try:
            parsed = _with_driver(make_url(url))
            self.where = parsed.render_as_string(hide_password=True)
            self._engine = create_engine(parsed, **_options(parsed))
        except (ArgumentError, NoSuchModuleError, ModuleNotFoundError, TypeError, ValueError) as error:
            raise _unusable(error) from error
        except OSError as error:
            raise StoreError(
                "the store's directory cannot be made",
                where=self.where,
                found=str(error),
                next_step="mend the path or its rights, or name another one under history.store",
            ) from error
        if parsed.get_driver_name() == "pymysql":
            event.listen(self._engine, "connect", _watch_peer)
        if parsed.get_backend_name() == "sqlite":
            event.listen(self._engine, "connect", _connect_sqlite)
            event.listen(self._engine, "begin", _begin_sqlite)
            if isinstance(self._engine.pool, QueuePool):
                keep_current(self._engine, Path(parsed.database or ""))
        # Connections that nobody closed are closed with this.
        weakref.finalize(self, self._engine.dispose).atexit = False
        # In-memory SQLite is one connection for all threads.
        self._turn = threading.RLock()
        self._local = threading.local()

    def read(self, work: Callable[[Connection], T]) -> T:
        """What *work* returns, run on one consistent state. Raises :class:`StoreError` where the database fails."""
        return self._run(work, writes=False)

    @contextmanager
    def together(self) -> Iterator[None]:
        """All that this thread reads inside of the ``with`` is of one state of an SQLite file, through one connection; elsewhere as without it.

        Servers keep connections open by themselves, and have no writer wait for who only looks.
        """
        if self._engine.dialect.name != "sqlite" or isinstance(self._engine.pool, StaticPool) or self._shared():
            yield
            return
        with self._connected() as connection:
            try:
                begun = self._begin(connection, writes=False)
            except SQLAlchemyError as error:
                raise self._failed(error) from error
            self._local.connection = connection
            try:
                yield
            finally:
                self._local.connection = None
                with suppress(SQLAlchemyError):  # nothing was written
                    begun.rollback()

    def write(self, work: Callable[[Connection], T]) -> T:
        """What *work* returns, all of its changes made or none.

        *work* is run again where another process came in between, so that it meets what that one recorded.
        """
        return self._run(work, writes=True)

    def shrink(self) -> None:
        """Gives room that deleted rows left back to the file system, where the database does not do that by itself.

        Raises:
            StoreError: the file cannot be read, or another transaction has it.
        """
        if self._engine.dialect.name == "sqlite":
            try:
                with self._turn, self._connected() as connection:
                    driver = cast("sqlite3.Connection", connection.connection.driver_connection)
                    driver.execute("VACUUM")
                    driver.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
            except SQLAlchemyError as error:  # the file was not opened
                raise self._failed(error) from error
            except sqlite3.Error as error:
                raise StoreError(
                    "rows were deleted, but the store's file is as long as before",
                    where=self.where,
                    found=error,
                    next_step="try again when nobody writes",
                ) from error

    def close(self) -> None:
        """Closes all connections, those that a transaction has as it ends; the next transaction opens one again."""
        pool = self._engine.pool
        self._engine.dispose()
        pool.dispose()  # what was given back before the engine had another pool

    def _shared(self) -> Connection | None:
        """That of :meth:`together`, in this thread."""
        return getattr(self._local, "connection", None)

    def _run(self, work: Callable[[Connection], T], *, writes: bool) -> T:
        shared = None if writes else self._shared()
        if shared is not None:
            try:
                return work(shared)
            except SQLAlchemyError as error:
                raise self._failed(error) from error
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                with self._turn, self._connected() as connection, self._begin(connection, writes=writes):
                    return work(connection)
            except SQLAlchemyError as error:
                if attempt == _ATTEMPTS or not _met_another(error):
                    raise self._failed(error) from error
                # Who waits for a time of its own does not meet the same one again.
                time.sleep(random.uniform(0, min(_PAUSE_S * 2**attempt, _LONGEST_PAUSE_S)))  # noqa: S311 no secret
        raise AssertionError  # the last attempt returns or raises

    @contextmanager
    def _connected(self) -> Iterator[Connection]:
        pool = self._engine.pool
        try:
            connection = self._engine.connect()
        except (TypeError, ValueError, ProgrammingError) as error:  # as drivers refuse an argument
            raise _unusable(getattr(error, "orig", None) or error) from error
        try:
            with connection:
                yield connection
        finally:
            if self._engine.pool is not pool:
                # The store was closed meanwhile. A connection that is given back to a former pool stays open in it.
                pool.dispose()

    def _begin(self, connection: Connection, *, writes: bool) -> RootTransaction:
        return connection.execution_options(**{_WRITES: writes}).begin()

    def _failed(self, error: SQLAlchemyError) -> StoreError:
        cause = getattr(error, "orig", None) or error
        busy = _met_another(error) or "locked" in str(cause)
        kind: type[StoreError] = StoreUnreachable if busy or self._is_lost(error) else StoreError
        if self._is_refused(error):
            kind = StoreNotLetIn
        return kind(
            "the history store failed",
            where=self.where,
            found=cause,
            next_step="another process holds it; try again" if busy else None,
        )

    def _is_lost(self, error: SQLAlchemyError) -> bool:
        """Whether the database did not answer; a file does, whatever is wrong with it."""
        if self._engine.dialect.name == "sqlite" or not isinstance(error, DBAPIError):
            return False
        is_away = isinstance(error, OperationalError | InterfaceError) and not self._is_refused(error)
        return error.connection_invalidated or is_away

    def _is_refused(self, error: SQLAlchemyError) -> bool:
        """Whether the database refuses the user or its password."""
        if self._engine.dialect.name == "sqlite" or not isinstance(error, DBAPIError):
            return False
        cause = error.orig
        return getattr(cause, "args", ())[:1] == (_ACCESS_DENIED,) or "password authentication" in str(cause)


def _met_another(error: SQLAlchemyError) -> bool:
    """Whether the transaction was undone because another one was faster."""
    if isinstance(error, IntegrityError):
        return True
    cause = getattr(error, "orig", None)
    # Drivers of MySQL give the number first; those of PostgreSQL name the state differently.
    codes = {*getattr(cause, "args", ())[:1], getattr(cause, "sqlstate", None), getattr(cause, "pgcode", None)}
    return not codes.isdisjoint(_CONFLICTS)


def _with_driver(url: URL) -> URL:
    """The URL with the driver that we use, where it names only the database."""
    return url.set(drivername=f"{url.drivername}+{_DRIVERS[url.drivername]}") if url.drivername in _DRIVERS else url


def _unusable(error: BaseException) -> ConfigError:
    problem = f"{str(error).strip()} @ $.history.store (expected a URL like sqlite:///state/shop.db, or {' or '.join(_EXAMPLES)})"
    if isinstance(error, ModuleNotFoundError) and error.name == "psycopg":
        problem = 'no driver for PostgreSQL @ $.history.store (pip install "pyspark-historian[postgresql]")'
    return ConfigError("not a store's URL, or its driver is missing", problems=(problem,))


def _options(url: URL) -> dict[str, Any]:
    if url.get_backend_name() != "sqlite":
        patience = _PATIENCE.get(url.get_driver_name(), {})
        said = {name: value for name, value in patience.items() if name not in url.query}
        return {"pool_pre_ping": True, "isolation_level": "SERIALIZABLE", "connect_args": said}
    unknown = sorted(url.query.keys() - _SQLITE_ARGUMENTS)
    if unknown and "uri" not in url.query:  # releases of SQLAlchemy differ: a warning, or a TypeError later on
        raise ValueError(f"SQLite knows no argument {', '.join(unknown)}")
    if url.database in (None, "", ":memory:"):
        return {"poolclass": StaticPool, "connect_args": {"check_same_thread": False}}
    place = Path(url.database or "")
    place.parent.mkdir(parents=True, exist_ok=True)
    if "uri" in url.query:  # what is said there may not be the file's name
        return {"poolclass": NullPool, "connect_args": {"timeout": _BUSY_S}}
    _make_private(place)
    # To open a file and to close it, with all that its log holds, takes longer than most transactions.
    return {
        "poolclass": QueuePool,
        "pool_size": 1,
        "max_overflow": -1,
        "connect_args": {"timeout": _BUSY_S, "check_same_thread": False},
    }


def _make_private(place: Path) -> None:
    """Makes a new file that only its owner may read: rows that are copied lie there. SQLite gives the files beside it the same mode."""
    with suppress(OSError):  # it is there already; or SQLite says what is wrong with the place
        os.close(os.open(place, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))


def _watch_peer(connection: Any, _: object) -> None:
    """Has the system ask whether the server is still there, as libpq does: a long statement's silence is not that of a parted network."""
    peer: socket.socket = connection._sock  # noqa: SLF001 there is no public way
    if peer.family != socket.AF_UNIX:
        for option, value in _KEEPALIVES.items():
            peer.setsockopt(socket.IPPROTO_TCP, option, value)


def _connect_sqlite(connection: sqlite3.Connection, _: object) -> None:
    # The driver's own BEGIN comes late and takes no write lock; see _begin_sqlite.
    connection.isolation_level = None
    until_s = time.monotonic() + _BUSY_S
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            break
        except sqlite3.OperationalError as error:
            # Another connection gives the new file its WAL at the same moment; SQLite does not wait then.
            if "locked" not in str(error) or time.monotonic() >= until_s:
                raise
            time.sleep(_LONGEST_PAUSE_S)
    connection.execute("PRAGMA synchronous = FULL")


def _begin_sqlite(connection: Connection) -> None:
    # A transaction that reads first and then writes must hold the write lock from the start, else it can fail half-way.
    writes = connection.get_execution_options().get(_WRITES)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")
