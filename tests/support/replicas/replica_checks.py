"""Compares the tables of a replica's lake with a workload's notes, and with what its server held on the way and at the end."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from historian.changelog.operations import Op
from historian.history.prefix import holds
from historian.history.versions import Version
from historian.positions import LogPosition, parse_position
from historian.positions.places import Place
from historian.schema.snapshots import Column, Snapshot
from historian.values.arrow_types import arrow_type
from historian.values.texts import initial_value
from replicas.replica_history import LoggedRow, assert_history, begun_by
from replicas.replica_reading import LakeRow, Reading
from replicas.replica_validation import assert_changelogs_are_valid
from workload.checks import noted_values
from workload.notes import ExpectedRow, Recorded, Row, expected_rows, walk_lineages

__all__ = ["assert_lake_equals", "assert_same_rows", "folded", "row_bag"]

AS_OF = 25
"""Transactions of each table at which its history is compared with the notes."""
BEGUN = (Op.APPEND, Op.CORRECT_TO)

State = dict[tuple[Any, ...], LakeRow]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Moment:
    """What the server held behind so many transactions of the log, at *position*; tables by their lineages."""

    count: int
    position: LogPosition | None
    tables: Mapping[int, tuple[Row, ...]]
    last: bool


def assert_lake_equals(recorded: Recorded, reading: Reading) -> None:
    """Fails unless changelogs, histories and mirrors are what the workload's notes and the server say, and keep their rules."""
    reading.assert_no_table_stopped()
    assert_changelogs_are_valid(reading)
    lineage_of = reading.lineages(recorded)
    noted: dict[int, list[ExpectedRow]] = {}
    for row in expected_rows(recorded, vanished=True):
        noted.setdefault(row.lineage, []).append(row)
    moments = list(_moments(recorded))
    for table_id, lineage in lineage_of.items():
        _Table(recorded, reading, table_id, lineage, noted.get(lineage, [])).check(moments)
    assert set(lineage_of.values()) >= set(noted), "tables are missing in the lake"


def _moments(recorded: Recorded) -> Iterator[_Moment]:
    walked = walk_lineages(recorded.transactions)
    gtids = [transaction.gtid for transaction in recorded.transactions]
    for look in recorded.looks:
        position = parse_position(look.gtids, recorded.flavor)
        held = [holds(position, Place(gtid=gtid, file="", offset=0, ordinal=0), "") for gtid in gtids]
        count = sum(held)
        assert all(held[:count]), "a server commits in the log's order"
        lineages = walked[count - 1][1]
        tables = {lineages[name]: rows for name, rows in look.tables.items()}
        yield _Moment(count=count, position=position, tables=tables, last=False)
    finals = {final.lineage: final.rows for final in recorded.final.values()}
    yield _Moment(count=len(gtids), position=None, tables=finals, last=True)


