"""ALTER TABLE against the table's present schema, with the order of effects that servers have.

Names that DROP, CHANGE, MODIFY, RENAME and ALTER COLUMN take are those before the statement; AFTER and keys name columns
as they are called behind it. Columns are dropped, renamed and changed at their place first. Then, in the statement's
order, those that were given a position move there one after the other, and added ones are put in.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from historian.charsets.conversion import encoded, fitted
from historian.ddl.parsing.actions import AddColumn, AlterColumn, ChangeColumn, Position
from historian.ddl.parsing.charsets import is_mysql_8, keeps_bytes, maximum_bytes
from historian.ddl.parsing.context import StatementContext
from historian.ddl.parsing.definitions import ColumnSpec
from historian.ddl.parsing.statements import AlterTable
from historian.ddl.resolving.alter_plan import AlterPlan, planned
from historian.ddl.resolving.columns import (
    added_column,
    built_column,
    completed_spec,
    in_converted_charset,
    with_promoted_timestamp,
)
from historian.ddl.resolving.create import follows_inline_references
from historian.ddl.resolving.foreign_keys import added_foreign_keys, kept_foreign_keys
from historian.ddl.resolving.keys import Key, added_keys, as_snapshot_keys, keys_of, primary_columns, takes_part
from historian.ddl.resolving.refused import Refused
from historian.ddl.types.column_types import converted_type, resized_type
from historian.ddl.types.defaults import default_text
from historian.schema.generated_columns import with_sources
from historian.schema.snapshots import Catalog, Column, ColumnType, Snapshot, UniqueKey
from historian.schema.system_versioning import ROW_END, ROW_START, keys_with_row_end, row_end
from historian.schema.type_compatibility import retyped

__all__ = ["altered_table"]

_GENERATED_KEY = "my_row_id"


def altered_table(
    old: Snapshot, statement: AlterTable, catalog: Catalog, context: StatementContext
) -> tuple[Snapshot, tuple[int, ...]]:
    """The table behind the statement, and the ids of columns that were given a position.

    Ids of new columns come from the catalog's counter.

    Raises:
        Refused: the statement does not fit *old*, so the server, which accepted it, had another table.
    """
    plan = planned(old, statement.actions, catalog, context)
    added_primary = primary_columns(plan.keys)
    keeps_primary = added_primary is None and not plan.drops_primary
    scope = _Scope(
        plan=plan,
        context=context,
        never_null=frozenset(name.lower() for name in added_primary or ()) | plan.never_null,
        kept_primary=old.primary_key if keeps_primary else (),
    )
    columns, moved = _columns(old, scope, catalog)
    places = _key_places(old, columns)
    kept_primary = tuple(places[column] for column in old.primary_key if column in places) if keeps_primary else ()
    taken_over = {column.name.lower() for column in columns if column.id in set(kept_primary) - set(old.primary_key)}
    if taken_over:
        columns, moved = _columns(old, replace(scope, never_null=scope.never_null | taken_over), catalog)
    named = {column.name.lower(): column for column in columns}
    if len(named) != len(columns):
        raise Refused("two columns would have the same name")
    if not columns:
        raise Refused("no column would be left")
    generated = {column.id for column in old.columns if _is_generated_key(column, old)}
    if context.flavor == "mysql" and any(column.id in generated for column in columns[1:]):
        raise Refused(
            f"the place of {_GENERATED_KEY}, a generated invisible primary key, depends on a setting that is not in the log"
        )

    def column_of(name: str) -> Column:
        if name.lower() not in named:
            raise Refused(f"a key is over {name!r}, which is no column of the table")
        return named[name.lower()]

    primary_key = kept_primary if added_primary is None else tuple(column_of(name).id for name in added_primary)
    keys = added_keys(
        _kept_keys(old, plan, places, columns),
        plan.keys,
        column_of,
        primary=primary_key,
        inline_references=follows_inline_references(context),
    )
    foreign_keys = (
        *kept_foreign_keys(old.foreign_keys, plan.dropped_foreign_keys),
        *added_foreign_keys(old.name, plan.keys, column_of, inline_references=follows_inline_references(context)),
    )
    versioned = old.system_versioned if plan.system_versioned is None else plan.system_versioned
    if versioned and _hides_columns(old, columns):
        raise Refused("the log keeps the dropped columns of a row's start and end at their place, between others")
    unique, other = as_snapshot_keys(keys, columns)
    primary_key, unique = keys_with_row_end(columns, primary_key, unique)
    charset, collation = plan.inherited
    snapshot = replace(
        old,
        name=plan.name or old.name,
        columns=tuple(columns),
        primary_key=primary_key,
        unique_keys=unique,
        other_keys=other,
        charset=charset,
        collation=collation,
        system_versioned=versioned,
        foreign_keys=foreign_keys,
    )
    return snapshot, moved


def _hides_columns(old: Snapshot, columns: Sequence[Column]) -> bool:
    """Whether columns that say when a row was current are dropped, and do not stand last."""
    if row_end(old.columns) is None or row_end(columns) is not None:
        return False
    return {column.generation_expression for column in old.columns[-2:]} != {ROW_START, ROW_END}


def _is_generated_key(column: Column, table: Snapshot) -> bool:
    """Whether the column is what ``sql_generate_invisible_primary_key`` makes, which an ALTER moves to the front under it."""
    return (
        column.name == _GENERATED_KEY
        and column.invisible
        and column.auto_increment
        and table.primary_key == (column.id,)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Scope:
    """What each column of the table is judged by."""

    plan: AlterPlan
    context: StatementContext
    never_null: frozenset[str]
    kept_primary: tuple[int, ...]

    def defined(self, spec: ColumnSpec) -> ColumnSpec:
        """The definition as the server completes it."""
        spec = completed_spec(spec, self.context)
        if self.plan.convert is None:
            return spec
        if spec.type.name == "json" and self.context.flavor == "mariadb":
            spec = replace(spec, type=replace(spec.type, name="longtext"))  # it is converted as one
        return in_converted_charset(spec, *self.plan.convert, self.context)

    def added(self, spec: ColumnSpec, column_id: int) -> Column:
        """A new column. MariaDB lets an ALTER COLUMN of the same statement set its default."""
        spec = self.defined(spec)
        for action in self.plan.altered.get(spec.name.lower(), ()):
            spec = (
                replace(spec, default=action.default)
                if action.sets_default
                else replace(spec, invisible=bool(action.invisible))
            )
        in_key = spec.name.lower() in self.never_null
        return added_column(spec, column_id, self.plan.inherited, self.context, in_primary_key=in_key)

    def changed(self, old: Column, action: ChangeColumn) -> Column:
        """A column that is defined anew."""
        spec = self.defined(action.column)
        in_key = spec.name.lower() in self.never_null or old.id in self.kept_primary
        column = built_column(spec, old.id, self.plan.inherited, self.context, in_primary_key=in_key)
        if self.plan.convert is not None and not spec.type.length and is_mysql_8(self.context):
            kind = resized_type(old.type, column.type)
            if kind is None:
                raise Refused("MODIFY to a TEXT or BLOB beside CONVERT TO CHARACTER SET gives it a size of its own")
            column = replace(column, type=kind)
        if action.position is not None:
            for alteration in self.plan.altered.get(spec.name.lower(), ()):
                column = _with_attribute(column, alteration, self.context)
        column = replace(column, initial=retyped(old, column.type).initial, initial_known=old.initial_known)
        return old if column == old else column

    def kept(self, column: Column) -> Column:
        """A column that is neither dropped nor defined anew."""
        name = column.name.lower()
        for action in self.plan.altered.get(name, ()):
            column = _with_attribute(column, action, self.context)
        if name in self.plan.renamed:
            column = replace(column, name=self.plan.renamed[name])
        if self.plan.convert is not None and column.type.charset not in (None, "binary"):
            column = _converted(column, *self.plan.convert, self.context)
        if column.nullable and column.name.lower() in self.never_null:
            column = replace(column, nullable=False)
        return column


def _columns(old: Snapshot, scope: _Scope, catalog: Catalog) -> tuple[list[Column], tuple[int, ...]]:
    """The columns in their new order, and the ids of old ones that were given a position."""
    plan = scope.plan
    before = {column.name.lower(): column for column in old.columns}
    changes = {action.old.lower(): action for action in plan.defined if isinstance(action, ChangeColumn)}
    columns = []
    for name, column in before.items():
        if name in changes:
            columns.append(scope.changed(column, changes[name]))
        elif name not in plan.dropped:
            columns.append(scope.kept(column))
    next_id = catalog.next_column_id
    moved = []
    places = {column.id: column for column in columns}
    order = _Order(columns)
    for action in plan.defined:
        if isinstance(action, AddColumn):
            order.put(scope.added(action.column, next_id), action.position)
            next_id += 1
        elif action.position is not None:
            moved.append(before[action.old.lower()].id)
            order.move(places[moved[-1]], action.position)
    columns = order.columns
    added = range(catalog.next_column_id, next_id)
    defined = {before[name].id for name in changes} | set(added)
    promoted = with_promoted_timestamp(columns, defined, added, scope.context)
    return list(with_sources(promoted)), tuple(moved)


def _converted(column: Column, charset: str, collation: str, context: StatementContext) -> Column:
    """A column of text behind CONVERT TO CHARACTER SET."""
    old = column.type
    if not all(keeps_bytes(label, old.charset or "", charset) for label in old.labels):
        raise Refused("CONVERT TO CHARACTER SET damages the labels of an ENUM or SET that are not of the same bytes")
    kind = converted_type(old, charset, collation, context)
    text = column.default
    if text is not None and kind.charset is None and not column.default_is_expression:
        raw = encoded(fitted(text, old.charset or ""), old.charset or "").ljust(
            kind.length or 0 if kind.name == "binary" else 0, b"\0"
        )
        text = f"0x{raw.hex().upper()}"
    return replace(column, type=kind, default=text)


def _with_attribute(column: Column, action: AlterColumn, context: StatementContext) -> Column:
    if action.invisible is not None:
        return replace(column, invisible=action.invisible)
    if column.auto_increment and context.flavor == "mysql":
        return column  # it has no default, and MySQL says nothing
    text, is_expression = default_text(action.default, column.type, context)
    if context.flavor == "mariadb" and column.on_update and column.default == column.on_update:
        column = replace(
            column, on_update=None
        )  # MariaDB keeps both clauses as one attribute, which another default ends
    return replace(column, default=text, default_is_expression=is_expression)


class _Order:
    """Columns in order, with their names in lower case beside them."""

    def __init__(self, columns: list[Column]) -> None:
        self.columns = list(columns)
        self._names = [column.name.lower() for column in columns]

    def put(self, column: Column, position: Position | None) -> None:
        """Puts a column at its place; at the end where none is given."""
        at = len(self.columns)
        if position is not None:
            at = 0 if position.after is None else self._behind(position.after)
        self.columns.insert(at, column)
        self._names.insert(at, column.name.lower())

    def move(self, column: Column, position: Position) -> None:
        """Takes a column that is there to another place."""
        at = self.columns.index(column)
        del self.columns[at], self._names[at]
        self.put(column, position)

    def _behind(self, name: str) -> int:
        try:
            return self._names.index(name.lower()) + 1
        except ValueError:
            raise Refused(f"no column {name!r} to stand behind") from None


def _key_places(old: Snapshot, columns: Sequence[Column]) -> dict[int, int]:
    """Where the key parts of *old*'s columns are behind the statement, by column id; without those that go.

    Servers look for a part by its column's name: the first column, in the new order, that had that name or is new and has it.
    So a column that is dropped and added again keeps its keys, and one that comes before a renamed one takes them over.
    """
    names = {column.id: column.name.lower() for column in old.columns}
    first: dict[str, int] = {}
    for column in columns:
        first.setdefault(names.get(column.id, column.name.lower()), column.id)
    return {column: first[name] for column, name in names.items() if name in first}


def _kept_keys(old: Snapshot, plan: AlterPlan, places: Mapping[int, int], columns: Sequence[Column]) -> list[Key]:
    kept = []
    kinds = {column.id: column.type for column in (*old.columns, *columns)}
    for key, unique in keys_of(old):
        if key.name.lower() in plan.dropped_keys:
            continue
        prefixes = key.prefixes or (0,) * len(key.columns)
        parts = [
            (places.get(column, 0), prefix if places.get(column, 0) == column else _part(kinds, column, places, prefix))
            for column, prefix in zip(key.columns, prefixes, strict=True)
            if column == 0 or column in places
        ]
        if parts:
            left = tuple(prefix for _, prefix in parts)
            kept.append(
                Key(
                    UniqueKey(
                        name=plan.renamed_keys.get(key.name.lower(), key.name),
                        columns=tuple(column for column, _ in parts),
                        prefixes=left if any(left) else (),
                        generated=key.generated and key.name.lower() not in plan.renamed_keys,
                    ),
                    unique,
                )
            )
    return kept


def _part(kinds: Mapping[int, ColumnType], column: int, places: Mapping[int, int], prefix: int) -> int:
    """How many characters of the column that took its place a key takes: as many bytes as of *column*."""
    old, new = kinds[column], kinds[places[column]]
    size_bytes = (prefix or old.length or 0) * maximum_bytes(old.charset or "")
    return size_bytes // maximum_bytes(new.charset or "") if takes_part(new, 0) else 0
