"""Which rows of a table a plan's repair compares: all, those of a range of keys, or those with given values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from historian.plans.plans import PlannedTable
from historian.schema.snapshots import Snapshot
from sinks.contract.locations import TableLocation
from sinks.delta.log.table_view import HeldFile
from sinks.delta.repairs.ranges import range_of
from sinks.delta.repairs.values import rows_of_values

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

__all__ = ["ComparedRows", "compared_rows"]


class ComparedRows(Protocol):
    """Some rows of a table, told by their values; rows come under physical names."""

    @property
    def names(self) -> tuple[str, ...]:
        """The columns that tell them."""

    def of(self, rows: pa.Table) -> pa.Table:
        """Those among *rows*. Raises TableStopped where targets do not tell."""

    def may_hold(self, file: HeldFile) -> bool:
        """Whether a file can hold such rows, by its statistics."""

    def check(self, rows: pa.Table) -> None:
        """Raises TableStopped where one of *rows*, which the source has among them, is none by its values."""

    def of_frame(self, rows: DataFrame) -> DataFrame:
        """As :meth:`of`."""

    def check_frame(self, rows: DataFrame) -> None:
        """As :meth:`check`."""


def compared_rows(table: PlannedTable, location: TableLocation, last: Snapshot) -> ComparedRows | None:
    """The rows that the plan compares; None: all.

    Args:
        table: its part of a plan that repairs it.
        last: its schema behind the plan, as the targets have it.

    Raises:
        TableStopped: the targets do not tell which rows those are.
    """
    if table.copy is not None and table.copy.only:
        return rows_of_values(table, location, last)
    return range_of(table, location, last)
