"""A plan, its chunks and the locations of its tables as a lake with rules sees them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from historian.errors import ConfigError, TableStopped
from historian.names import TableName
from historian.plans.plans import Plan, PlannedTable, PlannedVersion
from historian.schema.snapshots import Snapshot
from historian.values.arrow_types import arrow_type
from sinks.contract.chunks import Chunks
from sinks.contract.locations import TableLocation, TableLocations
from sinks.shaping.bindings import Bindings, bind
from sinks.shaping.chunks import Evaluation, ShapedChunks
from sinks.shaping.expressions import Expressions
from sinks.shaping.rules import NO_RULES, Rules
from sinks.shaping.tables import NEXT, TableShape, misfits, shape_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Shaped", "ShapedPlan", "Shaper", "bound_locations"]

_RulesOf = Callable[[TableName], Rules]
_Misfit = tuple[PlannedVersion, str, str]
"""The version that rules do not fit, the key that they stand under, and why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shaped:
    """What is written of a plan.

    Attributes:
        plan: with schemas and edits as the lake sees them.
        source: with those of the source.
        chunks: of the plan, in the shape of the lake.
        stops: why tables stop in the plan, by table id: the rules do not fit them, or have no value for a row.
        release: gives back the memory that the chunks take.
    """

    plan: Plan
    source: Plan
    chunks: Chunks
    stops: Mapping[int, str]
    release: Callable[[], Any]


def bound_locations(locations: TableLocations, plan: Plan, rules_of: _RulesOf) -> TableLocations:
    """See :func:`sinks.shaping.bindings.bind`; *rules_of* takes the names under which tables came into the lake."""
    concerned = (table.table_id for table in plan.tables if table.table_id in locations)
    rules = {number: rules_of(locations[number].came_as) for number in concerned}
    return bind(locations, plan, {n: one for n, one in rules.items() if one != NO_RULES or locations[n].columns})


@dataclass(frozen=True, slots=True, kw_only=True)
class ShapedPlan:
    """A plan as the lake sees it.

    Attributes:
        plan: with its schemas and edits.
        shapes: by table id, of the tables that go on.
        stops: by table id, why the others do not.
        problems: all that does not fit, each with its place in the configuration.
    """

    plan: Plan
    shapes: Mapping[int, TableShape]
    stops: Mapping[int, str]
    problems: tuple[str, ...]


class Shaper:
    """Shapes the plans of one lake, one after the other.

    Args:
        spark: None: expressions are left out.
        rules_of: the rules of the table that came into the lake under a name.
    """

    def __init__(self, spark: SparkSession | None, rules_of: _RulesOf) -> None:
        self._rules_of = rules_of
        self._spark = spark
        self._expressions = None if spark is None else Expressions(spark)

    def shaped(self, plan: Plan, locations: TableLocations, chunks: Chunks, *, first: bool) -> Shaped:
        """What is written of *plan*.

        Args:
            locations: after the plan, bound.
            chunks: of the plan.
            first: whether the lake is new, so that rules which do not fit a table are the configuration's mistake.

        Raises:
            ConfigError: with everything that does not fit, where *first*.
        """
        seen = self.seen(plan, locations)
        if first and seen.problems:
            raise ConfigError("a sink's tables do not fit what is said of their columns", problems=seen.problems)
        # Of a table that does not go on not even a dead letter is to be written.
        known = {table.table_id for table in plan.tables}.intersection(locations)
        hidden = {table_id for table_id in known if locations[table_id].columns} - set(seen.shapes)
        if self._spark is None or not (seen.shapes or hidden):
            return Shaped(plan=plan, source=plan, chunks=chunks, stops=seen.stops, release=lambda: None)
        written = {
            (table.table_id, version.version): version.snapshot
            for table in plan.tables
            for version in table.versions
            if version.snapshot is not None
        }
        by_expression = {n: shape for n, shape in seen.shapes.items() if shape.bindings.rules.has_expressions}
        evaluation = Evaluation(self._spark, chunks, by_expression, written)
        return Shaped(
            plan=seen.plan,
            source=plan,
            chunks=ShapedChunks(chunks, seen.shapes, written, hidden, evaluation.chunks),
            stops={**seen.stops, **evaluation.stops},
            release=evaluation.close,
        )

    def seen(self, plan: Plan, locations: TableLocations) -> ShapedPlan:
        """*plan* as the lake sees it; tables that stop are as in the source."""
        tables: dict[int, PlannedTable] = {}
        shapes: dict[int, TableShape] = {}
        stops: dict[int, str] = {}
        problems: list[str] = []
        for table in plan.tables:
            location = locations.get(table.table_id)
            # A stop takes hold behind the plan that it happened in, so that a replay counts the same rows.
            if location is None or not location.columns or location.stopped_in not in (0, plan.number):
                continue
            shape = self._shape(table, location)
            found = list(self._misfits(table, shape))
            problems += [_problem(location, *misfit) for misfit in found]
            try:
                if found:
                    raise _stop(location, found)
                tables[table.table_id] = shape_table(table, shape)
                shapes[table.table_id] = shape
            except TableStopped as error:
                stops[table.table_id] = str(error)
        return ShapedPlan(
            plan=replace(plan, tables=tuple(tables.get(table.table_id, table) for table in plan.tables)),
            shapes=shapes,
            stops=stops,
            problems=tuple(dict.fromkeys(problems)),
        )

    def _shape(self, table: PlannedTable, location: TableLocation) -> TableShape:
        bindings = Bindings.of(location, self._rules_of(location.came_as))
        snapshot = next((v.snapshot for v in table.versions if v.snapshot is not None), None)
        by_key = bool(location.mirror or location.history)
        shape = TableShape(bindings=bindings, by_key=by_key, key=location.key_columns)
        if self._expressions is None or snapshot is None:
            return shape
        computed = self._expressions.computed(snapshot, bindings)
        return replace(shape, computed=computed, uses=self._expressions.uses(snapshot, bindings))

    def _misfits(self, table: PlannedTable, shape: TableShape) -> Iterator[_Misfit]:
        before: Snapshot | None = None
        for version in table.versions:
            snapshot = version.snapshot
            if snapshot is None:
                continue
            for where, reason in misfits(snapshot, shape):
                yield version, where, reason
            if self._expressions is None:
                continue
            for where, reason in self._expressions.misfits(snapshot, shape.bindings):
                yield version, where, reason
            if before is not None:
                for number in sorted(self._expressions.uses(before, shape.bindings)):
                    old, new = before.column_by_id(number), snapshot.column_by_id(number)
                    if old is not None and new is not None and arrow_type(old.type) != arrow_type(new.type):
                        reason = (
                            f"{old.name}, of which expressions take the values, changes from {old.type} to {new.type}"
                        )
                        yield version, "compute", reason
            before = snapshot


def _problem(location: TableLocation, version: PlannedVersion, where: str, reason: str) -> str:
    name = location.name if version.snapshot is None else str(version.snapshot.name)
    return f"{reason} @ $.tables of {name}: {where}"


def _stop(location: TableLocation, found: list[_Misfit]) -> TableStopped:
    version = found[0][0]
    return TableStopped(
        "a table does not fit what the configuration says of its columns",
        where=f"{location.name}{': ' + version.statement if version.statement else ''}",
        expected="rules that fit it",
        found="; ".join(dict.fromkeys(f"{where}: {reason}" for _, where, reason in found)),
        next_step=NEXT,
    )
