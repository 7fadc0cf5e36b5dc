"""A connector that copies what the source's tables hold, compared at each plan with one that has read the log from its beginning."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from connectors.backfill.copying import Copier
from connectors.backfill.forwarding import forwarded_chunks
from connectors.backfill.keys.coverage import KeyQuestions
from connectors.backfill.keys.literals import prepare_session
from connectors.backfill.replica import Replica
from connectors.backfill.spool import chunk_of
from connectors.config import CopyLimits
from connectors.tracking.ranges import SEQUENCE_BITS
from connectors.tracking.tracker import Tracker
from databases.servers import Server
from historian.changelog.chunks import Chunk
from historian.names import TableName, quoted
from historian.plans.plans import Plan
from historian.schema.snapshots import ColumnType
from historian.store import Store
from logs.binlog_lab import address, live_reader
from models.source_oracle import SourceOracle
from replicas.plan_ends import up_to

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
        self.took(plan, [*chunks, *copied])

    def is_done(self) -> bool:
        with contextlib.closing(Store.open(self.url)) as store:
            return all(progress.is_done for progress in store.copies().values())

    def covered(self, name: TableName, rows: Counter[Any]) -> Counter[Any]:
        """Those of *rows*, in the columns of that table, which are copied by now as their keys say: the server compares these itself."""
        snapshot = self.mirror.snapshots()[name]
        with contextlib.closing(Store.open(self.url)) as store:
            progress = store.copies().get(snapshot.table_id)
        if progress is None or progress.is_done:
            return rows
        if progress.upto is None:
            return Counter()
        places = [[column.id for column in snapshot.columns].index(column_id) for column_id in progress.key]
        columns = [snapshot.columns[place] for place in places]
        kinds = ", ".join(f"{quoted(column.name)} {_declared(column.type)}" for column in columns)
        different = list(rows)
        keys = [[number, *(row[place] for place in places)] for number, row in enumerate(different)]
        # A temporary table of this session alone, and not in the log: the condition reads columns, as a SELECT of the table would.
        with contextlib.closing(self.server.connect(database=name.database)) as connection:
            prepare_session(connection)
            with connection.cursor() as cursor:
                cursor.execute("SET SESSION sql_log_bin = 0")
                cursor.execute(f"CREATE TEMPORARY TABLE keys_of_rows (number_of_row INT, {kinds})")
                marks = ", ".join("%s" for _ in (0, *places))
                cursor.executemany(f"INSERT INTO keys_of_rows VALUES ({marks})", keys)
                where = up_to(snapshot, progress.key, progress.upto)
                cursor.execute(f"SELECT number_of_row FROM keys_of_rows WHERE {where}")
                return Counter({different[number]: rows[different[number]] for (number,) in cursor.fetchall()})

    def frontiers(self) -> dict[int, Any]:
        """Up to where each table is copied, by its id: a key, None for nothing, "all"."""
        with contextlib.closing(Store.open(self.url)) as store:
            return {i: "all" if p.is_done else p.upto for i, p in store.copies().items()}


def _declared(kind: ColumnType) -> str:
    """The type as a CREATE TABLE has it."""
    return f"{kind} COLLATE {kind.collation}" if kind.collation else str(kind)
