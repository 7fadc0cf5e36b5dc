"""Stopped tables go on, captured anew behind a gap.

The connector must not run meanwhile. Everything that a command decides is stored in one transaction; run again after a
failure it does the same, or finds nothing to do.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from connectors.readers.base import XaCommitted
from connectors.tracking.first_schema import touched_behind
from connectors.tracking.proven_schemas import known_until
from historian.errors import LogPurged, SourceError, UnknownTable
from historian.history.prefix import covers
from historian.history.timeline import TimelineEntry
from historian.names import TableName
from historian.plans.plans import Quarantine
from historian.positions import KAFKA
from historian.schema.edits import CreateTable, DropDatabase, DropTable, Edit, SetDatabase
from historian.schema.gaps import ResumeTable, SkipLog
from historian.schema.generated_columns import under_ids
from historian.schema.snapshots import Catalog, Column, Snapshot
from historian.schema.type_compatibility import resembles, retyped

if TYPE_CHECKING:
    from connectors.tracking.tracker import Tracker
    from historian.positions import LogPosition

__all__ = ["HealResult", "heal", "skip_lost_log", "stops_of"]

_TRIES = 5
_LOST = "the log was purged before it was read"


@dataclass(frozen=True, slots=True, kw_only=True)
class HealResult:
    """What a command did.

    Attributes:
        table: that goes on, from ``position`` on.
        since: behind it and up to ``position`` neither schema nor rows of the table are known; None: nothing is missing.
        version: number of the version that it goes on with.
    """

    table: TableName
    position: LogPosition
    since: LogPosition | None
    version: int


def heal(tracker: Tracker, name: TableName, *, limit_bytes: int | None = None) -> HealResult:
    """Captures a stopped table from the server, exactly at the end of the log that was read; it goes on from there.

    Of topics it is taken from the file ``source.schema``, which says what it is at their end.

    The log is read to its present end first. What the table was between its last proven schema and there is not known.

    Args:
        tracker: of the connector, whose lease the caller holds.
        name: of the table, now or when it stopped.
        limit_bytes: of log that a plan takes at most.

    Raises:
        UnknownTable: no such table is stopped, or the server has none.
        SourceError: there is neither a server nor a file to ask, or statements on the table follow each other too quickly.
    """
    position, present = _captured(tracker, name, limit_bytes)
    history = tracker.history
    stops = stops_of(tracker, name)
    found = present.tables.get(name)
    if found is None:
        raise UnknownTable(
            "what says which tables there are lacks the one that is to be captured",
            where=str(name),
            found=present.unknown.get(name, "no such table"),
        )
    since: LogPosition | None = None
    edits: list[Edit] = []
    held = history.catalog.tables.get(name)
    for table_id, _, quarantine in stops:
        old = _last_known(tracker, table_id)
        if old is not None and (held is None or held.table_id == table_id):
            since = quarantine.since or known_until(history, tracker.store, table_id) or history.origin
            reason = f"captured anew at {position}; it had stopped: {quarantine.reason.splitlines()[0]}"
            resumed = _identified(found, old)
            edits.append(ResumeTable(table=old.name, snapshot=resumed, unknown_since=since, reason=reason))
    if held is None and not edits:
        edits.append(CreateTable(snapshot=found))
    entries = (_capture_entry(tracker, position, edits),) if edits else ()
    tracker.store.heal([(table_id, stopped) for table_id, stopped, _ in stops], entries)
    for entry in entries:
        history.record(entry)
    return HealResult(table=name, position=position, since=since, version=history.last_number)


def skip_lost_log(tracker: Tracker) -> HealResult:
    """Goes on behind a part of the log that was purged before it was read: all tables are captured anew at its end.

    Between the last position that was read and there nothing is known, of any table.

    Raises:
        SourceError: no log is lost, there is no server to ask, or statements follow each other too quickly.
        LogPurged: it was not purged: the server has another history.
        LogReplaced: the log was reset.
    """
    last = tracker.store.last_plan()
    start = tracker.end_of(0 if last is None else last.number)
    _check_lost(tracker, start)
    position, present = _captured_at_end(tracker)
    history = tracker.history
    known = history.catalog
    edits: list[Edit] = [SkipLog(start=start, reason=_LOST)]
    edits += [
        DropTable(table=table, table_id=snapshot.table_id)
        for table, snapshot in known.tables.items()
        if table not in present.tables
    ]
    edits += [DropDatabase(name=database) for database in known.databases if database not in present.databases]
    edits += [SetDatabase(database=d) for n, d in present.databases.items() if known.databases.get(n) != d]
    for table, found in present.tables.items():
        old = known.tables.get(table)
        if old is None:
            edits.append(CreateTable(snapshot=found))
        else:
            resumed = _identified(found, old)
            edits.append(ResumeTable(table=table, snapshot=resumed, unknown_since=start, reason=_LOST))
    entry = _capture_entry(tracker, position, edits)
    # A plan without tables over what is lost: the next one begins behind it.
    bridge = tracker.plan_behind(last, start=start, end=position, tables=(), version=history.last_number)
    tracker.store.heal((), (entry,), resolved=position, plans=(bridge,))
    history.record(entry)
    history.resolve(position)
    return HealResult(table=TableName("*", "*"), position=position, since=start, version=entry.number)


def stops_of(tracker: Tracker, name: TableName) -> tuple[tuple[int, TableName, Quarantine], ...]:
    """The stops of the table that has that name, or had it when it stopped: id (0: never known), name then, and why.

    Raises :class:`UnknownTable` where none is.
    """
    held = tracker.history.catalog.tables.get(name)
    found = tuple(
        stop
        for stop in tracker.store.stopped()
        if stop[1] == name or (held is not None and stop[0] and stop[0] == held.table_id)
    )
    if not found:
        stopped = sorted(str(stop[1]) for stop in tracker.store.stopped())
        raise UnknownTable(
            "the connector has not stopped that table",
            where=str(name),
            expected=f"one of {', '.join(stopped)}" if stopped else "a stopped table; none is",
            next_step="`historian status` says what is stopped; a table that its sink has stopped is not healed this way",
        )
    return found


def _captured(tracker: Tracker, name: TableName, limit_bytes: int | None) -> tuple[LogPosition, Catalog]:
    """The end of what was read, and the present schemas, between which no statement on the table stands."""
    stops_of(tracker, name)
    for _ in range(_TRIES):
        position = tracker.end_of(tracker.catch_up(limit_bytes=limit_bytes))
        present = _capture(tracker)
        if name not in touched_behind(tracker.reader, position, Catalog())[0]:
            return position, present
    raise _too_quick(str(name))


def _captured_at_end(tracker: Tracker) -> tuple[LogPosition, Catalog]:
    for _ in range(_TRIES):
        position = tracker.reader.end()
        present = _capture(tracker)
        if touched_behind(tracker.reader, position, Catalog()) == ({}, set()):
            return position, present
    raise _too_quick("all tables")


def _capture(tracker: Tracker) -> Catalog:
    if tracker.reader.flavor == KAFKA:
        return _of_file(tracker)
    if tracker.capture is None:
        raise SourceError(
            "there is no server to capture tables from",
            where="source",
            expected="a source of type mysql or mariadb",
            next_step="`historian ddl-override` says what a statement did, and needs none",
        )
    known = tracker.history.catalog
    return tracker.capture(known.next_table_id, known.next_column_id)


def _of_file(tracker: Tracker) -> Catalog:
    """The tables that source.schema gives, under ids that no other has: topics have no server to ask what a table is by now."""
    if tracker.schema is None:
        raise SourceError(
            "no file says what the table is by now",
            where="source",
            expected="source.schema, an SQL file of CREATE TABLE statements: topics have no server to ask",
            next_step="declare the table as it is at the topics' end, then try again",
        )
    known = tracker.history.catalog
    tables: dict[TableName, Snapshot] = {}
    next_column_id = known.next_column_id
    for number, (name, found) in enumerate(tracker.schema.tables.items(), known.next_table_id):
        ids = {column.id: at for at, column in enumerate(found.columns, next_column_id)}
        next_column_id += len(ids)
        tables[name] = replace(
            found,
            table_id=number,
            columns=tuple(under_ids(column, ids) for column in found.columns),
            primary_key=tuple(ids[column] for column in found.primary_key),
            unique_keys=tuple(replace(k, columns=tuple(ids[c] for c in k.columns)) for k in found.unique_keys),
            other_keys=tuple(replace(k, columns=tuple(ids[c] for c in k.columns)) for k in found.other_keys),
        )
    return replace(tracker.schema, tables=tables)


def _too_quick(what: str) -> SourceError:
    return SourceError(
        "statements change tables while they are captured",
        where=what,
        expected="a moment without ALTER, RENAME or TRUNCATE",
        found=f"some in each of {_TRIES} tries",
        next_step="try again",
    )


def _check_lost(tracker: Tracker, start: LogPosition) -> None:
    tracker.continuity.check()
    try:
        tracker.reader.locate(start)
        # The rows of an XA transaction can be lost, though all behind the position is there.
        for item in tracker.reader.scan(start):
            if isinstance(item, XaCommitted) and item.xa is None:
                tracker.reader.look_back(item.xid, item.place)
    except LogPurged:
        end = tracker.reader.end()
        if not covers(end, start):
            raise
        return
    raise SourceError(
        "no log is lost",
        where=str(start),
        found="the log behind what was read last is all there",
        next_step="`historian run` goes on from there",
    )


def _last_known(tracker: Tracker, table_id: int) -> Snapshot | None:
    versions = tracker.history.versions_of(table_id)
    return next((version.snapshot for version in reversed(versions) if version.snapshot is not None), None)


def _identified(found: Snapshot, old: Snapshot) -> Snapshot:
    """*found* as the table *old*: columns of one name and kind, with a type that holds the old one's values, are the same."""
    kept = {
        column.id: before
        for column in found.columns
        if (before := old.column(column.name)) is not None and resembles(before.type, column.type)
    }
    ids = {number: before.id for number, before in kept.items()}
    same: dict[int, Column] = {}
    for column in found.columns:
        if column.id in kept:
            before = kept[column.id]
            initial = retyped(before, column.type).initial
            same[column.id] = replace(under_ids(column, ids), initial=initial, initial_known=before.initial_known)
        else:
            same[column.id] = replace(under_ids(column, ids), initial_known=False)
    return replace(
        found,
        table_id=old.table_id,
        columns=tuple(same[column.id] for column in found.columns),
        primary_key=tuple(same[column].id for column in found.primary_key),
        unique_keys=tuple(replace(k, columns=tuple(same[c].id for c in k.columns)) for k in found.unique_keys),
        other_keys=tuple(replace(k, columns=tuple(same[c].id for c in k.columns)) for k in found.other_keys),
    )


def _capture_entry(tracker: Tracker, position: LogPosition, edits: list[Edit]) -> TimelineEntry:
    return TimelineEntry(
        number=tracker.history.last_number + 1,
        place=None,
        position=position,
        edits=tuple(edits),
        statement="",
        database="",
        event_time_us=tracker.clock_us(),
        server=position.server,
    )
