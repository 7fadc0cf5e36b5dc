"""What work costs, as constants of a model, and what the model says of work beyond this machine: the figures of docs/explanation/scale.md.

The processor's seconds of a run, Java's among them, are a sum: so much for its first plan, for each plan, for a table's commit, for a row, for a byte of log.
Runs of five kinds give the five constants, by least squares of what each run is off by, relatively: few rows and many, wide ones, many tables, many plans.
Each run is a process of its own that writes changelogs, from a real MySQL 9's files; its start is left out. ``copy``: a first copy from the live server, a row's and a byte's cost.
The model is held against one, two and four such processes side by side, ``predicted_vs_measured`` for each: work is bound by processors, so *n* processes take
*n* times the seconds of one, shared by as many cores as there are.

Prints the constants, then what follows for work of other sizes, and last one JSON object. Prices are assumptions, in dollars: ``--core-hour`` of a
processor's core, ``--thousand-puts`` of writes to object storage.
Run: ``python benchmarks/scale.py [--rows 2400000]``.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

sys.path[:0] = [str(Path(__file__).parent.parent), str(Path(__file__).parent.parent / "tests" / "support")]

from processor import processor_s

from connectors.monitoring.observer import Observer, WrittenPlan

if TYPE_CHECKING:
    from databases.servers import Server

NARROW = "(id BIGINT NOT NULL PRIMARY KEY, customer INT NOT NULL, status VARCHAR(20), total DECIMAL(12,2), placed DATETIME(3), weight DOUBLE)"
NARROW_ROW = "n, n % 9973, ELT(1 + n % 4, 'new', 'paid', 'shipped', 'returned'), (n % 100000) / 100, TIMESTAMP('2024-01-01') + INTERVAL n SECOND, n / 7"
WIDE = "(id BIGINT NOT NULL PRIMARY KEY, body VARCHAR(2000) NOT NULL)"
WIDE_ROW = "n, REPEAT(CONCAT(SHA2(n, 256), ' words that come again '), 12)"
FILL = "INSERT INTO {table} WITH RECURSIVE s (n) AS (SELECT {first} UNION ALL SELECT n + 1 FROM s WHERE n + 1 < {last}) SELECT {row} FROM s"
STEP = 20_000
TABLES = 300
PLANS = 40
TERMS = ("run", "plan", "table_commit", "row", "byte")
FILES_SOURCE = 'type: binlog-files, directory: "{log}", tables: ["{database}.*"]'
SERVER_SOURCE = (
    'type: mysql, host: "{host}", port: {port}, user: {user}, password: "{password}", tls: {{mode: disabled}}, '
    'tables: ["{database}.*"], start: initial'
)
CONFIG = """
name: bench
source: {{{source}}}
history: {{store: "sqlite:///{work}/store.db"}}
sinks: [{{type: delta, path: "{work}/lake", changelog: "{{table}}_changes", mirror: null}}]
run: {{trigger: once, max_batch_bytes: {plan_bytes}, spark: {{master: "local[1]", conf: {{spark.driver.memory: 1g}}}}}}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """A run from when all was open: what it did, its seconds, and the processor's."""

    plans: int
    commits: int
    rows: int
    log_bytes: int
    seconds: float
    processor: float
    peak_mb: float

    @property
    def terms(self) -> tuple[int, ...]:
        """As :data:`TERMS` name them."""
        return 1, self.plans, self.commits, self.rows, self.log_bytes


class Counts(Observer):
    """Counts what a run does."""

    def __init__(self) -> None:
        self.plans = self.commits = self.rows = self.log_bytes = 0
        self.begun = (0.0, 0.0)

    def opened(self) -> None:
        """See :class:`connectors.monitoring.observer.Observer`."""
        self.begun = (time.perf_counter(), processor_s())

    def written(self, plan: WrittenPlan) -> None:
        """See :class:`connectors.monitoring.observer.Observer`."""
        self.plans += 1
        tables = {table for table, _ in plan.rows}
        self.commits += len(tables)
        self.rows += sum(plan.rows.values())
        self.log_bytes += sum(each.size_bytes for each in plan.plan.ranges)


def run_here(config: Path) -> Spent:
    """Runs a connector in this process."""
    import resource

    from connectors.config import load_config
    from connectors.pipeline.run import run

    counts = Counts()
    run(load_config(config), once=True, observer=counts)
    seconds, processor = time.perf_counter() - counts.begun[0], processor_s() - counts.begun[1]
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    done = (counts.plans, counts.commits, counts.rows, counts.log_bytes)
    return Spent(
        **dict(zip(("plans", "commits", "rows", "log_bytes"), done, strict=True)),
        seconds=seconds,
        processor=processor,
        peak_mb=peak_mb,
    )


