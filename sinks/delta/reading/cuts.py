"""Consistent cuts: tables of a lake at one position of the source, each at the Delta version that holds it.

A target's commits carry the plans that it holds, so nothing is recorded for this. A cut is found for every plan whose
Delta versions are kept, beside any run, whatever was compacted or vacuumed since.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from historian.errors import ConfigError, PositionAhead, PositionExpired, SinkError, UnknownTable
from historian.history.prefix import covers
from historian.plans.plans import Plan
from historian.positions import LogPosition, parse_position
from sinks.contract.locations import TableLocation, TableLocations
from sinks.delta.lake.deferral import Deferrals, followed, noted
from sinks.delta.lake.state import LakeState
from sinks.delta.lake.state_rows import PLANS
from sinks.delta.log.time_travel import version_holding
from sinks.delta.settings import KINDS, DeltaSettings
from sinks.delta.writing.sink import DeltaSink

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["ConsistentCut", "CutTable", "consistent_cut"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CutTable:
    """One target in a cut: the source table's ``name`` there, its ``kind``, and the Delta ``version`` of what is at ``path``."""

    name: str
    kind: str
    path: str
    version: int


class _Frames(Mapping[str, "DataFrame"]):
    """Table name to DataFrame, read when asked for."""

    def __init__(self, spark: SparkSession, cut: ConsistentCut, kind: str) -> None:
        self._spark = spark
        self._cut = cut
        self._kind = kind
        self._tables = {table.name: table for table in cut.tables if table.kind == kind}

    def __getitem__(self, name: str) -> DataFrame:
        table = self._tables.get(name)
        if table is None:
            raise UnknownTable(
                f"the cut has no {self._kind} of that table",
                where=name,
                expected=f"one of {', '.join(self) or 'none'}",
                found=self._cut.left_out.get(name),
            )
        return self._spark.read.format("delta").option("versionAsOf", table.version).load(table.path)

    def __contains__(self, name: object) -> bool:
        return name in self._tables

    def __iter__(self) -> Iterator[str]:
        return iter(self._tables)

    def __len__(self) -> int:
        return len(self._tables)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsistentCut:
    """Tables of a lake that hold everything up to one position of the source, and nothing behind it.

    Attributes:
        plan: number of the plan that ends there.
        position: of the source.
        tables: the targets, by name and kind.
        left_out: tables that do not stand there, and why: stopped ones, and those that a mirror or history lacks rows of.
    """

    plan: int
    position: LogPosition
    tables: tuple[CutTable, ...]
    left_out: Mapping[str, str]
    _spark: SparkSession = field(repr=False, compare=False)

    @property
    def changelog(self) -> Mapping[str, DataFrame]:
        """The changelogs by ``database.table``, as the source called it there."""
        return _Frames(self._spark, self, "changelog")

    @property
    def mirror(self) -> Mapping[str, DataFrame]:
        """The mirrors."""
        return _Frames(self._spark, self, "mirror")

    @property
    def history(self) -> Mapping[str, DataFrame]:
        """The histories."""
        return _Frames(self._spark, self, "history")


def consistent_cut(
    spark: SparkSession, settings: DeltaSettings, *, at: str | LogPosition | None = None, kinds: Collection[str] = KINDS
) -> ConsistentCut:
    """See :func:`sinks.consistent`."""
    strange = sorted(set(kinds) - set(KINDS))
    if strange:
        raise ConfigError(
            "kinds of tables that no lake has",
            problems=tuple(f"expected one of {', '.join(KINDS)} (got {k!r})" for k in strange),
        )
    state = DeltaSink(spark, settings).reading()
    if state is None or state.last is None:
        raise SinkError(
            "there is no lake to read", where=settings.path or settings.catalog, next_step="`historian run` makes it"
        )
    plan, locations = _plan(state, at, kinds)
    links = state.links_until(plan.number)
    tables: list[CutTable] = []
    left_out: dict[str, str] = {}
    for location in sorted((h for h in locations.values() if not h.dropped), key=lambda h: h.name):
        if location.why_stopped is not None:
            left_out[location.name] = location.why_stopped
            continue
        if location.former_why and not location.mirror and not location.history:
            left_out[location.name] = location.former_why
        tables += [
            _table(state, plan, location, kind, links) for kind in KINDS if kind in kinds and getattr(location, kind)
        ]
    return ConsistentCut(plan=plan.number, position=plan.end, tables=tuple(tables), left_out=left_out, _spark=spark)


