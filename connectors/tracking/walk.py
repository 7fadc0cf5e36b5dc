"""One walk over what a scan yields: statements become timeline entries, TABLE_MAPs are checked."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from connectors.readers.base import Bound, Scanned, SchemaMet, Statement, TableMapped, XaCommitted
from connectors.readers.binlog.events.crosscheck import mismatch
from connectors.readers.binlog.events.full_metadata import described
from connectors.tracking.cascades import gets_foreign_key, logs_cascades
from connectors.tracking.copied_rows import FindCopied, unlike_default
from connectors.tracking.prepared_transactions import Commit, FindPrepared, PreparedSchemas
from connectors.tracking.proven_schemas import known_until, with_transaction
from connectors.tracking.stop_reasons import (
    cascades,
    emptied_apart,
    parted_in_moment,
    parted_late,
    renamed_out,
    shown,
    why_stopped,
)
from connectors.tracking.table_names import TableNames, creates
from connectors.tracking.topics.edits import edits_to
from connectors.tracking.topics.met_schemas import MetSchemas
from connectors.tracking.topics.told import TooLittleTold, completed
from historian.charsets.client_text import printable
from historian.ddl import Resolution, StatementContext, resolve
from historian.ddl.resolving.analyzed_tables import analyzed_name, analyzed_table
from historian.ddl.resolving.temporary_tables import TemporaryTables
from historian.errors import UnsupportedEvent
from historian.history.online_schema_changes import NO_TOOLS, OnlineChanges, Swap
from historian.history.prefix import covers, holds
from historian.history.timeline import TimelineEntry
from historian.names import TableName
from historian.plans.plans import Quarantine, RolledBack
from historian.positions import LogPosition
from historian.positions.places import Place
from historian.schema.applying import apply_all
from historian.schema.edits import Edit, ForgetTable, RenameTable
from historian.schema.gaps import ResumeTable
from historian.schema.merge_tables import merged_tables
from historian.schema.snapshots import ANALYZED, SEQUENCE, Catalog, Snapshot

if TYPE_CHECKING:
    from historian.history.history import History
    from historian.store import Store

__all__ = ["Walk", "behind_event"]

_log = logging.getLogger(__name__)


@dataclass
class Walk:
    """Carries the catalog along the log from the entry *number* on.

    Attributes:
        number: of the last entry at or before the place reached.
        taken_in: gets ids of tables that statements bring among the captured ones, whose rows are copied; None: such tables stop.
        new_entries: not recorded before, in order.
        touched: ids of captured tables with rows in what was walked.
        quarantines: of captured tables, by table id, those of earlier walks included.
        proven: behind the last transaction with rows that fitted the schema in force, by table id.
        accept_cascades: names of tables whose rows may change by cascades that the log does not show.
        find_prepared: looks up XA transactions that nobody knew of; None: a log without any.
        find_copied: reads what was copied into the shadow of a table; None: a tool's own claim counts.
        on_unlogged: told of changes of rows without row events; None: such a table stops, as its targets lack them.
        with_rows: ids of tables with rows in what was walked, captured or not; ``unread``: names of those whose rows cannot be read.
        topics: passages of partitions to versions; None: the log is no topics.
        commits, rolled_back: XA COMMITs of transactions prepared before the last bound, and what was rolled back.
    """

    history: History
    number: int
    store: Store
    captured: Callable[[TableName], bool]
    flavor: str
    reached: LogPosition
    online_changes: OnlineChanges = NO_TOOLS
    new_entries: list[TimelineEntry] = field(default_factory=list)
    touched: set[int] = field(default_factory=set)
    proven: dict[int, LogPosition] = field(default_factory=dict)
    accept_cascades: Collection[str] = ()
    find_prepared: FindPrepared | None = None
    find_copied: FindCopied | None = None
    on_unlogged: Callable[[TableName, Place, str], None] | None = None
    taken_in: set[int] | None = None
    topics: MetSchemas | None = None
    commits: list[Commit] = field(default_factory=list)
    rolled_back: list[RolledBack] = field(default_factory=list)
    with_rows: set[int] = field(default_factory=set)
    unread: set[TableName] = field(default_factory=set)

    def __post_init__(self) -> None:
        pending, base = self.reached.pending, self.number
        self._prepared = PreparedSchemas(self.history, pending, base, self.captured, self.flavor, self.find_prepared)
        self._temporary = TemporaryTables(self.reached.temporary)
        self.reached = replace(self.reached, pending=(), temporary=())
        self.catalog: Catalog = self.history.catalog_at(self.number)
        self._stopped: dict[TableName, int] = {}
        self.quarantines: dict[int, Quarantine] = dict(self.store.quarantines())
        self._names = TableNames(self.history, self.new_entries, self.captured, self.online_changes)
        self._take_recorded()
        while self.topics is not None and (entry := self.history.entry(self.number + 1)) is not None:
            self._advance(entry)  # partitions pass to versions when they meet them, wherever they were met first

    def take(self, item: Scanned) -> Bound | None:
        """Takes the next item; returns it where it is a bound."""
        if isinstance(item, Bound):
            if item.restarted:
                self._temporary.clear()
            noted = self._prepared.noted(item, self.number, self.catalog)
            noted = replace(noted, position=replace(noted.position, temporary=self._temporary.held))
            # What is recorded of the log says nothing of XA transactions; plans do.
            self.reached = replace(item.position, pending=())
            self._take_recorded()
            return noted
        if isinstance(item, RolledBack):
            self.rolled_back.append(item)
            return None
        if isinstance(item, XaCommitted):
            self._committed(item)
            return None
        if isinstance(item, SchemaMet):
            self._schema_met(item)
            return None
        recorded = self.history.recorded(behind_event(item), self.reached.server)
        if recorded is not None and recorded.number == self.number + 1:
            self._advance(recorded)
        elif isinstance(item, Statement) and not self._had_no_edits(item):
            self._statement(item)
        if isinstance(item, Statement):
            self._follow_temporary(item)
        if isinstance(item, TableMapped):
            self._mapped(item)
        return None

    def _take_recorded(self) -> None:
        """Entries that stand for no event of the log ahead: captures, and later corrections of earlier statements."""
        while (entry := self.history.entry(self.number + 1)) is not None:
            if entry.place is None:
                is_behind = covers(self.reached, entry.position)
            else:
                is_behind = entry.corrects and holds(self.reached, entry.place, entry.server)
            if not is_behind:
                return
            self._advance(entry)

    def _had_no_edits(self, statement: Statement) -> bool:
        """Whether it was walked before, and left no entry. Who begins in the middle of a session cannot tell its temporary tables."""
        unmarked = self.flavor == "mariadb" and statement.sql[:6].upper() == "RENAME"
        doubtful = statement.context.uses_temporary or unmarked
        return doubtful and holds(self.history.resolved, statement.place, self.reached.server)

    def _follow_temporary(self, statement: Statement) -> None:
        for table in self._temporary.follow(statement.sql, statement.context):
            reason = (
                "a statement was not understood: what was done to a temporary table, whose CREATE is not in the log, was taken as done to "
                f"the real one\n  in: {shown(statement.sql)}"
            )
            self.stop(table, statement.place, reason, self.reached)

    def _context(self, statement: Statement) -> StatementContext:
        opened = self._temporary.of(statement.context.session)
        return replace(statement.context, temporary=opened) if opened else statement.context

    def _statement(self, statement: Statement) -> None:
        resolution = resolve(statement.sql, self._context(statement), self.catalog)
        if self.topics is not None:
            taken = self.topics.takes(statement, resolution, self.catalog)
            if taken is None:
                return
            resolution = taken
        edits: list[Edit] = list(resolution.edits)
        if resolution.kind == "dml":
            for table in resolution.tables:
                self._changed_unlogged(table, statement.place, why_stopped(resolution, statement.sql))
        elif resolution.kind == "not_understood":
            edits += self._stop_unknown(resolution, statement)
        edits = edits if self.topics is None else self._not_parted(edits, statement, self.topics)
        filled = analyzed_table(statement.sql, statement.context)
        if filled is not None and filled in self.catalog.tables and self.online_changes.owns(filled):
            edits.append(ForgetTable(table=analyzed_name(filled), reason=ANALYZED))
        if edits:
            swap = self._swap(statement, tuple(edits))
            changes = tuple(edits) if swap is None else swap.edits
            before, set_aside = self.catalog, self._names.set_aside_before(changes, self.number)
            self.record(statement.place, changes, statement)
            for table in () if self.topics is None else self.topics.doubted_by(changes, statement, self.catalog):
                self.stop(table, statement.place, parted_in_moment(statement.sql), self.reached)
            self._stop_cascades(changes, statement, before)
            self._stop_renamed_in(changes, statement, set_aside)
            self._stop_renamed_out(changes, statement, before, set_aside)
        if resolution.kind == "rows":  # tables that the statement makes are among them
            for table in resolution.tables:
                self._changed_unlogged(table, statement.place, why_stopped(resolution, statement.sql))

    def _stop_unknown(self, resolution: Resolution, statement: Statement) -> list[Edit]:
        """Stops what is not known behind a statement; what it takes to forget it beside the edits that are known."""
        after, reason = apply_all(resolution.edits, self.catalog), why_stopped(resolution, statement.sql)
        forgotten = {edit.table for edit in resolution.edits if isinstance(edit, ForgetTable)}
        edits: list[Edit] = []
        for table in resolution.unknown_behind:
            held = self.catalog.tables.get(table)
            table_id = self._names.set_aside_from(table, self.number) if held is None else held.table_id
            now = next((name for name, s in after.tables.items() if s.table_id == table_id), table)
            # One that has another name behind the statement goes on under it, unless nobody reads it there.
            goes_on = now != table and self.captured(now)
            self.stop(table, statement.place, reason, self.reached, 0 if goes_on else table_id)
            if held is not None and table not in forgotten:
                edits.append(ForgetTable(table=table, reason=reason))
        return edits

    def _not_parted(self, edits: list[Edit], statement: Statement, topics: MetSchemas) -> list[Edit]:
        """*edits* of a statement. A captured table stops that they empty, drop or put in another's place, where nobody knows of which rows."""
        kept, reason = list[Edit](), (emptied_apart if statement.apart else parted_late)(statement.sql)
        forgotten = set[int]()
        for edit in edits:
            table = topics.parted(edit, statement, edits)
            if isinstance(edit, RenameTable) and edit.table_id in forgotten:
                kept.append(ForgetTable(table=edit.new, reason=reason))
            elif table is not None and self.captured(table):
                self.stop(table, statement.place, reason, self.reached)
                kept.append(ForgetTable(table=table, reason=reason))
                if isinstance(edit, RenameTable):  # rows make no new table of its name
                    kept.append(ForgetTable(table=edit.new, reason=reason))
                    forgotten.add(edit.table_id)
            else:
                kept.append(edit)
        return kept

    def _stop_cascades(self, edits: tuple[Edit, ...], statement: Statement, before: Catalog) -> None:
        """Stops tables whose rows a foreign key changes from here on: nobody would read them again each time."""
        if self.taken_in is not None or logs_cascades(self.flavor, statement.context.version):
            return
        for table in gets_foreign_key(edits, before, self.catalog, self.captured):
            if str(table) not in self.accept_cascades:
                self._changed_unlogged(table, statement.place, cascades(statement.sql), repairable=False)

    def _stop_renamed_in(self, edits: tuple[Edit, ...], statement: Statement, set_aside: Collection[int]) -> None:
        """Stops tables that a RENAME brought among the captured ones: their rows from before were not read."""
        for edit in edits:
            if not isinstance(edit, RenameTable) or self.captured(edit.table) or not self.captured(edit.new):
                continue
            is_empty = self._names.is_new(edit.table_id) and edit.table_id not in self.with_rows
            if edit.table_id in set_aside or edit.new not in self.catalog.tables or is_empty:
                continue
            if self.taken_in is not None and edit.table_id not in self.quarantines:
                self.taken_in.add(edit.table_id)
                self.touched.add(edit.table_id)
                continue
            reason = (
                f"{edit.table}, whose rows are not captured, was renamed to {edit.new}: what it held by then is not known\n"
                f"  in: {shown(statement.sql)}\n"
                "  `historian heal` lets its changelog go on from the present, with that gap; or capture it under both names, and begin anew"
            )
            self.stop(edit.new, statement.place, reason, self.reached, edit.table_id)

    def _stop_renamed_out(
        self, edits: tuple[Edit, ...], statement: Statement, before: Catalog, set_aside: Mapping[int, TableName]
    ) -> None:
        """Stops tables that stand under a tool's name, whose rows nobody reads, and that no tool is to replace."""
        moved: dict[int, tuple[TableName, TableName]] = {}
        for edit in edits:
            if isinstance(edit, RenameTable):
                was, _ = moved.get(edit.table_id, (edit.table, edit.new))
                moved[edit.table_id] = was, edit.new
        names = {s.table_id: name for name, s in self.catalog.tables.items()} if set_aside else {}
        moved |= {table_id: (was, names[table_id]) for table_id, was in set_aside.items() if table_id in names}
        for table_id, (was, name) in moved.items():
            if not self.captured(was) or self.captured(name) or not self.online_changes.sets_aside(was, name):
                continue
            if was in self.catalog.tables or not self.online_changes.replaces(was, name, before):
                self.stop(was, statement.place, renamed_out(name), self.reached, table_id)

    def _swap(self, statement: Statement, edits: tuple[Edit, ...]) -> Swap | None:
        """What a statement is that puts a tool's shadow in a table's place; stops the table where that, or what its rows are, is not known."""
        names = self._names
        swap = self.online_changes.swap(
            edits,
            self.catalog,
            names.first_snapshot,
            names.last_named,
            sql=statement.sql,
            last_changed=names.last_entry,
        )
        if swap is None:
            return None
        why = swap.refused or swap.unseen
        since = self._names.last_changed(swap.shadow)
        if not why and self.find_copied is not None and since is not None:
            why = unlike_default(swap, self.find_copied(swap.shadow, since, self.reached))
        if why:
            reason = f"{why}\n  in: {shown(statement.sql)}"
            # Behind the others the schema is known, so the source's rows are what is missing.
            is_known = not swap.refused
            self.stop(swap.table, statement.place, reason, self.reached, swap.table_id, repairable=is_known)
        return swap

    def _mapped(self, mapped: TableMapped) -> None:
        snapshot = self.catalog.tables.get(mapped.table)
        captured = self.captured(mapped.table)
        if snapshot is None:
            known = self.catalog.unknown.get(mapped.table)
            self.unread.add(mapped.table)
            for table in merged_tables(known):
                reason = f"its rows change through another table: {mapped.table} has row events, and {known}"
                self._changed_unlogged(table, mapped.place, reason)
            if captured and known != SEQUENCE:
                reason = known or "its CREATE TABLE is not in the log that was read"
                self.stop(mapped.table, mapped.place, reason, self.reached)
            if known is None and self.flavor == "mariadb":
                self._was_not_renamed(mapped)
            return
        self.with_rows.add(snapshot.table_id)
        if not captured:
            if self.taken_in is not None and not self._fits(snapshot, mapped):
                self.unread.add(mapped.table)
            if (
                self.online_changes.owns(mapped.table)
                and (was := self._names.set_aside(snapshot.table_id, self.number)) is not None
            ):
                self.stop(was, mapped.place, renamed_out(mapped.table), self.reached, snapshot.table_id)
            return
        self.touched.add(snapshot.table_id)
        if snapshot.table_id in self.quarantines:
            return
        try:
            difference = mismatch(snapshot, mapped.columns, self.flavor)
            if difference is None:
                self.proven[snapshot.table_id] = with_transaction(self.reached, mapped.place)
                return
            healed = described(snapshot, mapped.columns, self.flavor, self.catalog.next_column_id)
        except UnsupportedEvent as error:
            reason = f"the log's TABLE_MAP is not understood\n{error}"
            self.stop(mapped.table, mapped.place, reason, self._known_until(snapshot.table_id))
            return
        since = self._known_until(snapshot.table_id)
        if healed is None or since is None or self._is_taken(behind_event(mapped)):
            reason = f"the log's TABLE_MAP does not fit the schema in force\n{difference}"
            self.stop(mapped.table, mapped.place, reason, since)
        else:
            is_new = healed.primary_key != snapshot.primary_key or any(
                snapshot.column_by_id(column.id) is None for column in healed.columns
            )
            self._resume(mapped, healed, since, difference, loses_rows=is_new)

    def _fits(self, snapshot: Snapshot, mapped: TableMapped) -> bool:
        try:
            return mismatch(snapshot, mapped.columns, self.flavor) is None
        except UnsupportedEvent:
            return False

    def _was_not_renamed(self, mapped: TableMapped) -> None:
        """Stops the table that the history has renamed away from a name that still has rows.

        MariaDB logs RENAME TABLE of a temporary table like that of a table, and does not say which it was.
        """
        table_id = self._names.last_named(mapped.table)
        now = next((each for each in self.catalog.tables.values() if each.table_id == table_id), None)
        if now is not None:
            reason = (
                f"{mapped.table} has rows although it was renamed to {now.name}: that RENAME was of a temporary table"
            )
            self.stop(now.name, mapped.place, reason, None, now.table_id)

    def _schema_met(self, met: SchemaMet) -> None:
        assert self.topics is not None  # noqa: S101 - whoever walks topics gives it
        found = self.topics.table_of(met, self.catalog, self._stopped.get(met.table))
        doubted = self.topics.doubted(met, None if found is None else found[0], self.catalog)
        for table, sql in doubted.items():
            self.stop(table, met.place, parted_in_moment(sql), self.reached)
        if found is None:
            return
        latest, is_late = found
        if doubted and latest is not None:
            self.topics.passes_over(met, latest.table_id)
            return
        if latest is None or not self.topics.passes(met, latest, is_late=is_late):
            try:
                whole = completed(met, latest)
            except TooLittleTold as reason:
                self.stop(met.table, met.place, str(reason), self.reached)
                if latest is not None:
                    self.topics.passes_over(met, latest.table_id)
                return
            self.record(met.place, edits_to(whole, self.catalog), None, met)
            latest = self.catalog.tables[met.table]
            self.topics.began(met, self.number, latest)
        self.with_rows.add(latest.table_id)
        if self.captured(met.table) and self.captured(latest.name):
            self.touched.add(latest.table_id)

    def _committed(self, item: XaCommitted) -> None:
        settled = self._prepared.settle(item, self.catalog)
        if settled is None:
            return
        self.touched.update(settled.touched)
        for stop in settled.stops:
            self.stop(stop.table, item.place, stop.reason, self.reached, stop.table_id)
        self.commits.append(settled.commit)

    def _is_taken(self, place: Place) -> bool:
        """Whether a statement stands right before a TABLE_MAP in its transaction, as that of CREATE TABLE ... SELECT does."""
        taken = any(entry.place == place for entry in self.new_entries)
        return taken or self.history.recorded(place, self.reached.server) is not None

    def _known_until(self, table_id: int) -> LogPosition | None:
        walked = (entry.position for entry in self.new_entries for edit in entry.edits if creates(edit, table_id))
        known = self.proven.get(table_id) or known_until(self.history, self.store, table_id)
        return known or next(walked, None)

    def _resume(
        self, mapped: TableMapped, healed: Snapshot, since: LogPosition, difference: str, *, loses_rows: bool
    ) -> None:
        """Goes on with what FULL metadata says, where a change of the table is not in the log."""
        place = behind_event(mapped)
        reason = f"a change of the table is not in the log; its TABLE_MAP at {mapped.place} says what it is now"
        _log.warning(
            "%s: %s; unknown behind %s\n%s", mapped.table, reason, since, difference, extra={"table": str(mapped.table)}
        )
        edit = ResumeTable(
            table=mapped.table, snapshot=healed, unknown_since=since, loses_rows=loses_rows, reason=reason
        )
        self.record(place, (edit,), None)
        self.proven[healed.table_id] = with_transaction(self.reached, mapped.place)

    def record(
        self, place: Place, edits: tuple[Edit, ...], statement: Statement | None, met: SchemaMet | None = None
    ) -> None:
        """Makes an entry of *edits*, which *statement* made; None: rows tell them, of topics those of *met*."""
        told = f"-- {edits[0].kind} by the {'TABLE_MAP' if self.topics is None else 'schema of the message'} at {place}"
        told_by = statement or met
        entry = TimelineEntry(
            number=self.number + 1,
            place=place,
            position=self.reached,
            edits=edits,
            statement=told if statement is None else printable(statement.sql),
            database="" if statement is None else statement.context.database,
            event_time_us=0 if told_by is None else told_by.event_time_us,
            server=self.reached.server,
            source="" if statement is None else statement.source,
            transaction=None if met is None else met.transaction,
        )
        before = self.catalog
        self.new_entries.append(entry)
        self._advance(entry)
        if self.topics is not None and statement is not None:
            self.topics.stated(entry, before, self.catalog)

    def _advance(self, entry: TimelineEntry) -> None:
        self.catalog = apply_all(entry.edits, self.catalog)
        self.number = entry.number

    def _changed_unlogged(self, table: TableName, place: Place, reason: str, *, repairable: bool = True) -> None:
        """Stops a table whose rows changed without row events, unless nobody keeps its rows."""
        self.unread.add(table)
        if (changed := self.catalog.tables.get(table)) is not None:
            self.with_rows.add(changed.table_id)
        if self.on_unlogged is None:
            self.stop(table, place, reason, self.reached, repairable=repairable)
        elif self.captured(table):
            self.on_unlogged(table, place, reason)

    def stop(
        self,
        table: TableName,
        place: Place,
        reason: str,
        since: LogPosition | None,
        table_id: int | None = None,
        *,
        repairable: bool = False,
    ) -> None:
        """Stops a table at *place*, if it is captured and has not stopped yet. *table_id* 0: the schema is not known; None: that of the name."""
        if not self.captured(table):
            return
        if table_id is None:
            table_id = self.catalog.tables[table].table_id if table in self.catalog.tables else 0
        quarantine = Quarantine(place=place, reason=reason, since=since, repairable=repairable)
        if not table_id:
            self.store.quarantine(0, table, quarantine)
            return
        self.touched.add(table_id)
        if table_id not in self.quarantines:
            self.store.quarantine(table_id, table, quarantine)
            self.quarantines[table_id] = quarantine
            self._stopped[table] = table_id


def behind_event(item: Statement | TableMapped) -> Place:
    """Where a version begins that holds from *item* on: a TABLE_MAP is itself read by it, a statement is not."""
    place = item.place
    return replace(place, ordinal=place.ordinal - 1) if isinstance(item, TableMapped) else place
