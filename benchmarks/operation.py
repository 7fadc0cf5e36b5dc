"""What it costs to look at a connector: `historian status` over many targets, and metrics beside a run that is scraped.

``status_s``: seconds that ``historian status`` takes in a process of its own, where 500 tables have 1,000 targets in a lake; the median of some calls.
``overhead``: how much longer plans take that are looked at, by metrics, log, status and page: :mod:`overhead` says how that is measured. ``between`` has its bounds,
``cpu`` the same of the processor's time, of Python and Java together: it tells more on a busy machine. ``answers_cpu`` is what answers took of that.
``page_s``: seconds that ``historian page`` takes in a process of its own, of 1,000 tables with 100,000 statements (:mod:`history`); the median of some
calls. It is the processor's time, since a busy machine would measure its other work; a thread does nearly all of it.
Prints what it does, and last one JSON object. Run: ``python benchmarks/operation.py [--tables 500] [--rows 2000000] [--rounds 10] [--ddls 100000]
[--only overhead]``.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "support")]

from binlog_work import report
from history import build
from overhead import overhead

from command_line import HISTORIAN
from connectors.config import load_config
from connectors.pipeline.run import run
from connectors.spark.jvm import delta_jars
from databases.servers import start_server
from sinks.session import spark_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from databases.servers import Server

CALLS = 5
PAGE_CALLS, PAGE_TABLES = 3, 1_000
CONFIG = """
name: bench
source: {{type: mysql, host: "{host}", port: {port}, user: {user}, password: "{password}", tables: ["{tables}"], start: earliest}}
history: {{store: "sqlite:///{work}/store.db"}}
sinks: [{{type: delta, path: "{work}/lake"}}]
run: {{{run}}}
"""


def configured(server: Server, work: Path, tables: str, run: str = "") -> Path:
    """The path of a configuration whose store and lake are new, in *work*."""
    work.mkdir()
    known = {"host": server.host, "port": server.port, "user": server.user, "password": server.password}
    path = work / "bench.yaml"
    path.write_text(CONFIG.format(**known, work=work, tables=tables, run=run))
    return path


def status_s(server: Server, spark: SparkSession, work: Path, tables: int) -> dict[str, Any]:
    """How long a look takes."""
    server.sql("CREATE DATABASE many")
    with server.connect() as connection, connection.cursor() as cursor:
        for number in range(tables):
            cursor.execute(f"CREATE TABLE many.t{number} (id INT PRIMARY KEY, v VARCHAR(20))")
            cursor.execute(f"INSERT INTO many.t{number} VALUES (1, 'a')")
        connection.commit()
    path = configured(server, work, "many.*")
    begun_s = time.monotonic()
    assert run(load_config(path), once=True, spark=spark) == {}
    print(f"{2 * tables} targets made in {time.monotonic() - begun_s:.1f} s", flush=True)
    times_s = []
    for _ in range(CALLS):
        begun_s = time.monotonic()
        told = subprocess.run(
            [*HISTORIAN, "status", str(path)], check=True, capture_output=True, text=True, cwd=ROOT
        ).stdout
        times_s.append(time.monotonic() - begun_s)
    print(told.splitlines()[-1], flush=True)
    assert f"{2 * tables} targets: {2 * tables} up to date" in told
    return {"name": "status_s", "value": round(statistics.median(times_s), 2), "targets": 2 * tables, "unit": "s"}


def page_s(server: Server, work: Path, tables: int, ddls: int) -> dict[str, Any]:
    """How long the page takes of a history of that many tables and statements."""
    path = configured(server, work, "app_*.*")
    built_s = build(work / "store.db", ddls, tables)
    print(f"{ddls} statements on {tables} tables recorded in {built_s:.1f} s", flush=True)
    times_s = []
    for _ in range(PAGE_CALLS):
        begun_s = _children_s()
        command = [*HISTORIAN, "page", str(path), "--out", str(work / "page")]
        subprocess.run(command, check=True, capture_output=True, cwd=ROOT)
        times_s.append(_children_s() - begun_s)
    size_mb = (work / "page" / "index.html").stat().st_size / 1e6
    print(f"page of {size_mb:.1f} MB in {', '.join(f'{each:.1f}' for each in times_s)} s", flush=True)
    return {"name": "page_s", "value": round(statistics.median(times_s), 2), "ddls": ddls, "unit": "s"}


def _children_s() -> float:
    """What processes that have ended took of the processor."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", type=int, default=500)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--ddls", type=int, default=100_000)
    parser.add_argument("--only", choices=["page_s", "status_s", "overhead"], help="measure this alone")
    options = parser.parse_args()
    os.environ["PYTHONPATH"] = str(ROOT)
    # What is installed is compiled to bytecode once, and not by each command.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    with tempfile.TemporaryDirectory(prefix="historian-bench-") as name:
        work = Path(name)
        server = start_server("mysql9", work / "server")
        spark = spark_session(jars=delta_jars(), name="bench")
        try:

            def at_work(name: str, settings: str) -> Path:
                return configured(server, work / f"overhead-{name}", "busy.*", settings)

            measures = {
                "page_s": lambda: page_s(server, work / "page", PAGE_TABLES, options.ddls),
                "status_s": lambda: status_s(server, spark, work / "status", options.tables),
                "overhead": lambda: overhead(at_work, server, spark, options.rows, options.rounds),
            }
            results = [measure() for name, measure in measures.items() if options.only in (None, name)]
        finally:
            spark.stop()
            server.kill()
    report(results)


if __name__ == "__main__":
    main()
