"""How the schemas of targets follow a table's snapshots, by column id.

A column's id decides everything: its Delta id and its physical name follow from it. So a rename is a change of the name
only, and a column dropped and added again never shows old values.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from historian.changelog.missing_columns import MISSING_COLUMNS
from historian.changelog.operations import POSITION_COLUMNS, SYSTEM_COLUMNS, physical_name
from historian.errors import TableStopped
from historian.schema.snapshots import Column, Snapshot
from sinks.contract.decisions import GENERATION, VersionChange
from sinks.delta.log.columns import DeltaField, DeltaSchema, delta_type, mapped_field, widens
from sinks.rows.shapes import refuse_system_names
from sinks.shaping.rules import COMPUTED_IDS

__all__ = ["DELETED", "HISTORY_NAMES", "changelog_schema", "history_schema", "is_widened", "mirror_schema"]

_RESERVED_IDS = 1024
"""Delta ids of system columns and computed ones lie below; those of the history's columns ascend with their own ids above."""
_COMPUTED_IDS = 512
"""Delta ids of computed columns lie above; a table has them from its beginning."""
_IDS_EACH = 4
"""Delta takes only ids above all that a table has. Between two columns there is room for those that a changelog gets late."""


def _system_fields(types: Mapping[str, str], names: Iterable[str] = ()) -> tuple[DeltaField, ...]:
    """Columns of ours: *types* by the name in files, which is the column's own where *names* does not say another."""
    shown = tuple(names) or tuple(types)
    return tuple(
        mapped_field(name, kind, at, physical)
        for at, (name, (physical, kind)) in enumerate(zip(shown, types.items(), strict=True), 1)
    )


_SYSTEM_TYPES = {
    "offset": "long",
    "op": "integer",
    "system_time": "timestamp",
    "event_time": "timestamp",
    "schema_version": "long",
}
_POSITION_TYPES = {"position": "string", "ordinal": "integer", "transaction": "string"}
_OWN_FIELDS = _system_fields(
    {name: _SYSTEM_TYPES[name] for name in SYSTEM_COLUMNS}
    | {name: _POSITION_TYPES[action] for action, name in POSITION_COLUMNS.items()}
)
_CHANGELOG_FIELDS = _OWN_FIELDS[: len(SYSTEM_COLUMNS)]
_POSITION_FIELDS = _OWN_FIELDS[len(SYSTEM_COLUMNS) :]

DELETED = ("_deleted", "_deleted_at")
"""Columns of a mirror that keeps deleted rows, behind its data."""

_DELETED_FIELDS = _system_fields({"_deleted": "boolean", "_deleted_at": "timestamp"})

_HISTORY_TYPES = {"valid_from": "timestamp", "valid_to": "timestamp", "from_offset": "long", "to_offset": "long"}

HISTORY_NAMES = {
    "plain": tuple(_HISTORY_TYPES),
    "auto_cdc": ("__START_AT", "__END_AT", "from_offset", "to_offset"),
}
"""Columns of a history before its data; in files they are always called as under ``plain``."""


def mirror_schema(
    current: DeltaSchema | None, snapshot: Snapshot, *, soft: bool = False, follow: VersionChange | None = None
) -> DeltaSchema:
    """The schema that a mirror must have for *snapshot*; *soft*: it keeps deleted rows.

    Args:
        follow: how it goes there, where that is not as ever.

    Raises:
        TableStopped: a column's type cannot be reached from its present one by Delta's type widening.
    """
    own = _DELETED_FIELDS if soft else ()
    if soft:
        refuse_system_names(snapshot, DELETED, "a mirror that keeps deleted rows")
    kept = frozenset() if follow is None else follow.kept
    live, gone = _data_fields(current, snapshot, 0, follow)
    stays = [f for f in gone if f.column_id in kept]
    return _news(current, (*_distinct(live, stays, snapshot, own), *own))


def changelog_schema(
    current: DeltaSchema | None,
    snapshot: Snapshot,
    since: int,
    *,
    partial: bool = False,
    positions: Collection[str] = (),
    follow: VersionChange | None = None,
) -> DeltaSchema:
    """The schema that a changelog must have to take rows under *snapshot* as well: no column is ever lost.

    Columns that are gone stand last; where a new one took the name of a gone one, that is called ``name__h7`` by its
    id.

    Args:
        current: the present schema, None for a new table.
        snapshot: whose columns it must have.
        since: version that brings the columns that are new.
        partial: whether rows have absent columns. A changelog that had such rows keeps its columns for that.
        positions: which of :data:`historian.changelog.operations.POSITION_COLUMNS` a new table has; others keep what they have.
        follow: as of :func:`mirror_schema`.
    """
    held = () if current is None else current.fields
    partial = partial or bool({f.physical for f in held} & set(MISSING_COLUMNS))
    live, gone = _data_fields(current, snapshot, since, follow)
    named = {POSITION_COLUMNS[action] for action in positions} if current is None else {f.physical for f in held}
    system = (*_CHANGELOG_FIELDS, *(f for f in _POSITION_FIELDS if f.physical in named))
    refuse_system_names(snapshot)
    system = (*system, *(_missing_column_fields(held, (*_OWN_FIELDS, *live)) if partial else ()))
    return _news(current, _keeping(live, gone, snapshot, system, "the changelog"))


def history_schema(
    current: DeltaSchema | None, snapshot: Snapshot, names: str, *, follow: VersionChange | None = None
) -> DeltaSchema:
    """The same for a history, whose own columns are called as :data:`HISTORY_NAMES` says under *names*."""
    live, gone = _data_fields(current, snapshot, 0, follow)
    own = _system_fields(_HISTORY_TYPES, HISTORY_NAMES[names])
    return _news(current, _keeping(live, gone, snapshot, own, "the history"))


