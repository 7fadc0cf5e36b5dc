"""ALTER TABLE against the table's present schema, with the order of effects that servers have.

Names that DROP, CHANGE, MODIFY, RENAME and ALTER COLUMN take are those before the statement; AFTER and keys name columns
as they are called behind it. A changed column stays at its place unless it says FIRST or AFTER; those, and added columns,
are placed afterwards in the statement's order, so that AFTER may name a column added before it in the same statement.
"""

from __future__ import annotations

from dataclasses import replace

from historian.ddl.alter_plan import AlterPlan, planned
from historian.ddl.column_types import converted_type
from historian.ddl.context import StatementContext
from historian.ddl.defaults import default_text
from historian.ddl.keys import Key, added_keys, as_snapshot_keys, keys_of, primary_columns
from historian.ddl.resolve_columns import added_column, built_column, in_converted_charset, with_implicit_timestamps
from historian.ddl.resolve_create import Refused, follows_inline_references
from historian.ddl.statements import AddColumn, AlterColumn, AlterTable, ColumnSpec, Position
from historian.schema import Catalog, Column, Snapshot

__all__ = ["altered_table"]


def altered_table(
    old: Snapshot, statement: AlterTable, catalog: Catalog, context: StatementContext
) -> tuple[Snapshot, tuple[int, ...]]:
    """The table behind the statement, and the ids of columns that were given a position.

    Ids of new columns come from the catalog's counter.

    Raises:
        Refused: the statement does not fit *old*, so the server, which accepted it, had another table.
    """
    plan = planned(old, statement.actions, catalog, context)
    gone = {column.id for column in old.columns if column.name.lower() in plan.dropped}
    kept_primary = () if plan.drops_primary else tuple(column for column in old.primary_key if column not in gone)
    added_primary = primary_columns(plan.keys)
    in_primary = {name.lower() for name in added_primary or ()}
    columns, moved = _columns(old, plan, kept_primary if added_primary is None else (), in_primary, catalog, context)
    ids = {column.name.lower(): column.id for column in columns}
    if len(ids) != len(columns):
        raise Refused("two columns would have the same name")
    if not columns:
        raise Refused("no column would be left")

    def id_of(name: str) -> int:
        if name.lower() not in ids:
            raise Refused(f"a key is over {name!r}, which is no column of the table")
        return ids[name.lower()]

    keys = added_keys(
        _kept_keys(old, plan, gone), plan.keys, id_of, inline_references=follows_inline_references(context)
    )
    unique, other = as_snapshot_keys(keys)
    charset, collation = plan.inherited
    snapshot = replace(
        old,
        name=plan.name or old.name,
        columns=tuple(columns),
        primary_key=kept_primary if added_primary is None else tuple(id_of(name) for name in added_primary),
        unique_keys=unique,
        other_keys=other,
        charset=charset,
        collation=collation,
    )
    return snapshot, moved


def _columns(
    old: Snapshot,
    plan: AlterPlan,
    kept_primary: tuple[int, ...],
    in_primary: set[str],
    catalog: Catalog,
    context: StatementContext,
) -> tuple[list[Column], tuple[int, ...]]:
    """The columns in their new order, and the ids of old ones that were given a position."""
    specs = with_implicit_timestamps([action.column for action in plan.defined], context)
    if plan.convert is not None:
        specs = [in_converted_charset(spec, *plan.convert) for spec in specs]
    before = {column.name.lower(): column for column in old.columns}
    next_id = catalog.next_column_id
    at_their_place: dict[str, Column] = {}
    placed: list[tuple[Column, Position | None]] = []
    moved = []
    for action, spec in zip(plan.defined, specs, strict=True):
        in_key = spec.name.lower() in in_primary
        if isinstance(action, AddColumn):
            placed.append(
                (added_column(spec, next_id, plan.inherited, context, in_primary_key=in_key), action.position)
            )
            next_id += 1
            continue
        column = _changed(before[action.old.lower()], spec, plan, kept_primary, context, in_key=in_key)
        if action.position is None:
            at_their_place[action.old.lower()] = column
        else:
            placed.append((column, action.position))
            moved.append(column.id)
    columns = []
    for column in old.columns:
        name = column.name.lower()
        if name in at_their_place:
            columns.append(at_their_place[name])
        elif name not in plan.dropped and name not in plan.changed:
            columns.append(_kept(column, plan, in_primary, context))
    for column, position in placed:
        _place(columns, column, position)
    return columns, tuple(moved)


def _changed(
    old: Column,
    spec: ColumnSpec,
    plan: AlterPlan,
    kept_primary: tuple[int, ...],
    context: StatementContext,
    *,
    in_key: bool,
) -> Column:
    in_key = in_key or old.id in kept_primary
    column = built_column(spec, old.id, plan.inherited, context, in_primary_key=in_key)
    column = replace(column, initial=old.initial, initial_known=old.initial_known)
    return old if column == old else column


def _kept(column: Column, plan: AlterPlan, in_primary: set[str], context: StatementContext) -> Column:
    """A column that is neither dropped nor defined anew."""
    name = column.name.lower()
    for action in plan.altered.get(name, ()):
        column = _with_attribute(column, action, context)
    if name in plan.renamed:
        column = replace(column, name=plan.renamed[name])
    if plan.convert is not None and column.type.charset is not None:
        column = replace(column, type=converted_type(column.type, *plan.convert))
    if column.nullable and column.name.lower() in in_primary:
        column = replace(column, nullable=False)
    return column


def _with_attribute(column: Column, action: AlterColumn, context: StatementContext) -> Column:
    if action.invisible is not None:
        return replace(column, invisible=action.invisible)
    text, is_expression = default_text(action.default, column.type, context)
    return replace(column, default=text, default_is_expression=is_expression)


def _place(columns: list[Column], column: Column, position: Position | None) -> None:
    if position is None:
        columns.append(column)
        return
    if position.after is None:
        columns.insert(0, column)
        return
    wanted = position.after.lower()
    at = next((at for at, other in enumerate(columns) if other.name.lower() == wanted), None)
    if at is None:
        raise Refused(f"no column {position.after!r} to stand behind")
    columns.insert(at + 1, column)


def _kept_keys(old: Snapshot, plan: AlterPlan, gone: set[int]) -> list[Key]:
    kept = []
    for key in keys_of(old):
        if key.name.lower() in plan.dropped_keys:
            continue
        columns = tuple(column for column in key.columns if column not in gone) if gone else key.columns
        if columns or not key.columns:
            kept.append(Key(plan.renamed_keys.get(key.name.lower(), key.name), columns, unique=key.unique))
    return kept
