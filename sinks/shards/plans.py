"""A plan of shards as one of the tables that they are: their statements in order under one schema, and where their rows go."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

from historian.errors import ConfigError, SinkError, TableStopped
from historian.names import TableName
from historian.plans.plans import Plan, PlannedTable, PlannedVersion
from historian.plans.shards import Into, IntoSettings
from historian.positions.places import Place
from historian.schema.edits import CreateTable, DropTable, Edit, TruncateTable
from historian.schema.snapshots import Snapshot
from sinks.contract.locations import TableLocation, TableLocations
from sinks.contract.parts import ClearShard
from sinks.shards.chunks import Route
from sinks.shards.group import GroupStates
from sinks.shards.reconcile import Reconciler, conflict

__all__ = ["Grouped", "check_shards", "grouped_plan", "repaired_shards"]


class _Settings(Protocol):
    """What holds for a table; equal where the same does."""

    @property
    def into(self) -> IntoSettings | None:
        """The one table that it is a shard of."""


_SettingsOf = Callable[[TableName], _Settings]


_DIFFERING = "the sink's tables say something else of a shard than of the one table"
_SAME = "let the same globs match both, or say it beside into"


@dataclass(frozen=True, slots=True, kw_only=True)
class Grouped:
    """A plan with one table for the shards of each group.

    Attributes:
        plan: as what follows sees it.
        routes: table id, version and segment of a shard's rows to what becomes of them.
        hidden: ids of shards whose group is not written any more, so that nothing is to be seen of them.
        shards: by table id, those of groups that go on: the group's table id, and the shard's name.
        stops: by the group's table id, why it stops in the plan.
        notes: by the group's table id, what its location keeps of it.
    """

    plan: Plan
    routes: Mapping[tuple[int, int, int], Route] = field(default_factory=dict)
    hidden: frozenset[int] = frozenset()
    shards: Mapping[int, tuple[int, str]] = field(default_factory=dict)
    stops: Mapping[int, str] = field(default_factory=dict)
    notes: Mapping[int, str] = field(default_factory=dict)

    def check(self, *, first: bool) -> None:
        """Raises :class:`ConfigError` where shards do not fit together that the lake, not there yet, would begin with."""
        if first and self.stops:
            names = {
                t.table_id: v.snapshot.name for t in self.plan.tables for v in t.versions if v.snapshot is not None
            }
            problems = tuple(f"{reason} @ $.tables of {names[at]}: into" for at, reason in self.stops.items())
            raise ConfigError("tables cannot be one as a sink's tables say", problems=problems)

    def noted(self, locations: TableLocations) -> TableLocations:
        """*locations* with what is kept of groups."""
        if not self.notes:
            return locations
        changed = {at: replace(locations[at], shards=text) for at, text in self.notes.items() if at in locations}
        return {**locations, **changed}


def check_shards(location: TableLocation, settings_of: _SettingsOf) -> None:
    """Raises :class:`SinkError` where by now something else is said of shards in *location* than of their one table."""
    members = GroupStates.parse(location.shards).after.members.values() if location.shards else ()
    one = settings_of(location.came_as)
    differing = [str(m.name) for m in members if settings_of(m.name) != one]
    if differing:
        raise SinkError(
            _DIFFERING,
            where=location.name,
            expected=f"what is said of {location.name}",
            found=", ".join(differing),
            next_step=_SAME,
        )


def repaired_shards(plan: Plan, grouped: Grouped) -> dict[int, str]:
    """By the group's table id why it stops in *plan*, which repairs one of its shards: a group is not compared with the rows of one."""
    found = {}
    for table in plan.tables:
        if table.repairs and table.table_id in grouped.shards:
            group, shard = grouped.shards[table.table_id]
            error = TableStopped(
                "a shard cannot be repaired inside the one table that it is a part of",
                where=f"shard {shard}",
                expected="a table with targets of its own",
                found=table.repairs,
                next_step="replicate the tables into another lake, from a new start",
            )
            found[group] = str(error)
    return found


def grouped_plan(locations: TableLocations, plan: Plan, settings_of: _SettingsOf) -> Grouped:
    """*plan* with one table for the shards of each group; pure, and the same when it is asked again.

    Args:
        locations: before the plan, or after it.
        settings_of: what holds for a table that comes under a name, or for a group by its own.
    """
    known = {
        location.table_id: location for location in locations.values() if location.shards and not location.is_replaced
    }
    parted = _parted(known, locations, plan, settings_of)
    if not parted:
        return Grouped(plan=plan)
    shards = {member.table_id for _, members in parted.values() for member in members}
    tables = {t.table_id: t for t in plan.tables if t.table_id not in shards}
    made = Grouped(plan=plan, routes={}, shards={}, stops={}, notes={})
    hidden: set[int] = set()
    for name, (location, members) in parted.items():
        if location is not None and location.stopped_in not in (0, plan.number):
            hidden.update(member.table_id for member in members)
            continue
        one = _Group(plan, settings_of, name, location, members)
        one.take()
        tables[one.table_id] = one.table
        if one.stop:
            made = replace(made, stops={**made.stops, one.table_id: one.stop})
            hidden.update(member.table_id for member in members)
        else:
            named = {member.table_id: (one.table_id, one.names[member.table_id]) for member in members}
            made = replace(made, routes={**made.routes, **one.routes}, shards={**made.shards, **named})
        made = replace(made, notes={**made.notes, one.table_id: one.note()})
    ordered = tuple(tables[table_id] for table_id in sorted(tables))
    return replace(made, plan=replace(plan, tables=ordered), hidden=frozenset(hidden))


