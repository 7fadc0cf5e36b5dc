"""Targets compared with the source round by round, beside the run that writes them: no lease is held, and nothing is written.

Both sides are as of the end of a plan that the lake holds. The source's rows are brought back to it by the log, and targets are read in the
Delta versions that held it. A row that differs is compared again once the lake has followed the log, and told where it still does.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa

from connectors.backfill.keys.split_key import SplitKey
from connectors.backfill.pace import Pace
from connectors.backfill.splits import next_pieces, repaired_by_ranges
from connectors.backfill.spool import Spool
from connectors.config import ServerSource, limits_in_force
from connectors.pipeline.comparing import ComparedRows, compare
from connectors.recovery.repairing import read_range
from connectors.spark.ending import answers
from connectors.tracking.sources import make_tracker, server_address
from historian.changelog.operations import physical_name
from historian.errors import HistorianError
from historian.history.prefix import covers
from historian.plans.key_ranges import KeyRange
from historian.plans.plans import Plan, PlannedTable
from historian.plans.segments import resumed_table
from sinks.delta.repairs.returning import LeftBehind
from sinks.delta.writing.comparing import NotByRanges, NotComparable, newest_held

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from connectors.config import PipelineConfig
    from connectors.tracking.tracker import Tracker
    from historian.changelog.chunks import Chunk
    from historian.names import TableName
    from historian.schema.snapshots import Snapshot
    from historian.store import Store
    from sinks.delta import DeltaSettings

__all__ = ["ContinuousComparison", "Told"]

_log = logging.getLogger(__name__)
_POLL_S = 0.5
_LATER_S = 10.0
"""So long a plan behind a statement is waited for."""
_TRIES = 5
_FOLLOWS_TRIES = 120
_RETRY_S = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Moment:
    """A plan that the lake holds, and a table as it was at its end."""

    tracker: Tracker
    plan: Plan
    table: PlannedTable

    @property
    def key(self) -> SplitKey | None:
        """By whose ranges it can be compared; None: it is compared as a whole."""
        now, flavor = self.table.versions[-1], self.tracker.reader.flavor
        is_by_ranges = now.snapshot is not None and repaired_by_ranges(now.snapshot, flavor)
        return SplitKey.of(now.snapshot, flavor) if is_by_ranges and now.snapshot is not None else None


class Told(Protocol):
    """Who is told what is found, and how far it is."""

    def say(self, line: str) -> None:
        """Something that a person reads."""

    def differs(self, chunk: Chunk, table: Snapshot) -> None:
        """Changelog rows that would mend a target, and their schema."""

    def begins(self, tables: Collection[TableName]) -> None:
        """A round over *tables*, in their order."""

    def reached(self, table: TableName, rows: int) -> None:
        """So many *rows* of *table* have been read in this round."""


class ContinuousComparison:
    """Goes over all tables, range by range of their keys, for as long as nobody ends it.

    Args:
        settings: of a connector that reads a server.
        store: of the connector, which may be running.
        wanted: tables; None: all that are captured.
        told: of all that it finds.
        stopping: ends it when it is set.
    """

    def __init__(
        self,
        spark: SparkSession,
        settings: PipelineConfig,
        lake: DeltaSettings,
        store: Store,
        wanted: Collection[TableName] | None,
        *,
        told: Told,
        stopping: threading.Event,
    ) -> None:
        source = settings.source
        assert isinstance(source, ServerSource)  # noqa: S101 files hold no tables
        self._spark = spark
        self._settings = settings
        self._lake = lake
        self._store = store
        self._wanted = wanted
        self._told = told
        self._stopping = stopping
        self._address = server_address(source)
        self._limits = replace(source.backfill, connections=1)
        limits = source.backfill
        self._pace = Pace(
            self._address,
            source.flavor,
            lambda: limits_in_force(limits, store.copy_orders().limits),
            note=lambda why: None,  # noqa: ARG005 it is logged
        )
        self._tracker: Tracker | None = None
        self._whole: set[int] = set()
        self._chunk_rows: dict[int, int] = {}
        self._reasons: dict[int, str] = {}
        self._differs = False

    def run(self) -> bool:
        """Whether some table differed, or could not be compared.

        Raises:
            HistorianError: what does not pass by itself.
        """
        try:
            while not self._stopping.is_set():
                tables: dict[int, TableName] = {}
                with self._retrying("the lake"):
                    found = self._tables()
                    self._told.begins(found.values())
                    tables = found
                for table_id, name in tables.items():
                    self._compare_table(table_id, name)
                self._stopping.wait(self._settings.run.trigger_s)
        except Exception:
            # A signal to a whole group of processes ends Spark's too.
            if not self._stopping.is_set() or answers(self._spark):
                raise
        finally:
            if self._tracker is not None:
                self._tracker.close_log()
        return self._differs

    def _tables(self) -> dict[int, TableName]:
        plan = newest_held(self._spark, self._lake)
        if plan is None:
            return {}
        tracker = self._tracker_at(plan)
        names = tracker.history.catalog_at(plan.version).tables
        return {
            snapshot.table_id: name
            for name, snapshot in sorted(names.items())
            if tracker.captured(name) and (self._wanted is None or name in self._wanted)
        }

    def _tracker_at(self, plan: Plan) -> Tracker:
        """One that knows the schemas of *plan*."""
        if self._tracker is None or self._tracker.history.last_number < self._store.last_number():
            if self._tracker is not None:
                self._tracker.close_log()
            self._tracker = make_tracker(self._settings, store=self._store)
        assert plan.version <= self._tracker.history.last_number  # noqa: S101 it was recorded before the lake had the plan
        return self._tracker

    def _compare_table(self, table_id: int, name: TableName) -> None:
        """One round of a table; says how it came out, where there was something to compare."""
        keys, rows, differing = KeyRange(), 0, 0
        while not self._stopping.is_set():
            self._told.reached(name, rows)
            next_keys = found = None
            with self._retrying(str(name)):
                next_keys = self._next(table_id, keys)
                if next_keys is not None and self._is_free():
                    found = self._compare_range(table_id, name, next_keys)
            if next_keys is None or found is None:
                return
            rows, differing, keys = rows + found.rows_read, differing + found.rows_differing, next_keys
            if keys.upto is None:
                hint = (
                    f"; `historian verify --table {name} --repair`, when the connector stands still"
                    if differing
                    else ""
                )
                self._told.say(
                    f"{name}: {rows} rows up to {found.end}, {differing} changelog rows would mend its targets{hint}"
                )
                return

    def _moment(self, table_id: int) -> _Moment | None:
        """None where the table is not there, or its rows are being copied or repaired."""
        plan = newest_held(self._spark, self._lake)
        if plan is None:
            return None
        tracker = self._tracker_at(plan)
        copies = self._store.copies()
        copy = copies.get(table_id)
        is_copied = table_id not in copies or (copy is not None and copy.is_done and copy.plan <= plan.number)
        chain = [v for v in tracker.history.versions_of(table_id) if v.number <= plan.version]
        if not is_copied or not chain or chain[-1].snapshot is None:
            return None
        table = resumed_table(tracker.type_options.applied(chain), chain[-1].number, tracker.captured, None)
        return None if table is None else _Moment(tracker=tracker, plan=plan, table=table)

    def _next(self, table_id: int, before: KeyRange) -> KeyRange | None:
        """The range behind *before*; None where there is none now."""
        moment = self._moment(table_id)
        if moment is None:
            return None
        if moment.key is None or table_id in self._whole:
            return KeyRange() if before == KeyRange() else None
        wanted = {table_id: (moment.table.versions[-1], before.upto)}
        pieces = next_pieces(self._address, moment.tracker.reader.flavor, wanted, self._limits, self._chunk_rows)
        return pieces[0].range if pieces else None

    def _is_free(self) -> bool:
        """Waits until rows may be read; False where this is to end."""
        while not self._stopping.is_set():
            if self._pace.is_free:
                return True
            self._stopping.wait(_POLL_S)
        return False

    def _compare_range(self, table_id: int, name: TableName, keys: KeyRange) -> ComparedRows | None:
        """What differs as of two plans, told; None where the range cannot be compared now."""
        differing: set[tuple[Any, ...]] = set()
        try:
            first = self._compared(table_id, keys, lambda chunk, table: differing.update(_keys(chunk, table)))
            if first is None or not differing:
                return first
            if not self._has_followed():
                self._told.say(
                    f"{name}: {len(differing)} rows differ at {first.end}, or only until the run has followed the log"
                )
                return None
            told = 0

            def tell(chunk: Chunk, table: Snapshot) -> None:
                nonlocal told
                found = pa.array([key in differing for key in _keys(chunk, table)], pa.bool_())
                rows = chunk.rows.filter(found)
                told += rows.num_rows
                if rows.num_rows:
                    self._told.differs(replace(chunk, rows=rows), table)

            again = self._compared(table_id, keys, tell)
        except NotByRanges:
            self._whole.add(table_id)
            return None
        except (NotComparable, LeftBehind) as error:
            if self._reasons.get(table_id) != str(error):
                self._reasons[table_id] = str(error)
                self._told.say(f"{name}: not compared: {error}")
            self._differs = True
            return None
        self._differs = self._differs or bool(told)
        return None if again is None else replace(again, rows_differing=told)

    def _has_followed(self) -> bool:
        """Waits until the lake holds all that the log has at this moment, so that a row which the source shows early is told by then."""
        assert self._tracker is not None  # noqa: S101 it has just read rows
        seen = self._tracker.reader.end()
        for _ in range(_FOLLOWS_TRIES):
            last, held = self._store.last_plan(), newest_held(self._spark, self._lake)
            # Plans without tables reach no lake.
            number = 0 if last is None else last.number if last.tables else last.previous
            if last is not None and held is not None and held.number >= number and covers(last.end, seen):
                return True
            if self._stopping.wait(_POLL_S):
                return False
        return False

    def _compared(self, table_id: int, keys: KeyRange, tell: Callable[[Chunk, Snapshot], None]) -> ComparedRows | None:
        """The range as of the newest plan; None where a statement or a copy is on the table."""
        number = 0
        for _ in range(_TRIES):
            moment = self._later(table_id, number)
            if moment is None or (keys != KeyRange() and moment.key is None):
                return None
            number = moment.plan.number

            def read(copied: Spool, moment: _Moment = moment) -> Plan | None:
                return read_range(
                    moment.tracker, self._address, moment.table, moment.plan, keys, copied, moment.plan.version
                )

            found = compare(self._spark, self._lake, read, tell, threads=1, pinned=True)
            if found is not None:
                self._pace.took(found.rows_read, found.size_bytes)
                if found.size_bytes:
                    self._chunk_rows[table_id] = max(1, self._limits.chunk_bytes * found.rows_read // found.size_bytes)
                return found
        return None

    def _later(self, table_id: int, number: int) -> _Moment | None:
        """The table as of a plan behind that one, which is waited for; else as of the last one."""
        waited_s = 0.0
        while True:
            moment = self._moment(table_id)
            if moment is None or moment.plan.number > number or waited_s >= _LATER_S or self._stopping.is_set():
                return moment
            self._stopping.wait(_POLL_S)
            waited_s += _POLL_S

    @contextmanager
    def _retrying(self, name: str) -> Iterator[None]:
        """Lets pass what may pass: the table's next round tries again."""
        try:
            yield
        except HistorianError as error:
            if not error.retryable:
                raise
            _log.warning("%s: compared again later: %s", name, error)
            self._stopping.wait(_RETRY_S)


def _keys(chunk: Chunk, table: Snapshot) -> list[tuple[Any, ...]]:
    """What tells the rows of *chunk* apart: the key, or all values."""
    ids = table.primary_key or tuple(column.id for column in table.columns)
    return list(zip(*(chunk.rows.column(physical_name(column)).to_pylist() for column in ids), strict=True))
