"""How soon rows are in the lake: from a commit on a live MySQL 9 server to the row's visibility in the changelog.

``changelog_p99_s``: a client commits ten rows each ten milliseconds, a run of its own process replicates them. A row is visible
with the Delta commit that adds its file, so its time is that entry's in Delta's log, found by the rows' keys; every key is
compared. The first seconds, in which the run warms up, do not count.
Run: ``python benchmarks/lake_latency.py [--seconds 30] [--trigger "100 ms"]``.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import pyarrow.parquet as pq

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "support")]

from binlog_work import report

from command_line import HISTORIAN
from databases.servers import start_server

if TYPE_CHECKING:
    from databases.servers import Server

WARM_S = 10
ROWS, PAUSE_S = 10, 0.01
WAIT_S = 60
COMMAND = [*HISTORIAN, "run"]
CONFIG = """
name: bench
source: {{type: mysql, host: "{host}", port: {port}, user: {user}, password: "{password}", tables: ["bench.*"], start: earliest}}
history: {{store: "sqlite:///{work}/store.db"}}
sinks: [{{type: delta, path: "{work}/lake", changelog: "{{table}}_changes", mirror: null}}]
run: {{trigger: {trigger}}}
"""


def write(server: Server, seconds: float, committed: dict[int, float]) -> None:
    """Commits rows for *seconds*, and notes when each commit was done, by key."""
    begin, number = time.monotonic(), 0
    with server.connect() as connection, connection.cursor() as cursor:
        while time.monotonic() < begin + seconds:
            keys = range(number, number + ROWS)
            cursor.execute("INSERT INTO bench.t VALUES " + ", ".join(f"({key}, 'row {key}')" for key in keys))
            connection.commit()
            committed.update(dict.fromkeys(keys, time.time()))
            number += ROWS
            time.sleep(max(0.0, begin + number / ROWS * PAUSE_S - time.monotonic()))


def visible(table: Path) -> dict[int, float]:
    """When each row of a changelog became visible, by key."""
    found: dict[int, float] = {}
    for entry in sorted((table / "_delta_log").glob("*[0-9].json")):
        at = entry.stat().st_mtime
        actions = [json.loads(line) for line in entry.read_text().splitlines()]
        for name in (unquote(action["add"]["path"]) for action in actions if "add" in action):
            rows = pq.read_table(table / name)
            key = next(name for name in rows.column_names if name.startswith("h"))
            # Files that are joined later hold the same rows again.
            found = dict.fromkeys(rows.column(key).to_pylist(), at) | found
    return found


def keys_of(table: Path) -> int:
    """How many keys are visible."""
    return len(visible(table)) if (table / "_delta_log").exists() else 0


def measure(server: Server, work: Path, seconds: float, trigger: str) -> dict[str, Any]:
    """The latencies of rows that were committed behind the first seconds."""
    server.sql("CREATE DATABASE bench")
    server.sql("CREATE TABLE bench.t (id INT NOT NULL PRIMARY KEY, name VARCHAR(30) NOT NULL)")
    known = {"host": server.host, "port": server.port, "user": server.user, "password": server.password}
    config = work / "bench.yaml"
    config.write_text(CONFIG.format(**known, work=work, trigger=trigger))
    committed: dict[int, float] = {}
    table = work / "lake" / "t_changes"
    with (work / "run.log").open("w") as log:
        run = subprocess.Popen([*COMMAND, str(config)], cwd=ROOT, stdout=log, stderr=log)
        try:
            server.sql("INSERT INTO bench.t VALUES (-1, 'first')")
            _wait(lambda: keys_of(table) > 0, run, work)
            writer = threading.Thread(target=write, args=(server, WARM_S + seconds, committed))
            writer.start()
            writer.join()
            _wait(lambda: keys_of(table) > len(committed), run, work)
        finally:
            run.send_signal(signal.SIGTERM)
            run.wait(WAIT_S)
    shown = visible(table)
    if shown.keys() != {-1, *committed}:
        raise SystemExit(f"changelog_p99_s: {len(committed)} rows committed, {len(shown) - 1} visible")
    counted = [key for key, at in committed.items() if at - committed[0] >= WARM_S]
    late = sorted(shown[key] - committed[key] for key in counted)
    p50, p99 = (round(late[int(part * (len(late) - 1))], 3) for part in (0.5, 0.99))
    rate = len(counted) / seconds
    commits = len(list((table / "_delta_log").glob("*[0-9].json")))
    print(
        f"{rate:,.0f} rows/s, {commits} commits of the changelog: median {p50} s, 99 of 100 within {p99} s", flush=True
    )
    return {"name": "changelog_p99_s", "value": p99, "median_s": p50, "rows_per_s": round(rate), "unit": "s"}


def _wait(done: Any, run: subprocess.Popen[bytes], work: Path) -> None:
    deadline = time.monotonic() + WAIT_S
    while not done():
        if run.poll() is not None or time.monotonic() > deadline:
            raise SystemExit(f"the run does not go on:\n{(work / 'run.log').read_text()[-3000:]}")
        time.sleep(0.2)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--trigger", default="100 ms")
    options = parser.parse_args()
    os.environ["PYTHONPATH"] = str(ROOT)
    with tempfile.TemporaryDirectory(prefix="historian-bench-") as name:
        server = start_server("mysql9", Path(name) / "server")
        try:
            results = [measure(server, Path(name), options.seconds, options.trigger)]
        finally:
            server.kill()
    report(results)


if __name__ == "__main__":
    main()
