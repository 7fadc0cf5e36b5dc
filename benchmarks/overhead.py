"""How much longer plans take that are looked at: the part ``overhead`` of :mod:`operation`.

One run carries plans of the same size one after the other. Blocks of some plans are looked at, those next to them are not, in the order A B B A,
so that what drifts falls out. In a block that is looked at the run's metrics are told of each plan, each plan has its record in a log of JSON lines, and a process
beside asks once for metrics, once for the status and once for the page. A block takes two seconds or so: Prometheus asks every fifteen seconds
as :file:`docker/monitoring` has it, `historian status --watch` every two, and a person reloads the page now and then. So this is more than a run bears.

A pair of neighbours gives a ratio. What is told is the median of all, and between which bounds it is with 95 % certainty, as the order of the ratios says:
nothing is assumed of how they are spread.
"""

from __future__ import annotations

import http.client
import math
import os
import socket
import statistics
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from connectors.cli.live.lines import RunLines
from connectors.cli.terminal.logs import LogFormat, LogLevel, configure_logs
from connectors.config import load_config
from connectors.monitoring.endpoint import Answer, Watched, listening
from connectors.monitoring.memory import java_process
from connectors.monitoring.observer import Observer, WrittenPlan
from connectors.pipeline.run import run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from connectors.config import PipelineConfig
    from databases.servers import Server

__all__ = ["PATHS", "overhead"]

PATHS = ("/metrics", "/status", "/")
INSERT_ROWS = 5000
BLOCK_PLANS = 8
ORDER = (False, True, True, False)
"""Which blocks are looked at, again and again."""
CERTAINTY = 0.95


@dataclass(slots=True)
class Block:
    """What some plans took: of the clock, and of the processor in Python and Java."""

    is_watched: bool
    wall_s: float
    cpu_s: float


@dataclass(slots=True)
class Answered:
    """What answers took of the processor, by path, in the threads that made them; ``told_s``: and metrics and log lines of plans, in the run's own."""

    cpu_s: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    told_s: float = 0.0

    def timed(self, answer: Callable[[str, str, str, str], Answer]) -> Callable[[str, str, str, str], Answer]:
        """*answer*, and notes of it."""

        def told(path: str, accept: str, authorization: str, host: str) -> Answer:
            begun_s = time.thread_time()
            made = answer(path, accept, authorization, host)
            if made.status != 200:
                raise SystemExit(f"{path} answered {made.status}: {made.body[:500]!r}")
            self.cpu_s[path].append(time.thread_time() - begun_s)
            return made

        return told


class _Switched(Observer):
    """Tells *watching* of plans in blocks that are looked at, and of nothing in others; takes the time of each.

    Attributes:
        blocks: those that are whole, in order; ``told_s``: what telling took of the processor in blocks that are looked at.
    """

    def __init__(self, watching: Sequence[Observer], ask: Callable[[], None]) -> None:
        self._watching = watching
        self._ask = ask
        self._plans = 0
        self._begun = (0.0, 0.0)
        self.blocks: list[Block] = []
        self.told_s = 0.0

    @property
    def _is_watched(self) -> bool:
        return ORDER[len(self.blocks) % len(ORDER)]

    def opened(self) -> None:
        for each in self._watching:
            each.opened()

    def written(self, written: WrittenPlan) -> None:
        if self._plans and self._is_watched:
            begun_s = time.thread_time()
            for each in self._watching:
                each.planned(written.plan)
                each.written(written)
            self.told_s += time.thread_time() - begun_s
        self._plans += 1
        # The first plan belongs to none: what is behind it is the same for all.
        if self._plans % BLOCK_PLANS == 1:
            now = time.monotonic(), _processor_s()
            if self._plans > 1:
                self.blocks.append(Block(self._is_watched, now[0] - self._begun[0], now[1] - self._begun[1]))
            self._begun = now
            if self._is_watched:
                self._ask()


def overhead(
    configured: Callable[[str, str], Path], server: Server, spark: SparkSession, rows: int, rounds: int
) -> dict[str, Any]:
    """How much longer plans take that are looked at.

    Args:
        configured: gives a configuration with a new store and lake, of a name and what it says under ``run``.
        rounds: so many runs are measured, behind one that warms up.
    """
    begun_s = time.monotonic()
    _fill(server, rows)
    print(f"{rows} rows are in the log after {time.monotonic() - begun_s:.0f} s", flush=True)
    pairs: list[tuple[Block, Block]] = []
    answered = Answered()
    with _asking() as ask:
        for number in range(rounds + 1):
            config = load_config(configured(str(number), f"max_batch_bytes: 4 MB, http: 127.0.0.1:{_free_port()}"))
            blocks = _blocks(config, spark, answered if number else Answered(), ask)
            found = list(_pairs(blocks))
            walls, cpus = _ratios(found)
            print(
                f"{'' if number else 'to warm up: '}{len(found)} pairs in {sum(each.wall_s for each in blocks):.1f} s; "
                f"wall {statistics.median(walls):+.3f}, processor {statistics.median(cpus):+.3f}",
                flush=True,
            )
            pairs += found if number else []
    walls, cpus = _ratios(pairs)
    (wall, wall_from, wall_to), (cpu, cpu_from, cpu_to) = _median(walls), _median(cpus)
    spent_s = sum(b.cpu_s for _, b in pairs)
    answers = sum(sum(each) for each in answered.cpu_s.values()) / spent_s
    told = answered.told_s / spent_s
    print(f"{len(pairs)} pairs of blocks of {BLOCK_PLANS} plans, each looked at once in one of the two:")
    print(f"wall time {wall:+.4f}, with {CERTAINTY:.0%} certainty between {wall_from:+.4f} and {wall_to:+.4f}")
    print(
        f"processor {cpu:+.4f}, between {cpu_from:+.4f} and {cpu_to:+.4f}; answers took {answers:.4f} of it, and what is told of plans {told:.4f}:"
    )
    for path, taken_s in answered.cpu_s.items():
        print(f"  {path}: {statistics.median(taken_s) * 1000:.1f} ms, {len(taken_s)} times")
    return {
        "name": "overhead",
        "value": round(wall, 4),
        "between": [round(wall_from, 4), round(wall_to, 4)],
        "cpu": round(cpu, 4),
        "cpu_between": [round(cpu_from, 4), round(cpu_to, 4)],
        "own_cpu": round(answers + told, 4),
        "pairs": len(pairs),
        "rows": rows,
        "unit": "of a plan's time",
    }


