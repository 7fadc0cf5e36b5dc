"""Online schema changes: a tool fills a shadow of a table and swaps the two by RENAME; it is one change of one table.

In the history the table keeps its id and the ids of its columns; what the swap changes are edits as those of an ALTER.
The table that the tool leaves behind is another one, with ids of its own. Names by which tools call their tables:

- gh-ost: ``_t_gho``, ``_t_ghc``, ``_t_ghk``, ``_t_del`` or ``_t_20260102030405_del`` (go/base/context.go);
- pt-online-schema-change: ``_t_new``, ``_t_old``, with more underscores where a name is taken;
- Spirit: ``_t_new``, ``_t_old``, ``_t_old_20260102_030405``, ``_t_chkpnt``;
- Vitess: ``_vt_vrp_UUID_TIME_`` and the like (go/vt/schema/name.go), before v20 ``_UUID_TIME_vrepl``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeVar

from historian.ddl.resolving.analyzed_tables import analyzed_name
from historian.ddl.resolving.table_edits import edits_between
from historian.ddl.types.defaults import implied_value
from historian.errors import EditConflict
from historian.names import TableName
from historian.schema.applying import apply_all
from historian.schema.edits import CreateTable, DropTable, Edit, ForgetTable, RenameTable
from historian.schema.generated_columns import under_ids
from historian.schema.snapshots import Catalog, Column, ForeignKey, Snapshot, UniqueKey
from historian.schema.type_compatibility import retyped

__all__ = ["NO_TOOLS", "TOOLS", "OnlineChanges", "Swap", "Tool"]

_Key = TypeVar("_Key", UniqueKey, ForeignKey)
_NAME_CHARACTERS = 64
_PRINTED_OTHERWISE = frozenset(
    ("timestamp", "float", "binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob")
)
"""Types whose defaults print otherwise than the values that they give."""
_VITESS = r"_vt_[a-z]{3}_[0-9a-f]{32}_\d{14}_"
_VITESS_EARLIER = r"_[0-9a-f]{8}(?:_[0-9a-f]{4}){3}_[0-9a-f]{12}_\d{14}_(?:vrepl|gho|ghc|del)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """How a tool names its tables; a group ``base`` is the name of the table that is changed.

    Attributes:
        shadow: the table that is filled and renamed to the changed one's name.
        aside: what the changed one is renamed to.
        others: further tables of the tool's own.
        fills: whether rows are copied with INSERT IGNORE and nobody looks at its warnings, so that NULLs become values.
        added_again: what copied rows hold in a column that the ALTER dropped and added again. It is what the "old" column held, the
            new column's "default", or "unknown" where releases of the tool differ. A generated column made plain is the same to gh-ost.
        marks: what the tool has in the database while it swaps, beside the shadow: tables, or triggers of the changed table. Names
            alone prove nothing: people call their tables so, and what they filled them with is anything. "": the names are proof.
        marks_follow: whether the marks are made behind the last change of the shadow. Older ones are left over from another run.
        signs: what the tool writes into the statement that swaps. Who else swaps may have copied a part.
        analyzes: whether it analyzes the shadow when all rows are copied. A run that was killed before leaves all other marks.
        guards: whether it makes, and drops, a table of the name aside before it swaps in one statement, when all rows are copied.
        exchanges: whether the changed table gets the shadow's name in the same statement.
    """

    name: str
    shadow: str
    aside: str
    others: str = ""
    fills: bool = False
    added_again: Literal["old", "default", "unknown"] = "unknown"
    marks: str = ""
    marks_follow: bool = False
    signs: str = ""
    analyzes: bool = False
    guards: bool = False
    exchanges: bool = False


TOOLS = (
    Tool(
        name="gh-ost",
        shadow=r"_(?P<base>.+)_gho",
        aside=r"_(?P<base>.+?)(?:_\d{14})?_del",
        others=r"_(?P<base>.+)_gh[ck]",
        fills=True,
        # getSharedColumns in go/logic/inspect.go leaves out dropped and generated columns.
        added_again="default",
        marks=r"_(?P<base>.+)_ghc",
        # All its statements on tables say so, in every release; its changelog table may be left over from a run that was killed.
        signs="/* gh-ost */",
        guards=True,
    ),
    Tool(
        name="pt-online-schema-change",
        shadow=r"_+(?P<base>.+)_new",
        aside=r"_+(?P<base>.+)_old",
        # It copies the columns that both tables have, by name.
        added_again="old",
        marks=r"pt_osc_.+_(?:ins|upd|del)",
        marks_follow=True,
        analyzes=True,
    ),
    Tool(
        name="spirit",
        shadow=r"_(?P<base>.+)_new",
        aside=r"_(?P<base>.+?)_old(?:_\d{8}_\d{6})?",
        others=r"_(?P<base>.+)_(?:chkpnt|sentinel)|_spirit_(?:checkpoint|sentinel)",
        marks=r"_(?P<base>.+)_chkpnt|_spirit_checkpoint",
        marks_follow=True,
        analyzes=True,
    ),
    Tool(name="vitess", shadow=f"{_VITESS}|{_VITESS_EARLIER}", aside=f"{_VITESS}|{_VITESS_EARLIER}", exchanges=True),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Swap:
    """What a statement does that puts a shadow in a table's place.

    Attributes:
        table, table_id: the changed table's name, and its id.
        shadow: the table that comes in its place, as it was before the statement.
        edits: of the statement, in place of those that its renames alone would be.
        refused: why the columns of the two cannot be told; then the table is not known from here on. "" where they can.
        unseen: why rows have other values than the log tells, under a schema that is known. "" where they have not.
    """

    table: TableName
    table_id: int
    shadow: Snapshot
    edits: tuple[Edit, ...]
    refused: str = ""
    unseen: str = ""


@dataclass(frozen=True, slots=True)
class OnlineChanges:
    """Recognises the tables and swaps of *tools*."""

    tools: tuple[Tool, ...] = TOOLS

    def owns(self, name: TableName) -> bool:
        """Whether a table of that name is a tool's own, whose rows are copies and no data."""
        patterns = (p for tool in self.tools for p in (tool.shadow, tool.aside, tool.others) if p)
        return any(re.fullmatch(pattern, name.table) for pattern in patterns)

    def sets_aside(self, table: TableName, new: TableName) -> bool:
        """Whether *new* is where a tool puts *table*, which another one is to replace."""
        return any(_is_of(tool.aside, new, table) for tool in self.tools)

    def replaces(self, table: TableName, new: TableName, catalog: Catalog) -> bool:
        """Whether a tool that shows itself in *catalog* puts *table* aside as *new*, so that another one is to come in its place."""
        return any(_is_of(tool.aside, new, table) and _marks(tool, table, catalog) for tool in self.tools)

    def swap(
        self,
        edits: tuple[Edit, ...],
        catalog: Catalog,
        created: Callable[[int], Snapshot | None],
        last_named: Callable[[TableName], int | None],
        *,
        sql: str,
        last_changed: Callable[[TableName], int],
    ) -> Swap | None:
        """What a statement's *edits* are where they put a shadow in a table's place, in one step or as the second of two.

        Args:
            edits: of one statement, whose text is *sql*.
            last_changed: gives the number of the last entry about a name; 0: there is none.
            catalog: before it.
            created: gives the schema that a table was created with, by id.
            last_named: gives the id of the table that last had a name.
        """
        renames = [edit for edit in edits if isinstance(edit, RenameTable)]
        before = {snapshot.table_id: snapshot for snapshot in catalog.tables.values()}
        final = {edit.table_id: edit.new for edit in renames}
        for shadow_id, name in final.items():
            shadow = before[shadow_id]
            changed = self._changed(name, catalog, before, last_named)
            if changed is None or changed.table_id == shadow_id:
                continue
            left_at = final.get(changed.table_id, changed.name)
            since = last_changed(shadow.name)
            tools = [
                tool
                for tool in self.tools
                if _is_of(tool.shadow, shadow.name, name)
                and tool.signs in sql
                and any(not tool.marks_follow or last_changed(mark) > since for mark in _marks(tool, name, catalog))
                and (not tool.analyzes or last_changed(analyzed_name(shadow.name)) > since)
                and (not tool.guards or changed.name != name or last_changed(left_at) > since)
                and (not tool.exchanges or left_at == shadow.name)
            ]
            if not tools:
                continue
            others = tuple(
                edit
                for edit in edits
                if not (isinstance(edit, RenameTable) and edit.table_id in (shadow_id, changed.table_id))
            )
            found = _as_edits(changed, shadow, name, left_at, created(shadow_id), catalog, tools)
            try:
                apply_all((*found.edits, *others), catalog)
            except EditConflict:
                return None
            return replace(found, edits=(*found.edits, *others))
        return None

    def _changed(
        self,
        name: TableName,
        catalog: Catalog,
        before: dict[int, Snapshot],
        last_named: Callable[[TableName], int | None],
    ) -> Snapshot | None:
        """The table that gives its name to a shadow: it has it still, or was put aside by an earlier statement."""
        held = catalog.tables.get(name)
        if held is not None:
            return held
        earlier = before.get(last_named(name) or 0)
        return earlier if earlier is not None and self.sets_aside(name, earlier.name) else None