class Bench:
    """Logs of a server, one for each kind of run, and runs of them in processes of their own."""

    def __init__(self, directory: Path, server: Server) -> None:
        self.directory, self.server = directory, server
        self._runs = 0

    def record(self, database: str, tables: Sequence[str], columns: str, row: str, rows: int, step: int = STEP) -> Path:
        """A directory with a log that has *rows* of each table, *step* a transaction, and their CREATEs."""
        log = self.directory / f"log-{database}"
        log.mkdir()
        self.server.sql("FLUSH BINARY LOGS")
        first = self._newest()
        with self.server.connect() as connection, connection.cursor() as cursor:
            cursor.execute("SET SESSION cte_max_recursion_depth = 4294967295")
            cursor.execute(f"CREATE DATABASE {database}")
            cursor.execute(f"USE {database}")
            for table in tables:
                cursor.execute(f"CREATE TABLE {database}.{table} {columns}")
            for table in tables:
                for begin in range(0, rows, step):
                    last = min(rows, begin + step)
                    cursor.execute(FILL.format(table=f"{database}.{table}", first=begin, last=last, row=row))
        last = self._newest()
        self.server.sql("FLUSH BINARY LOGS")
        for path in sorted((self.directory / "server" / "data").glob("binlog.[0-9]*")):
            if first <= path.name <= last:
                shutil.copy(path, log)
        return log

    def _newest(self) -> str:
        return str(self.server.sql("SHOW BINARY LOG STATUS")[0][0])

    def files(self, database: str, log: Path, plan_bytes: str = "1GB") -> Path:
        """A configuration that reads that log."""
        return self._config(FILES_SOURCE.format(log=log, database=database), plan_bytes)

    def copying(self, database: str) -> Path:
        """A configuration that copies what the server holds."""
        server = self.server
        known = {"host": server.host, "port": server.port, "user": server.user, "password": server.password}
        return self._config(SERVER_SOURCE.format(**known, database=database), "1GB")

    def _config(self, source: str, plan_bytes: str) -> Path:
        self._runs += 1
        work = self.directory / f"run-{self._runs}"
        work.mkdir()
        path = work / "bench.yaml"
        path.write_text(CONFIG.format(source=source, work=work, plan_bytes=plan_bytes))
        return path

    @staticmethod
    def side_by_side(configs: Sequence[Path]) -> list[Spent]:
        """Runs them at once, each in a process of its own."""
        running = [
            subprocess.Popen([sys.executable, __file__, "--config", str(path)], stdout=subprocess.PIPE, text=True)
            for path in configs
        ]
        said = [process.communicate()[0] for process in running]
        if any(process.returncode for process in running):
            raise SystemExit("a run has failed")
        for path in configs:
            shutil.rmtree(path.parent)
        return [Spent(**json.loads(text.splitlines()[-1])) for text in said]

    def alone(self, name: str, config: Path) -> Spent:
        """Runs one, and tells of it."""
        [spent] = self.side_by_side([config])
        print(
            f"{name}: {spent.plans} plans, {spent.commits} commits, {spent.rows:,} rows, {spent.log_bytes / 1e6:.1f} MB of log in "
            f"{spent.seconds:.2f} s, {spent.processor:.2f} s of the processor, {spent.peak_mb:.0f} MB of Python",
            flush=True,
        )
        return spent


def fitted(spent: Sequence[Spent]) -> dict[str, float]:
    """Seconds of the processor for one of each of :data:`TERMS`, none below zero."""
    weights = np.array([[term / each.processor for term in each.terms] for each in spent])
    wanted, kept = np.ones(len(spent)), list(range(len(TERMS)))
    while True:
        found = (
            np.linalg.lstsq(weights[:, kept] / (scale := np.abs(weights[:, kept]).max(axis=0)), wanted, rcond=None)[0]
            / scale
        )
        if (found >= 0).all():
            return {name: float(found[kept.index(at)]) if at in kept else 0.0 for at, name in enumerate(TERMS)}
        kept.pop(int(found.argmin()))


def predicted(constants: Mapping[str, float], spent: Spent) -> float:
    """Seconds of the processor by the model."""
    return sum(constants[name] * term for name, term in zip(TERMS, spent.terms, strict=True))


