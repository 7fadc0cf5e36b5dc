"""How often mirrors and histories apply what their changelogs have: with every plan, or what several brought at once.

What waits follows from the plans that the lake has recorded. A plan with which a changelog goes on and the table's other
targets do not leaves its rows to a later one, which reads them back from the changelog. So nothing else is kept for it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from historian.plans.plans import Plan, PlannedVersion
from sinks.contract.locations import TableLocation, TableLocations
from sinks.contract.parts import Part, links_of
from sinks.delta.lake.state_rows import Links, RecordedPlan
from sinks.rows.variant import is_variant

__all__ = [
    "DEFERRED_SEGMENT",
    "Deferral",
    "Deferrals",
    "DeferredPart",
    "PlanDeferral",
    "followed",
    "late_targets",
    "noted",
    "turn_of",
    "waiting",
]

DEFERRED_SEGMENT = -1
"""The segment, in a plan, of rows of earlier ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Deferral:
    """How far mirror and history of a table are behind its changelog.

    Attributes:
        taken_us: when the plan was made with which they last took up rows; None: that is not known.
        table_id: whose rows wait; 0: none do.
        first, last: the first and the last plan whose rows wait.
        rows: how many.
    """

    taken_us: int | None = None
    table_id: int = 0
    first: int = 0
    last: int = 0
    rows: int = 0


