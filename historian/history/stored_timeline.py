"""A timeline as a store keeps it: the head of each entry, and a row for each of its edits.

What an edit changes in one table is all that is stored of it. A table's full schema stands aside, under the digest of
its JSON, where the table is created and again after every :data:`FULL_EVERY` entries on it. Nothing is decoded before it
is asked for.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from operator import itemgetter
from typing import Any, NamedTuple, get_args

from historian import codec
from historian.errors import EditConflict
from historian.history.timeline import TimelineEntry, place_key
from historian.history.versions import touched_names
from historian.names import TableName
from historian.positions import LogPosition
from historian.positions.places import Place
from historian.schema.applying import apply
from historian.schema.edits import AddColumn, CreateTable, DropDatabase, DropTable, Edit, ForgetTable, SetDatabase
from historian.schema.gaps import ResumeTable, SkipLog
from historian.schema.snapshots import Catalog, Snapshot

__all__ = ["FULL_EVERY", "EditRow", "StoredTimeline", "digest_of", "edit_rows", "folded", "head_of"]

FULL_EVERY = 32
_KINDS: dict[str, Any] = {
    str(field.default): kind for kind in get_args(get_args(Edit)[0]) for field in fields(kind) if field.name == "kind"
}


class EditRow(NamedTuple):
    """One edit of an entry.

    Attributes:
        part: its place among the entry's edits, from 0.
        table_id: of the table that it changes; 0 where it changes none.
        database, table: the table's name after the edit; ``table`` is "" where it changes a database.
        column_id: the highest column id that it gives away; 0: none.
        body: its JSON without ``kind``; of CREATE "{}", since ``schema`` says all.
        schema: digest of the table's full schema after the edit, where that is stored.
    """

    number: int
    part: int
    table_id: int
    database: str
    table: str
    kind: str
    column_id: int
    body: str
    schema: str | None


def digest_of(text: str) -> str:
    """What a text is stored under: its SHA-256 in hex."""
    return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Head:
    """An entry without its number, its edits, and what its place's key says.

    Attributes:
        offset: of the place; None: a capture.
        file: of the place; None: the position's.
        ordinal: of the place; None: the key says it.
        server: None: the position's.
        source, transaction: as of the entry.
        corrected: the whole place of an entry that corrects what was recorded there; such a place is no key.
    """

    position: LogPosition
    offset: int | None = None
    file: str | None = None
    ordinal: int | None = None
    server: str | None = None
    statement: str = ""
    database: str = ""
    event_time_us: int = 0
    source: str = ""
    transaction: tuple[int, int] | None = None
    corrected: Place | None = None


def head_of(entry: TimelineEntry) -> tuple[str | None, str]:
    """The key of *entry*'s place, and JSON of all else but its number and edits."""
    place, position = None if entry.corrects else entry.place, entry.position
    head = _Head(
        position=position,
        offset=None if place is None else place.offset,
        file=None if place is None or place.file == position.file else place.file,
        ordinal=None if place is None or place.gtid else place.ordinal,
        server=None if entry.server == position.server else entry.server,
        statement=entry.statement,
        database=entry.database,
        event_time_us=entry.event_time_us,
        source=entry.source,
        transaction=entry.transaction,
        corrected=entry.place if entry.corrects else None,
    )
    return None if place is None else place_key(place, entry.server), codec.dump_short(_Head, head)


