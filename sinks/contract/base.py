"""What a pipeline knows of a sink."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from historian.history.timeline import TimelineEntry
from historian.plans.plans import Plan
from sinks.contract.chunks import Chunks

__all__ = ["DryRun", "DryRunResult", "RecoveredStore", "Sink", "TargetStatus"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoveredStore:
    """What a sink holds of a connector, enough to rebuild a lost store: its identity, whole timeline and plans, oldest first."""

    connector: str
    timeline: tuple[TimelineEntry, ...]
    plans: tuple[Plan, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetStatus:
    """Where one target stands: the last plan it holds, its rows' last position, and why it stopped, if it did.

    ``made_us``: when that plan was made, UTC; 0 where it holds none. ``writer``: who writes its rows, and why, where that was
    not chosen; "" where there is no choice. ``ended``: why it is written no more where nothing is wrong: its table was dropped.
    ``target`` is "" where the table has none of that kind, for a reason that ``stopped`` says. ``path``: the target's directory, absolute or a
    URL; "" where there is none.
    """

    table: str
    target: str
    kind: str
    plan: int
    position: str
    stopped: str | None = None
    made_us: int = 0
    writer: str = ""
    ended: str | None = None
    path: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DryRunResult:
    """What one target of a table would do with a plan.

    Attributes:
        target: its name; "" for what concerns the table as a whole.
        effects: clauses for people, in order; empty where it need not do anything.
        stopped: why the table would stop there; None where it goes on.
    """

    table: str
    target: str
    kind: str
    effects: tuple[str, ...] = ()
    stopped: str | None = None


class DryRun(Protocol):
    """A sink that writes nothing: it begins without tables and keeps in memory what plans would make of it."""

    def take(self, plan: Plan) -> Sequence[DryRunResult]:
        """What the targets would do with *plan*, which has edits and no rows. A table that stops is left out from then on."""


class Sink(Protocol):
    """A place that plans are written to, exactly once each. One connector writes to it.

    What is answered here is the answer of a sink that keeps nothing and never stops a table.
    """

    def recover(self) -> RecoveredStore | None:
        """What is held of an earlier run; None where nothing is. Reads only. Retryable."""
        return None

    def open(self, connector: str) -> int | None:
        """Claims the targets for *connector* and returns the last plan that *every* target of this sink holds (0: none).

        None: the sink keeps nothing, and takes what comes.

        Raises:
            LeaseHeld, SinkError: another connector's targets.
        """

    def write(self, plan: Plan, timeline: Callable[[int], Sequence[TimelineEntry]], chunks: Chunks) -> None:
        """Writes *plan*: what is held already is skipped, the rest is written. Calling it again after any failure is safe.

        Args:
            plan: the next one of the chain, or one held before.
            timeline: gives the entries behind a number that the plan needs, in order; recorded before any row.
            chunks: the plan's rows. One that says why its table ``stopped`` stops it: nothing of the plan is written of
                that table.

        Raises:
            ChainBroken: a plan is missing, or a target was changed by someone else.
            SinkError: a target cannot be written; retryable where the error says so.
        """

    def due_us(self) -> Mapping[int, int]:
        """Ids of tables with targets that are to apply rows later than the plan which brought them, and when at the latest.

        UTC microseconds. A plan without any log, which names them, makes them all do so. Of the opened sink, as of its last
        plan. Cheap; reads nothing.
        """
        return {}

    def held(self) -> int | None:
        """The last plan that every target is known to hold, 0: none; may be called without :meth:`open`. Reads only.

        None: the sink keeps nothing.
        """
        return None

    def repairable(self) -> Mapping[int, int]:
        """Tables that the opened sink has stopped and that go on once they are compared with all rows of the source.

        Ids, with the last plan before that in which each stopped. Cheap; reads nothing.
        """
        return {}

    def stopped(self) -> Mapping[str, str]:
        """Tables that the opened sink has stopped by itself, and why. Cheap; reads nothing."""
        return {}

    def commit_s(self) -> Sequence[float]:
        """How long each commit took, seconds, since this was last asked; those that Spark makes inside of a statement are not known.

        Cheap; reads nothing.
        """
        return ()

    def status(self) -> Sequence[TargetStatus]:
        """Where each target stands. Reads only."""
        return ()

    def known(self) -> Sequence[TargetStatus]:
        """Where each target of the opened sink stands behind its last plan, as this process knows: what others did to targets is not asked."""
        return self.status()