def _parted(
    known: Mapping[int, TableLocation], locations: TableLocations, plan: Plan, settings_of: _SettingsOf
) -> dict[TableName, tuple[TableLocation | None, list[PlannedTable]]]:
    """The shards of *plan* by their group's name, with the group's location, if it has one."""
    owner: dict[int, TableLocation] = {}
    for location in known.values():
        noted = GroupStates.parse(location.shards)
        groups = (noted.after,) if noted.plan != plan.number else (noted.before, noted.after)
        owner |= {table_id: location for group in groups if group is not None for table_id in group.members}
    by_name = {location.came_as: location for location in known.values()}
    parted: dict[TableName, tuple[TableLocation | None, list[PlannedTable]]] = {}
    for table in plan.tables:
        owned = owner.get(table.table_id)
        if owned is None and (table.table_id not in locations or table.table_id in known):
            snapshot = next((v.snapshot for v in table.versions if v.snapshot is not None), None)
            into_settings = None if snapshot is None else settings_of(snapshot.name).into
            name = None if into_settings is None else Into.of(into_settings).name
        else:
            name = None if owned is None else owned.came_as
        if name is not None:
            parted.setdefault(name, (by_name.get(name), []))[1].append(table)
    return parted


class _Group:
    """One group in one plan.

    Attributes:
        table_id: of the group.
        routes, names: see :class:`Grouped`.
        stop: why it stops; "" where it goes on.
    """

    def __init__(
        self,
        plan: Plan,
        settings_of: _SettingsOf,
        name: TableName,
        location: TableLocation | None,
        members: list[PlannedTable],
    ) -> None:
        into_settings = settings_of(name).into
        assert into_settings is not None  # noqa: S101 a group is found by it, and locations keep it in their shape
        into = Into.of(into_settings)
        self._plan = plan
        self._members = members
        self._settings_of = settings_of
        self._into = into
        self._noted = GroupStates.parse(location.shards) if location is not None else None
        self._before = None if self._noted is None else self._noted.at(plan.number)
        self._one = Reconciler(into, self._before)
        self._number = 0 if self._before is None else self._before.number
        self._segment = 0
        self._versions: list[PlannedVersion] = []
        self._in_force: dict[int, Snapshot] = {}
        self.routes: dict[tuple[int, int, int], Route] = {}
        self.names: dict[int, str] = {}
        self.stop = ""

    @property
    def table_id(self) -> int:
        """The group's: of its first shard's snapshot."""
        return self._one.snapshot.table_id

    @property
    def table(self) -> PlannedTable:
        """The group as a table of the plan."""
        versions = self._versions
        if self.stop or not versions:
            base = self._one.snapshot if self._before is None else self._before.snapshot
            versions = [self._version(self._number, base)]
        return PlannedTable(table_id=self.table_id, versions=tuple(versions))

    def note(self) -> str:
        """What the location keeps; the same as before where the plan changes nothing."""
        after = self._one.group(self._number)
        noted = self._noted
        if noted is not None and noted.plan != self._plan.number and noted.after == after:
            return noted.text()
        return GroupStates(plan=self._plan.number, before=self._before, after=after).text()

    def take(self) -> None:
        """Takes what happens to the shards in the plan."""
        try:
            self._take()
        except TableStopped as error:
            # A stop is noted with the group's location, so that there must be one.
            self._one.begin(next(v.snapshot for t in self._members for v in t.versions if v.snapshot is not None))
            self.stop = str(error)

    def _take(self) -> None:
        for table in self._members:
            self._refuse(table)
        if self._before is not None:
            self._versions.append(self._version(self._number, self._one.snapshot))
        self._take_present()
        for number, events in self._events():
            self._take_events(number, events)

    def _refuse(self, table: PlannedTable) -> None:
        name = next((v.snapshot.name for v in table.versions if v.snapshot is not None), table.table_id)
        if table.quarantine is not None:
            raise conflict("the connector has stopped a shard", name, found=table.quarantine.reason)
        if table.behind is not None:
            raise conflict("a shard was read again by itself", name, expected="all shards, in another lake")

    def _take_present(self) -> None:
        """Shards that were there before the plan: those that come with it, by what they are, then where all their rows go."""
        present = [t for t in self._members if t.versions[0].place is None and t.versions[0].snapshot is not None]
        comers = [t for t in present if not self._one.is_member(t.table_id)]
        for table in comers:
            version = table.versions[0]
            if version.snapshot is not None:
                self._join(version.snapshot)
        edits = self._one.edits()
        if comers and self._before is None:
            self._number = max(table.versions[0].version for table in comers)
            self._versions.append(self._version(self._number, self._one.snapshot))
        elif edits:
            start = self._plan.start
            place = Place(gtid="", file=start.file, offset=start.offset, ordinal=0)
            self._number = max(self._number, *(table.versions[0].version for table in comers))
            names = ", ".join(str(t.versions[0].snapshot.name) for t in comers if t.versions[0].snapshot is not None)
            self._add(self._number, edits, place=place, statement=f"{names}: shards of {self._into.name} from here on")
        for table in present:
            self._route(table, table.versions[0])

    def _events(self) -> Iterator[tuple[int, list[tuple[PlannedTable, PlannedVersion]]]]:
        """The statements on shards, in order: the version's number, and what it is for each shard."""
        found: dict[int, list[tuple[PlannedTable, PlannedVersion]]] = {}
        for table in sorted(self._members, key=lambda t: t.table_id):
            for at, version in enumerate(table.versions):
                if at or version.place is not None:
                    found.setdefault(version.version, []).append((table, version))
        yield from sorted(found.items())

    def _take_events(self, number: int, events: list[tuple[PlannedTable, PlannedVersion]]) -> None:
        version = events[0][1]
        began = not self._versions
        cleared = False
        for table, mine in events:
            cleared |= self._take_event(table, mine)
        edits = self._one.edits()
        if began:
            create = CreateTable(snapshot=self._one.snapshot)
            self._number = number
            self._versions.append(self._version(number, self._one.snapshot, (create,), version))
        elif edits or cleared:
            self._number = number
            self._segment += cleared
            self._add(number, edits, of=version)
        for table, mine in events:
            if mine.snapshot is not None:
                self._route(table, mine)

    def _take_event(self, table: PlannedTable, version: PlannedVersion) -> bool:
        """Whether the shard's rows go."""
        table_id = table.table_id
        if not self._one.is_member(table_id):
            if version.snapshot is None:
                raise conflict(
                    "a shard is dropped that was never part of the merged table", table_id, version.statement
                )
            self._join(version.snapshot, version.statement)
            self._in_force[table_id] = version.snapshot
            return False
        name = self._one.member(table_id).name
        clears = [e for e in version.edits if isinstance(e, (DropTable, TruncateTable)) and e.table_id == table_id]
        if clears:
            self._clear(table_id, version, "drop_table" if version.snapshot is None else "truncate")
            if version.snapshot is None:
                self.names[table_id] = str(name)
                self._one.leave(table_id)
            return True
        before = self._in_force.get(table_id)
        if version.snapshot is None or before is None:
            raise conflict("it is not known what became of a shard", name, version.statement)
        self._one.follow(before, version)
        self._in_force[table_id] = version.snapshot
        return False

    def _join(self, snapshot: Snapshot, statement: str = "") -> None:
        if self._settings_of(snapshot.name) != self._settings_of(self._into.name):
            raise conflict(_DIFFERING, snapshot.name, statement, expected=f"what is said of {self._into.name}")
        self._one.join(snapshot, statement)

    def _clear(self, table_id: int, version: PlannedVersion, edit: str) -> None:
        member, columns = self._one.member(table_id), self._into.shard_columns
        clear = ClearShard(
            table=self._into.name,
            table_id=self.table_id,
            values=tuple(zip((column.id for column in columns), member.values, strict=True)),
            edit=edit,
            shard=str(member.name),
        )
        # A part of its own, without rows: they go by what the targets hold, before those that come behind it.
        self._segment += 1
        self._versions.append(self._version(version.version, self._one.snapshot, (clear,), version))

    def _add(
        self,
        number: int,
        edits: tuple[Edit, ...],
        *,
        of: PlannedVersion | None = None,
        place: Place | None = None,
        statement: str = "",
    ) -> None:
        made = self._version(number, self._one.snapshot, edits, of)
        self._versions.append(made if of is not None else replace(made, place=place, statement=statement))

    def _version(
        self, number: int, snapshot: Snapshot, edits: tuple[Edit, ...] = (), of: PlannedVersion | None = None
    ) -> PlannedVersion:
        return PlannedVersion(
            version=number,
            place=None if of is None else of.place,
            edits=edits,
            snapshot=snapshot,
            segment=self._segment,
            statement="" if of is None else of.statement,
            event_time_us=0 if of is None else of.event_time_us,
        )

    def _route(self, table: PlannedTable, version: PlannedVersion) -> None:
        """Where the shard's rows under *version* go: into the group as it is now."""
        table_id, snapshot = table.table_id, version.snapshot
        if snapshot is None:
            return
        self._in_force[table_id] = snapshot
        self.names[table_id] = str(self._one.member(table_id).name)
        self.routes[table_id, version.version, version.segment] = Route(
            table_id=self.table_id,
            version=self._number,
            segment=self._segment,
            written=self._one.written(snapshot),
            target=self._one.target(table_id),
            columns=self._one.member(table_id).columns,
        )
