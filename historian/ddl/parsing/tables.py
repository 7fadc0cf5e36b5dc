"""CREATE TABLE and what its body shares with ALTER TABLE: keys and table options."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise

from historian.ddl.parsing.actions import (
    Action,
    AddPeriod,
    MergedTables,
    MergeEngine,
    SetSystemVersioning,
    TableOptions,
    Unsupported,
    tells_merge_table,
)
from historian.ddl.parsing.columns import parse_column
from historian.ddl.parsing.cursor import Cursor
from historian.ddl.parsing.definitions import CharsetClause, ColumnSpec, KeyKind, KeySpec
from historian.ddl.parsing.lexer import END, NUMBER, STRING
from historian.ddl.parsing.references import parse_reference
from historian.ddl.parsing.statements import CreateTable
from historian.names import TableName
from historian.schema.snapshots import NO_ROWS
from historian.schema.system_versioning import ROW_END, ROW_START

__all__ = [
    "MOST_COLUMNS",
    "is_key",
    "key_in_period",
    "key_parts",
    "parse_create_table",
    "parse_key",
    "parse_option",
    "parse_period",
    "skip_wait",
]

MOST_COLUMNS = 4096
"""Of a table, in all servers. No more keys or actions are read either, so that the time for any text is bounded."""

_KEY_WORDS = frozenset(("INDEX", "KEY"))
_SPECIAL = frozenset(("FULLTEXT", "SPATIAL"))
_KEY_STARTS = frozenset(("CONSTRAINT", "PRIMARY", "UNIQUE", "FOREIGN", "CHECK", *_KEY_WORDS, *_SPECIAL))
_DIRECTIONS = frozenset(("ASC", "DESC"))
_QUERY_STARTS = frozenset(("SELECT", "AS", "IGNORE", "REPLACE", "WITH", "TABLE", "VALUES", "("))
_LEADING = frozenset(("SELECT", "AS", "IGNORE", "REPLACE", "WITH", "TABLE", "VALUES"))
_NO_CLAUSE = CharsetClause()
_MERGE_ENGINES = frozenset(("MERGE", "MRG_MYISAM"))
_WITHOUT_OPTIONS = frozenset(("ANSI", "ORACLE", "MSSQL"))
_SPELLED_OUT = re.compile(r"CREATE (?:OR REPLACE )?TABLE (?:IF NOT EXISTS )?[^\n]+ \(\n  [`\"]")


def parse_create_table(cursor: Cursor) -> CreateTable:
    """Takes a CREATE TABLE statement, from CREATE to its end."""
    cursor.expect("CREATE")
    or_replace = cursor.accept("OR", "REPLACE")
    cursor.expect("TABLE")
    if_not_exists = cursor.accept("IF", "NOT", "EXISTS")
    table = cursor.table_name()
    skip_wait(cursor)
    like = None
    if cursor.accept("LIKE"):
        like = cursor.table_name()
    elif cursor.key == "(" and cursor.following() == "LIKE":
        cursor.at += 2
        like = cursor.table_name()
        cursor.expect(")")
    if like is not None:
        cursor.expect_end()
        return CreateTable(table=table, if_not_exists=if_not_exists, or_replace=or_replace, like=like)
    columns: list[ColumnSpec] = []
    keys: list[KeySpec] = []
    if cursor.key == "(" and cursor.following() not in ("SELECT", "WITH", "("):
        _body(cursor, columns, keys)
    charset, select, refused, options = _options(cursor)
    if not cursor.context.sql_mode.isdisjoint(_WITHOUT_OPTIONS) and _is_spelled_out(cursor, columns):
        refused = "in sql_mode ANSI or ORACLE servers log a table that they spell out without its character set"
    versioned = any(isinstance(option, SetSystemVersioning) for option in options)
    by_columns = any(column.system_versioned for column in columns)
    if by_columns and not versioned:
        columns = [_unless_said(column) for column in columns]
    return CreateTable(
        table=table,
        if_not_exists=if_not_exists,
        or_replace=or_replace,
        columns=tuple(columns),
        keys=tuple(keys),
        charset=charset,
        select=select or not columns,
        refused=refused,
        merged=_merged(options),
        system_versioned=versioned or by_columns,
    )


def _unless_said(column: ColumnSpec) -> ColumnSpec:
    """A column of a table of which other columns alone are versioned."""
    if column.system_versioned or column.generation_expression in (ROW_START, ROW_END):
        return column
    return replace(column, system_versioned=False)


def _is_spelled_out(cursor: Cursor, columns: list[ColumnSpec]) -> bool:
    """Whether the server made the statement: of CREATE TABLE ... SELECT, or to add a generated invisible primary key."""
    if cursor.context.flavor != "mysql":
        return _SPELLED_OUT.match(cursor.tokens.sql) is not None
    adds_key = bool(columns) and columns[0].name == "my_row_id" and columns[0].invisible
    return adds_key or ("START", "TRANSACTION") in pairwise(cursor.keys)


def skip_wait(cursor: Cursor) -> None:
    """Takes MariaDB's WAIT n or NOWAIT."""
    if not cursor.accept("NOWAIT") and cursor.key == "WAIT" and cursor.following() == NUMBER:
        cursor.at += 2


