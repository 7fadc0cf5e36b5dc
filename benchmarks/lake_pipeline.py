"""A live MySQL 9 server's log to a committed changelog, against its slowest stage alone: decoding, or Parquet of the same rows.

``pipeline_vs_slowest_stage``: rows a second of a run, from its first plan on, by those of the slower of two stages. Decoding reads
the same log from the same server into Arrow rows that nobody keeps, in as many threads as the log has files, as a run does. Parquet is
Arrow's own writer of the changelog's rows, in that many threads, with the same codec. All three in turn, in one process; the run's session is there before.
Prints medians, and last one JSON object. Run: ``python benchmarks/lake_pipeline.py [--rows 2000000] [--rounds 3]``.
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
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

sys.path[:0] = [str(Path(__file__).parent.parent), str(Path(__file__).parent.parent / "tests" / "support")]

from binlog_work import address, in_own_file
from lake_limit import parquet_seconds
from orders import create_orders, fill_orders

from connectors.config import PipelineConfig, load_config
from connectors.monitoring.observer import Observer, WrittenPlan
from connectors.pipeline.run import run
from connectors.readers.binlog.server_reader import BinlogServerReader
from connectors.spark.jvm import delta_jars
from databases.servers import start_server
from logs.decoder_lab import capture, planned
from sinks.session import spark_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from databases.servers import Server
    from historian.plans.plans import LogRange
    from historian.schema.snapshots import Snapshot

FILES = 4
CONFIG = """
name: bench
source: {{type: mysql, host: "{host}", port: {port}, user: {user}, password: "{password}", tables: ["bench.*"],
    start: latest, tls: {{mode: disabled}}}}
history: {{store: "sqlite:///{work}/store.db"}}
sinks: [{{type: delta, path: "{work}/lake", changelog: "{{table}}_changes", mirror: null}}]
run: {{trigger: once, max_batch_bytes: 1GB}}
"""


class FromOpened(Observer):
    """Knows how long it was from when store, lake and server were open to the last plan's end."""

    at_s = seconds = 0.0

    def opened(self) -> None:
        """See :class:`connectors.monitoring.observer.Observer`."""
        self.at_s = time.perf_counter()

    def written(self, plan: WrittenPlan) -> None:
        """See :class:`connectors.monitoring.observer.Observer`."""
        self.seconds = time.perf_counter() - self.at_s
        print(
            f"  decoding {plan.decode_s:.2f} s, writing {sum(plan.write_s):.2f} s of {self.seconds:.2f} s", flush=True
        )


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


def ours(spark: SparkSession, config: PipelineConfig, work: Path, rows: int) -> tuple[float, pa.Table]:
    """Seconds of a run from when all is open to its last commit, and the changelog's rows."""
    observer = FromOpened()
    run(config, once=True, spark=spark, observer=observer)
    files = sorted((work / "lake" / "orders_changes").glob("*.parquet"))
    table = pa.concat_tables(pq.read_table(path) for path in files).sort_by("offset").combine_chunks()
    if table.num_rows != rows:
        raise SystemExit(f"{table.num_rows} rows are there, expected {rows}")
    return observer.seconds, table


def decode(server: Server, parts: list[LogRange], snapshot: Snapshot, threads: int, rows: int) -> float:
    """Seconds to decode all files of the log from the live server."""

    def count(part: LogRange) -> int:
        with closing(BinlogServerReader(address(server), flavor="mysql")) as reader:
            return sum(chunk.rows.num_rows for chunk in reader.read(part, planned(snapshot)))

    begin = time.perf_counter()
    with ThreadPoolExecutor(threads) as pool:
        found = sum(pool.map(count, parts))
    seconds = time.perf_counter() - begin
    if found != rows:
        raise SystemExit(f"{found} rows were decoded, expected {rows}")
    return seconds


def main() -> None:
    """Measures and prints."""
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--rows", type=int, default=2_000_000)
    chosen = options.parse_args()
    threads = len(os.sched_getaffinity(0))
    rounds = []
    with tempfile.TemporaryDirectory(prefix="historian-bench-") as name:
        directory = Path(name)
        server = start_server("mysql9", directory / "server")
        spark = spark_session(jars=delta_jars(), name="bench", settings={"spark.driver.memory": "1g"})
        try:
            with server.connect() as connection, connection.cursor() as cursor:
                create_orders(cursor)
            works = {name: directory / name for name in ("warm", *map(str, range(chosen.rounds)))}
            configs = {name: begin(server, work) for name, work in works.items()}
            for config in configs.values():
                run(config, once=True, spark=spark)
            parts, snapshot = record(server, chosen.rows), capture(server, "bench", "orders")
            print(f"{chosen.rows:,} rows in {sum(part.end for part in parts) / 1e6:,.0f} MB of log", flush=True)
            ours(spark, configs["warm"], works["warm"], chosen.rows)
            decode(server, parts, snapshot, threads, chosen.rows)
            for number in list(works)[1:]:
                decoded = decode(server, parts, snapshot, threads, chosen.rows)
                seconds, table = ours(spark, configs[number], works[number], chosen.rows)
                written = parquet_seconds(table, directory / "parquet", threads)[0]
                rounds.append((seconds, decoded, written))
                print("run {:.2f} s, decoding {:.2f} s, Parquet {:.2f} s".format(*rounds[-1]), flush=True)
        finally:
            spark.stop()
            server.kill()
    ratio = statistics.median(max(decoded, written) / seconds for seconds, decoded, written in rounds)
    rates = [round(chosen.rows / statistics.median(column)) for column in zip(*rounds, strict=True)]
    print("rows/s: run {:,}, decoding {:,}, Parquet {:,};".format(*rates), f"ratio {ratio:.2f}")
    result = {"name": "pipeline_vs_slowest_stage", "ours": rates[0], "decode": rates[1], "parquet": rates[2]}
    print(json.dumps({"results": [{**result, "ratio": round(ratio, 2)}]}))


if __name__ == "__main__":
    main()
