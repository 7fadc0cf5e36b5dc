"""Which directories of a sink a table's rows go to. Directories follow table ids and are never moved or deleted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Protocol

from historian.history.prefix import covers
from historian.names import TableName
from historian.plans.plans import Plan, PlannedTable, PlannedVersion
from historian.schema.edits import DropTable
from historian.schema.gaps import ResumeTable
from historian.schema.snapshots import Snapshot
from sinks.contract.decisions import Decisions
from sinks.contract.locations import TableLocation, TableLocations, location_holding

__all__ = [
    "OWN_NAMES",
    "SinkNames",
    "TargetNames",
    "assign",
    "is_name",
    "occupants",
    "stopped_locations",
    "target_name",
    "tells_apart",
]


class TargetNames(Protocol):
    """How a table's targets are called, with ``{database}`` and ``{table}``; None: there are none of that kind."""

    @property
    def shape(self) -> str:
        """What the targets keep for good, besides their names; see :attr:`TableLocation.shape`."""

    @property
    def changelog(self) -> str | None:
        """Name of a changelog."""

    @property
    def mirror(self) -> str | None:
        """Name of a mirror."""

    @property
    def history(self) -> str | None:
        """Name of a history."""

    @property
    def key(self) -> tuple[str, ...]:
        """Columns that tell rows apart in place of a primary key; none: the primary key does."""

    @property
    def keyless(self) -> str:
        """What a table without a key has: "changelog" alone, or a mirror by whole "rows" too."""


class SinkNames(Protocol):
    """How a sink calls the targets of each table."""

    def for_table(self, name: TableName) -> TargetNames:
        """What holds for the table that came into the sink under *name*."""


OWN_NAMES = frozenset(
    (
        "historian_plans",
        "historian_schema_changes",
        "historian_tables",
        "historian_dead_letters",
        "historian_repairs",
        "_historian",
    )
)
"""Directories that sinks keep for themselves, whatever letter case a store or a catalog tells apart."""

NO_TARGET = "a table without a key has neither mirror nor history, and this lake keeps no changelogs"

_KINDS = ("changelog", "mirror", "history")

_Decide = Callable[[TableLocation, Snapshot | None, PlannedVersion], TableLocation]
"""The location of a table after a version, with what is decided about its edits; None: the table was not there before."""


def assign(
    locations: TableLocations,
    plan: Plan,
    names: SinkNames,
    decide: _Decide = lambda location, before, version: location,  # noqa: ARG005
) -> TableLocations:
    """The locations after *plan*; pure, and the same when it is asked again.

    A table created again takes the directories of the dropped tables that last had its name and such directories. A renamed one
    keeps its own. One that gets its key later has neither mirror nor history, and its location says so. Mirror and history of one
    that goes on behind a stretch that nobody read are left as they were before, until the table is repaired. A table
    that begins anew gets fresh directories, ending in ``__r`` and the plan; those that it had stay as a location under a
    negative id.
    Where another table has a directory already, or the sink itself, the newcomer's end in ``__t`` and its id.
    """
    after = _Places(_replayed(locations, plan, names))
    in_force: dict[int, Snapshot | None] = {}
    for _, _, table, version in sorted(_events(plan, locations), key=lambda event: event[:2]):
        known = after.held.get(table.table_id)
        if known is None and version.snapshot is not None:
            after.put(decide(_newcomer(after, version.snapshot, plan.number, names), None, version))
        elif known is not None and not known.dropped and not known.stopped:
            gone = any(isinstance(e, DropTable) and e.table_id == table.table_id for e in version.edits)
            name = known.name if version.snapshot is None else str(version.snapshot.name)
            known = replace(known, name=name, dropped=plan.number if gone else 0)
            known = known if table.repairs_anew else _behind_gap(known, version, plan)
            known = _with_late_key(known, version, plan, names)
            after.put(decide(known, in_force.get(table.table_id), version))
        in_force[table.table_id] = version.snapshot
    for table in plan.tables:
        known = after.held.get(table.table_id)
        if known is not None:
            reason = "" if table.quarantine is None else table.quarantine.reason
            if known.quarantined != reason:
                after.put(replace(known, quarantined=reason))
    return after.held


