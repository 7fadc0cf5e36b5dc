"""Made-up logs for tests of the core: positions, snapshots, entries, and random timelines of two servers."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from random import Random

from historian.history.timeline import TimelineEntry
from historian.names import TableName
from historian.positions import GtidSet, LogPosition
from historian.positions.places import Place
from historian.schema.applying import apply_all
from historian.schema.edits import (
    AddColumn,
    ChangeType,
    CreateTable,
    DropColumn,
    DropTable,
    Edit,
    ForgetTable,
    MoveColumn,
    RenameColumn,
    RenameTable,
    SetPrimaryKey,
    TruncateTable,
)
from historian.schema.snapshots import Catalog, Column, ColumnType, Snapshot

A = "aaaaaaaa-71ca-11e1-9e33-c80aa9429562"
B = "bbbbbbbb-71ca-11e1-9e33-c80aa9429562"
SERVER = A
INT = ColumnType(name="int")
BIGINT = ColumnType(name="bigint")
FILE = "binlog.000001"


def table(name: str) -> TableName:
    return TableName("shop", name)


def position(gtids: str = "", offset: int = 4, file: str = FILE, server: str = SERVER) -> LogPosition:
    return LogPosition(flavor="mysql", gtids=gtids, file=file, offset=offset, server=server)


def snapshot(table_id: int, name: str, *columns: str, key: tuple[int, ...] = (), first: int = 1) -> Snapshot:
    """A table of INT columns with ids from *first*."""
    return Snapshot(
        table_id=table_id,
        name=table(name),
        columns=tuple(Column(id=first + i, name=column, type=INT) for i, column in enumerate(columns)),
        primary_key=key,
        charset="utf8mb4",
        collation="utf8mb4_0900_ai_ci",
    )


def create(table_id: int, name: str, *columns: str, key: tuple[int, ...] = (), first: int = 1) -> CreateTable:
    return CreateTable(snapshot=snapshot(table_id, name, *columns, key=key, first=first))


def capture(*edits: Edit, at: LogPosition | None = None, number: int = 1) -> TimelineEntry:
    return TimelineEntry(
        number=number,
        place=None,
        position=at or position(),
        edits=edits,
        statement="",
        database="",
        event_time_us=0,
        server=SERVER,
    )


def statement(
    number: int, gtid: str, *edits: Edit, ordinal: int = 1, offset: int = 0, before: LogPosition | None = None
) -> TimelineEntry:
    """An entry of the transaction *gtid*, by default at an offset that ascends with its number."""
    offset = offset or 1000 * number
    return TimelineEntry(
        number=number,
        place=Place(gtid=gtid, file=FILE, offset=offset, ordinal=ordinal),
        position=before or position(offset=offset - 100),
        edits=edits,
        statement=f"statement {number}",
        database="shop",
        event_time_us=number * 1_000_000,
        server=SERVER,
    )


@dataclass(frozen=True, slots=True)
class Transaction:
    """One transaction of a made-up log: its bounds, and the ordinals of its statements."""

    gtid: str
    before: LogPosition
    after: LogPosition
    ordinals: tuple[int, ...]


@dataclass(slots=True)
class Log:
    """A made-up log: transactions in order, and the timeline that a tracker made of it."""

    entries: list[TimelineEntry] = field(default_factory=list)
    transactions: list[Transaction] = field(default_factory=list)
    catalog: Catalog = field(default_factory=Catalog)

    @property
    def end(self) -> LogPosition:
        return self.transactions[-1].after if self.transactions else self.entries[0].position


def random_log(random: Random, transactions: int, *, gtids: bool = True) -> Log:
    """A log of two servers' transactions, each with up to three statements on a few tables, some touching several."""
    log = Log()
    log.entries.append(capture(create(1, "t0", "a", "b", key=(1,))))
    log.catalog = apply_all(log.entries[0].edits, log.catalog)
    at, numbers = position(), {A: 0, B: 0}
    offset = 200
    for _ in range(transactions):
        server = random.choice((A, B))
        numbers[server] += 1
        gtid = f"{server}:{numbers[server]}" if gtids else ""
        ordinals = sorted(random.sample(range(1, 8), random.choice((0, 1, 1, 1, 2, 3))))
        for ordinal in ordinals:
            edits = random_edits(random, log.catalog)
            entry = statement(
                len(log.entries) + 1, gtid, *edits, ordinal=ordinal, offset=offset + 10 * ordinal, before=at
            )
            log.entries.append(entry)
            log.catalog = apply_all(edits, log.catalog)
        executed = str(GtidSet.of({server: [(1, last)] for server, last in numbers.items() if last})) if gtids else ""
        offset += 100
        after = position(executed, offset)
        log.transactions.append(Transaction(gtid, at, after, tuple(ordinals)))
        at = after
    return log


