"""What it costs to look at a connector: `historian status` over many targets, and metrics beside a run that is scraped.

``status_s``: seconds that ``historian status`` takes in a process of its own, where 500 tables have 1,000 targets in a lake; the median of some calls.
``overhead``: how much longer a run takes that serves ``run.http`` and is asked for metrics, status and page each second, by one that does not. Runs carry the same log of a live
server into new lakes, in turn, in one Spark session; it is the median over rounds of two runs next to each other, below zero where noise is larger.
``cpu`` beside it is the same of the processor's time, of Python and Java together, with that of who asks: it tells more on a busy machine.
``page_s``: seconds that ``historian page`` takes in a process of its own, of 1,000 tables with 100,000 statements (:mod:`history`); the median of some
calls. It is the processor's time, since a busy machine would measure its other work; a thread does nearly all of it.
Prints what it does, and last one JSON object. Run: ``python benchmarks/operation.py [--tables 500] [--rows 1000000] [--rounds 7] [--ddls 100000]
[--only overhead]``.
"""

from __future__ import annotations

import argparse
import os
import resource
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "support")]

from binlog_work import report
from history import build

from command_line import HISTORIAN
from connectors.config import load_config
from connectors.pipeline.run import run
from connectors.spark.jvm import delta_jars
from databases.servers import start_server
from sinks.session import spark_session
from workload.beside import beside

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

    from databases.servers import Server

CALLS = 5
SCRAPE_S, BEGIN_S = 1.0, 0.05
INSERT_ROWS = 5000
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


def overhead(server: Server, spark: SparkSession, work: Path, rows: int, rounds: int) -> dict[str, Any]:
    """How much longer a run takes that is looked at."""
    server.sql("CREATE DATABASE busy")
    server.sql("CREATE TABLE busy.t (id INT PRIMARY KEY, a INT, b VARCHAR(40), c DECIMAL(12,2))")
    with server.connect() as connection, connection.cursor() as cursor:
        for first in range(0, rows, INSERT_ROWS):
            values = ", ".join(
                f"({i}, {i % 97}, 'row {i} of the table', {i}.25)" for i in range(first, first + INSERT_ROWS)
            )
            cursor.execute(f"INSERT INTO busy.t VALUES {values}")
            connection.commit()
    work.mkdir()
    ratios, cpu_ratios = [], []
    for number in range(rounds + 1):
        seconds, cpu = {}, {}
        for watched in (False, True) if number % 2 else (True, False):
            port = _free_port()
            settings = f"max_batch_bytes: 4 MB{f', http: 127.0.0.1:{port}' if watched else ''}"
            path = configured(server, work / f"{number}-{watched}", "busy.*", settings)
            with _scraped(port) if watched else nullcontext():
                begun_s, begun_cpu_s = time.monotonic(), _processor_s(spark)
                assert run(load_config(path), once=True, spark=spark) == {}
                seconds[watched], cpu[watched] = time.monotonic() - begun_s, _processor_s(spark) - begun_cpu_s
        print(
            f"{seconds[False]:.2f} s alone, {seconds[True]:.2f} s watched; of the processor {cpu[False]:.2f} and {cpu[True]:.2f} s",
            flush=True,
        )
        if number:  # the first ones warm up
            ratios.append(seconds[True] / seconds[False] - 1)
            cpu_ratios.append(cpu[True] / cpu[False] - 1)
    value, cpu_value = (round(statistics.median(each), 4) for each in (ratios, cpu_ratios))
    return {"name": "overhead", "value": value, "cpu": cpu_value, "rows": rows, "unit": "of a run's time"}


def _processor_s(spark: SparkSession) -> float:
    """What this process and its Spark have taken of the processor."""
    pid = spark.sparkContext._gateway.proc.pid
    user, system = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return time.process_time() + (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


@contextmanager
def _scraped(port: int) -> Iterator[None]:
    """Asks for metrics, status and the page at once, and then each second."""
    answers = dict.fromkeys(("metrics", "status", ""), 0)

    def ask(ended: threading.Event) -> None:
        while not ended.wait(SCRAPE_S if all(answers.values()) else BEGIN_S):
            for page in answers:
                with (
                    suppress(urllib.error.URLError, ConnectionError),
                    urllib.request.urlopen(f"http://127.0.0.1:{port}/{page}") as answer,
                ):
                    answer.read()
                    answers[page] += 1

    with beside(ask):
        yield
    missing = [page or "the page" for page, count in answers.items() if not count]
    if missing:
        raise SystemExit(f"a run ended before {' and '.join(missing)} could be asked for: give it more --rows")


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", type=int, default=500)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=7)
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
            measures = {
                "page_s": lambda: page_s(server, work / "page", PAGE_TABLES, options.ddls),
                "status_s": lambda: status_s(server, spark, work / "status", options.tables),
                "overhead": lambda: overhead(server, spark, work / "overhead", options.rows, options.rounds),
            }
            results = [measure() for name, measure in measures.items() if options.only in (None, name)]
        finally:
            spark.stop()
            server.kill()
    report(results)


if __name__ == "__main__":
    main()
