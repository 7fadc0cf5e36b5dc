"""The server as the oracle: every row that was read, by value, against what the server holds now; and which tables stopped."""

from __future__ import annotations

import contextlib
from collections import Counter
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from databases.servers import Server
from historian.changelog.chunks import Chunk
from historian.names import TableName
from historian.plans.plans import Plan
from replicas.follower import Follower

__all__ = ["SourceOracle", "comparable"]


class SourceOracle(Follower):
    """A connector of all tables, whose rows are folded and compared with the server's own."""

    def __init__(self, server: Server, directory: Path) -> None:
        super().__init__(server, directory)
        self.stopped: dict[TableName, str] = {}

    def run(self, *, plans: int | None = None, limit_bytes: int | None = None) -> int:
        done = super().run(plans=plans, limit_bytes=limit_bytes)
        with self._tracker() as tracker:
            self.stopped |= {name: found.reason for _, name, found in tracker.store.stopped()}
        return done

    def run_until(self, position: str) -> None:
        """Takes the plans up to a position."""
        with self._tracker() as tracker:
            while (plan := tracker.plan_after(self.number, until=position)) is not None:
                self._take(plan, tracker)
            self.stopped |= {name: found.reason for _, name, found in tracker.store.stopped()}

    def rows_of(self, name: TableName) -> Counter[Any]:
        """The rows of a table as they were read, with how often each is there."""
        return Counter(_plain(self.mirror.rows(name)))

    def took(self, plan: Plan, chunks: list[Chunk]) -> None:
        stopped = {table.table_id for table in plan.tables if table.quarantine is not None}
        for table in plan.tables:
            if table.quarantine is not None:
                self.mirror.forget(table.table_id)
        tables = tuple(table for table in plan.tables if table.table_id not in stopped)
        self.mirror.apply(replace(plan, tables=tables), [each for each in chunks if each.table_id not in stopped])

    def differences(self, database: str) -> dict[str, tuple[Counter[Any], Counter[Any]]]:
        """Tables that did not stop and are not as the server has them: our rows that it lacks, and its rows that we lack."""
        tables = self.server.sql(
            "SELECT table_name FROM information_schema.tables WHERE table_schema = %s AND table_type IN ('BASE TABLE', 'SYSTEM VERSIONED')",
            database,
        )
        theirs = {str(name): self._rows(database, str(name)) for (name,) in tables}
        held = {name.table: name for name in self.mirror.snapshots() if name.database == database}
        ours = {table: Counter(_plain(self.mirror.rows(name))) for table, name in held.items()}
        stopped = {name.table for name in self.stopped if name.database == database}
        names = ({*theirs, *ours}) - stopped
        pairs = {name: (ours.get(name, Counter()), theirs.get(name, Counter())) for name in names}
        return {name: (mine - their, their - mine) for name, (mine, their) in pairs.items() if mine != their}

    def _rows(self, database: str, table: str) -> Counter[Any]:
        name = table.replace("`", "``")
        columns = self.server.sql(
            "SELECT column_name FROM information_schema.columns WHERE table_schema = %s AND table_name = %s ORDER BY ordinal_position",
            database,
            table,
        )
        shown = ", ".join("`" + str(column).replace("`", "``") + "`" for (column,) in columns)
        connected = contextlib.closing(self.server.connect(init_command="SET time_zone = '+00:00'"))
        with connected as connection, connection.cursor() as cursor:
            cursor.execute(f"SELECT {shown} FROM `{database}`.`{name}`")
            return Counter(tuple(map(comparable, row)) for row in cursor.fetchall())


def _plain(rows: Any) -> list[tuple[Any, ...]]:
    columns = [column.to_pylist() for column in rows.columns]
    return [tuple(map(comparable, row)) for row in zip(*columns, strict=True)]


def comparable(value: Any) -> Any:
    """One form of what PyMySQL and Arrow give differently: moments in UTC without saying so, spans as microseconds."""
    if isinstance(value, datetime):
        return value.replace(tzinfo=None)
    return value // timedelta(microseconds=1) if isinstance(value, timedelta) else value