Deferrals = Mapping[str, Deferral]
"""By the changelog's directory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeferredPart:
    """Rows that a changelog has and that the table's other targets apply in a plan.

    Attributes:
        changelog: its directory.
        part: without its rows; the location is the table's without the changelog.
        rows: of earlier plans.
        own_rows: of the plan itself, in the changelog behind those.
    """

    changelog: str
    part: Part
    rows: int
    own_rows: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanDeferral:
    """What a plan does, in this order.

    Attributes:
        before: what is applied before the plan's own parts, since those change more than rows.
        own: the plan's parts; where their rows wait or are applied afterwards, into the changelog alone.
        after: what is applied with the plan's own rows.
    """

    own: tuple[Part, ...]
    before: tuple[DeferredPart, ...] = ()
    after: tuple[DeferredPart, ...] = ()

    def links(self) -> dict[str, int]:
        """See :func:`sinks.contract.parts.links_of`."""
        return links_of([*(take.part for take in self.before), *self.own, *(take.part for take in self.after)])


@dataclass(frozen=True, slots=True, kw_only=True)
class _Group:
    """A table with rows in a plan, or with some that wait."""

    location: TableLocation
    own: tuple[Part, ...]
    deferral: Deferral
    is_named: bool
    """Whether the plan says of the table that it stops, reads it again, or repairs it."""

    @property
    def holds_whole_rows(self) -> bool:
        """Whether rows read the same from the changelog as from the log."""
        snapshots = [version.snapshot for part in self.own for version in part.versions if version.snapshot is not None]
        variant = any(is_variant(column.type) for snapshot in snapshots for column in snapshot.columns)
        return not variant and not any(part.partial for part in self.own)

    def is_plain(self, plan: int) -> bool:
        """Whether the plan has nothing of the table but rows, all under the version that was in force before it."""
        if not self.own:
            return not self.is_named
        part = self.own[0]
        in_force = len(self.own) == 1 and [version.place for version in part.versions] == [None]
        return in_force and self.holds_whole_rows and part.location.since != plan and not self.is_named


def late_targets(location: TableLocation) -> tuple[str, ...]:
    """The directories of a table that can be behind its changelog; () of tables that are one in the lake."""
    if not location.changelog or location.is_replaced or location.shards:
        return ()
    return tuple(filter(None, (location.mirror, location.history)))


def followed(
    deferrals: Deferrals, locations: TableLocations, plans: Iterable[RecordedPlan]
) -> Iterator[tuple[RecordedPlan, Deferrals]]:
    """Each of *plans*, in order, with the stands after it, which the next one changes; *locations* as after the last one."""
    after = dict(deferrals)
    by_directory: dict[str, list[TableLocation]] = {}
    for location in locations.values():
        targets = late_targets(location)
        for directory in (location.changelog, *targets) if targets else ():
            by_directory.setdefault(directory, []).append(location)
    for plan in plans:
        concerned = {
            location.table_id: location for directory in plan.links for location in by_directory.get(directory, ())
        }
        for location in concerned.values():
            if any(target in plan.links for target in late_targets(location)):
                after[location.changelog] = Deferral(taken_us=plan.made_us)
            elif rows := plan.rows.get(location.table_id, 0):
                held = after.get(location.changelog, Deferral())
                after[location.changelog] = Deferral(
                    taken_us=held.taken_us,
                    table_id=location.table_id,
                    first=held.first or plan.number,
                    last=plan.number,
                    rows=held.rows + rows,
                )
        yield plan, after


def noted(deferrals: Deferrals, locations: TableLocations, plans: Iterable[RecordedPlan]) -> Deferrals:
    """The stands after *plans*, in order; *locations* are those after the last one."""
    return next((after for _, after in deque(followed(deferrals, locations, plans), maxlen=1)), deferrals)


def waiting(deferrals: Deferrals, locations: TableLocations, number: int = 0) -> dict[str, Deferral]:
    """The stands of tables with rows that wait, and that are written; those that stop in plan *number* still are."""
    found = {}
    for changelog, deferral in deferrals.items():
        location = locations.get(deferral.table_id)
        if not deferral.rows or location is None or location.changelog != changelog or not late_targets(location):
            continue
        if not location.stopped or location.stopped_in == number:
            found[changelog] = deferral
    return found


def turn_of(
    plan: Plan,
    parts: Sequence[Part],
    locations: TableLocations,
    deferrals: Deferrals,
    *,
    stops: Collection[int],
    every_us: Callable[[TableLocation], int],
    recorded: Links | None,
    version_of: Callable[[Deferral], PlannedVersion],
) -> PlanDeferral:
    """What *plan* does.

    A plan without any log applies all that waits. Else a table's rows are due when as much time as is said of it has passed
    since the plan that it last took some up with. They are due too where the plan changes more of it
    than rows. With those that are due all go that have the same `mirror_every` or a shorter one. So the one with the longest takes
    the others with it, and behind it all targets hold the same position.

    Args:
        parts: of the plan, of tables that go on.
        locations: after the plan.
        deferrals: before the plan.
        stops: ids of tables that stop in the plan.
        every_us: the time that is said of a table; 0: its rows do not wait.
        recorded: what the lake has recorded for the plan, where it comes again: nothing is decided anew.
        version_of: the version, as the lake sees it, under which waiting rows were written.
    """
    groups = _groups(plan, parts, locations, deferrals, stops)
    if recorded is not None:
        takes = {at for at, g in groups.items() if any(target in recorded for target in late_targets(g.location))}
    else:
        every = {at: every_us(group.location) for at, group in groups.items()}
        due = {at for at, group in groups.items() if _is_due(group, plan, every[at])}
        longest = max((every[at] for at in due if groups[at].holds_whole_rows), default=0)
        takes = {at for at in groups if at in due or every[at] <= longest}
    alone: set[str] = set()
    shifted: set[str] = set()
    before: list[DeferredPart] = []
    after: list[DeferredPart] = []
    for at, group in groups.items():
        if at not in takes:
            alone.add(at)
        elif group.deferral.rows and group.is_plain(plan.number):
            alone.add(at)
            after.append(_taken(at, group, plan, version_of))
        elif group.deferral.rows:
            shifted.add(at)
            before.append(_taken(at, replace(group, own=()), plan, version_of))
    own = [
        _own(part, alone=part.location.changelog in alone, shifted=part.location.changelog in shifted) for part in parts
    ]
    return PlanDeferral(own=tuple(own), before=tuple(before), after=tuple(after))


def _own(part: Part, *, alone: bool, shifted: bool) -> Part:
    if alone:
        return replace(part, location=replace(part.location, mirror="", history=""))
    return replace(part, index=part.index + 1) if shifted else part


def _groups(
    plan: Plan, parts: Sequence[Part], locations: TableLocations, deferrals: Deferrals, stops: Collection[int]
) -> dict[str, _Group]:
    own: dict[str, list[Part]] = {}
    for part in parts:
        if late_targets(part.location):
            own.setdefault(part.location.changelog, []).append(part)
    waits = {at: s for at, s in waiting(deferrals, locations, plan.number).items() if s.table_id not in stops}
    # With its first plan a repair brings targets to their changelog by itself.
    repaired = {t.table_id for t in plan.tables if t.repairs_anew and t.copied.after is None}
    named = {t.table_id for t in plan.tables if t.repairs or t.quarantine is not None or t.behind is not None}
    groups = {}
    for at in [*own, *(at for at in waits if at not in own)]:
        location = locations[waits[at].table_id] if at in waits else own[at][-1].location
        ids = {location.table_id, *(part.location.table_id for part in own.get(at, ()))}
        held = None if ids & repaired else waits.get(at)
        deferral = held or Deferral(taken_us=deferrals[at].taken_us if at in deferrals else None)
        groups[at] = _Group(
            location=location, own=tuple(own.get(at, ())), deferral=deferral, is_named=bool(ids & named)
        )
    return groups


def _is_due(group: _Group, plan: Plan, every_us: int) -> bool:
    taken_us = group.deferral.taken_us
    if not every_us or taken_us is None or plan.start == plan.end or not group.is_plain(plan.number):
        return True
    # A clock that was put back must not keep rows waiting.
    return not 0 <= plan.system_time_us - taken_us < every_us


def _taken(changelog: str, group: _Group, plan: Plan, version_of: Callable[[Deferral], PlannedVersion]) -> DeferredPart:
    own = group.own[0] if group.own else None
    version = version_of(group.deferral) if own is None else own.versions[0]
    part = Part(
        plan=plan.number,
        location=replace(group.location, changelog=""),
        segment=DEFERRED_SEGMENT,
        index=0 if own is None else own.index + 1,
        versions=(version,),
        base=version.snapshot,
        base_version=version.version,
        chunks={},
    )
    return DeferredPart(
        changelog=changelog, part=part, rows=group.deferral.rows, own_rows=0 if own is None else own.rows
    )
