"""A connector without sinks, for tests that look at what it reads."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from connectors.tracking.capture.catalog import capture_catalog
from connectors.tracking.tracker import Tracker
from databases.servers import Server
from historian.changelog.chunks import Chunk
from historian.plans.plans import Plan
from historian.schema.snapshots import Catalog
from historian.store import Store
from logs.binlog_lab import address, live_reader
from models.plain_mirror import PlainMirror
from workload.checks import DecodedRow, decoded_rows

__all__ = ["Follower"]


class Follower:
    """A connector without sinks: keeps what it has read, may be stopped after any plan and go on from its store."""

    def __init__(self, server: Server, directory: Path) -> None:
        self.server = server
        self.url = f"sqlite:///{directory}/store.db"
        self.number = 0
        self.rows: list[DecodedRow] = []
        self.mirror = PlainMirror()
        self.starts = 0

    def run(self, *, plans: int | None = None, limit_bytes: int | None = None) -> int:
        """Takes plans until the log's end, or that many; returns how many there were. Each call is a new start."""
        self.starts += 1
        before = self.number
        with self._tracker() as tracker:
            while plans is None or self.number < before + plans:
                plan = tracker.plan_after(self.number, limit_bytes=limit_bytes)
                if plan is None:
                    break
                self._take(plan, tracker)
        return self.number - before

    def _take(self, plan: Plan, tracker: Tracker) -> None:
        chunks: list[Chunk] = []
        for planned in plan.ranges:
            kept = tracker.reader.cached(planned)
            read = list(tracker.reader.read(planned, plan.tables, sequence=len(chunks)))
            if kept is not None:
                assert read == list(tracker.reader.read(planned, plan.tables, sequence=len(chunks), log=kept))
            chunks += read
        self.number = plan.number
        self.took(plan, chunks)

    def took(self, plan: Plan, chunks: list[Chunk]) -> None:
        """Keeps what *plan* gave."""
        self.rows += decoded_rows(chunks, plan.tables)
        self.mirror.apply(plan, chunks)

    @contextlib.contextmanager
    def _tracker(self) -> Iterator[Tracker]:
        store = Store.open(self.url)
        tracker = Tracker(
            reader=live_reader(self.server),
            store=store,
            connector=store.connector("follower"),
            captured=lambda _: True,
            revision="",
            capture=self._capture,
            range_bytes=200_000,
        )
        try:
            yield tracker
        finally:
            tracker.close()

    def _capture(self, next_table_id: int, next_column_id: int, *, exact: bool = True) -> Catalog:
        with contextlib.closing(address(self.server).connect()) as connection:
            return capture_catalog(connection, next_table_id, next_column_id, exact=exact)
