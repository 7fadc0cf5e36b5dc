"""From tokens to what the statement says."""

from __future__ import annotations

from collections.abc import Callable

from historian.ddl.parsing.alter import parse_alter_table, parse_create_index, parse_drop_index
from historian.ddl.parsing.context import StatementContext
from historian.ddl.parsing.cursor import Cursor
from historian.ddl.parsing.definitions import CharsetClause
from historian.ddl.parsing.lexer import END, NUMBER, STRING, Tokens
from historian.ddl.parsing.lower_case import lowered
from historian.ddl.parsing.statements import (
    AlterDatabase,
    CreateDatabase,
    CreateSequence,
    DropDatabase,
    DropTables,
    NoTable,
    RenameTables,
    Statement,
    TruncateTable,
)
from historian.ddl.parsing.tables import parse_create_table, skip_wait
from historian.schema.snapshots import FUNCTION, SEQUENCE, TRIGGER, VIEW

__all__ = ["parse"]

_DATABASE = frozenset(("DATABASE", "SCHEMA"))
_TABLE = frozenset(("TABLE", "TABLES"))
_CASCADE = frozenset(("RESTRICT", "CASCADE"))
_NO_TABLE = {"VIEW": VIEW, "TRIGGER": TRIGGER, "SEQUENCE": SEQUENCE}


def parse(tokens: Tokens, context: StatementContext, verb: tuple[str, str]) -> Statement:
    """Parses a DDL statement of that verb. Raises :class:`ParseError` where it is not of the known grammar."""
    parser = _PARSERS.get(verb)
    cursor = Cursor(tokens, context)
    if parser is None:
        raise cursor.fail("a statement on a table or database")
    return parser(cursor)


def _drop_tables(cursor: Cursor) -> DropTables:
    cursor.expect("DROP")
    if not cursor.accept_any(_TABLE):
        raise cursor.fail("TABLE")
    if_exists = cursor.accept("IF", "EXISTS")
    tables = [cursor.table_name()]
    while cursor.accept(","):
        tables.append(cursor.table_name())
    skip_wait(cursor)
    cursor.accept_any(_CASCADE)
    cursor.expect_end()
    return DropTables(tables=tuple(tables), if_exists=if_exists)


def _rename_tables(cursor: Cursor) -> RenameTables:
    cursor.expect("RENAME")
    if not cursor.accept_any(_TABLE):
        raise cursor.fail("TABLE")
    if_exists = cursor.accept("IF", "EXISTS")
    pairs = []
    while True:
        old = cursor.table_name()
        skip_wait(cursor)
        cursor.expect("TO")
        pairs.append((old, cursor.table_name()))
        if not cursor.accept(","):
            break
    cursor.expect_end()
    return RenameTables(pairs=tuple(pairs), if_exists=if_exists)


def _truncate(cursor: Cursor) -> TruncateTable:
    cursor.expect("TRUNCATE")
    cursor.accept("TABLE")
    table = cursor.table_name()
    skip_wait(cursor)
    cursor.expect_end()
    return TruncateTable(table=table)


def _create_sequence(cursor: Cursor) -> CreateSequence:
    cursor.expect("CREATE")
    or_replace = cursor.accept("OR", "REPLACE")
    cursor.expect("SEQUENCE")
    cursor.accept("IF", "NOT", "EXISTS")
    return CreateSequence(name=cursor.table_name(), or_replace=or_replace)  # what follows is about its numbers


def _no_table(cursor: Cursor) -> NoTable:
    """CREATE VIEW, DROP VIEW and the like: only their names count."""
    creates = cursor.key == "CREATE"
    while cursor.key not in _NO_TABLE and cursor.key != END:
        cursor.at += 1
    reason = _NO_TABLE[cursor.key] if creates else ""
    cursor.at += 1
    cursor.accept("IF", "NOT", "EXISTS")
    cursor.accept("IF", "EXISTS")
    names = [cursor.table_name()]
    while not creates and cursor.accept(","):
        names.append(cursor.table_name())
    return NoTable(names=tuple(names), reason=reason)


