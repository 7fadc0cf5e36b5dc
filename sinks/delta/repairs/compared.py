"""Rows that a repair compares, where these are not all of a table: told by their values, at the source and in targets alike."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar

import pyarrow as pa

from historian.changelog.operations import physical_name
from historian.changelog.row_images import Mask
from historian.errors import TableStopped
from historian.plans.key_ranges import NOT_BY_RANGES
from historian.schema.snapshots import Column, Snapshot
from sinks.contract.locations import TableLocation
from sinks.delta.log.commits import HeldFile

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["ComparedRows", "marks_of"]


class ComparedRows(ABC):
    """Some rows of *table*, told by *columns*; rows come under physical names."""

    __slots__ = ()
    table: Snapshot
    columns: tuple[Column, ...]
    expected: ClassVar[str]
    others: ClassVar[str]

    @property
    def names(self) -> tuple[str, ...]:
        """The columns that tell them."""
        return tuple(physical_name(column.id) for column in self.columns)

    def of(self, rows: pa.Table) -> pa.Table:
        """Those among *rows*. Raises TableStopped where targets do not tell."""
        inside = self._inside(rows)
        return rows if inside.all() else rows.filter(pa.array(inside))

    def check(self, rows: pa.Table) -> None:
        """Raises TableStopped where one of *rows*, which the source has among them, is none by its values."""
        if not self._inside(rows).all():
            raise self.refused(self.table, self.others)

    @abstractmethod
    def may_hold(self, file: HeldFile) -> bool:
        """Whether a file can hold such rows, by its statistics."""

    @abstractmethod
    def of_frame(self, rows: DataFrame) -> DataFrame:
        """As :meth:`of`: by conditions on the columns, so that files which hold no such rows are left out."""

    @abstractmethod
    def check_frame(self, rows: DataFrame) -> None:
        """As :meth:`check`."""

    @abstractmethod
    def _inside(self, rows: pa.Table) -> Mask: ...

    @classmethod
    def refused(cls, table: Snapshot, found: str) -> TableStopped:
        """The error of targets that do not tell such rows of *table*."""
        return TableStopped(
            NOT_BY_RANGES,
            where=str(table.name),
            expected=cls.expected,
            found=found,
            next_step="the next run compares all rows of the table at once",
        )


def marks_of(location: TableLocation) -> dict[int, str]:
    """What was done to each column's values on their way into targets, by its id; "": nothing."""
    return {int(number): mark for number, (_, mark) in json.loads(location.columns or "{}").items()}
