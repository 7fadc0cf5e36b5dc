"""Runs a connector once on executors in processes of their own, of which some are killed while they SELECT.

``python copy_on_executors.py CONFIG KILLS``. It prints how many were killed, and how many other processes than the driver's have asked the source for rows.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from pathlib import Path

from connectors.config import ServerSource, load_config
from connectors.pipeline.run import run
from connectors.readers.binlog.transport.connection import ServerAddress
from connectors.spark.jvm import delta_jars
from connectors.tracking.sources import server_address
from sinks.session import spark_session

_LOOK_S = 0.005
_EXECUTOR = b"CoarseGrainedExecutorBackend"


def main() -> None:
    """Runs and tells."""
    config = load_config(Path(sys.argv[1]))
    assert isinstance(config.source, ServerSource)
    java = {"spark.executor.extraJavaOptions": os.environ.get("SPARK_SUBMIT_OPTS", "")}
    spark = spark_session(jars=delta_jars(), master="local-cluster[2,1,1024]", name="copies", settings=java)
    killer = _Killer(server_address(config.source), int(sys.argv[2]))
    with killer:
        assert {} == run(config, once=True, spark=spark)
    spark.stop()
    print(f"killed {killer.killed}, asked by {len(killer.seen)} others")


class _Killer:
    """Looks who SELECTs rows, and kills the first ones."""

    def __init__(self, address: ServerAddress, kills: int) -> None:
        self._address, self._kills = address, kills
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._look)
        self.killed = 0
        self.seen: set[int] = set()

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _look(self) -> None:
        connection = self._address.connect()
        question = "SELECT id, host FROM information_schema.processlist WHERE info LIKE 'SELECT `id`%'"
        with connection, connection.cursor() as cursor:
            while not self._ended.wait(_LOOK_S):
                cursor.execute(question)
                for number, host in cursor.fetchall():
                    process = _process_at(int(host.rpartition(":")[2]))
                    if number in self.seen or process in (None, os.getpid()):
                        continue
                    self.seen.add(number)
                    executor = _executor_of(process)
                    if self.killed < self._kills and executor is not None:
                        os.kill(executor, signal.SIGKILL)
                        self.killed += 1


def _process_at(port: int) -> int | None:
    """Which process has a TCP connection from that port."""
    inodes = {
        line.split()[9]
        for table in ("tcp", "tcp6")
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]
        if line.split()[1].endswith(f":{port:04X}")
    }
    for process in _processes():
        try:
            for held in Path(f"/proc/{process}/fd").iterdir():
                if str(held.readlink()).removeprefix("socket:[").rstrip("]") in inodes:
                    return process
        except OSError:
            continue
    return None


def _executor_of(process: int | None) -> int | None:
    """The executor that *process* works for."""
    while process and process != os.getpid():
        if _EXECUTOR in Path(f"/proc/{process}/cmdline").read_bytes():
            return process
        process = int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])
    return None


def _processes() -> list[int]:
    return [int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit()]


if __name__ == "__main__":
    main()
