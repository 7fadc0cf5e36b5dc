"""A batch of changes applied by a mirror: against a MERGE by hand, as the mirror grows, and as rows come in live.

``mirror_vs_bare_merge``: seconds from a changelog batch to the mirror's commit, by those of one ``DeltaTable.merge`` of the same net
rows, which lie in Parquet, into a table of the same rows that Spark wrote; both tables must be equal then.
``mirror_growth``: seconds for one set of changes of neighbouring keys into a large mirror, by those into a small one.
``mirror_p99_s``: seconds from COMMIT on a live MySQL 9 to the Delta version of the mirror that shows it, 99 of 100.
Prints what it does, and last one JSON object. Run: ``python benchmarks/lake_mirror.py [--held 2000000] [--changes 240000] [--small
1000000] [--large 20000000] [--seconds 60] [--rounds 3] [--only NAME]``.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

sys.path[:0] = [str(Path(__file__).parent.parent), str(Path(__file__).parent.parent / "tests" / "support")]

from connectors.config import load_config
from connectors.monitoring.observer import on_written
from connectors.pipeline.pipeline import Pipeline
from connectors.spark.jvm import delta_jars
from databases.servers import start_server
from historian.changelog.chunks import Chunk
from historian.changelog.operations import CHUNK_COLUMNS, Op, physical_name
from historian.schema.snapshots import ColumnType
from historian.values.arrow_types import arrow_type
from lakes.sink_lab import Lab, decimal, text
from sinks.delta import DeltaSettings, DeltaSink
from sinks.session import spark_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from databases.servers import Server

COLUMNS = {
    "id": ColumnType(name="bigint"),
    "customer": ColumnType(name="int"),
    "status": text(),
    "total": decimal(12, 2),
    "placed": ColumnType(name="datetime", fraction=3),
    "weight": ColumnType(name="double"),
    "note": text(200),
}
CHUNK_ROWS = 200_000
LOAD_ROWS = 1_000_000


def rows(ids: np.ndarray[Any, np.dtype[np.int64]], salt: int) -> dict[str, pa.Array]:
    """Columns of rows with these ids; another *salt* gives other values."""
    numbers = ids + salt
    states = pa.array(["new", "paid", "shipped", "returned"])
    cents = pa.array(numbers % 100_000).cast(pa.decimal128(20, 0))
    notes = pa.array([f"order {number} of customer {number % 9973}" for number in numbers.tolist()])
    values = {
        "id": pa.array(ids),
        "customer": pa.array(numbers % 9973, pa.int64()),
        "status": states.take(pa.array(numbers % 4)),
        "total": cents,
        "placed": pa.array(1_700_000_000_000_000 + numbers * 1000, pa.timestamp("us")),
        "weight": pa.array(numbers / 7),
        "note": notes,
    }
    return {name: value.cast(arrow_type(COLUMNS[name])) for name, value in values.items()}


class Bench:
    """A lake with one mirror, and the plans that go into it."""

    def __init__(self, spark: SparkSession, path: Path) -> None:
        self.spark, self.path, self.lab = spark, path, Lab()
        self.lab.create("shop.orders", COLUMNS)
        self.table = self.lab.tables[self.lab.table_id("shop.orders")]
        self.sink = DeltaSink(spark, DeltaSettings(path=str(path), changelog=None))
        self.sink.open(self.lab.connector)
        self._sequence = 0

    def put(self, ops: np.ndarray[Any, Any], data: dict[str, pa.Array]) -> None:
        """Adds changelog rows to the next plan."""
        for begin in range(0, len(ops), CHUNK_ROWS):
            part = slice(begin, begin + CHUNK_ROWS)
            count = len(ops[part])
            system = [
                pa.array(ops[part], pa.uint8()),
                pa.repeat(pa.scalar(1_700_000_000_000_000, CHUNK_COLUMNS[1].type), count),
                pa.array(np.zeros(count), pa.int16()),
                pa.array(np.full(count, self._sequence), pa.int64()),
                pa.array(np.arange(count) // 2, pa.int32()),
            ]
            version = self.table.versions[-1]
            assert version.snapshot is not None
            fields = [pa.field(physical_name(c.id), arrow_type(c.type)) for c in version.snapshot.columns]
            arrays = [*system, *(values[part] for values in data.values())]
            batch = pa.RecordBatch.from_arrays(arrays, schema=pa.schema([*CHUNK_COLUMNS, *fields]))
            self._sequence += 1
            self.table.chunks.append(
                Chunk(
                    table_id=self.table.table_id,
                    version=version.version,
                    segment=0,
                    sequence=self._sequence,
                    file="b.000001",
                    first_position="",
                    last_position="",
                    sources=("",),
                    rows=batch,
                )
            )

    def write(self) -> float:
        """Seconds that the sink takes for the plan, whose chunks lie ready."""
        self.lab.clock += 1
        plan = self.lab.cut()
        with self.lab.delivered(plan) as chunks:
            self.lab.chunks[plan.number] = []
            begin = time.perf_counter()
            self.sink.write(plan, self.lab.timeline, chunks)
            return time.perf_counter() - begin

    def load(self, count: int) -> None:
        """Inserts that many rows, keys in order, some plans."""
        for begin in range(0, count, LOAD_ROWS):
            ids = np.arange(begin, min(begin + LOAD_ROWS, count))
            self.put(np.full(len(ids), int(Op.APPEND)), rows(ids, 0))
            taken = self.write()
            print(f"  {len(ids):,} rows on {begin:,}: {taken:.1f} s", flush=True)

    @property
    def mirror(self) -> Path:
        """Where the mirror is."""
        return self.path / "shop_orders"


def change(bench: Bench, ids: np.ndarray[Any, np.dtype[np.int64]], fresh: int, salt: int) -> dict[str, pa.Table]:
    """Puts a change of the rows *ids* and of rows from *fresh* on; gives the net rows: 4 of 6 update, 1 deletes, 1 inserts."""
    sixth = len(ids) // 5
    gone, updated = ids[:sixth], ids[sixth:]
    new = np.arange(fresh, fresh + sixth)
    old, images = rows(updated, 0), rows(updated, salt)
    pairs = {n: pa.concat_arrays([old[n], images[n]]).take(_pairs(len(updated))) for n in COLUMNS}
    bench.put(np.tile([int(Op.CORRECT_FROM), int(Op.CORRECT_TO)], len(updated)), pairs)
    bench.put(np.full(sixth, int(Op.RETRACT)), rows(gone, 0))
    bench.put(np.full(sixth, int(Op.APPEND)), inserted := rows(new, salt))
    put = pa.concat_tables([pa.table(images), pa.table(inserted)])
    return {"put": put, "gone": pa.table(rows(gone, 0))}


def _pairs(count: int) -> pa.Array:
    """Of two halves, the first of each, then the second of each, and so on."""
    return pa.array(np.stack([np.arange(count), np.arange(count) + count], axis=1).reshape(-1))


def by_hand(spark: SparkSession, target: Path, net: Path) -> float:
    """Seconds of one MERGE as one writes it."""
    from delta.tables import DeltaTable

    begin = time.perf_counter()
    source = spark.read.parquet(str(net)).alias("s")
    merge = DeltaTable.forPath(spark, str(target)).alias("t").merge(source, "t.id = s.id")
    values: dict[str, Any] = {name: f"s.{name}" for name in COLUMNS}
    merge = merge.whenMatchedDelete("s.gone").whenMatchedUpdate(set=values)
    merge.whenNotMatchedInsert("NOT s.gone", values).execute()
    return time.perf_counter() - begin


def facts(frame: DataFrame) -> Any:
    """Count and checksum of rows."""
    return frame.selectExpr("count(*)", f"sum(cast(xxhash64({', '.join(COLUMNS)}) as decimal(38)))").first()


def read(spark: SparkSession, path: Path) -> DataFrame:
    """A Delta table."""
    return spark.read.format("delta").load(str(path))


def vs_bare_merge(spark: SparkSession, directory: Path, chosen: argparse.Namespace) -> dict[str, Any]:
    """Scattered keys, and keys that lie together."""
    result: dict[str, Any] = {"name": "mirror_vs_bare_merge"}
    random = np.random.default_rng(6)
    for label in ("scattered", "together"):
        taken: dict[str, list[float]] = {"ours": [], "other": []}
        for number in range(chosen.rounds):
            work = directory / f"{label}-{number}"
            bench = Bench(spark, work / "lake")
            bench.load(chosen.held)
            read(spark, bench.mirror).write.format("delta").save(str(work / "copy"))
            touched = chosen.changes * 5 // 6
            ids = random.choice(chosen.held, touched, replace=False) if label == "scattered" else np.arange(touched)
            net = change(bench, ids, chosen.held, 1)
            (work / "net").mkdir()
            for name, table in net.items():
                flagged = table.append_column("gone", pa.repeat(name == "gone", table.num_rows))
                pq.write_table(flagged, work / "net" / f"{name}.parquet")
            sides: list[tuple[str, Callable[[], float]]] = [
                ("ours", bench.write),
                ("other", lambda work=work: by_hand(spark, work / "copy", work / "net")),  # type: ignore[misc]
            ]
            for side, measured in sides[:: 1 if number % 2 else -1]:
                taken[side].append(measured())
            left, right = facts(read(spark, bench.mirror)), facts(read(spark, work / "copy"))
            if left != right or left[0] != chosen.held:
                raise SystemExit(f"rows differ: {left} and {right}, expected {chosen.held}")
            shutil.rmtree(work)
        seconds = {side: statistics.median(times) for side, times in taken.items()}
        ratio = seconds["ours"] / seconds["other"]
        print(f"{label}: mirror {seconds['ours']:.2f} s, MERGE by hand {seconds['other']:.2f} s, ratio {ratio:.2f}")
        result |= {"ratio" if label == "scattered" else "ratio_together": ratio, label: seconds}
    return result


def growth(spark: SparkSession, directory: Path, chosen: argparse.Namespace) -> dict[str, Any]:
    """The same changes, in the middle of the small mirror's keys, into a small and a large mirror."""
    seconds = {}
    for label, count in (("small", chosen.small), ("large", chosen.large)):
        bench = Bench(spark, directory / label)
        bench.load(count)
        taken = []
        for number in range(chosen.rounds):
            ids = np.arange(5000) + chosen.small // 2 + number * 5000
            change(bench, ids, count + number * 1000, number + 1)
            taken.append(bench.write())
        found = facts(read(spark, bench.mirror))
        if found[0] != count:
            raise SystemExit(f"{found[0]} rows, expected {count}")
        seconds[label] = statistics.median(taken)
        print(f"{count:,} rows: {seconds[label]:.2f} s for {ids.size * 6 // 5:,} changes", flush=True)
        shutil.rmtree(directory / label)
    return {"name": "mirror_growth", "seconds": seconds, "ratio": seconds["large"] / seconds["small"]}