def edit_rows(entry: TimelineEntry, table_id: Callable[[TableName], int]) -> tuple[list[EditRow], dict[str, str]]:
    """The rows of *entry*, and the JSON of schemas by digest.

    Args:
        entry: the next one of the timeline.
        table_id: gives the id of the table that had a name before the entry, 0 where there was none.

    Raises:
        EditConflict: an edit changes a table that is not there.
    """
    ids: dict[TableName, int] = {}
    rows: list[EditRow] = []
    schemas: dict[str, str] = {}
    for part, edit in enumerate(entry.edits):
        schema, body, column_id = None, "", 0
        if isinstance(edit, (SetDatabase, DropDatabase, SkipLog)):
            name, changed = TableName(_database(edit), ""), 0
        else:
            before, name = touched_names(edit)[0], touched_names(edit)[-1]
            changed = edit.snapshot.table_id if isinstance(edit, (CreateTable, ResumeTable)) else ids.get(before, -1)
            if changed < 0:
                changed = table_id(before)
            if not changed and not isinstance(edit, ForgetTable):
                raise EditConflict(f"{edit.kind} on a table that is not there", where=str(before))
            ids[before] = 0
            ids[name] = 0 if isinstance(edit, (DropTable, ForgetTable)) else changed
        if isinstance(edit, (CreateTable, ResumeTable)):
            text = codec.dump_short(Snapshot, edit.snapshot)
            schema = digest_of(text)
            schemas[schema] = text
            column_id = max((column.id for column in edit.snapshot.columns), default=0)
        elif isinstance(edit, AddColumn):
            column_id = edit.column.id
        body = "{}" if isinstance(edit, CreateTable) else codec.dump_short(type(edit), edit)
        rows.append(EditRow(entry.number, part, changed, name.database, name.table, edit.kind, column_id, body, schema))
    return rows, schemas


@dataclass(frozen=True, slots=True)
class StoredTimeline:
    """Rows of a whole timeline, and what decodes them.

    Args:
        heads: what :func:`head_of` gives of each entry, by number, ascending.
        rows: :class:`EditRow` or tuples like it, by number and part.
        schema_text: gives a full schema's JSON by its digest.
        plain: makes JSON of a head's or row's text, where the store keeps it in another form.
    """

    heads: Mapping[int, tuple[str | None, str]]
    rows: Sequence[EditRow]
    schema_text: Callable[[str], str]
    plain: Callable[[str], str] = str

    def entry(self, number: int) -> TimelineEntry:
        """The entry of that number; its edits are decoded when they are asked for."""
        key, text = self.heads[number]
        head = codec.load(_Head, self.plain(text))
        return TimelineEntry.later(
            lambda: tuple(self.edit(row) for row in self.rows_of(number)),
            number=number,
            place=head.corrected if key is None else _place(key, head),
            position=head.position,
            statement=head.statement,
            database=head.database,
            event_time_us=head.event_time_us,
            source=head.source,
            transaction=head.transaction,
            server=head.position.server if head.server is None else head.server,
            corrects=head.corrected is not None,
        )

    def rows_of(self, number: int) -> Sequence[EditRow]:
        """The rows of one entry, in order."""
        begin, end = (bisect_left(self.rows, at, key=itemgetter(0)) for at in (number, number + 1))
        return self.rows[begin:end]

    def before(self, number: int) -> Sequence[EditRow]:
        """The rows of all entries before that number."""
        return self.rows[: bisect_left(self.rows, number, key=itemgetter(0))]

    def edit(self, row: EditRow) -> Edit:
        """The edit of a row."""
        kind, body, schema = row[5], row[7], row[8]
        if kind == "create_table" and schema is not None:
            return CreateTable(snapshot=self.schema(schema))
        edit: Edit = codec.load(_KINDS[kind], self.plain(body))
        return edit

    def schema(self, digest: str) -> Snapshot:
        """The full schema of that digest."""
        return codec.load(Snapshot, self.schema_text(digest))


def folded(snapshot: Snapshot | None, edits: Iterable[Edit]) -> Snapshot | None:
    """The schema of a table after *edits* of it, *snapshot* being that before; None where it is gone or unknown.

    Raises:
        EditConflict: an edit does not fit.
    """
    for edit in edits:
        if isinstance(edit, (CreateTable, ResumeTable)):
            snapshot = edit.snapshot
        elif isinstance(edit, (DropTable, ForgetTable)):
            snapshot = None
        else:
            tables = {} if snapshot is None else {snapshot.name: snapshot}
            snapshot = apply(edit, Catalog(tables=tables)).tables[touched_names(edit)[-1]]
    return snapshot


def _database(edit: SetDatabase | DropDatabase | SkipLog) -> str:
    if isinstance(edit, SkipLog):
        return ""
    return edit.name if isinstance(edit, DropDatabase) else edit.database.name


def _place(key: str, head: _Head) -> Place:
    gtid, _, ordinal = key.rpartition("/") if head.ordinal is None else ("", "", str(head.ordinal))
    file = head.position.file if head.file is None else head.file
    return Place(gtid=gtid, file=file, offset=head.offset or 0, ordinal=int(ordinal))