class _Places:
    """Locations, and who has which directory, one change after the other: a plan may bring thousands of tables.

    Attributes:
        held: the locations, by table id.
    """

    def __init__(self, held: dict[int, TableLocation]) -> None:
        self.held = held
        self._taken: Counter[str] = Counter()
        self._lived_in: Counter[str] = Counter()
        self._dropped: dict[str, dict[int, TableLocation]] = {}
        self._counts = False

    def put(self, location: TableLocation) -> None:
        """In the place of what the table had."""
        before = self.held.get(location.table_id)
        self.held[location.table_id] = location
        if self._counts:
            if before is not None:
                self._count(before, -1)
            self._count(location, 1)

    def is_taken(self, directory: str) -> bool:
        """Whether a table has it, or had it before a gap."""
        self._begin()
        return self._taken[directory] > 0

    def dropped_as(self, name: str) -> list[TableLocation]:
        """Those of dropped tables of that name in whose directories nobody lives."""
        self._begin()
        found = self._dropped.get(name, {}).values()
        return [one for one in found if not any(self._lived_in[d] for d in one.directories)]

    def _begin(self) -> None:
        # Most plans bring no table, and need not look at those that they do not change.
        if not self._counts:
            self._counts = True
            for location in self.held.values():
                self._count(location, 1)

    def _count(self, location: TableLocation, by: int) -> None:
        for directory in (*location.directories, *location.previous):
            self._taken[directory] += by
        if not location.dropped or location.stopped:
            for directory in location.directories:
                self._lived_in[directory] += by
        if location.dropped:
            named = self._dropped.setdefault(location.name, {})
            if by > 0:
                named[location.table_id] = location
            else:
                del named[location.table_id]


def _replayed(locations: TableLocations, plan: Plan, sink: SinkNames) -> dict[int, TableLocation]:
    """The locations in which tables that *plan* reads again are written again."""
    after = dict(locations)
    retired = min(0, min(after, default=0))
    for table in plan.tables:
        location = after.get(table.table_id)
        if table.repairs_anew and location is not None and location.previous:
            location = after[table.table_id] = _come_back(location)
        if table.behind is None or location is None or plan.number in (location.since, location.stopped_in):
            continue
        # One that stopped in the first plan of all goes on too.
        if table.behind or (location.stopped and (table.repairs_anew or table.versions[-1].snapshot is None)):
            evolved = _undecided(location, table) if location.stopped else location.evolved
            after[table.table_id] = replace(location, stopped="", stopped_in=0, dropped=0, evolved=evolved)
            continue
        snapshots = [version.snapshot for version in table.versions if version.snapshot is not None]
        if not snapshots:
            continue
        retired -= 1
        why = location.stopped or location.former_why or "the table was read again"
        after[retired] = replace(
            location,
            table_id=retired,
            dropped=plan.number,
            stopped=f"replaced in plan {plan.number}: {why}",
            # Where it stopped before, it holds nothing from there on.
            stopped_in=location.stopped_in or plan.number,
        )
        fresh = _fresh(location, snapshots, plan.number, sink.for_table(location.came_as))
        source = location_holding(locations, table.table_id, table.seed) if table.seed else None
        after[table.table_id] = fresh if source is None else replace(fresh, evolved=_undecided(source, table))
    return after


def _come_back(location: TableLocation) -> TableLocation:
    """*location* with the mirror and the history that it had before a gap."""
    return replace(
        location,
        mirror=location.mirror or location.former_mirror,
        history=location.history or location.former_history,
        former_mirror="",
        former_history="",
        former_why="",
    )


