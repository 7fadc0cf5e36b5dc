"""A statement against a catalog: the edits it makes, or why it cannot be followed."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

from historian.ddl.parsing.context import StatementContext
from historian.ddl.parsing.cursor import ParseError
from historian.ddl.parsing.lexer import LexError, tokenize
from historian.ddl.parsing.parser import parse
from historian.ddl.parsing.statements import (
    AddColumn,
    AddKey,
    AlterDatabase,
    AlterTable,
    ChangeColumn,
    ChangesRows,
    CreateDatabase,
    CreateSequence,
    CreateTable,
    DropDatabase,
    DropTables,
    NoTable,
    RenameTables,
    RenameTo,
    Statement,
    TruncateTable,
)
from historian.ddl.parsing.touched_tables import ddl_tables, dml_tables
from historian.ddl.parsing.triage import FIRST_TOKENS, triage
from historian.ddl.parsing.wrappers import unwrapped, without_comments
from historian.ddl.resolving.alter import altered_table
from historian.ddl.resolving.create import copied_table, created_table, follows_inline_references, made_database
from historian.ddl.resolving.refused import Refused
from historian.ddl.resolving.table_edits import edits_between
from historian.names import TableName
from historian.schema.edits import CreateTable as CreateTableEdit
from historian.schema.edits import DropDatabase as DropDatabaseEdit
from historian.schema.edits import DropTable, Edit, ForgetTable, RenameTable, SetDatabase, apply_all
from historian.schema.edits import TruncateTable as TruncateTableEdit
from historian.schema.snapshots import NO_TABLES, SEQUENCE, TRIGGER, Catalog, Snapshot

__all__ = ["SYSTEM_DATABASES", "Resolution", "resolve"]

SYSTEM_DATABASES = frozenset(("mysql", "information_schema", "performance_schema", "sys", "ndbinfo"))
"""Databases whose tables are never tracked."""

_DML_TOKENS = 2000
PT_OSC_TRIGGER = "pt_osc_"
_LOGS_CASCADES = 90600
"""MySQL from which on cascades are logged as row events; MariaDB logs none."""
_REFERENCED = (1217, 1451)
"""Errors of a DROP that leaves those of its tables that a foreign key refers to, and does not say which."""
_GLANCE_TOKENS = 2
"""Enough for most statements."""
_EMPTIED = re.compile(r"DELETE FROM `(?:[^`]|``)+`\.`(?:[^`]|``)+`")
"""What a server logs of a MEMORY table that its restart has emptied."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolution:
    """What a statement does to a catalog.

    Attributes:
        edits: resolved, in order; ids come from the catalog's counters. Apply them all, whatever ``kind`` says.
        kind: "irrelevant": cannot change a table. "ddl": understood. "dml": changes rows without row events. "rows": a
            DDL that is understood and does so to ``tables``, once its edits are applied. "not_understood": the schema of
            ``tables`` is not known behind it; other tables have their edits.
        tables: of "dml", "rows" and "not_understood", those that the statement touches, as far as can be told.
        conditional: tables in ``edits`` whose CREATE says IF NOT EXISTS and is logged whether it did anything or not; it
            proves that the table begins here only where the catalog is known to hold every table.
        reason: of "dml", "rows" and "not_understood", a clause for people.
        filled: of "rows", whether all that may have happened is that NULLs became values.
        cascades: tables that get a foreign key by which their rows change when others do, on a server that does not log that.
    """

    edits: tuple[Edit, ...] = ()
    kind: Literal["irrelevant", "ddl", "dml", "rows", "not_understood"]
    tables: tuple[TableName, ...] = ()
    conditional: tuple[TableName, ...] = ()
    reason: str = ""
    filled: bool = False
    cascades: tuple[TableName, ...] = ()


_IRRELEVANT = Resolution(kind="irrelevant")
_NOTHING = Resolution(kind="ddl")


def resolve(sql: str, context: StatementContext, catalog: Catalog) -> Resolution:
    """What the statement does to *catalog*. Pure; never raises, whatever the text.

    A table that the catalog does not know, or knows as unknown, gets no edits and is in ``tables``.
    """
    try:
        kind, verb = triage(tokenize(sql, context, limit=_GLANCE_TOKENS))
        if kind == "wrapper":
            return _wrapped(sql, context, catalog)
        if kind == "unknown":
            kind, verb = triage(tokenize(sql, context, limit=FIRST_TOKENS))
        if kind == "irrelevant":
            return _IRRELEVANT
        if kind == "dml":
            return _dml(sql, context, catalog)
        if kind == "unknown":
            return _unknown(sql, context, catalog)
        return _ddl(without_comments(sql), context, catalog, verb)
    except Exception as error:  # noqa: BLE001 one strange statement must stop its table, never the pipeline
        return Resolution(kind="not_understood", reason=f"{type(error).__name__}: {error}")


