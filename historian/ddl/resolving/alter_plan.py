"""The actions of one ALTER TABLE by what they do, with IF EXISTS and IF NOT EXISTS decided against the table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from historian.ddl.parsing.actions import (
    Action,
    AddColumn,
    AddKey,
    AddPeriod,
    AlterColumn,
    ChangeColumn,
    ConvertCharset,
    DropColumn,
    DropForeignKey,
    DropKey,
    MergedTables,
    RenameColumn,
    RenameKey,
    RenameTo,
    SetSystemVersioning,
    TableOptions,
    Unsupported,
)
from historian.ddl.parsing.charsets import built_in_collation
from historian.ddl.parsing.context import StatementContext
from historian.ddl.parsing.definitions import CharsetClause, KeySpec
from historian.ddl.resolving.create import database_defaults
from historian.ddl.resolving.keys import keys_of
from historian.ddl.resolving.refused import Refused
from historian.ddl.types.column_types import Charset, charset_clause, most_bytes, resolves_default_charset
from historian.names import TableName
from historian.schema.snapshots import Catalog, Snapshot

__all__ = ["AlterPlan", "planned"]

_PRIMARY = "primary"
_PERIOD_TYPES = frozenset(("date", "datetime", "timestamp"))
_LONGEST_KEY_BYTES = 1000
"""The least that an engine of MariaDB's takes."""


@dataclass(slots=True)
class AlterPlan:
    """What an ALTER TABLE does. Names that are keys or members of sets are in lower case, and those before the statement.

    Attributes:
        defined: ADD, CHANGE and MODIFY in the statement's order; ``changed``: old names of the latter two.
        never_null: columns of an added period, as they are called behind the statement.
        keys: that are added, in order, those of column definitions among them.
        convert: charset and collation of CONVERT TO CHARACTER SET.
        inherited: the table's defaults behind the statement.
        option: charset and collation that a table option of the statement gives.
        system_versioned: what it says of that; None: nothing.
    """

    inherited: Charset
    defined: list[AddColumn | ChangeColumn] = field(default_factory=list)
    changed: set[str] = field(default_factory=set)
    dropped: set[str] = field(default_factory=set)
    renamed: dict[str, str] = field(default_factory=dict)
    altered: dict[str, list[AlterColumn]] = field(default_factory=dict)
    never_null: set[str] = field(default_factory=set)
    keys: list[KeySpec] = field(default_factory=list)
    dropped_keys: set[str] = field(default_factory=set)
    drops_primary: bool = False
    renamed_keys: dict[str, str] = field(default_factory=dict)
    dropped_foreign_keys: set[str] = field(default_factory=set)
    convert: Charset | None = None
    option: Charset | None = None
    name: TableName | None = None
    system_versioned: bool | None = None


@dataclass(slots=True)
class _Facts:
    """What the actions are judged by.

    Attributes:
        unique_keys: those over expressions, which may be unique, among them.
        database: defaults of the table's.
        current: of the session's. CONVERT TO CHARACTER SET DEFAULT means those to MySQL, and to MariaDB before 10.9.
    """

    plan: AlterPlan
    columns: set[str]
    added: set[str]
    keys: set[str]
    unique_keys: set[str]
    long_keys: set[str]
    has_primary: bool
    may_have_period: bool
    database: Charset
    current: Charset
    context: StatementContext


def planned(old: Snapshot, actions: tuple[Action, ...], catalog: Catalog, context: StatementContext) -> AlterPlan:
    """The plan of *actions* on the table *old*. Raises :class:`Refused` where one does not fit it."""
    plan = AlterPlan(inherited=(old.charset, old.collation))
    facts = _Facts(
        plan=plan,
        columns={column.name.lower() for column in old.columns},
        added=set(),
        keys={key.name.lower() for key in keys_of(old)},
        unique_keys={key.name.lower() for key, unique in keys_of(old) if unique or 0 in key.columns},
        long_keys=_long_keys(old) if context.flavor == "mariadb" else set(),
        has_primary=bool(old.primary_key),
        may_have_period=context.flavor == "mariadb" and _may_have_period(old),
        database=database_defaults(old.name.database, catalog, context),
        current=database_defaults(context.database, catalog, context),
        context=context,
    )
    for action in actions:
        _TAKE[type(action)](facts, action)
    if plan.option is not None and context.flavor == "mariadb":
        plan.inherited = plan.option  # in whatever order the two are said
    return plan


def _long_keys(table: Snapshot) -> set[str]:
    """Unique keys that MariaDB may keep as hashes, since their columns can be longer than a key may be."""
    sizes = {column.id: most_bytes(column.type) for column in table.columns}
    return {
        key.name.lower() for key in table.unique_keys if sum(sizes.get(c, 0) for c in key.columns) > _LONGEST_KEY_BYTES
    }


def _may_have_period(table: Snapshot) -> bool:
    """Whether two columns are such as a period is over: moments of one type that are never NULL."""
    kinds = [(column.type.name, column.type.fraction) for column in table.columns if not column.nullable]
    return any(kinds.count(kind) > 1 for kind in kinds if kind[0] in _PERIOD_TYPES)


def _is_there(facts: _Facts, name: str, *, if_exists: bool) -> bool:
    """Whether the table has that column. Raises where it must have it."""
    if name.lower() in facts.columns:
        return True
    if if_exists:
        return False
    raise Refused(f"there is no column {name!r}")


def _add(facts: _Facts, action: AddColumn) -> None:
    name = action.column.name.lower()
    if not (action.if_not_exists and (name in facts.columns or name in facts.added)):
        facts.plan.defined.append(action)
        facts.added.add(name)
    # MariaDB adds the keys of a definition that it passes over, if no key has their name.
    for key in action.column.keys():  # noqa: SIM118 a tuple of keys, not a mapping's
        _add_key(facts, AddKey(key=replace(key, if_not_exists=action.if_not_exists)))


