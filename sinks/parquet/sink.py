"""The Parquet sink: plans become files of changelogs, each exactly once."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING

from historian.changelog.missing_columns import MISSING_COLUMNS
from historian.changelog.operations import RESERVED_COLUMNS
from historian.errors import ChainBroken, SinkError, TableStopped, ValueUnrepresentable
from historian.history.timeline import TimelineEntry
from historian.plans.plans import Plan, PlannedTable
from sinks.contract.base import RecoveredStore, Sink, TargetStatus
from sinks.contract.chain import check_connector, check_follows
from sinks.contract.chunks import Chunks
from sinks.contract.held_plans import ChangelogEnd, HeldPlan
from sinks.contract.locations import TableLocation
from sinks.contract.parts import Part, check_planned, count_rows, parts_of
from sinks.contract.storage import share_settings
from sinks.contract.tables import assign, stopped_locations
from sinks.parquet.files import Retraction, Work, write_chunks, write_retractions
from sinks.parquet.ledger import Ledger
from sinks.parquet.settings import ParquetSettings
from sinks.rows.shapes import refuse_system_names

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["ParquetSink"]


class ParquetSink(Sink):
    """Writes changelogs as Parquet files.

    Files have their names from offsets, and a plan counts once its ledger file is there: what a run that failed has
    left is replaced by the same rows. Readers that want whole plans only read rows before the ledger's offsets.
    """

    def __init__(self, spark: SparkSession, settings: ParquetSettings) -> None:
        self._settings = settings
        self._root = settings.path if "://" in settings.path else str(Path(settings.path).absolute())
        share_settings(spark, self._root)
        self._ledger = Ledger(self._root)
        self._connector = ""
        self._held: HeldPlan | None = None
        self._commit_s: list[float] = []

    def recover(self) -> RecoveredStore | None:
        """See :class:`sinks.contract.base.Sink`."""
        held = [self._ledger.read(number) for number in self._ledger.numbers()]
        if not held:
            return None
        return RecoveredStore(
            connector=held[-1].plan.connector,
            timeline=tuple(entry for one in held for entry in one.changes),
            plans=tuple(one.plan for one in held),
        )

    def open(self, connector: str) -> int:
        """See :class:`sinks.contract.base.Sink`."""
        self._connector, self._held = connector, self._last()
        if self._held is None:
            return 0
        if self._held.plan.connector != connector:
            raise SinkError(
                "the files are another connector's",
                where=self._root,
                expected=connector,
                found=self._held.plan.connector,
                next_step="choose another path",
            )
        return self._held.plan.number

    def write(self, plan: Plan, timeline: Callable[[int], Sequence[TimelineEntry]], chunks: Chunks) -> None:
        """See :class:`sinks.contract.base.Sink`."""
        held = self._held
        number = 0 if held is None else held.plan.number
        check_connector(plan, self._connector, self._root)
        if plan.number <= number:
            if self._ledger.read(plan.number).plan != plan:
                raise ChainBroken("another plan is held under a plan's number", where=f"{self._root}, {plan.number}")
            return
        check_follows(plan, number, self._root, holder="the files", elsewhere="choose another path")
        rows, stops, partial = count_rows(chunks)
        check_planned(plan, rows)
        stops = {**{table.table_id: _not_repaired(table) for table in plan.tables if table.repairs}, **stops}
        recorded = 0 if held is None else held.plan.version
        locations = assign({} if held is None else {h.table_id: h for h in held.locations}, plan, self._settings)
        locations = stopped_locations(locations, stops, plan.number)
        writing = _Writing(self._root, plan, dict(locations), {} if held is None else dict(held.logs))
        writing.write(parts_of(plan, locations, rows, partial), chunks)
        self._held = HeldPlan(
            plan=plan,
            changes=tuple(entry for entry in timeline(recorded) if entry.number <= plan.version),
            locations=tuple(writing.locations.values()),
            logs=writing.logs,
        )
        begun_s = time.monotonic()
        self._ledger.append(self._held)
        self._commit_s.append(time.monotonic() - begun_s)

    def commit_s(self) -> Sequence[float]:
        """See :class:`sinks.contract.base.Sink`: a plan's file of the ledger is its commit."""
        told, self._commit_s = self._commit_s, []
        return told

    def held(self) -> int:
        """See :class:`sinks.contract.base.Sink`."""
        held = self._held or self._last()
        return 0 if held is None else held.plan.number

    def stopped(self) -> Mapping[str, str]:
        """See :class:`sinks.contract.base.Sink`."""
        return {} if self._held is None else self._held.stopped

    def status(self) -> Sequence[TargetStatus]:
        """See :class:`sinks.contract.base.Sink`."""
        held = self._held or self._last()
        return () if held is None else held.status(self._root)

    def _last(self) -> HeldPlan | None:
        numbers = self._ledger.numbers()
        return self._ledger.read(numbers[-1]) if numbers else None