NO_TOOLS = OnlineChanges(())
"""Recognises nothing: renames are renames."""


def _marks(tool: Tool, table: TableName, catalog: Catalog) -> list[TableName]:
    """The tool's marks that are in the database while it changes *table*; of a tool without any, the table itself."""
    if not tool.marks:
        return [table]
    present = [name for name in (*catalog.tables, *catalog.unknown) if name.database == table.database]
    if tool.marks.startswith("pt_osc_"):
        begin = re.sub(r"\W", "_", f"pt_osc_{table.database}_{table.table}", flags=re.ASCII)
        return [
            name
            for name in present
            if re.fullmatch(tool.marks, name.table) and _begins(begin, name.table.rpartition("_")[0])
        ]
    return [name for name in present if _is_of(tool.marks, name, table)]


def _begins(whole: str, name: str) -> bool:
    """Whether *name* is *whole*, or as much of it as fits into a trigger's name."""
    return name == whole or (len(name) >= _NAME_CHARACTERS - 5 and whole.startswith(name))


def _is_of(pattern: str, name: TableName, table: TableName) -> bool:
    found = re.fullmatch(pattern, name.table) if pattern and name.database == table.database else None
    if found is None:
        return False
    base = found.groupdict().get("base")
    cut = len(name.table) == _NAME_CHARACTERS and base is not None and table.table.startswith(base)
    return base in (None, table.table) or cut


