"""ALTER TABLE, CREATE INDEX and DROP INDEX."""

from __future__ import annotations

from collections.abc import Callable

from historian.ddl.parsing.actions import (
    Action,
    AddColumn,
    AddKey,
    AddPeriod,
    AlterColumn,
    ChangeColumn,
    ChangesRows,
    ConvertCharset,
    DropColumn,
    DropForeignKey,
    DropKey,
    Position,
    RenameColumn,
    RenameKey,
    RenameTo,
    SetSystemVersioning,
    Unsupported,
)
from historian.ddl.parsing.columns import parse_column, parse_default
from historian.ddl.parsing.cursor import Cursor
from historian.ddl.parsing.definitions import CharsetClause, KeyKind, KeySpec
from historian.ddl.parsing.lexer import END
from historian.ddl.parsing.statements import AlterTable
from historian.ddl.parsing.tables import (
    MOST_COLUMNS,
    is_key,
    key_in_period,
    key_parts,
    parse_key,
    parse_option,
    parse_period,
    skip_wait,
)

__all__ = ["parse_alter_table", "parse_create_index", "parse_drop_index"]

_ALTER_MODIFIERS = frozenset(("ONLINE", "OFFLINE", "IGNORE"))
_INDEX_MODIFIERS = frozenset(("ONLINE", "OFFLINE", "FULLTEXT", "SPATIAL", "VECTOR"))
_KEY_WORDS = frozenset(("INDEX", "KEY"))
_RENAME_WORDS = frozenset(("TO", "AS", "="))
_CASCADE = frozenset(("RESTRICT", "CASCADE"))
_KEEPING_ROWS = frozenset(("ADD", "COALESCE", "REORGANIZE", "REBUILD", "OPTIMIZE", "ANALYZE", "CHECK", "REPAIR"))
_LOSING_ROWS = frozenset(("DROP", "TRUNCATE", "DISCARD", "IMPORT"))
_PERIOD = "a key over a period that was there before is not followed"


def parse_alter_table(cursor: Cursor) -> AlterTable:
    """Takes an ALTER TABLE statement, from ALTER to its end."""
    cursor.expect("ALTER")
    ignore = False
    while cursor.key in _ALTER_MODIFIERS:
        ignore |= cursor.key == "IGNORE"
        cursor.at += 1
    cursor.expect("TABLE")
    if_exists = cursor.accept("IF", "EXISTS")
    table = cursor.table_name()
    skip_wait(cursor)
    actions: list[Action] = []
    while not cursor.at_end():
        if len(actions) > MOST_COLUMNS:
            raise cursor.fail(f"no more than {MOST_COLUMNS} actions")
        if _partitions(cursor, actions):
            continue
        parse = _ACTIONS.get(cursor.key)
        if parse is not None:
            cursor.at += 1
            parse(cursor, actions)
        else:
            option = parse_option(cursor)
            if option is not None:
                actions.append(option)
            if cursor.is_name():  # options of one action need no comma
                continue
        if not cursor.accept(",") and cursor.key not in ("PARTITION", "REMOVE", END, ";"):
            raise cursor.fail("a comma")
    cursor.expect_end()
    actions = _with_periods(actions)
    return AlterTable(table=table, actions=tuple(actions), if_exists=if_exists, ignore=ignore)


def _with_periods(actions: list[Action]) -> list[Action]:
    """The actions with the columns of keys WITHOUT OVERLAPS, where the statement itself adds the period."""
    periods = [action for action in actions if isinstance(action, AddPeriod)]
    result: list[Action] = []
    for action in actions:
        if isinstance(action, AddKey) and action.key.without_overlaps:
            key = action.key
            for period in periods:
                key = key_in_period(key, period)
            result.append(Unsupported(reason=_PERIOD) if key.without_overlaps else AddKey(key=key))
        else:
            result.append(action)
    return result


def parse_create_index(cursor: Cursor) -> AlterTable:
    """Takes a CREATE INDEX statement."""
    cursor.expect("CREATE")
    cursor.accept("OR", "REPLACE")
    unique = False
    while cursor.key != "INDEX":
        unique = unique or cursor.key == "UNIQUE"
        if not (cursor.accept("UNIQUE") or cursor.accept_any(_INDEX_MODIFIERS)):
            raise cursor.fail("INDEX")
    cursor.expect("INDEX")
    if_not_exists = cursor.accept("IF", "NOT", "EXISTS")
    name = cursor.name()
    if cursor.accept("USING") or cursor.accept("TYPE"):
        cursor.name()
    cursor.expect("ON")
    table = cursor.table_name()
    skip_wait(cursor)
    columns, prefixes, period = key_parts(cursor)
    if period:
        return AlterTable(table=table, actions=(Unsupported(reason=_PERIOD),))
    kind: KeyKind = "unique" if unique else "index"
    key = KeySpec(kind=kind, name=name, columns=columns, prefixes=prefixes, if_not_exists=if_not_exists)
    return AlterTable(table=table, actions=(AddKey(key=key),))


