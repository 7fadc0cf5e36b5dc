"""What a Parquet sink would do with schema changes: files keep their version's columns, so little can go wrong."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from historian.errors import TableStopped
from historian.plans.plans import Plan
from sinks.contract.base import DryRunResult
from sinks.contract.locations import TableLocations
from sinks.contract.parts import Part, parts_of
from sinks.contract.tables import assign
from sinks.parquet.settings import ParquetSettings
from sinks.rows.shapes import refuse_system_names

__all__ = ["ParquetDryRun"]


class ParquetDryRun:
    """Implements :class:`sinks.contract.base.DryRun`."""

    def __init__(self, settings: ParquetSettings) -> None:
        self._settings = settings
        self._locations: TableLocations = {}

    def take(self, plan: Plan) -> Sequence[DryRunResult]:
        """See :class:`sinks.contract.base.DryRun`."""
        self._locations = assign(self._locations, plan, self._settings)
        return [foreseen for part in parts_of(plan, self._locations, {}) for foreseen in self._part(part)]

    def _part(self, part: Part) -> Iterator[DryRunResult]:
        location = part.location
        try:
            if part.last is not None:
                refuse_system_names(part.last)
        except TableStopped as error:
            self._locations = {
                **self._locations,
                location.table_id: replace(location, stopped=str(error), stopped_in=part.plan),
            }
            yield DryRunResult(table=location.name, target="", kind="table", stopped=str(error))
            return
        effects = ["a -R for each row that the table held"] if part.clears is not None and part.base is not None else []
        if part.last is not None:
            columns = ", ".join(f"{column.name} {column.type}" for column in part.last.columns)
            effects.append(f"files from here on have {columns}")
        yield DryRunResult(table=location.name, target=location.changelog, kind="changelog", effects=tuple(effects))