def _wrapped(sql: str, context: StatementContext, catalog: Catalog) -> Resolution:
    inner = unwrapped(sql, context)
    if inner is None:
        return _IRRELEVANT
    found = resolve(inner.sql, context, catalog)
    if not inner.reason or found.kind == "irrelevant":
        return found
    before, after = catalog.tables, apply_all(found.edits, catalog).tables
    changed = {name for name in {*before, *after} if before.get(name) != after.get(name)}
    return Resolution(kind="not_understood", tables=tuple(sorted({*changed, *found.tables})), reason=inner.reason)


def _unknown(sql: str, context: StatementContext, catalog: Catalog) -> Resolution:
    """A statement that begins like none that is known: nobody can say that it leaves the tables alone that it names."""
    words = {value.lower() for value in tokenize(sql, context, limit=_DML_TOKENS).values}
    tables = tuple(sorted(name for name in catalog.tables if name.table.lower() in words))
    return Resolution(kind="not_understood", tables=tables, reason=f"an unknown statement: {sql[:80]!r}")


def _dml(sql: str, context: StatementContext, catalog: Catalog) -> Resolution:
    tokens = tokenize(sql, context, limit=_DML_TOKENS)
    named = _named(dml_tables(tokens, context), catalog, context)
    real = tuple(table for table in named if not _is_temporary(table, context))
    if named and not real:
        return _IRRELEVANT
    tables = _tracked(real)
    emptied = catalog.tables.get(tables[0]) if len(tables) == 1 and _EMPTIED.fullmatch(sql) else None
    if emptied is not None:
        return Resolution(kind="ddl", edits=(TruncateTableEdit(table=emptied.name, table_id=emptied.table_id),))
    return Resolution(kind="dml", tables=tables, reason=f"rows changed without row events by {sql[:80]!r}")


def _ddl(sql: str, context: StatementContext, catalog: Catalog, verb: tuple[str, str]) -> Resolution:
    try:
        statement = parse(tokenize(sql, context), context, verb)
    except (ParseError, LexError) as error:
        first = tokenize(sql, context, limit=FIRST_TOKENS)
        tables = _named(ddl_tables(first, context, verb), catalog, context)
        if tables and not _tracked(tables):
            return _IRRELEVANT
        return Resolution(kind="not_understood", tables=tables, reason=f"cannot be parsed: {error}")
    if isinstance(statement, (AlterTable, TruncateTable)) and _is_temporary(statement.table, context):
        return _IRRELEVANT
    if context.error_code:
        return _failed(statement, catalog, context)
    found = _RESOLVE[type(statement)](statement, catalog, context)
    if not (isinstance(statement, (CreateTable, AlterTable)) and _gets_cascade(statement, context)):
        return found
    return replace(found, cascades=_named(_tracked((statement.table,)), catalog, context))


def _is_temporary(table: TableName, context: StatementContext) -> bool:
    """Whether the name means a temporary table here: each statement on one is marked."""
    return context.uses_temporary and table in context.temporary


def _gets_cascade(statement: CreateTable | AlterTable, context: StatementContext) -> bool:
    """Whether a statement brings a foreign key with an action to its table, on a server that does not log the rows that it changes."""
    if context.flavor == "mysql" and context.version >= _LOGS_CASCADES:
        return False
    if isinstance(statement, CreateTable):
        keys = list(statement.keys)
    else:
        keys = [action.key for action in statement.actions if isinstance(action, AddKey)]
        for action in statement.actions:
            if isinstance(action, (AddColumn, ChangeColumn)):
                keys += action.column.keys()
    inline = follows_inline_references(context)
    return any(key.cascades and (inline or not key.inline) for key in keys)


def _failed(statement: Statement, catalog: Catalog, context: StatementContext) -> Resolution:
    """A statement that failed, and is logged for what it did before.

    DROP TABLE drops the tables that are there; MariaDB's CREATE OR REPLACE has dropped the old table.
    """
    if isinstance(statement, DropTables) and context.error_code not in _REFERENCED:
        return _drop_tables(replace(statement, if_exists=True), catalog, context)
    if isinstance(statement, CreateTable) and statement.or_replace:
        return _drop_tables(DropTables(tables=(statement.table,), if_exists=True), catalog, context)
    tables = _named(_tables_of(statement), catalog, context)
    return Resolution(
        kind="not_understood", tables=tables, reason=f"it failed with error {context.error_code} half-way"
    )


