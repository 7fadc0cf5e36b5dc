"""A connector that copies what the source's tables hold, compared at each plan with one that has read the log from its beginning."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from connectors.backfill.copying import Copier
from connectors.backfill.forwarding import forwarded_chunks
from connectors.backfill.keys.coverage import KeyQuestions
from connectors.backfill.replica import Replica
from connectors.backfill.spool import chunk_of
from connectors.config import CopyLimits
from connectors.tracking.ranges import SEQUENCE_BITS
from connectors.tracking.tracker import Tracker
from databases.servers import Server
from historian.changelog.chunks import Chunk
from historian.names import TableName
from historian.plans.plans import Plan
from historian.store import Store
from logs.binlog_lab import address, live_reader
from models.source_oracle import SourceOracle

__all__ = ["CopyingOracle"]


class CopyingOracle(SourceOracle):
    """A connector that begins at the log's end and copies the rows from before; see :class:`SourceOracle`."""

    def __init__(
        self, server: Server, directory: Path, limits: CopyLimits, database: str = "", replica: Replica | None = None
    ) -> None:
        super().__init__(server, directory)
        self.limits = limits
        self.database = database
        self.replica = replica
        self.copied_rows = 0
        self.repaired = 0
        self.repaired_partly = 0
        self.end = ""
        self.begun: set[TableName] = set()

    @contextlib.contextmanager
    def _tracker(self) -> Iterator[Tracker]:
        store = Store.open(self.url)
        tracker = Tracker(
            reader=live_reader(self.server),
            store=store,
            connector=store.connector("follower"),
            captured=lambda name: not self.database or name.database == self.database,
            revision="",
            start="initial",
            capture=self._capture,
            range_bytes=200_000,
        )
        tracker.copier = Copier(
            tracker, address(self.server), self.limits, replica=self.replica, tells_rows=lambda _: True
        )
        try:
            yield tracker
        finally:
            tracker.close()

    def _take(self, plan: Plan, tracker: Tracker) -> None:
        chunks: list[Chunk] = []
        with contextlib.closing(KeyQuestions(address(self.server))) as ask:
            for index, planned in enumerate(plan.ranges):
                read = tracker.reader.read(planned, plan.tables, sequence=index << SEQUENCE_BITS, stops=True)
                chunks += forwarded_chunks(read, plan.tables, tracker.reader.flavor, ask)
        copied = [chunk_of(body) for body in tracker.store.copied_chunks(plan.number)]
        self.copied_rows += sum(chunk.rows.num_rows for chunk in copied)
        self.repaired += sum(bool(table.repairs) for table in plan.tables)
        self.repaired_partly += sum(bool(table.copy.only) for table in plan.tables if table.copy is not None)
        self.number = plan.number
        self.end = str(plan.end)
        self.begun |= {
            v.snapshot.name for t in plan.tables if t.copy is not None for v in t.versions if v.snapshot is not None
        }
        self.took(plan, [*chunks, *copied])

    def is_done(self) -> bool:
        with contextlib.closing(Store.open(self.url)) as store:
            return all(progress.is_done for progress in store.copies().values())

    def frontiers(self) -> dict[int, Any]:
        """Up to where each table is copied, by its id: a key, None for nothing, "all"."""
        with contextlib.closing(Store.open(self.url)) as store:
            return {i: "all" if p.is_done else p.upto for i, p in store.copies().items()}