def _fresh(location: TableLocation, snapshots: Sequence[Snapshot], plan: int, names: TargetNames) -> TableLocation:
    """*location* with fresh directories for what it has, or had before a gap, or lacked while its table had no key.

    Args:
        snapshots: that the table has in the plan, in order.
    """
    name = snapshots[-1].name
    by_key = bool(location.key or snapshots[0].primary_key)

    def fresh(pattern: str | None, wanted: object) -> str:
        return f"{_directory(pattern, name)}__r{plan}" if wanted else ""

    is_mirrored = by_key or names.keyless == "rows"
    after = replace(
        location,
        name=str(name),
        changelog=fresh(names.changelog, location.changelog),
        # A folded changelog is a mirror, but does not know from when to when its rows held.
        mirror=fresh(names.mirror, is_mirrored and (location.mirror or location.former_mirror or names.mirror)),
        history=fresh(names.history, by_key and (location.history or location.former_history)),
        since=plan,
        stopped="",
        stopped_in=0,
        evolved="",
    )
    lacks = _lacks(after, names)
    if lacks and not by_key:
        return after
    why = f"there is no {_both(lacks)}: the table had no primary key when it came. {_ANEW}" if lacks else ""
    return replace(after, former_mirror="", former_history="", former_why=why)


def _undecided(location: TableLocation, table: PlannedTable) -> str:
    """What was decided about the edits that the targets of *location* hold; about those of *table* it is decided anew."""
    first = table.versions[0]
    return Decisions.parse(location.evolved).until(first.version if first.place is None else first.version - 1).text()


def stopped_locations(locations: TableLocations, stops: Mapping[int, str], plan: int) -> TableLocations:
    """The locations with the tables in *stops*, by id, stopped in that plan for the reasons there; pure, and safe to repeat."""
    stopped = {
        table_id: replace(locations[table_id], stopped=reason, stopped_in=plan)
        for table_id, reason in stops.items()
        if not locations[table_id].stopped
    }
    return {**locations, **stopped} if stopped else locations


def occupants(plan: Plan, locations: TableLocations) -> list[list[PlannedTable]]:
    """The tables of *plan* by location; tables that have one location after each other stand in their order."""
    groups: dict[tuple[str, ...], list[PlannedTable]] = {}
    for table in sorted(plan.tables, key=lambda t: t.versions[0].version):
        location = locations.get(table.table_id)
        if location is not None:
            groups.setdefault(location.directories[:1], []).append(table)
    return list(groups.values())


def _events(plan: Plan, locations: TableLocations) -> Iterable[tuple[int, int, PlannedTable, PlannedVersion]]:
    for table in plan.tables:
        known = table.table_id in locations
        for version in table.versions:
            yield (version.version if version.place else 0), (0 if known else 1), table, version
            known = True


def _behind_gap(location: TableLocation, version: PlannedVersion, plan: Plan) -> TableLocation:
    """The location after *version*, whose rows may not go into a mirror or a history that lacks some from before.

    They end with the plan before, so they lack what this one has of earlier versions too.
    """
    for edit in version.edits:
        if isinstance(edit, ResumeTable) and edit.loses_rows and (location.mirror or location.history):
            known = edit.unknown_since
            since = known if known is not None and covers(plan.start, known) else plan.start
            kinds = _both([kind for kind in ("mirror", "history") if getattr(location, kind)])
            stays = (
                "stand as they were; they lack"
                if location.mirror and location.history
                else "stands as it was; it lacks"
            )
            changed = f"behind {since} and up to {version.place or ''}: {edit.reason}. {_NEXT}"
            return replace(
                location,
                mirror="",
                history="",
                former_mirror=location.mirror or location.former_mirror,
                former_history=location.history or location.former_history,
                former_why=f"the {kinds} {stays} what changed {changed}",
            )
    return location


_ANEW = "Next: replicate the table into another lake, from the start; its changelog here goes on"
_NEXT = f"{_ANEW}, with that gap"
_FILLED = "Next: `historian replay --table {name} --from {end}`, or a later position, fills a mirror with its folded changelog"


def _both(kinds: Sequence[str]) -> str:
    return " and ".join(kinds)


