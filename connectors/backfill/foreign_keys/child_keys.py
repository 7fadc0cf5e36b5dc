"""The foreign keys of a child: the columns that they compare, and which rows they may have changed."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from connectors.backfill.foreign_keys.referenced import ReferencedValues
from connectors.readers.binlog.transport.connection import answered
from historian.names import TableName
from historian.plans.plans import PlannedVersion
from historian.plans.row_values import RowValues, has_plain_values
from historian.plans.segments import planned_tables

if TYPE_CHECKING:
    from connectors.readers.binlog.transport.connection import ServerAddress
    from connectors.tracking.copier import ParentLog
    from connectors.tracking.tracker import Tracker
    from historian.plans.plans import Plan
    from historian.schema.snapshots import ColumnType, Snapshot

__all__ = ["ChildKey", "Unbounded", "child_keys"]

_KEYS = """
    SELECT constraint_name, referenced_table_schema, referenced_table_name, column_name, referenced_column_name
    FROM information_schema.key_column_usage
    WHERE table_schema = %s AND table_name = %s AND referenced_table_name IS NOT NULL ORDER BY constraint_name, ordinal_position
"""
_RULES = """
    SELECT constraint_name, delete_rule, update_rule FROM information_schema.referential_constraints
    WHERE constraint_schema = %s AND table_name = %s
"""


class Unbounded(Exception):
    """The rows that may have changed are not told by few values."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildKey:
    """A foreign key of the child.

    Attributes:
        columns: ids of the child's; ``parent``: id of the table that it references, with id and type of the ``referenced`` columns.
        others: ids of tables that it may have referenced before.
    """

    columns: tuple[int, ...]
    parent: int
    others: frozenset[int]
    version: PlannedVersion
    referenced: tuple[tuple[int, ColumnType], ...]
    on_delete: str
    on_update: str

    @property
    def moves(self) -> bool:
        """Whether rows that it changes stay, with other values."""
        return self.on_delete == "set null" or self.on_update != ""

    def rows(self, values: ReferencedValues) -> RowValues:
        """The child's rows that may have changed with those of the parent."""
        if not values.is_known:
            raise Unbounded("referenced values of its parent are not known")
        acts = (values.has_deletes and self.on_delete != "") or (values.has_updates and self.on_update != "")
        nulls = (values.has_deletes and self.on_delete == "set null") or (
            values.has_updates and self.on_update == "set null"
        )
        new = values.new if self.on_update == "cascade" else {}
        return RowValues(columns=self.columns, values=tuple({**values.old, **new}) if acts else (), nulls=nulls)

    def moved(self, values: ReferencedValues) -> RowValues:
        """Those that may have other values meanwhile, and are there."""
        if values.is_known and self.on_delete == "cascade" and not values.has_updates:
            return RowValues(columns=self.columns)
        return self.rows(values)


def child_keys(
    address: ServerAddress, tracker: Tracker, plan: Plan, log: ParentLog, snapshot: Snapshot
) -> list[ChildKey]:
    """The foreign keys of a child, as the history and the server have them alike.

    The history does not tell when a column of a parent gets another name, nor a server when a foreign key was dropped. What both have
    was so all the time, if no statement was on the tables meanwhile.

    Args:
        snapshot: of the child, in force at the end of *plan*.

    Raises:
        Unbounded: values of its foreign keys do not tell which rows they changed.
        ConnectionLost, SourceError: the server cannot be asked.
    """
    ours = [key for key in log.keys if key.child == snapshot.table_id]
    catalog = tracker.history.catalog_at(plan.version)
    live = _live_keys(address, snapshot.name)
    children = {key.child for key in log.keys}
    found = []
    for cascading in ours:
        if not cascading.names.isdisjoint(log.unread):
            raise Unbounded("changes of a parent cannot be read")
        columns = tuple(_column(snapshot, column_id) for column_id in cascading.key.columns)
        names = tuple(name for name, _, _ in columns)
        referenced = tuple(name.lower() for name in cascading.key.referenced)
        actions = (cascading.key.on_delete, cascading.key.on_update)
        known = (names, referenced, *actions)
        same = [key for key in live if (key.columns, key.referenced, key.on_delete, key.on_update) == known]
        parents = [parent for key in same if (parent := catalog.tables.get(key.parent)) is not None]
        if len(same) != 1 or [parent.table_id in cascading.parents for parent in parents] != [True]:
            raise Unbounded("a foreign key is another one at the server")
        found_key = _child_key(tracker, plan, same[0], columns, parents[0])
        found_key = replace(found_key, others=cascading.parents - {found_key.parent})
        if found_key.moves and found_key.parent in children:
            raise Unbounded("a parent is itself a child")
        found.append(found_key)
    return found


def _child_key(
    tracker: Tracker, plan: Plan, live: _LiveKey, columns: Sequence[tuple[str, int, ColumnType]], parent: Snapshot
) -> ChildKey:
    if "set default" in (live.on_delete, live.on_update):
        raise Unbounded("a foreign key sets defaults")
    by_name = {column.name.lower(): column for column in parent.columns}
    theirs = [by_name[name] for name in live.referenced if name in by_name]
    if [kind for _, _, kind in columns] != [column.type for column in theirs]:
        raise Unbounded("a foreign key references other types")
    if not all(has_plain_values(column.type) for column in theirs):
        raise Unbounded("a foreign key's values are compared by the server alone")
    (planned,) = planned_tables(
        tracker.history,
        base=plan.version,
        last=plan.version,
        captured=lambda _: True,
        touched=(parent.table_id,),
        quarantines={},
    )
    return ChildKey(
        columns=tuple(column_id for _, column_id, _ in columns),
        parent=parent.table_id,
        others=frozenset(),
        version=planned.versions[-1],
        referenced=tuple((column.id, column.type) for column in theirs),
        on_delete=live.on_delete,
        on_update=live.on_update,
    )


def _column(snapshot: Snapshot, column_id: int) -> tuple[str, int, ColumnType]:
    column = snapshot.column_by_id(column_id)
    if column is None:
        raise Unbounded("a foreign key has a column that is gone")
    return column.name.lower(), column.id, column.type


@dataclass(frozen=True, slots=True, kw_only=True)
class _LiveKey:
    """A foreign key; names of *columns* and of those *referenced* in lower case, actions as ``on_delete`` of a schema's key says them."""

    parent: TableName
    columns: tuple[str, ...]
    referenced: tuple[str, ...]
    on_delete: str
    on_update: str


def _live_keys(address: ServerAddress, table: TableName) -> tuple[_LiveKey, ...]:
    """Those of *table*; none where it is not there.

    Raises:
        ConnectionLost, SourceError: the server cannot be asked.
    """
    with answered(str(table)), closing(address.connect()) as connection, connection.cursor() as cursor:
        cursor.execute(_RULES, (table.database, table.table))
        rules = {str(name): (_action(delete), _action(update)) for name, delete, update in cursor.fetchall()}
        cursor.execute(_KEYS, (table.database, table.table))
        parts: dict[str, list[tuple[str, ...]]] = {}
        for name, *part in cursor.fetchall():
            parts.setdefault(str(name), []).append(tuple(map(str, part)))
    return tuple(
        _LiveKey(
            parent=TableName(found[0][0], found[0][1]),
            columns=tuple(part[2].lower() for part in found),
            referenced=tuple(part[3].lower() for part in found),
            on_delete=rules[name][0],
            on_update=rules[name][1],
        )
        for name, found in parts.items()
        if name in rules
    )


def _action(rule: object) -> str:
    action = str(rule).lower()
    return "" if action in ("restrict", "no action") else action
