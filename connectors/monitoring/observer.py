"""What a run tells those who watch it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from historian.changelog.operations import Op
from historian.plans.plans import Plan

if TYPE_CHECKING:
    from connectors.config import PipelineConfig
    from historian.normalizing.counts import NormalCounts

__all__ = ["Observer", "Observers", "WrittenPlan", "on_written"]


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenPlan:
    """A plan that all sinks hold.

    Attributes:
        stopped: the tables that sinks have stopped so far, and why.
        event_time_us: of the last transaction in it, UTC microseconds; 0 where that is not known.
        rows: how many changelog rows it has, by table id and operation.
        due_us: ids of tables whose mirrors apply rows later than their changelogs, and when at the latest, UTC microseconds.
        nulled: how many values became NULL since they cannot be represented, by table id and column id; ``dead_letters``: are kept aside.
        decode_s: until its log was decoded; ``write_s``: that each sink took, in their order.
        commit_s: how long each commit took of each sink, in the same order.
        normal: what normalisation met, by table id.
    """

    plan: Plan
    stopped: Mapping[str, str]
    event_time_us: int = 0
    rows: Mapping[tuple[int, Op], int] = field(default_factory=dict)
    due_us: Mapping[int, int] = field(default_factory=dict)
    nulled: Mapping[tuple[int, int], int] = field(default_factory=dict)
    dead_letters: int = 0
    decode_s: float = 0.0
    write_s: tuple[float, ...] = ()
    commit_s: tuple[tuple[float, ...], ...] = ()
    normal: Mapping[int, NormalCounts] = field(default_factory=dict)


class Observer:
    """Is told what a run does, in the run's own thread. Methods must not raise and not block; by default they do nothing."""

    def configured(self, config: PipelineConfig) -> None:
        """The run goes on with another configuration of the connector."""

    def opened(self) -> None:
        """An attempt holds the lease and its targets."""

    def planned(self, plan: Plan) -> None:
        """A plan is about to be decoded and written."""

    def written(self, written: WrittenPlan) -> None:
        """All sinks hold a plan."""

    def waits(self, waiting_bytes: int) -> None:
        """The log was looked at between two plans: about so much of it is known to wait for the next one."""

    def failed(self, failure: str) -> None:
        """An attempt failed with what may pass, and is made again."""

    def closed(self) -> None:
        """An attempt has given its lease back."""


class Observers(Observer):
    """Several observers, told one after the other."""

    def __init__(self, *observers: Observer) -> None:
        self._observers = observers

    def configured(self, config: PipelineConfig) -> None:
        """As of each."""
        for each in self._observers:
            each.configured(config)

    def opened(self) -> None:
        """As of each."""
        for each in self._observers:
            each.opened()

    def planned(self, plan: Plan) -> None:
        """As of each."""
        for each in self._observers:
            each.planned(plan)

    def written(self, written: WrittenPlan) -> None:
        """As of each."""
        for each in self._observers:
            each.written(written)

    def waits(self, waiting_bytes: int) -> None:
        """As of each."""
        for each in self._observers:
            each.waits(waiting_bytes)

    def failed(self, failure: str) -> None:
        """As of each."""
        for each in self._observers:
            each.failed(failure)

    def closed(self) -> None:
        """As of each."""
        for each in self._observers:
            each.closed()


class _OnWritten(Observer):
    def __init__(self, tell: Callable[[Plan, Mapping[str, str]], object]) -> None:
        self._tell = tell

    def written(self, written: WrittenPlan) -> None:
        self._tell(written.plan, written.stopped)


def on_written(tell: Callable[[Plan, Mapping[str, str]], object]) -> Observer:
    """An observer that calls *tell* with each plan that all sinks hold, and the tables that sinks have stopped so far."""
    return _OnWritten(tell)
