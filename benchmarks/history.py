"""A store of many DDLs: how long it takes to open, how fast a lookup is, how much it holds, and how that grows.

A made-up log creates a table in every 7th DDL, of 20 columns, and changes one in the others: columns come, go, change their
type and name, tables are renamed, emptied and dropped. Each size is opened and asked in a process of its own.

``open_100k_ddl_s``: :meth:`Store.open`, its history, and the first lookup; the median of three times. ``lookup_us``:
``History.at``, for positions in hand all over the log, of tables that were asked for before. ``store_mb``: the SQLite file.
``other`` is the bound that must hold. Also printed: ``first_us``, the first lookup of a table, which decodes its rows, and
``catalog_s``, the newest schema of all tables that are left, which a tracker reads when it starts. The last line of the table
is of a log on 3 tables alone. The last figures are those of ``ddl_speed.py``. All times are the processor's, since a busy machine would measure its other work.
Run: ``python benchmarks/history.py [--ddls 100000] [--tables 15000]``.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from random import Random

sys.path[:0] = [str(Path(__file__).parent.parent), str(Path(__file__).parent.parent / "tests" / "support")]

from ddl_speed import alter_per_s, create_per_s, triage_per_s

from historian.history.history import History
from historian.history.timeline import TimelineEntry
from historian.names import TableName
from historian.positions import LogPosition
from historian.positions.places import Place
from historian.schema.applying import apply
from historian.schema.edits import (
    AddColumn,
    ChangeType,
    CreateTable,
    DropColumn,
    DropTable,
    Edit,
    RenameColumn,
    RenameTable,
    TruncateTable,
)
from historian.schema.snapshots import Catalog, Column, ColumnType, Snapshot
from historian.store import Store

SERVER = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
FLOORS = {"triage_per_s": 20_000, "alter_per_s": 5_000, "create_per_s": 1_000}
BOUNDS = {"open_100k_ddl_s": 2.0, "lookup_us": 20.0, "store_mb": 100.0}
INT, BIGINT = ColumnType(name="int"), ColumnType(name="bigint", unsigned=True)
TEXT = ColumnType(name="varchar", length=190, charset="utf8mb4", collation="utf8mb4_0900_ai_ci")
PRICE, TIME = ColumnType(name="decimal", precision=12, scale=2), ColumnType(name="datetime", fraction=6)
TYPES = (INT, BIGINT, TEXT, PRICE, TIME)


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What one store was measured at; times per lookup in microseconds."""

    ddls: int
    alive: int
    build_s: float
    open_s: float
    first_us: float
    lookup_us: float
    catalog_s: float
    store_mb: float


