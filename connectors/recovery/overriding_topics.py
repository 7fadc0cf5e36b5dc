"""A statement given for a stopped table of topics: what partitions held back from its stop on is told again, for it alone.

In the partition of the statement or row that stopped it, the table stops right there. In others it stops at their first row from behind that, by
the source's time. What stands before has been delivered, and is not read again.
"""

from __future__ import annotations

from collections.abc import Collection
from contextlib import closing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from connectors.readers.base import SchemaMet, Statement
from connectors.recovery.given_statements import catalog_with, edits_of, is_stopped_by, resolved_edits
from connectors.recovery.held_back import delivered_of, held_back, position_of, told_between
from connectors.tracking.rereading import passages_before
from connectors.tracking.stop_reasons import emptied_apart, is_parted_late, why_stopped
from connectors.tracking.topics.met_schemas import MetSchemas
from connectors.tracking.walk import Walk
from historian.charsets.client_text import printable
from historian.ddl import StatementContext, resolve
from historian.errors import ConfigError, EditConflict, UnknownTable
from historian.history.timeline import TimelineEntry
from historian.history.versions import touched_names
from historian.names import TableName
from historian.plans.plans import Plan, Quarantine
from historian.plans.segments import resumed_table, retracts
from historian.positions import KAFKA, LogPosition
from historian.schema.applying import apply_all
from historian.schema.edits import CreateTable, DropTable, Edit, ForgetTable, RenameTable
from historian.schema.gaps import ResumeTable
from historian.schema.snapshots import Snapshot
from historian.store import Store

if TYPE_CHECKING:
    from connectors.tracking.tracker import Tracker
    from historian.history.history import History
    from historian.history.versions import Version