def _fill(server: Server, rows: int) -> None:
    server.sql("CREATE DATABASE busy")
    server.sql("CREATE TABLE busy.t (id INT PRIMARY KEY, a INT, b VARCHAR(40), c DECIMAL(12,2))")
    with server.connect() as connection, connection.cursor() as cursor:
        values = ", ".join(f"({i}, {i % 97}, 'row {i} of the table', {i}.25)" for i in range(INSERT_ROWS))
        cursor.execute(f"INSERT INTO busy.t VALUES {values}")
        connection.commit()
        for first in range(INSERT_ROWS, rows, INSERT_ROWS):
            cursor.execute(f"INSERT INTO busy.t SELECT id + {first}, a, b, c FROM busy.t WHERE id < {INSERT_ROWS}")
            connection.commit()


def _blocks(config: PipelineConfig, spark: SparkSession, answered: Answered, ask: Callable[[int], None]) -> list[Block]:
    """Those of one run, which is served and logged as `historian --log-format json run` is."""
    limits = config.run.http
    assert limits is not None
    watched = Watched.of(config, limits)
    undo = configure_logs(LogFormat.JSON, LogLevel.INFO)
    try:
        with (
            (config.path.parent / "log.json").open("w") as log,
            redirect_stderr(log),
            listening(limits, answered.timed(watched.pages.answer), config),
        ):
            lines = RunLines(config)
            lines.begins("")
            switched = _Switched((watched.observer, lines), lambda: ask(limits.port))
            # The endpoint is the one above.
            bare = replace(config, run=replace(config.run, http=None))
            assert run(bare, once=True, spark=spark, observer=switched) == {}
            lines.close()
            answered.told_s += switched.told_s
    finally:
        undo()
    if len(switched.blocks) < len(ORDER):
        raise SystemExit("a run has too few plans: give it more --rows")
    return switched.blocks


def _pairs(blocks: Sequence[Block]) -> Iterator[tuple[Block, Block]]:
    """Neighbours of which the second is looked at, whichever came first."""
    for first, second in zip(blocks[::2], blocks[1::2], strict=False):
        yield (second, first) if first.is_watched else (first, second)


def _ratios(pairs: Sequence[tuple[Block, Block]]) -> tuple[list[float], list[float]]:
    """How much more those took that were looked at: of the clock, and of the processor."""
    return (
        [watched.wall_s / alone.wall_s - 1 for alone, watched in pairs],
        [watched.cpu_s / alone.cpu_s - 1 for alone, watched in pairs],
    )


def _median(ratios: Sequence[float]) -> tuple[float, float, float]:
    """The median, and between which of the ratios it is: so many of them lie on either side as coins would show heads."""
    ordered, count = sorted(ratios), len(ratios)
    at, missed = 0, 1 / 2**count
    while missed + math.comb(count, at + 1) / 2**count <= (1 - CERTAINTY) / 2:
        at += 1
        missed += math.comb(count, at) / 2**count
    return statistics.median(ordered), ordered[at], ordered[count - 1 - at]


def _processor_s() -> float:
    """What this process and its Spark have taken of the processor."""
    user, system = Path(f"/proc/{java_process()}/stat").read_text().rpartition(")")[2].split()[11:13]
    return time.process_time() + (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


@contextmanager
def _asking() -> Iterator[Callable[[int], None]]:
    """A process that asks once for each of :data:`PATHS` when it is told a port, as others do that look at a run."""
    command = [sys.executable, __file__]
    with subprocess.Popen(command, stdin=subprocess.PIPE, text=True) as process:
        told = process.stdin
        assert told is not None

        def ask(port: int) -> None:
            print(port, file=told, flush=True)

        yield ask
        told.close()
        if process.wait() != 0:
            raise SystemExit("who asks has failed")


def _ask() -> None:
    for line in sys.stdin:
        for path in PATHS:
            connection = http.client.HTTPConnection("127.0.0.1", int(line), timeout=30)
            connection.request("GET", path)
            connection.getresponse().read()
            connection.close()


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


if __name__ == "__main__":
    _ask()
