"""A plan decoded and written on a standalone cluster's executors: on two of one core against one, and against threads of one driver.

``two_executors``: the lower of two ratios, which stand beside it. ``decode``: from binlog files to chunks that executors hold. ``write``: from those to a
committed changelog. ``executors_vs_threads``: decoding and writing on two executors against two threads of a driver without a cluster, which
holds all chunks in its memory. Each executor has one core of the machine for its Java and its Python. The driver has none of its own: it waits
meanwhile, and commits. So on a machine of two cores two executors share one with it.

What the machine itself allows of ``two_executors`` stands beside, as ``bound``. It is ``two_processes``: the same log decoded by two processes side by
side, a half each, against one, without Spark. ``of_bound`` is the ratio by it. Each way is measured in turn, after one plan that nobody measures; medians are printed, and the processor's time of all processes.
The last line is JSON. Run: ``python benchmarks/cluster_executors.py [--rows 1600000] [--rounds 3]``.
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
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path[:0] = [str(Path(__file__).parent.parent), str(Path(__file__).parent.parent / "tests" / "support")]

from lake_pipeline import LOGS_ALONE
from orders import create_orders, fill_orders
from processor import processor_s

from connectors.config import PipelineConfig, load_config
from connectors.pipeline.decoding import PlannedLog, decoded
from connectors.spark.jvm import delta_jars
from connectors.tracking.sources import make_reader, make_tracker
from databases.servers import start_server
from historian.store import Store
from replicas.spark_cluster import Cluster, spark_cluster
from sinks.delta import DeltaSettings, DeltaSink
from sinks.session import spark_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from historian.plans.plans import Plan

FILES = 8
CONFIG = """
name: bench
source: {{type: binlog-files, directory: "{log}", tables: ["bench.*"]}}
history: {{store: "sqlite:///{work}/store.db"}}
sinks: [{{type: delta, path: "{work}/lake", changelog: "{{table}}_changes", mirror: null}}]
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """Seconds of one plan, and of the processor for both steps, all processes together."""

    decode: float
    write: float
    processor: float

    @property
    def whole(self) -> float:
        """Both steps."""
        return self.decode + self.write


def record(directory: Path, rows: int) -> Path:
    """A directory with the log of a real MySQL 9, in files of about the same size."""
    log = directory / "log"
    log.mkdir()
    server = start_server("mysql9", directory / "server", LOGS_ALONE)
    try:
        with server.connect() as connection, connection.cursor() as cursor:
            create_orders(cursor)
            step = rows // FILES
            for first in range(0, step * FILES, step):
                fill_orders(cursor, first + step, first=first)
                cursor.execute("FLUSH BINARY LOGS")
        for path in sorted((directory / "server" / "data").glob("binlog.[0-9]*"))[:-1]:
            shutil.copy(path, log)
    finally:
        server.kill()
    return log


class Bench:
    """One log, whose only plan is written into a new lake each time."""

    def __init__(self, directory: Path, log: Path, rows: int) -> None:
        self._directory, self._log, self._rows = directory, log, rows
        self._lakes = 0

    @contextmanager
    def planned(self) -> Iterator[tuple[PipelineConfig, PlannedLog, Store]]:
        """The plan, made with a new store."""
        self._lakes += 1
        work = self._directory / f"lake-{self._lakes}"
        work.mkdir()
        path = work / "bench.yaml"
        path.write_text(CONFIG.format(log=self._log, work=work))
        config = load_config(path)
        with closing(Store.open(config.history.store)) as store:
            tracker = make_tracker(config, store=store)
            with closing(tracker.reader):
                tracker.stop_at_present_end()
                plan = tracker.plan_after(0, limit_bytes=1 << 40)
                if plan is None:
                    raise SystemExit("the log holds nothing")
                yield config, PlannedLog.of(plan, tracker.reader), store
        shutil.rmtree(work)

    def taken(self, spark: SparkSession, *, executors: bool) -> Taken:
        """Decodes and writes it."""
        with self.planned() as (config, planned, store):
            sink = DeltaSink(spark, DeltaSettings(**config.sinks[0].settings))
            sink.open(planned.plan.connector)
            before, begin = processor_s(), time.perf_counter()
            with decoded(planned, make_reader(config.source), spark, executors=executors) as chunks:
                rows = sum(head.row_count for head in chunks.heads)
                middle = time.perf_counter()
                sink.write(planned.plan, partial(_timeline, store, planned.plan), chunks)
                end = time.perf_counter()
            if rows != self._rows:
                raise SystemExit(f"{rows} rows were decoded, expected {self._rows}")
            return Taken(decode=middle - begin, write=end - middle, processor=processor_s() - before)

    def processes_s(self, count: int) -> float:
        """Seconds in which *count* processes decode the log without Spark, each its share of the plan's ranges."""
        with self.planned() as (config, planned, _):
            shares = [
                (config, planned.plan, tuple(range(number, len(planned.plan.ranges), count))) for number in range(count)
            ]
            with get_context("spawn").Pool(count) as pool:
                pool.map(
                    _decoded_rows, [(config, plan, ranges[:1]) for _, plan, ranges in shares]
                )  # kernels are loaded
                begin = time.perf_counter()
                rows = sum(pool.map(_decoded_rows, shares, chunksize=1))
                seconds = time.perf_counter() - begin
        if rows != self._rows:
            raise SystemExit(f"{rows} rows were decoded, expected {self._rows}")
        return seconds


