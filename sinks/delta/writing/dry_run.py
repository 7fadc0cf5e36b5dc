"""What a Delta sink would do with schema changes: the same policy and the same schemas, with neither Spark nor a lake."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from historian.changelog.operations import physical_name
from historian.errors import TableStopped, ValueUnrepresentable
from historian.plans.plans import Plan
from historian.schema.edits import DropTable, RenameTable
from sinks.contract.base import DryRunResult
from sinks.contract.locations import TableLocations
from sinks.contract.parts import ClearShard, Part, parts_of
from sinks.contract.tables import stopped_locations
from sinks.delta.log.columns import DeltaField, DeltaSchema
from sinks.delta.schema.decisions import evolved, evolved_locations
from sinks.delta.schema.schema_evolution import mirror_schema
from sinks.delta.schema.stops import check
from sinks.delta.settings import DeltaSettings, TableSettings
from sinks.delta.targets.changelog import changelog_after
from sinks.delta.targets.history import history_after
from sinks.delta.targets.mirror import mirror_after
from sinks.shaping.plans import Shaper
from sinks.shaping.rules import Rules
from sinks.shards.plans import grouped_plan

__all__ = ["DeltaDryRun"]


class DeltaDryRun:
    """Implements :class:`sinks.contract.base.DryRun`."""

    def __init__(self, settings: DeltaSettings) -> None:
        self._settings = settings
        self._locations: TableLocations = {}
        self._shaper = Shaper(None, settings.rules_of)
        self._schemas: dict[str, DeltaSchema] = {}

    def take(self, plan: Plan) -> Sequence[DryRunResult]:
        """See :class:`sinks.contract.base.DryRun`."""
        before = self._locations
        self._locations = evolved_locations(before, plan, self._settings, refuse=False)
        grouped = grouped_plan(before, plan, self._settings.for_table)
        seen = self._shaper.seen(grouped.plan, self._locations)
        seen = replace(seen, stops={**seen.stops, **grouped.stops})
        self._locations = stopped_locations(self._locations, seen.stops, plan.number)
        found = [
            DryRunResult(table=location.name, target="", kind="table", stopped=location.stopped)
            for table_id, location in self._locations.items()
            if location.stopped and (table_id not in before or table_id in seen.stops)
        ]
        for part in (
            part for part in parts_of(seen.plan, self._locations, {}) if part.location.table_id not in seen.stops
        ):
            try:
                found += list(self._part(part))
            except (TableStopped, ValueUnrepresentable) as error:
                table_id = part.location.table_id
                location = replace(self._locations[table_id], stopped=str(error), stopped_in=plan.number)
                self._locations = {**self._locations, table_id: location}
                found.append(DryRunResult(table=location.name, target="", kind="table", stopped=str(error)))
        return found

    def _part(self, part: Part) -> Iterator[DryRunResult]:
        """Nothing is kept of a part that stops its table."""
        check(part)
        location = part.location
        settings = self._settings.for_table(location.came_as)
        soft = settings.mirror_deletes == "soft"
        shown = evolved(part, soft=soft)
        part = shown.part
        schemas: dict[str, DeltaSchema] = {}
        if location.changelog:
            schema = changelog_after(part, self._schemas.get(location.changelog), settings.changelog_columns)
            if schema is not None:
                schemas[location.changelog] = schema
        if location.history:
            schema = history_after(part, self._schemas.get(location.history), settings.history_names)
            if schema is not None:
                schemas[location.history] = schema
        if location.mirror:
            held = self._schemas.get(location.mirror)
            schema = mirror_after(shown.mirrored, held, soft=soft)
            if schema is None and part.base is not None:
                schema = mirror_schema(None, part.base, soft=soft)
            if schema is not None:
                schemas[location.mirror] = schema
        found = [
            self._foreseen(shown.mirrored if directory == location.mirror else part, directory, schemas.get(directory))
            for directory in location.directories
        ]
        self._schemas.update(schemas)
        yield from found

    def _foreseen(self, part: Part, directory: str, schema: DeltaSchema | None) -> DryRunResult:
        kind = part.location.kind(directory)
        held = self._schemas.get(directory)
        effects = []
        if part.clears is not None and held is not None:
            effects.append(_taken_back(kind, self._settings.for_table(part.location.came_as)) + _of_shard(part))
        edits = [edit for version in part.versions for edit in version.edits]
        if part.location.is_archive:
            effects.append("it stays as it is, as an archive")
        elif any(isinstance(edit, DropTable) for edit in edits):
            effects.append("it stays, for a table of that name that may come again")
        if any(isinstance(edit, RenameTable) for edit in edits):
            effects.append(f"it goes on for {part.location.name}, where it is")
        if schema is not None and held is None:
            effects.append("is made: " + ", ".join(f"{f.name} {f.type}" for f in schema.fields))
            effects += _expressions(self._settings.for_table(part.location.came_as).rules)
        elif schema is not None and held is not None:
            effects += _changes(held, schema, part, kind)
        return DryRunResult(table=part.location.name, target=directory, kind=kind, effects=tuple(effects))


def _expressions(rules: Rules) -> Iterator[str]:
    """What Spark would be asked for; without it their types are not known."""
    if rules.compute:
        yield "computed columns: " + ", ".join(f"{name} = {text}" for name, text in rules.compute)
    if rules.where:
        yield f"takes the rows where {rules.where}"


def _of_shard(part: Part) -> str:
    edits = () if part.clears is None else part.clears.edits
    return "".join(f", of shard {edit.shard} alone" for edit in edits if isinstance(edit, ClearShard))


def _taken_back(kind: str, settings: TableSettings) -> str:
    if kind == "mirror":
        return "all rows go" if settings.mirror_deletes == "hard" else "all rows are marked as deleted"
    return "a -R for each row that the table held" if kind == "changelog" else "all open rows end"


def _changes(old: DeltaSchema, new: DeltaSchema, part: Part, kind: str) -> Iterator[str]:
    """What becomes of columns; data files are rewritten for none of it but defaults."""
    before = {f.physical: f for f in old.fields}
    after = {f.physical: f for f in new.fields}
    filled = {column.id: column.initial for column in part.filled}
    for f in new.fields:
        known = before.get(f.physical)
        if known is None:
            yield f"{f.name} {f.type} is added{_in_old_rows(f, filled, kind)}"
            continue
        if known.name != f.name:
            yield f"{known.name} is renamed to {f.name}"
        if known.type != f.type:
            yield f"{f.name} widens from {known.type} to {f.type}"
    gone = [f.name for physical, f in before.items() if physical not in after]
    snapshot = part.last
    if snapshot is not None and part.base is not None:
        kept = part.version_changes[max(part.written)].kept if part.version_changes else frozenset()
        left = [c for c in part.base.columns if snapshot.column_by_id(c.id) is None or c.id in kept]
        stays = [c.name for c in left if physical_name(c.id) in after]
        if stays:
            yield f"{', '.join(stays)} stays for the rows that have it"
    if gone:
        yield f"{', '.join(gone)} goes"
    if snapshot is not None and part.base is not None and snapshot.primary_key != part.base.primary_key:
        names = [c.name for column_id in snapshot.primary_key if (c := snapshot.column_by_id(column_id)) is not None]
        yield f"rows are told apart by {', '.join(names) or 'no key'}"
    stayed = [physical for physical in before if physical in after]
    if stayed != [f.physical for f in new.fields if f.physical in before]:
        yield "columns stand in another order: " + ", ".join(f.name for f in new.fields)


def _in_old_rows(f: DeltaField, filled: dict[int, str | None], kind: str) -> str:
    if kind == "changelog":
        return ""  # rows of a changelog keep the schema version that they were written under
    value = filled.get(f.column_id or 0)
    there = "the rows that are there" if kind == "mirror" else "the rows that are open"
    return f", NULL in {there}" if value is None else f", {value!r} in {there}"