def is_widened(current: DeltaSchema | None, snapshot: Snapshot | None) -> bool:
    """Whether a target's columns have wider types than *snapshot*: it took a later version before its table stopped within a plan."""
    if current is None or snapshot is None:
        return False
    held = {field.column_id: field.type for field in current.fields if field.column_id is not None}
    pairs = ((delta_type(column), held.get(column.id)) for column in snapshot.columns)
    return any(kind is not None and wanted != kind and widens(wanted, kind) for wanted, kind in pairs)


def _keeping(
    live: Sequence[DeltaField],
    gone: Sequence[DeltaField],
    snapshot: Snapshot,
    system: tuple[DeltaField, ...],
    whose: str,
) -> tuple[DeltaField, ...]:
    refuse_system_names(snapshot, [f.name for f in system], whose)
    return (*system, *_distinct(live, gone, snapshot, system))


def _news(current: DeltaSchema | None, fields: tuple[DeltaField, ...]) -> DeltaSchema:
    return DeltaSchema(fields, 0 if current is None else current.last_id)


def _data_fields(
    current: DeltaSchema | None, snapshot: Snapshot, since: int, follow: VersionChange | None
) -> tuple[list[DeltaField], list[DeltaField]]:
    """Fields of the columns of *snapshot* as they are to stand, and those of columns that it does not have."""
    held = {} if current is None else {f.column_id: f for f in current.fields if f.column_id is not None}
    last = 0 if current is None else max((current.last_id, *(f.delta_id for f in current.fields)))
    live = {}
    for column in sorted(snapshot.columns, key=lambda column: column.id):
        known = held.get(column.id)
        if known is None:
            delta_id = _delta_id(column.id, last)
            kind = _type_of(column, snapshot)
            live[column.id] = mapped_field(column.name, kind, delta_id, physical_name(column.id), since)
            last = max(last, delta_id)
        else:
            live[column.id] = _held_field(column, known, snapshot, follow)
    order = [column.id for column in snapshot.columns]
    if follow is not None and not follow.moves:
        order = _steady(order, list(held))
    gone = [f for known_id, f in held.items() if known_id not in live]
    return [live[known_id] for known_id in order], gone


def _steady(wanted: Sequence[int], held: Sequence[int]) -> list[int]:
    """*wanted* with those of *held* in the order that they have there; a new one stands behind the one before it."""
    order = [known_id for known_id in held if known_id in wanted]
    for at, known_id in enumerate(wanted):
        if known_id not in order:
            order.insert(order.index(wanted[at - 1]) + 1 if at else 0, known_id)
    return order


def _missing_column_fields(held: Sequence[DeltaField], others: Sequence[DeltaField]) -> tuple[DeltaField, ...]:
    found = tuple(f for f in held if f.physical in MISSING_COLUMNS)
    last = max(f.delta_id for f in (*held, *others))
    return found or tuple(
        mapped_field(name, "array<string>", last + at, name) for at, name in enumerate(MISSING_COLUMNS, 1)
    )


def _held_field(column: Column, held: DeltaField, snapshot: Snapshot, follow: VersionChange | None) -> DeltaField:
    wanted = _type_of(column, snapshot)
    if wanted != held.type and not widens(held.type, wanted):
        raise TableStopped(
            "a column's new type is no widening that Delta knows",
            where=f"{snapshot.name}.{column.name}",
            expected=f"a type that {held.type} widens to",
            found=f"{wanted} for {column.type}",
            next_step="rebuild the table's targets from the log or a new start",
        )
    before = None if follow is None or follow.before is None else follow.before.column_by_id(column.id)
    stays = follow is not None and before is not None and (before.name == column.name or column.id in follow.unnamed)
    return replace(held, name=held.name if stays else column.name, type=wanted)


def _delta_id(column_id: int, last: int) -> int:
    """One that follows from the column's; where that is taken, or the column replaces another one, the one behind *last*."""
    if column_id > COMPUTED_IDS:
        return _COMPUTED_IDS + column_id - COMPUTED_IDS
    return max(last + 1, _RESERVED_IDS + _IDS_EACH * column_id if column_id < GENERATION else 0)


def _type_of(column: Column, snapshot: Snapshot) -> str:
    wanted = delta_type(column)
    if wanted == "variant" and column.id in snapshot.primary_key:
        raise TableStopped(
            "VARIANT values do not compare, and so are no key",
            where=f"{snapshot.name}.{column.name}",
            expected="types.json: text for a column of the primary key",
            next_step="say so in the configuration, then `historian heal`",
        )
    return wanted


def _distinct(
    live: Sequence[DeltaField], gone: Sequence[DeltaField], snapshot: Snapshot, own: Sequence[DeltaField]
) -> list[DeltaField]:
    """The fields under names that Delta tells apart: first come columns under their table's name for them, by their age.

    Where a name is taken, letter case aside, the column has its id behind it.
    """
    taken = {f.name.lower() for f in own}
    names: dict[str, str] = {}

    def rank(f: DeltaField) -> tuple[int, int]:
        column = snapshot.column_by_id(f.column_id or 0)
        return (2 if column is None else 0 if column.name == f.name else 1), f.column_id or 0

    for f in sorted((*live, *gone), key=rank):
        name = f.name
        while name.lower() in taken:
            name = f"{f.name}__{f.physical}" if name == f.name else f"{name}_"
        taken.add(name.lower())
        names[f.physical] = name
    return [replace(f, name=names[f.physical]) for f in (*live, *gone)]