def _newcomer(places: _Places, snapshot: Snapshot, plan: int, sink: SinkNames) -> TableLocation:
    name, names = str(snapshot.name), sink.for_table(snapshot.name)
    columns = [snapshot.column(column) for column in names.key]
    key = tuple(column.id for column in columns if column is not None)
    by_key = bool(key or snapshot.primary_key)
    wanted = TableLocation(
        table_id=snapshot.table_id,
        name=name,
        changelog=_directory(names.changelog, snapshot.name),
        mirror=_directory(names.mirror, snapshot.name) if by_key or names.keyless == "rows" else "",
        history=_directory(names.history, snapshot.name) if by_key else "",
        since=plan,
        came_database=snapshot.name.database,
        came_table=snapshot.name.table,
        shape=names.shape,
        key=",".join(map(str, key)),
    )
    if None in columns:
        lacks = ", ".join(column for column, found in zip(names.key, columns, strict=True) if found is None)
        return replace(wanted, stopped=f"the configured key names columns that {name} lacks: {lacks}", stopped_in=plan)
    if not wanted.directories:
        return replace(wanted, stopped=NO_TARGET, stopped_in=plan)
    held = _held(_dropped_before(places, wanted))
    wanted = replace(
        wanted,
        changelog=wanted.changelog and (held["changelog"] or wanted.changelog),
        mirror=wanted.mirror and (held["mirror"] or wanted.mirror),
        history=wanted.history and (held["history"] or wanted.history),
    )
    goes_on = {*held.values()}
    clash = {d for d in wanted.directories if (d not in goes_on and places.is_taken(d)) or d.lower() in OWN_NAMES}
    # A changelog that goes on keeps its place; a table that is new to the lake has one mark on all that is its.
    marked = clash if held["changelog"] or not clash else {*wanted.directories}
    return replace(
        wanted,
        **{kind: _suffixed(d, wanted.table_id) for kind in _KINDS if (d := getattr(wanted, kind)) in marked},  # type: ignore[arg-type]
    )


def _dropped_before(places: _Places, wanted: TableLocation) -> Sequence[TableLocation]:
    """The locations, of dropped tables, of the same name and shape, that nobody lives in: the one that was dropped last comes last."""
    before = (
        h
        for h in places.dropped_as(wanted.name)
        if h.shape == wanted.shape and not h.is_archive and not Decisions.parse(h.evolved).stops
    )
    return sorted(before, key=lambda location: (location.dropped, location.table_id))


def _held(locations: Sequence[TableLocation]) -> dict[str, str]:
    """By kind the directory of *locations*, the last of which goes on; "": there is none.

    A mirror that was there before may go on too, since it has no rows; a history goes on where its changelog does.
    """
    held = {kind: getattr(locations[-1], kind) if locations else "" for kind in _KINDS}
    held["mirror"] = next((location.mirror for location in reversed(locations) if location.mirror), "")
    return held


def _lacks(location: TableLocation, names: TargetNames) -> tuple[str, ...]:
    """Kinds of targets that the settings name and the table has not."""
    return tuple(kind for kind in ("mirror", "history") if getattr(names, kind) and not getattr(location, kind))


def _with_late_key(location: TableLocation, version: PlannedVersion, plan: Plan, names: SinkNames) -> TableLocation:
    """The location after *version*, which says so where the table gets a key that it did not come with."""
    lacks, keyed = _lacks(location, names.for_table(location.came_as)), location.keyed(version.snapshot)
    if location.former_why or version.place is None or keyed is None or not keyed.primary_key or not lacks:
        return location
    why = f"there is no {_both(lacks)}: the table had no primary key until plan {plan.number}"
    filled = _FILLED.format(name=location.name, end=plan.end) if "mirror" in lacks and location.changelog else _ANEW
    return replace(location, former_why=f"{why}. {filled}")


def target_name(pattern: str, name: TableName) -> str:
    """The directory that *pattern* gives to a table; characters that no path should hold become ``_``."""
    plain = pattern.format(database=name.database, table=name.table)
    return "".join(c if c.isalnum() or c in "_-.$" else "_" for c in plain)


def is_name(pattern: str) -> bool:
    """Whether *pattern* gives a table a name, be it the same for all."""
    try:
        return bool(target_name(pattern, TableName("a", "b")))
    except (KeyError, IndexError, ValueError):
        return False


def tells_apart(pattern: str) -> bool:
    """Whether *pattern* is one that gives two tables of a database two names."""
    names = (TableName("a", "b"), TableName("a", "c"))
    return is_name(pattern) and len({target_name(pattern, name) for name in names}) > 1


def _directory(pattern: str | None, name: TableName) -> str:
    return "" if pattern is None else target_name(pattern, name)


def _suffixed(directory: str, table_id: int) -> str:
    return f"{directory}__t{table_id}" if directory else ""
