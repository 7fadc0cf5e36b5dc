"""The rows of targets with given values in some columns, where a repair compares those alone."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow as pa
import pyarrow.compute as pc

from historian.changelog.operations import physical_name
from historian.changelog.row_images import Mask
from historian.plans.key_ranges import KeyValue
from historian.plans.plans import PlannedTable
from historian.plans.row_values import RowValues, has_plain_values, held_values, rows_with
from historian.schema.snapshots import Column, ColumnType, Snapshot
from historian.values.arrow_types import arrow_type
from sinks.contract.locations import TableLocation
from sinks.delta.log.columns import delta_type
from sinks.delta.log.commits import HeldFile
from sinks.delta.log.pruning import bounds_in
from sinks.delta.repairs.compared import ComparedRows, marks_of

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame

__all__ = ["RowsOfValues", "rows_of_values"]


def rows_of_values(table: PlannedTable, location: TableLocation, last: Snapshot) -> RowsOfValues:
    """The rows that the plan compares.

    Args:
        table: its part of a plan that repairs such rows alone.
        last: its schema behind the plan, as the targets have it.

    Raises:
        TableStopped: the targets' columns do not tell which rows those are.
    """
    copy, source = table.copy, table.versions[-1].snapshot
    assert copy is not None and source is not None  # noqa: S101, PT018 it is repaired
    if last.primary_key != copy.key:
        raise RowsOfValues.refused(last, "another key than the source's")
    marks = marks_of(location)
    found: dict[int, Column] = {}
    for column_id in dict.fromkeys(column_id for each in copy.only for column_id in each.columns):
        column, theirs = last.column_by_id(column_id), source.column_by_id(column_id)
        if column is None or theirs is None or marks.get(column_id):
            name = str(column_id) if theirs is None else theirs.name
            raise RowsOfValues.refused(last, f"none, or other values, in {name}")
        if column.type != theirs.type or not has_plain_values(column.type):
            raise RowsOfValues.refused(last, f"another type of {column.name}")
        found[column_id] = column
    return RowsOfValues(table=last, columns=tuple(found.values()), wanted=copy.only)


@dataclass(frozen=True, slots=True, kw_only=True)
class RowsOfValues(ComparedRows):
    """Rows of *table* that one of *wanted* tells, by *columns*; rows come under physical names."""

    table: Snapshot
    columns: tuple[Column, ...]
    wanted: tuple[RowValues, ...]

    expected: ClassVar[str] = "the source's key and foreign keys in its targets, with the source's values"
    others: ClassVar[str] = "rows that the source has among those that are compared, with other values"

    def may_hold(self, file: HeldFile) -> bool:
        """Whether a file can hold such rows, by what statistics say of the columns."""
        statistics = json.loads(file.statistics, parse_float=Decimal)
        return any(self._may_have(statistics, each) for each in self.wanted)

    def of_frame(self, rows: DataFrame) -> DataFrame:
        """As :meth:`of`: by conditions on the columns, so that files which hold no such rows are left out."""
        return rows.where(reduce(or_, map(self._condition, self.wanted)))

    def check_frame(self, rows: DataFrame) -> None:
        """As :meth:`check`."""
        from pyspark.sql import functions as F  # noqa: N812 Spark's own custom

        is_one = reduce(or_, (F.coalesce(self._condition(each), F.lit(False)) for each in self.wanted))
        if not rows.where(~is_one).isEmpty():
            raise self.refused(self.table, self.others)

    def _inside(self, rows: pa.Table) -> Mask:
        return rows_with(rows, self.wanted, self._types)

    @property
    def _types(self) -> dict[int, ColumnType]:
        return {column.id: column.type for column in self.columns}

    def _may_have(self, statistics: Mapping[str, Any], wanted: RowValues) -> bool:
        names = [physical_name(column_id) for column_id in wanted.columns]
        counts = statistics.get("nullCount", {})
        if wanted.nulls and all(counts.get(name, 1) for name in names):
            return True
        if not wanted.values:
            return False
        return all(self._meets(statistics, wanted, at) for at in range(len(names)))

    def _meets(self, statistics: Mapping[str, Any], wanted: RowValues, at: int) -> bool:
        kind, name = self._types[wanted.columns[at]], physical_name(wanted.columns[at])
        if statistics.get("numRecords", -1) == statistics.get("nullCount", {}).get(name):
            return False
        bounds = bounds_in(statistics, name, arrow_type(kind))
        if bounds is None:
            return True
        values = pa.array(held_values(wanted, at, kind), arrow_type(kind))
        ends = pa.array(bounds, arrow_type(kind))
        inside = pc.and_(pc.greater_equal(values, ends[0]), pc.less_equal(values, ends[1]))
        return bool(pc.any(inside).as_py())

    def _condition(self, wanted: RowValues) -> SparkColumn:
        """It is NULL or false of other rows."""
        from pyspark.sql import functions as F  # noqa: N812 Spark's own custom

        by_id = {column.id: column for column in self.columns}
        columns = [by_id[column_id] for column_id in wanted.columns]
        names = [physical_name(column_id) for column_id in wanted.columns]
        terms = []
        if wanted.values:
            keys = [
                [_literal(column, value) for column, value in zip(columns, key, strict=True)] for key in wanted.values
            ]
            lists = [
                f"{name} IN ({', '.join(dict.fromkeys(values))})"
                for name, values in zip(names, zip(*keys, strict=True), strict=True)
            ]
            if len(names) > 1:
                # The columns one by one lead to files, by their statistics.
                lists.append(f"({', '.join(names)}) IN ({', '.join(map(_together, keys))})")
            terms.append(f"({' AND '.join(lists)})")
        if wanted.nulls:
            terms.append(f"({' AND '.join(f'{name} IS NULL' for name in names)})")
        return F.expr(" OR ".join(terms) or "false")


def _together(values: Sequence[str]) -> str:
    return f"({', '.join(values)})"


def _literal(column: Column, value: KeyValue) -> str:
    """SQL of Spark's that means *value*, in the type of the column: no other compares within a struct."""
    if column.type.name in ("binary", "varbinary"):
        return f"X'{value}'"
    return f"CAST('{value}' AS {delta_type(column)})"
