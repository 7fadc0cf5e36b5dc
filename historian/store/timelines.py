"""How a timeline is written into a store's tables, entry by entry, and read back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, Table, and_, func, insert, select, update

from historian import codec
from historian.errors import StoreError
from historian.history.stored_timeline import FULL_EVERY, EditRow, StoredTimeline, digest_of, edit_rows, folded, head_of
from historian.history.timeline import Horizon, TimelineEntry
from historian.names import TableName
from historian.schema.edits import RenameTable
from historian.schema.gaps import ResumeTable
from historian.schema.snapshots import Snapshot
from historian.store.contents import loosened, squeezed
from historian.store.facts import horizon, set_fact
from historian.store.tables import NEXT_STEP, edits, entries, snapshots

__all__ = [
    "TimelineWriter",
    "append_entries",
    "held_snapshots",
    "insert_entries",
    "last_number",
    "put_snapshots",
    "read_timeline",
    "restore_horizon",
]

_GONE = ("drop_table", "forget_table")
_AT_ONCE = 500
"""Values in one statement; databases limit them."""


def last_number(connection: Connection) -> int:
    """Number of the last entry, forgotten ones included; 0 where there was none."""
    forgotten = horizon(connection)
    newest = connection.execute(select(func.max(entries.c.number))).scalar() or 0
    return max(newest, 0 if forgotten is None else forgotten.number)


def read_timeline(connection: Connection, after: int = 0, upto: int | None = None) -> StoredTimeline:
    """The entries behind the number *after*, by default to the end, not decoded."""
    query = _between(entries, after, upto).order_by(entries.c.number)
    heads = {number: (place, body) for number, place, body in connection.execute(query)}
    known: dict[str, str] = {}
    rows = [
        _plain(row, known)
        for row in connection.execute(_between(edits, after, upto).order_by(edits.c.number, edits.c.part))
    ]
    needed = _between(edits, after, upto).with_only_columns(edits.c.snapshot).where(edits.c.snapshot.is_not(None))
    texts = connection.execute(select(snapshots).where(snapshots.c.digest.in_(needed)))
    return _timeline(heads, rows, {known.get(digest, digest): body for digest, body in texts})


def _plain(row: Any, known: dict[str, str]) -> EditRow:
    """*row* with texts that many rows have as the same object: a history of very many tables is held in memory."""
    number, part, table_id, database, table, kind, column_id, body, snapshot = row
    same = known.setdefault
    database, kind, body = same(database, database), same(kind, kind), same(body, body) if body == "{}" else body
    snapshot = snapshot if snapshot is None else same(snapshot, snapshot)
    return EditRow(number, part, table_id, database, table, kind, column_id, body, snapshot)


def held_snapshots(connection: Connection, digests: Iterable[str]) -> dict[str, str]:
    """JSON of those schemas that are stored, by digest."""
    wanted = tuple(digests)
    found: dict[str, str] = {}
    for begin in range(0, len(wanted), _AT_ONCE):
        query = select(snapshots).where(snapshots.c.digest.in_(wanted[begin : begin + _AT_ONCE]))
        found.update((digest, loosened(body)) for digest, body in connection.execute(query))
    return found


def put_snapshots(connection: Connection, texts: Mapping[str, str]) -> None:
    """Stores JSON of schemas by digest, as far as it is not there."""
    present = held_snapshots(connection, texts)
    new = [{"digest": digest, "body": squeezed(text)} for digest, text in texts.items() if digest not in present]
    if new:
        connection.execute(insert(snapshots), new)


def insert_entries(connection: Connection, new: Sequence[tuple[TimelineEntry, list[EditRow], dict[str, str]]]) -> None:
    """Inserts entries with what :func:`~historian.history.stored_timeline.edit_rows` made of them."""
    heads = [(entry.number, *head_of(entry)) for entry, _, _ in new]
    rows = [_stored(row) for _, rows, _ in new for row in rows]
    put_snapshots(connection, {digest: text for _, _, texts in new for digest, text in texts.items()})
    if heads:
        values = [{"number": number, "place": place, "body": squeezed(head)} for number, place, head in heads]
        connection.execute(insert(entries), values)
    if rows:
        connection.execute(insert(edits), rows)


def restore_horizon(connection: Connection, forgotten: Horizon, left: Sequence[TimelineEntry]) -> None:
    """Gives an empty store the begin of a history whose older versions were forgotten; one that has it stays as it is.

    Raises:
        StoreError: it holds another history.
    """
    held = horizon(connection)
    if held is None and not last_number(connection):
        insert_entries(connection, [(entry, *edit_rows(entry, lambda _: 0)) for entry in left])
        set_fact(connection, "horizon", codec.dump(Horizon, forgotten))
    elif held != forgotten or _entries_upto(connection, forgotten.number) != tuple(left):
        raise StoreError(
            "the store holds another history", where="horizon", expected=held, found=forgotten, next_step=NEXT_STEP
        )


def _entries_upto(connection: Connection, number: int) -> tuple[TimelineEntry, ...]:
    timeline = read_timeline(connection, 0, number)
    return tuple(map(timeline.entry, timeline.heads))


def append_entries(connection: Connection, new: Sequence[TimelineEntry]) -> None:
    """Appends entries in a transaction that goes on; errors are those of :meth:`TimelineWriter.add`."""
    writer = TimelineWriter(connection)
    writer.add(new)
    writer.flush()


class TimelineWriter:
    """Appends entries in one transaction; :meth:`flush` ends it."""

    def __init__(self, connection: Connection) -> None:
        forgotten = horizon(connection)
        self._connection = connection
        self._horizon = 0 if forgotten is None else forgotten.number
        self._last = last_number(connection)
        self._ids: dict[TableName, int] = {}
        self._since_full: dict[int, int] = {}
        self._new: list[tuple[TimelineEntry, list[EditRow], dict[str, str]]] = []
        self._places: dict[str, int] = {}

    def add(self, new: Sequence[TimelineEntry]) -> None:
        """Appends the entries *new*, each unless it or its place is recorded.

        Raises:
            StoreError: its number is taken by another entry, or leaves a hole.
            EditConflict: it changes a table that is not there.
        """
        heads = [head_of(entry) for entry in new]
        self._find([place for place, _ in heads if place is not None])
        for entry, (place, head) in zip(new, heads, strict=True):
            self._add(entry, place, head)

    def put(self, entry: TimelineEntry) -> None:
        """Appends *entry* without looking whether it follows."""
        self._put(entry, head_of(entry)[0])

    def _find(self, places: Sequence[str]) -> None:
        """Looks up which of *places* are recorded, under which numbers."""
        for begin in range(0, len(places), _AT_ONCE):
            some = entries.c.place.in_(places[begin : begin + _AT_ONCE])
            self._places.update(self._connection.execute(select(entries.c.place, entries.c.number).where(some)).all())

    def _add(self, entry: TimelineEntry, place: str | None, head: str) -> None:
        if entry.number <= self._last and self._is_recorded(entry, head):
            return
        if place is not None and self._places.get(place, entry.number) != entry.number:
            return
        if entry.number <= self._last:
            raise StoreError(
                "a timeline entry is there already, with other content",
                where=f"entry {entry.number}",
                expected=self._head(entry.number),
                found=head,
                next_step="another run recorded it; start again from what the store holds",
            )
        if entry.number != self._last + 1:
            raise StoreError(
                "the timeline has a hole",
                where="the next entry",
                expected=self._last + 1,
                found=entry.number,
                next_step=NEXT_STEP,
            )
        self._put(entry, place)

    def _put(self, entry: TimelineEntry, place: str | None) -> None:
        rows, texts = edit_rows(entry, self._table_id)
        self._last = entry.number
        self._new.append((entry, rows, texts))
        if place is not None:
            self._places[place] = entry.number
        for edit, row in zip(entry.edits, rows, strict=True):
            if isinstance(edit, (RenameTable, ResumeTable)):
                self._ids[edit.table] = 0
            self._note(row)
        for table_id in {row.table_id for row in rows if row.table_id}:
            self._since_full[table_id] += 1
            if self._since_full[table_id] > FULL_EVERY:
                self._store_full(table_id)

    def flush(self) -> None:
        """Writes what was added."""
        insert_entries(self._connection, self._new)
        self._new = []

    def _is_recorded(self, entry: TimelineEntry, head: str) -> bool:
        """Whether *entry* itself is there, as far as it is still known."""
        self.flush()
        held = self._head(entry.number)
        if entry.number <= self._horizon:
            return held in (None, head)
        if held != head:
            return False
        timeline = read_timeline(self._connection, entry.number - 1, entry.number)
        return timeline.entry(entry.number) == entry

    def _head(self, number: int) -> str | None:
        body = self._connection.execute(select(entries.c.body).where(entries.c.number == number)).scalar()
        return None if body is None else loosened(body)

    def _table_id(self, name: TableName) -> int:
        """Id of the table that has the name after the last entry; 0: there is none."""
        if name not in self._ids:
            of_name = and_(edits.c.database_name == name.database, edits.c.table_name == name.table)
            last = self._last_row(of_name)
            if last is None or last.kind in _GONE or not last.table_id:
                self._ids[name] = 0
            else:
                # Where it has another name by now, this one is free.
                newest = self._last_row(edits.c.table_id == last.table_id)
                same = newest is not None and (newest.database_name, newest.table_name) == name
                self._ids[name] = last.table_id if same else 0
        return self._ids[name]

    def _last_row(self, condition: ColumnElement[bool]) -> Any:
        query = select(edits).where(condition).order_by(edits.c.number.desc(), edits.c.part.desc()).limit(1)
        return self._connection.execute(query).one_or_none()

    def _note(self, row: EditRow) -> None:
        self._ids[TableName(row.database, row.table)] = 0 if row.kind in _GONE else row.table_id
        if row.kind in ("create_table", "resume_table"):
            self._since_full[row.table_id] = 0
        elif row.table_id and row.table_id not in self._since_full:
            self._since_full[row.table_id] = self._stored_since_full(row.table_id)

    def _stored_since_full(self, table_id: int) -> int:
        full = select(func.max(edits.c.number)).where(edits.c.table_id == table_id, edits.c.snapshot.is_not(None))
        behind = edits.c.number > func.coalesce(full.scalar_subquery(), 0)
        query = select(func.count(edits.c.number.distinct())).where(edits.c.table_id == table_id, behind)
        return self._connection.execute(query).scalar() or 0

    def _store_full(self, table_id: int) -> None:
        """Stores the table's schema after its newest edit beside that edit."""
        self.flush()
        full = select(func.max(edits.c.number)).where(edits.c.table_id == table_id, edits.c.snapshot.is_not(None))
        wanted = and_(edits.c.table_id == table_id, edits.c.number >= full.scalar_subquery())
        rows: Any = self._connection.execute(select(edits).where(wanted).order_by(edits.c.number, edits.c.part)).all()
        begin = max(index for index, row in enumerate(rows) if row.snapshot is not None)
        timeline = _timeline({}, rows, held_snapshots(self._connection, [rows[begin].snapshot]))
        schema = folded(timeline.schema(rows[begin].snapshot), map(timeline.edit, rows[begin + 1 :]))
        self._since_full[table_id] = 0
        if schema is not None:
            text = codec.dump_short(Snapshot, schema)
            put_snapshots(self._connection, {digest_of(text): text})
            newest = and_(edits.c.number == rows[-1].number, edits.c.part == rows[-1].part)
            self._connection.execute(update(edits).where(newest).values(snapshot=digest_of(text)))


def _between(table: Table, after: int, upto: int | None) -> Select[Any]:
    query = select(table) if after == 0 else select(table).where(table.c.number > after)
    return query if upto is None else query.where(table.c.number <= upto)


def _timeline(heads: Mapping[int, tuple[str | None, str]], rows: Any, texts: Mapping[str, str]) -> StoredTimeline:
    return StoredTimeline(heads, rows, lambda digest: loosened(texts[digest]), loosened)


def _stored(row: EditRow) -> dict[str, Any]:
    names = ("number", "part", "table_id", "database_name", "table_name", "kind", "column_id", "body", "snapshot")
    return {**dict(zip(names, row, strict=True)), "body": squeezed(row.body)}