def _tables_of(statement: Statement) -> tuple[TableName, ...]:
    if isinstance(statement, RenameTables):
        return tuple(name for pair in statement.pairs for name in pair)
    if isinstance(statement, (CreateTable, AlterTable, TruncateTable)):
        return (statement.table,)
    return statement.tables if isinstance(statement, DropTables) else ()


def _tracked(tables: tuple[TableName, ...]) -> tuple[TableName, ...]:
    return tuple(table for table in tables if table.database.lower() not in SYSTEM_DATABASES)


def _named(tables: tuple[TableName, ...], catalog: Catalog, context: StatementContext) -> tuple[TableName, ...]:
    return tuple(_known_name(table, catalog, context) for table in tables)


def _known_name(table: TableName, catalog: Catalog, context: StatementContext) -> TableName:
    """The name as the catalog has it, where the server compares names without regard to case but keeps it."""
    if context.lower_case_table_names != 2 or table in catalog.tables:
        return table
    wanted = (table.database.lower(), table.table.lower())
    found = (name for name in catalog.tables if (name.database.lower(), name.table.lower()) == wanted)
    return next(found, table)


def _refused(table: TableName, reason: str, *others: TableName) -> Resolution:
    return Resolution(kind="not_understood", tables=tuple(dict.fromkeys((table, *others))), reason=reason)


def _unknown_reason(table: TableName, catalog: Catalog) -> str:
    reason = catalog.unknown.get(table)
    return f"the schema of {table} is not known" + (f": {reason}" if reason else "")


def _create_table(statement: CreateTable, catalog: Catalog, context: StatementContext) -> Resolution:
    table = _known_name(statement.table, catalog, context)
    if not _tracked((table,)):
        return _IRRELEVANT
    old = catalog.tables.get(table)
    logs_what_did_nothing = context.flavor == "mysql" and statement.if_not_exists
    if logs_what_did_nothing and catalog.unknown.get(table) in NO_TABLES:
        return _NOTHING
    if old is not None and statement.if_not_exists and not statement.or_replace:
        return _NOTHING
    if old is not None and not statement.or_replace:
        return _refused(table, "it is created while the history holds it already: a DROP is missing from the log")
    if logs_what_did_nothing and table in catalog.unknown:
        return _refused(
            table, f"CREATE TABLE IF NOT EXISTS may have done nothing, and {_unknown_reason(table, catalog)}"
        )
    if statement.refused or statement.select:
        query = "its columns come from a query that the log does not spell out"
        return _refused(table, statement.refused or query)
    try:
        snapshot = _new_table(statement, catalog, context)
    except Refused as refused:
        return _refused(table, str(refused))
    edits: list[Edit] = [] if old is None else [DropTable(table=table, table_id=old.table_id)]
    edits.append(CreateTableEdit(snapshot=snapshot))
    return Resolution(kind="ddl", edits=tuple(edits), conditional=(table,) if logs_what_did_nothing else ())


def _new_table(statement: CreateTable, catalog: Catalog, context: StatementContext) -> Snapshot:
    if statement.like is None:
        return created_table(statement, catalog, context)
    if _is_temporary(statement.like, context):
        raise Refused(f"it is made like {statement.like}, which is a temporary table")
    like = _known_name(statement.like, catalog, context)
    source = catalog.tables.get(like)
    if source is None:
        raise Refused(_unknown_reason(like, catalog))
    return copied_table(statement.table, source, catalog)


def _alter_table(statement: AlterTable, catalog: Catalog, context: StatementContext) -> Resolution:
    table = _known_name(statement.table, catalog, context)
    if not _tracked((table,)):
        return _IRRELEVANT
    others = [action.table for action in statement.actions if isinstance(action, RenameTo)]
    of_rows = [action for action in statement.actions if isinstance(action, ChangesRows)]
    for action in of_rows:
        others.extend(_named((*action.others, *filter(None, (action.creates, action.drops))), catalog, context))
    if not statement.actions:
        return _NOTHING
    old = catalog.tables.get(table)
    if old is None:
        if statement.if_exists and table not in catalog.unknown:
            return _NOTHING
        return _refused(table, _unknown_reason(table, catalog), *others)
    if of_rows:
        return _changed_rows(old, of_rows[0], catalog, context)
    try:
        new, moved = altered_table(old, statement, catalog, context)
    except Refused as refused:
        return _refused(table, str(refused), *others)
    if new.name != table and new.name in catalog.tables:
        return _refused(table, f"it is renamed to {new.name}, which the history holds already", *others)
    edits = edits_between(old, new, moved)
    if statement.ignore and _has_new_key(old, new):
        reason = "ALTER IGNORE with a new unique key takes rows away without row events"
        return Resolution(kind="rows", edits=edits, tables=(new.name,), reason=reason)
    filled = _filled(old, new, context, lax=statement.ignore or not context.strict)
    if filled:
        reason = f"NULL in {filled} becomes a value of the server's without row events"
        return Resolution(kind="rows", edits=edits, tables=(new.name,), reason=reason, filled=True)
    return Resolution(kind="ddl", edits=edits)