def _body(cursor: Cursor, columns: list[ColumnSpec], keys: list[KeySpec]) -> None:
    cursor.expect("(")
    period = None
    while True:
        if cursor.key == "PERIOD" and cursor.following() == "FOR" and cursor.following(2) != "SYSTEM_TIME":
            period = parse_period(cursor)
        elif is_key(cursor):
            key = parse_key(cursor)
            if key is not None:
                keys.append(key)
        else:
            column = parse_column(cursor)
            columns.append(column)
            keys.extend(column.keys())
        if len(columns) > MOST_COLUMNS or len(keys) > MOST_COLUMNS:
            raise cursor.fail(f"no more than {MOST_COLUMNS} columns and as many keys")
        if not cursor.accept(","):
            break
    cursor.expect(")")
    if period is not None:
        _with_period(period, columns, keys)
    if any(key.without_overlaps for key in keys):
        raise cursor.fail("a period that the key names")


def is_key(cursor: Cursor) -> bool:
    """Whether a key or constraint comes next, not a column."""
    key = cursor.key
    if key in _KEY_STARTS:
        return True
    if key == "PERIOD":
        return cursor.following() == "FOR" or (cursor.following(), cursor.following(2)) == ("IF", "NOT")
    return key == "VECTOR" and cursor.following() in ("INDEX", "KEY", "(")


def parse_key(cursor: Cursor) -> KeySpec | None:
    """Takes a key or constraint with its options; None for one that is no key, or holds no rows apart."""
    name = None
    if cursor.accept("CONSTRAINT"):
        cursor.accept("IF", "NOT", "EXISTS")
        if cursor.key not in ("PRIMARY", "UNIQUE", "FOREIGN", "CHECK"):
            name = cursor.name()
    if cursor.key in ("CHECK", "PERIOD"):
        cursor.skip_item()
        return None
    constraint = name or ""
    kind = _key_kind(cursor)
    if_not_exists = cursor.accept("IF", "NOT", "EXISTS")
    if cursor.key not in ("(", "USING", "TYPE"):
        written = cursor.name()
        name = name if kind == "foreign" and name else written
    if cursor.accept("USING") or cursor.accept("TYPE"):
        cursor.name()
    columns, prefixes, period = key_parts(cursor)
    references = None
    if kind == "foreign" and cursor.accept("REFERENCES"):
        references = replace(parse_reference(cursor), constraint=constraint)
    cursor.skip_item()
    if kind == "primary":
        name = None
    return KeySpec(
        kind=kind,
        name=name,
        columns=columns,
        prefixes=prefixes,
        if_not_exists=if_not_exists,
        without_overlaps=period,
        references=references,
    )


def parse_period(cursor: Cursor) -> AddPeriod:
    """Takes ``PERIOD [IF NOT EXISTS] FOR name (start, end)``."""
    cursor.expect("PERIOD")
    if_not_exists = cursor.accept("IF", "NOT", "EXISTS")
    cursor.expect("FOR")
    name = cursor.name()
    cursor.expect("(")
    start = cursor.column_name()
    cursor.expect(",")
    end = cursor.column_name()
    cursor.expect(")")
    return AddPeriod(name=name, start=start, end=end, if_not_exists=if_not_exists)


def key_in_period(key: KeySpec, period: AddPeriod) -> KeySpec:
    """A key that says WITHOUT OVERLAPS of the period has its columns behind its own, the end first; others stay as they are."""
    if key.without_overlaps.lower() != period.name.lower():
        return key
    prefixes = (*key.prefixes, 0, 0) if key.prefixes else ()
    return replace(key, columns=(*key.columns, period.end, period.start), prefixes=prefixes, without_overlaps="")


def _with_period(period: AddPeriod, columns: list[ColumnSpec], keys: list[KeySpec]) -> None:
    """A period's columns are never NULL, and stand in the keys that say WITHOUT OVERLAPS of it."""
    bounds = {period.start.lower(), period.end.lower()}
    columns[:] = [replace(column, nullable=False) if column.name.lower() in bounds else column for column in columns]
    keys[:] = [key_in_period(key, period) for key in keys]


