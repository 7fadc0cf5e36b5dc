"""Where chunks of a table end: keys, each some rows behind the one before, found without a scan of the table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from connectors.backfill.keys import SplitKey
from connectors.backfill.literals import key_expression, key_value, quoted
from connectors.backfill.predicates import where, within_first
from connectors.readers.binlog.transport.connection import answered
from historian.charsets.conversion import decoded
from historian.names import TableName
from historian.plans.key_ranges import Key, KeyRange
from historian.schema.snapshots import Column

if TYPE_CHECKING:
    from pymysql.connections import Connection
    from pymysql.cursors import Cursor

__all__ = ["boundaries", "estimated_rows"]

_DENSE = 2
"""Numbers for each row at most where chunks are ranges of numbers: a chunk has at most this many times the rows asked for."""

_INTEGERS = frozenset(("tinyint", "smallint", "mediumint", "int", "bigint"))
_NO_SUCH_INDEX = 1176
_STATISTICS = """
    SELECT column_name, sub_part, collation FROM information_schema.statistics
    WHERE table_schema = %s AND table_name = %s AND index_name = %s ORDER BY seq_in_index
"""


def boundaries(
    connection: Connection[Any], key: SplitKey, after: Key | None, *, rows: int, count: int
) -> list[Key | None]:
    """The next up to *count* upper bounds of chunks behind *after*, each about *rows* rows further; None, the last, where the table ends.

    Of a single integer column whose numbers are mostly in use: from the least and the greatest one, and estimated rows, without a
    look at the rows. Else each bound is found by stepping over *rows* entries of the index. Where the index does not serve (it is
    over prefixes, its columns run in different directions, it is invisible, or gone) the rest of the table is one chunk.

    Args:
        connection: in a session of :func:`connectors.backfill.literals.prepare_session`.
        after: where the last chunk ended; None: the table's beginning.
        rows, count: at least 1.

    Raises:
        ConnectionLost: the connection broke.
        SourceError: the server refuses a statement, as where the table has another name or other columns meanwhile.
    """
    with answered(str(key.table)), connection.cursor() as cursor:
        if not _serves(cursor, key):
            return [None]
        if len(key.columns) == 1 and key.columns[0].type.name in _INTEGERS:
            found = _by_number(cursor, key, after, rows, count)
            if found is not None:
                return found
        return _by_steps(cursor, key, after, rows, count)


def estimated_rows(connection: Connection[Any], table: TableName) -> int:
    """How many rows the optimizer takes a table for.

    Raises:
        ConnectionLost: the connection broke.
        SourceError: the server refuses a statement.
    """
    with answered(str(table)), connection.cursor() as cursor:
        return _estimated(cursor, f"{quoted(table.database)}.{quoted(table.table)}")


def _estimated(cursor: Cursor, source: str) -> int:
    """Of information_schema MySQL 8 gives what was noted up to a day ago; EXPLAIN asks the engine."""
    cursor.execute(f"EXPLAIN FORMAT=TRADITIONAL SELECT 1 FROM {source}")  # noqa: S608 - names are quoted
    names = [each[0] for each in cursor.description or ()]
    row = cursor.fetchone()
    return int(row[names.index("rows")] or 0) if row else 0


def _serves(cursor: Cursor, key: SplitKey) -> bool:
    """Whether the index is there as the key says: snapshots know neither directions nor prefixes of primary keys."""
    import pymysql

    cursor.execute(_STATISTICS, (key.table.database, key.table.table, key.index))
    parts = cursor.fetchall()[: len(key.columns)]
    names = [None if name is None else str(name).lower() for name, _, _ in parts]
    if names != [column.name.lower() for column in key.columns] or any(prefix for _, prefix, _ in parts):
        return False
    if len({direction for _, _, direction in parts}) > 1:
        return False
    try:
        cursor.execute(f"SELECT 1 FROM {key.source} WHERE 0")  # noqa: S608 - names are quoted
    except pymysql.err.OperationalError as error:
        if error.args[0] != _NO_SUCH_INDEX:
            raise
        return False
    return True


def _by_number(cursor: Cursor, key: SplitKey, after: Key | None, rows: int, count: int) -> list[Key | None] | None:
    """Bounds in steps of equal numbers; None where too few of them are in use."""
    least, greatest = _ends(cursor, key, None)
    if least is None or greatest is None:
        return [None]
    estimate = _estimated(cursor, key.source)
    span = greatest - least + 1
    if span > _DENSE * estimate:
        return None
    at = least - 1
    if after is not None:
        at = int(after[0])
        rest, _ = _ends(cursor, key, at)
        if rest is None:
            return [None]
        # Numbers that nobody uses any more are not gone through in steps.
        at = max(at, rest - 1)
    step = max(rows, min(rows * span // estimate, rows * _DENSE), 1)
    found: list[Key | None] = [(number,) for number in range(at + step, greatest, step)[:count]]
    return found if len(found) == count else [*found, None]


def _ends(cursor: Cursor, key: SplitKey, after: int | None) -> tuple[int | None, int | None]:
    """The least and the greatest number behind *after*, which the index tells at once."""
    (column,) = key.columns
    name = f"t.{quoted(column.name)}"
    condition = where(key, KeyRange(after=None if after is None else (after,)))
    cursor.execute(f"SELECT MIN({name}), MAX({name}) FROM {key.source} WHERE {condition}")  # noqa: S608
    least, greatest = cursor.fetchone() or (None, None)
    return (None if least is None else int(least)), (None if greatest is None else int(greatest))


def _by_steps(cursor: Cursor, key: SplitKey, after: Key | None, rows: int, count: int) -> list[Key | None]:
    found: list[Key | None] = []
    while len(found) < count:
        after = _step(cursor, key, after, rows)
        found.append(after)
        if after is None:
            break
    return found


def _step(cursor: Cursor, key: SplitKey, after: Key | None, rows: int) -> Key | None:
    """The key that many rows behind *after*, or the next one that a literal can mean."""
    if len(key.columns) > 1 and key.columns[0].type.name == "enum":
        return _step_in_labels(cursor, key, after, rows)
    return _probe(cursor, key, where(key, KeyRange(after=after)), rows - 1)


def _step_in_labels(cursor: Cursor, key: SplitKey, after: Key | None, rows: int) -> Key | None:
    """The same, but no further than the end of a label: MySQL 5.7 scans the index from its beginning where a range is over several."""
    for number in range(0 if after is None else int(after[0]), len(key.columns[0].type.labels) + 1):
        condition = within_first(key, number, after[1:] if after is not None and after[0] == number else None)
        found = _probe(cursor, key, condition, rows - 1) or _probe(cursor, key, condition, 0, last=True)
        if found is not None:
            return found
    return None


def _probe(cursor: Cursor, key: SplitKey, condition: str, offset: int, *, last: bool = False) -> Key | None:
    """The key that many rows behind the first one, or before the last one, of those for which *condition* holds."""
    selected = ", ".join(key_expression(column) for column in key.columns)
    order = key.order(descending=last)
    while True:
        rest = f"WHERE {condition} ORDER BY {order} LIMIT 1 OFFSET {offset}"
        cursor.execute(f"SELECT {selected} FROM {key.source} {rest}")  # noqa: S608 - names are quoted, literals our own
        row = cursor.fetchone()
        if row is None:
            return None
        values = tuple(key_value(column, value) for column, value in zip(key.columns, row, strict=True))
        if all(_has_literal(column, str(value)) for column, value in zip(key.columns, values, strict=True)):
            return values
        offset += 1


def _has_literal(column: Column, value: str) -> bool:
    """Whether it is no text of bytes that are no characters, which servers refuse in literals."""
    if column.type.charset is None or column.type.name == "enum":
        return True
    try:
        decoded(bytes.fromhex(value), column.type.charset)
    except UnicodeError:
        return False
    return True
