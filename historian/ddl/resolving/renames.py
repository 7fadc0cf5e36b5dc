"""RENAME TABLE against a catalog. Tables that are not known move on beside those that are."""

from __future__ import annotations

from historian.ddl.parsing.context import StatementContext
from historian.ddl.parsing.statements import RenameTables
from historian.ddl.resolving.resolution import Resolution, named, unknown_reason
from historian.names import TableName
from historian.schema.edits import Edit, ForgetTable, RenameTable
from historian.schema.merge_tables import is_merge
from historian.schema.snapshots import NO_TABLES, Catalog, Snapshot

__all__ = ["rename_tables"]

_RENAMES_TEMPORARY_SINCE = 110800
"""MariaDB that was seen to rename a temporary table also behind an ALTER of it that failed, which no log has; 10.5 and 10.11 rename the real one."""


def rename_tables(statement: RenameTables, catalog: Catalog, context: StatementContext) -> Resolution:
    """Pairs take effect one after the other, so that a swap goes over a third name.

    A table that the catalog knows as unknown is so under its new name, and the others go on.
    """
    renames = _Renames(catalog)
    hidden: list[TableName] = []
    is_mariadb = context.flavor == "mariadb"
    temporary = set(context.temporary if is_mariadb else ())
    for pair in statement.pairs:
        old, new = named(pair, catalog, context)
        if old in temporary:
            temporary ^= {old, new}
            if renames.moves(old, new) and context.version < _RENAMES_TEMPORARY_SINCE:
                hidden += [old, new]
        elif not (renames.is_nothing(old) and (statement.if_exists or (is_mariadb and renames.is_taken(new)))):
            # Else a temporary table gets the name: MariaDB logs that without a mark.
            renames.take(old, new)
    if not renames.unknown and not hidden:
        return Resolution(kind="ddl", edits=tuple(renames.edits))
    reason = renames.reason
    if not renames.unknown:
        reason = f"{hidden[0]} or a temporary table of that name is renamed to {hidden[1]}: behind an ALTER that failed it is the real one"
    tables = tuple(dict.fromkeys((*renames.unknown, *hidden)))
    return Resolution(kind="not_understood", edits=tuple(renames.edits), tables=tables, reason=reason)


class _Renames:
    """What stands under each name, pair by pair.

    Attributes:
        edits: of the pairs so far.
        unknown: names that tables had or got that are not known, in order; a third name stands for nothing behind the statement.
        reason: why the first of them is not known.
    """

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._present: dict[TableName, Snapshot | None] = {}
        self._kinds = dict(catalog.unknown)
        self._came: set[TableName] = set()
        self._doubtful: set[TableName] = set()
        self.edits: list[Edit] = []
        self.unknown: dict[TableName, None] = {}
        self.reason = ""

    def is_taken(self, name: TableName) -> bool:
        """Whether a table that is known has the name."""
        return self._known(name) is not None

    def is_nothing(self, name: TableName) -> bool:
        """Whether nothing is known to have the name."""
        return not self.is_taken(name) and name not in self._kinds and name not in self._came

    def moves(self, old: TableName, new: TableName) -> bool:
        """Whether a table that is known can be renamed so."""
        return self.is_taken(old) and not self.is_taken(new) and old not in self._doubtful

    def take(self, old: TableName, new: TableName) -> None:
        """Takes the next pair."""
        snapshot = self._known(old)
        if snapshot is not None and self.moves(old, new):
            self._present |= {old: None, new: snapshot}
            self._kinds.pop(new, None)
            self._doubtful.discard(new)
            self.edits.append(RenameTable(table=old, table_id=snapshot.table_id, new=new))
            return
        kind = self._kinds.get(old)
        if kind in NO_TABLES or is_merge(kind):
            self._forget(old, new)
            return
        if snapshot is not None and old not in self._doubtful:
            self.reason = self.reason or f"{old} is renamed to {new}, which is the name of another table"
        self.reason = self.reason or f"{unknown_reason(old, self._catalog)}, and it is renamed to {new}"
        if snapshot is not None or old in self._doubtful or self.is_taken(new):
            self._doubtful |= {old, new} if snapshot is not None else {new}
            self._kinds.pop(old, None)
            self.unknown |= {old: None, new: None}
            return
        if old in self._came:
            self._came.discard(old)
            self.unknown.pop(old)
        else:
            self.unknown[old] = None
        self._came.add(new)
        self.unknown[new] = None
        if kind is not None:
            self._forget(old, new)

    def _forget(self, old: TableName, new: TableName) -> None:
        kind = self._kinds[new] = self._kinds.pop(old)
        self.edits += [ForgetTable(table=old, reason=""), ForgetTable(table=new, reason=kind)]

    def _known(self, name: TableName) -> Snapshot | None:
        return self._present.get(name, self._catalog.tables.get(name))
