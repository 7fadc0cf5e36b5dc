"""The versions to which partitions pass, along one walk. Partitions share no order, so each passes at its own offset.

A schema that a partition meets is, first of all, one that another partition has met before: the next version behind the
partition's own that fits. If none does, it is a new version. A partition that lags may bring one that was never met and that the
others have left. It makes no version: its rows go on by the ids that their columns have by name.
"""

from __future__ import annotations

import logging
import re
from collections import Counter
from collections.abc import Collection
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from connectors.readers.base import SchemaMet, Statement
from connectors.tracking.topics.edits import fits
from connectors.tracking.topics.former_tables import FormerTables, Left
from connectors.tracking.topics.known_versions import KnownVersion, behind_known, by_name
from historian.charsets.client_text import printable
from historian.ddl import Resolution, resolve
from historian.history.versions import in_force
from historian.plans.plans import PartitionRange, Passage, PlannedTable
from historian.plans.source_marks import stated_id
from historian.schema.edits import (
    AddColumn,
    CreateTable,
    DropTable,
    Edit,
    ForgetTable,
    RenameTable,
    TruncateTable,
)
from historian.schema.snapshots import Catalog, Snapshot

if TYPE_CHECKING:
    from historian.history.history import History
    from historian.history.timeline import TimelineEntry
    from historian.names import TableName
    from historian.plans.passages import Passages

__all__ = ["MetSchemas"]

_log = logging.getLogger(__name__)

_ADDS_WHAT_MAY_BE_THERE = re.compile(r"\bADD\b.*\bIF\s+NOT\s+EXISTS\b", re.IGNORECASE | re.DOTALL)


