"""The tracker: follows a log on the driver, records schema versions, and makes plans.

It scans headers, GTIDs, TABLE_MAPs and statements, never row bytes. A plan is stored before anyone hears of it, in one
transaction with the versions that its log told. Asking again for the plan behind a number gives the stored one, so a
restart at any point repeats nothing and leaves nothing out.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from connectors.readers.base import PartitionedLog
from connectors.tracking.capture.catalog import Capture
from connectors.tracking.capture.shared import HeadCaptures
from connectors.tracking.cascades import parent_log
from connectors.tracking.continuity import Continuity
from connectors.tracking.copied_rows import find_copied
from connectors.tracking.first_schema import begins_with_copies, first_entry
from connectors.tracking.head_check import HeadCheck
from connectors.tracking.prepared_transactions import WalkedXa, attached, find_prepared
from connectors.tracking.ranges import cut_ranges, range_bytes_between
from connectors.tracking.scope import filter_text, is_noted, place_at_end, stops_by_filter
from connectors.tracking.topics.met_schemas import MetSchemas
from connectors.tracking.topics.statement_times import tell_statements
from connectors.tracking.type_options import check_type_options, ranges_with_type_options
from connectors.tracking.walk import Walk
from historian.errors import StoreError
from historian.history.history import History
from historian.history.online_schema_changes import NO_TOOLS, OnlineChanges
from historian.history.prefix import covers
from historian.names import TableName
from historian.plans.plans import LogRange, Plan, PlannedRange, PlannedTable, Quarantine
from historian.plans.segments import planned_tables, stopped_table
from historian.plans.source_marks import SourceMarks
from historian.plans.type_options import NO_TYPE_OPTIONS, TypeOptions
from historian.positions import KAFKA, LogPosition, parse_position
from historian.positions.places import Place
from historian.schema.applying import apply_all
from historian.schema.snapshots import Catalog, Snapshot

if TYPE_CHECKING:
    from connectors.readers.base import Bound, Reader
    from connectors.tracking.copier import Copier
    from historian.history.timeline import TimelineEntry
    from historian.history.versions import Version
    from historian.store import Store

__all__ = ["Tracker"]

_log = logging.getLogger(__name__)

_TIDY_EVERY = 100
"""Plans between two looks for those that can go."""


class Tracker:
    """Makes plans, one after the other.

    Args:
        reader, store: the log, and where versions and plans are kept.
        connector: identity of the connector, written into each plan.
        captured: whether rows of a table are wanted; every other non-system table is tracked all the same.
        revision: hash of the configuration.
        start: where a connector without history begins: "earliest", "latest", or a position.
        capture: reads the present schemas of a server; None for a log without one.
        head: reads them for the comparison at the log's end, by default as *capture* does.
        schema: catalog given by hand for tables whose CREATE is not in the log.
        range_bytes: a plan's log is cut into ranges of about this size, so that executors share it; a plan of little log into shorter ones.
        online_changes: tools whose swaps of two tables are changes of one.
        type_options: how values are carried.
        accept_cascades: names of tables whose rows may change by cascades that the log does not show.
    """

    def __init__(  # noqa: PLR0913 each by name, and each is wanted
        self,
        *,
        reader: Reader,
        store: Store,
        connector: str,
        captured: Callable[[TableName], bool],
        revision: str,
        start: str = "earliest",
        capture: Capture | None = None,
        head: HeadCaptures | None = None,
        schema: Catalog | None = None,
        range_bytes: int = 32 << 20,
        online_changes: OnlineChanges = NO_TOOLS,
        type_options: TypeOptions = NO_TYPE_OPTIONS,
        accept_cascades: Collection[str] = (),
        clock_us: Callable[[], int] = lambda: time.time_ns() // 1000,
    ) -> None:
        self.reader = reader
        self.store = store
        self.connector = connector
        self.captured = captured
        self.revision = revision
        self._start = start
        self.capture = capture
        self.schema = schema
        self.range_bytes = range_bytes
        self.online_changes = online_changes
        self.type_options = type_options
        self.accept_cascades = accept_cascades
        self.clock_us = clock_us
        self._history: History | None = None
        if head is None and capture is not None:
            head = HeadCaptures(lambda _: capture(1, 1, exact=False))
        self._head = HeadCheck(head, store, captured) if head is not None else None
        self._stop: LogPosition | None = None
        self._end: tuple[int, LogPosition] | None = None
        self.on_unlogged: Callable[[TableName, Place, str], None] | None = None
        self.continuity = Continuity(store, reader)
        self.copier: Copier | None = None
        self.event_time_us = 0
        tell_statements(reader, lambda: self.history)

    @contextmanager
    def _marked(self) -> Iterator[None]:
        """A scan from where the last plan ends knows what came before. Others begin earlier: to them nothing of it is a repeat."""
        reader = self.reader
        if not isinstance(reader, PartitionedLog):
            yield
            return
        reader.marks = self.store.source_marks
        try:
            yield
        finally:
            reader.marks = None

    @property
    def history(self) -> History:
        """What is known so far; the first look at it records where the history begins."""
        if self._history is None:
            history = self.store.history()
            if not history.last_number:
                self.store.note_start(self._start)
                first = first_entry(self.reader, self._start, self.capture, self.schema)
                if begins_with_copies(self._start):
                    self._stop_what_is_not_copied(first)
                self.store.record((first,), first.position, after=0)
                self.continuity.note(first.position)
                history = self.store.history()
            self._history = history
        return self._history

    def _stop_what_is_not_copied(self, first: TimelineEntry) -> None:
        """Stops captured tables whose schema is not known: no row of the log may ever tell that they have some."""
        for name, reason in apply_all(first.edits, Catalog()).unknown_tables.items():
            if self.captured(name):
                self.store.quarantine(0, name, Quarantine(place=place_at_end(first.position), reason=reason))

    def end_of(self, number: int) -> LogPosition:
        """Where plan *number* ends; of 0: where the connector begins."""
        if number == 0:
            return self.history.origin
        known = self._end  # Another thread may ask for another plan meanwhile.
        if known is None or known[0] != number:
            known = self._end = number, self._stored_end(number)
        return known[1]

    def _stored_end(self, number: int) -> LogPosition:
        plan, following = self.store.plan(number), self.store.plan(number + 1)
        if plan is None and following is not None:
            return following.start
        return self.stored(number).end

    def stored(self, number: int) -> Plan:
        """The stored plan of that number. Raises :class:`StoreError` where there is none."""
        plan = self.store.plan(number)
        if plan is None:
            raise StoreError("a plan is missing from the store", where=f"plan {number}", expected="plans without gaps")
        return plan

    def plan_after(self, number: int, *, limit_bytes: int | None = None, until: str | None = None) -> Plan | None:
        """The plan behind plan *number*: the stored one, else a new one; None where the log holds nothing new.

        A new plan ends at the first place between transactions at or behind *limit_bytes* bytes of log, or at *until*.
        Safe to retry.

        Raises:
            LogReplaced: the log is another one than was read.
        """
        stored = self.store.plan(number + 1)
        if stored is not None:
            self.continuity.check()  # whoever asks reads its log, which may have been made anew since it was stored
            return stored
        following = self.store.begin_behind(number)
        if following != number:
            raise StoreError(
                "the store has forgotten the next plan, but not those behind it",
                where=f"plan {number + 1}",
                expected=f"a stream that begins behind plan {following}",
                next_step=f"start again with the option after_plan={following}, or with a store and targets of its own",
            )
        start = self.end_of(number)
        stop = self._stop if until is None else parse_position(until, self.reader.flavor)
        if stop is not None and covers(start, stop):
            copying = self._copying_plan(number, start)
            if copying is not None or until is not None or self.copier is None or not self.copier.waits:
                return copying
            # A statement is on a table that is copied: what is left of it can be read behind that one alone.
            self.stop_at_present_end()
            stop = self._stop
        plan = self._copying_plan(number, start) if self.copier is not None and self.copier.goes_first else None
        plan = plan or self._make(number, start, limit_bytes, stop) or self._copying_plan(number, start)
        if plan is None and self._head is not None:
            self._head.look(self.history, self.reader)
        return plan

    @property
    def doubts(self) -> bool:
        """Whether what was compared at the log's head differs, and is to be looked at again soon."""
        return self._head is not None and self._head.doubts

    def confirm_head(self) -> None:
        """Compares the history with the database where the log's end is reached, for a run that ends there."""
        if self._head is not None:
            self._head.confirm(self.history, self.reader)

    def plans_until(self, end: str | None, *, limit_bytes: int | None = None) -> Iterator[Plan]:
        """All plans up to the position *end*, else up to the log's present end; see :meth:`plan_after`."""
        number = 0
        if end is None:
            self.stop_at_present_end()
        while (plan := self.plan_after(number, limit_bytes=limit_bytes, until=end)) is not None:
            yield plan
            number = plan.number

    def catch_up(self, *, limit_bytes: int | None = None) -> int:
        """Makes all plans up to the log's present end, each of *limit_bytes* at most; gives the last one's number."""
        last = self.store.last_plan()
        number = 0 if last is None else last.number
        self.stop_at_present_end()
        while (plan := self.plan_after(number, limit_bytes=limit_bytes)) is not None:
            number = plan.number
        self._stop = None
        return number

    def stop_at_present_end(self) -> None:
        """From now on no new plan goes beyond what the log holds at this moment."""
        self._stop = self.reader.end()

    def snapshot_of(self, table: TableName, position: str | None, *, limit_bytes: int | None) -> Snapshot | None:
        """The table's schema at *position*, else its first version.

        The log is tracked as far as that takes, in plans of *limit_bytes*: a stream begins with the same ones.
        """
        number = 0
        if position is not None:
            wanted = parse_position(position, self.reader.flavor)
            for _ in self.plans_until(position, limit_bytes=limit_bytes):
                pass
            return self._in_force(self.history.at(table, wanted))
        while True:
            versions = self.history.versions(table)
            found = next((version for version in versions if version.snapshot is not None), None)
            if found is not None:
                return self._in_force(found)
            following = self.plan_after(number, limit_bytes=limit_bytes)
            if following is None:
                return None
            number = following.number

    def _in_force(self, version: Version) -> Snapshot | None:
        """The schema of a version as plans have it."""
        chain = self.type_options.applied(self.history.versions_of(version.table_id))
        return next((each.snapshot for each in chain if each.number == version.number), version.snapshot)

    def done_with(self, stream: str, number: int) -> None:
        """Notes that *stream* will not ask for plans up to *number* again.

        Now and then plans go that every stream is done with and whose log is purged. Nobody could read them any more, and
        a target that lacks them could not be made whole.
        """
        self.store.note_progress(stream, number)
        if number % _TIDY_EVERY == 0:
            self.store.forget_purged_plans(self.reader.start())

    def close(self) -> None:
        """Closes the log and the store."""
        self.close_log()
        self.store.close()

    def close_log(self) -> None:
        """Closes the log, and looks at its server no more."""
        self.reader.close()
        if self._head is not None:
            self._head.close()

    def _make(self, number: int, start: LogPosition, limit_bytes: int | None, stop: LogPosition | None) -> Plan | None:
        if self._history is not None and self._history.last_number != self.store.last_number():
            self._history = None  # another stream of this store recorded meanwhile
        history = self.history
        self.continuity.check()
        base = self.stored(number).version if number else history.first_number
        stops = self._stops_by_filter(number, base, start)
        begun = set(self._begun(number))
        if self.copier is not None:
            # Tables that come into view are copied: what they held by then is not in the log.
            begun |= {i for i, stop in stops.items() if stop is None}
        walk = Walk(
            history,
            base,
            self.store,
            self.captured,
            self.reader.flavor,
            start,
            self.online_changes,
            accept_cascades=self.accept_cascades,
            find_prepared=find_prepared(self.reader, start),
            find_copied=find_copied(self.reader),
            on_unlogged=self.on_unlogged,
            taken_in=None if self.copier is None else begun,
            topics=MetSchemas(history, self.store.passages()) if self.reader.flavor == KAFKA else None,
        )
        bounds: list[Bound] = []
        with self._marked():
            for item in self.reader.scan(start, limit_bytes=limit_bytes, until=stop):
                bound = walk.take(item)
                if bound is not None:
                    bounds.append(bound)
        if not bounds:
            return None
        self.event_time_us = bounds[-1].event_time_us or self.event_time_us
        self.continuity.note(bounds[-1].position)
        with self._learned(walk.new_entries, walk.reached) as stored:
            tables = self.planned(base, walk.number, walk.touched, start, walk.quarantines)
            tables = tuple(replace(table, proven=walk.proven.get(table.table_id)) for table in tables)
            with_rows_here = tables  # what the configuration leaves out has none, wherever in the log it stops
            tables = tuple(sorted((*tables, *self._stopped_tables(base, stops)), key=lambda table: table.table_id))
            plan = self.plan_behind(
                self.stored(number) if number else None,
                start=start,
                end=bounds[-1].position,
                ranges=self.planned_ranges(walk, start, bounds, with_rows_here)
                if tables or walk.topics is not None
                else (),
                tables=tables,
                version=walk.number,
            )
            plan = replace(plan, captured=filter_text(self.captured))
            if self.copier is None:
                return stored(plan, marks=bounds[-1].marks)
            # Rows of prepared transactions are not told by table.
            with_rows = None if walk.commits else walk.with_rows
            ranges = partial(self.ranges_of, walk, start, bounds)
            parents = parent_log(history, base, walk.number, with_rows, walk.unread, ranges)
            with closing(self.copier.with_copies(plan, begun, parents)) as copying:
                return stored(copying.plan, copying.copied)

    @contextmanager
    def _learned(self, entries: Sequence[TimelineEntry], resolved: LogPosition) -> Iterator[Callable[..., Plan]]:
        """The history has *entries*; it keeps them where what this gives has stored them with their plan.

        A scan of topics goes by what is known. With entries alone in the store, the next one could end elsewhere.
        """
        history, after = self.history, self.history.last_number
        try:
            for entry in entries:
                history.record(entry)
            history.resolve(resolved)
            yield partial(self._stored, entries=entries, resolved=resolved, after=after)
        except BaseException:
            self._history = None  # read anew from the store
            raise

    def _copying_plan(self, number: int, start: LogPosition) -> Plan | None:
        """A plan without any log, which copies rows as of *start*; None where there is nothing to copy, or not now.

        Tables that come into view or leave it do so with it: a source that is quiet has no log that a plan would be made of.
        """
        if self.copier is None or not self.copier.is_free:
            return None
        last = self.stored(number) if number else None
        version = self.history.first_number if last is None else last.version
        stops = self._stops_by_filter(number, version, start)
        begun = {*self._begun(number), *(i for i, stop in stops.items() if stop is None)}
        plan = replace(
            self.plan_behind(
                last, start=start, end=start, tables=self._stopped_tables(version, stops), version=version
            ),
            captured=filter_text(self.captured),
        )
        with closing(self.copier.with_copies(plan, begun)) as copying:
            # Whoever lets a table go on that had left relies on a plan which takes it in: else it would come into view once more.
            is_news = copying.is_news or stops or not is_noted(self.captured, last)
            return self._stored(copying.plan, copying.copied) if is_news else None

    def _stopped_tables(self, base: int, stops: Mapping[int, Quarantine | None]) -> tuple[PlannedTable, ...]:
        """The tables of *stops* that stop, as a plan behind version *base* has them."""
        stopped = ((i, stop) for i, stop in sorted(stops.items()) if stop is not None)
        return tuple(stopped_table(self.history, i, base, stop, self.type_options) for i, stop in stopped)

    def _begun(self, number: int) -> tuple[int, ...]:
        """Ids of the tables whose rows are copied from the plan behind plan *number* on."""
        if number or self.copier is None:
            return ()
        tables = self.history.catalog_at(self.history.first_number).tables
        return tuple(snapshot.table_id for name, snapshot in tables.items() if self.captured(name))

    def _stored(self, plan: Plan, copied: Iterable[bytes] = (), marks: SourceMarks | None = None, **told: Any) -> Plan:
        check_type_options(plan, self.store.type_options())
        self.store.append_plan(plan, copied, marks, **told)
        return plan

    def plan_behind(
        self,
        last: Plan | None,
        *,
        start: LogPosition,
        end: LogPosition,
        tables: tuple[PlannedTable, ...],
        version: int,
        ranges: tuple[PlannedRange, ...] = (),
    ) -> Plan:
        """The plan behind *last*, under the same filter; None: the first one. It is not stored."""
        return Plan(
            number=1 if last is None else last.number + 1,
            previous=0 if last is None else last.number if last.tables else last.previous,
            connector=self.connector,
            start=start,
            end=end,
            ranges=ranges,
            tables=tables,
            version=version,
            system_time_us=self.clock_us(),
            revision=self.revision,
            captured="" if last is None else last.captured,
        )

    def planned(
        self,
        base: int,
        last: int,
        touched: Collection[int],
        start: LogPosition,
        quarantines: Mapping[int, Quarantine] | None = None,
    ) -> tuple[PlannedTable, ...]:
        """The tables of a plan from *start* on, as :func:`historian.plans.segments.planned_tables` has them.

        Args:
            base, last: numbers of the last entries at its start and at its end.
            touched: ids of tables that it names, with edits there or not.
            quarantines: by table id; those of the store unless they are given.
        """
        return planned_tables(
            self.history,
            base=base,
            last=last,
            captured=self.captured,
            touched=touched,
            quarantines=self.store.quarantines() if quarantines is None else quarantines,
            start=start,
            sets_aside=self.online_changes.sets_aside,
            type_options=self.type_options,
        )

    def planned_ranges(
        self, walk: Walk, start: LogPosition, bounds: Sequence[Bound], tables: tuple[PlannedTable, ...]
    ) -> tuple[PlannedRange, ...]:
        """The log from *start* to the last of *bounds* as ranges of a plan with *tables*."""
        if walk.topics is not None:
            return walk.topics.ranges(tuple(part for bound in bounds for part in bound.partitions), tables)
        return self.ranges_of(walk, start, bounds)

    def ranges_of(self, walked: WalkedXa, start: LogPosition, bounds: Sequence[Bound]) -> tuple[LogRange, ...]:
        """The log from *start* to the last of *bounds* as a plan's ranges, with the XA transactions that were met there."""
        size_bytes = range_bytes_between(start, bounds[-1].position if bounds else start, self.range_bytes)
        ranges = cut_ranges(start, bounds, size_bytes)
        ranges = attached(ranges, walked.rolled_back, walked.commits)
        return ranges_with_type_options(ranges, self.type_options, self.history)

    def _stops_by_filter(self, number: int, base: int, start: LogPosition) -> dict[int, Quarantine | None]:
        """Stops, in the store, tables that the configuration takes in or leaves out otherwise than with plan *number*; by id.

        None: one that comes into view for the first time, whose rows are copied.
        """
        before = self.stored(number).captured if number else ""
        if not before or before == filter_text(self.captured):
            return {}
        held = self.store.quarantines()
        stops: dict[int, Quarantine | None] = {}
        for table_id, name, stop in stops_by_filter(before, self.captured, self.history.catalog_at(base), start):
            if self.copier is not None and self.captured(name) and table_id not in held:
                stops[table_id] = None
                continue
            # One that stopped with the same change, before a plan could be made, is part of the next plan.
            if table_id not in held or held[table_id] == stop:
                _log.warning("table %s is stopped: %s", name, stop.reason, extra={"table": str(name)})
                self.store.quarantine(table_id, name, stop)
                stops[table_id] = stop
        return stops
