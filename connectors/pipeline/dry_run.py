"""A migration without a server: what each configured sink would do with the statements of a file."""

from __future__ import annotations

from dataclasses import dataclass

from connectors.config import PipelineConfig
from connectors.sink_kinds import make_dry_run
from connectors.tracking.schema_file import AppliedStatement
from historian.history.history import History
from historian.history.timeline import TimelineEntry
from historian.names import TableName
from historian.plans.plans import Plan, PlannedTable
from historian.plans.segments import planned_tables
from historian.positions import LogPosition
from historian.positions.places import Place
from historian.schema.edits import CreateTable, Edit, SetDatabase
from historian.schema.snapshots import Catalog
from sinks.contract.base import DryRunResult

__all__ = ["PipelineDryRun", "SinkDryRun"]

_FILE = "statements"


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkDryRun:
    """What one sink would do; ``sink`` is its number in the configuration, from 1, with its place."""

    sink: str
    foreseen: tuple[DryRunResult, ...]


class PipelineDryRun:
    """Takes statements one by one. Each is a plan of its own; the sinks hold the tables of *start* before the first.

    Args:
        config: whose filter says which tables are captured, and whose sinks are asked.
        start: tables that are there already.
    """

    def __init__(self, config: PipelineConfig, start: Catalog) -> None:
        self._captured = config.source.tables
        self._type_options = config.types
        self._flavor = config.source.flavor
        self._sinks = [
            (f"{at}: {sink.type} {sink.place}", dry_run)
            for at, sink in enumerate(config.sinks, 1)
            if (dry_run := make_dry_run(sink)) is not None
        ]
        self._history = History()
        self._stopped: set[int] = set()
        edits: list[Edit] = [SetDatabase(database=database) for database in start.databases.values()]
        edits += [CreateTable(snapshot=snapshot) for _, snapshot in sorted(start.tables.items())]
        self.at_start = self._take("", tuple(edits), None)

    def take(self, step: AppliedStatement) -> tuple[SinkDryRun, ...]:
        """What the sinks would do behind *step*; the connector's own stops come first, under the sink "connector"."""
        resolution = step.resolution
        found = self._take(step.statement.sql, resolution.edits, step.after)
        if resolution.kind != "rows":
            return found
        stops = [stop for name in resolution.tables if (stop := self._stop(name, resolution.reason, step.after))]
        return (SinkDryRun(sink="connector", foreseen=tuple(stops)), *found) if stops else found

    def _take(self, sql: str, edits: tuple[Edit, ...], after: Catalog | None) -> tuple[SinkDryRun, ...]:
        if not edits:
            return ()
        number = self._history.last_number + 1
        place = Place(gtid="", file=_FILE, offset=number, ordinal=0)
        self._history.record(
            TimelineEntry(
                number=number,
                place=None if after is None else place,
                position=self._position(number),
                edits=edits,
                statement=sql,
                database="",
                event_time_us=0,
                server="",
            )
        )
        plan = self._plan(number)
        own = tuple(stop for table in plan.tables if (stop := self._left(table)) is not None)
        found = [SinkDryRun(sink="connector", foreseen=own)] if own else []
        for name, sink in self._sinks:
            foreseen = tuple(sink.take(plan))
            if foreseen:
                found.append(SinkDryRun(sink=name, foreseen=foreseen))
        return tuple(found)

    def _plan(self, number: int) -> Plan:
        tables = planned_tables(
            self._history,
            base=number - 1,
            last=number,
            captured=self._captured,
            touched=(),
            quarantines={},
            type_options=self._type_options,
        )
        return Plan(
            number=number,
            previous=number - 1,
            connector="",
            start=self._position(number - 1),
            end=self._position(number),
            ranges=(),
            tables=tuple(table for table in tables if table.table_id not in self._stopped),
            version=number,
            system_time_us=0,
            revision="",
        )

    def _position(self, number: int) -> LogPosition:
        return LogPosition(flavor=self._flavor, gtids="", file=_FILE, offset=number)

    def _left(self, table: PlannedTable) -> DryRunResult | None:
        """A table that leaves what is captured."""
        if table.quarantine is None:
            return None
        self._stopped.add(table.table_id)
        snapshot = next((v.snapshot for v in reversed(table.versions) if v.snapshot is not None), None)
        name = "" if snapshot is None else str(snapshot.name)
        return DryRunResult(table=name, target="", kind="table", stopped=table.quarantine.reason)

    def _stop(self, name: TableName, reason: str, catalog: Catalog) -> DryRunResult | None:
        snapshot = catalog.tables.get(name)
        if snapshot is None or not self._captured(name) or snapshot.table_id in self._stopped:
            return None
        self._stopped.add(snapshot.table_id)
        return DryRunResult(table=str(name), target="", kind="table", stopped=f"{reason}; its schema stays known")