HELD = 100_000


def p99(spark: SparkSession, directory: Path, chosen: argparse.Namespace) -> dict[str, Any]:
    """Updates of random rows of a mirror of 100,000, ten a transaction, a hundred transactions a second."""
    server = start_server("mysql9", directory / "server")
    try:
        config = directory / "pipeline.yaml"
        config.write_text(
            f"""
name: bench
source: {{type: mysql, host: {server.host}, port: {server.port}, user: {server.user}, password: {server.password},
  server_id: 4711, tables: ["shop.*"], start: earliest}}
history: {{store: "sqlite:///{directory}/store.db"}}
sinks: [{{type: delta, path: "{directory}/lake", changelog: null, mirror: "{{database}}_{{table}}"}}]
run: {{trigger: "{chosen.trigger}"}}
"""
        )
        _fill(server)
        stopping = threading.Event()
        with Pipeline.opened(load_config(config), spark, on_written(lambda _plan, _stopped: None)) as pipeline:
            worker = threading.Thread(target=lambda: pipeline.run(once=False, until=None, stopping=stopping))
            worker.start()
            mirror = directory / "lake" / "shop_live"
            while not mirror.exists() or read(spark, mirror).count() < HELD:
                time.sleep(1)
            commits = _updates(server, chosen.seconds)
            time.sleep(10)
            stopping.set()
            worker.join()
        return _latencies(spark, mirror, commits, chosen.seconds)
    finally:
        server.kill()


