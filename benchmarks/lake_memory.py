"""The most memory that a run takes to bring one large transaction of a MySQL 9 server into Delta tables.

``peak_gb``: resident gigabytes (10^9) at most, ten times a second, of the run's process and all below it: driver, JVM and Python
workers. The transaction's rows are counted in the changelog. Parts: a changelog alone, and with ``--mirror`` a mirror besides.
Run: ``python benchmarks/lake_memory.py [--rows 10000000] [--mirror]``.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "support")]

from binlog_work import report
from orders import create_orders, fill_orders

from command_line import HISTORIAN
from databases.servers import Server, start_server

COMMAND = [*HISTORIAN, "run", "--once"]
CONFIG = """
name: bench
source: {{type: mysql, host: "{host}", port: {port}, user: {user}, password: "{password}", tables: ["bench.*"], start: earliest}}
history: {{store: "sqlite:///{work}/store.db"}}
sinks: [{{type: delta, path: "{work}/lake", changelog: "{{table}}_changes", mirror: {mirror}}}]
"""


def resident_bytes(pid: int) -> dict[str, int]:
    """Of a process and all below it, by kind of program."""
    found: dict[str, int] = {}
    for each in (pid, *_below(pid)):
        try:
            name = Path(f"/proc/{each}/comm").read_text().strip()
            pages = int(Path(f"/proc/{each}/statm").read_text().split()[1])
        except (FileNotFoundError, ProcessLookupError):
            continue  # It ended meanwhile.
        found[name] = found.get(name, 0) + pages * os.sysconf("SC_PAGE_SIZE")
    return found


def _below(pid: int) -> list[int]:
    try:
        children = [int(child) for task in Path(f"/proc/{pid}/task").iterdir() for child in _children(task)]
    except FileNotFoundError:
        return []
    return [each for child in children for each in (child, *_below(child))]


def _children(task: Path) -> list[str]:
    try:
        return (task / "children").read_text().split()
    except (FileNotFoundError, ProcessLookupError):
        return []


def peak(server: Server, work: Path, rows: int, *, mirror: bool) -> dict[str, Any]:
    """Of a run up to the log's end."""
    known = {"host": server.host, "port": server.port, "user": server.user, "password": server.password}
    work.mkdir()
    config = work / "bench.yaml"
    config.write_text(CONFIG.format(**known, work=work, mirror='"{table}"' if mirror else "null"))
    begin = time.monotonic()
    highest: dict[str, int] = {}
    with (work / "run.log").open("w") as log:
        run = subprocess.Popen([*COMMAND, str(config)], cwd=ROOT, stdout=log, stderr=log)
        while run.poll() is None:
            now = resident_bytes(run.pid)
            if sum(now.values()) > sum(highest.values()):
                highest = now
            time.sleep(0.1)
    files = (work / "lake" / "orders_changes").glob("*.parquet")
    found = sum(pq.ParquetFile(file).metadata.num_rows for file in files)
    if run.returncode or found != rows:
        raise SystemExit(f"{found} rows of {rows}:\n{(work / 'run.log').read_text()[-3000:]}")
    parts = ", ".join(f"{name} {size / 1e9:.2f}" for name, size in sorted(highest.items()))
    value = round(sum(highest.values()) / 1e9, 2)
    what = "changelog and mirror" if mirror else "changelog"
    print(f"{what}: {value} GB ({parts}), {time.monotonic() - begin:.0f} s for {rows:,} rows", flush=True)
    return {"name": "peak_gb_with_mirror" if mirror else "peak_gb", "value": value, "unit": "GB at most", "rows": rows}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--mirror", action="store_true")
    options = parser.parse_args()
    os.environ["PYTHONPATH"] = str(ROOT)
    with tempfile.TemporaryDirectory(prefix="historian-bench-") as name:
        # The transaction waits in the server's binlog cache, on disk, until its commit.
        server = start_server("mysql9", Path(name) / "server", "binlog_cache_size=64K")
        try:
            with server.connect() as connection, connection.cursor() as cursor:
                create_orders(cursor)
                cursor.execute("BEGIN")
                fill_orders(cursor, options.rows)
                cursor.execute("COMMIT")
            kinds = (False, True) if options.mirror else (False,)
            results = [peak(server, Path(name) / f"{kind}", options.rows, mirror=kind) for kind in kinds]
        finally:
            server.kill()
    report(results)


if __name__ == "__main__":
    main()
