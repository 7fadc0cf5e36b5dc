"""Arrow rows to a committed changelog, against Arrow's own Parquet writer of the same rows: what no changelog can beat.

``changelog_vs_parquet_limit``: seconds of ``pyarrow.parquet.write_table`` by those of ``DeltaSink.write``. Both have the rows in
memory. Parquet gets them as the changelog's files have them, in as many pieces as there are threads, each a file, with the same
codec. The sink gets chunks as the decoder makes them, and ends with its commits: plan, rows, offsets. Both files are read back once and
compared. Prints what it does, and last one JSON object. Run: ``python benchmarks/lake_limit.py [--rows 2000000] [--rounds 5]``.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

sys.path[:0] = [str(Path(__file__).parent.parent), str(Path(__file__).parent.parent / "tests" / "support")]

from connectors.spark.jvm import delta_jars
from historian.changelog.chunks import Chunk
from historian.changelog.operations import CHUNK_COLUMNS
from historian.schema.snapshots import ColumnType
from lakes.sink_lab import INT, START_US, UUID, Lab, decimal, text
from sinks.contract.local_chunks import LocalChunks
from sinks.delta import DeltaSettings, DeltaSink
from sinks.session import spark_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from historian.plans.plans import Plan

COLUMNS = {
    "id": ColumnType(name="bigint"),
    "customer": INT,
    "status": text(20),
    "total": decimal(12, 2),
    "placed": ColumnType(name="datetime", fraction=3),
    "touched": ColumnType(name="timestamp", fraction=6),
    "weight": ColumnType(name="double"),
    "note": text(200),
}
CHUNK_ROWS = 128 * 1024
TRANSACTION_ROWS = 100_000
DAY_US = 86_400_000_000


class Bench:
    """One lake, into which plan after plan brings the same number of new rows."""

    def __init__(self, spark: SparkSession, directory: Path, rows: int, threads: int) -> None:
        self.directory, self.rows, self.threads = directory, rows, threads
        self.lab = Lab()
        self.lab.create("shop.orders", COLUMNS)
        self._first = 0
        settings = DeltaSettings(path=str(directory / "lake"), changelog="changes_{database}_{table}", mirror=None)
        self.sink = DeltaSink(spark, settings)
        self.sink.open(self.lab.connector)

    def plan(self) -> Plan:
        """One with the next rows, in chunks."""
        self.lab.clock += 1
        plan = self.lab.cut()
        version = self.lab.entries[-1].number
        chunks = []
        for number, first in enumerate(range(0, self.rows, CHUNK_ROWS)):
            rows = _rows(self._first + first, min(CHUNK_ROWS, self.rows - first))
            chunks.append(
                Chunk(
                    table_id=self.lab.table_id("shop.orders"),
                    version=version,
                    segment=0,
                    sequence=number,
                    file="b.000001",
                    first_position=f"{UUID}:{self.lab.clock}",
                    last_position=f"{UUID}:{self.lab.clock}",
                    sources=(UUID,),
                    rows=rows,
                )
            )
        self._first += self.rows
        self.lab.chunks[plan.number] = chunks
        return plan

    def ours(self, plan: Plan) -> tuple[float, float]:
        """Seconds, and seconds of this process's CPU, until the changelog holds *plan*, whose chunks are in memory."""
        with closing(LocalChunks(threads=self.threads, memory_bytes=1 << 40)) as chunks:
            chunks.fill([lambda: self.lab.chunks[plan.number]])
            return _timed(lambda: self.sink.write(plan, self.lab.timeline, chunks))

    def changelog(self) -> pa.Table:
        """The rows of the last plan, as files have them."""
        files = sorted(
            (self.directory / "lake" / "changes_shop_orders").glob("*.parquet"),
            key=lambda path: path.stat().st_mtime_ns,
        )
        found = pa.concat_tables(pq.read_table(path) for path in files)
        first = self._first - self.rows
        return found.filter(pc.greater_equal(found.column("offset"), first)).sort_by("offset").combine_chunks()