def _fill(server: Server) -> None:
    connection = server.connect()
    with connection.cursor() as cursor:
        cursor.execute("SET SESSION cte_max_recursion_depth = 4294967295")
        cursor.execute("CREATE DATABASE shop")
        cursor.execute("CREATE TABLE shop.live (id INT PRIMARY KEY, sequence BIGINT NOT NULL, note VARCHAR(100))")
        cursor.execute(
            "INSERT INTO shop.live WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n "
            f"WHERE i + 1 < {HELD}) SELECT i, 0, CONCAT('row ', i) FROM n"
        )
    connection.commit()
    connection.close()


def _updates(server: Server, seconds: int) -> list[float]:
    """When each transaction's COMMIT returned, by its number, from 1."""
    random = np.random.default_rng(6)
    commits: list[float] = []
    connection = server.connect()
    begin = time.time()
    with connection.cursor() as cursor:
        while (now := time.time()) < begin + seconds:
            number = len(commits) + 1
            time.sleep(max(0.0, begin + number / 100 - now))
            ids = ", ".join(map(str, random.choice(HELD, 10, replace=False)))
            cursor.execute(f"UPDATE shop.live SET sequence = {number}, note = 'at {number}' WHERE id IN ({ids})")
            connection.commit()
            commits.append(time.time())
    connection.close()
    return commits


