"""A run as people watch it: its own metrics and what its store holds, put together twice a second in a thread of its own."""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from connectors.monitoring.metrics import Metrics, RunNumbers
from connectors.monitoring.observer import Observer, Observers, WrittenPlan
from connectors.monitoring.picture import CopyPicture, RunPicture, TablePicture, TableState
from connectors.monitoring.retention import KeptLog, log_warnings
from connectors.monitoring.stored import Stored, StoredTables, place_text
from historian.errors import HistorianError

if TYPE_CHECKING:
    from connectors.config import PipelineConfig

__all__ = ["Rates", "Watch", "run_picture", "watched"]

_EVERY_S = 0.5
_LONGEST_S = 10.0
"""A run that ends waits so long for a store that does not answer."""
_IDLE_S = 5.0
"""What other commands say of copies is seen in that time, though the run writes nothing."""
_WINDOW_S = 30.0
_PAUSES = 20.0
"""A look is followed by a pause at least so many times as long."""
_TABLES = 10_000
_STATES = {
    "copying": TableState.COPYING,
    "repairing": TableState.REPAIRING,
    "waiting": TableState.WAITING,
    "stopped": TableState.STOPPED,
    "ends with the next plan": TableState.CANCELLED,
}


class Watch(Observers):
    """Is told what a run does, and says what a look at it finds. :func:`watched` makes it.

    Attributes:
        metrics: of the run, as `/metrics` has them.
        picture: the last one; from any thread.
    """

    def __init__(self, config: PipelineConfig) -> None:
        kinds = tuple(sink.type for sink in config.sinks)
        self.metrics = Metrics(config.name, config.source.place, kinds, tables=_TABLES)
        self._last = _Last()
        super().__init__(self._last, self.metrics)
        self._config = config
        self._kept_s = KeptLog.of(config)
        self._rates = Rates(time.monotonic())
        self._numbers = RunNumbers()
        self._stored = Stored()
        self._has_read = False
        self._stops = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="historian watch", daemon=True)
        source = f"{config.source.flavor} {config.source.place}"
        self.picture = RunPicture(taken_us=_now_us(), connector=config.name, source=source, sinks=kinds)

    def configured(self, config: PipelineConfig) -> None:
        """As of :class:`Observer`: tables are those that *config* takes in."""
        super().configured(config)
        self._config = config

    def start(self) -> None:
        """Begins to look."""
        self._thread.start()

    def stop(self) -> None:
        """Takes the last picture, and ends the thread."""
        self._stops.set()
        self._thread.join(_LONGEST_S)
        self._kept_s.close()

    @property
    def was_open(self) -> bool:
        """Whether the run has held its lease so far."""
        return self._last.was_open

    def _watch(self) -> None:
        with closing(StoredTables(self._config)) as tables:
            pause_s, read_s, config = _EVERY_S, -math.inf, self._config
            while not self._stops.wait(pause_s):
                begun_s = time.monotonic()
                if config is not self._config:
                    config = self._config
                    tables.configured(config)
                    read_s = -math.inf
                before, self._numbers = self._numbers, self.metrics.numbers(self._numbers)
                if self._numbers.plans != before.plans or begun_s - read_s > _IDLE_S:
                    read_s = begun_s
                    self._read(tables)
                self._take()
                # Of thousands of tables a look takes its time, which is the run's too.
                pause_s = max(_EVERY_S, _PAUSES * (time.monotonic() - begun_s))
            # The last picture has what the last plan brought.
            self._numbers = self.metrics.numbers(self._numbers)
            self._read(tables)
            self._take(has_ended=True)

    def _read(self, tables: StoredTables) -> None:
        try:
            self._stored = tables.read()
            self._has_read = True
        except HistorianError as error:
            self._stored = replace(self._stored, notes=(f"the store cannot be read: {error}",))

    def _take(self, *, has_ended: bool = False) -> None:
        if not self._has_read and not has_ended:
            return  # nothing is known of its tables
        self._rates.note(time.monotonic(), self._numbers)
        now = replace(self.picture, taken_us=_now_us())
        picture = run_picture(now, self._numbers, self._stored, self._last.plan, self._rates, self._kept_s())
        self.picture = replace(picture, stage="has ended") if has_ended else picture


@contextmanager
def watched(config: PipelineConfig) -> Iterator[Watch]:
    """A watch over what happens inside the ``with``."""
    watch = Watch(config)
    watch.start()
    try:
        yield watch
    finally:
        watch.stop()


