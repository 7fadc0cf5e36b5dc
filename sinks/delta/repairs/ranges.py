"""The rows of targets whose keys lie in a range, where a table is repaired range by range.

A range is the source's. Here it is told from the values that targets hold, so their key must be the source's own, as it stands there.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from functools import reduce
from operator import and_
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import pyarrow as pa

from historian.changelog.operations import physical_name
from historian.changelog.row_images import Mask
from historian.plans.key_order import Signs, compared_here, has_plain_order, time_us
from historian.plans.key_ranges import Key, KeyRange, KeyValue
from historian.plans.plans import PlannedTable
from historian.schema.snapshots import INTEGER_TYPES, Column, Snapshot
from historian.values.arrow_types import arrow_type
from sinks.contract.locations import TableLocation
from sinks.delta.log.columns import delta_type
from sinks.delta.log.commits import HeldFile
from sinks.delta.log.pruning import bounds_in
from sinks.delta.repairs.compared import ComparedRows, marks_of

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame

__all__ = ["RangeOfKeys", "range_of"]

_MAY_BE_NULL = frozenset(("date", "datetime", "timestamp"))
"""Dates that the calendar does not have are NULL in targets: no place in the order is theirs."""


def range_of(table: PlannedTable, location: TableLocation, last: Snapshot) -> RangeOfKeys | None:
    """The range whose rows the plan compares; None: all rows.

    Args:
        table: its part of a plan that repairs it.
        last: its schema behind the plan, as the targets have it.

    Raises:
        TableStopped: the targets' key does not tell which rows lie there.
    """
    if table.copy is None or table.copied == KeyRange():
        return None
    columns = [column for key in table.copy.key if (column := last.column_by_id(key)) is not None]
    if last.primary_key != table.copy.key or not all(has_plain_order(column.type) for column in columns):
        raise RangeOfKeys.refused(last, "another key than the source's")
    marks = marks_of(location)
    changed = [column.name for column in columns if marks.get(column.id)]
    if changed:
        raise RangeOfKeys.refused(last, f"other values in {', '.join(changed)}")
    for bound in filter(None, (table.copied.after, table.copied.upto)):
        for column, value in zip(columns, bound, strict=True):
            if column.type.name in _MAY_BE_NULL and not _is_of_calendar(str(value)):
                raise RangeOfKeys.refused(last, f"a range that ends at {value}")
    return RangeOfKeys(table=last, columns=tuple(columns), keys=table.copied)


@dataclass(frozen=True, slots=True, kw_only=True)
class RangeOfKeys(ComparedRows):
    """Keys over *columns* of *table*, in key order; rows come under physical names."""

    table: Snapshot
    columns: tuple[Column, ...]
    keys: KeyRange

    expected: ClassVar[str] = "the source's key in its targets, with the source's values"
    others: ClassVar[str] = "rows that the source has in a range, with keys that do not lie there"

    def may_hold(self, file: HeldFile) -> bool:
        """Whether a file can hold such rows, by what statistics say of the first column."""
        column = self.columns[0]
        statistics = json.loads(file.statistics, parse_float=Decimal)
        bounds = bounds_in(statistics, physical_name(column.id), arrow_type(column.type))
        if bounds is None:
            return True
        ends = pa.array(bounds, arrow_type(column.type))
        above, upto = (None if bound is None else bound[0] for bound in (self.keys.after, self.keys.upto))
        is_before = above is not None and _signs_of(ends, column, above)[1] < 0
        return not is_before and (upto is None or bool(_signs_of(ends, column, upto)[0] <= 0))

    def of_frame(self, rows: DataFrame) -> DataFrame:
        """As :meth:`of`: by conditions on the columns, so that files which hold no such rows are left out."""
        self._check_nulls(rows)
        return rows.where(self._condition)

    def check_frame(self, rows: DataFrame) -> None:
        """As :meth:`check`."""
        self._check_nulls(rows)
        if not rows.where(~self._condition).isEmpty():
            raise self.refused(self.table, self.others)

    def _inside(self, rows: pa.Table) -> Mask:
        self._refuse_nulls([column.name for column in self.columns if rows.column(physical_name(column.id)).null_count])
        inside = np.ones(rows.num_rows, np.bool_)
        if self.keys.after is not None:
            inside &= self._signs(rows, self.keys.after) > 0
        if self.keys.upto is not None:
            inside &= self._signs(rows, self.keys.upto) <= 0
        return inside

    @property
    def _condition(self) -> SparkColumn:
        bounds = ((self.keys.after, True), (self.keys.upto, False))
        return reduce(and_, (self._beyond(bound, above=above) for bound, above in bounds if bound is not None))

    def _check_nulls(self, rows: DataFrame) -> None:
        names = {physical_name(c.id): c.name for c in self.columns if c.type.name in _MAY_BE_NULL}
        self._refuse_nulls([name for held, name in names.items() if not rows.where(f"{held} IS NULL").isEmpty()])

    def _signs(self, rows: pa.Table, bound: Key) -> Signs:
        signs = np.zeros(rows.num_rows, np.int8)
        for column, value in zip(self.columns, bound, strict=True):
            found = _signs_of(rows.column(physical_name(column.id)).combine_chunks(), column, value)
            signs = np.where(signs == 0, found, signs)
        return signs

    def _beyond(self, bound: Key, *, above: bool) -> SparkColumn:
        """Keys behind *bound*, where *above*; else up to and with it."""
        from pyspark.sql import functions as F  # noqa: N812 Spark's own custom

        pairs = [
            (F.col(physical_name(column.id)), F.expr(_literal(column, value)))
            for column, value in zip(self.columns, bound, strict=True)
        ]
        held, value = pairs[-1]
        condition = held > value if above else held <= value
        for held, value in reversed(pairs[:-1]):
            condition = ((held > value) if above else (held < value)) | ((held == value) & condition)
        # The first column alone leads to files, by their statistics.
        held, value = pairs[0]
        return condition if len(pairs) == 1 else condition & ((held >= value) if above else (held <= value))

    def _refuse_nulls(self, names: Sequence[str]) -> None:
        if names:
            raise self.refused(self.table, f"NULL in {', '.join(names)}, for values that they cannot hold")


def _signs_of(values: pa.Array, column: Column, bound: KeyValue) -> Signs:
    found = compared_here(values, column.type, bound)
    assert found is not None  # noqa: S101 its order is plain
    return found


def _literal(column: Column, value: object) -> str:
    """SQL of Spark's that means *value*."""
    kind, text = column.type.name, str(value)
    if kind in INTEGER_TYPES or kind == "year":
        return str(int(text))
    if kind == "decimal":
        # Of the column's own type: Spark brings two types to one that can have fewer digits behind the point than the column.
        return f"CAST('{text}' AS {delta_type(column)})"
    if kind == "time":
        return str(time_us(text))
    if kind in ("binary", "varbinary"):
        return f"X'{text}'"
    if kind == "timestamp":
        return f"TIMESTAMP'{text}Z'"
    return f"{'DATE' if delta_type(column) == 'date' else 'TIMESTAMP_NTZ'}'{text}'"


def _is_of_calendar(text: str) -> bool:
    try:
        date.fromisoformat(text[:10])
    except ValueError:
        return False
    return True
