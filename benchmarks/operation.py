"""What it costs to look at a connector, and how long commands take that people wait for.

``status_s``: seconds that ``historian status`` takes in a process of its own, where 500 tables have 1,000 targets in a lake; the median of some calls.
``overhead``: how much longer plans take that are looked at, by metrics, log, status and page: :mod:`overhead` says how that is measured. ``between`` has its bounds,
``cpu`` the same of the processor's time, of Python and Java together: it tells more on a busy machine. ``own_cpu`` is what answers, metrics and log lines themselves
took of that, by the clocks of their threads. It needs no comparison.
``page_s``: seconds that ``historian page`` takes in a process of its own, of 1,000 tables with 100,000 statements (:mod:`history`); the median of some
calls. It is the processor's time, since a busy machine would measure its other work; a thread does nearly all of it.
``check_s``: seconds that ``historian check`` takes in a process of its own, of a live server with a lake and a store that can be made; the median of some calls.
``sigterm_s``: seconds from SIGTERM to the end of ``historian run`` that replicates while rows are written; the median of some runs.
Prints what it does, and last one JSON object. Run: ``python benchmarks/operation.py [--tables 500] [--rows 4200000] [--rounds 8] [--ddls 100000]
[--only overhead]``.
"""

from __future__ import annotations

import argparse
import os
import resource
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from functools import partial
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
from databases.servers import free_port, start_server
from monitoring.endpoints import Endpoint
from sinks.session import spark_session
from workload.beside import beside

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from databases.servers import Server

CALLS = 5
RUNS, WRITE_S = 3, 0.05
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


def check_s(server: Server, work: Path) -> dict[str, Any]:
    """How long it takes to be told whether a run could start."""
    server.sql("CREATE DATABASE checked")
    server.sql("CREATE TABLE checked.t (id INT PRIMARY KEY, v VARCHAR(20))")
    path = configured(server, work, "checked.*")
    times_s, begun_cpu_s = [], _children_s()
    for _ in range(CALLS):
        begun_s = time.monotonic()
        done = subprocess.run([*HISTORIAN, "check", str(path)], check=False, capture_output=True, text=True, cwd=ROOT)
        times_s.append(time.monotonic() - begun_s)
        if done.returncode != 0:
            raise SystemExit(done.stdout + done.stderr)
    cpu_s = (_children_s() - begun_cpu_s) / CALLS
    print(f"checked in {', '.join(f'{each:.2f}' for each in times_s)} s, {cpu_s:.2f} s of the processor", flush=True)
    return {"name": "check_s", "value": round(statistics.median(times_s), 2), "cpu": round(cpu_s, 2), "unit": "s"}


def sigterm_s(server: Server, work: Path) -> dict[str, Any]:
    """How long a run takes to end."""
    server.sql("CREATE DATABASE ended")
    server.sql("CREATE TABLE ended.t (id INT AUTO_INCREMENT PRIMARY KEY, v VARCHAR(20))")
    times_s = []
    for number in range(RUNS):
        port = free_port()
        path = configured(server, work.with_name(f"{work.name}-{number}"), "ended.*", f"http: 127.0.0.1:{port}")
        with beside(partial(_write, server)), subprocess.Popen([*HISTORIAN, "run", str(path)], cwd=ROOT) as process:
            endpoint = Endpoint(port)
            endpoint.wait(lambda found: found["historian_plans_total", ()] > 2)
            process.send_signal(signal.SIGTERM)
            begun_s = time.monotonic()
            if process.wait() != 0:
                raise SystemExit(f"the run ended with {process.returncode}")
            times_s.append(time.monotonic() - begun_s)
    print(f"ended {', '.join(f'{each:.2f}' for each in times_s)} s behind SIGTERM", flush=True)
    return {"name": "sigterm_s", "value": round(statistics.median(times_s), 2), "unit": "s"}


def _write(server: Server, ended: threading.Event) -> None:
    with server.connect() as connection, connection.cursor() as cursor:
        while not ended.wait(WRITE_S):
            cursor.execute("INSERT INTO ended.t (v) VALUES ('a')")
            connection.commit()


def _children_s() -> float:
    """What processes that have ended took of the processor."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", type=int, default=500)
    parser.add_argument("--rows", type=int, default=4_200_000)
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--ddls", type=int, default=100_000)
    parser.add_argument(
        "--only", choices=["page_s", "check_s", "sigterm_s", "status_s", "overhead"], help="measure this alone"
    )
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
                "check_s": lambda: check_s(server, work / "check"),
                "sigterm_s": lambda: sigterm_s(server, work / "sigterm"),
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