class _Last(Observer):
    """The last plan that a run told of."""

    def __init__(self) -> None:
        self.plan: WrittenPlan | None = None
        self.was_open = False

    def opened(self) -> None:
        """As of :class:`Observer`."""
        self.was_open = True

    def written(self, written: WrittenPlan) -> None:
        """As of :class:`Observer`."""
        self.plan = written


class Rates:
    """How fast a run's numbers grow: over the last :data:`_WINDOW_S` seconds, or since it began where that is shorter."""

    def __init__(self, begun_s: float) -> None:
        self._taken: deque[tuple[float, RunNumbers]] = deque([(begun_s, RunNumbers())])

    def note(self, now_s: float, numbers: RunNumbers) -> None:
        """Takes note of the numbers at a time."""
        self._taken.append((now_s, numbers))
        while self._taken[1][0] <= now_s - _WINDOW_S:
            self._taken.popleft()

    def of(self, number: Callable[[RunNumbers], int]) -> float:
        """What *number* of them grows a second."""
        (first_s, first), (last_s, last) = self._taken[0], self._taken[-1]
        return (number(last) - number(first)) / (last_s - first_s) if last_s > first_s else 0.0


def run_picture(
    before: RunPicture,
    numbers: RunNumbers,
    stored: Stored,
    last: WrittenPlan | None,
    rates: Rates,
    kept_s: float | None,
) -> RunPicture:
    """The picture that follows *before*, whose moment and names it has.

    Args:
        last: the last plan that all sinks hold; None: none yet.
        kept_s: for how long the source keeps its log; None: for ever, or not known.
    """
    tables = tuple(_tables(numbers, stored, last, rates))
    copies = [(each.name, each.copy.left_s) for each in tables if each.copy is not None and not each.reason]
    stage = "tries again" if numbers.is_retrying else "runs" if numbers.is_open else "starts"
    return replace(
        before,
        stage=stage,
        plan=numbers.plan,
        position=stored.position if last is None else place_text(last.plan.end),
        lag_s=numbers.lag_s,
        lag_bytes=numbers.lag_bytes,
        log_bytes_per_s=rates.of(lambda found: found.log_bytes),
        copied_rows_per_s=rates.of(lambda found: found.copied_rows),
        copied_bytes_per_s=rates.of(lambda found: found.copied_bytes),
        rows_per_s=rates.of(lambda found: sum(found.rows.values())),
        rows=sum(numbers.rows.values()),
        tables=tables,
        changes=stored.changes,
        notes=stored.notes,
        warnings=tuple(log_warnings(kept_s, numbers.lag_s, copies, stored.left_s)),
    )


def _tables(numbers: RunNumbers, stored: Stored, last: WrittenPlan | None, rates: Rates) -> Iterator[TablePicture]:
    stopped: dict[str, str] = {**({} if last is None else last.stopped), **stored.stopped}
    copies = {copy["table"]: copy for copy in stored.copies}
    due_us = {} if last is None else {stored.tables.get(i, ""): time_us for i, time_us in last.due_us.items()}
    # One whose schema was never known is stopped, and no table of the history.
    for name in dict.fromkeys((*stored.tables.values(), *stopped)):
        copy = copies.get(name)
        yield TablePicture(
            name=name,
            state=_state(name, stopped, copy, due_us),
            rows=numbers.rows.get(name, 0),
            rows_per_s=rates.of(lambda found, name=name: found.rows.get(name, 0)),  # type: ignore[misc]
            reason=stopped.get(name, ""),
            copy=None if copy is None else _copy(copy),
            due_us=due_us.get(name, 0),
        )


def _state(
    name: str, stopped: Mapping[str, str], copy: Mapping[str, Any] | None, due_us: Mapping[str, int]
) -> TableState:
    if name in stopped:
        return TableState.STOPPED
    if copy is not None:
        return _STATES[copy["state"]]
    return TableState.DEFERRED if name in due_us else TableState.STREAMING


def _copy(copy: Mapping[str, Any]) -> CopyPicture:
    return CopyPicture(
        rows=copy["rows"],
        estimate=copy["estimate"],
        rows_per_s=copy["rows_per_s"],
        left_s=copy["left_s"],
        size_bytes=copy["bytes"],
        estimated_bytes=copy["estimated_bytes"],
        bytes_per_s=copy["bytes_per_s"],
    )


def _now_us() -> int:
    return round(time.time() * 1e6)