def _as_edits(
    changed: Snapshot,
    shadow: Snapshot,
    name: TableName,
    left_at: TableName,
    created: Snapshot | None,
    catalog: Catalog,
    tools: Sequence[Tool],
) -> Swap:
    goes = DropTable(table=shadow.name, table_id=shadow.table_id)
    left = CreateTable(snapshot=_copy(changed, left_at, catalog))
    back = () if changed.name == name else (RenameTable(table=changed.name, table_id=changed.table_id, new=name),)
    same, refused = _matched(changed, shadow, created, tools)
    if refused:
        forget = ForgetTable(table=name, reason=refused)
        edits: tuple[Edit, ...] = (goes, *back, forget, left)
        return Swap(table=name, table_id=changed.table_id, shadow=shadow, edits=edits, refused=refused)
    old = replace(changed, name=name)
    new = _renumbered(shadow, same, created, replace(changed, name=name))
    changes = edits_between(old, new, [column.id for column in old.columns])
    unseen = _filled(changed, shadow, same) if any(tool.fills for tool in tools) else ""
    edits = (goes, *back, *changes, left)
    return Swap(table=name, table_id=changed.table_id, shadow=shadow, edits=edits, unseen=unseen)


def _filled(changed: Snapshot, shadow: Snapshot, same: Mapping[int, int]) -> str:
    """Why rows are not known whose NULLs the copy may have made values of; "": it has not.

    Columns of a new key are not among them: what they hold shows in the rows that the key finds.
    """
    key = tuple(same.get(column_id, 0) for column_id in shadow.primary_key)
    for column in shadow.columns:
        old = changed.column_by_id(same.get(column.id, 0))
        in_new_key = old is not None and old.id in key and key != changed.primary_key
        if old is not None and old.nullable and not (column.nullable or in_new_key):
            return (
                f"the table was replaced by {shadow.name}, where {column.name} became NOT NULL, and NULLs in it are copied as "
                f"other values; where there were none, say what the change was: "
                f"historian ddl-override CONFIG --table {changed.name} --statement 'ALTER TABLE ...'"
            )
    return ""