def _plan(state: LakeState, at: str | LogPosition | None, kinds: Collection[str]) -> tuple[Plan, TableLocations]:
    """The newest plan that every target holds, or the first one that takes in everything up to *at*; and the locations then.

    A plan is passed by whose rows a target of *kinds* applies with a later one.
    """
    last = state.last
    assert last is not None  # noqa: S101 asked before
    number = last.number if state.holds_last() else last.previous
    if not number:
        raise PositionAhead(
            "the lake's first plan is being written",
            where=state.path(""),
            next_step="ask again when the run has written it; `historian status` shows how far it is",
        )
    newest = _stored(state, number)
    wanted = None
    if at is not None:
        wanted = parse_position(at, newest.end.flavor) if isinstance(at, str) else at
        if not covers(newest.end, wanted):
            raise _ahead(wanted, f"{newest.end} held")
    recorded = [plan for plan in state.recorded_plans() if plan.number <= number]
    numbers = [
        plan.number
        for plan, deferrals in followed({}, state.locations, recorded)
        if not _waits(deferrals, state.locations, plan.number, kinds)
    ]
    first = 0 if wanted is None else bisect_left(numbers, True, key=lambda n: covers(_stored(state, n).end, wanted))
    for candidate in reversed(numbers) if wanted is None else numbers[first:]:
        locations = state.locations_after(candidate)
        if locations is None:
            raise _expired(state, _stored(state, candidate), "historian_tables")
        # Tables may have had other targets then than they have now.
        deferrals = noted({}, locations, (plan for plan in recorded if plan.number <= candidate))
        if not _waits(deferrals, locations, candidate, kinds):
            return _stored(state, candidate), locations
    raise _ahead(wanted or newest.end, "mirrors or histories that apply rows later (mirror_every)")


def _waits(deferrals: Deferrals, locations: TableLocations, number: int, kinds: Collection[str]) -> bool:
    """Whether a target of *kinds* lacks rows of a plan up to that one, and its table is written."""
    for deferral in deferrals.values():
        location = locations.get(deferral.table_id)
        late = location is not None and any(getattr(location, kind) for kind in kinds if kind != "changelog")
        if deferral.rows and location is not None and late and not 0 < location.stopped_in <= number:
            return True
    return False


def _ahead(wanted: LogPosition, found: str) -> PositionAhead:
    return PositionAhead("the lake does not hold that position yet", where=str(wanted), found=found)


def _stored(state: LakeState, number: int) -> Plan:
    plan = state.plan(number)
    if plan is None:
        raise SinkError(
            "a plan is missing in the lake",
            where=state.path(""),
            expected=f"plan {number}",
            next_step=f"restore {PLANS} as it was, or read a later cut",
        )
    return plan


def _table(state: LakeState, plan: Plan, location: TableLocation, kind: str, links: Mapping[str, int]) -> CutTable:
    directory = getattr(location, kind)
    path = state.path(directory)
    newest = state.kernel.view(path)
    application = f"{state.connector}/{directory}"
    version = None if newest is None else version_holding(state.kernel, newest, application, links.get(directory, 0))
    if version is None:
        raise _expired(state, plan, directory)
    return CutTable(name=location.name, kind=kind, path=path, version=version)


def _expired(state: LakeState, plan: Plan, directory: str) -> PositionExpired:
    return PositionExpired(
        "a table is not kept as it was at that position",
        where=f"plan {plan.number} in {state.path(directory)}",
        expected="its Delta log back to there",
        found="a log that begins later, or a table that was put back or deleted",
        next_step="ask for a later position; delta.logRetentionDuration says how long logs are kept",
    )