class Log:
    """Makes entries of plausible DDL, one transaction each."""

    def __init__(self, tables: int, seed: int) -> None:
        self._random = Random(seed)
        self._wanted = tables
        self._alive: list[Snapshot] = []
        self._made = 0
        self._columns = 0

    def entry(self, number: int) -> TimelineEntry:
        statement, edits = self._statement(number)
        return TimelineEntry(
            number=number,
            place=Place(
                gtid=f"{SERVER}:{7 * number}", file=f"binlog.{number // 1000:06}", offset=4711 + number, ordinal=1
            ),
            position=at(7 * number - 1, number),
            edits=edits,
            statement=statement,
            database=f"app_{number % 40}",
            event_time_us=1_700_000_000_000_000 + number * 1_000_003,
            server=SERVER,
        )

    def _statement(self, number: int) -> tuple[str, tuple[Edit, ...]]:
        if not self._alive or (self._made < self._wanted and number % 7 == 1) or number <= min(3, self._wanted):
            return self._create()
        index = self._random.randrange(len(self._alive))
        table = self._alive[index]
        edits = self._alteration(table)
        if edits is None:
            if self._made >= self._wanted:
                return f"TRUNCATE TABLE `{table.name.table}`", (
                    TruncateTable(table=table.name, table_id=table.table_id),
                )
            self._alive.pop(index)
            return f"DROP TABLE `{table.name.table}`", (DropTable(table=table.name, table_id=table.table_id),)
        catalog = Catalog(tables={table.name: table})
        for edit in edits:
            catalog = apply(edit, catalog)
        (self._alive[index],) = catalog.tables.values()
        return f"ALTER TABLE `{table.name.table}` /* change {number} of release {number // 100} */ ...", edits

    def _alteration(self, table: Snapshot) -> tuple[Edit, ...] | None:
        kind, some = self._random.random(), self._random.choice(table.columns[1:])
        if kind < 0.45 and len(table.columns) < 40:
            return tuple(
                AddColumn(table=table.name, column=self._column(), after=some.id)
                for _ in range(self._random.choice((1, 1, 2)))
            )
        if kind < 0.65 and len(table.columns) > 10:
            return (DropColumn(table=table.name, column_id=some.id, name=some.name),)
        if kind < 0.8:
            new = self._random.choice([each for each in TYPES if each != some.type])
            return (ChangeType(table=table.name, column_id=some.id, old=some.type, new=new),)
        if kind < 0.9:
            new_name = f"{some.name[:20]}_{self._random.randrange(10_000)}"
            return (RenameColumn(table=table.name, column_id=some.id, old=some.name, new=new_name),)
        if kind < 0.95:
            new = TableName(table.name.database, f"renamed_{table.table_id}_{self._random.randrange(10**6)}")
            return (RenameTable(table=table.name, table_id=table.table_id, new=new),)
        return None

    def _create(self) -> tuple[str, tuple[Edit, ...]]:
        self._made += 1
        columns = tuple(self._column() for _ in range(20))
        snapshot = Snapshot(
            table_id=self._made,
            name=TableName(f"app_{self._made % 40}", f"customer_orders_{self._made}"),
            columns=columns,
            primary_key=(columns[0].id,),
            charset="utf8mb4",
            collation="utf8mb4_0900_ai_ci",
        )
        self._alive.append(snapshot)
        text = ", ".join(f"`{column.name}` {column.type} NOT NULL" for column in columns)
        return f"CREATE TABLE `{snapshot.name.table}` ({text}, PRIMARY KEY (`{columns[0].name}`))", (
            CreateTable(snapshot=snapshot),
        )

    def _column(self) -> Column:
        self._columns += 1
        kind = TYPES[self._columns % len(TYPES)]
        return Column(id=self._columns, name=f"{kind.name}_value_{self._columns}", type=kind, nullable=False)


def at(transaction: int, number: int) -> LogPosition:
    gtids = f"{SERVER}:1-{transaction}" if transaction else ""
    return LogPosition(
        flavor="mysql", gtids=gtids, file=f"binlog.{number // 1000:06}", offset=4242 + number, server=SERVER
    )


def build(path: Path, ddls: int, tables: int) -> float:
    """Records the log in pieces, as a tracker does that is far behind."""
    log = Log(tables, seed=ddls)
    begin = time.process_time()
    with closing(Store.open(f"sqlite:///{path}")) as store:
        for first in range(1, ddls + 1, 5000):
            numbers = range(first, min(first + 5000, ddls + 1))
            store.record([log.entry(number) for number in numbers], at(7 * numbers[-1], numbers[-1]))
    return time.process_time() - begin


def ask(path: Path) -> dict[str, float]:
    """Opens the store and asks it; for a process that did nothing before."""
    url = f"sqlite:///{path}"
    open_s = statistics.median(_open_s(url) for _ in range(3))
    with closing(Store.open(url)) as store:
        known, history = store.history(), store.history()
    questions = _questions(known, Random(1))
    begin = time.process_time()
    for table, position, number in {table: each for each in questions for table in each[:1]}.values():
        _require(number, history.at(table, position).number)
    first_us = (time.process_time() - begin) / len({table for table, _, _ in questions}) * 1e6
    for table, position, number in questions:
        _require(number, history.at(table, position).number)
    lookup_us = _lookup_us(history, questions)
    begin = time.process_time()
    alive = len(history.catalog.tables)
    catalog_s = time.process_time() - begin
    return {"open_s": open_s, "first_us": first_us, "lookup_us": lookup_us, "catalog_s": catalog_s, "alive": alive}