def _filled(old: Snapshot, new: Snapshot, context: StatementContext, *, lax: bool) -> str:
    """The first column that becomes NOT NULL where NULL in it is no error; "": none does.

    In a TIMESTAMP NULL becomes the present time in every session, unless MySQL changes the table in place, which it does not
    where a type changes. Columns of a new key are not among them: what they hold shows in the rows that the key finds.
    """
    pairs = [(held, column) for column in new.columns if (held := old.column_by_id(column.id)) is not None]
    copied = context.flavor == "mariadb" or any(held.type != column.type for held, column in pairs)
    for held, column in pairs:
        now = column.type.name == "timestamp" and copied
        if not held.nullable or column.nullable or not (lax or now):
            continue
        if column.id not in new.primary_key or new.primary_key == old.primary_key:
            return column.name
    return ""


def _has_new_key(old: Snapshot, new: Snapshot) -> bool:
    before, after = ({(key.columns, key.prefixes) for key in table.unique_keys} for table in (old, new))
    return new.primary_key not in ((), old.primary_key) or not after <= {(old.primary_key, ()), *before}


def _changed_rows(table: Snapshot, action: ChangesRows, catalog: Catalog, context: StatementContext) -> Resolution:
    """An action on partitions or tablespaces, which stands alone in its statement."""
    if action.truncates:
        return Resolution(kind="ddl", edits=(TruncateTableEdit(table=table.name, table_id=table.table_id),))
    edits: tuple[Edit, ...] = ()
    changed = [table.name, *_named(action.others, catalog, context)]
    if action.creates is not None:
        edits = (CreateTableEdit(snapshot=copied_table(action.creates, table, catalog)),)
        changed.append(action.creates)
    if action.drops is not None:
        (dropped,) = _named((action.drops,), catalog, context)
        gone = catalog.tables.get(dropped)
        edits = () if gone is None else (DropTable(table=dropped, table_id=gone.table_id),)
    reason = f"{action.reason} without row events"
    return Resolution(kind="rows", edits=edits, tables=tuple(dict.fromkeys(changed)), reason=reason)


def _drop_tables(statement: DropTables, catalog: Catalog, context: StatementContext) -> Resolution:
    edits: list[Edit] = []
    unknown: list[TableName] = []
    for table in _named(_tracked(statement.tables), catalog, context):
        snapshot = catalog.tables.get(table)
        if snapshot is not None:
            edits.append(DropTable(table=table, table_id=snapshot.table_id))
        elif catalog.unknown.get(table) in NO_TABLES:
            continue
        elif table in catalog.unknown or not statement.if_exists:
            unknown.append(table)
    if not unknown:
        return Resolution(kind="ddl", edits=tuple(edits))
    reason = "; ".join(_unknown_reason(table, catalog) for table in unknown)
    return Resolution(kind="not_understood", edits=tuple(edits), tables=tuple(unknown), reason=reason)


def _rename_tables(statement: RenameTables, catalog: Catalog, context: StatementContext) -> Resolution:
    """Pairs take effect one after the other, so that a swap goes over a third name."""
    present: dict[TableName, Snapshot | None] = {}
    edits: list[Edit] = []
    unknown: list[TableName] = []
    temporary = set(context.temporary if context.flavor == "mariadb" else ())
    for pair in statement.pairs:
        old, new = _named(pair, catalog, context)
        if old in temporary:
            temporary ^= {old, new}
            continue
        snapshot = present.get(old, catalog.tables.get(old))
        present[old] = None
        kind = catalog.unknown.get(old)
        if kind in NO_TABLES:
            edits += [ForgetTable(table=old, reason=""), ForgetTable(table=new, reason=kind or "")]
            continue
        taken = present.get(new, catalog.tables.get(new)) is not None
        if snapshot is None and taken and context.flavor == "mariadb" and old not in catalog.unknown:
            continue  # a temporary table gets the name: MariaDB logs that without a mark
        if snapshot is None or taken:
            if statement.if_exists and snapshot is None and old not in catalog.unknown:
                continue
            unknown += [old, new]
            continue
        present[new] = snapshot
        edits.append(RenameTable(table=old, table_id=snapshot.table_id, new=new))
    if not unknown:
        return Resolution(kind="ddl", edits=tuple(edits))
    reason = f"{_unknown_reason(unknown[0], catalog)}, and it is renamed to {unknown[1]}"
    return Resolution(kind="not_understood", edits=tuple(edits), tables=tuple(dict.fromkeys(unknown)), reason=reason)