def random_edits(random: Random, catalog: Catalog) -> tuple[Edit, ...]:
    """What one statement may do to *catalog*; most do one thing to one table."""
    tables = sorted(catalog.tables.values(), key=lambda t: t.name)
    free = [table(f"t{i}") for i in range(5) if table(f"t{i}") not in catalog.tables]
    choice = random.random()
    if not tables or (free and choice < 0.2):
        return (_random_create(random, catalog, random.choice(free)),)
    if choice < 0.27:
        gone = random.sample(tables, random.randint(1, min(2, len(tables))))
        return tuple(DropTable(table=t.name, table_id=t.table_id) for t in gone)
    if choice < 0.33:
        t = random.choice(tables)
        return (DropTable(table=t.name, table_id=t.table_id), _random_create(random, catalog, t.name))
    if choice < 0.45 and len(tables) > 1:
        one, two = random.sample(tables, 2)
        spare = table("spare")
        return (
            RenameTable(table=one.name, table_id=one.table_id, new=spare),
            RenameTable(table=two.name, table_id=two.table_id, new=one.name),
            RenameTable(table=spare, table_id=one.table_id, new=two.name),
        )
    if choice < 0.5 and free:
        t = random.choice(tables)
        return (RenameTable(table=t.name, table_id=t.table_id, new=random.choice(free)),)
    if choice < 0.54:
        return (ForgetTable(table=random.choice(tables).name, reason="not understood"),)
    if choice < 0.6:
        t = random.choice(tables)
        return (TruncateTable(table=t.name, table_id=t.table_id),)
    return _random_alter(random, catalog, random.choice(tables))


def _random_create(random: Random, catalog: Catalog, name: TableName) -> CreateTable:
    names = ("a", "b", "c")[: random.randint(1, 3)]
    first = catalog.next_column_id
    made = snapshot(catalog.next_table_id, "x", *names, key=random.choice(((), (first,))), first=first)
    return CreateTable(snapshot=replace(made, name=name))


def _random_alter(random: Random, catalog: Catalog, altered: Snapshot) -> tuple[Edit, ...]:
    edits: list[Edit] = []
    for _ in range(random.choice((1, 1, 2, 3))):
        edit = _random_action(random, catalog, altered)
        edits.append(edit)
        catalog = apply_all((edit,), catalog)
        altered = catalog.tables[altered.name]
    return tuple(edits)


def _random_action(random: Random, catalog: Catalog, altered: Snapshot) -> Edit:
    name, columns = altered.name, altered.columns
    kinds = ["add"] if len(columns) < 2 else ["add", "drop", "rename", "type", "move", "key"]
    kind = random.choice(kinds)
    some = random.choice(columns) if columns else None
    after = random.choice([0, *(column.id for column in columns)])
    if kind == "add" or some is None:
        column_id = catalog.next_column_id
        initial = random.choice((None, "7"))
        return AddColumn(
            table=name, column=Column(id=column_id, name=f"n{column_id}", type=INT, initial=initial), after=after
        )
    if kind == "drop":
        return DropColumn(table=name, column_id=some.id, name=some.name)
    if kind == "rename":
        return RenameColumn(table=name, column_id=some.id, old=some.name, new=f"r{random.randrange(1000)}_{some.id}")
    if kind == "type":
        new = BIGINT if some.type == INT else INT
        return ChangeType(table=name, column_id=some.id, old=some.type, new=new)
    if kind == "move":
        return MoveColumn(table=name, column_id=some.id, after=0 if after == some.id else after)
    return SetPrimaryKey(table=name, columns=(some.id,))