def _latencies(spark: SparkSession, mirror: Path, commits: list[float], seconds: int) -> dict[str, Any]:
    shown: list[tuple[float, int]] = []
    for path in sorted((mirror / "_delta_log").glob("0*.json")):
        frame = spark.read.format("delta").option("versionAsOf", int(path.stem)).load(str(mirror))
        shown.append((path.stat().st_mtime, frame.selectExpr("coalesce(max(sequence), 0)").first()[0]))  # type: ignore[index]
    if shown[-1][1] != len(commits):
        raise SystemExit(f"the mirror shows {shown[-1][1]} of {len(commits)} transactions")
    latencies = [
        next(at for at, last in shown if last >= number) - committed for number, committed in enumerate(commits, 1)
    ]
    latencies.sort()
    p99_s, median = latencies[len(latencies) * 99 // 100], statistics.median(latencies)
    rate = 10 * len(commits) / seconds
    print(f"{rate:,.0f} rows/s: visible after {median:.2f} s in the median, {p99_s:.2f} s for 99 of 100", flush=True)
    return {"name": "mirror_p99_s", "value": p99_s, "median_s": median, "rows_per_s": rate, "versions": len(shown)}


MEASURES = {"mirror_vs_bare_merge": vs_bare_merge, "mirror_growth": growth, "mirror_p99_s": p99}


def main() -> None:
    """Measures and prints."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--held", type=int, default=2_000_000)
    options.add_argument("--changes", type=int, default=240_000)
    options.add_argument("--small", type=int, default=1_000_000)
    options.add_argument("--large", type=int, default=20_000_000)
    options.add_argument("--seconds", type=int, default=60)
    options.add_argument("--trigger", default="1s")
    options.add_argument("--only", choices=sorted(MEASURES))
    chosen = options.parse_args()
    results = []
    spark = spark_session(jars=delta_jars(), name="bench", settings={"spark.driver.memory": "3g"})
    try:
        for name, measure in MEASURES.items():
            if chosen.only in (None, name):
                with tempfile.TemporaryDirectory(prefix="historian-bench-") as directory:
                    results.append(measure(spark, Path(directory), chosen))
    finally:
        spark.stop()
    print(json.dumps({"results": results}))


if __name__ == "__main__":
    main()
