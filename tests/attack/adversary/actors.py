"""Sessions of a script on one server: they run its statements, and what the server refuses is noted and left."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

import pymysql
from pymysql.constants import CLIENT

from adversary.script import DATABASE, STAGE, Hang, Kill, Restart, Sql, Step
from databases.servers import Server
from databases.zones import load_zones

__all__ = ["Actors", "prepare"]

_ZONES = ("Europe/Berlin", "America/New_York", "Australia/Lord_Howe")
_LOST = (2006, 2013, 2055, 1053, 1927)
_BUSY = ("SET SESSION lock_wait_timeout = 2", "SET SESSION innodb_lock_wait_timeout = 2")


def prepare(server: Server) -> None:
    """Makes the server as new: no databases but the scripts', a new log."""
    load_zones(server, _ZONES)
    server.clear()
    for database in (DATABASE, "c_b", STAGE):
        server.sql(f"CREATE DATABASE {database} CHARACTER SET utf8mb4")


class Actors:
    """The sessions. ``said``: what was run, with what the server had against it."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._sessions: dict[str, pymysql.Connection] = {}
        self.said: list[str] = []
        self.refused = 0

    def take(self, step: Step) -> None:
        """Runs a step that is about the server."""
        self.said.append(str(step))
        if isinstance(step, Sql):
            self._run(step)
        elif isinstance(step, Hang):
            self._close(step.session)
        elif isinstance(step, (Kill, Restart)):
            for name in [*self._sessions]:
                self._close(name)
            if isinstance(step, Kill):
                self._server.kill()
            self._server.restart()

    def go_to(self, server: Server) -> None:
        """Sessions are on another server from now on."""
        self.close()
        self._server = server

    def close(self) -> None:
        for name in [*self._sessions]:
            self._close(name)

    def _run(self, step: Sql) -> None:
        session = self._session(step.session)
        text: str | bytes = step.data or step.text
        try:
            with session.cursor() as cursor:
                cursor.execute(text)
                while cursor.nextset():
                    pass
        except pymysql.MySQLError as error:
            code = error.args[0] if error.args else 0
            self.refused += 1
            self.said[-1] += f"  -- refused: {code} {str(error.args[-1])[:80]}"
            if code in _LOST or not session.open:
                self._close(step.session)
        except (UnicodeError, ValueError, IndexError) as error:  # an answer that PyMySQL cannot read
            self.said[-1] += f"  -- unread answer: {error}"
            self._close(step.session)

    def _session(self, name: str) -> pymysql.Connection:
        if name not in self._sessions:
            session = self._server.connect(
                client_flag=CLIENT.MULTI_STATEMENTS, database=DATABASE, use_unicode=True, read_timeout=20
            )
            self._run_all(session, _BUSY)
            self._sessions[name] = session
        return self._sessions[name]

    @staticmethod
    def _run_all(session: pymysql.Connection, statements: Sequence[str]) -> None:
        with session.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)

    def _close(self, name: str) -> None:
        session = self._sessions.pop(name, None)
        if session is not None:
            with contextlib.suppress(pymysql.MySQLError):
                session.close()
