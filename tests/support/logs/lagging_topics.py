"""A source's random rows and statements in partitions that lag behind each other, and what its tables held: the oracle of rows read from topics."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from connectors.readers.kafka.client import KafkaSettings
from connectors.readers.kafka.messages.batch import Batch
from connectors.readers.kafka.messages.partitions import Partition
from connectors.readers.kafka.reader import KafkaReader
from connectors.tracking.tracker import Tracker
from historian.changelog.operations import Op, physical_name
from historian.plans.plans import Plan
from historian.schema.edits import DropTable, TruncateTable
from historian.store import Store
from logs.source_logs import tracker_of
from logs.statement_forms import FORMS
from logs.topic_streams import Message, batch_of

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from databases.kafka import Kafka

__all__ = ["Found", "Way", "World", "read"]

BEGUN_MS = 1_700_000_000_000
NAMES = ("t", "u", "v")


@dataclass
class Lifetime:
    """A table from its CREATE to its DROP, by whichever names."""

    number: int
    columns: dict[int, str]
    defaults: dict[int, int | None]
    rows: dict[int, dict[int, int | None]] = field(default_factory=dict)
    emptied: int = 0


@dataclass(frozen=True)
class Change:
    """A row before or behind a change: of which table, how often that was emptied by then, and the values by column."""

    lifetime: int
    emptied: int
    key: int
    values: Mapping[int, int | None]


@dataclass(frozen=True)
class Way:
    """How a source is and how its messages come.

    Attributes:
        grain_ms: the source tells times in such steps.
        is_apart: no row shares its time with a statement that separates rows.
        statements_lag: the partition with the statements may be behind others.
        is_limited: a plan has little room.
    """

    format: str
    partitions: int = 2
    grain_ms: int = 1
    is_apart: bool = True
    statements_lag: bool = False
    is_limited: bool = False


class World:
    """A random source: its messages in the source's order, and what is to be found of them."""

    def __init__(self, numbers: random.Random, way: Way, count: int) -> None:
        self._numbers, self.way = numbers, way
        self._form = FORMS[way.format]()
        self._grain_ms = max(way.grain_ms, self._form.least_grain_ms)
        self.log: list[tuple[Partition, Message, int]] = []
        self.text: list[str] = []
        self.changes: dict[int, Change] = {}
        self.lifetimes: list[Lifetime] = []
        self.tables: dict[str, Lifetime] = {}
        self.ended: dict[int, int] = {}
        self.named: dict[str, int] = {}
        self._now, self._column, self._version = BEGUN_MS, 0, 0
        self._create("t")
        for _ in range(count):
            self._now += numbers.choice([0, 1, 3, 10]) * max(1, self._grain_ms // numbers.choice([1, 2, 10]))
            if numbers.random() < 0.15 or not self.tables:
                self._state()
            else:
                self._change()

    @property
    def _time_ms(self) -> int:
        return self._now - self._now % self._grain_ms

    # ---- statements ------------------------------------------------------------------------------------------------
    def _state(self) -> None:
        numbers = self._numbers
        infers = self._form.infers
        free = [f"t{len(self.log)}"] if infers else [name for name in NAMES if name not in self.tables]
        held = list(self.tables)
        kinds = ["create"] * bool(free)
        if held:
            kinds += (
                ["add"]
                + ["drop_column", "rename_column", "again"] * (not infers)
                + ["truncate"] * 2 * self._form.empties
            )
            kinds += ["rename"] * bool(free) + ["drop"]
        kind = numbers.choice(kinds)
        if kind == "create":
            self._create(numbers.choice(free))
            return
        name = numbers.choice(held)
        table = self.tables[name]
        others = [column for column, named in table.columns.items() if named not in ("id", "v")]
        if kind == "add":
            self._add(name, table)
        elif kind == "drop_column" and others:
            column = numbers.choice(others)
            dropped = table.columns.pop(column)
            self._told(name, "ALTER", f"ALTER TABLE {name} DROP COLUMN {dropped}", table.columns.values())
            for row in table.rows.values():
                del row[column]
        elif kind == "rename_column" and others:
            column = numbers.choice(others)
            self._column += 1
            was, table.columns[column] = table.columns[column], f"r{self._column}"
            self.named[table.columns[column]] = column
            sql = f"ALTER TABLE {name} RENAME COLUMN {was} TO {table.columns[column]}"
            self._told(name, "ALTER", sql, table.columns.values())
        elif kind == "truncate":
            self._parted()
            self._told(name, "TRUNCATE", self._unlike(f"TRUNCATE TABLE {name}"), table.columns.values())
            self._empty(table)
            table.emptied += 1
        elif kind == "rename":
            new = numbers.choice(free)
            self._parted()
            self._told(new, "RENAME", self._unlike(f"RENAME TABLE {name} TO {new}"), table.columns.values())
            self.tables[new] = self.tables.pop(name)
        elif kind in ("drop", "again"):
            self._parted()
            self._told(name, "ERASE", self._unlike(f"DROP TABLE {name}"), table.columns.values())
            self._empty(table)
            del self.tables[name]
            if kind == "again":
                self._create(name)

    def _create(self, name: str) -> None:
        self._parted()
        self._told(name, "CREATE", self._unlike(f"CREATE TABLE {name} (id INT PRIMARY KEY, v INT)"), ("id", "v"))
        at = self._column
        self._column += 2
        self.tables[name] = Lifetime(len(self.lifetimes), {at + 1: "id", at + 2: "v"}, {})
        self.lifetimes.append(self.tables[name])

    def _add(self, name: str, table: Lifetime) -> None:
        self._column += 1
        default = self._numbers.choice([None, self._numbers.randrange(100)])
        there = "IF NOT EXISTS " * (self._numbers.random() < 0.2)
        rule = "NULL" if default is None else f"NOT NULL DEFAULT {default}"
        self.named[f"c{self._column}"] = self._column
        table.columns[self._column], table.defaults[self._column] = f"c{self._column}", default
        sql = f"ALTER TABLE {name} ADD COLUMN {there}c{self._column} INT {rule}"
        self._told(name, "ALTER", sql, table.columns.values())
        for row in table.rows.values():
            row[self._column] = default

    def _unlike(self, sql: str) -> str:
        """Two statements of the same text and second would count as one."""
        self._column += 1
        return f"{sql} /* {self._column} */"

    def _empty(self, table: Lifetime) -> None:
        for number, change in self.changes.items():
            if change.lifetime == table.number:
                self.ended.setdefault(number, len(self.log))
        table.rows.clear()

    def _parted(self) -> None:
        """Where *apart* is said, the statement's moment is its own."""
        if self.way.is_apart:
            self._now += 2 * self._grain_ms

    def _told(self, table: str, kind: str, sql: str, columns: Iterable[str]) -> None:
        message = self._form.statement(self._time_ms, table, kind, sql, columns)
        for number in range(self.way.partitions if self._form.broadcasts else 1):
            self.log.append(((self._form.of_statements or "t", number), message, self._time_ms))
        self.text.append(f"{self._time_ms - BEGUN_MS} {sql}")
        if self.way.is_apart and kind in ("CREATE", "TRUNCATE", "RENAME", "ERASE"):
            self._now += 2 * self._grain_ms

    # ---- rows ------------------------------------------------------------------------------------------------------
    def _change(self) -> None:
        numbers = self._numbers
        name = numbers.choice(list(self.tables))
        table = self.tables[name]
        key = numbers.randrange(8)
        before = table.rows.get(key)
        if before is not None and numbers.random() < 0.3:
            after = None
            del table.rows[key]
        else:
            self._version += 1
            of_name = {named: column for column, named in table.columns.items()}
            after = {column: numbers.choice([None, numbers.randrange(100)]) for column in table.columns}
            after = {
                column: 1 if value is None and table.defaults.get(column) is not None else value
                for column, value in after.items()
            }
            after |= {of_name["id"]: key, of_name["v"]: self._version}
            self.changes[self._version] = Change(table.number, table.emptied, key, dict(after))
            table.rows[key] = dict(after)
        named = [
            None if row is None else {table.columns[column]: value for column, value in row.items()}
            for row in (before, after)
        ]
        partition = ("t", key % self.way.partitions)
        message = self._form.row(self._time_ms, name, *named)
        self.log.append((partition, message, self._time_ms))
        self.text.append(f"{self._time_ms - BEGUN_MS} p{partition[1]} {name} {named[0]} -> {named[1]}")


class _Topics:
    """Partitions of a topic in memory, each of which has what was sent by now."""

    def __init__(self, world: World, numbers: random.Random, kafka: Kafka | None) -> None:
        self.kafka, self._way = kafka, world.way
        partitions = [("t", number) for number in range(world.way.partitions)]
        of_statements = FORMS[world.way.format].of_statements
        self._of_statements = (of_statements or "t", 0)
        self._wanted: dict[Partition, list[tuple[int, Message]]] = {
            at: [] for at in sorted({*partitions, self._of_statements})
        }
        for at, (partition, message, _) in enumerate(world.log):
            self._wanted[partition].append((at, message))
        self._held, self._reached = dict.fromkeys(self._wanted, 0), dict.fromkeys(self._wanted, 0)
        self._lengths = {at: numbers.randrange(1, 9) for at in self._wanted}
        if kafka is not None:
            kafka.make_topic("t", len(partitions))
            if of_statements:
                kafka.make_topic(of_statements)

    def send_more(self, numbers: random.Random) -> bool:
        """Sends what comes next; False: there was nothing left."""
        if all(len(self._wanted[at]) == self._held[at] for at in self._wanted):
            return False
        for partition in self._reached:
            self._reached[partition] += numbers.choice([0, 0, 3, 10, 40])
        if not self._way.statements_lag:
            self._reached[self._of_statements] = max(self._reached.values())
        for partition, reached in self._reached.items():
            sent = [message for at, message in self._wanted[partition][self._held[partition] :] if at < reached]
            self._held[partition] += len(sent)
            if self.kafka is not None:
                self.kafka.produce(partition[0], sent, partition[1])
        return True

    def partitions(self) -> tuple[Partition, ...]:
        return tuple(self._wanted)

    def bounds(self, partition: Partition) -> tuple[int, int]:
        return 0, self._held[partition]

    def topic_ids(self) -> dict[str, str]:
        return {}

    def batches(self, ranges: Mapping[Partition, tuple[int, int]]) -> Generator[tuple[Partition, Batch], None, None]:
        left = {partition: each for partition, each in ranges.items() if each[0] < each[1]}
        while left:
            for partition in list(left):
                begin, end = left.pop(partition)
                upto = min(end, begin + self._lengths[partition])
                yield partition, batch_of([message for _, message in self._wanted[partition][begin:upto]], begin)
                if upto < end:
                    left[partition] = upto, end

    def close(self) -> None:
        pass


@dataclass
class Found:
    """What plans have: of each table by its id, rows in order with how often it was emptied before them."""

    rows: dict[int, list[tuple[int, Op, dict[str, Any]]]] = field(default_factory=dict)
    emptied: Counter[int] = field(default_factory=Counter)
    stopped: dict[str, str] = field(default_factory=dict)
    live: dict[str, int] = field(default_factory=dict)
    columns: dict[int, dict[str, set[str]]] = field(default_factory=dict)
    plans: int = 0


def _note(found: Found, plan: Plan, reader: KafkaReader) -> None:
    """Notes the rows of the next plan."""
    versions = {(table.table_id, each.version): each for table in plan.tables for each in table.versions}
    emptied: dict[tuple[int, int], int] = {}
    for table in plan.tables:
        count = found.emptied[table.table_id]
        for each in table.versions:
            count += sum(isinstance(edit, TruncateTable | DropTable) for edit in each.edits)
            emptied[table.table_id, each.segment] = count
        found.emptied[table.table_id] = count
    for planned in plan.ranges:
        for chunk in reader.read(planned, plan.tables, stops=True):
            snapshot = versions[chunk.table_id, chunk.version].snapshot
            assert snapshot is not None
            names = {column.name: physical_name(column.id) for column in snapshot.columns}
            for column in snapshot.columns:
                found.columns.setdefault(chunk.table_id, {}).setdefault(physical_name(column.id), set()).add(
                    column.name
                )
            assert not chunk.stopped, chunk.stopped
            for row in chunk.rows.select(["op", *names.values()]).to_pylist():
                op = Op(row.pop("op"))
                row |= {"id": row[names["id"]], "v": row[names["v"]]}
                found.rows.setdefault(chunk.table_id, []).append((emptied[chunk.table_id, chunk.segment], op, row))
    found.plans = plan.number


class _Died(Exception):
    pass


def _begun(way: Way, topics: _Topics, store: Store) -> tuple[KafkaReader, Tracker]:
    """A reader and a tracker that know what is stored."""
    of_statements, kafka = FORMS[way.format].of_statements, topics.kafka
    brokers = "" if kafka is None else kafka.brokers
    reader = KafkaReader(KafkaSettings(brokers=brokers, topics=("t",), format=way.format, schema_topic=of_statements))
    if kafka is None:
        reader._client = reader._administration = topics  # type: ignore[assignment]
    return reader, tracker_of(reader, store)


def _let_die(store: Store, dies: Callable[[], bool]) -> None:
    """Has who writes to *store* end before or behind a transaction."""
    write = store._transactions.write

    def written(work: Callable[[Connection], Any]) -> Any:
        if dies():
            raise _Died
        done = write(work)
        if dies():
            raise _Died
        return done

    store._transactions.write = written  # type: ignore[method-assign]


def read(
    world: World, numbers: random.Random, *, anew: bool = False, dies: float = 0.0, kafka: Kafka | None = None
) -> Found:
    """Reads the messages of *world* as its way says.

    Args:
        anew: who reads knows behind each plan what is stored, and no more.
        dies: so often it ends before or behind what it writes to its store, and then goes on by itself, or anew.
        kafka: that has the topics; None: they are in memory.
    """
    topics, found, deaths = _Topics(world, numbers, kafka), Found(), random.Random(9)
    limit_bytes = 2_000 if world.way.is_limited else None
    with closing(Store.open("sqlite://")) as store:
        begun = partial(_begun, world.way, topics, store)
        reader, tracker = begun()
        _let_die(store, lambda: deaths.random() < dies)
        while topics.send_more(numbers):
            while True:
                try:
                    plan = tracker.plan_after(found.plans, limit_bytes=limit_bytes)
                except _Died:
                    if deaths.random() < 0.5:
                        reader, tracker = begun()
                    continue
                if plan is None:
                    break
                _note(found, plan, reader)
                if anew:
                    reader, tracker = begun()
        found.live = {name.table: snapshot.table_id for name, snapshot in tracker.history.catalog.tables.items()}
        found.stopped = {str(name): stop.reason for _, name, stop in store.stopped()}
        reader.close()
    return found
