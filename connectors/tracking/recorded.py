"""What a connector has recorded so far, for those who only look."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from connectors.config import PipelineConfig
from historian.names import TableName
from historian.plans.plans import PlanHead
from historian.store import Store

__all__ = ["STREAM", "StoppedTable", "UnloggedChange", "reached_plan", "recorded_store", "stopped_tables"]

STREAM = ""
"""Under which name the store knows how far plans are written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoppedTable:
    """A table whose rows are not delivered from ``position`` on, and why."""

    table: TableName
    position: str
    reason: str

    def __str__(self) -> str:
        return f"stopped: {self.table} at {self.position}\n  {self.reason}"


@dataclass(frozen=True, slots=True, kw_only=True)
class UnloggedChange:
    """Rows of a table that something changed at ``position`` without row events; its rows from there on are right."""

    table: TableName
    position: str
    reason: str

    def __str__(self) -> str:
        return f"warning: rows of {self.table} changed without row events at {self.position}\n  {self.reason}"


def recorded_store(config: PipelineConfig) -> Store | None:
    """The configured store; None where it is an SQLite file that is not there. None is made.

    Raises:
        StoreError: a store that cannot be opened.
    """
    scheme, _, path = config.history.store.partition(":///")
    if scheme.startswith("sqlite") and not (path and Path(path).exists()):
        return None
    return Store.open(config.history.store)


def reached_plan(store: Store) -> PlanHead | None:
    """The plan that a run goes on behind: the last one that was written, since plans behind it may be stored before they are.

    Plans without tables, which need no log, are taken along, such as the one that ``heal --lost-log`` leaves over what is lost. Where no run
    has noted one it is the newest plan, as in a store that was rebuilt; None where there is none.
    """
    number = store.progress(STREAM)
    plan = store.plan_head(number) if number else None
    if plan is None:
        return store.plan_head()
    while (behind := store.plan_head(plan.number + 1)) is not None and not behind.tables:
        plan = behind
    return plan


def stopped_tables(store: Store) -> tuple[StoppedTable, ...]:
    """The tables that stopped, those whose schema was never known included."""
    return tuple(
        StoppedTable(
            table=name,
            position=str(quarantine.place),
            reason=quarantine.reason,
        )
        for _, name, quarantine in store.stopped()
    )
