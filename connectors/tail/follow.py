"""A log's changelog for those who only look: rows as text, nothing recorded, neither Spark nor a lake."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING

from connectors.tracking.first_schema import place_of
from connectors.tracking.recorded import StoppedTable, UnloggedChange, recorded_store, stopped_tables
from connectors.tracking.sources import make_reader, make_tracker
from historian.changelog.chunks import NO_TABLE, Chunk, dead_letters
from historian.names import TableName
from historian.plans.plans import Plan, PlannedRange, PlannedTable, PlannedVersion
from historian.positions import LogPosition
from historian.positions.places import Place
from historian.schema.snapshots import Snapshot
from historian.store import Store

if TYPE_CHECKING:
    from connectors.config import PipelineConfig, TableFilter
    from connectors.readers.base import Reader
    from connectors.tracking.tracker import Tracker

__all__ = ["Tail", "TailedRange"]

_STEP_BYTES = 8 << 20
_PAUSE_S = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class TailedRange:
    """A range of the log.

    Attributes:
        versions: that begin in it, in order.
        stopped: tables that stopped in it.
        unlogged: changes of rows in it that have no row events; the tables go on.
        chunks: with their rows' schemas.
        begun: where its transactions begin, see :meth:`connectors.readers.base.Reader.read`.
        unread: messages that cannot be read: where each is, and why.
    """

    versions: tuple[PlannedVersion, ...]
    stopped: tuple[StoppedTable, ...]
    unlogged: tuple[UnloggedChange, ...]
    chunks: tuple[tuple[Chunk, Snapshot], ...]
    begun: Mapping[str, int]
    unread: tuple[str, ...] = ()


class Tail:
    """Follows a log with a history of its own, in memory; where the connector has recorded one, that is its beginning.

    Args:
        config: of the source; its sinks do not matter.
        begin: show what lies behind this position, or "earliest" or "latest"; None: the configured start.
        end: stop at this position; None: at the log's end.
        tables: of the captured tables, show these; None: all.

    Attributes:
        end: where it stops; None: at the log's end.
    """

    def __init__(
        self,
        config: PipelineConfig,
        *,
        begin: str | None = None,
        end: str | None = None,
        tables: TableFilter | None = None,
    ) -> None:
        self._wanted = tables
        with closing(make_reader(config.source)) as reader:
            self._begin = None if begin is None else place_of(reader, begin)
            self.end = None if end is None else place_of(reader, end)
        self._end = None if self.end is None else str(self.end)
        self._tracker = _tracker(config, self._begin)
        self._tracker.on_unlogged = self._note_unlogged
        self._unlogged: list[UnloggedChange] = []
        self._stopped: set[StoppedTable] = set()
        self._ended: set[int] = set()

    @property
    def reader(self) -> Reader:
        """Of the log."""
        return self._tracker.reader

    @property
    def first(self) -> LogPosition:
        """From where the log is read, so that what is shown has its schema. The first look at it asks the source."""
        return self._tracker.end_of(0)

    def shown(self, *, follow: bool = False, at_end: Callable[[], None] | None = None) -> Iterator[TailedRange]:
        """What the log holds from begin to end, part by part; with *follow* it waits for more and never ends by itself.

        *at_end* is called each time before it waits.

        Raises:
            HistorianError: the log cannot be read as asked.
        """
        tracker, number = self._tracker, 0
        if self._begin is not None:
            while (plan := tracker.plan_after(number, until=str(self._begin))) is not None:
                number = plan.number
        if self._end is None and not follow:
            tracker.stop_at_present_end()
        while True:
            plan = tracker.plan_after(number, limit_bytes=_STEP_BYTES, until=self._end)
            if plan is not None:
                yield from self._parts(plan)
                number = plan.number
                tracker.store.forget_plans(number)
            elif follow and self._end is None:
                if at_end is not None:
                    at_end()
                tracker.reader.wait(tracker.end_of(number), _PAUSE_S)
            else:
                return

    def close(self) -> None:
        """Closes the log."""
        self._tracker.close()

    def _parts(self, plan: Plan) -> Iterator[TailedRange]:
        tables = [table for table in plan.tables if self._is_wanted(table)]
        snapshots = {(table.table_id, v.version): v.snapshot for table in tables for v in table.versions}
        starting = {v.version: v for table in tables for v in table.versions if v.place is not None}
        # A table whose schema was never known is in no plan; the store knows that it stopped.
        stopped = tuple(self._newly_stopped())
        unlogged, self._unlogged = tuple(self._unlogged), []
        if stopped or unlogged:
            yield TailedRange(versions=(), stopped=stopped, unlogged=unlogged, chunks=(), begun={})
        for planned in plan.ranges:
            chunks, ended, unread, begun = [], [], list[str](), dict[str, int]()
            reader, going_on = self._tracker.reader, [table for table in tables if table.table_id not in self._ended]
            log = reader.cached(planned)
            for chunk in reader.read(planned, going_on, as_text=True, stops=True, log=log, begun=begun):
                if chunk.table_id == NO_TABLE:
                    unread += [f"{each['position']}: {each['text']}" for each in json.loads(dead_letters(chunk))]
                    continue
                snapshot = snapshots[chunk.table_id, chunk.version]
                if snapshot is None:
                    continue
                if chunk.stopped:
                    ended.append(StoppedTable(table=snapshot.name, position=chunk.first_position, reason=chunk.stopped))
                    self._ended.add(chunk.table_id)
                else:
                    chunks.append((chunk, snapshot))
            versions = tuple(
                v for _, v in sorted(starting.items()) if v.place is not None and _within(v.place, planned)
            )
            yield TailedRange(
                versions=versions,
                stopped=tuple(ended),
                unlogged=(),
                chunks=tuple(chunks),
                begun=begun,
                unread=tuple(unread),
            )

    def _note_unlogged(self, table: TableName, place: Place, reason: str) -> None:
        if self._wanted is None or self._wanted(table):
            self._unlogged.append(UnloggedChange(table=table, position=str(place), reason=reason))

    def _is_wanted(self, table: PlannedTable) -> bool:
        return self._wanted is None or any(self._wanted(name) for name in _names(table))

    def _newly_stopped(self) -> Iterator[StoppedTable]:
        for found in stopped_tables(self._tracker.store):
            if found not in self._stopped and (self._wanted is None or self._wanted(found.table)):
                self._stopped.add(found)
                yield found


def _within(place: Place, planned: PlannedRange) -> bool:
    return place.file == planned.file and planned.start <= place.offset < planned.end


def _names(table: PlannedTable) -> Iterator[TableName]:
    """Names the table has in the plan, the last one first."""
    for version in reversed(table.versions):
        if version.snapshot is not None:
            yield version.snapshot.name


def _tracker(config: PipelineConfig, begin: LogPosition | None) -> Tracker:
    """A tracker with a store in memory.

    Its history begins where the connector's does, else at the configured start, or at *begin* if that is earlier. The more of
    the log before *begin* is known, the more tables are.
    """
    store = Store.open("sqlite://")
    recorded = recorded_store(config)
    if recorded is not None:
        with closing(recorded):
            entries, resolved, horizon = recorded.entries(), recorded.resolved(), recorded.horizon()
            origins = [each.position for each in (horizon, *entries[:1]) if each is not None]
            if origins and resolved is not None and (begin is None or begin.covers(origins[0])):
                store.restore(config.name, "tail", entries, (), horizon=horizon)
                store.record((), resolved, recorded.gaps())
                tracker = make_tracker(config, store=store)
                is_anywhere = begin is not None or config.source.log_start == "earliest"
                if is_anywhere and tracker.reader.mark(origins[0].file) is None:
                    # The log from there was purged. What is recorded says what it led to.
                    first = tracker.reader.start() if begin is None else begin
                    store.forget(first if resolved.covers(first) else resolved)
                return tracker
    start = config.source.log_start
    return make_tracker(config, store=store, start=start if begin is None or start == "earliest" else str(begin))
