"""What a sink of changelogs keeps of each plan: the plan, and how its tables stand with it. Its JSON is :mod:`historian.codec`'s."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from historian.history.timeline import TimelineEntry
from historian.plans.plans import Plan
from sinks.contract.base import TargetStatus
from sinks.contract.locations import TableLocation, ended

__all__ = ["ChangelogEnd", "HeldPlan"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangelogEnd:
    """How far a table's changelog goes.

    Attributes:
        next_offset: of the next row.
        live_from: offset of the first row behind the last TRUNCATE or DROP; rows before it amount to nothing.
    """

    next_offset: int = 0
    live_from: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldPlan:
    """A plan that the sink holds, and how its tables stand with it.

    Attributes:
        plan: itself.
        changes: schema changes that it is the first to need.
        locations: of every table so far.
        logs: directory to how far its changelog goes.
    """

    plan: Plan
    changes: tuple[TimelineEntry, ...]
    locations: tuple[TableLocation, ...]
    logs: Mapping[str, ChangelogEnd] = field(default_factory=dict)

    @property
    def stopped(self) -> dict[str, str]:
        """Table to why it was stopped."""
        return {location.name: location.stopped for location in self.locations if location.stopped}

    def status(self, root: str) -> tuple[TargetStatus, ...]:
        """Of each changelog, whose directory is in *root*."""
        over = ended({location.table_id: location for location in self.locations})
        return tuple(
            TargetStatus(
                table=location.name,
                target=location.changelog,
                kind="changelog",
                plan=self.plan.number,
                position=str(self.plan.end),
                made_us=self.plan.system_time_us,
                stopped=location.why_stopped,
                ended=over.get(location.changelog),
                path=f"{root}/{location.changelog}",
            )
            for location in self.locations
        )
