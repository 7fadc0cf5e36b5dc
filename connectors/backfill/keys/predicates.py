"""Ranges of keys as conditions of WHERE."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence

from connectors.backfill.keys.literals import literal
from connectors.backfill.keys.split_key import SplitKey
from historian.names import quoted
from historian.plans.key_ranges import KeyRange, KeyValue
from historian.plans.row_values import RowValues
from historian.schema.snapshots import Column

__all__ = ["from_first", "up_to_first", "where", "with_values", "within_first"]

_OPERATORS: Mapping[str, Callable[[int, int], bool]] = {
    "=": operator.eq,
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
}


def where(key: SplitKey, keys: KeyRange) -> str:
    """The condition that holds for the rows of the range, each of the table's in just one of ranges that follow each other.

    Each bound stands there twice: expanded by columns, and for the first column alone, which leads the optimizer to the index.
    The session is to be one of :func:`connectors.backfill.keys.literals.prepare_session`. Columns are named without their table.

    Of columns ``a`` and ``b`` behind (1, 2): ``(`a` > 1 OR (`a` = 1 AND `b` > 2)) AND `a` >= 1``.
    """
    parts = []
    if keys.after is not None:
        parts += _bound(key.columns, keys.after, above=True)
    if keys.upto is not None:
        parts += _bound(key.columns, keys.upto, above=False)
    return " AND ".join(parts) or "1"


def within_first(key: SplitKey, first: KeyValue, after: tuple[KeyValue, ...] | None) -> str:
    """The condition that holds for rows with *first* in the first column, and behind *after* in the others."""
    parts = [_compared(key.columns[0], first, "=")]
    if after is not None:
        parts += _bound(key.columns[1:], after, above=True)
    return " AND ".join(parts)


def from_first(key: SplitKey, first: KeyValue) -> str:
    """The condition that holds for rows with *first* or a greater value in the first column."""
    return _compared(key.columns[0], first, ">=")


def up_to_first(key: SplitKey, first: KeyValue) -> str:
    """The condition that holds for rows with *first* or a smaller value in the first column."""
    return _compared(key.columns[0], first, "<=")


def with_values(columns: Sequence[Column], rows: RowValues) -> str:
    """The condition that holds for the *rows* that are told by values in *columns*; of others it is NULL or false.

    It leads to an index over the columns, on servers too that search none for rows of values.
    """
    parts = []
    if rows.values and len(columns) == 1:
        literals = ", ".join(literal(columns[0].type, value) for (value,) in rows.values)
        parts.append(f"{quoted(columns[0].name)} IN ({literals})")
    elif rows.values:
        parts += [
            f"({' AND '.join(_compared(column, value, '=') for column, value in zip(columns, key, strict=True))})"
            for key in rows.values
        ]
    if rows.nulls:
        parts.append(f"({' AND '.join(f'{quoted(column.name)} IS NULL' for column in columns)})")
    return " OR ".join(parts) or "0"


def _bound(columns: tuple[Column, ...], values: tuple[KeyValue, ...], *, above: bool) -> list[str]:
    if len(columns) != len(values):
        raise ValueError(f"a key of {len(columns)} columns, and {len(values)} values")
    pairs = list(zip(columns, values, strict=True))
    beyond = ">" if above else "<"
    condition = _compared(*pairs[-1], beyond if above else "<=")
    for column, value in reversed(pairs[:-1]):
        equal = _compared(column, value, "=")
        condition = f"({_compared(column, value, beyond)} OR ({equal} AND {condition}))"
    # Of ENUM, a second list leads MySQL to a scan of the whole index.
    alone = len(pairs) == 1 or columns[0].type.name == "enum"
    return [condition] if alone else [condition, _compared(*pairs[0], f"{beyond}=")]


def _compared(column: Column, value: KeyValue, sign: str) -> str:
    if column.type.name == "enum":
        return _members(column, int(value), sign)
    return f"{quoted(column.name)} {sign} {literal(column.type, value)}"


def _members(column: Column, number: int, sign: str) -> str:
    """Servers search an index for single numbers of an ENUM, not for those above or below one."""
    holds = _OPERATORS[sign]
    found = [str(other) for other in range(len(column.type.labels) + 1) if holds(other, number)]
    # MySQL sorts the rows of a single number: it does not see that they are in the index's order already.
    found = found * 2 if len(found) == 1 else found
    return f"{quoted(column.name)} IN ({', '.join(found)})" if found else "0"
