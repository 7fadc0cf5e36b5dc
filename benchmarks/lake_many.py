"""What a plan costs by the tables that change in it, and by those that do not.

``per_table_growth``: seconds of a commit where each of many tables gets a row, by those where the same rows go to few tables.
``idle_tables_growth``: seconds of a plan that changes a hundred tables of many that the lake knows, by those where it knows no others.
Both are of the Delta sink alone, into changelogs that are there before. Those of the many are laid down as a run leaves them that ends when it
has made the tables of its first plan: each with the one entry of its log, copied from a changelog that the sink made. That plan, which is not
measured, fills them. Prints what it does, and last one JSON object.
Run: ``python benchmarks/lake_many.py [--only idle|many] [--many 1000] [--few 100] [--idle 100000] [--rounds 3]``.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import sys
import tempfile
import time
import uuid
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

sys.path[:0] = [str(Path(__file__).parent.parent), str(Path(__file__).parent.parent / "tests" / "support")]

from connectors.spark.jvm import delta_jars
from historian.changelog.operations import physical_name
from historian.names import TableName
from historian.schema.edits import CreateTable
from historian.schema.snapshots import Column, Snapshot
from lakes.sink_lab import INT, Lab, text
from sinks.delta import DeltaSettings, DeltaSink
from sinks.session import spark_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COLUMNS = {"id": INT, "note": text()}


class Bench:
    """A lake of changelogs, which get rows plan after plan."""

    def __init__(self, spark: SparkSession, path: Path, tables: int) -> None:
        self.lab = Lab()
        self.directory = path
        self.names = [f"shop.t{number:06}" for number in range(tables)]
        snapshots = [self._snapshot(number) for number in range(tables)]
        self.lab._statement("CREATE all", *(CreateTable(snapshot=snapshot) for snapshot in snapshots))
        self.sink = DeltaSink(spark, DeltaSettings(path=str(path), changelog="{database}_{table}", mirror=None))
        self.sink.open(self.lab.connector)
        self._next = 0

    def lay_down(self, other: Bench) -> None:
        """The changelogs as made and still empty, like the first one of *other*."""
        (like,) = [one for one in other.lab.catalog.tables.values() if str(one.name) == other.names[0]]
        entry = Path(other.directory, "shop_t000000", "_delta_log", f"{0:020d}.json").read_text()
        made = re.search(r'"metaData":{"id":"([^"]+)"', entry)
        assert made is not None
        named = {physical_name(column.id): at for at, column in enumerate(like.columns)}
        parts = re.split(r'(?<=\\")(h\d+)(?=\\")', entry.replace(made[1], "IDENTITY"))
        for snapshot in self.lab.catalog.tables.values():
            own = [physical_name(column.id) for column in snapshot.columns]
            text = "".join(own[named[part]] if part in named else part for part in parts)
            log = Path(self.directory, f"shop_{snapshot.name.table}", "_delta_log")
            log.mkdir(parents=True)
            (log / f"{0:020d}.json").write_text(text.replace("IDENTITY", str(uuid.uuid4())))

    def know(self, idle: int) -> None:
        """Tells the lake of that many tables more, of which nothing comes."""
        state = self.sink._state
        assert state is not None
        one = next(iter(state.locations.values()))
        others = {
            number: replace(one, table_id=number, name=f"idle.t{number}", changelog=f"idle_t{number}")
            for number in range(10_000_000, 10_000_000 + idle)
        }
        state.record_locations({**state.locations, **others}, self.lab.plans[-1].number)
        state.links.update({location.changelog: 1 for location in others.values()})

    def seconds(self, rows: int) -> float:
        """Of a plan with that many rows of each table."""
        for name in self.names:
            self.lab.insert(name, *({"id": self._next + row, "note": f"row {row}"} for row in range(rows)))
        self._next += rows
        plan = self.lab.cut()
        with self.lab.delivered(plan) as chunks:
            begin = time.perf_counter()
            self.sink.write(plan, self.lab.timeline, chunks)
            self.sink.stopped()
            self.sink.due_us()
            taken_s = time.perf_counter() - begin
        if stopped := self.sink.stopped():
            raise SystemExit(f"{len(stopped)} tables have stopped: {next(iter(stopped.values()))}")
        return taken_s

    def _snapshot(self, number: int) -> Snapshot:
        first = self.lab.catalog.next_column_id + number * len(COLUMNS)
        columns = tuple(Column(id=first + at, name=name, type=kind) for at, (name, kind) in enumerate(COLUMNS.items()))
        return Snapshot(
            table_id=self.lab.catalog.next_table_id + number,
            name=TableName("shop", f"t{number:06}"),
            columns=columns,
            primary_key=(first,),
            charset="utf8mb4",
            collation="utf8mb4_0900_ai_ci",
        )


def compared(name: str, ours: list[float], other: list[float], unit: str) -> dict[str, object]:
    """The medians, and how much more the first takes."""
    mine, theirs = statistics.median(ours), statistics.median(other)
    print(f"{name}: {mine * 1000:.2f} ms {unit} against {theirs * 1000:.2f} ms, {mine / theirs:.2f} times", flush=True)
    return {"name": name, "ours": round(mine, 5), "other": round(theirs, 5), "ratio": round(mine / theirs, 2)}


def idle_tables(spark: SparkSession, directory: Path, few: int, idle: int, rounds: int) -> dict[str, object]:
    """A plan of few tables in a lake that knows many more, and in one that does not."""
    alone, among = Bench(spark, directory / "alone", few), Bench(spark, directory / "among", few)
    for bench in (alone, among):
        bench.seconds(1)
    among.know(idle)
    for bench in (alone, among):
        bench.seconds(1)
    pairs = [(among.seconds(1), alone.seconds(1)) for _ in range(rounds)]
    return compared("idle_tables_growth", [p[0] for p in pairs], [p[1] for p in pairs], "a plan")


def many_tables(spark: SparkSession, directory: Path, few: int, many: int, rounds: int) -> dict[str, object]:
    """A row for each of many tables, and as many rows for few."""
    crowd, group = Bench(spark, directory / "many", many), Bench(spark, directory / "few", few)
    group.seconds(1)
    crowd.lay_down(group)
    begin = time.perf_counter()
    crowd.seconds(1)
    print(f"{many} changelogs have a first row: {time.perf_counter() - begin:.1f} s", flush=True)
    group.seconds(many // few)
    pairs = [(crowd.seconds(1) / many, group.seconds(many // few) / few) for _ in range(rounds)]
    return compared("per_table_growth", [p[0] for p in pairs], [p[1] for p in pairs], "a commit")


def main() -> None:
    """Measures and prints."""
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--only", choices=("idle", "many"))
    options.add_argument("--many", type=int, default=1000)
    options.add_argument("--few", type=int, default=100)
    options.add_argument("--idle", type=int, default=100_000)
    options.add_argument("--rounds", type=int, default=3)
    chosen = options.parse_args()
    spark = spark_session(jars=delta_jars(), name="bench", settings={"spark.driver.memory": "2g"})
    results = []
    try:
        with tempfile.TemporaryDirectory(prefix="historian-bench-") as name:
            if chosen.only != "many":
                results.append(idle_tables(spark, Path(name), chosen.few, chosen.idle, chosen.rounds))
            if chosen.only != "idle":
                results.append(many_tables(spark, Path(name), chosen.few, chosen.many, chosen.rounds))
    finally:
        spark.stop()
    print(json.dumps({"results": results}))


if __name__ == "__main__":
    main()
