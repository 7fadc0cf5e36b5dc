"""A live MySQL 9 server's log to a committed changelog, against its slowest stage alone: decoding, or Parquet of the same rows.

``pipeline_vs_slowest_stage``: rows a second of a run, from its first plan on, by those of the slower of two stages. Decoding reads
the same log from the same server into Arrow rows that nobody keeps, in as many threads as there are cores. Parquet is
Arrow's own writer of the changelog's rows, in that many threads, with the same codec. All three in turn, in one process; the run's session is there before.

Each stage alone has all cores. A run has them once for all its work, so its ratio has a bound, which stands beside it: the slower stage's
time by the processor time of all stages together, shared out to all cores. ``bound`` is of scan, decoding and Arrow's writer, which a run need not
be as slow as; ``bound_own`` of what the run itself took, Java and the server among it. ``busy``: how much of all cores the run had.
Prints medians, and last one JSON object. Run: ``python benchmarks/lake_pipeline.py [--rows 8000000] [--rounds 3]``.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

sys.path[:0] = [str(Path(__file__).parent.parent), str(Path(__file__).parent.parent / "tests" / "support")]

from binlog_work import address, in_own_file
from lake_limit import parquet_seconds
from orders import create_orders, fill_orders
from processor import processor_s

from connectors.config import PipelineConfig, load_config
from connectors.monitoring.observer import Observer, WrittenPlan
from connectors.pipeline.run import run
from connectors.readers.binlog.server_reader import BinlogServerReader
from connectors.spark.jvm import delta_jars
from connectors.spark.quiet import quiet_start
from databases.servers import start_server
from logs.decoder_lab import capture, planned
from sinks.session import spark_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from databases.servers import Server
    from historian.plans.plans import LogRange
    from historian.positions import LogPosition
    from historian.schema.snapshots import Snapshot

FILES = 4
LOGS_ALONE = "default_storage_engine=BLACKHOLE"
"""A server that logs rows and keeps none is filled sooner."""
CONFIG = """
name: bench
source: {{type: mysql, host: "{host}", port: {port}, user: {user}, password: "{password}", tables: ["bench.*"],
    start: latest, tls: {{mode: disabled}}}}
history: {{store: "sqlite:///{work}/store.db"}}
sinks: [{{type: delta, path: "{work}/lake", changelog: "{{table}}_changes", mirror: null}}]
run: {{trigger: once}}
"""


class Taken(NamedTuple):
    """Seconds, and those of the processor in all processes together, the server's among them."""

    seconds: float
    processor: float


class FromOpened(Observer):
    """Knows what it took from when store, lake and server were open to the last plan's end."""

    def __init__(self) -> None:
        self._begun = self.taken = Taken(0.0, 0.0)

    def opened(self) -> None:
        """See :class:`connectors.monitoring.observer.Observer`."""
        self._begun = _now()

    def written(self, plan: WrittenPlan) -> None:
        """See :class:`connectors.monitoring.observer.Observer`."""
        self.taken = _since(self._begun)
        print(
            f"  decoding {plan.decode_s:.2f} s, writing {sum(plan.write_s):.2f} s; {self.taken.seconds:.2f} s so far",
            flush=True,
        )


def _now() -> Taken:
    return Taken(time.perf_counter(), processor_s())


def _since(begun: Taken) -> Taken:
    seconds, processor = _now()
    return Taken(seconds - begun.seconds, processor - begun.processor)


def begin(server: Server, work: Path) -> PipelineConfig:
    """A connector that has begun, with nothing to read so far: its first look at the source is made once in its life."""
    work.mkdir()
    known = {"host": server.host, "port": server.port, "user": server.user, "password": server.password}
    path = work / "bench.yaml"
    path.write_text(CONFIG.format(**known, work=work))
    return load_config(path)


def record(server: Server, rows: int) -> list[LogRange]:
    """Inserts rows, in files of about the same size."""
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SET SESSION cte_max_recursion_depth = 4294967295")
        step = rows // FILES
        parts = [
            in_own_file(server, lambda first=first: fill_orders(cursor, first + step, first=first))  # type: ignore[misc]
            for first in range(0, step * FILES, step)
        ]
    server.sql("FLUSH BINARY LOGS")
    return parts


def ours(spark: SparkSession, config: PipelineConfig, work: Path, rows: int) -> tuple[Taken, pa.Table]:
    """What a run takes from when all is open to its last commit, and the changelog's rows."""
    observer = FromOpened()
    run(config, once=True, spark=spark, observer=observer)
    files = sorted((work / "lake" / "orders_changes").glob("*.parquet"))
    table = pa.concat_tables(pq.read_table(path) for path in files).sort_by("offset").combine_chunks()
    if table.num_rows != rows:
        raise SystemExit(f"{table.num_rows} rows are there, expected {rows}")
    return observer.taken, table


