"""Questions to a history over a made-up log, and a model that answers them from whole catalogs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

from historian.errors import HistorianError, PositionAhead, PositionExpired, PositionUnknown, UnknownTable
from historian.history.history import History
from historian.history.prefix import covers
from historian.history.timeline import Gap, TimelineEntry
from historian.names import TableName
from historian.positions import GtidSet, LogPosition
from historian.schema.applying import apply_all
from historian.schema.edits import CreateTable, DropDatabase, SetDatabase
from historian.schema.snapshots import Catalog
from models.timelines import Log, Transaction, position, table


def touched_ids(entries: list[TimelineEntry]) -> list[tuple[Catalog, set[int], set[int]]]:
    """For each entry the whole catalog after it, ids of tables that it edits, and of those that it creates."""
    steps, catalog = [], Catalog()
    for entry in entries:
        edited, created = set(), set()
        for edit in entry.edits:
            if isinstance(edit, CreateTable):
                created.add(edit.snapshot.table_id)
            elif not isinstance(edit, (SetDatabase, DropDatabase)) and edit.table in catalog.tables:
                edited.add(catalog.tables[edit.table].table_id)
            catalog = apply_all((edit,), catalog)
        steps.append((catalog, edited | created, created))
    return steps


def model_at(log: Log, name: TableName, prefix: GtidSet, own: Transaction | None, ordinal: int) -> object:
    """Snapshot or error class, from whole catalogs after each entry and a look at every entry."""
    steps = touched_ids(log.entries)
    held, ids = [], set()
    last: int | None = None
    known = False
    for i, (entry, (catalog, edited, _)) in enumerate(zip(log.entries, steps, strict=True)):
        place = entry.place
        if place is None:
            held.append(True)
        elif own is not None and place.gtid == own.gtid:
            held.append(place.ordinal < ordinal)
        else:
            held.append(prefix.contains_gtid(place.gtid))
        before = ids
        ids = {catalog.tables[name].table_id} if name in catalog.tables else set()
        was_unknown = i > 0 and name in steps[i - 1][0].unknown
        if (before | ids) & edited or (name in catalog.unknown) != was_unknown:
            known = True
            last = i if held[i] else last
    if last is None:
        return PositionExpired if known else UnknownTable
    catalog = steps[last][0]
    if name in catalog.unknown:
        return PositionUnknown
    if name not in catalog.tables:
        return UnknownTable
    table_id = catalog.tables[name].table_id
    begin = max(i for i in range(last + 1) if table_id in steps[i][2])
    needed = [i for i in range(begin, last + 1) if table_id in steps[i][1]]
    return catalog.tables[name] if all(held[i] for i in needed) else PositionUnknown


def found_at(history: History, name: TableName, where: LogPosition, **event: object) -> object:
    try:
        return history.at(name, where, **event).snapshot  # type: ignore[arg-type]
    except HistorianError as error:
        return type(error)


NAMES = tuple(table(name) for name in ("t0", "t1", "t2", "t3", "t4", "spare", "never"))


@dataclass(frozen=True, slots=True)
class Question:
    """Which version of a table is in force at a position, or for one event of the transaction behind it."""

    table: TableName
    position: LogPosition
    gtid: str | None = None
    ordinal: int | None = None

    def is_about_the_past_of(self, begin: LogPosition) -> bool:
        """Whether its position covers *begin*, but its event lies before."""
        return covers(self.position, begin) and self.gtid is not None and begin.gtid_set.contains_gtid(self.gtid)


def questions(random: Random, log: Log) -> Iterator[Question]:
    """One of each name at each bound, for some event behind it, and in a log with GTIDs for sets with holes."""
    for transaction in log.transactions:
        for name in NAMES:
            ordinal = random.randrange(9)
            yield Question(name, transaction.before)
            yield Question(name, transaction.after)
            yield Question(name, transaction.before, transaction.gtid or None, ordinal)
            if transaction.gtid:
                left = random.sample(log.transactions, random.randint(1, len(log.transactions)))
                held = GtidSet()
                for each in left:
                    held = held.union(GtidSet.parse(each.gtid))
                yield Question(name, position(str(held), 0, file=""))
                yield Question(name, position(str(held), 0, file=""), transaction.gtid, ordinal)


def answer(history: History, question: Question) -> object:
    """The version's number, table and schema, or the error's class."""
    try:
        version = history.at(question.table, question.position, question.ordinal, question.gtid)
    except HistorianError as error:
        return type(error)
    return version.number, version.table_id, version.name, version.snapshot


def model_answer(log: Log, resolved: LogPosition, gaps: tuple[Gap, ...], question: Question) -> object:
    """Schema or error class, by the rules alone; for a log with GTIDs."""
    held = question.position.gtid_set
    assert isinstance(held, GtidSet)
    own = next((each for each in log.transactions if each.gtid == question.gtid), None)
    read = resolved.gtid_set
    everything = held if own is None else held.union(GtidSet.parse(own.gtid))
    if not read.covers(everything):  # type: ignore[arg-type]
        return PositionAhead
    for gap in gaps:
        start, end = gap.start.gtid_set, gap.end.gtid_set
        if not start.covers(everything) and not held.covers(end):  # type: ignore[arg-type]
            return PositionUnknown
    return model_at(log, question.table, held, own, 99 if question.ordinal is None else question.ordinal)