def parse_drop_index(cursor: Cursor) -> AlterTable:
    """Takes a DROP INDEX statement."""
    cursor.expect("DROP")
    cursor.accept_any(_ALTER_MODIFIERS)
    cursor.expect("INDEX")
    if_exists = cursor.accept("IF", "EXISTS")
    name = cursor.name()
    cursor.expect("ON")
    return AlterTable(table=cursor.table_name(), actions=(DropKey(name=name, if_exists=if_exists),))


def _partitions(cursor: Cursor, actions: list[Action]) -> bool:
    """Takes what is done to partitions: the rest of the statement, or REMOVE PARTITIONING."""
    key, following = cursor.key, cursor.following()
    if cursor.accept("REMOVE", "PARTITIONING") or cursor.accept("UPGRADE", "PARTITIONING"):
        return True
    if key == "PARTITION" and following == "BY":
        cursor.at = len(cursor.keys) - 1
        return True
    if key == "CONVERT" and following in ("PARTITION", "TABLE"):
        _converted_partition(cursor, actions)
        return True
    if following != "PARTITION":
        return False
    if key in _KEEPING_ROWS:
        cursor.at = len(cursor.keys) - 1
        return True
    if key in _LOSING_ROWS:
        everything = key == "TRUNCATE" and cursor.following(2) == "ALL"
        actions.append(ChangesRows(reason=f"{key} PARTITION takes rows away", truncates=everything))
        cursor.at = len(cursor.keys) - 1
        return True
    if key == "EXCHANGE":
        cursor.at += 2
        cursor.name()
        cursor.expect("WITH", "TABLE")
        actions.append(ChangesRows(reason="EXCHANGE PARTITION swaps rows", others=(cursor.table_name(),)))
        cursor.at = len(cursor.keys) - 1
        return True
    return False


def _converted_partition(cursor: Cursor, actions: list[Action]) -> None:
    cursor.expect("CONVERT")
    reason = "CONVERT PARTITION moves rows"
    if cursor.accept("PARTITION"):
        cursor.name()
        cursor.expect("TO", "TABLE")
        actions.append(ChangesRows(reason=reason, creates=cursor.table_name()))
    else:
        cursor.expect("TABLE")
        actions.append(ChangesRows(reason=reason, drops=cursor.table_name()))
    cursor.at = len(cursor.keys) - 1


def _position(cursor: Cursor) -> Position | None:
    if cursor.accept("FIRST"):
        return Position()
    if cursor.accept("AFTER"):
        return Position(after=cursor.name())
    return None


def _add(cursor: Cursor, actions: list[Action]) -> None:
    if cursor.accept("SYSTEM", "VERSIONING"):
        actions.append(SetSystemVersioning(system_versioned=True))
        return
    if is_key(cursor):
        _add_key(cursor, actions)
        return
    cursor.accept("COLUMN")
    if_not_exists = cursor.accept("IF", "NOT", "EXISTS")
    if cursor.accept("("):
        while True:
            if is_key(cursor):
                _add_key(cursor, actions)
            else:
                _add_column(cursor, actions, if_not_exists=if_not_exists)
            if not cursor.accept(","):
                break
        cursor.expect(")")
    else:
        _add_column(cursor, actions, if_not_exists=if_not_exists)


def _add_key(cursor: Cursor, actions: list[Action]) -> None:
    if cursor.key == "PERIOD" and cursor.following(2) != "SYSTEM_TIME":
        actions.append(parse_period(cursor))
        return
    key = parse_key(cursor)
    if key is not None:
        actions.append(AddKey(key=key))


def _add_column(cursor: Cursor, actions: list[Action], *, if_not_exists: bool) -> None:
    column = parse_column(cursor)
    actions.append(AddColumn(column=column, position=_position(cursor), if_not_exists=if_not_exists))


def _drop(cursor: Cursor, actions: list[Action]) -> None:
    if cursor.accept("PRIMARY", "KEY"):
        actions.append(DropKey(name="PRIMARY"))
    elif cursor.accept_any(_KEY_WORDS):
        if_exists = cursor.accept("IF", "EXISTS")
        actions.append(DropKey(name=cursor.name(), if_exists=if_exists))
    elif cursor.accept("CONSTRAINT"):
        if_exists = cursor.accept("IF", "EXISTS")
        actions.append(DropKey(name=cursor.name(), if_exists=if_exists, constraint=True))
    elif cursor.accept("FOREIGN", "KEY"):
        cursor.accept("IF", "EXISTS")
        actions.append(DropForeignKey(name=cursor.name()))
    elif cursor.accept("CHECK"):
        cursor.accept("IF", "EXISTS")
        cursor.name()
    elif cursor.accept("SYSTEM", "VERSIONING"):
        actions.append(SetSystemVersioning(system_versioned=False))
    elif cursor.accept("PERIOD"):
        cursor.accept("IF", "EXISTS")
        cursor.expect("FOR")
        cursor.name()
    else:
        cursor.accept("COLUMN")
        if_exists = cursor.accept("IF", "EXISTS")
        actions.append(DropColumn(name=cursor.column_name(), if_exists=if_exists))
        cursor.accept_any(_CASCADE)


