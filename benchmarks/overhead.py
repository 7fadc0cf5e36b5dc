"""How much longer plans take that are looked at: the part ``overhead`` of :mod:`operation`.

One run carries plans of the same size one after the other. Of blocks of :data:`BLOCK_PLANS`, some seconds each, some are looked at and those next to them are not. In a
block that is looked at

- the run's metrics are told of each plan, and each plan has its record in a log of JSON lines;
- `historian status CONFIG --watch` runs beside, which looks every two seconds; it is stopped by a signal in other blocks;
- a process asks once for metrics, once for `/status` and once for the page, when the block begins.

No rate is below what the documentation has for real use, so that none hides what looks cost: Prometheus asks every fifteen seconds
(:file:`docker/monitoring`), and the page asks for nothing by itself: a person reloads it. The rates that were met are printed, and what a look takes of the processor.

Plans are not alike: a tenth commit writes a checkpoint, early ones have fewer files behind them. So each block is carried twice: the next run reads the same log, and
looks at just those blocks that this one does not. Two neighbours in two such runs give one ratio, from which falls out what their places cost and how fast either run was.
What is told is the middle of all, and between which bounds it is with 95 % certainty. Of how the ratios are spread nothing is assumed but that they lie alike on both sides
of it, as the ratios of those that were looked at and those that were not do by themselves.
"""

from __future__ import annotations

import math
import socket
import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import closing, redirect_stderr
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from looking import Watcher, asking, taken_s

from connectors.cli.live.lines import RunLines
from connectors.cli.terminal.logs import LogFormat, LogLevel, configure_logs
from connectors.config import load_config
from connectors.monitoring.endpoint import Answer, Watched, listening
from connectors.monitoring.memory import java_process
from connectors.monitoring.observer import Observer, WrittenPlan
from connectors.pipeline.run import run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from databases.servers import Server

__all__ = ["overhead"]

INSERT_ROWS = 5000
BATCH = "1 MB"
BLOCK_PLANS = 20
"""A multiple of ten, since each tenth commit to a Delta table writes a checkpoint."""
WATCH_S = 2.0
"""How often a watcher of the status looks."""
ORDER = (False, True, True, False)
"""Which blocks are looked at, again and again; of each second run the others."""
CERTAINTY = 0.95


@dataclass(slots=True)
class Block:
    """What some plans took: of the clock, and of the processor in Python and Java."""

    is_watched: bool
    wall_s: float
    cpu_s: float


Pair: TypeAlias = tuple[Block, Block]
Four: TypeAlias = tuple[Pair, Pair]