def parquet_seconds(rows: pa.Table, target: Path, threads: int) -> tuple[float, float]:
    """The same for Arrow's writer of *rows*, in as many files as threads, in a directory that is gone then."""
    target.mkdir()
    step = -(-rows.num_rows // threads)
    parts = [rows.slice(first, step) for first in range(0, rows.num_rows, step)]

    def write(number: int) -> None:
        path = target / f"{number}.parquet"
        pq.write_table(parts[number], path, compression="zstd", store_decimal_as_integer=True)

    with ThreadPoolExecutor(threads) as pool:
        taken = _timed(lambda: list(pool.map(write, range(len(parts)))))
    back = pa.concat_tables(pq.read_table(target / f"{number}.parquet") for number in range(len(parts)))
    if not back.equals(rows):
        raise SystemExit("Arrow's files hold other rows")
    shutil.rmtree(target)
    return taken


def _timed(work: Any) -> tuple[float, float]:
    begin, cpu = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - begin, time.process_time() - cpu


def _rows(first: int, count: int) -> pa.RecordBatch:
    """Rows of orders as the decoder gives them: inserts, *TRANSACTION_ROWS* a transaction, a second apart."""
    ids = np.arange(first, first + count)
    customer = (ids % 9973).astype(np.int32)
    times = START_US + ids // TRANSACTION_ROWS * 1_000_000
    words = pa.array(["new", "paid", "shipped", "returned"])
    note = pc.binary_join_element_wise(
        "order", pa.array(ids).cast(pa.string()), "of customer", pa.array(customer).cast(pa.string()), " "
    )
    cents = pa.array(ids % 100_000).cast(pa.decimal128(19, 0))
    columns = [
        pa.array(np.zeros(count, np.uint8)),
        pa.array(times).cast(pa.timestamp("us", tz="UTC")),
        pa.array(np.zeros(count, np.int16)),
        pa.array(ids // TRANSACTION_ROWS + 1),
        pa.array(np.full(count, 2, np.int32)),
        pa.array(ids),
        pa.array(customer),
        words.take(pa.array(ids % 4)),
        pc.multiply(cents, pa.scalar(1, pa.decimal128(1, 0))).cast(pa.decimal128(12, 0)).cast(pa.decimal128(12, 2)),
        pa.array(ids * 1_000_000).cast(pa.timestamp("us")),
        pa.array(START_US + ids * 1000).cast(pa.timestamp("us", tz="UTC")),
        pa.array(ids / 7),
        note,
    ]
    names = [f"h{number}" for number in range(1, len(COLUMNS) + 1)]
    fields = [pa.field(name, column.type) for name, column in zip(names, columns[len(CHUNK_COLUMNS) :], strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=pa.schema([*CHUNK_COLUMNS, *fields]))


def main() -> None:
    """Measures and prints."""
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--rows", type=int, default=2_000_000)
    options.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    chosen = options.parse_args()
    spark = spark_session(jars=delta_jars(), name="bench", settings={"spark.driver.memory": "1g"})
    pairs = []
    try:
        with tempfile.TemporaryDirectory(prefix="historian-bench-") as directory:
            bench = Bench(spark, Path(directory), chosen.rows, chosen.threads)
            bench.ours(bench.plan())
            for _ in range(chosen.rounds):
                ours = bench.ours(bench.plan())
                rows = bench.changelog()
                if rows.num_rows != chosen.rows:
                    raise SystemExit(f"{rows.num_rows} rows are there, expected {chosen.rows}")
                pairs.append((ours, parquet_seconds(rows, bench.directory / "parquet", chosen.threads)))
                print(
                    "changelog {:.2f} s ({:.2f} of CPU), Parquet {:.2f} s ({:.2f} of CPU)".format(
                        *pairs[-1][0], *pairs[-1][1]
                    ),
                    flush=True,
                )
    finally:
        spark.stop()
    seconds = [statistics.median(side[0] for side in sides) for sides in zip(*pairs, strict=True)]
    ratio = statistics.median(limit[0] / ours[0] for ours, limit in pairs)
    cpu = statistics.median(limit[1] / ours[1] for ours, limit in pairs)
    rates = {side: round(chosen.rows / taken) for side, taken in zip(("ours", "other"), seconds, strict=True)}
    print("changelog {ours:,} rows/s, Parquet {other:,} rows/s".format(**rates), f"ratio {ratio:.2f}, of CPU {cpu:.2f}")
    result = {"name": "changelog_vs_parquet_limit", **rates, "ratio": round(ratio, 2), "cpu_ratio": round(cpu, 2)}
    print(json.dumps({"results": [result]}))


if __name__ == "__main__":
    main()
