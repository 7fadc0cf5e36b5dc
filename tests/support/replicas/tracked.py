"""A tracker on a server's database, and what its plans deliver, as values."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from connectors.config import PipelineConfig, load_config
from connectors.tail.json_lines import ndjson_rows
from connectors.tracking.sources import make_tracker
from connectors.tracking.tracker import Tracker
from databases.servers import Server
from historian.plans.plans import Plan
from replicas.replica import Replica

__all__ = ["Tracked", "delivered", "unlogged"]

Delivered = list[tuple[str, dict[str, Any]]]


@dataclass(frozen=True, slots=True)
class Tracked:
    """One connector's store and configuration; each :meth:`tracker` is a run of it."""

    config: PipelineConfig

    @classmethod
    def of(cls, server: Server, directory: Path, database: str, *, start: str = "latest") -> Tracked:
        config = load_config(Replica(server, directory, [database]).path)
        return cls(replace(config, source=replace(config.source, start=start)))

    @contextmanager
    def tracker(self) -> Iterator[Tracker]:
        tracker = make_tracker(self.config)
        try:
            yield tracker
        finally:
            tracker.close()

    def begin(self) -> None:
        """Records where the history begins."""
        with self.tracker() as tracker:
            assert tracker.history.entries

    def news(self, tracker: Tracker, after: int = 0) -> dict[str, Delivered]:
        """What all plans behind plan *after* deliver, made where they are not: (op, values) by table, in order."""
        found: dict[str, Delivered] = {}
        while (plan := tracker.plan_after(after)) is not None:
            for table, rows in delivered(tracker, plan).items():
                found.setdefault(table, []).extend(rows)
            after = plan.number
        return found

    def stopped(self, tracker: Tracker) -> dict[str, str]:
        return {name.table: quarantine.reason for _, name, quarantine in tracker.store.stopped()}


def delivered(tracker: Tracker, plan: Plan) -> dict[str, Delivered]:
    """A plan's rows, each under its own version's schema."""
    snapshots = {(t.table_id, v.version): v.snapshot for t in plan.tables for v in t.versions}
    found: dict[str, Delivered] = {}
    for planned in plan.ranges:
        for chunk in tracker.reader.read(planned, plan.tables, as_text=True):
            snapshot = snapshots[chunk.table_id, chunk.version]
            assert snapshot is not None
            rows = [json.loads(row) for row in ndjson_rows(chunk, snapshot)]
            found.setdefault(snapshot.name.table, []).extend((row["op"], row["data"]) for row in rows)
    return found


def unlogged(server: Server, *statements: str) -> None:
    """Runs statements that leave no trace in the log."""
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SET SESSION sql_log_bin = 0")
        for statement in statements:
            cursor.execute(statement)