@dataclass(slots=True)
class Answered:
    """What answers took of the processor, by path, in the threads that made them.

    Attributes:
        told_s: and metrics and log lines of plans, in the run's own thread; ``watcher_s``: and the process that watches the status.
    """

    cpu_s: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    told_s: float = 0.0
    watcher_s: float = 0.0

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

    Args:
        is_turned: other blocks are looked at than :data:`ORDER` says.
        ask: for what is asked once a block.

    Attributes:
        blocks: those that are whole, in order; ``told_s``: what telling took of the processor in blocks that are looked at; ``watcher_s``: and the watcher.
    """

    def __init__(
        self, watching: Sequence[Observer], ask: Callable[[], None], watcher: Watcher, *, is_turned: bool
    ) -> None:
        self._watching = watching
        self._is_turned = is_turned
        self._ask = ask
        self._watcher = watcher
        self._watcher_s = 0.0
        self.watcher_s = 0.0
        self._plans = 0
        self._begun = (0.0, 0.0)
        self.blocks: list[Block] = []
        self.told_s = 0.0

    @property
    def _is_watched(self) -> bool:
        return ORDER[len(self.blocks) % len(ORDER)] != self._is_turned

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
            now, watcher_s = (time.monotonic(), _processor_s()), self._watcher.cpu_s
            if self._plans > 1:
                self.watcher_s += (watcher_s - self._watcher_s) * self._is_watched
                self.blocks.append(Block(self._is_watched, now[0] - self._begun[0], now[1] - self._begun[1]))
            self._begun, self._watcher_s = now, watcher_s
            self._watcher.let(look=self._is_watched)
            if self._is_watched:
                self._ask()


def overhead(
    configured: Callable[[str, str], Path], server: Server, spark: SparkSession, rows: int, rounds: int
) -> dict[str, Any]:
    """How much longer plans take that are looked at.

    Args:
        configured: gives a configuration with a new store and lake, of a name and what it says under ``run``.
        rounds: so often two runs are measured, behind one that warms up.
    """
    begun_s = time.monotonic()
    _fill(server, rows)
    print(f"{rows} rows are in the log after {time.monotonic() - begun_s:.0f} s", flush=True)
    fours: list[Four] = []
    answered = Answered()

    def carried(name: str, answered: Answered, *, is_turned: bool) -> list[Block]:
        path = configured(name, f"max_batch_bytes: {BATCH}, http: 127.0.0.1:{_free_port()}")
        return _blocks(path, spark, answered, ask, is_turned=is_turned)

    with asking() as ask:
        carried("warm", Answered(), is_turned=False)
        for number in range(rounds):
            found = _fours(*(carried(f"{number}-{turned}", answered, is_turned=bool(turned)) for turned in (0, 1)))
            walls, cpus = _ratios(found)
            print(
                f"{len(found)} times two blocks in two runs: wall {statistics.median(walls):+.3f}, processor {statistics.median(cpus):+.3f}",
                flush=True,
            )
            fours += found
    pairs = [pair for four in fours for pair in four]
    walls, cpus = _ratios(fours)
    (wall, wall_from, wall_to), (cpu, cpu_from, cpu_to) = _middle(walls), _middle(cpus)
    spent_s, watched_s = sum(b.cpu_s for _, b in pairs), sum(b.wall_s for _, b in pairs)
    answers = sum(sum(each) for each in answered.cpu_s.values()) / spent_s
    told = answered.told_s / spent_s
    print(
        f"{len(pairs)} blocks of {BLOCK_PLANS} plans, {watched_s / len(pairs):.1f} s each, carried once looked at and once not:"
    )
    print(f"wall time {wall:+.4f}, with {CERTAINTY:.0%} certainty between {wall_from:+.4f} and {wall_to:+.4f}")
    print(
        f"processor {cpu:+.4f}, between {cpu_from:+.4f} and {cpu_to:+.4f}; answers took {answers:.4f} of it, and what is told of plans {told:.4f}:"
    )
    for asked, spent in answered.cpu_s.items():
        every_s = watched_s / len(spent)
        print(f"  {asked}: {statistics.median(spent) * 1000:.1f} ms of the processor, every {every_s:.1f} s")
    watcher_ms = answered.watcher_s / watched_s * WATCH_S * 1000
    print(f"  status --watch, a process of its own: {watcher_ms:.1f} ms of the processor, every {WATCH_S:.1f} s")
    return {
        "name": "overhead",
        "value": round(wall, 4),
        "between": [round(wall_from, 4), round(wall_to, 4)],
        "cpu": round(cpu, 4),
        "cpu_between": [round(cpu_from, 4), round(cpu_to, 4)],
        "own_cpu": round(answers + told, 4),
        "answer_ms": {asked: round(statistics.median(spent) * 1000, 1) for asked, spent in answered.cpu_s.items()},
        "watcher_ms": round(watcher_ms, 1),
        "every_s": round(watched_s / len(pairs), 1),
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


def _blocks(
    path: Path, spark: SparkSession, answered: Answered, ask: Callable[[int], None], *, is_turned: bool
) -> list[Block]:
    """Those of one run, which is served and logged as `historian --log-format json run` is."""
    config = load_config(path)
    limits = config.run.http
    assert limits is not None
    watched = Watched.of(config, limits)
    undo = configure_logs(LogFormat.JSON, LogLevel.INFO)
    try:
        with (
            (config.path.parent / "log.json").open("w") as log,
            redirect_stderr(log),
            listening(limits, answered.timed(watched.pages.answer), config),
            closing(watched),
            closing(Watcher(path)) as watcher,
        ):
            lines = RunLines(config)
            lines.begins("")
            switched = _Switched((watched.observer, lines), lambda: ask(limits.port), watcher, is_turned=is_turned)
            # The endpoint is the one above.
            bare = replace(config, run=replace(config.run, http=None))
            assert run(bare, once=True, spark=spark, observer=switched) == {}
            lines.close()
            answered.told_s += switched.told_s
            answered.watcher_s += switched.watcher_s
    finally:
        undo()
    if len(switched.blocks) < len(ORDER):
        raise SystemExit("a run has too few plans: give it more --rows")
    return switched.blocks


def _fours(one: Sequence[Block], other: Sequence[Block]) -> list[Four]:
    """Neighbours in two runs. Of each run the pair has first the block that was not looked at."""

    def pairs(blocks: Sequence[Block]) -> list[Pair]:
        found = zip(blocks[::2], blocks[1::2], strict=False)
        return [(second, first) if first.is_watched else (first, second) for first, second in found]

    return list(zip(pairs(one), pairs(other), strict=False))


def _ratios(fours: Sequence[Four]) -> tuple[list[float], list[float]]:
    """How much more those took that were looked at: of the clock, and of the processor."""

    def ratio(four: Four, taken: Callable[[Block], float]) -> float:
        return math.prod(taken(watched) / taken(alone) for alone, watched in four) ** (1 / len(four)) - 1

    return (
        [ratio(four, lambda block: block.wall_s) for four in fours],
        [ratio(four, lambda block: block.cpu_s) for four in fours],
    )


def _middle(ratios: Sequence[float]) -> tuple[float, float, float]:
    """The median of the means of any two ratios, and between which of these means it is, as Wilcoxon's signed ranks say."""
    count = len(ratios)
    means = sorted((one + other) / 2 for at, one in enumerate(ratios) for other in ratios[at:])
    spread = math.sqrt(count * (count + 1) * (2 * count + 1) / 24)
    outside = max(0, math.floor(len(means) / 2 - statistics.NormalDist().inv_cdf((1 + CERTAINTY) / 2) * spread))
    return statistics.median(means), means[outside], means[-1 - outside]


def _processor_s() -> float:
    """What this process and its Spark have taken of the processor."""
    return time.process_time() + taken_s(java_process())


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])