def _key_kind(cursor: Cursor) -> KeyKind:
    if cursor.accept("PRIMARY"):
        cursor.expect("KEY")
        return "primary"
    if cursor.accept("FOREIGN"):
        cursor.expect("KEY")
        return "foreign"
    kind: KeyKind = "unique" if cursor.key == "UNIQUE" else "index"
    cursor.at += 1
    if kind == "unique" or cursor.following(-1) not in _KEY_WORDS:
        cursor.accept_any(_KEY_WORDS)
    return kind


def key_parts(cursor: Cursor) -> tuple[tuple[str | None, ...], tuple[int, ...], str]:
    """Takes the parts of a key in parentheses: columns, prefixes and period of :class:`KeySpec`."""
    cursor.expect("(")
    period = ""
    parts: list[tuple[str | None, int]] = []
    while True:
        prefix = 0
        if cursor.key == "(":
            cursor.skip_parentheses()
            parts.append((None, 0))
        else:
            name = cursor.column_name()
            if cursor.accept("("):
                prefix = cursor.number()
                cursor.expect(")")
            parts.append((name, prefix))
        cursor.accept_any(_DIRECTIONS)
        if cursor.accept("WITHOUT", "OVERLAPS"):
            period = parts.pop()[0] or ""
        if not cursor.accept(","):
            break
    cursor.expect(")")
    prefixes = tuple(prefix for _, prefix in parts)
    return tuple(name for name, _ in parts), prefixes if any(prefixes) else (), period


def _options(cursor: Cursor) -> tuple[CharsetClause, bool, str, list[Action]]:
    """Takes all behind the body: the charset, whether a query follows, a reason not to follow the table, and other options."""
    charset = CharsetClause()
    refused = ""
    others: list[Action] = []
    while not cursor.at_end():
        if cursor.accept(","):
            continue
        if cursor.accept("PARTITION", "BY"):
            return charset, _query_follows(cursor), refused, others
        if cursor.key in _QUERY_STARTS and not (cursor.key == "WITH" and cursor.following() == "SYSTEM"):
            return charset, True, refused, others
        option = parse_option(cursor, charset)
        if isinstance(option, TableOptions):
            charset = option.charset
        elif isinstance(option, Unsupported):
            refused = option.reason
        elif option is not None:
            others.append(option)
    cursor.expect_end()
    return charset, False, refused, others


def _merged(options: list[Action]) -> tuple[TableName, ...] | None:
    """The tables of UNION; None where nothing says that it is a MERGE table."""
    if not any(map(tells_merge_table, options)):
        return None
    return tuple(table for option in options if isinstance(option, MergedTables) for table in option.tables)


def _query_follows(cursor: Cursor) -> bool:
    """Whether a query stands behind the partitions, the rest of the statement."""
    while cursor.key != END:
        if cursor.key in _LEADING:
            return True
        if cursor.key == "(":
            cursor.skip_parentheses()
        else:
            cursor.at += 1
    return False


def parse_option(cursor: Cursor, clause: CharsetClause = _NO_CLAUSE) -> Action | None:
    """Takes one table option; None where it changes neither schema nor rows. *clause*: the charset options before it."""
    charset = cursor.charset_options(clause)
    if charset is not None:
        return TableOptions(charset=charset)
    if cursor.accept("WITH", "SYSTEM", "VERSIONING"):
        return SetSystemVersioning(system_versioned=True)
    if cursor.accept("START", "TRANSACTION") or cursor.accept("STORAGE", "DISK") or cursor.accept("STORAGE", "MEMORY"):
        return None
    if not (cursor.accept("DATA", "DIRECTORY") or cursor.accept("INDEX", "DIRECTORY")):
        word = cursor.name().upper()
    else:
        word = "DIRECTORY"
    cursor.accept("=")
    if word == "SEQUENCE" and cursor.accept(NUMBER):
        return Unsupported(reason="it is a sequence, not a table")
    if word == "UNION":
        return _union(cursor)
    if cursor.key == "(":
        cursor.skip_parentheses()
    elif cursor.key in (STRING, NUMBER):
        cursor.at += 1
    else:
        value = cursor.name()
        if word in ("ENGINE", "TYPE") and value.upper() in _MERGE_ENGINES:
            return MergeEngine()
        if word in ("ENGINE", "TYPE") and value.upper() == "BLACKHOLE":
            return Unsupported(reason=NO_ROWS)
    return None


def _union(cursor: Cursor) -> MergedTables:
    cursor.expect("(")
    tables = []
    while not cursor.accept(")"):
        tables.append(cursor.table_name())
        if cursor.key != ")":
            cursor.expect(",")
    return MergedTables(tables=tuple(tables))
