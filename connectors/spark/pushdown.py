"""Spark's filters as predicates on Arrow columns, which are looked at before rows leave the Python side.

Spark looks at what comes through again, so that a predicate needs to be right only where it says no.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import datasource as spark

__all__ = ["Predicate", "kept", "predicates_of", "values_of"]

_COMPARISONS: dict[type[spark.Filter], tuple[str, Callable[[Any, Any], Any]]] = {
    spark.EqualTo: ("equal", operator.eq),
    spark.EqualNullSafe: ("equal", operator.eq),
    spark.GreaterThan: ("greater", operator.gt),
    spark.GreaterThanOrEqual: ("greater_equal", operator.ge),
    spark.LessThan: ("less", operator.lt),
    spark.LessThanOrEqual: ("less_equal", operator.le),
}
_LITERALS = (bool, int, str, Decimal, datetime, date)


@dataclass(frozen=True, slots=True)
class Predicate:
    """One comparison of a column with values.

    Attributes:
        column: its name.
        test: of :mod:`pyarrow.compute`: "equal", "less", …, "in", "null", "not_null".
        values: one, or for "in" any number.
    """

    column: str
    test: str
    values: tuple[Any, ...] = ()


def predicates_of(filters: Iterable[spark.Filter]) -> tuple[Predicate, ...]:
    """Those of *filters* that can be looked at here. They are of top-level columns, and of values that compare alike everywhere."""
    return tuple(found for each in filters if (found := _predicate(each)) is not None)


def _predicate(each: spark.Filter) -> Predicate | None:
    path: tuple[str, ...] = getattr(each, "attribute", ())
    if len(path) != 1:
        return None
    if isinstance(each, spark.IsNull):
        return Predicate(path[0], "null")
    if isinstance(each, spark.IsNotNull):
        return Predicate(path[0], "not_null")
    if isinstance(each, spark.In):
        values = tuple(value for value in each.value if value is not None)
        return Predicate(path[0], "in", values) if all(isinstance(value, _LITERALS) for value in values) else None
    known = _COMPARISONS.get(type(each))
    value = getattr(each, "value", None)
    if known is None or not isinstance(value, _LITERALS):
        return None
    return Predicate(path[0], known[0], (value,))


def kept(predicates: Sequence[Predicate], columns: Mapping[str, pa.Array | None]) -> pa.Array | None:
    """Which rows of *columns* may fulfil all *predicates*, as booleans; None: all may."""
    mask: pa.Array | None = None
    for each in predicates:
        values = columns[each.column]
        found = None if values is None else _test(each, values)
        if found is not None:
            found = pc.fill_null(found, False)
            mask = found if mask is None else pc.and_(mask, found)
    return None if mask is None or pc.all(mask, min_count=0).as_py() else mask


def _test(each: Predicate, values: pa.Array) -> pa.Array | None:
    """NULL where the comparison is of NULL; None where nothing can be said."""
    kind = values.type
    if each.test == "null":
        return values.is_null()
    if each.test == "not_null":
        return values.is_valid()
    if pa.types.is_floating(kind) or pa.types.is_nested(kind):
        return None
    try:
        wanted = pa.array(list(each.values), kind)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError, TypeError, ValueError):
        return None
    if each.test == "in":
        return pc.is_in(values, value_set=wanted)
    return getattr(pc, each.test)(values, wanted[0])


def values_of(predicates: Iterable[Predicate], column: str) -> frozenset[Any] | None:
    """The values that *column* has in each row that fulfils *predicates*; None: any."""
    found: frozenset[Any] | None = None
    for each in predicates:
        if each.column == column and each.test in ("equal", "in"):
            found = frozenset(each.values) if found is None else found & frozenset(each.values)
    return found