def _truncate(statement: TruncateTable, catalog: Catalog, context: StatementContext) -> Resolution:
    table = _known_name(statement.table, catalog, context)
    if not _tracked((table,)):
        return _IRRELEVANT
    snapshot = catalog.tables.get(table)
    if snapshot is None:
        return _refused(table, _unknown_reason(table, catalog))
    return Resolution(kind="ddl", edits=(TruncateTableEdit(table=table, table_id=snapshot.table_id),))


def _create_sequence(statement: CreateSequence, catalog: Catalog, _: StatementContext) -> Resolution:
    """Its row events look like those of a table; the catalog remembers that they are none."""
    table = catalog.tables.get(statement.name)
    if catalog.unknown.get(statement.name) == SEQUENCE or (table is not None and not statement.or_replace):
        return _NOTHING
    gone = () if table is None else (DropTable(table=table.name, table_id=table.table_id),)
    return Resolution(kind="ddl", edits=(*gone, ForgetTable(table=statement.name, reason=SEQUENCE)))


def _no_table(statement: NoTable, catalog: Catalog, context: StatementContext) -> Resolution:
    """The catalog remembers names that no table can have, and triggers by which a tool shows itself."""
    edits: list[Edit] = []
    for name in _named(_tracked(statement.names), catalog, context):
        held = catalog.unknown.get(name)
        wanted = statement.reason != TRIGGER or name.table.startswith(PT_OSC_TRIGGER)
        if name in catalog.tables or not (wanted and held in (None, *NO_TABLES)) or held == (statement.reason or None):
            continue
        edits.append(ForgetTable(table=name, reason=statement.reason))
    return Resolution(kind="ddl", edits=tuple(edits))


def _create_database(statement: CreateDatabase, catalog: Catalog, context: StatementContext) -> Resolution:
    old = catalog.databases.get(statement.name)
    if old is not None and statement.if_not_exists:
        return _NOTHING
    edits: list[Edit] = []
    if statement.or_replace:
        edits += _emptied(statement.name, catalog)
    database = made_database(statement.name, statement.charset, None, catalog, context)
    edits.append(SetDatabase(database=database))
    return Resolution(kind="ddl", edits=tuple(edits))


def _alter_database(statement: AlterDatabase, catalog: Catalog, context: StatementContext) -> Resolution:
    old = catalog.databases.get(statement.name)
    clause = statement.charset
    if clause.charset is None and clause.collation is None:
        return _NOTHING
    database = made_database(statement.name, clause, old, catalog, context)
    return _NOTHING if database == old else Resolution(kind="ddl", edits=(SetDatabase(database=database),))


def _drop_database(statement: DropDatabase, catalog: Catalog, _: StatementContext) -> Resolution:
    edits = _emptied(statement.name, catalog)
    edits += [
        ForgetTable(table=name, reason="")
        for name, reason in sorted(catalog.unknown.items())
        if name.database == statement.name and reason in NO_TABLES
    ]
    if statement.name in catalog.databases:
        edits.append(DropDatabaseEdit(name=statement.name))
    return Resolution(kind="ddl", edits=tuple(edits))


def _emptied(database: str, catalog: Catalog) -> list[Edit]:
    tables = sorted(table for table in catalog.tables if table.database == database)
    return [DropTable(table=table, table_id=catalog.tables[table].table_id) for table in tables]


_RESOLVE: dict[type[Statement], Callable[[Any, Catalog, StatementContext], Resolution]] = {
    CreateTable: _create_table,
    AlterTable: _alter_table,
    DropTables: _drop_tables,
    RenameTables: _rename_tables,
    TruncateTable: _truncate,
    CreateSequence: _create_sequence,
    NoTable: _no_table,
    CreateDatabase: _create_database,
    AlterDatabase: _alter_database,
    DropDatabase: _drop_database,
}
