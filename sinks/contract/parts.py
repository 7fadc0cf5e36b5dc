"""A plan cut into parts: one segment of one table, in the order in which they are written to its targets."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from historian.changelog.chunks import NO_TABLE
from historian.errors import SinkError
from historian.plans.plans import Plan, PlannedTable, PlannedVersion
from historian.plans.segments import retracts
from historian.schema.edits import TruncateTable
from historian.schema.snapshots import Column, Snapshot
from historian.schema.type_compatibility import retyped
from sinks.contract.chunks import Chunks
from sinks.contract.decisions import VersionChange
from sinks.contract.locations import TableLocation, TableLocations
from sinks.contract.tables import occupants

__all__ = [
    "STEPS",
    "ChunkRows",
    "ClearShard",
    "Part",
    "RowCounts",
    "Step",
    "check_planned",
    "count_rows",
    "links_of",
    "parts_of",
]

STEPS = 1_000_000
"""Transaction versions that a plan may use: version = plan * STEPS + step."""

ChunkRows = Mapping[tuple[int, int], Mapping[int, int]]
"""(table id, segment) to chunk sequence to row count."""


class Step:
    """Steps of a part on one target; the last one is always committed, so that it tells that the part is held."""

    SCHEMA = 0
    FILL = 1
    ROWS = 2
    COUNT = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One segment of one table in a plan.

    Attributes:
        location: where it goes.
        index: its place among the parts of the same location, from 0.
        versions: that belong to the segment, in order; a version without place is the one in force before the plan.
        base: the snapshot in force before the part; None where the table was not there.
        base_version: the number of that version.
        chunks: sequence of each chunk of rows to its row count, in order.
        partial: whether some of its rows have absent columns (:mod:`historian.changelog.missing_columns`).
        version_changes: version to how targets go to it, where something was decided about the table.
        set_aside: ids of columns of targets whose place another one has before the part; rows from before hold values there.
    """

    plan: int
    location: TableLocation
    segment: int
    index: int
    versions: tuple[PlannedVersion, ...]
    base: Snapshot | None
    base_version: int
    chunks: Mapping[int, int]
    partial: bool = False
    version_changes: Mapping[int, VersionChange] = field(default_factory=dict)
    set_aside: tuple[int, ...] = ()

    @property
    def rows(self) -> int:
        """How many changelog rows the part brings, those taken back by TRUNCATE and DROP not counted."""
        return sum(self.chunks.values())

    @property
    def last(self) -> Snapshot | None:
        """The last snapshot that rows of the part can have; None where the part only ends the table."""
        return next((v.snapshot for v in reversed(self.versions) if v.snapshot is not None), None)

    @property
    def written(self) -> Mapping[int, Snapshot]:
        """Version to the snapshot that rows under it are written with."""
        return {v.version: v.snapshot for v in self.versions if v.snapshot is not None}

    @property
    def counts(self) -> bool:
        """Whether its table has no key, so that a row is there as often as it was put."""
        snapshot = self.last or self.base
        return snapshot is not None and not snapshot.primary_key

    @property
    def carried(self) -> Mapping[int, Snapshot]:
        """Version to the same columns with the types that they have last in the part."""
        latest = {column.id: column.type for s in self.written.values() for column in s.columns}
        return {
            number: replace(s, columns=tuple(retyped(c, latest[c.id]) for c in s.columns))
            for number, s in self.written.items()
        }

    @property
    def clears(self) -> PlannedVersion | None:
        """The version whose statement takes all rows back before the part's own, if there is one."""
        for version in self.versions:
            for edit in version.edits:
                if retracts(edit):
                    return version
        return None

    @property
    def cleared(self) -> tuple[tuple[int, str], ...]:
        """Of which rows :attr:`clears` takes back those alone: id of each shard column, with its value; (): all rows."""
        edits = () if self.clears is None else self.clears.edits
        return next((edit.values for edit in edits if isinstance(edit, ClearShard)), ())

    @property
    def touches(self) -> bool:
        """Whether the part commits to its targets."""
        news = any(version.place is not None for version in self.versions)
        return self.rows > 0 or news or (self.location.since == self.plan and self.segment == 0)

    @property
    def added(self) -> tuple[tuple[Column, int], ...]:
        """Columns that the part adds, gone again or not, that rows from before read a value other than NULL in.

        Each with the last type that it has in the part, and the version that adds it.
        """
        if self.base is None and not self.written:
            return ()
        found: dict[int, tuple[Column, int]] = {}
        first = self.base or next(iter(self.written.values()))
        for number, snapshot in self.carried.items():
            for column in snapshot.columns:
                if column.initial is not None and first.column_by_id(column.id) is None:
                    found.setdefault(column.id, (column, number))
        return tuple(found.values())

    @property
    def filled(self) -> tuple[Column, ...]:
        """Columns that the part adds and that rows from before it read a value other than NULL in."""
        if self.base is None or self.last is None:
            return ()
        added = (column for column in self.last.columns if self.base.column_by_id(column.id) is None)
        return tuple(column for column in added if column.initial is not None)

    def transaction(self, step: int) -> int:
        """The transaction version of one of its steps."""
        return self.plan * STEPS + self.index * Step.COUNT + step + 1


