"""What the rows of a target show of changes that a statement made to the table's rows without row events.

A server that is not strict makes 0 of a NULL in a column of a new primary key. One that is told to IGNORE them takes rows of one new
key away, and so does a tool for online changes that copies rows. A column that becomes AUTO_INCREMENT gets numbers for 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from historian.changelog.operations import physical_name
from historian.errors import TableStopped
from historian.plans.segments import numbers
from sinks.contract.parts import Part
from sinks.delta.log.target import Target
from sinks.delta.rewrite.few_rows import few_rows
from sinks.delta.rewrite.spark_rows import present_rows
from sinks.delta.schema.stops import ROWS_UNSEEN

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["check_unlogged"]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """Ids of columns of a target.

    Attributes:
        key: of the new key, those that rows from before have values in; (): the key is the same.
        numbered: that become AUTO_INCREMENT.
    """

    key: tuple[int, ...]
    numbered: tuple[int, ...]

    @property
    def all(self) -> list[int]:
        """Each once."""
        return list(dict.fromkeys((*self.key, *self.numbered)))


def check_unlogged(spark: SparkSession, part: Part, target: Target) -> None:
    """Reads the rows that a mirror shows, or that are open in a history, where *part* begins with such a statement.

    Raises:
        TableStopped: several of them have one new key, one has NULL in it, or 0 or NULL in a column that becomes AUTO_INCREMENT.
    """
    asked = _asked(part, target)
    if not asked.all:
        return
    few = few_rows(target, asked.all, asked.all, ())
    found = _among(few, asked) if few is not None else _by_spark(spark, target, asked)
    if found is not None:
        names = part.last or part.base
        assert names is not None  # noqa: S101 it has columns
        told = {column.name: found[physical_name(column.id)] for column in names.columns if column.id in asked.all}
        raise TableStopped(
            ROWS_UNSEEN,
            where=f"{part.location.name}: {part.versions[0].statement}",
            expected="rows that differ in the new key, without NULL in it" if asked.key else "no row to be numbered",
            found=", ".join(f"{name} = {value}" for name, value in told.items()),
            next_step="rebuild the table's targets from a new start",
        )


def _asked(part: Part, target: Target) -> _Asked:
    base, last = part.base, part.last
    if base is None or last is None or part.clears is not None or not target.exists:
        return _Asked(key=(), numbered=())
    schema = target.view.schema()
    held = {column.id: column for column in base.columns if schema.by_id(column.id) is not None}
    key = last.primary_key if last.primary_key != base.primary_key else ()
    return _Asked(
        key=tuple(column_id for column_id in key if column_id in held),
        numbered=tuple(c.id for c in last.columns if c.id in held and numbers(held[c.id], c)),
    )


def _among(rows: pa.Table, asked: _Asked) -> dict[str, Any] | None:
    wrong = [pc.is_null(rows.column(physical_name(i))) for i in asked.all]
    wrong += [pc.fill_null(pc.equal(rows.column(physical_name(i)), 0), False) for i in asked.numbered]
    found = rows.filter(reduce(pc.or_, wrong)).slice(0, 1).to_pylist()
    if asked.key and not found:
        counted = rows.group_by([physical_name(i) for i in asked.key]).aggregate([([], "count_all")])
        twice = counted.filter(pc.greater(counted.column("count_all"), 1)).slice(0, 1).to_pylist()
        found = [{**dict.fromkeys(rows.schema.names), **row} for row in twice]
    return found[0] if found else None


def _by_spark(spark: SparkSession, target: Target, asked: _Asked) -> dict[str, Any] | None:
    from pyspark.sql import functions as F  # noqa: N812 Spark's own custom

    rows = present_rows(spark, target, asked.all)
    wrong = [F.col(physical_name(i)).isNull() for i in asked.all]
    wrong += [F.col(physical_name(i)) == 0 for i in asked.numbered]
    found = rows.where(reduce(lambda a, b: a | b, wrong)).take(1)
    if asked.key and not found:
        found = rows.groupBy(*map(physical_name, asked.key)).count().where("count > 1").take(1)
    return {**dict.fromkeys(map(physical_name, asked.all)), **found[0].asDict()} if found else None
