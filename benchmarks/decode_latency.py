"""How soon rows are there, on a live MySQL 9 server: after a start, and after a commit.

``start_s``: from the start of a Python process to its first row of the log, kernels compiled before; the process
prints the row's key, which is compared. ``tail_p99_ms``: from the return of COMMIT to the row in the hands of who
follows the log as ``historian tail --follow`` does, 99 of 100; commits come some milliseconds apart, each row's key is
compared. Run: ``python benchmarks/decode_latency.py [--rounds 9] [--commits 200]``.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path[:0] = [str(Path(__file__).parent.parent), str(Path(__file__).parent.parent / "tests" / "support")]

from binlog_work import report

from databases.servers import start_server
from historian.changelog.operations import physical_name
from historian.errors import HistorianError

if TYPE_CHECKING:
    from connectors.tail.follow import Tail
    from databases.servers import Server

ROOT = Path(__file__).parent.parent
CONFIG = """
name: bench
source:
  type: mysql
  host: {host}
  port: {port}
  user: {user}
  password: {password}
  tables: ["bench.*"]
  start: {start}
"""
WARM = 10


def config(server: Server, directory: Path, start: str) -> Path:
    """A configuration that reads the server from *start* on."""
    path = directory / f"{start}.yaml"
    known = {"host": server.host, "port": server.port, "user": server.user, "password": server.password}
    path.write_text(CONFIG.format(**known, start=start))
    return path


def first_row(path: Path) -> None:
    """Prints the key of the first row: what the timed process does."""
    print(next(keys(opened(path), follow=False))[0], flush=True)


def opened(path: Path) -> Tail:
    """Who follows the configured log."""
    from connectors.config import load_config
    from connectors.tail.follow import Tail

    return Tail(load_config(path))


def keys(tail: Tail, *, follow: bool) -> Any:
    """The keys of rows, a list for each chunk as it comes."""
    for shown in tail.shown(follow=follow):
        for chunk, snapshot in shown.chunks:
            yield from [chunk.rows.column(physical_name(snapshot.columns[0].id)).to_pylist()]


def measure_start(path: Path, rounds: int, bytecode: Path) -> dict[str, Any]:
    """Seconds of whole processes, the first one not counted."""
    # Where Python may not keep what it compiled, that would be timed.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment["PYTHONPYCACHEPREFIX"] = str(bytecode)
    found = []
    for _ in range(rounds + 1):
        begin = time.perf_counter()
        command = [sys.executable, str(Path(__file__)), "--first-row", str(path)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT, env=environment)
        assert process.stdout is not None
        line = process.stdout.readline()
        found.append(time.perf_counter() - begin)
        process.wait()
        if line != "1\n":
            raise SystemExit(f"start_s: expected the row 1, found {line!r}")
    return {"name": "start_s", "value": round(statistics.median(found[1:]), 2), "unit": "s to the first row"}


def measure_tail(server: Server, path: Path, commits: int) -> dict[str, Any]:
    """Milliseconds from each commit to its row."""
    tail = opened(path)
    seen: dict[int, float] = {}
    failures: list[HistorianError] = []

    def follow() -> None:
        try:
            for some in keys(tail, follow=True):
                seen.update(dict.fromkeys(some, time.perf_counter()))
                if some[-1] == commits + WARM:
                    return
        except HistorianError as error:
            failures.append(error)

    reader = threading.Thread(target=follow, daemon=True)
    reader.start()
    time.sleep(2)
    generator = random.Random(5)
    committed = {}
    with server.connect() as connection, connection.cursor() as cursor:
        for number in range(2, commits + WARM + 1):
            cursor.execute("INSERT INTO bench.t VALUES (%s, 'tail')", (number,))
            committed[number] = time.perf_counter()
            time.sleep(generator.uniform(0.02, 0.2))
    reader.join(60)
    if failures:
        raise failures[0]
    tail.close()
    if set(seen) != set(committed):
        raise SystemExit(f"tail_p99_ms: expected {len(committed)} rows, found {len(seen)}")
    late_ms = sorted(1000 * (seen[number] - committed[number]) for number in committed if number > WARM)
    p99 = late_ms[int(0.99 * (len(late_ms) - 1))]
    median = round(statistics.median(late_ms), 1)
    return {"name": "tail_p99_ms", "value": round(p99, 1), "unit": f"ms behind a commit (median {median})"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--commits", type=int, default=200)
    parser.add_argument(
        "--first-row", type=Path, help="only read the first row of this configuration's log, and print it"
    )
    options = parser.parse_args()
    if options.first_row is not None:
        first_row(options.first_row)
        return
    with tempfile.TemporaryDirectory() as directory:
        server = start_server("mysql9", Path(directory) / "server")
        try:
            server.sql("CREATE DATABASE bench")
            server.sql("CREATE TABLE bench.t (id INT NOT NULL PRIMARY KEY, name VARCHAR(30) NOT NULL)")
            server.sql("INSERT INTO bench.t VALUES (1, 'first')")
            results = [
                measure_start(config(server, Path(directory), "earliest"), options.rounds, Path(directory) / "pyc")
            ]
            results.append(measure_tail(server, config(server, Path(directory), "latest"), options.commits))
        finally:
            server.kill()
    report(results)


if __name__ == "__main__":
    main()