def _open_s(url: str) -> float:
    begin = time.process_time()
    with closing(Store.open(url)) as store:
        first = store.history().at(TableName("app_1", "customer_orders_1"), at(7, 1))
    open_s = time.process_time() - begin
    if first.number != 1 or first.snapshot is None or len(first.snapshot.columns) != 20:
        raise SystemExit("the first lookup found something else")
    return open_s


def _questions(history: History, random: Random) -> list[tuple[TableName, LogPosition, int]]:
    """Tables and positions at which they exist, with the number of the version there."""
    tables = sorted(history.tables)
    chosen = random.sample(tables, min(1000, len(tables)))
    alive = ((table, [v.number for v in history.versions(table) if v.snapshot is not None]) for table in chosen)
    pairs = [(table, number) for table, numbers in alive for number in random.sample(numbers, min(5, len(numbers)))]
    random.shuffle(pairs)
    return [(table, at(7 * number, number), number) for table, number in pairs]


def _lookup_us(history: History, questions: list[tuple[TableName, LogPosition, int]]) -> float:
    rounds = []
    for _ in range(5):
        begin = time.process_time()
        for table, position, _ in questions:
            history.at(table, position)
        rounds.append((time.process_time() - begin) / len(questions) * 1e6)
    return statistics.median(rounds)


def _require(expected: int, found: int) -> None:
    if expected != found:
        raise SystemExit(f"a lookup found version {found} instead of {expected}")


def measure(ddls: int, tables: int) -> Figures:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, "history.db")
        build_s = build(path, ddls, tables)
        command = [sys.executable, __file__, "--ask", str(path)]
        asked = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
        return Figures(ddls=ddls, build_s=build_s, store_mb=path.stat().st_size / 1e6, **asked)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ddls", type=int, default=100_000)
    parser.add_argument("--tables", type=int, default=15_000)
    parser.add_argument("--ask", type=Path, help="only open the store at this path and print what that takes")
    options = parser.parse_args()
    if options.ask is not None:
        print(json.dumps(ask(options.ask)))
        return
    shown = "{:>8} {:>7} {:>8} {:>7} {:>9} {:>10} {:>10} {:>9}"
    print(shown.format("DDLs", "tables", "build_s", "open_s", "first_us", "lookup_us", "catalog_s", "store_mb"))
    sizes = [(options.ddls // part, options.tables // part) for part in (100, 10, 1)]
    measured = []
    for ddls, tables in [*sizes, (options.ddls // 10, 3)]:
        figures = measure(ddls, tables)
        measured.append(figures)
        rounded = (figures.build_s, figures.open_s, figures.first_us, figures.lookup_us, figures.catalog_s)
        print(shown.format(ddls, figures.alive, *(f"{value:.2f}" for value in rounded), f"{figures.store_mb:.1f}"))
    largest = measured[len(sizes) - 1]
    ours = {"open_100k_ddl_s": largest.open_s, "lookup_us": largest.lookup_us, "store_mb": largest.store_mb}
    results = [
        {"name": name, "ours": round(value, 2), "other": BOUNDS[name], "ratio": round(BOUNDS[name] / value, 2)}
        for name, value in ours.items()
    ]
    rates = {"triage_per_s": triage_per_s(), "alter_per_s": alter_per_s(), "create_per_s": create_per_s()}
    results += [
        {"name": name, "ours": round(value), "other": FLOORS[name], "ratio": round(value / FLOORS[name], 2)}
        for name, value in rates.items()
    ]
    print(json.dumps({"results": results}))


if __name__ == "__main__":
    main()
