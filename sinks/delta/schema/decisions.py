"""Decides about the edits of a plan by each table's settings, and shows its parts as the targets are to take them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from historian.changelog.operations import physical_name
from historian.errors import EditRefused, TableStopped
from historian.plans.evolution import STOPS, action_for
from historian.plans.plans import Plan, PlannedVersion
from historian.plans.segments import retracts
from historian.schema.snapshots import Snapshot
from sinks.contract.decisions import Decision, Decisions, VersionChange
from sinks.contract.locations import TableLocation, TableLocations
from sinks.contract.parts import Part
from sinks.contract.tables import assign
from sinks.delta.schema.changes import Change, changes
from sinks.delta.settings import DeltaSettings, TableSettings
from sinks.shaping.bindings import Bindings
from sinks.shaping.plans import bound_locations
from sinks.shaping.tables import TableShape, shape_version
from sinks.shards.plans import grouped_plan

__all__ = ["EvolvedPart", "evolved", "evolved_locations"]


@dataclass(frozen=True, slots=True, kw_only=True)
class EvolvedPart:
    """A part as its table's targets take it.

    Attributes:
        part: as changelog and history do.
        mirrored: as the mirror does.
        images: version to the snapshot of its row images, with the ids that targets have.
        labels: version to the names that its images' columns have in targets' files, by those in chunks.
        blanks: version to the names, in files, of columns that the mirror keeps and that its rows have no values in.
        mirror_is_table: whether the mirror has no rows but the table's, before the part.
        appends_are_new: whether no row of the mirror can have the key of a row that comes to the table in the part.
    """

    part: Part
    mirrored: Part
    images: Mapping[int, Snapshot]
    labels: Mapping[int, Mapping[str, str]]
    blanks: Mapping[int, Collection[str]] = field(default_factory=dict)
    mirror_is_table: bool = True
    appends_are_new: bool = True


def evolved_locations(
    locations: TableLocations, plan: Plan, settings: DeltaSettings, *, refuse: bool = True
) -> TableLocations:
    """The locations after *plan*, see :func:`sinks.contract.tables.assign`, bound, and with what is decided about its edits.

    It is decided about edits as the lake sees them. What was decided once stays, whatever *settings* say by now.

    Args:
        refuse: whether an edit on which the run is to end raises; else it stops its table.

    Raises:
        EditRefused: the settings say ``fail`` of an edit.
        SinkError: see :func:`sinks.shaping.bindings.bind`.
    """

    def decide(location: TableLocation, before: Snapshot | None, version: PlannedVersion) -> TableLocation:
        held = Decisions.parse(location.evolved)
        if version.place is None or version.version <= held.upto or held.stops:
            return location
        made = list(held.made)
        if before is not None:
            try:
                alone = replace(plan, tables=(tables[location.table_id],))
                before, version = _seen(location, alone, settings, before, version)
            except TableStopped:
                return location  # Rules for its columns stop it.
            for change in changes(before, version):
                action = _word(settings, location, made, before, version, change)
                if location.table_id in repaired:
                    action = _repaired(action, settings, location, made, version, change)
                if action == "fail" and refuse:
                    raise _refused(location, version, change)
                if action != "apply":
                    made.append(Decision(version.version, change.column_id, change.noted, action))
        return replace(location, evolved=Decisions(upto=version.version, made=tuple(made)).text())

    grouped = grouped_plan(locations, plan, settings.for_table)
    plan = grouped.plan
    tables = {table.table_id: table for table in plan.tables}
    repaired = {table.table_id for table in plan.tables if table.repairs}
    return grouped.noted(bound_locations(assign(locations, plan, settings, decide), plan, settings.rules_of))


def _seen(
    location: TableLocation, plan: Plan, settings: DeltaSettings, before: Snapshot, version: PlannedVersion
) -> tuple[Snapshot, PlannedVersion]:
    """A table before a version, and the version, as the lake sees them; computed columns, which do not change, are left out."""
    bound = bound_locations({location.table_id: location}, plan, settings.rules_of)[location.table_id]
    shape = TableShape(bindings=Bindings.of(bound, settings.rules_of(location.came_as)))
    shaped = shape_version(version, shape)
    return location.keyed(shape.snapshot(before)) or before, replace(shaped, snapshot=location.keyed(shaped.snapshot))


def _word(
    settings: DeltaSettings,
    location: TableLocation,
    made: Sequence[Decision],
    before: Snapshot,
    version: PlannedVersion,
    change: Change,
) -> str:
    if change.column_id in Decisions(made=tuple(made)).left_out(version.version):
        return "apply"  # to nothing
    action: str = action_for(settings.for_table(location.came_as).evolution, change.edit)
    if action == "repair":
        return "quarantine"  # Until the repair comes, in a plan of its own.
    after = before if version.snapshot is None else version.snapshot
    keys = {*before.primary_key, *after.primary_key}
    unfit = (action == "ignore" and change.added) or (action == "new_column" and not change.added)
    if change.column_id in keys and unfit:
        return "quarantine"
    if location.mirror and not keys and change.column_id and action in ("keep", "new_column"):
        return "quarantine"  # Its rows would not be found again by all that they hold.
    if change.edit == "change_key" and action == "apply" and not _finds(settings, location, made, before, after):
        return "quarantine"
    return action


def _repaired(
    action: str,
    settings: DeltaSettings,
    location: TableLocation,
    made: Sequence[Decision],
    version: PlannedVersion,
    change: Change,
) -> str:
    """The word in place of *action* where all rows of the table come with the plan."""
    if action != "quarantine":
        return action
    if change.edit in ("change_type", "computed_values"):
        return "repair"
    table_settings = settings.for_table(location.came_as)
    key = () if version.snapshot is None else version.snapshot.primary_key
    by_rows = not location.history and (not location.mirror or table_settings.keyless == "rows")
    stays = _keeps_rows(table_settings, location, made) or (table_settings.key and not location.key)
    return "apply" if change.edit == "change_key" and (key or by_rows) and not stays else action


def _finds(
    settings: DeltaSettings, location: TableLocation, made: Sequence[Decision], before: Snapshot, after: Snapshot
) -> bool:
    """Whether targets hold each value of the key that *after* has once, for every row that was there under the key *before*."""
    key = after.primary_key
    if any(d.edit == "add_column" and d.action == "ignore" and d.column_id in key for d in made):
        return False
    if not (location.mirror or location.history):
        return True
    table_settings = settings.for_table(location.came_as)
    if table_settings.key and not location.key:
        return False  # The primary key was the configured one, when a lake did not keep that.
    if not (before.primary_key and key) or _keeps_rows(table_settings, location, made):
        return False
    return not any(d.column_id in key and d.edit != "rename_column" for d in made)


def _keeps_rows(table_settings: TableSettings, location: TableLocation, made: Sequence[Decision]) -> bool:
    """Whether targets can have rows that the table does not have any more, which can have the same key as later ones."""
    soft = bool(location.mirror) and table_settings.mirror_deletes == "soft"
    return soft or any(d.edit in ("truncate", "drop_table") for d in made)


def _refused(location: TableLocation, version: PlannedVersion, change: Change) -> EditRefused:
    return EditRefused(
        "the run ends at an edit, as its table's evolution says",
        where=f"{location.name}{'.' + change.column if change.column else ''}: {version.statement}",
        found=change.edit,
        next_step=f"say something else than fail of {change.edit} for this table, and run again",
    )


def evolved(part: Part, *, soft: bool) -> EvolvedPart:
    """*part* by what was decided about its table; *soft*: the mirror keeps deleted rows."""
    made = Decisions.parse(part.location.evolved)
    if not any(decision.action not in STOPS for decision in made.made):
        return EvolvedPart(part=part, mirrored=part, images=part.written, labels={})
    log = replace(
        part,
        base=None if part.base is None else made.shown(part.base, part.base_version),
        versions=tuple(_shown(v, made, silent=("ignore",)) for v in part.versions),
        version_changes=_version_changes(part, made),
        set_aside=made.set_aside(part.base_version),
    )
    mirrored = replace(
        log,
        versions=_keeping(
            tuple(_shown(v, made, silent=("ignore",) if soft else ("ignore", "keep")) for v in part.versions), log, made
        ),
    )
    images = {number: made.shown(snapshot, number, whole=True) for number, snapshot in part.written.items()}
    labels = {}
    for number, image in images.items():
        pairs = zip(part.written[number].columns, image.columns, strict=True)
        if renamed := {physical_name(old.id): physical_name(new.id) for old, new in pairs if old.id != new.id}:
            labels[number] = renamed
    first = min(version.version for version in part.versions)
    differs = not soft and made.is_one_of("truncate", "keep", before=first)
    last = max(version.version for version in part.versions)
    return EvolvedPart(
        part=log,
        mirrored=mirrored,
        images=images,
        labels=labels,
        blanks={number: {physical_name(column_id) for column_id in made.kept(number)} for number in images},
        mirror_is_table=not differs,
        appends_are_new=not made.is_one_of("truncate", "keep", "ignore", before=last + 1),
    )


def _shown(version: PlannedVersion, made: Decisions, *, silent: tuple[str, ...]) -> PlannedVersion:
    """*version* as targets take it; rows do not go by statements of which one of *silent* was decided."""
    quiet = any(made.action(version.version, edit) in silent for edit in ("truncate", "drop_table"))
    edits = tuple(edit for edit in version.edits if not (quiet and retracts(edit)))
    snapshot = None if version.snapshot is None else made.shown(version.snapshot, version.version)
    return replace(version, edits=edits, snapshot=snapshot)


def _version_changes(part: Part, made: Decisions) -> Mapping[int, VersionChange]:
    found = {}
    before, number = part.base, part.base_version
    for version in part.versions:
        if version.snapshot is None:
            continue
        edits = () if before is None or version.place is None else tuple(changes(before, version))
        actions = {(c.edit, c.column_id): made.action(version.version, c.noted, c.column_id) for c in edits}
        found[version.version] = VersionChange(
            before=None if before is None else made.shown(before, number),
            kept=made.kept(version.version),
            unnamed=frozenset(
                made.shown_id(column_id, version.version)
                for (edit, column_id), action in actions.items()
                if edit == "rename_column" and action == "ignore"
            ),
            moves=before is None or actions.get(("move_column", 0)) == "apply",
        )
        before, number = version.snapshot, version.version
    return found


def _keeping(versions: tuple[PlannedVersion, ...], log: Part, made: Decisions) -> tuple[PlannedVersion, ...]:
    """*versions*, the last of which has the columns too that the part takes from its table and the mirror keeps."""
    last = next((at for at in reversed(range(len(versions))) if versions[at].snapshot is not None), None)
    snapshot = None if last is None else versions[last].snapshot
    if last is None or snapshot is None:
        return versions
    kept = made.kept(versions[last].version)
    snapshots = [s for s in (log.base, *log.carried.values()) if s is not None]
    gone = {
        column.id: column
        for columns in (s.columns for s in snapshots)
        for column in columns
        if column.id in kept and snapshot.column_by_id(column.id) is None
    }
    whole = replace(snapshot, columns=(*snapshot.columns, *gone.values()))
    return (*versions[:last], replace(versions[last], snapshot=whole), *versions[last + 1 :])