def decode(server: Server, parts: list[LogRange], snapshot: Snapshot, threads: int, rows: int) -> Taken:
    """What it takes to decode all files of the log from the live server."""

    def count(part: LogRange) -> int:
        with closing(BinlogServerReader(address(server), flavor="mysql")) as reader:
            return sum(chunk.rows.num_rows for chunk in reader.read(part, planned(snapshot)))

    begun = _now()
    with ThreadPoolExecutor(threads) as pool:
        found = sum(pool.map(count, parts))
    taken = _since(begun)
    if found != rows:
        raise SystemExit(f"{found} rows were decoded, expected {rows}")
    return taken


def scan(server: Server, start: LogPosition) -> Taken:
    """What the scan behind *start* takes, with which plans begin."""
    with closing(BinlogServerReader(address(server), flavor="mysql")) as reader:
        begun = _now()
        if not list(reader.scan(start)):
            raise SystemExit("the log holds nothing")
        return _since(begun)


def parquet(table: pa.Table, target: Path, threads: int) -> Taken:
    """What Arrow's writer takes."""
    return Taken(*parquet_seconds(table, target, threads))


def main() -> None:
    """Measures and prints."""
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--rows", type=int, default=8_000_000)
    chosen = options.parse_args()
    threads = len(os.sched_getaffinity(0))
    rounds = []
    with tempfile.TemporaryDirectory(prefix="historian-bench-") as name:
        directory = Path(name)
        server = start_server("mysql9", directory / "server", LOGS_ALONE)
        with quiet_start():  # Java as a run of its own starts it.
            spark = spark_session(jars=delta_jars(), name="bench", settings={"spark.driver.memory": "1g"})
        try:
            with server.connect() as connection, connection.cursor() as cursor:
                create_orders(cursor)
            works = {name: directory / name for name in ("warm", *map(str, range(chosen.rounds)))}
            configs = {name: begin(server, work) for name, work in works.items()}
            for config in configs.values():
                run(config, once=True, spark=spark)
            with closing(BinlogServerReader(address(server), flavor="mysql")) as reader:
                start = reader.end()
            parts, snapshot = record(server, chosen.rows), capture(server, "bench", "orders")
            print(f"{chosen.rows:,} rows in {sum(part.end for part in parts) / 1e6:,.0f} MB of log", flush=True)
            ours(spark, configs["warm"], works["warm"], chosen.rows)
            decode(server, parts, snapshot, threads, chosen.rows)
            for number in list(works)[1:]:
                scanned = scan(server, start)
                decoded = decode(server, parts, snapshot, threads, chosen.rows)
                whole, table = ours(spark, configs[number], works[number], chosen.rows)
                written = parquet(table, directory / "parquet", threads)
                del table
                rounds.append((whole, scanned, decoded, written))
                print(
                    ", ".join(
                        f"{name} {taken.seconds:.2f} s ({taken.processor:.2f} of the processor)"
                        for name, taken in zip(("run", "scan", "decoding", "Parquet"), rounds[-1], strict=True)
                    ),
                    flush=True,
                )
        finally:
            spark.stop()
            server.kill()
    ratio, bound, own, busy = map(statistics.median, zip(*(_ratios(threads, *each) for each in rounds), strict=True))
    rates = [
        round(chosen.rows / statistics.median(taken.seconds for taken in each)) for each in zip(*rounds, strict=True)
    ]
    print("rows/s: run {:,}, scan {:,}, decoding {:,}, Parquet {:,};".format(*rates), f"ratio {ratio:.2f}")
    print(
        f"{threads} cores allow {bound:.2f} with Arrow's writer, {own:.2f} with what the run took; it had {busy:.0%} of them"
    )
    result = {"name": "pipeline_vs_slowest_stage", "ours": rates[0], "decode": rates[2], "parquet": rates[3]}
    bounds = {"bound": round(bound, 2), "bound_own": round(own, 2), "busy": round(busy, 2)}
    print(json.dumps({"results": [{**result, "ratio": round(ratio, 2), **bounds}]}))


def _ratios(cores: int, whole: Taken, scanned: Taken, decoded: Taken, written: Taken) -> tuple[float, ...]:
    """The ratio of a round, its bounds by the stages' processor time and by the run's own, and how busy the cores were."""
    slower = max(decoded.seconds, written.seconds)
    stages = scanned.processor + decoded.processor + written.processor
    return (
        slower / whole.seconds,
        slower * cores / stages,
        slower * cores / whole.processor,
        whole.processor / (cores * whole.seconds),
    )


if __name__ == "__main__":
    main()