def links_of(parts: list[Part]) -> dict[str, int]:
    """Directory to the transaction version that its table has when it holds the plan of *parts*."""
    links: dict[str, int] = {}
    for part in parts:
        for directory in part.location.directories:
            links[directory] = max(links.get(directory, 0), part.transaction(Step.ROWS))
    return links


def parts_of(
    plan: Plan, locations: TableLocations, rows: ChunkRows, partial: Collection[tuple[int, int]] = frozenset()
) -> list[Part]:
    """The parts of *plan* that touch a target, those of one location in order; tables that are stopped have none.

    *rows* and *partial* are what :func:`count_rows` found.
    """
    parts: list[Part] = []
    for tables in occupants(plan, locations):
        index = 0
        for table in tables:
            base: Snapshot | None = None
            base_version = 0
            if table.quarantine is not None and table.versions[-1].place is None and not _has_rows(table, rows):
                continue  # It stopped before the plan: what it has not yet is not made.
            segments = {v.segment for v in table.versions}
            for segment in sorted(segments):
                location = locations[table.table_id]
                versions = tuple(
                    replace(v, snapshot=location.keyed(v.snapshot)) for v in table.versions if v.segment == segment
                )
                if versions[0].place is None:
                    base, base_version = versions[0].snapshot, versions[0].version
                part = Part(
                    plan=plan.number,
                    location=location,
                    segment=segment,
                    index=index,
                    versions=versions,
                    base=base,
                    base_version=base_version,
                    chunks=rows.get((table.table_id, segment), {}),
                    partial=(table.table_id, segment) in partial,
                )
                index += 1
                base, base_version = versions[-1].snapshot, versions[-1].version
                # A stop takes hold behind the plan that it happened in, so that a replay does what the first try did.
                is_wanted = part.touches or (bool(table.repairs) and segment == max(segments))
                if is_wanted and part.location.directories and part.location.stopped_in in (0, plan.number):
                    parts.append(part)
    return parts


def _has_rows(table: PlannedTable, rows: ChunkRows) -> bool:
    return any((table.table_id, version.segment) in rows for version in table.versions)


class RowCounts(NamedTuple):
    """What the chunks of a plan hold.

    Attributes:
        rows: row counts.
        stops: why tables stop in the plan, by table id.
        partial: (table id, segment) of rows with absent columns.
    """

    rows: ChunkRows
    stops: Mapping[int, str]
    partial: frozenset[tuple[int, int]]


def count_rows(chunks: Chunks) -> RowCounts:
    """Counts the rows of chunks, without looking into them."""
    found: dict[tuple[int, int], dict[int, int]] = {}
    stops: dict[int, str] = {}
    for head in chunks.heads:
        if head.table_id == NO_TABLE:
            continue
        if head.stopped:
            stops.setdefault(head.table_id, head.stopped)
            continue
        found.setdefault((head.table_id, head.segment), {})[head.sequence] = head.row_count
    partial = frozenset((head.table_id, head.segment) for head in chunks.heads if head.missing)
    return RowCounts(found, stops, partial)


def check_planned(plan: Plan, rows: Mapping[tuple[int, int], object]) -> None:
    """Rows of a table or segment that the plan does not name must not be lost on the quiet."""
    planned = {(table.table_id, version.segment) for table in plan.tables for version in table.versions}
    stray = sorted(set(rows) - planned)
    if stray:
        raise SinkError(
            "rows of a table or segment that the plan does not name",
            where=f"plan {plan.number}",
            expected=f"(table, segment) of {sorted(planned)}",
            found=stray,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ClearShard(TruncateTable):
    """The rows of one shard go, by a TRUNCATE or DROP of its table; those of the others stay.

    Attributes:
        values: id of each shard column, with what it holds in the rows that go.
        edit: the kind of edit that it was at the source, as :data:`historian.plans.evolution.RULES` has it.
        shard: the table that it was.
    """

    values: tuple[tuple[int, str], ...]
    edit: str
    shard: str