class _Writing:
    """The rows of one plan: round by round, the n-th part of every table at once."""

    def __init__(
        self, root: str, plan: Plan, locations: dict[int, TableLocation], logs: dict[str, ChangelogEnd]
    ) -> None:
        self._root = root
        self._plan = plan
        self.locations = locations
        self.logs = logs

    def write(self, parts: Sequence[Part], chunks: Chunks) -> None:
        """Writes the files of *parts*; tables that cannot go on are stopped in :attr:`locations`."""
        for index in sorted({part.index for part in parts}):
            works: dict[tuple[int, int], Work] = {}
            expected = 0
            for part in (part for part in parts if part.index == index):
                if self.locations[part.location.table_id].stopped:
                    continue
                try:
                    works[part.location.table_id, part.segment] = self._prepare(part)
                    expected += part.rows
                except (TableStopped, ValueUnrepresentable) as error:
                    location = self.locations[part.location.table_id]
                    self.locations[location.table_id] = replace(
                        location, stopped=str(error), stopped_in=self._plan.number
                    )
            written = write_chunks(chunks, works) if expected else 0
            if written != expected:
                raise SinkError("a plan's files lack rows", where=self._root, expected=expected, found=written)

    def _prepare(self, part: Part) -> Work:
        """Takes back what a statement takes back, and gives the part's rows their offsets."""
        written = {v.version: v.snapshot for v in part.versions if v.snapshot is not None}
        for snapshot in written.values():
            refuse_system_names(snapshot, (*RESERVED_COLUMNS, *(MISSING_COLUMNS if part.partial else ())))
        directory = part.location.changelog
        log = self.logs.get(directory, ChangelogEnd())
        if part.clears is not None and part.base is not None:
            first = log.next_offset + write_retractions(
                Retraction(
                    directory=f"{self._root}/{directory}",
                    live_from=log.live_from,
                    upto=log.next_offset,
                    base=part.base,
                    version=part.base_version,
                    system_time_us=self._plan.system_time_us,
                    event_time_us=part.clears.event_time_us,
                )
            )
            log = ChangelogEnd(next_offset=first, live_from=first)
        self.logs[directory] = replace(log, next_offset=log.next_offset + part.rows)
        return Work(
            directory=f"{self._root}/{directory}",
            written=written,
            offsets=_offsets(part.chunks, log.next_offset),
            system_time_us=self._plan.system_time_us,
        )


def _not_repaired(table: PlannedTable) -> str:
    error = TableStopped(
        "a repair compares rows with those that a target holds, and files of a changelog are not asked what they amount to",
        found=table.repairs,
        next_step="replicate the table into a lake, or into another path, from a new start",
    )
    return str(error)


def _offsets(chunks: Mapping[int, int], first: int) -> dict[int, int]:
    sequences = sorted(chunks)
    return dict(zip(sequences, accumulate((chunks[s] for s in sequences[:-1]), initial=first), strict=False))