def _timeline(store: Store, plan: Plan, after: int) -> Sequence[Any]:
    return tuple(entry for entry in store.entries(after) if entry.number <= plan.version)


def _decoded_rows(share: tuple[PipelineConfig, Plan, Sequence[int]]) -> int:
    config, plan, ranges = share
    with closing(make_reader(config.source)) as reader:
        return sum(
            chunk.rows.num_rows
            for index in ranges
            for chunk in reader.read(plan.ranges[index], plan.tables, stops=True)
        )


@contextmanager
def session(master: str, settings: dict[str, str]) -> Iterator[SparkSession]:
    """One of this process's Java, stopped behind it."""
    spark = spark_session(jars=delta_jars(), master=master, name="bench", settings=settings)
    try:
        yield spark
    finally:
        spark.stop()


def on_cluster(cluster: Cluster, executors: int) -> dict[str, str]:
    """Settings of a session with so many executors of one core."""
    return {**cluster.settings(), "spark.cores.max": str(executors), "spark.eventLog.enabled": "false"}


def measured(bench: Bench, spark: SparkSession, rounds: int, name: str, *, executors: bool) -> list[Taken]:
    """Rounds of one way, behind one that nobody measures."""
    bench.taken(spark, executors=executors)
    found = []
    for _ in range(rounds):
        found.append(bench.taken(spark, executors=executors))
        print(
            f"{name}: decoding {found[-1].decode:.2f} s, writing {found[-1].write:.2f} s, {found[-1].processor:.2f} s of the processor",
            flush=True,
        )
    return found


def main() -> None:
    """Measures and prints."""
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--rows", type=int, default=1_600_000)
    chosen = options.parse_args()
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="historian-bench-")))
        bench = Bench(directory, record(directory, chosen.rows), chosen.rows // FILES * FILES)
        alone, both = ([bench.processes_s(count) for _ in range(chosen.rounds)] for count in (1, 2))
        print(f"decoding without Spark: one process {_median(alone):.2f} s, two {_median(both):.2f} s", flush=True)
        found = {}
        with session("local[2]", {}) as spark:
            found["threads"] = measured(bench, spark, chosen.rounds, "two threads", executors=False)
        cores = sorted(os.sched_getaffinity(0))
        cluster = stack.enter_context(spark_cluster(directory / "cluster", workers=2, cores=cores[:2]))
        for count, name in ((1, "one executor"), (2, "two executors")):
            with session(cluster.master, on_cluster(cluster, count)) as spark:
                found[name] = measured(bench, spark, chosen.rounds, name, executors=True)

    def ratio(first: str, second: str, step: Callable[[Taken], float]) -> float:
        return round(
            _median([step(each) for each in found[first]]) / _median([step(each) for each in found[second]]), 2
        )

    decode = ratio("one executor", "two executors", lambda taken: taken.decode)
    write = ratio("one executor", "two executors", lambda taken: taken.write)
    processor = {
        name.replace(" ", "_"): round(_median([each.processor for each in rounds]), 2) for name, rounds in found.items()
    }
    processes = round(_median(alone) / _median(both), 2)
    slower, whole = min(decode, write), ratio("threads", "two executors", lambda taken: taken.whole)
    results = [
        {
            "name": "two_executors",
            "ratio": slower,
            "decode": decode,
            "write": write,
            "bound": processes,
            "of_bound": round(slower / processes, 2),
            "processor_s": processor,
        },
        {"name": "executors_vs_threads", "ratio": whole},
        {"name": "two_processes", "ratio": processes},
    ]
    for result in results:
        print(", ".join(f"{name} {value}" for name, value in result.items()))
    print(json.dumps({"results": results}))


def _median(values: Sequence[float]) -> float:
    return statistics.median(values)


if __name__ == "__main__":
    main()