def _change(cursor: Cursor, actions: list[Action]) -> None:
    cursor.accept("COLUMN")
    if_exists = cursor.accept("IF", "EXISTS")
    _changed(cursor, actions, cursor.column_name(), cursor.column_name(), if_exists=if_exists)


def _modify(cursor: Cursor, actions: list[Action]) -> None:
    cursor.accept("COLUMN")
    if_exists = cursor.accept("IF", "EXISTS")
    name = cursor.column_name()
    _changed(cursor, actions, name, name, if_exists=if_exists)


def _changed(cursor: Cursor, actions: list[Action], old: str, new: str, *, if_exists: bool) -> None:
    column = parse_column(cursor, new)
    actions.append(ChangeColumn(old=old, column=column, position=_position(cursor), if_exists=if_exists))


def _alter(cursor: Cursor, actions: list[Action]) -> None:
    if cursor.accept_any(_KEY_WORDS) or cursor.accept("CHECK") or cursor.accept("CONSTRAINT"):
        cursor.skip_item()  # visibility of an index, or whether a check is enforced
        return
    cursor.accept("COLUMN")
    if_exists = cursor.accept("IF", "EXISTS")
    name = cursor.column_name()
    if cursor.accept("DROP", "DEFAULT"):
        actions.append(AlterColumn(name=name, sets_default=True, if_exists=if_exists))
    elif cursor.accept("SET", "DEFAULT"):
        default = parse_default(cursor)
        if default.literal is not None and not default.literal.text.startswith("-"):
            default = default.literal  # here servers take a literal in parentheses for one without
        actions.append(AlterColumn(name=name, sets_default=True, default=default, if_exists=if_exists))
    elif cursor.accept("SET", "VISIBLE"):
        actions.append(AlterColumn(name=name, invisible=False, if_exists=if_exists))
    else:
        cursor.expect("SET", "INVISIBLE")
        actions.append(AlterColumn(name=name, invisible=True, if_exists=if_exists))


def _rename(cursor: Cursor, actions: list[Action]) -> None:
    if cursor.accept("COLUMN"):
        if_exists = cursor.accept("IF", "EXISTS")
        old = cursor.column_name()
        cursor.expect("TO")
        actions.append(RenameColumn(old=old, new=cursor.name(), if_exists=if_exists))
    elif cursor.accept_any(_KEY_WORDS):
        if_exists = cursor.accept("IF", "EXISTS")
        old = cursor.name()
        cursor.expect("TO")
        actions.append(RenameKey(old=old, new=cursor.name(), if_exists=if_exists))
    else:
        cursor.accept_any(_RENAME_WORDS)
        actions.append(RenameTo(table=cursor.table_name()))


def _convert(cursor: Cursor, actions: list[Action]) -> None:
    cursor.expect("TO")
    if not cursor.accept_charset_word():
        raise cursor.fail("CHARACTER SET")
    charset = cursor.charset()
    collation = None
    if cursor.accept("COLLATE"):
        cursor.accept("=")
        collation = cursor.collation()
    actions.append(ConvertCharset(charset=CharsetClause(charset=charset, collation=collation)))


def _order(cursor: Cursor, _: list[Action]) -> None:
    cursor.expect("BY")
    cursor.at = len(cursor.keys) - 1  # the order of rows on disk; a comma goes on with its columns


def _tablespace(cursor: Cursor, actions: list[Action]) -> None:
    cursor.expect("TABLESPACE")
    actions.append(ChangesRows(reason="DISCARD and IMPORT TABLESPACE replace all rows"))


def _skipped(cursor: Cursor, _: list[Action]) -> None:
    cursor.skip_item()


def _setting(cursor: Cursor, _: list[Action]) -> None:
    cursor.accept("=")
    cursor.name()


def _nothing(_: Cursor, __: list[Action]) -> None:
    pass


def _with(cursor: Cursor, actions: list[Action]) -> None:
    if cursor.accept("SYSTEM", "VERSIONING"):
        actions.append(SetSystemVersioning(system_versioned=True))
    else:
        cursor.expect("VALIDATION")


_ACTIONS: dict[str, Callable[[Cursor, list[Action]], None]] = {
    "ADD": _add,
    "DROP": _drop,
    "CHANGE": _change,
    "MODIFY": _modify,
    "ALTER": _alter,
    "RENAME": _rename,
    "CONVERT": _convert,
    "ORDER": _order,
    "DISCARD": _tablespace,
    "IMPORT": _tablespace,
    "DISABLE": _skipped,
    "ENABLE": _skipped,
    "FORCE": _nothing,
    "SECONDARY_LOAD": _skipped,
    "SECONDARY_UNLOAD": _skipped,
    "ALGORITHM": _setting,
    "LOCK": _setting,
    "WITH": _with,
    "WITHOUT": _skipped,
}