def _matched(
    changed: Snapshot, shadow: Snapshot, created: Snapshot | None, tools: Sequence[Tool]
) -> tuple[dict[int, int], str]:
    """Column ids of the shadow to those of the changed table; or why they cannot be told.

    Tools copy the columns that both tables have, by name. Who ran the tool chose whether a renamed column's values were copied,
    and what a column is that the shadow alone had from its beginning.
    """
    same: dict[int, int] = {}
    first = {column.id: column.name for column in (() if created is None else created.columns)}
    at_first = {name.lower() for name in first.values()}
    for column in shadow.columns:
        old = changed.column(column.name)
        if old is None:
            continue
        holds = _holds(column, old, first, at_first, tools)
        if holds == "unknown":
            return {}, _untold(shadow, changed, [old.name], [column.name])
        if holds == "old":
            same[column.id] = old.id
    gone = {c.name.lower(): c for c in changed.columns if c.id not in same.values()}
    # Those of an old name are told already.
    news = [column for column in shadow.columns if column.id not in same and changed.column(column.name) is None]
    pairs = [(gone[first[c.id].lower()].name, c.name) for c in news if first.get(c.id, "").lower() in gone]
    unclear = [c.name for c in news if c.id in first and first[c.id] == c.name]
    lost = [c.name for lower, c in gone.items() if lower not in at_first]
    if not pairs and not (unclear and lost):
        return same, ""
    olds, names = ([old for old, _ in pairs], [new for _, new in pairs]) if pairs else (lost, unclear)
    return {}, _untold(shadow, changed, olds, names)


def _holds(
    column: Column, old: Column, first: Mapping[int, str], at_first: Collection[str], tools: Sequence[Tool]
) -> str:
    """What copied rows hold in a column of the shadow that has the name of an "old" one; see :attr:`Tool.added_again`."""
    if first.get(column.id, column.name).lower() != column.name.lower():
        return "unknown"
    is_added = column.id not in first and column.name.lower() in at_first
    was_generated = old.generated is not None and column.generated is None
    if not (is_added or was_generated):
        return "old"
    held = {tool.added_again for tool in tools}
    return held.pop() if len(held) == 1 and (held == {"default"} or not was_generated) else "unknown"


def _untold(shadow: Snapshot, changed: Snapshot, olds: Sequence[str], names: Sequence[str]) -> str:
    return (
        f"the table was replaced by {shadow.name}, where {', '.join(olds)} became {', '.join(names)} or went, "
        f"and the log does not say whether values were copied from one to the other; say what the change was: "
        f"historian ddl-override CONFIG --table {changed.name} --statement 'ALTER TABLE ...'"
    )


def _renumbered(shadow: Snapshot, same: dict[int, int], created: Snapshot | None, changed: Snapshot) -> Snapshot:
    """The shadow's schema as the changed table's; columns that are not its own keep their ids, which no other has then."""
    first = {column.id for column in (() if created is None else created.columns)}
    columns = []
    for column in shadow.columns:
        old = changed.column_by_id(same.get(column.id, 0))
        if old is None:
            columns.append(_added(under_ids(column, same), is_first=column.id in first))
        else:
            initial = retyped(old, column.type).initial
            columns.append(replace(under_ids(column, same), initial=initial, initial_known=old.initial_known))
    return replace(
        shadow,
        table_id=changed.table_id,
        name=changed.name,
        columns=tuple(columns),
        primary_key=_ids(shadow.primary_key, same),
        unique_keys=_keys(shadow.unique_keys, same),
        other_keys=_keys(shadow.other_keys, same),
        foreign_keys=_keys(shadow.foreign_keys, same),
    )


def _added(column: Column, *, is_first: bool) -> Column:
    """A column that copied rows hold a default in, which the server gave to each when it was copied."""
    if column.generated is not None:
        return column
    default = column.default
    if default is None and not column.nullable:
        default = implied_value(column.type)
    is_plain = not column.default_is_expression and not column.auto_increment
    if is_plain and not is_first and (column.initial == default or column.type.name in _PRINTED_OTHERWISE):
        return column
    is_plain &= default is None or column.type.name not in _PRINTED_OTHERWISE
    return replace(column, initial=default if is_plain else None, initial_known=is_plain)


def _copy(snapshot: Snapshot, name: TableName, catalog: Catalog) -> Snapshot:
    """The same schema as that of another table, with ids from the catalog's counters."""
    same = {column.id: catalog.next_column_id + at for at, column in enumerate(snapshot.columns)}
    return replace(
        snapshot,
        table_id=catalog.next_table_id,
        name=name,
        columns=tuple(under_ids(column, same) for column in snapshot.columns),
        primary_key=_ids(snapshot.primary_key, same),
        unique_keys=_keys(snapshot.unique_keys, same),
        other_keys=_keys(snapshot.other_keys, same),
        foreign_keys=_keys(snapshot.foreign_keys, same),
    )


def _ids(columns: Iterable[int], same: dict[int, int]) -> tuple[int, ...]:
    return tuple(same.get(column, column) for column in columns)


def _keys(keys: tuple[_Key, ...], same: dict[int, int]) -> tuple[_Key, ...]:
    return tuple(replace(key, columns=_ids(key.columns, same)) for key in keys)
