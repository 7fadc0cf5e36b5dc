"""Arrow rows to a committed changelog, against Arrow's own Parquet writer of the same rows: what no changelog can beat.

``changelog_vs_parquet_limit``: seconds of ``pyarrow.parquet.write_table`` by those of ``DeltaSink.write``. Both have the rows in
memory. Parquet gets them as the changelog's files have them, in as many pieces as there are threads, each a file, with the same
codec. The sink gets chunks as the decoder makes them, and ends with its commits: plan, rows, offsets. Both files are read back once and
compared. Two sets of rows: ``counting``, whose numbers and times go on from row to row, as keys and clocks do, and ``random``, where no value has to do with the one
before it. The lower ratio is the result. Prints what it does, and last one JSON object. Run: ``python benchmarks/lake_limit.py [--rows 2000000] [--rounds 5]``.
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
from collections.abc import Callable
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
WORDS = pa.array(["new", "paid", "shipped", "returned"])
Values = Callable[[int, int], list[pa.Array]]


class Bench:
    """One lake, into which plan after plan brings the same number of new rows.

    Args:
        values: of the rows, from the first one's number and how many there are.
    """

    def __init__(self, spark: SparkSession, directory: Path, rows: int, threads: int, values: Values) -> None:
        directory.mkdir()
        self.directory, self.rows, self.threads = directory, rows, threads
        self._values = values
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
            count = min(CHUNK_ROWS, self.rows - first)
            rows = _rows(self._first + first, count, self._values(self._first + first, count))
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


def counting(first: int, count: int) -> list[pa.Array]:
    """Values of orders that go on from one to the next."""
    ids = np.arange(first, first + count)
    customer = (ids % 9973).astype(np.int32)
    note = pc.binary_join_element_wise(
        "order", pa.array(ids).cast(pa.string()), "of customer", pa.array(customer).cast(pa.string()), " "
    )
    return [
        pa.array(ids),
        pa.array(customer),
        WORDS.take(pa.array(ids % 4)),
        _decimals(ids % 100_000),
        pa.array(ids * 1_000_000).cast(pa.timestamp("us")),
        pa.array(START_US + ids * 1000).cast(pa.timestamp("us", tz="UTC")),
        pa.array(ids / 7),
        note,
    ]


def random(first: int, count: int) -> list[pa.Array]:
    """Values of the same types, of which none has to do with another one."""
    made = np.random.default_rng(first)
    letters = np.frombuffer(b"0123456789abcdefghijklmnopqrstuv", np.uint8)
    width = 24
    text = letters[made.integers(0, len(letters), count * width)]
    offsets = np.arange(0, (count + 1) * width, width, dtype=np.int32)
    note = pa.StringArray.from_buffers(count, pa.py_buffer(offsets), pa.py_buffer(text))
    return [
        pa.array(made.integers(0, 1 << 62, count)),
        pa.array(made.integers(0, 1 << 31, count, dtype=np.int32)),
        WORDS.take(pa.array(made.integers(0, 4, count))),
        _decimals(made.integers(0, 10**10, count)),
        pa.array(START_US + made.integers(0, 3650 * DAY_US, count)).cast(pa.timestamp("us")),
        pa.array(START_US + made.integers(0, 3650 * DAY_US, count)).cast(pa.timestamp("us", tz="UTC")),
        pa.array(made.random(count)),
        note,
    ]


def _decimals(cents: np.ndarray[tuple[int], np.dtype[np.int64]]) -> pa.Array:
    digits = pc.multiply(pa.array(cents).cast(pa.decimal128(19, 0)), pa.scalar(1, pa.decimal128(1, 0)))
    return digits.cast(pa.decimal128(12, 0)).cast(pa.decimal128(12, 2))


def _rows(first: int, count: int, values: list[pa.Array]) -> pa.RecordBatch:
    """Rows as the decoder gives them: inserts, *TRANSACTION_ROWS* a transaction, a second apart."""
    ids = np.arange(first, first + count)
    times = START_US + ids // TRANSACTION_ROWS * 1_000_000
    columns = [
        pa.array(np.zeros(count, np.uint8)),
        pa.array(times).cast(pa.timestamp("us", tz="UTC")),
        pa.array(np.zeros(count, np.int16)),
        pa.array(ids // TRANSACTION_ROWS + 1),
        pa.array(np.full(count, 2, np.int32)),
        *values,
    ]
    names = [f"h{number}" for number in range(1, len(COLUMNS) + 1)]
    fields = [pa.field(name, column.type) for name, column in zip(names, values, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=pa.schema([*CHUNK_COLUMNS, *fields]))


def compared(name: str, bench: Bench, rounds: int) -> dict[str, Any]:
    """Rounds of both, behind one that nobody measures."""
    bench.ours(bench.plan())
    pairs = []
    for _ in range(rounds):
        ours = bench.ours(bench.plan())
        rows = bench.changelog()
        if rows.num_rows != bench.rows:
            raise SystemExit(f"{rows.num_rows} rows are there, expected {bench.rows}")
        pairs.append((ours, parquet_seconds(rows, bench.directory / "parquet", bench.threads)))
        print(
            "{}: changelog {:.2f} s ({:.2f} of CPU), Parquet {:.2f} s ({:.2f} of CPU)".format(
                name, *pairs[-1][0], *pairs[-1][1]
            ),
            flush=True,
        )
    seconds = [statistics.median(side[0] for side in sides) for sides in zip(*pairs, strict=True)]
    ratio = statistics.median(limit[0] / ours[0] for ours, limit in pairs)
    cpu = statistics.median(limit[1] / ours[1] for ours, limit in pairs)
    rates = {side: round(bench.rows / taken) for side, taken in zip(("ours", "other"), seconds, strict=True)}
    print(
        "{}: changelog {ours:,} rows/s, Parquet {other:,} rows/s".format(name, **rates),
        f"ratio {ratio:.2f}, of CPU {cpu:.2f}",
    )
    return {**rates, "ratio": round(ratio, 2), "cpu_ratio": round(cpu, 2)}


def main() -> None:
    """Measures and prints."""
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--rows", type=int, default=2_000_000)
    options.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    chosen = options.parse_args()
    spark = spark_session(jars=delta_jars(), name="bench", settings={"spark.driver.memory": "1g"})
    found = {}
    try:
        with tempfile.TemporaryDirectory(prefix="historian-bench-") as directory:
            for values in (counting, random):
                name = values.__name__
                bench = Bench(spark, Path(directory, name), chosen.rows, chosen.threads, values)
                found[name] = compared(name, bench, chosen.rounds)
    finally:
        spark.stop()
    lower = min(found.values(), key=lambda result: result["ratio"])
    both = {f"ratio_{name}": result["ratio"] for name, result in found.items()}
    print(json.dumps({"results": [{"name": "changelog_vs_parquet_limit", **lower, **both}]}))


if __name__ == "__main__":
    main()
