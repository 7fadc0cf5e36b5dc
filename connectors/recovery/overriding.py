"""The user gives a statement for one that was not understood: its table goes on from its stop without a gap.

The log is read again from there for this table alone: a plan of its own brings its rows up to where the others are. The
connector must not run meanwhile; all is stored in one transaction. What topics tell again is :mod:`connectors.recovery.overriding_topics`'s.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from connectors.readers.base import Bound, Scanned, SchemaMet, Statement, TableMapped, XaCommitted
from connectors.readers.binlog.events.crosscheck import mismatch
from connectors.recovery.given_statements import catalog_with, edits_of, is_stopped_by, resolved_edits
from connectors.recovery.healing import HealResult, stops_of
from connectors.recovery.overriding_topics import Overridden, told_again
from connectors.tracking.prepared_transactions import Commit, prepared_table
from connectors.tracking.type_options import check_type_options
from connectors.tracking.walk import behind_event
from historian.charsets.client_text import printable
from historian.ddl import StatementContext, resolve
from historian.errors import ConfigError, SourceError, StoreError, UnknownTable
from historian.history.prefix import Prefix, holds
from historian.history.timeline import TimelineEntry
from historian.names import TableName
from historian.plans.plans import Plan, PreparedRows, PreparedTable, Quarantine, RolledBack
from historian.plans.segments import resumed_table
from historian.positions import KAFKA
from historian.positions.places import Place
from historian.schema.applying import apply_all
from historian.schema.edits import Edit, RenameTable
from historian.schema.gaps import ResumeTable
from historian.schema.snapshots import Catalog, Snapshot

if TYPE_CHECKING:
    from connectors.readers.base import Reader
    from connectors.tracking.tracker import Tracker
    from historian.history.history import History
    from historian.positions import LogPosition

__all__ = ["override"]


def override(tracker: Tracker, name: TableName, sql: str, *, limit_bytes: int | None = None) -> HealResult:
    """Applies *sql* in place of the statement at the table's stop; "": that one changed nothing.

    Args:
        tracker: of the connector, whose lease the caller holds.
        name: of the table, when it stopped.
        sql: a statement on that table alone, in the server's own language.
        limit_bytes: of log that a plan takes at most, where the log is read to its present end first.

    Raises:
        UnknownTable: no such table is stopped.
        ConfigError: the statement is not understood, or not on that table.
        LogPurged: the log behind the stop is gone; only a capture can heal the table.
        SourceError: the log has nothing at the stop: the configuration stopped the table, or a topic was compacted.
        StoreError: the plans of that time are forgotten.
    """
    stops_of(tracker, name)
    tracker.catch_up(limit_bytes=limit_bytes)
    stops = stops_of(tracker, name)
    # Behind its stop a table may be met as one that is not known at all.
    table_id, stopped, quarantine = stop = max(stops, key=lambda stop: stop[0])
    last = tracker.store.last_plan()
    assert last is not None  # noqa: S101 a table stops in a plan, or behind one
    first = _plan_of(tracker, quarantine.place, last)
    if tracker.reader.flavor == KAFKA:
        found = told_again(tracker, stop, sql, first, last)
    else:
        found = _read_again(tracker, _Rereading(tracker.history, table_id, stopped, quarantine, sql), first.start, last)
    if found is None:
        raise SourceError(
            "the log has no event at the place where the table stopped",
            where=f"{name} at {quarantine.place}",
            found=quarantine.reason.splitlines()[0],
            next_step="`historian heal` captures the table again",
        )
    if found.plan is not None:
        check_type_options(found.plan, tracker.store.type_options())
    # A later name of the table may have been told as that of one that is not known.
    edits = (edit for entry in found.entries for edit in entry.edits)
    names = {stopped, *(edit.new for edit in edits if isinstance(edit, RenameTable))}
    # Another table that stopped under the name is not followed here, and stays so.
    followed = [stop for stop in stops if stop[0] in (0, table_id)]
    healed = [stop[:2] for stop in tracker.store.stopped() if stop in followed or (not stop[0] and stop[1] in names)]
    tracker.store.heal(healed, found.entries, plans=() if found.plan is None else (found.plan,))
    return HealResult(table=name, position=found.before, since=None, version=found.entries[0].number)


def _read_again(tracker: Tracker, rereading: _Rereading, begin: LogPosition, last: Plan) -> Overridden | None:
    for item in tracker.reader.scan(begin, until=last.end):
        rereading.take(item, tracker.reader)
    if not rereading.entries:
        return None
    for entry in rereading.entries:
        tracker.history.record(entry)
    plan = _catch_up(tracker, last, rereading)
    return Overridden(before=rereading.before, entries=tuple(rereading.entries), plan=plan)


def _plan_of(tracker: Tracker, place: Place, last: Plan) -> Plan:
    """The plan in which *place* lies."""
    plan: Plan | None = last
    while plan is not None and holds(plan.start, place, plan.start.server):
        plan = tracker.store.plan(plan.number - 1)
    if plan is None:
        raise StoreError(
            "the plan in which the table stopped is forgotten",
            where=str(place),
            next_step="`historian heal` captures the table again",
        )
    return plan


@dataclass
class _Rereading:
    """Carries one table along the log from before its stop.

    Attributes:
        before: the bound before the stop's transaction.
        bounds: behind it.
        entries: what the timeline gains: of the stop, and of the table's statements behind it.
        stop: where the table stops again, if it does.
        commits, rolled_back: XA COMMITs behind the stop, and what was rolled back.
    """

    history: History
    table_id: int
    name: TableName
    quarantine: Quarantine
    sql: str
    bounds: list[Bound] = field(default_factory=list)
    entries: list[TimelineEntry] = field(default_factory=list)
    stop: Quarantine | None = None
    own: Snapshot | None = None
    commits: list[Commit] = field(default_factory=list)
    rolled_back: list[RolledBack] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._own_at: dict[tuple[str, str, int], Snapshot | None] = {}
        self.reached = self.before = self.history.origin
        self.names = {self.name}
        self._context = StatementContext(database=self.name.database)

    def take(self, item: Scanned, reader: Reader) -> None:
        flavor = reader.flavor
        if isinstance(item, Bound):
            self.reached = replace(item.position, pending=())
            for xa in item.position.pending:
                self._own_at.setdefault((xa.xid, xa.file, xa.offset), self.own)
            if self.entries:
                self.bounds.append(item)
            return
        if isinstance(item, RolledBack):
            self.rolled_back.append(item)
            return
        if isinstance(item, XaCommitted | SchemaMet):  # topics, which tell schemas, have no statements
            if self.entries and isinstance(item, XaCommitted):
                self._committed(item, reader)
            return
        if isinstance(item, Statement):
            self._context = item.context
        if not self.entries:
            if _is_same(item.place, self.quarantine.place):
                self._begin(item, flavor)
        elif self.stop is None and isinstance(item, Statement):
            self._statement(item)
        if self.entries and self.stop is None and isinstance(item, TableMapped):
            self._mapped(item, flavor)

    def _begin(self, item: Statement | TableMapped, flavor: str) -> None:
        self.before = self.reached
        context = replace(self._context, flavor=flavor, database=self._context.database or self.name.database)
        resumed: tuple[Edit, ...] = ()
        if self.table_id:
            held = _before(self.history, self.table_id, self.before)
            reason = f"a statement was given for the event at {item.place}"
            resumed = (
                ResumeTable(table=held.name, snapshot=held, unknown_since=None, loses_rows=False, reason=reason),
            )
            if held.name != self.name:
                resumed += (RenameTable(table=held.name, table_id=self.table_id, new=self.name),)
        catalog = self._catalog(resumed)
        edits = resolved_edits(self.sql, context, catalog, self.name)
        self._record(item, (*resumed, *edits), self.sql)
        if self.own is None:
            raise ConfigError(
                "the given statement leaves no table of that name", problems=(self.sql,), where=str(self.name)
            )

    def _catalog(self, edits: tuple[Edit, ...]) -> Catalog:
        """The catalog with the table as it is here, and *edits* on it."""
        return apply_all(edits, catalog_with(self.history.catalog, self.table_id, self.own, self.name, self.names))

    def _statement(self, statement: Statement) -> None:
        if self.own is None:
            return
        resolution = resolve(statement.sql, statement.context, self._catalog(()))
        edits = edits_of(resolution.edits, self.own.name)
        if resolution.kind != "rows" and is_stopped_by(resolution, self.own.name):
            reason = f"{resolution.reason}\n  in: {printable(statement.sql[:200])}"
            self.stop = Quarantine(place=statement.place, reason=reason, since=self.reached)
        elif edits:
            self._record(statement, edits, printable(statement.sql))
        if resolution.kind == "rows" and self._is_among(resolution.tables):
            reason = f"{resolution.reason}\n  in: {printable(statement.sql[:200])}"
            self.stop = Quarantine(place=statement.place, reason=reason, since=self.reached)

    def _is_among(self, tables: Sequence[TableName]) -> bool:
        return self.own is not None and self.own.name in tables

    def _mapped(self, mapped: TableMapped, flavor: str) -> None:
        if self.own is None or mapped.table != self.own.name:
            return
        difference = mismatch(self.own, mapped.columns, flavor)
        if difference is not None:
            if _is_same(mapped.place, self.quarantine.place) or len(self.entries) == 1:
                raise ConfigError(
                    "the table's rows do not fit the given statement",
                    problems=(difference,),
                    where=f"{mapped.table} at {mapped.place}",
                )
            reason = f"the log's TABLE_MAP does not fit the schema in force\n{difference}"
            self.stop = Quarantine(place=mapped.place, reason=reason, since=self.reached)

    def _committed(self, item: XaCommitted, reader: Reader) -> None:
        """Takes an XA COMMIT behind the stop; its rows can be from before it."""
        xa = reader.look_back(item.xid, item.place)[0] if item.xa is None else item.xa
        then = self._own_at.get((xa.xid, xa.file, xa.offset))
        if then is None and self.table_id:
            then = _before(self.history, self.table_id, self.before)
        tables: tuple[PreparedTable, ...] = ()
        if then is not None and self.own is not None and then.name in xa.tables and self.stop is None:
            table = prepared_table(then.name, then, self.own)
            if table is None:
                reason = f"its schema changed since in a way that its rows cannot follow\n  for {xa}"
                self.stop = Quarantine(place=item.place, reason=reason, since=self.reached)
            else:
                tables = (table,)
        self.commits.append(Commit(place=item.place, rows=PreparedRows(xa=xa, tables=tables)))

    def _record(self, item: Statement | TableMapped, edits: tuple[Edit, ...], sql: str) -> None:
        after = apply_all(edits, self._catalog(()))
        if not self.table_id and self.name in after.tables:
            self.table_id = after.tables[self.name].table_id
        self.own = next((s for s in after.tables.values() if s.table_id == self.table_id), None)
        if self.own is not None:
            self.names.add(self.own.name)
        self.entries.append(
            TimelineEntry(
                number=self.history.last_number + len(self.entries) + 1,
                place=behind_event(item),
                position=self.reached,
                edits=edits,
                statement=sql,
                database=self._context.database,
                event_time_us=item.event_time_us if isinstance(item, Statement) else 0,
                server=self.reached.server,
                corrects=True,
            )
        )


def _before(history: History, table_id: int, position: LogPosition) -> Snapshot:
    """The table's schema at the end of the log prefix *position*."""
    prefix = Prefix(position)
    for version in reversed(history.versions_of(table_id)):
        if version.snapshot is not None and prefix.holds(version.entry):
            return version.snapshot
    raise UnknownTable("the table has no schema before its stop", where=f"table id {table_id} at {position}")


def _catch_up(tracker: Tracker, last: Plan, rereading: _Rereading) -> Plan | None:
    """The plan that brings the table's rows from its stop to the end of the last plan."""
    history = tracker.history
    new = {entry.number for entry in rereading.entries}
    versions = tracker.type_options.applied(history.versions_of(rereading.table_id))
    prefix = Prefix(rereading.before)
    held = [v for v in versions if v.number not in new and v.snapshot is not None and prefix.holds(v.entry)]
    chain = [*held[-1:], *(v for v in versions if v.number in new)]
    table = resumed_table(chain, min(new) - 1, tracker.captured, rereading.stop)
    if table is None:
        return None
    return tracker.plan_behind(
        last,
        start=rereading.before,
        end=last.end,
        ranges=tracker.ranges_of(rereading, rereading.before, rereading.bounds),
        tables=(table,),
        version=history.last_number,
    )


def _is_same(place: Place, other: Place) -> bool:
    if place.gtid or other.gtid:
        return (place.gtid, place.ordinal) == (other.gtid, other.ordinal)
    return (place.file, place.offset, place.ordinal) == (other.file, other.offset, other.ordinal)