__all__ = ["Overridden", "told_again"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Overridden:
    """What a given statement makes.

    Attributes:
        before: up to where the table's rows were delivered.
        entries: of the timeline, at least one: the statement's, and those of what follows on the table.
        plan: with the rows that were held back; None: the table has none that are wanted.
    """

    before: LogPosition
    entries: tuple[TimelineEntry, ...]
    plan: Plan | None


def told_again(
    tracker: Tracker, stop: tuple[int, TableName, Quarantine], sql: str, first: Plan, last: Plan
) -> Overridden | None:
    """Follows a stopped table from its stop on, as if *sql* had stood there. Stores nothing.

    Args:
        stop: the table's id, its name then, and why it stopped.
        first, last: the plan in which it stopped, and the last one.

    Returns:
        None where nothing stands at the stop.

    Raises:
        ConfigError: the statement is not understood, not on that table, or not what rows behind it tell.
        UnknownTable: another table has its name by now, or had it meanwhile.
        LogPurged: messages behind the stop are gone.
    """
    table_id, name, quarantine = stop
    delivered = delivered_of(first, table_id, quarantine.place)
    before = position_of(first.start, delivered)
    told = tuple(told_between(tracker, first, last, before))
    items = [item for found, _ in told for item in found]
    cause = next((item for item in items if item.place == quarantine.place and _is_of(item, name)), None)
    if cause is None:
        return None
    if isinstance(cause, Statement) and is_parted_late(quarantine.reason):
        cause = replace(cause, apart=True)
    history = tracker.store.history()
    held = _held(history, first, table_id)
    entry, own = _given(history, held, cause, name, sql, before)
    history.record(entry)
    met = MetSchemas(history, passages_before(tracker, before))
    with closing(Store.open("sqlite://")) as scratch:
        names = {name, own.name} | ({held.snapshot.name} if held is not None and held.snapshot is not None else set())
        walk = Walk(
            history,
            entry.number,
            scratch,
            names.__contains__,
            KAFKA,
            before,
            topics=met,
        )
        known = entry.number - 1 if held is None else held.number
        following = _Following(walk, own.table_id, names, cause, known)
        for item in items:
            # Of what stood before the stop nothing is the table's any more.
            if item.place.offset >= delivered.get(item.place.file, 0):
                try:
                    following.take(item)
                except EditConflict as error:
                    raise _shared(name, item.sql if isinstance(item, Statement) else "") from error
    previous = tracker.store.plan(first.number - 1)
    since = 0 if previous is None else previous.version
    _check_names(walk, following, since, entry, cause, own.table_id)
    entries = (entry, *(replace(each, corrects=True) for each in walk.new_entries))
    for each in entries[1:]:
        history.record(each)
    versions = tracker.type_options.applied(history.versions_of(own.table_id))
    kept = [each for each in versions if held is not None and each.number == held.number]
    new = [each for each in versions if each.number >= entry.number]
    again = walk.quarantines.get(own.table_id)
    table = resumed_table([*kept, *new], entry.number - 1, tracker.captured, again)
    if table is None:
        return Overridden(before=before, entries=entries, plan=None)
    ranges = met.ranges(held_back(told, delivered), (table,))
    plan = tracker.plan_behind(
        last, start=before, end=last.end, ranges=ranges, tables=(table,), version=history.last_number
    )
    return Overridden(before=before, entries=entries, plan=plan)


def _check_names(
    walk: Walk, following: _Following, since: int, given: TimelineEntry, cause: SchemaMet | Statement, table_id: int
) -> None:
    """Refuses a table of whose names one was another table's, from the plan on in which it stopped: rows of that name do not say whose they are.

    Args:
        since: number of the last entry before that plan.
    """
    followed = {(each.statement, each.event_time_us): each for each in walk.new_entries}
    stop = (printable(cause.sql), cause.event_time_us) if isinstance(cause, Statement) else None
    for entry in walk.history.entries:
        key = entry.statement, entry.event_time_us
        if not since < entry.number < given.number or key == stop:
            continue
        own = {name for edit in (followed[key].edits if key in followed else ()) for name in touched_names(edit)}
        gained = {
            edit.new for edit in (followed[key].edits if key in followed else ()) if isinstance(edit, RenameTable)
        }
        for edit in entry.edits:
            theirs = set(touched_names(edit)) & set(following.names)
            if isinstance(edit, ForgetTable):
                theirs -= gained if edit.reason else own
            elif _holder(edit) in (None, table_id):
                continue
            if theirs:
                raise _shared(min(theirs), entry.statement)


def _holder(edit: Edit) -> int | None:
    """Id of the table that gets a name by *edit*, or loses it; None: none does."""
    if isinstance(edit, CreateTable):
        return edit.snapshot.table_id
    return edit.table_id if isinstance(edit, DropTable | RenameTable) else None


def _shared(name: TableName, sql: str) -> UnknownTable:
    return UnknownTable(
        "another table had one of the stopped one's names meanwhile, so that rows do not say whose they are",
        where=str(name),
        expected="no other statement on that name, from the plan on in which the table stopped",
        found=printable(sql[:200]),
        next_step="historian heal: the table goes on from the present, with that gap",
    )


def _is_of(item: SchemaMet | Statement, name: TableName) -> bool:
    return isinstance(item, Statement) or item.table == name


def _held(history: History, first: Plan, table_id: int) -> Version | None:
    """The table's version before its stop; None: it was never known."""
    if not table_id:
        return None
    planned = next((table for table in first.tables if table.table_id == table_id), None)
    number = first.version if planned is None else planned.versions[-1].version
    for version in reversed(history.versions_of(table_id)):
        if version.number <= number and version.snapshot is not None:
            return version
    raise UnknownTable("the table has no schema before its stop", where=f"table id {table_id} at {first.start}")


def _given(
    history: History,
    held: Version | None,
    cause: SchemaMet | Statement,
    name: TableName,
    sql: str,
    before: LogPosition,
) -> tuple[TimelineEntry, Snapshot]:
    """The entry of the given statement, and the table behind it."""
    database = name.database
    if isinstance(cause, Statement):
        context = replace(cause.context, database=cause.context.database or database)
    else:
        context = StatementContext(database=database, charset="utf8mb4", collation="utf8mb4_bin")
    resumed: tuple[Edit, ...] = ()
    table_id = 0
    if held is not None and held.snapshot is not None:
        table_id = held.table_id
        reason = f"a statement was given for the event at {cause.place}"
        resumed = (
            ResumeTable(table=held.name, snapshot=held.snapshot, unknown_since=None, loses_rows=False, reason=reason),
        )
        if held.name != name:
            resumed += (RenameTable(table=held.name, table_id=table_id, new=name),)
    names = {name} if held is None else {name, held.name}
    catalog = apply_all(resumed, catalog_with(history.catalog, table_id, None, name, names))
    edits = resolved_edits(sql, context, catalog, name)
    if isinstance(cause, Statement) and cause.apart and any(map(retracts, edits)):
        raise ConfigError("the given statement empties the table", problems=(emptied_apart(sql),), where=str(name))
    after = apply_all(edits, catalog).tables
    own = next(
        (each for each in after.values() if each.table_id == table_id or (not table_id and each.name == name)), None
    )
    if own is None:
        raise ConfigError("the given statement leaves no table of that name", problems=(sql,), where=str(name))
    entry = TimelineEntry(
        number=history.last_number + 1,
        place=cause.place,
        position=before,
        edits=(*resumed, *edits),
        statement=sql,
        database=context.database,
        event_time_us=cause.event_time_us,
        server=before.server,
        source=cause.source if isinstance(cause, Statement) else "",
        corrects=True,
    )
    return entry, own


class _Following:
    """Takes what is told behind a given statement, for one table.

    Args:
        walk: that begins behind the statement's entry.
        names: all that the table has had, which grow.
        cause: what stopped it; *known*: number of the last entry before it.
    """

    def __init__(
        self, walk: Walk, table_id: int, names: set[TableName], cause: SchemaMet | Statement, known: int
    ) -> None:
        self._walk, self._table_id, self._names, self._cause = walk, table_id, names, cause
        # Statements come in several partitions, and some of them had come before.
        entries = (entry for entry in walk.history.entries if entry.number <= known)
        self._seen = {(entry.statement, entry.event_time_us) for entry in entries}
        self._is_changed = False

    @property
    def names(self) -> Collection[TableName]:
        """All that the table has had so far."""
        return self._names

    def take(self, item: SchemaMet | Statement) -> None:
        """Takes the next one from behind the stop, or the stop itself."""
        if isinstance(item, Statement):
            self._statement(item)
        elif item.table in self._names:
            self._met(item)

    def _met(self, met: SchemaMet) -> None:
        walk, number = self._walk, self._walk.number
        given = self._own()
        walk.take(met)
        quarantine = walk.quarantines.get(self._table_id)
        fits = walk.number == number and (quarantine is None or quarantine.place != met.place)
        if not fits and not self._is_changed and met.event_time_us >= self._cause.event_time_us:
            told = "nothing" if not met.columns else ", ".join(f"{each.name} {each.type}" for each in met.columns)
            has = "no such table" if given is None else ", ".join(f"{each.name} {each.type}" for each in given.columns)
            why = () if quarantine is None else (quarantine.reason,)
            raise ConfigError(
                "the table's rows do not fit the given statement",
                problems=(f"behind the statement it has {has}", f"its rows tell {told}", *why),
                where=f"{met.table} at {met.place}",
            )

    def _own(self) -> Snapshot | None:
        return next((each for each in self._walk.catalog.tables.values() if each.table_id == self._table_id), None)

    def _statement(self, statement: Statement) -> None:
        walk, own = self._walk, self._own()
        key = (printable(statement.sql), statement.event_time_us)
        is_given = isinstance(self._cause, Statement) and self._cause.sql == statement.sql
        if is_given and self._cause.event_time_us == statement.event_time_us:
            return  # in another partition it stands once more
        if own is None or key in self._seen or self._table_id in walk.quarantines:
            return
        self._seen.add(key)
        resolution = resolve(statement.sql, statement.context, walk.catalog)
        edits = edits_of(resolution.edits, own.name)
        reason = ""
        if is_stopped_by(resolution, own.name):
            reason = why_stopped(resolution, statement.sql)
        elif statement.apart and any(map(retracts, edits)):
            edits, reason = (), emptied_apart(statement.sql)
        if reason and resolution.kind == "not_understood" and not any(isinstance(e, ForgetTable) for e in edits):
            edits = (*edits, ForgetTable(table=own.name, reason=reason))
        if reason:
            walk.stop(own.name, statement.place, reason, walk.reached, self._table_id)
        if edits:
            walk.record(statement.place, edits, statement)
            self._is_changed = True
            self._names |= {each.new for each in edits if isinstance(each, RenameTable)}
