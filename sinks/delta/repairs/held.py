"""The rows that a table's targets held before a plan, brought to the schema that the plan's edits lead to.

They are read from the versions that the targets had then, so that a plan that comes again compares with the same rows.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from historian.changelog.operations import physical_name
from historian.errors import TableStopped
from historian.schema.snapshots import Column, Snapshot
from historian.values.arrow_types import arrow_type
from historian.values.texts import initial_scalar
from sinks.contract.parts import Part
from sinks.delta.log.columns import delta_type
from sinks.delta.log.target import Target
from sinks.delta.log.time_travel import view_before
from sinks.delta.repairs.compared import ComparedRows
from sinks.delta.rewrite.few_rows import present_tables
from sinks.delta.rewrite.held_rows import WantedRows, widened
from sinks.delta.rewrite.spark_rows import present_rows
from sinks.delta.schema.decisions import EvolvedPart
from sinks.delta.targets.changelog import ChangelogPart, held_live, next_offset
from sinks.delta.targets.literals import initial_literal
from sinks.delta.targets.retract import folded

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["as_before", "held_frame", "held_tables", "telling"]


def as_before(target: Target, first: int) -> Target | None:
    """*target* as it was before it had the transaction version *first*; None where there was none, or it held nothing.

    Raises:
        ChainBroken: its log does not reach back there.
    """
    view = view_before(target, first)
    return None if view is None else target if view is target.view else target.as_of(view)


def telling(targets: Sequence[Target], shown: EvolvedPart) -> Target | None:
    """Which of a table's targets tells the rows that it has, at the least cost; None where there is none.

    A mirror with rows that its table has not any more does not.
    """
    kinds = {target.kind: target for target in targets}
    mirror = kinds.get("mirror") if shown.mirror_is_table else None
    return mirror or kinds.get("changelog") or kinds.get("history") or kinds.get("mirror")


def held_tables(
    target: Target, last: Snapshot, filled: Collection[int], keys: ComparedRows | None = None
) -> Callable[[], Iterator[pa.Table]] | None:
    """The rows under *last*, some at a time, as often as it is called; None where Spark must read them.

    Args:
        filled: ids of columns that the plan adds and that rows from before read a default in.
        keys: of which rows alone are wanted.
    """
    if target.kind == "changelog":
        return None
    schema = target.view.schema()
    there = {column.id for column in last.columns if schema.by_id(column.id) is not None}
    may_hold = None if keys is None else keys.may_hold
    tables = present_tables(target, there, None, may_hold, _wanted_rows(keys, last, there))
    if tables is None:
        return None
    names = [physical_name(column.id) for column in last.columns]

    def under_last() -> Iterator[pa.Table]:
        for rows in tables():
            arrays = [
                widened(rows.column(physical_name(column.id)), arrow_type(column.type))
                if column.id in there
                else pa.chunked_array([_absent(column, filled, rows.num_rows)])
                for column in last.columns
            ]
            found = pa.table(arrays, names=names)
            yield found if keys is None else keys.of(found)

    return under_last


def _wanted_rows(keys: ComparedRows | None, last: Snapshot, there: Collection[int]) -> WantedRows | None:
    """Row groups without such rows are not read, but for the few columns that tell them."""
    columns = [] if keys is None else [column for column in last.columns if physical_name(column.id) in keys.names]
    if keys is None or not all(column.id in there for column in columns):
        return None

    def has_some(rows: pa.Table) -> bool:
        arrays = [widened(rows.column(physical_name(c.id)), arrow_type(c.type)) for c in columns]
        try:
            return bool(keys.of(pa.table(arrays, names=[physical_name(c.id) for c in columns])).num_rows)
        except TableStopped:
            return True  # The rows themselves say so, if they are present ones.

    return WantedRows(names=[physical_name(column.id) for column in columns], has_some=has_some)


def held_frame(spark: SparkSession, target: Target, first: Part, last: Snapshot, filled: Collection[int]) -> DataFrame:
    """The rows under *last*.

    Args:
        target: that tells them.
        first: the part before which they are wanted, as its table's targets take it.
        last, filled: as of :func:`held_tables`.
    """
    if target.kind == "changelog":
        base = first.base
        assert base is not None  # noqa: S101 it holds rows
        view = target.view
        keys, live_from = held_live(view)
        work = ChangelogPart(
            part=first,
            target=target,
            schema=view.schema(),
            first_offset=next_offset(view),
            keys=keys,
            live_from=live_from,
        )
        there = {column.id for column in base.columns}
        rows = folded(spark, work, base)
    else:
        schema = target.view.schema()
        there = {column.id for column in last.columns if schema.by_id(column.id) is not None}
        rows = present_rows(spark, target, sorted(there))
    return rows.select(*(_under(column, there, filled) for column in last.columns))


def _absent(column: Column, filled: Collection[int], count: int) -> pa.Array:
    if column.id in filled:
        return pa.repeat(initial_scalar(column), count)
    return pa.nulls(count, arrow_type(column.type))


def _under(column: Column, there: Collection[int], filled: Collection[int]) -> SparkColumn:
    from pyspark.sql import functions as F  # noqa: N812 Spark's own custom

    name = physical_name(column.id)
    value = F.col(name) if column.id in there else initial_literal(column) if column.id in filled else F.lit(None)
    return value.cast(delta_type(column)).alias(name)
