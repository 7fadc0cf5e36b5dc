"""Single keys of a table, found by its index, and how many rows a range holds by the engine's estimate."""

from __future__ import annotations

from typing import TYPE_CHECKING

from connectors.backfill.keys.literals import key_expression, key_value
from connectors.backfill.keys.predicates import where, within_first
from connectors.backfill.keys.split_key import SplitKey
from historian.charsets.conversion import decoded
from historian.names import quoted
from historian.plans.key_ranges import Key, KeyRange
from historian.schema.snapshots import Column

if TYPE_CHECKING:
    from pymysql.cursors import Cursor

__all__ = ["ends", "estimated", "found_key", "step"]


def estimated(cursor: Cursor, source: str, condition: str = "") -> int:
    """How many rows the optimizer expects. Of information_schema MySQL 8 gives what was noted up to a day ago; EXPLAIN asks the engine."""
    rest = f" WHERE {condition}" if condition else ""
    cursor.execute(f"EXPLAIN FORMAT=TRADITIONAL SELECT 1 FROM {source}{rest}")  # noqa: S608 - names are quoted
    names = [each[0] for each in cursor.description or ()]
    row = cursor.fetchone()
    return int(row[names.index("rows")] or 0) if row else 0


def found_key(cursor: Cursor, key: SplitKey, condition: str, offset: int = 0, *, last: bool = False) -> Key | None:
    """The key that many rows behind the first one, or before the last one, of those for which *condition* holds.

    Instead of one that no literal can mean, the next one.
    """
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


def ends(cursor: Cursor, key: SplitKey, after: int | None) -> tuple[int | None, int | None]:
    """The least and the greatest number of a single column behind *after*, which the index tells at once."""
    (column,) = key.columns
    name = f"t.{quoted(column.name)}"
    condition = where(key, KeyRange(after=None if after is None else (after,)))
    cursor.execute(f"SELECT MIN({name}), MAX({name}) FROM {key.source} WHERE {condition}")  # noqa: S608 - as above
    least, greatest = cursor.fetchone() or (None, None)
    return (None if least is None else int(least)), (None if greatest is None else int(greatest))


def step(cursor: Cursor, key: SplitKey, after: Key | None, rows: int) -> Key | None:
    """The key *rows* rows behind *after*, by going over as many entries of the index; None where there are fewer."""
    if len(key.columns) > 1 and key.columns[0].type.name == "enum":
        return _step_in_labels(cursor, key, after, rows)
    return found_key(cursor, key, where(key, KeyRange(after=after)), rows - 1)


def _step_in_labels(cursor: Cursor, key: SplitKey, after: Key | None, rows: int) -> Key | None:
    """The same, but no further than the end of a label: MySQL 5.7 scans the index from its beginning where a range is over several."""
    for number in range(0 if after is None else int(after[0]), len(key.columns[0].type.labels) + 1):
        condition = within_first(key, number, after[1:] if after is not None and after[0] == number else None)
        found = found_key(cursor, key, condition, rows - 1) or found_key(cursor, key, condition, last=True)
        if found is not None:
            return found
    return None


def _has_literal(column: Column, value: str) -> bool:
    """Whether it is no text of bytes that are no characters, which servers refuse in literals."""
    if column.type.charset is None or column.type.name == "enum":
        return True
    try:
        decoded(bytes.fromhex(value), column.type.charset)
    except UnicodeError:
        return False
    return True