class MetSchemas:
    """Passages of partitions along one walk.

    Args:
        history: with all versions so far.
        held: passages before the walk.
    """

    def __init__(self, history: History, held: Passages) -> None:
        self._history = history
        self._last = {key: passages[-1] for key, passages in held.items() if passages}
        self._met: dict[tuple[str, int], list[Passage]] = {}
        self._known: dict[int, list[KnownVersion]] = {}
        self._stated: dict[str, set[int]] | None = None
        self._former = FormerTables(history)
        self._named: dict[tuple[str, TableName], int] = {}
        self._held_of = Counter(file for file, _ in self._last)
        self._ids: dict[TableName, set[int]] = {}
        self._repeated: set[tuple[str, str, int]] = set()
        self._silent: set[tuple[int, TableName]] = set()

    def table_of(self, met: SchemaMet, catalog: Catalog, stopped: int | None) -> tuple[Snapshot | None, bool] | None:
        """The table that the rows of *met* are of, and whether it had that name once; None: they come to nobody, which is noted.

        Args:
            catalog: by now.
            stopped: the table that stopped under that name.
        """
        latest = catalog.tables.get(met.table)
        is_unknown = latest is None and met.table in catalog.unknown
        former = self._former.of(met, partial(self._has_passed, met), self._owner(met))
        is_of_former = former is not None and former.has_rows
        if not is_of_former and (is_unknown or (latest is not None and latest.table_id == stopped)):
            # Else its rows would be read under what its partition had before, or has later.
            if stopped is not None:
                self.passes_over(met, stopped)
            elif (before := self._former.stopped(met.table)) is not None:
                self._silent.add((before, met.table))
                self.passes_over(met, before)
            return None  # what it became is told, but not what became of its rows
        if former is None:
            return latest, False
        if not former.has_rows:
            self.passes_over(met, former.table_id)
            _log.info(
                "%s: rows at %s are from before it was dropped or emptied; they are passed over",
                met.table,
                met.place,
                extra={"table": str(met.table)},
            )
            return None
        if latest is not None and latest.table_id == former.table_id:
            return latest, False
        latest = next((each for each in catalog.tables.values() if each.table_id == former.table_id), None)
        if latest is None:
            self.passes_over(met, former.table_id)
            return None
        return latest, True

    def doubted(self, met: SchemaMet, latest: Snapshot | None, catalog: Catalog) -> dict[TableName, str]:
        """The tables of which the rows of *met* may be, or may be none, each with the statement that says it; none where that is known.

        Args:
            latest: the table that they are of if they are from behind statements of their moment; None: they come to nobody.
        """
        found: dict[TableName, str] = {}
        if self._owner(met) is not None:
            return found
        for left in self._former.of_one_moment(met):
            latest_id = 0 if latest is None else latest.table_id
            if not left.ends_name and latest_id != left.table_id:
                continue
            ids = {latest_id, left.table_id} if left.has_rows else {latest_id}
            found |= {name: left.statement for name, snapshot in catalog.tables.items() if snapshot.table_id in ids}
        return found

    def _owner(self, met: SchemaMet) -> int | None:
        """The one table whose columns the rows of *met* have, of those that had its name in its moment; None: none, or several."""
        ids = self._former.named_in_moment(met, self._former.of_one_moment(met))
        found = [
            table_id
            for table_id in ids
            if any(fits(each, met) for each in self._in_moment(table_id, met.table, met.event_time_us))
        ]
        return found[0] if len(found) == 1 and len(ids) > 1 else None

    def _in_moment(self, table_id: int, name: TableName, at_us: int) -> list[Snapshot]:
        """The versions of a table under *name* in a moment: what it was before, and what statements of the moment made of it."""
        known = [each for each in self._versions(table_id) if each.snapshot.name == name]
        before = [each for each in known if each.event_time_us < at_us][-1:]
        return [each.snapshot for each in (*before, *(each for each in known if each.event_time_us == at_us))]

    def _has_passed(self, met: SchemaMet, left: Left) -> bool:
        """Whether the partition of *met* has the statement of *left* before it."""
        last = self._last.get((met.place.file, left.table_id))
        is_met = (met.place.file, left.statement, left.event_time_us) in self._repeated
        is_met = is_met or stated_id(left.statement, left.event_time_us) in met.stated
        return is_met or (last is not None and last.version >= left.number)

    def passes(self, met: SchemaMet, latest: Snapshot, *, is_late: bool = False) -> bool:
        """Notes to which known version the partition of *met* passes; False: to none, it has a new one.

        Args:
            latest: the table's last schema.
            is_late: the table had the name of *met* once, so none of its versions to come is this one.
        """
        versions = self._versions(latest.table_id)
        known = [each for each in versions if each.snapshot.name == met.table]
        key = (met.place.file, latest.table_id)
        own = [each for each in self._met.get(key, [self._last[key]] if key in self._last else []) if each.is_read]
        at = own[-1].version if own else 0
        stated = [
            each for each in known if each.by_statement and each.number > at and each.event_time_us <= met.event_time_us
        ]
        # A statement may change what no message tells. One of the row's own second may stand behind it.
        passed = next((each for each in reversed(stated) if fits(each.snapshot, met)), None)
        if passed is not None:
            self._note(key, met, passed.number, None)
            return True
        behind = None if is_late else behind_known(known, at, met)
        if behind is not None:
            if behind:
                self._note(key, met, behind, None)
            return bool(behind)
        here = next((each for each in known if each.number == at), None)
        if here is not None and here.has_place and here.event_time_us > met.event_time_us:
            # The row is sent again: its place is before the statement, whatever its partition has met by now.
            then = [each for each in known if each.by_statement and each.event_time_us <= met.event_time_us]
            if then and fits(then[-1].snapshot, met):
                self._note(key, met, then[-1].number, None)
                return True
        if here is not None and fits(here.snapshot, met):
            self._note(key, met, here.number, None)
            return True
        fitting = [each for each in known if each.number > at and fits(each.snapshot, met)]
        if fitting:
            by_then = [each for each in fitting if each.event_time_us <= met.event_time_us]
            # A partition that is met first may have begun at any time; one that was met goes on step by step.
            found = by_then[-1] if not own and by_then else fitting[0]
            self._note(key, met, found.number, None)
            return True
        # Of some columns alone nobody can say that the others are gone.
        if known and (is_late or (met.certainty != "names" and met.event_time_us < known[-1].event_time_us)):
            self._note(key, met, known[-1].number, by_name(met, versions, known[-1].snapshot))
            return True
        return False

    def passes_over(self, met: SchemaMet, table_id: int) -> None:
        """Notes that rows of *met* come to nobody: their table was dropped or emptied behind them."""
        known = [each.snapshot for each in self._versions(table_id)]
        named = [each for each in known if each.name == met.table]
        if known:  # one that was renamed behind its stop never had the name
            self._note((met.place.file, table_id), met, 0, named[-1] if named else replace(known[-1], name=met.table))

    def began(self, met: SchemaMet, number: int, snapshot: Snapshot) -> None:
        """Notes the version *number*, which the walk has made of *met*."""
        self._versions(snapshot.table_id).append(
            KnownVersion(number, snapshot, met.event_time_us, transaction=met.transaction)
        )
        self._note((met.place.file, snapshot.table_id), met, number, None)

    def takes(self, statement: Statement, resolution: Resolution, catalog: Catalog) -> Resolution | None:
        """What of a statement changes the history; None: nothing.

        Nothing does where it came before, in another partition or from a producer that began anew. Nor what cannot be followed where
        messages tell it: of tables that are not known yet, or whose rows behind it came first, by another partition. But no message
        tells what it gives rows from before it.
        """
        if self._stated is None:
            self._stated = {}
            for entry in self._history.entries:
                self._stated.setdefault(entry.statement, set()).add(entry.event_time_us)
        stated_us = self._stated.get(printable(statement.sql), set())
        if statement.event_time_us in stated_us or (statement.has_place and stated_us):
            self._repeated.add((statement.place.file, printable(statement.sql), statement.event_time_us))
            return None
        if resolution.kind != "not_understood":
            filled = self._filled(statement, catalog) if resolution.kind == "ddl" else ()
            reason = "the column is there already, by rows from behind the statement; rows from before it have what it gives them"
            return replace(resolution, kind="not_understood", tables=filled, reason=reason) if filled else resolution
        known = [catalog.tables[table] for table in resolution.unknown_behind if table in catalog.tables]
        forgotten = {edit.table for edit in resolution.edits if isinstance(edit, ForgetTable) and edit.reason}
        is_told = [self._told_behind(each, statement) and not self._fills(each, statement, catalog) for each in known]
        if not all(is_told) or not forgotten.isdisjoint(resolution.unknown_behind):
            return resolution
        # Tables that are known follow it beside others.
        return None if known or not resolution.edits else replace(resolution, kind="ddl", tables=(), reason="")

    def parted(self, edit: Edit, statement: Statement, edits: Collection[Edit]) -> TableName | None:
        """The table whose rows *edit* separates, where nobody can say any more which ones came before *statement*; else None.

        Args:
            edits: of the statement.
        """
        if isinstance(edit, DropTable | TruncateTable) and statement.apart:
            return edit.table
        if not isinstance(edit, CreateTable | DropTable | RenameTable | TruncateTable):
            return None
        passed = {table_id for file, table_id in self._last if file in statement.passed_by}
        table, table_id = (edit.snapshot.name, 0) if isinstance(edit, CreateTable) else (edit.table, edit.table_id)
        # Rows that came early under a name are with the table that had it.
        name = edit.new if isinstance(edit, RenameTable) else table
        if not statement.passed_tables.isdisjoint((table, name)):
            return table
        # What came in this moment under a name that ends is from before. Where it ends and begins, see doubted_by.
        goes_on = isinstance(edit, TruncateTable)
        begins = isinstance(edit, CreateTable | RenameTable) and not self._ends(name, statement, edits)
        if name in statement.met_in_moment and (goes_on or begins):
            return table
        named = (each.snapshot.name for each_id in passed for each in self._versions(each_id))
        is_named = isinstance(edit, CreateTable | RenameTable) and name in named
        return table if table_id in passed or is_named else None

    def _ends(self, name: TableName, statement: Statement, edits: Collection[Edit]) -> bool:
        """Whether a table loses *name* in the moment of *statement*, which has *edits*."""
        is_left = any(isinstance(edit, DropTable | RenameTable) and edit.table == name for edit in edits)
        return is_left or any(each.ends_name for each in self._former.left_at(name, statement.event_time_us))

    def doubted_by(self, edits: Collection[Edit], statement: Statement, catalog: Catalog) -> list[TableName]:
        """The tables of which rows of a former plan may be, as the *edits* of *statement* give a name that another table had in its moment.

        Args:
            catalog: behind the statement.
        """
        found: set[int] = set()
        for edit in edits:
            if not isinstance(edit, CreateTable | RenameTable):
                continue
            name, table_id = (
                (edit.snapshot.name, edit.snapshot.table_id)
                if isinstance(edit, CreateTable)
                else (edit.new, edit.table_id)
            )
            left = self._former.left_at(name, statement.event_time_us)
            ids = {each.table_id for each in left}
            if name not in statement.met_in_moment or not left:
                continue
            if statement.met_in_moment[name] and self._are_unlike(ids, table_id, name, statement.event_time_us):
                continue  # what was read as a row of the one is none of the other
            found |= {table_id, *(each.table_id for each in left if each.has_rows)}
        return [name for name, snapshot in catalog.tables.items() if snapshot.table_id in found]

    def _are_unlike(self, ids: Collection[int], table_id: int, name: TableName, at_us: int) -> bool:
        """Whether in a moment the table that got *name* has other columns than those of *ids*, which lost it."""
        mine, theirs = (
            {
                frozenset(column.name for column in each.columns)
                for id_ in of
                for each in self._in_moment(id_, name, at_us)
            }
            for of in ([table_id], ids)
        )
        return table_id not in ids and bool(theirs) and mine.isdisjoint(theirs)

    def stated(self, entry: TimelineEntry, before: Catalog, after: Catalog) -> None:
        """Notes the versions that *entry* makes, which is of a statement."""
        if self._stated is not None:
            self._stated.setdefault(entry.statement, set()).add(entry.event_time_us)
        self._former.note(entry)
        held = {snapshot.table_id: snapshot for snapshot in before.tables.values()}
        # Rows behind a TRUNCATE stay, so it is a version though the schema is the same.
        emptied = {edit.table for edit in entry.edits if isinstance(edit, TruncateTable)}
        for snapshot in after.tables.values():
            if held.get(snapshot.table_id) != snapshot or snapshot.name in emptied:
                known = self._versions(snapshot.table_id)
                if all(each.number != entry.number for each in known):
                    at_us, has_place = entry.event_time_us, bool(entry.source)
                    known.append(KnownVersion(entry.number, snapshot, at_us, by_statement=True, has_place=has_place))

    def _told_behind(self, snapshot: Snapshot, statement: Statement) -> bool:
        last = self._versions(snapshot.table_id)[-1]
        return not last.by_statement and last.event_time_us >= statement.event_time_us

    def _filled(self, statement: Statement, catalog: Catalog) -> tuple[TableName, ...]:
        """The tables of a statement that does nothing, since rows from behind it told what it does, but for values that it gives rows from before it."""
        if not _ADDS_WHAT_MAY_BE_THERE.search(statement.sql):
            return ()
        return tuple(
            name
            for name, snapshot in catalog.tables.items()
            if self._told_behind(snapshot, statement) and self._fills(snapshot, statement, catalog)
        )

    def _fills(self, snapshot: Snapshot, statement: Statement, catalog: Catalog) -> bool:
        """Whether *statement* gives rows from before it values in a column that came without, by rows from behind it."""
        at_us, versions = statement.event_time_us, self._versions(snapshot.table_id)
        # Rows of the statement's own moment may be from before it or from behind it.
        then = [each for each in versions if each.event_time_us < at_us][-1:]
        then += [each for each in versions if each.event_time_us == at_us]
        held = {column.name: column.initial for column in snapshot.columns}
        return any(
            isinstance(edit, AddColumn) and held.get(edit.column.name, edit.column.initial) != edit.column.initial
            for each in then
            if each.snapshot.name == snapshot.name
            for edit in resolve(
                statement.sql,
                statement.context,
                replace(catalog, tables={**catalog.tables, snapshot.name: each.snapshot}),
            ).edits
        )

    def ranges(self, parts: tuple[PartitionRange, ...], tables: tuple[PlannedTable, ...]) -> tuple[PartitionRange, ...]:
        """*parts* with the passages of rows in them, for the *tables* of the plan."""
        planned = {table.table_id: {each.version for each in table.versions} for table in tables}
        named = {each.snapshot.name for table in tables for each in table.versions if each.snapshot is not None}
        found = []
        for part in parts:
            met = [
                each
                for (file, table_id), passages in self._met.items()
                if file == part.file
                for passage in passages
                # Earlier ones stay: rows under an earlier name may come again.
                if passage.offset < part.end
                and (each := self._planned(passage, planned.get(table_id), named)) is not None
            ]
            # Rows of tables that stopped before the walk are read for nothing, unless others have the name.
            names = named | {each.snapshot.name for each in met if each.is_read and each.snapshot is not None}
            passages = [each for each in met if each.is_read or not self._is_silent(each, names)]
            # What came before is told once: a table that is read again later passes over the same.
            if passages or part.unread or part.repeated:
                ordered = sorted(passages, key=lambda passage: (passage.table_id, passage.offset))
                found.append(replace(part, passages=tuple(ordered)))
        return tuple(found)

    def _planned(self, passage: Passage, versions: set[int] | None, named: Collection[TableName]) -> Passage | None:
        """*passage* as a plan with these *versions* of its table has it. None: nobody asks for it, as no table of the plan has been *named* so."""
        if versions is not None and passage.is_read and passage.version > max(versions, default=0):
            return replace(self._with_schema(passage, versions), version=0)  # behind where the table stops
        if versions is not None or not passage.is_read:
            return self._with_schema(passage, versions or set())
        known = (each.snapshot for each in self._versions(passage.table_id) if each.number == passage.version)
        snapshot = passage.snapshot or next(known, None)
        # It was made and stopped in the plan; its rows must not be another's.
        is_named = snapshot is not None and snapshot.name in named
        return replace(passage, version=0, snapshot=snapshot) if is_named else None

    def _is_silent(self, passage: Passage, names: Collection[TableName]) -> bool:
        name = None if passage.snapshot is None else passage.snapshot.name
        return name is not None and (passage.table_id, name) in self._silent and name not in names

    def _versions(self, table_id: int) -> list[KnownVersion]:
        if table_id not in self._known:
            self._known[table_id] = [
                KnownVersion(
                    version.number,
                    version.snapshot,
                    version.entry.event_time_us,
                    by_statement=not version.entry.statement.startswith("--") and bool(version.entry.statement),
                    has_place=bool(version.entry.source),
                    transaction=version.entry.transaction,
                )
                for version in in_force(self._history.versions_of(table_id))
                if version.snapshot is not None
            ]
        return self._known[table_id]

    def _note(self, key: tuple[str, int], met: SchemaMet, number: int, snapshot: Snapshot | None) -> None:
        file, table_id = key
        passages = self._met.setdefault(key, [])
        held = self._last.get(key)
        named = file, met.table
        was = self._named[named] if named in self._named else self._last_named(file, met.table)
        self._named[named] = table_id
        # Behind rows of another table of that name, those of this one begin again.
        is_back = was not in (None, table_id)
        if not passages and not is_back and held is not None and held.version == number and snapshot is None:
            passages.append(held)  # goes on as it was
        elif not passages or is_back or passages[-1].version != number or passages[-1].snapshot != snapshot:
            passages.append(Passage(table_id=table_id, version=number, offset=met.place.offset, snapshot=snapshot))

    def _last_named(self, file: str, name: TableName) -> int | None:
        """The table that rows of that name were of last, in a partition before the walk; None: there were none."""
        if self._held_of[file] < 2:
            return None
        if name not in self._ids:
            self._ids[name] = {version.table_id for version in self._history.versions(name)}
        ids = self._ids[name]
        held = [self._last[file, table_id] for table_id in ids if (file, table_id) in self._last]
        found = [each for each in held if not each.is_read or self._name_under(each) == name]
        return max(found, key=lambda each: each.offset).table_id if len(held) > 1 and found else None

    def _name_under(self, passage: Passage) -> TableName | None:
        found = (each for each in self._history.versions_of(passage.table_id) if each.number == passage.version)
        return next((each.name for each in found), None)

    def _with_schema(self, passage: Passage, planned: set[int]) -> Passage:
        if passage.snapshot is not None or passage.version in planned:
            return passage
        known = (each.snapshot for each in self._versions(passage.table_id) if each.number == passage.version)
        return replace(passage, snapshot=next(known, None) or self._snapshot(passage))

    def _snapshot(self, passage: Passage) -> Snapshot | None:
        """The schema of a version that was superseded: of rows that came before that was said."""
        found = self._history.versions_of(passage.table_id)
        return next(each.snapshot for each in found if each.number == passage.version)
