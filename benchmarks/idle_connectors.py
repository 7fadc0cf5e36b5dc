"""Many connectors in one process whose sources are quiet: how much memory they take, and how busy they keep a core.

``idle_connectors``: connectors of one MySQL 9, each with a database of its own, by ``historian run DIRECTORY``. Each has written a plan before anything is
measured: ``begin_s`` is until the last has. Then for a while no row changes. ``busy``: the processor's seconds of the process and its Java by those of the clock, a core is 1. ``memory_mb``:
the resident memory of both. ``server_busy``: the source's processor, for all of them. ``status_s``: ``/status`` of all, asked once at the end.
The last line is JSON. Run: ``python benchmarks/idle_connectors.py [--connectors 200] [--seconds 60]``.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.error import URLError
from urllib.request import urlopen

sys.path[:0] = [str(Path(__file__).parent.parent), str(Path(__file__).parent.parent / "tests" / "support")]

from databases.servers import free_port, start_server

if TYPE_CHECKING:
    from databases.servers import Server

BEGIN_S = 240.0
PLAN = re.compile(r"^historian_last_plan_number\{.*\} ([1-9]\S*)$", re.MULTILINE)


def configure(server: Server, directory: Path, count: int, port: int) -> None:
    """A database with a row, and a connector of it, so many times."""
    directory.mkdir()
    with server.connect() as connection, connection.cursor() as cursor:
        for number in range(count):
            cursor.execute(f"CREATE DATABASE d{number}")
            cursor.execute(f"CREATE TABLE d{number}.t (id INT PRIMARY KEY, note VARCHAR(20))")
            (directory / f"c{number}.yaml").write_text(
                f"name: c{number}\nsource: {{type: mysql, host: {server.host}, port: {server.port}, user: {server.user}, "
                f"password: '{server.password}', tables: ['d{number}.*'], start: earliest, tls: {{mode: disabled}}}}\n"
                f"sinks: [{{type: delta, path: lake_{number}}}]\nrun: {{http: '127.0.0.1:{port}'}}\n"
            )
        # Each connector would read what made the databases of all others.
        cursor.execute("RESET BINARY LOGS AND GTIDS")
        for number in range(count):
            cursor.execute(f"INSERT INTO d{number}.t VALUES (1, 'a row')")
            connection.commit()


def below(process: int) -> list[int]:
    """It, and all processes that it has started."""
    parents = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[int(path.parent.name)] = int(path.read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
    found = [process]
    for each in found:
        found += [child for child, parent in parents.items() if parent == each]
    return found


def processor_s(processes: list[int]) -> float:
    """Their seconds of the processor so far."""
    ticks = [
        sum(map(int, Path(f"/proc/{each}/stat").read_text().rpartition(")")[2].split()[11:13])) for each in processes
    ]
    return sum(ticks) / os.sysconf("SC_CLK_TCK")


def memory_mb(processes: list[int]) -> float:
    """Their resident memory."""
    pages = [int(Path(f"/proc/{each}/statm").read_text().split()[1]) for each in processes]
    return sum(pages) * os.sysconf("SC_PAGE_SIZE") / 1e6


def begun(port: int) -> int:
    """How many connectors have written a plan."""
    try:
        with urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60) as answer:
            return len(PLAN.findall(answer.read().decode()))
    except (URLError, TimeoutError):
        return 0


def main() -> None:
    """Measures and prints."""
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--connectors", type=int, default=200)
    options.add_argument("--seconds", type=float, default=60)
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory(prefix="historian-bench-") as name:
        directory = Path(name)
        server = start_server("mysql9", directory / "server", f"max_connections={4 * chosen.connectors + 100}")
        command = [sys.executable, "-c", "from connectors.cli import main; main()", "run", str(directory / "c")]
        try:
            port = free_port()
            configure(server, directory / "c", chosen.connectors, port)
            began_s = time.perf_counter()
            with (
                (directory / "said").open("wb") as said,
                subprocess.Popen(command, stdout=said, stderr=said, cwd=directory) as running,
            ):
                try:
                    while begun(port) < chosen.connectors:
                        if running.poll() is not None or time.perf_counter() - began_s > BEGIN_S:
                            raise SystemExit(f"{begun(port)} have begun:\n{(directory / 'said').read_text()[-3000:]}")
                        time.sleep(5)
                    begin = {
                        "begin_s": round(time.perf_counter() - began_s),
                        "begin_cpu_s": round(processor_s(below(running.pid))),
                    }
                    print(f"{chosen.connectors} connectors have written a plan: {begin}", flush=True)
                    result = {**begin, **measured(running.pid, server.pid, port, chosen.seconds)}
                finally:
                    running.send_signal(signal.SIGTERM)
        finally:
            server.kill()
    result = {"name": "idle_connectors", "connectors": chosen.connectors, **result}
    print(", ".join(f"{name} {value}" for name, value in result.items()))
    print(json.dumps({"results": [result]}))


def measured(process: int, server: int, port: int, seconds: float) -> dict[str, float]:
    """What they take while nothing happens."""
    time.sleep(10)  # What the first plans have left to do is done.
    ours, theirs, begin = processor_s(below(process)), processor_s([server]), time.perf_counter()
    time.sleep(seconds)
    taken_s = time.perf_counter() - begin
    found = {
        "busy": round((processor_s(below(process)) - ours) / taken_s, 3),
        "memory_mb": round(memory_mb(below(process))),
        "server_busy": round((processor_s([server]) - theirs) / taken_s, 3),
    }
    begin = time.perf_counter()
    with urlopen(f"http://127.0.0.1:{port}/status", timeout=120) as answer:
        answer.read()
    return {**found, "status_s": round(time.perf_counter() - begin, 2)}


if __name__ == "__main__":
    main()