def told(constants: Mapping[str, float], copy_byte_s: float, core_hour: float, thousand_puts: float) -> None:
    """Prints what follows for work of other sizes. A commit writes two objects: its rows, and an entry of the table's log."""
    plan, commit = constants["plan"], constants["table_commit"]
    day_s = 10e12 * copy_byte_s
    print(
        f"10 TB of rows copied in a day: {day_s / 86400:.1f} cores, 116 MB/s from the source, ${day_s / 3600 * core_hour:,.0f} once"
    )
    for what, cores, commits_s in (
        (
            "1 M rows/s of 200 bytes, a plan of one table a second",
            1e6 * (constants["row"] + 200 * constants["byte"]) + plan + commit,
            1,
        ),
        ("100,000 tables that change each minute", 100_000 / 60 * commit, 100_000 / 60),
        ("100,000 tables that change each hour", 100_000 / 3600 * commit, 100_000 / 3600),
        ("1,000 databases, five tables of each change each minute", 1000 / 60 * (plan + 5 * commit), 5000 / 60),
    ):
        month = cores * core_hour * 730, commits_s * 2 * 730 * 3600 / 1000 * thousand_puts
        print(
            f"{what}: {cores:.1f} cores, ${month[0]:,.0f} a month; {2 * commits_s:,.0f} PUTs a second, ${month[1]:,.0f} a month"
        )


def main() -> None:
    """Measures and prints."""
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--rows", type=int, default=2_400_000)
    options.add_argument("--core-hour", type=float, default=0.05)
    options.add_argument("--thousand-puts", type=float, default=0.005)
    options.add_argument("--config", type=Path, help=argparse.SUPPRESS)
    chosen = options.parse_args()
    if chosen.config is not None:
        spent = run_here(chosen.config)
        print(json.dumps({name: getattr(spent, name) for name in Spent.__dataclass_fields__}))
        return
    from databases.servers import start_server

    with tempfile.TemporaryDirectory(prefix="historian-bench-") as name:
        directory = Path(name)
        server = start_server("mysql9", directory / "server")
        try:
            bench = Bench(directory, server)
            results = measured(bench, chosen.rows, (chosen.core_hour, chosen.thousand_puts))
        finally:
            server.kill()
    print(json.dumps({"results": results}))


def measured(bench: Bench, rows: int, prices: tuple[float, float]) -> list[dict[str, Any]]:
    """All figures."""
    few = bench.record("few", ["t"], NARROW, NARROW_ROW, rows // 24, step=1000)
    many = bench.record("many", ["t"], NARROW, NARROW_ROW, rows)
    wide = bench.record("wide", ["t"], WIDE, WIDE_ROW, rows // 24)
    tables = bench.record("tables", [f"t{number}" for number in range(TABLES)], NARROW, NARROW_ROW, 1)
    size = sum(path.stat().st_size for path in few.iterdir())
    bench.side_by_side([bench.files("few", few)])  # kernels are compiled, and files are in the system's memory
    runs = [
        bench.alone("few rows", bench.files("few", few)),
        bench.alone("many rows", bench.files("many", many)),
        bench.alone("wide rows", bench.files("wide", wide)),
        bench.alone("many tables", bench.files("tables", tables)),
        bench.alone("many plans", bench.files("few", few, f"{size // PLANS}B")),
    ]
    constants = fitted(runs)
    print("; ".join(f"a {name.replace('_', ' ')}: {value * 1e6:,.4g} us" for name, value in constants.items()))
    off = [predicted(constants, each) / each.processor for each in runs]
    print("by the model against measured:", ", ".join(f"{each:.2f}" for each in off))
    copy = bench.alone("a first copy", bench.copying("wide"))
    copied_bytes = sum(path.stat().st_size for path in wide.iterdir())
    cores = len(os.sched_getaffinity(0))
    results: list[dict[str, Any]] = [
        {"name": name, "value": value * 1e6, "unit": "us"} for name, value in constants.items()
    ]
    results.append({"name": "copied_byte", "value": copy.processor / copied_bytes * 1e6, "unit": "us"})
    for count in (1, 2, 4):
        found = bench.side_by_side([bench.files("many", many) for _ in range(count)])
        taken = max(each.seconds for each in found)
        model = predicted(constants, found[0]) * count / min(count, cores)
        print(f"{count} processes: {taken:.2f} s, by the model {model:.2f} s", flush=True)
        results.append({"name": f"predicted_vs_measured_{count}", "ratio": round(model / taken, 2)})
    told(constants, copy.processor / copied_bytes, *prices)
    return results


if __name__ == "__main__":
    main()