class _Table:
    """One table of the lake."""

    def __init__(
        self, recorded: Recorded, reading: Reading, table_id: int, lineage: int, noted: Sequence[ExpectedRow]
    ) -> None:
        self._reading = reading
        self._id = table_id
        self._lineage = lineage
        self._noted = noted
        self._location = reading.locations[table_id]
        self._came = reading.changelog(table_id)
        self._since = reading.known_since(table_id)
        self._where = f"seed {recorded.seed}, table {lineage}, {self._location.name}"
        self._order = {transaction.gtid: at for at, transaction in enumerate(recorded.transactions)}
        self._vanishing = {t.gtid for t in recorded.transactions if t.ddl is not None and t.ddl.vanished}

    def check(self, moments: Iterable[_Moment]) -> None:
        self._check_rows()
        if self._location.history:
            self._check_history()
        for moment in moments:
            self._check_moment(moment)

    def _check_rows(self) -> None:
        """The changelog is what the writers noted, row by row; those that one statement took, in any order."""
        at = 0
        written: dict[tuple[Any, ...], int] = {}
        for gtid, rows in _by_transaction(self._noted):
            part = self._came[at : at + len(rows)]
            at += len(rows)
            assert {row.transaction for row in part} <= {gtid, None}, f"{self._where}, {gtid}: {part}"
            assert len(part) == len(rows), f"{self._where}, {gtid}: {len(rows)} noted, {len(part)} in the lake"
            found = [(row.op, _frozen(row.values)) for row in part]
            if gtid in self._vanishing:
                shown = self._shown_before(gtid)
                wanted = [(row.op, _frozen(self._known(row.values, shown, written.get(row.key, 0)))) for row in rows]
                only_noted, only_lake = Counter(wanted) - Counter(found), Counter(found) - Counter(wanted)
                said = f"{self._where}, {len(wanted)} rows that {gtid} took"
                assert not only_noted, f"{said}:\nnoted {list(only_noted)[:2]}\nlake  {list(only_lake)[:2]}"
                continue
            for got, row, lake in zip(found, rows, part, strict=True):
                want = (row.op, _frozen(row.values))
                assert got == want, f"{self._where}, {gtid}:\nnoted {want}\nlake  {got}"
                written[row.key] = lake.version
        assert at == len(self._came), f"{self._where}: {len(self._came) - at} rows more than noted: {self._came[at]}"

    def _check_history(self) -> None:
        """The history is its changelog's; at noted transactions it has the rows noted as there."""
        offsets = {row.offset for row in self._came}
        history = [i for i in self._reading.intervals(self._location.history) if i.from_offset in offsets]
        log = [
            LoggedRow(offset=row.offset, op=row.op, time=row.time, version=row.version, by_id=row.raw, key=row.key)
            for row in self._came
        ]
        assert_history(log, history, self._where, self._since)
        by_offset = {row.offset: row for row in self._came}
        there: dict[tuple[Any, ...], Row] = {}
        noted = self._noted
        ends = [at for at in range(len(noted)) if at + 1 == len(noted) or noted[at].gtid != noted[at + 1].gtid]
        sampled = set(ends[:: max(1, len(ends) // AS_OF)])
        for at, row in enumerate(noted):
            if row.op in BEGUN:
                there[row.key] = row.values
            else:
                del there[row.key]
            if at in sampled:
                found = Counter(_frozen(by_offset[o].values) for o in begun_by(history, self._came[at].offset))
                wanted = Counter(_frozen(values) for values in there.values())
                differing = list((found - wanted) + (wanted - found))
                assert not differing, f"{self._where} as of {row.gtid}: {differing[:2]}"

    def _check_moment(self, moment: _Moment) -> None:
        """What the server held then is what the changelog folds to, and projects to, what the history has as of then, and the mirror."""
        came = self._came[: sum(self._order[row.gtid] < moment.count for row in self._noted)]
        version = self._version(moment.count)
        snapshot = None if version is None else self._reading.shown(version)
        rows = moment.tables.get(self._lineage)
        where = f"{self._where} behind {moment.count} transactions"
        assert (rows is None) == (snapshot is None), where
        fold = folded(came, snapshot)
        if snapshot is None or rows is None:
            assert not fold, where
            return
        names = [column.name for column in snapshot.columns]
        assert all(list(row) == names for row in rows), f"{where}: {names}"
        state = _state(came)
        wanted = self._wanted(rows, snapshot, state)
        assert_same_rows(f"{where}, the folded changelog", fold, wanted)
        if not came:
            return
        offset, last = came[-1].offset, moment.last
        if moment.position is not None:
            until = self._reading.offsets_until(self._location.changelog, moment.position)
            mine = {row.offset for row in self._came}
            assert until is None or until & mine == {row.offset for row in came}, (
                f"{where}: rows up to {moment.position}"
            )
        if self._location.history:
            found = row_bag(self._reading.as_of(self._location.history, offset, snapshot))
            assert_same_rows(f"{where}, the history as of {offset}", found, wanted)
        projected = row_bag(self._reading.projected(self._location.changelog, offset, snapshot)) if last else wanted
        assert_same_rows(f"{where}, the projected changelog", projected, wanted)
        if last and self._location.mirror and snapshot.primary_key:
            self._check_mirror(self._reading.mirror(self._id, snapshot), wanted, snapshot, state)

    def _check_mirror(self, mirror: Sequence[Row], wanted: Counter[Any], snapshot: Snapshot, state: State) -> None:
        """The mirror has the table's rows; where it keeps those that TRUNCATE takes, others too, under other keys."""
        keys = [tuple(row[name] for name in _key_names(snapshot)) for row in mirror]
        assert len(keys) == len(set(keys)), f"{self._where}: keys come twice in the mirror"
        kept = [key for key in keys if key not in state]
        assert not kept or self._reading.keeps_rows(self._id), f"{self._where}: only in the mirror {kept[:2]}"
        assert {row.key for row in self._came}.issuperset(kept), f"{self._where}: {kept[:2]}"
        live = [row for row, key in zip(mirror, keys, strict=True) if key in state]
        assert_same_rows(f"{self._where}, the mirror", row_bag(live), wanted)

    def _wanted(self, rows: Iterable[Row], snapshot: Snapshot, state: State) -> Counter[Any]:
        """*rows* of the server as the lake is to have them: what the log did not tell of a row is NULL."""
        names = _key_names(snapshot)
        found = []
        for row in rows:
            held = state.get(tuple(row[name] for name in names)) if names else None
            found.append(self._known(row, snapshot, 0 if held is None else held.version))
        return row_bag(found)

    def _known(self, row: Row, snapshot: Snapshot, written: int) -> Row:
        """*row*, which was last written under the version *written*."""
        known = {c.name for c in snapshot.columns if self._since.get(c.id, 0) <= written}
        return {name: value if name in known else None for name, value in row.items()}

    def _version(self, count: int) -> Version | None:
        """In force behind so many transactions."""
        found = None
        for version in self._reading.versions(self._id):
            assert version.entry.place is not None
            if self._order[version.entry.place.gtid] < count:
                found = version
        return found

    def _shown_before(self, gtid: str) -> Snapshot:
        version = self._version(self._order[gtid])
        snapshot = None if version is None else self._reading.shown(version)
        assert snapshot is not None
        return snapshot


def folded(rows: Sequence[LakeRow], snapshot: Snapshot | None) -> Counter[Any]:
    """What a changelog leaves, under *snapshot*: a bag, which a table with a key must make a set."""
    columns = () if snapshot is None else snapshot.columns
    initial = {column.id: _initial(column) for column in columns}

    def shown(row: LakeRow) -> Any:
        return _frozen({column.name: row.by_id.get(column.id, initial[column.id]) for column in columns})

    if snapshot is not None and snapshot.primary_key:
        return Counter(shown(row) for row in _state(rows).values())
    bag: Counter[Any] = Counter()
    for row in rows:
        bag[shown(row)] += 1 if row.op in BEGUN else -1
    if snapshot is None:
        assert sum(bag.values()) == 0, "a dropped table's changelog leaves rows"
        return Counter()
    assert all(count >= 0 for count in bag.values()), [row for row, count in bag.items() if count < 0][:2]
    return +bag


def _state(rows: Iterable[LakeRow]) -> State:
    """The last row of each key; a key comes once, and what is taken back is there."""
    state: State = {}
    for row in rows:
        if row.key and row.op in BEGUN:
            assert row.key not in state, row
            state[row.key] = row
        elif row.key:
            del state[row.key]
    return state


def _key_names(snapshot: Snapshot) -> list[str]:
    names = {column.id: column.name for column in snapshot.columns}
    return [names[column_id] for column_id in snapshot.primary_key]


def assert_same_rows(where: str, found: Counter[Any], wanted: Counter[Any]) -> None:
    """Fails where one of two bags of rows has a row that the other one lacks."""
    more, less = found - wanted, wanted - found
    assert not more, f"{where}: {sum(more.values())} only there {list(more)[:2]}\nonly held {list(less)[:2]}"
    assert not less, f"{where}: {sum(less.values())} only held {list(less)[:2]}"


def row_bag(rows: Iterable[Row]) -> Counter[Any]:
    """Rows as :func:`folded` gives them."""
    return Counter(_frozen(row) for row in rows)


def _by_transaction(rows: Sequence[ExpectedRow]) -> Iterator[tuple[str, list[ExpectedRow]]]:
    part: list[ExpectedRow] = []
    for row in rows:
        if part and row.gtid != part[0].gtid:
            yield part[0].gtid, part
            part = []
        part.append(row)
    if part:
        yield part[0].gtid, part


def _initial(column: Column) -> Any:
    if not column.initial_known:
        return None  # Rows that read something else were written again.
    return noted_values(pa.array([initial_value(column)], arrow_type(column.type)), column.type)[0]


def _frozen(row: Row) -> tuple[tuple[str, Any], ...]:
    return tuple((name, _same(value)) for name, value in row.items())


def _same(value: Any) -> Any:
    """A DATE that became a DATETIME is midnight of that day."""
    if isinstance(value, dt.date) and not isinstance(value, dt.datetime):
        return dt.datetime(value.year, value.month, value.day)  # noqa: DTZ001 a DATETIME has no zone
    return value
