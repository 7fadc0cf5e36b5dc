"""A few changes of each of many tables in one micro-batch, into changelogs and mirrors.

``hundred_tables``: seconds that the sink takes for a plan with the changes of all tables, by those of one append by Spark and one
``DeltaTable.merge`` for each table, one after another in the same session, whose rows lie in Parquet. Both sides go on for some
rounds in turn, into tables that hold the same rows before; all rows of all tables must be equal then. Prints what it does, and
last one JSON object. Run: ``python benchmarks/lake_tables.py [--tables 100] [--held 1000] [--changes 10] [--rounds 3]``.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import sys
import tempfile
import time
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

sys.path[:0] = [str(Path(__file__).parent.parent), str(Path(__file__).parent.parent / "tests" / "support")]

from connectors.spark.jvm import delta_jars
from historian.changelog.operations import physical_name
from historian.schema.snapshots import ColumnType
from lakes.sink_lab import INT, Lab, decimal, text
from sinks.delta import DeltaSettings, DeltaSink
from sinks.delta.log.columns import plain_schema
from sinks.delta.log.commits import Commit
from sinks.delta.log.kernel import Kernel
from sinks.delta.rewrite.files import FileWriter
from sinks.session import spark_session

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import SparkSession

    from historian.plans.plans import Plan

COLUMNS = {
    "id": ColumnType(name="bigint"),
    "customer": INT,
    "status": text(),
    "total": decimal(12, 2),
    "note": text(200),
}
MIRROR = plain_schema(id="long", customer="integer", status="string", total="decimal(12,2)", note="string")
SYSTEM = {"offset": "long", "op": "integer", "system_time": "timestamp", "event_time": "timestamp"}
CHANGELOG = plain_schema(**SYSTEM, schema_version="long", **{f.name: f.type for f in MIRROR.fields})


class Bench:
    """A lake, and beside it tables of the same rows that are written by hand."""

    def __init__(self, spark: SparkSession, directory: Path, tables: int) -> None:
        self.spark, self.directory, self.lab = spark, directory, Lab()
        self.names = [f"shop.t{number:03}" for number in range(tables)]
        for name in self.names:
            self.lab.create(name, COLUMNS)
        self.sink = DeltaSink(spark, DeltaSettings(path=str(directory / "lake")))
        self.sink.open(self.lab.connector)
        self._kernel = Kernel(spark, "bench")
        self._random = random.Random(6)
        self._next_id = 0
        self._offsets = dict.fromkeys(self.names, 0)

    def load(self, count: int) -> None:
        """Inserts that many rows into each table, on both sides."""
        for name in self.names:
            self.lab.insert(name, *(self._row() for _ in range(count)))
        plan = self.lab.cut()
        self.ours(plan)
        for name, changes in self._changes(plan):
            rows = changes.select(MIRROR.arrow().names)
            for kind, schema, table in (("mirror", MIRROR, rows), ("changelog", CHANGELOG, changes)):
                writer = FileWriter(self._hand(name, kind), schema.arrow())
                writer.write_table(table)
                view = self._kernel.create(self._hand(name, kind), schema, {}, {})
                self._kernel.commit(view, "bench", 1, Commit(files=writer.close()))

    def change(self, count: int) -> tuple[Plan, Path]:
        """A plan with *count* changes of each table, a fifth deletes, the rest inserts and updates; its rows in Parquet."""
        self._random.seed(len(self.lab.plans))
        put: dict[str, list[dict[str, Any]]] = {}
        gone: dict[str, list[dict[str, Any]]] = {}
        for name in self.names:
            touched = self._random.sample(self.lab.rows(name), count - count // 5 * 2)
            gone[name], updated = touched[: count // 5], touched[count // 5 :]
            put[name] = [self._row() for _ in range(count - len(touched))]
            self.lab.insert(name, *put[name])
            for row in updated:
                new = {"status": "changed", "note": f"plan {len(self.lab.plans)}"}
                self.lab.update(name, row, **new)
                put[name].append({**row, **new})
            self.lab.delete(name, *gone[name])
        plan = self.lab.cut()
        source = self.directory / f"source-{plan.number}"
        source.mkdir()
        for name, changes in self._changes(plan):
            pq.write_table(changes, source / f"{name}.changes.parquet")
            rows = [{**row, "gone": False} for row in put[name]] + [{**row, "gone": True} for row in gone[name]]
            schema = MIRROR.arrow().append(pa.field("gone", pa.bool_()))
            pq.write_table(pa.Table.from_pylist(rows, schema), source / f"{name}.net.parquet")
        return plan, source

    def ours(self, plan: Plan) -> float:
        """Seconds that the sink takes for a plan whose chunks lie ready."""
        with self.lab.delivered(plan) as chunks:
            begin = time.perf_counter()
            self.sink.write(plan, self.lab.timeline, chunks)
            return time.perf_counter() - begin

    def by_hand(self, source: Path) -> float:
        """Seconds of an append and a MERGE for each table, as one writes them."""
        from delta.tables import DeltaTable

        begin = time.perf_counter()
        for name in self.names:
            changes = self.spark.read.parquet(str(source / f"{name}.changes.parquet"))
            changes.write.format("delta").mode("append").save(self._hand(name, "changelog"))
            net = self.spark.read.parquet(str(source / f"{name}.net.parquet")).alias("s")
            merge = DeltaTable.forPath(self.spark, self._hand(name, "mirror")).alias("t").merge(net, "t.id = s.id")
            values: dict[str, Any] = {column: f"s.{column}" for column in COLUMNS}
            merge = merge.whenMatchedDelete("s.gone").whenMatchedUpdate(set=values)
            merge.whenNotMatchedInsert("NOT s.gone", values).execute()
        return time.perf_counter() - begin

    def check(self) -> None:
        """Ends the run where a row of a table differs between the two sides, or from what was changed."""
        for name in self.names:
            directory = str(self.directory / "lake" / name.replace(".", "_"))
            mirrors = [self._rows(path, MIRROR.arrow(), "id") for path in (directory, self._hand(name, "mirror"))]
            logs = [
                self._rows(path, CHANGELOG.arrow(), "offset")
                for path in (f"{directory}_changes", self._hand(name, "changelog"))
            ]
            expected = sorted(self.lab.rows(name), key=lambda row: row["id"])
            if mirrors[0].to_pylist() != expected or mirrors[0] != mirrors[1] or logs[0] != logs[1]:
                raise SystemExit(f"rows of {name} differ")

    def _row(self) -> dict[str, Any]:
        number = self._next_id
        self._next_id += 1
        states = ("new", "paid", "shipped", "returned")
        return {
            "id": number,
            "customer": number % 9973,
            "status": states[number % 4],
            "total": Decimal(number % 100_000) / 100,
            "note": f"order {number} of customer {number % 9973}",
        }

    def _changes(self, plan: Plan) -> Iterator[tuple[str, pa.Table]]:
        """The changelog rows of each table in *plan*, as they must be there."""
        for name in self.names:
            chunks = [chunk for chunk in self.lab.chunks[plan.number] if chunk.table_id == self.lab.table_id(name)]
            rows = pa.Table.from_batches([chunk.rows for chunk in chunks])
            count, first = rows.num_rows, self._offsets[name]
            self._offsets[name] += count
            columns = next(t for t in self.lab.catalog.tables.values() if str(t.name) == name).columns
            ours = {
                "offset": pa.array(range(first, first + count)),
                "op": rows.column("op"),
                "system_time": pa.repeat(pa.scalar(plan.system_time_us, pa.timestamp("us", tz="UTC")), count),
                "event_time": rows.column("event_time"),
                "schema_version": pa.repeat(chunks[0].version, count),
                **{column.name: rows.column(physical_name(column.id)) for column in columns},
            }
            yield name, pa.table(ours).cast(CHANGELOG.arrow())

    def _hand(self, name: str, kind: str) -> str:
        return str(self.directory / "hand" / f"{name}_{kind}")

    def _rows(self, path: str, schema: pa.Schema, order: str) -> pa.Table:
        view = self._kernel.view(path)
        if view is None or any(file.has_deletions for file in view.held_files()):
            raise SystemExit(f"{path} cannot be compared")
        names = {field.name: field.physical for field in view.schema().fields}
        tables = [pq.ParquetFile(file).read([names[name] for name in schema.names]) for file in view.files()]
        return (
            pa.concat_tables(t.rename_columns(schema.names).cast(schema) for t in tables)
            .sort_by(order)
            .combine_chunks()
        )


def hundred_tables(spark: SparkSession, directory: Path, chosen: argparse.Namespace) -> dict[str, Any]:
    """Both sides, in turn."""
    bench = Bench(spark, directory, chosen.tables)
    bench.load(chosen.held)
    taken: dict[str, list[float]] = {"ours": [], "other": []}
    for number in range(chosen.rounds):
        plan, source = bench.change(chosen.changes)
        sides: list[tuple[str, Callable[[], float]]] = [
            ("ours", lambda plan=plan: bench.ours(plan)),  # type: ignore[misc]
            ("other", lambda source=source: bench.by_hand(source)),  # type: ignore[misc]
        ]
        for side, measured in sides[:: 1 if number % 2 else -1]:
            taken[side].append(measured())
            print(f"{side}: {chosen.tables} tables x {chosen.changes} changes in {taken[side][-1]:.2f} s", flush=True)
    bench.check()
    seconds = {side: statistics.median(times) for side, times in taken.items()}
    return {"name": "hundred_tables", **seconds, "ratio": seconds["ours"] / seconds["other"]}


def main() -> None:
    """Measures and prints."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--tables", type=int, default=100)
    options.add_argument("--held", type=int, default=1000)
    options.add_argument("--changes", type=int, default=10)
    options.add_argument("--rounds", type=int, default=3)
    chosen = options.parse_args()
    spark = spark_session(jars=delta_jars(), name="bench", settings={"spark.driver.memory": "2g"})
    try:
        with tempfile.TemporaryDirectory(prefix="historian-bench-") as directory:
            result = hundred_tables(spark, Path(directory), chosen)
    finally:
        spark.stop()
    print(json.dumps({"results": [result]}))


if __name__ == "__main__":
    main()
