"""A server's present schemas, from ``information_schema``."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from connectors.readers.binlog.transport.connection import answered
from connectors.tracking.capture.lossy_texts import with_exact_texts
from historian.ddl import (
    SYSTEM_DATABASES,
    StatementContext,
    UnknownColumnType,
    parse_column_type,
    parse_default_text,
    parse_display_width,
    resolve,
)
from historian.ddl.parsing.charsets import charset_of, normal_charset, normal_collation
from historian.ddl.parsing.context import version_number
from historian.ddl.resolving.keys import takes_part
from historian.ddl.resolving.unnamed_tables import function_name, triggers_name
from historian.ddl.types.defaults import now_text
from historian.ddl.types.information_schema import COMPRESSED, WITHOUT_VERSIONING
from historian.names import TableName
from historian.schema.edits import ForgetTable
from historian.schema.generated_columns import with_sources
from historian.schema.merge_tables import merge_reason
from historian.schema.snapshots import (
    BYTE_TYPES,
    FUNCTION,
    NO_ROWS,
    SEQUENCE,
    TRIGGER,
    VIEW,
    Catalog,
    Column,
    ColumnType,
    Database,
    ForeignKey,
    Snapshot,
    UniqueKey,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from pymysql.connections import Connection
    from pymysql.cursors import Cursor

__all__ = ["UNTOLD_LABEL", "Capture", "capture_catalog"]

_HIDDEN = ", ".join(f"'{name}'" for name in sorted(SYSTEM_DATABASES))
_ACTIONS = "'CASCADE', 'SET NULL', 'SET DEFAULT'"
_WITHOUT_ROWS = "engine = 'BLACKHOLE' AND @@GLOBAL.default_storage_engine <> 'BLACKHOLE'"
"""Where all tables are of that engine the server passes on a log whose rows another one holds."""
_QUERIES = tuple(
    question.replace("HIDDEN", _HIDDEN).replace("WITHOUT_ROWS", _WITHOUT_ROWS).replace("(ACTIONS)", f"({_ACTIONS})")
    for question in (
        """SELECT schema_name, default_character_set_name, default_collation_name FROM information_schema.schemata
        WHERE schema_name NOT IN (HIDDEN) ORDER BY schema_name""",
        """SELECT table_schema, table_name, table_collation, table_type = 'SYSTEM VERSIONED' FROM information_schema.tables
        WHERE table_type IN ('BASE TABLE', 'SYSTEM VERSIONED') AND table_schema NOT IN (HIDDEN) ORDER BY table_schema, table_name""",
        """SELECT table_schema, table_name, column_name, column_type, is_nullable, column_default, character_set_name,
        collation_name, extra, generation_expression, column_key FROM information_schema.columns
        WHERE table_schema NOT IN (HIDDEN) ORDER BY table_schema, table_name, ordinal_position""",
        """SELECT table_schema, table_name, index_name, non_unique, column_name, sub_part FROM information_schema.statistics
        WHERE table_schema NOT IN (HIDDEN) ORDER BY table_schema, table_name, index_name, seq_in_index""",
        """SELECT table_schema, table_name, IF(engine IN ('MRG_MyISAM', 'BLACKHOLE'), engine, table_type) FROM information_schema.tables
        WHERE (table_type IN ('SEQUENCE', 'VIEW') OR engine = 'MRG_MyISAM' OR (WITHOUT_ROWS)) AND table_schema NOT IN (HIDDEN) ORDER BY table_schema, table_name""",
        """SELECT routine_schema, routine_name FROM information_schema.routines
        WHERE routine_type <> 'PROCEDURE' AND routine_schema NOT IN (HIDDEN) ORDER BY routine_schema, routine_name""",
        """SELECT DISTINCT trigger_schema FROM information_schema.triggers
        WHERE trigger_schema NOT IN (HIDDEN) AND trigger_name NOT LIKE 'pt\\_osc\\_%' ORDER BY trigger_schema""",
        """SELECT constraint_schema, table_name, constraint_name, delete_rule, update_rule FROM information_schema.referential_constraints
        WHERE constraint_schema NOT IN (HIDDEN) AND (delete_rule IN (ACTIONS) OR update_rule IN (ACTIONS)) ORDER BY 1, 2, 3""",
        """SELECT table_schema, table_name, constraint_name, referenced_table_schema, referenced_table_name, column_name, referenced_column_name
        FROM information_schema.key_column_usage WHERE referenced_table_name IS NOT NULL AND table_schema NOT IN (HIDDEN)
        ORDER BY table_schema, table_name, constraint_name, ordinal_position""",
    )
)
_SHOWN = f"NOT IN ({_HIDDEN})"
_KINDS = {"SEQUENCE": SEQUENCE, "VIEW": VIEW, "BLACKHOLE": NO_ROWS}
_CANNOT_MERGE = (1146, 1168, 1194, 1195, 1472)
"""Errors of a MERGE table one of whose tables is gone, of another kind, damaged, or is itself; and of one that is gone by now."""
_TRIES = 5
_CHANGING = "statements changed the table while its schema was read"
UNTOLD_LABEL = "the server does not tell a label"
"""How the reason of :attr:`Catalog.unknown` begins, where ``information_schema`` prints no whole list of labels."""
_NOW = re.compile(r"(?:current_timestamp|localtimestamp)(?:\((\d*)\))?", re.IGNORECASE)

_Rows = tuple[tuple[Any, ...], ...]


class Capture(Protocol):
    """Reads the present schemas of a server; ids are taken from the given counters."""

    def __call__(self, next_table_id: int, next_column_id: int, *, exact: bool = True) -> Catalog:
        """All non-system databases and tables, read at one moment; see :func:`capture_catalog`."""


def capture_catalog(
    connection: Connection[Any],
    next_table_id: int,
    next_column_id: int,
    *,
    exact: bool = True,
    databases: Collection[str] | None = None,
) -> Catalog:
    """All tables and databases but the server's own, as they are at one moment. Views and sequences are no tables.

    A table with a column type that is not known here is in ``unknown``, and so is a sequence or view, and a table that
    statements change all the while.

    Args:
        connection: to the server, in any state but inside a transaction; cursors give tuples.
        next_table_id, next_column_id: the counters that ids are taken from.
        exact: whether labels and defaults that servers print with losses are asked for by value
            (:mod:`connectors.tracking.capture.lossy_texts`), else they are as printed.
        databases: to read alone, which takes a server of many less; None: all.

    Raises:
        ConnectionLost: the connection broke.
        SourceError: the server refuses to tell the schemas.
    """
    with answered("information_schema"), connection.cursor() as cursor:
        cursor.execute("SELECT VERSION(), @@SESSION.sql_mode, @@GLOBAL.character_set_server, @@GLOBAL.collation_server")
        ((version, modes, charset, collation),) = cursor.fetchall()
        answers, differing = _one_moment(cursor, _questions(cursor, databases))
        schemata, tables, columns, statistics, others, functions, triggers, rules, parts = answers
        context = _context(version, modes)
        names = dict.fromkeys(differing & {TableName(*row[:2]) for row in tables}, _CHANGING)
        names |= {
            TableName(database, table): _KINDS.get(kind) or _merged(cursor, TableName(database, table), context)
            for database, table, kind in others
        }
    names |= {function_name(TableName(*row)): FUNCTION for row in functions}
    names |= {triggers_name(database): TRIGGER for (database,) in triggers}
    builder = _Builder(context=context, next_column_id=next_column_id)
    builder.read_columns(tuple(row for row in columns if TableName(*row[:2]) not in names))
    builder.read_keys(statistics)
    builder.read_foreign_keys(rules, parts)
    unknown = {**builder.unknown, **names}
    snapshots = [
        builder.snapshot(table_id, TableName(database, table), table_collation, system_versioned=bool(versioned))
        for table_id, (database, table, table_collation, versioned) in enumerate(tables, next_table_id)
        if TableName(database, table) not in unknown
    ]
    catalog = Catalog(
        tables={snapshot.name: snapshot for snapshot in snapshots},
        databases={
            name: Database(name=name, charset=normal_charset(default), collation=normal_collation(default_collation))
            for name, default, default_collation in schemata
        },
        charset=normal_charset(charset),
        collation=normal_collation(collation),
        unknown=unknown,
        next_table_id=next_table_id + len(tables),
        next_column_id=builder.next_column_id,
    )
    if not exact:
        return catalog
    with answered("its tables"), connection.cursor() as cursor:
        return with_exact_texts(cursor, catalog, flavor=context.flavor)


def _merged(cursor: Cursor, table: TableName, context: StatementContext) -> str:
    """The reason that tells a MERGE table, as the server spells it out."""
    import pymysql

    try:
        cursor.execute(f"SHOW CREATE TABLE {table.quoted}")
    except pymysql.err.MySQLError as error:
        if error.args and error.args[0] in _CANNOT_MERGE:  # nobody can use it before a statement makes it anew
            return merge_reason(())
        raise
    ((_, sql),) = cursor.fetchall()
    resolution = resolve(_text(sql) or "", replace(context, database=table.database), Catalog())
    return next(edit.reason for edit in resolution.edits if isinstance(edit, ForgetTable))


def _context(version: str, modes: str) -> StatementContext:
    """What decides how the server prints defaults."""
    return StatementContext(
        flavor="mariadb" if "mariadb" in version.lower() else "mysql",
        version=version_number(version),
        sql_mode=frozenset(modes.upper().split(",")),
    )


def _questions(cursor: Cursor, databases: Collection[str] | None) -> Sequence[str]:
    """The queries of all databases, or of those alone."""
    if databases is None:
        return _QUERIES
    escaped = [str(cursor.connection.escape(name)) for name in sorted(databases)]
    # MariaDB looks up a database alone by equality.
    are_they = f"= {escaped[0]}" if len(escaped) == 1 else f"IN ({', '.join(escaped) or 'NULL'})"
    return tuple(query.replace(_SHOWN, are_they) for query in _QUERIES)


def _one_moment(cursor: Cursor, questions: Sequence[str]) -> tuple[list[_Rows], frozenset[TableName]]:
    """The answers to all queries, asked until two rounds agree: ``information_schema`` knows no snapshot on all servers.

    Some servers make and drop tables all the time: after the last try, the tables on which two rounds differ come second.
    """
    before = _round(cursor, questions)
    for _ in range(_TRIES):
        after = _round(cursor, questions)
        if before == after:
            return after, frozenset()
        before, last = after, before
    tables, others = (_by_table(answers) for answers in (last, before))
    return before, frozenset(name for name in {*tables, *others} if tables.get(name) != others.get(name))


def _by_table(answers: Sequence[_Rows]) -> dict[TableName, list[tuple[Any, ...]]]:
    """All rows of one round that are on a table, in their order."""
    rows: dict[TableName, list[tuple[Any, ...]]] = defaultdict(list)
    for query, answer in zip(_QUERIES, answers, strict=True):
        if "table_name" in query:
            for row in answer:
                rows[TableName(*row[:2])].append(row)
    return rows


def _round(cursor: Cursor, questions: Sequence[str]) -> list[_Rows]:
    answers = []
    for question in questions:
        cursor.execute(question)
        answers.append(tuple(cursor.fetchall()))
    return answers


class _ForeignKey(NamedTuple):
    parent: TableName
    actions: tuple[str, ...]
    parts: list[tuple[str, str]]


@dataclass(slots=True)
class _Builder:
    """Makes snapshots of the rows of ``information_schema``."""

    context: StatementContext
    next_column_id: int
    columns: dict[TableName, list[Column]] = field(default_factory=lambda: defaultdict(list))
    unknown: dict[TableName, str] = field(default_factory=dict)
    keys: dict[TableName, dict[str, tuple[bool, list[tuple[str | None, int]]]]] = field(
        default_factory=lambda: defaultdict(dict)
    )
    foreign_keys: dict[TableName, dict[str, _ForeignKey]] = field(default_factory=lambda: defaultdict(dict))
    marks: dict[TableName, dict[str, str]] = field(default_factory=lambda: defaultdict(dict))
    """``column_key`` by column, which tells something of the order of keys."""

    @property
    def flavor(self) -> str:
        return self.context.flavor

    def read_columns(self, rows: _Rows) -> None:
        for row in rows:
            database, table, name, type_text, is_nullable, default, charset, collation, extra, expression, key = row
            try:
                kind = parse_column_type(_text(type_text) or "", charset, collation, self.flavor)
            except UnknownColumnType as error:
                is_label = str(_text(type_text)).startswith(("enum(", "set("))
                where = f"{UNTOLD_LABEL} of column {name}" if is_label else f"column {name}"
                self.unknown[TableName(database, table)] = f"{where}: {error}"
                continue
            text, is_expression = self._default(_text(default), kind, extra)
            extra = extra.lower()
            generated = "virtual" if "virtual generated" in extra else "stored" if "stored generated" in extra else None
            column = Column(
                id=self.next_column_id,
                name=name,
                type=kind,
                nullable=is_nullable == "YES",
                default=text,
                default_is_expression=is_expression,
                on_update=_canonical_now(extra.partition("on update ")[2]),
                auto_increment="auto_increment" in extra,
                generated=generated,
                generation_expression=_text(expression) if generated else None,
                invisible="invisible" in extra,
                display_width=parse_display_width(_text(type_text) or "", self.flavor),
                compressed=(_text(type_text) or "").endswith(COMPRESSED),
                unversioned=extra.endswith(WITHOUT_VERSIONING.lower()),
            )
            self.marks[TableName(database, table)][name] = key
            self.next_column_id += 1
            self.columns[TableName(database, table)].append(column)

    def read_keys(self, rows: _Rows) -> None:
        for database, table, index, non_unique, column, prefix in rows:
            _, parts = self.keys[TableName(database, table)].setdefault(index, (not non_unique, []))
            parts.append((column, prefix or 0))

    def read_foreign_keys(self, rules: _Rows, parts: _Rows) -> None:
        actions = {tuple(row[:3]): tuple(map(_action, row[3:])) for row in rules}
        for database, table, name, parent_database, parent, column, referenced in parts:
            if (database, table, name) in actions:
                key = _ForeignKey(TableName(parent_database, parent), actions[database, table, name], [])
                self.foreign_keys[TableName(database, table)].setdefault(name, key).parts.append((column, referenced))

    def snapshot(self, table_id: int, name: TableName, collation: str, *, system_versioned: bool) -> Snapshot:
        columns = with_sources(self.columns[name])
        ids = {column.name: column.id for column in columns}
        kinds = {column.name: column.type for column in columns}
        unique, other = [], []
        primary: tuple[int, ...] = ()
        for index, (is_unique, parts) in sorted(self.keys[name].items()):
            prefixes = tuple(n if c is not None and n and takes_part(kinds[c], n) else 0 for c, n in parts)
            key = UniqueKey(
                name=index,
                columns=tuple(0 if column is None else ids[column] for column, _ in parts),
                prefixes=prefixes if any(prefixes) else (),
            )
            if index == "PRIMARY":
                primary = key.columns
            elif is_unique and 0 not in key.columns:
                unique.append(key)
            else:
                other.append(key)
        unique.sort(key=lambda key: self._comes_late(name, key, columns, has_primary=bool(primary)))
        return Snapshot(
            table_id=table_id,
            name=name,
            columns=columns,
            primary_key=primary,
            unique_keys=tuple(unique),
            other_keys=tuple(other),
            charset=charset_of(normal_collation(collation)),
            collation=normal_collation(collation),
            system_versioned=system_versioned,
            foreign_keys=tuple(
                ForeignKey(
                    name=key_name,
                    parent=key.parent,
                    columns=tuple(ids[column] for column, _ in key.parts),
                    referenced=tuple(referenced for _, referenced in key.parts),
                    on_delete=key.actions[0],
                    on_update=key.actions[1],
                )
                for key_name, key in self.foreign_keys[name].items()
            ),
        )

    def _comes_late(
        self, name: TableName, key: UniqueKey, columns: tuple[Column, ...], *, has_primary: bool
    ) -> tuple[bool, bool]:
        """Keys that stand for the primary one come first, then those that gave their column its mark."""
        marks = {column.id: self.marks[name][column.name] for column in columns}
        stands_in = not has_primary and {c for c, mark in marks.items() if mark == "PRI"} == set(key.columns)
        return not stands_in, marks[key.columns[0]] != ("UNI" if len(key.columns) == 1 else "MUL")

    def _default(self, text: str | None, kind: ColumnType, extra: str) -> tuple[str | None, bool]:
        if text is None:
            hides = "DEFAULT_GENERATED" in extra  # an expression that MySQL shows in SHOW CREATE TABLE alone
            return ("" if hides else None), hides
        if self.flavor == "mariadb":  # prints the clause as it would be written
            return parse_default_text(text, kind, self.context)
        temporal = kind.name in ("datetime", "timestamp")
        if "DEFAULT_GENERATED" in extra or (temporal and text.upper().startswith("CURRENT_TIMESTAMP")):
            return _canonical_now(text) or text, True
        if kind.name in BYTE_TYPES and (self.context.version < 80000 or not text):
            return _hexadecimal(text), False
        if kind.charset == "binary" and text.startswith("0x"):
            return bytes.fromhex(text[2:]).decode("utf-8", "backslashreplace"), False
        # MySQL from 8.0 on fills it up where the column was made under PAD_CHAR_TO_FULL_LENGTH.
        return text.rstrip(" ") if kind.name == "char" else text, False


def _action(rule: str) -> str:
    """What becomes of a row by a rule of ``information_schema``, in the words of :class:`ForeignKey`."""
    return rule.lower() if rule in _ACTIONS else ""


def _hexadecimal(text: str) -> str:
    return f"0x{text.encode('utf-8', 'surrogateescape').hex().upper()}"


def _canonical_now(text: str) -> str | None:
    found = _NOW.match(text)
    return now_text(int(found.group(1) or 0)) if found else None


def _text(value: str | bytes | None) -> str | None:
    return value.decode() if isinstance(value, bytes) else value
