"""A table's location in a sink: its directories, and how it stands."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from historian.names import TableName
from historian.schema.snapshots import Snapshot
from sinks.contract.decisions import Decisions

__all__ = ["TableLocation", "TableLocations", "ended", "location_holding"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TableLocation:
    """Where one table's rows go, and how the table stands.

    Attributes:
        table_id: of the history; negative where its table has other directories by now.
        name: its present name, or its last one.
        changelog, mirror, history: directories in the lake; "" where there is none: not wanted, or a mirror or history of a
            table without a key.
        since: plan that brought the table into the lake.
        dropped: plan that dropped it; 0 while it lives.
        stopped: why it is not written any more; "" while it is.
        stopped_in: the plan in which that happened.
        quarantined: why the newest plan that names it leaves rows out; "" where it does not.
        former_mirror, former_history: directories of a mirror and a history that are written no more, since rows are
            missing from them; "" where none is.
        former_why: which rows are missing.
        came_database, came_table: the name under which it came, by which settings are chosen through every RENAME.
        shape: what the settings said then of how its targets are made.
        key: ids of the columns that tell rows apart in place of a primary key, with commas; "": the primary key does.
        columns: what is done to its columns, see :class:`sinks.shaping.bindings.Bindings`; "" where they are as in the source.
        evolved: what was decided about its edits (:class:`sinks.contract.decisions.Decisions`).
        shards: of tables that are one here, what is known of them (:class:`sinks.shards.group.GroupStates`); "" where it is one table.
    """

    table_id: int
    name: str
    changelog: str
    mirror: str
    since: int
    history: str = ""
    dropped: int = 0
    stopped: str = ""
    stopped_in: int = 0
    quarantined: str = ""
    former_mirror: str = ""
    former_history: str = ""
    former_why: str = ""
    came_database: str = ""
    came_table: str = ""
    shape: str = ""
    columns: str = ""
    key: str = ""
    evolved: str = ""
    shards: str = ""

    @property
    def key_columns(self) -> tuple[int, ...]:
        """The ids in :attr:`key`."""
        return tuple(map(int, self.key.split(","))) if self.key else ()

    def keyed(self, snapshot: Snapshot | None) -> Snapshot | None:
        """*snapshot* with the key that tells rows apart in this location."""
        return snapshot if snapshot is None or not self.key else replace(snapshot, primary_key=self.key_columns)

    @property
    def came_as(self) -> TableName:
        """The name under which it came."""
        return TableName(self.came_database, self.came_table)

    @property
    def is_archive(self) -> bool:
        """Whether its directories stay as they are when another table comes under its name."""
        return bool(self.evolved) and Decisions.parse(self.evolved).is_one_of("drop_table", "keep", "ignore")

    @property
    def directories(self) -> tuple[str, ...]:
        """The directories that it has."""
        return tuple(filter(None, (self.changelog, self.mirror, self.history)))

    @property
    def is_replaced(self) -> bool:
        """Whether its table was read again into other directories."""
        return self.table_id < 0

    @property
    def previous(self) -> tuple[str, ...]:
        """The directories that it had before a gap in its rows."""
        return tuple(filter(None, (self.former_mirror, self.former_history)))

    def kind(self, directory: str) -> str:
        """Which kind of table one of its directories holds: "changelog", "mirror" or "history"."""
        if directory == self.changelog:
            return "changelog"
        return "mirror" if directory in (self.mirror, self.former_mirror) else "history"

    @property
    def why_stopped(self) -> str | None:
        """Why the sink or the connector has stopped the table; None while rows come."""
        return self.stopped or (f"quarantined: {self.quarantined}" if self.quarantined else None)


TableLocations = Mapping[int, TableLocation]
"""Table id to location."""


def ended(locations: TableLocations) -> dict[str, str]:
    """Directories that nobody writes any more since their table was dropped, and what its name stands for now."""
    living = [location for location in locations.values() if not (location.dropped or location.is_replaced)]
    lived_in = {directory for location in living for directory in (*location.directories, *location.previous)}
    named = {location.name: location for location in living}
    found: dict[str, str] = {}
    for location in locations.values():
        for directory in location.directories:
            if location.dropped and not location.is_replaced and directory not in lived_in:
                why, kind, now = (
                    f"dropped in plan {location.dropped}",
                    location.kind(directory),
                    named.get(location.name),
                )
                if now is not None:
                    there = getattr(now, kind)
                    after = f"the {kind} {there}" if there else f"no {kind}, as it came without a primary key"
                    why = f"{why}; the table of that name that came in plan {now.since} has {after}"
                found[directory] = why
    return found


def location_holding(locations: TableLocations, table_id: int, plan: int) -> TableLocation | None:
    """The location of a table that has its rows up to *plan*, though others may have taken its place; None where none has.

    Args:
        locations: the present ones.
        plan: its number.
    """
    location = locations.get(table_id)
    while location is not None and plan < location.since:
        # A plan that reads a table again has no other table.
        since = location.since
        location = next((h for h in locations.values() if h.is_replaced and h.dropped == since), None)
    return None if location is None or (location.stopped and location.stopped_in <= plan) else location
