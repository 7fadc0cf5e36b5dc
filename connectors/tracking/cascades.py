"""Rows that the storage engine changes by foreign keys, which not every server logs: which tables they are of."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from typing import TYPE_CHECKING

from connectors.tracking.copier import NO_CASCADES, CascadingKey, ParentLog
from historian.history.versions import touched_names
from historian.names import TableName
from historian.plans.segments import planned_tables
from historian.schema.snapshots import Catalog

if TYPE_CHECKING:
    from historian.history.history import History
    from historian.plans.plans import LogRange
    from historian.schema.edits import Edit

__all__ = ["gets_foreign_key", "logs_cascades", "parent_log"]

_LOGS_CASCADES = 90600
"""MySQL from which on cascades are logged as row events; MariaDB logs none."""


def logs_cascades(flavor: str, version: int) -> bool:
    """Whether a server of that version has row events of cascades, if ``innodb_native_foreign_keys`` is not on."""
    return flavor == "mysql" and version >= _LOGS_CASCADES


def gets_foreign_key(
    edits: Iterable[Edit], before: Catalog, after: Catalog, captured: Callable[[TableName], bool]
) -> Iterator[TableName]:
    """The captured tables that have a foreign key with an action since *edits*, or are captured since then and have one."""
    keys = {s.table_id: s.foreign_keys if captured(name) else () for name, s in before.tables.items()}
    for name in dict.fromkeys(name for edit in edits for name in touched_names(edit)):
        snapshot = after.tables.get(name)
        if (
            snapshot is not None
            and captured(name)
            and set(snapshot.foreign_keys) - set(keys.get(snapshot.table_id, ()))
        ):
            yield name


def parent_log(
    history: History,
    base: int,
    last: int,
    with_rows: Collection[int] | None,
    unread: Collection[TableName],
    ranges: Callable[[], tuple[LogRange, ...]],
) -> ParentLog:
    """What a log holds of the tables that others reference by foreign keys with an action.

    Args:
        base, last: numbers of the last entries before its begin and its end.
        with_rows: ids of tables with rows in it; None: any may have some.
        unread: tables whose rows in it cannot be read.
        ranges: gives its ranges.
    """
    keys = _cascading_keys(history, base, last)
    if not keys:
        return NO_CASCADES
    parents = frozenset().union(*(key.parents for key in keys))
    touched = parents if with_rows is None else parents.intersection(with_rows)
    if not touched and not unread:
        return NO_CASCADES
    tables = planned_tables(history, base=base, last=last, captured=lambda _: True, touched=touched, quarantines={})
    return ParentLog(
        keys=keys,
        tables=tuple(table for table in tables if table.table_id in touched),
        ranges=ranges(),
        unread=frozenset(unread),
    )


def _cascading_keys(history: History, base: int, last: int) -> tuple[CascadingKey, ...]:
    """The foreign keys with an action from the entry *base* to *last*, with all tables that may be the parent by now.

    A key follows a table that is renamed, or stays with the name, as the session of the RENAME says. Both are taken.
    """
    made = (version.snapshot for number in range(base + 1, last + 1) for version in history.versions_by(number))
    snapshots = (*history.catalog_at(base).tables.values(), *(snapshot for snapshot in made if snapshot is not None))
    found: dict[CascadingKey, None] = {}
    for snapshot in snapshots:
        for key in snapshot.foreign_keys:
            parents, names = _all_called(key.parent, history)
            columns = _columns_called(key.referenced, parents, history)
            found[CascadingKey(child=snapshot.table_id, key=key, parents=parents, names=names, referenced=columns)] = (
                None
            )
    return tuple(found)


def _columns_called(referenced: Iterable[str], parents: Collection[int], history: History) -> frozenset[str]:
    """All names, in lower case, of the columns that ever had one of those names: a foreign key follows a column to another name."""
    names = {name.lower() for name in referenced}
    columns = [
        (parent, column.id, column.name.lower())
        for parent in parents
        for version in history.versions_of(parent)
        if version.snapshot is not None
        for column in version.snapshot.columns
    ]
    ids = {(parent, column_id) for parent, column_id, name in columns if name in names}
    return frozenset(names | {name for parent, column_id, name in columns if (parent, column_id) in ids})


def _all_called(name: TableName, history: History) -> tuple[frozenset[int], frozenset[TableName]]:
    """The tables that ever had that name, or a name that one of them had: their ids, and all their names."""
    ids: set[int] = set()
    names: set[TableName] = set()
    waiting = [name]
    while waiting:
        name = waiting.pop()
        if name in names:
            continue
        names.add(name)
        for version in history.versions(name):
            if version.table_id not in ids:
                ids.add(version.table_id)
                waiting += [each.name for each in history.versions_of(version.table_id)]
    return frozenset(ids), frozenset(names)