def _change(facts: _Facts, action: ChangeColumn) -> None:
    if _changes_added(facts, action):
        return
    if not _is_there(facts, action.old, if_exists=action.if_exists):
        return
    if action.old.lower() in facts.plan.changed:
        raise Refused(f"the column {action.old!r} is changed twice")
    facts.plan.defined.append(action)
    facts.plan.changed.add(action.old.lower())
    for key in action.column.keys():  # noqa: SIM118 a tuple of keys, not a mapping's
        _add_key(facts, AddKey(key=replace(key, if_not_exists=action.if_exists)))  # MariaDB takes the one for the other


def _changes_added(facts: _Facts, action: ChangeColumn) -> bool:
    """Whether the action defines anew what the same statement adds; then it is the one that adds.

    MariaDB allows that, and finds the added column by the new name.
    """
    if facts.context.flavor != "mariadb" or action.old.lower() in facts.columns:
        return False
    wanted = action.column.name.lower()
    for at, earlier in enumerate(facts.plan.defined):
        if isinstance(earlier, AddColumn) and earlier.column.name.lower() == wanted:
            facts.plan.defined[at : at + 1] = []
            facts.plan.defined.append(AddColumn(column=action.column, position=action.position))
            facts.plan.keys.extend(action.column.keys())
            return True
    return False


def _drop(facts: _Facts, action: DropColumn) -> None:
    if _is_there(facts, action.name, if_exists=action.if_exists):
        facts.plan.dropped.add(action.name.lower())


def _rename(facts: _Facts, action: RenameColumn) -> None:
    if _is_there(facts, action.old, if_exists=action.if_exists):
        facts.plan.renamed[action.old.lower()] = action.new


def _alter(facts: _Facts, action: AlterColumn) -> None:
    if facts.context.flavor == "mariadb" or _is_there(facts, action.name, if_exists=action.if_exists):
        facts.plan.altered.setdefault(action.name.lower(), []).append(action)


def _add_key(facts: _Facts, action: AddKey) -> None:
    key = action.key
    if key.if_not_exists:
        name = (key.name or key.columns[0] or "").lower()
        if facts.has_primary if key.kind == "primary" else name in facts.keys:
            return
    facts.plan.keys.append(key)


def _add_period(facts: _Facts, action: AddPeriod) -> None:
    if action.if_not_exists and facts.may_have_period:
        raise Refused("a period is added IF NOT EXISTS to a table that may have one")
    facts.plan.never_null.update((action.start.lower(), action.end.lower()))


def _drop_key(facts: _Facts, action: DropKey) -> None:
    name = action.name.lower()
    if action.constraint:
        facts.plan.dropped_foreign_keys.add(name)
    if name == _PRIMARY:
        facts.plan.drops_primary = True
    elif name in facts.keys and (name in facts.unique_keys or not action.constraint):
        if action.constraint and action.if_exists and name in facts.long_keys:
            raise Refused("MariaDB may not find a long unique key by DROP CONSTRAINT IF EXISTS")
        facts.plan.dropped_keys.add(name)
    # A name that is no key: a check or foreign key, or a key that a foreign key made and the server took away. A key that is
    # not unique is no constraint.


def _drop_foreign_key(facts: _Facts, action: DropForeignKey) -> None:
    facts.plan.dropped_foreign_keys.add(action.name.lower())


def _rename_key(facts: _Facts, action: RenameKey) -> None:
    facts.plan.renamed_keys[action.old.lower()] = action.new


def _rename_to(facts: _Facts, action: RenameTo) -> None:
    facts.plan.name = action.table


def _options(facts: _Facts, action: TableOptions) -> None:
    facts.plan.inherited = _clause(facts, action.charset, facts.database)
    if action.charset != CharsetClause():
        facts.plan.option = facts.plan.inherited


def _convert(facts: _Facts, action: ConvertCharset) -> None:
    default = facts.database if resolves_default_charset(facts.context) else facts.current
    facts.plan.convert = facts.plan.inherited = _clause(facts, action.charset, default)


def _clause(facts: _Facts, clause: CharsetClause, default: Charset) -> Charset:
    """What a clause of the table says. A second one of MySQL's heeds no setting of the session."""
    charset, collation = charset_clause(clause, facts.plan.inherited, facts.context, default)
    is_second = facts.plan.convert is not None or facts.plan.option is not None
    if is_second and facts.context.flavor == "mysql" and clause.charset and not clause.collation:
        collation = built_in_collation(charset, facts.context)
    return charset, collation


def _merged(_: _Facts, __: MergedTables) -> None:
    """What UNION says to a table with rows of its own: nothing."""


def _system_versioning(facts: _Facts, action: SetSystemVersioning) -> None:
    facts.plan.system_versioned = action.system_versioned


def _unsupported(_: _Facts, action: Unsupported) -> None:
    raise Refused(action.reason)


_TAKE: dict[type, Callable[[_Facts, Any], None]] = {
    AddColumn: _add,
    ChangeColumn: _change,
    DropColumn: _drop,
    RenameColumn: _rename,
    AlterColumn: _alter,
    AddKey: _add_key,
    AddPeriod: _add_period,
    DropForeignKey: _drop_foreign_key,
    DropKey: _drop_key,
    RenameKey: _rename_key,
    RenameTo: _rename_to,
    TableOptions: _options,
    ConvertCharset: _convert,
    MergedTables: _merged,
    SetSystemVersioning: _system_versioning,
    Unsupported: _unsupported,
}