def _create_function(cursor: Cursor) -> NoTable:
    """CREATE FUNCTION and, of MariaDB, CREATE PACKAGE [BODY]. A loadable function changes no rows."""
    while cursor.key not in ("FUNCTION", "PACKAGE", END):
        cursor.at += 1
    cursor.at += 1
    cursor.accept("BODY")
    cursor.accept("IF", "NOT", "EXISTS")
    name = cursor.table_name()
    is_loadable = cursor.key == "RETURNS" and "SONAME" in cursor.keys[cursor.at :]
    return NoTable(names=() if is_loadable else (name,), reason=FUNCTION)


def _database_word(cursor: Cursor) -> None:
    if not cursor.accept_any(_DATABASE):
        raise cursor.fail("DATABASE")


def _create_database(cursor: Cursor) -> CreateDatabase:
    cursor.expect("CREATE")
    or_replace = cursor.accept("OR", "REPLACE")
    _database_word(cursor)
    if_not_exists = cursor.accept("IF", "NOT", "EXISTS")
    name = cursor.database_name()
    charset = _database_options(cursor)
    return CreateDatabase(name=name, charset=charset, if_not_exists=if_not_exists, or_replace=or_replace)


def _alter_database(cursor: Cursor) -> AlterDatabase:
    cursor.expect("ALTER")
    _database_word(cursor)
    name = cursor.context.database
    if not _is_option(cursor):
        name = cursor.database_name()
    elif cursor.context.lower_case_table_names == 1:
        name = lowered(name)
    if cursor.accept("UPGRADE"):
        raise cursor.fail("no UPGRADE DATA DIRECTORY NAME, which renames the database")
    return AlterDatabase(name=name, charset=_database_options(cursor))


def _is_option(cursor: Cursor) -> bool:
    key, following = cursor.key, cursor.following()
    if key in ("DEFAULT", "COLLATE"):
        return True
    if key in ("CHARACTER", "CHAR"):
        return following == "SET"
    if key in ("CHARSET", "ENCRYPTION", "COMMENT"):
        return following == "=" or (following not in (END, "DEFAULT", "CHARACTER", "CHARSET", "COLLATE"))
    return key == "READ" and following == "ONLY"


def _database_options(cursor: Cursor) -> CharsetClause:
    charset = CharsetClause()
    while not cursor.at_end():
        found = cursor.charset_options(charset)
        if found is not None:
            charset = found
            continue
        cursor.accept("DEFAULT")
        if not (cursor.accept("READ", "ONLY") or cursor.accept("ENCRYPTION") or cursor.accept("COMMENT")):
            raise cursor.fail("an option of a database")
        cursor.accept("=")
        if cursor.key in (STRING, NUMBER):
            cursor.at += 1
        else:
            cursor.name()
    return charset


def _drop_database(cursor: Cursor) -> DropDatabase:
    cursor.expect("DROP")
    _database_word(cursor)
    if_exists = cursor.accept("IF", "EXISTS")
    name = cursor.database_name()
    cursor.expect_end()
    return DropDatabase(name=name, if_exists=if_exists)


_PARSERS: dict[tuple[str, str], Callable[[Cursor], Statement]] = {
    ("CREATE", "TABLE"): parse_create_table,
    ("ALTER", "TABLE"): parse_alter_table,
    ("DROP", "TABLE"): _drop_tables,
    ("RENAME", "TABLE"): _rename_tables,
    ("TRUNCATE", "TABLE"): _truncate,
    ("CREATE", "SEQUENCE"): _create_sequence,
    ("DROP", "SEQUENCE"): _no_table,
    ("CREATE", "VIEW"): _no_table,
    ("DROP", "VIEW"): _no_table,
    ("CREATE", "TRIGGER"): _no_table,
    ("DROP", "TRIGGER"): _no_table,
    ("CREATE", "FUNCTION"): _create_function,
    ("CREATE", "DATABASE"): _create_database,
    ("ALTER", "DATABASE"): _alter_database,
    ("DROP", "DATABASE"): _drop_database,
    ("CREATE", "INDEX"): parse_create_index,
    ("DROP", "INDEX"): parse_drop_index,
}
