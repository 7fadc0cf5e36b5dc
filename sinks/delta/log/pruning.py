"""Which files of a table can hold rows of given keys, by what Delta's statistics say of the key's columns.

Bounds need not be tight: timestamps are cut to milliseconds, long texts to a prefix. A file that says nothing of a
column can hold every value of it.
"""

from __future__ import annotations

import json
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sinks.delta.log.commits import HeldFile

__all__ = ["bounds_in", "files_with"]

_MILLISECOND = timedelta(milliseconds=1)


def files_with(files: Sequence[HeldFile], keys: pa.Table) -> list[HeldFile]:
    """Those of *files* that can hold a row of one of *keys*, which has the key's columns under their names in files."""
    if keys.num_rows == 0:
        return []
    first, *others = keys.schema.names
    ordered = keys.sort_by(first)  # NULLs stand last.
    values = ordered.column(first).combine_chunks()
    count = len(values) - values.null_count

    def holds(statistics: Mapping[str, Any]) -> bool:
        if count < len(values) and _has_null(statistics, first):
            return True
        bounds = bounds_in(statistics, first, values.type)
        low, high = 0, count
        if bounds is not None:
            low = bisect_left(range(count), bounds[0], key=lambda at: values[at].as_py())
            high = bisect_right(range(count), bounds[1], key=lambda at: values[at].as_py())
        return low < high and all(
            _meets(statistics, name, ordered.column(name).slice(low, high - low)) for name in others
        )

    return [file for file in files if holds(json.loads(file.statistics, parse_float=Decimal))]


def _meets(statistics: Mapping[str, Any], name: str, values: pa.ChunkedArray) -> bool:
    bounds = bounds_in(statistics, name, values.type)
    if bounds is None or (values.null_count and _has_null(statistics, name)):
        return True
    ends = pc.min_max(values).as_py()
    return ends["min"] is not None and bool(ends["min"] <= bounds[1] and bounds[0] <= ends["max"])


def _has_null(statistics: Mapping[str, Any], name: str) -> bool:
    return bool(statistics.get("nullCount", {}).get(name, 1))


def bounds_in(statistics: Mapping[str, Any], name: str, kind: pa.DataType) -> tuple[Any, Any] | None:
    """The least and the greatest value that a file can have in a column; None: it does not say."""
    low, high = (statistics.get(side, {}).get(name) for side in ("minValues", "maxValues"))
    form = _form(kind)
    if low is None or high is None or form is None:
        return None
    try:
        return form(low), form(high) + _MILLISECOND if pa.types.is_timestamp(kind) else form(high)
    except (ValueError, TypeError, ArithmeticError):
        return None  # Another writer's form of it; such a file is read.


def _form(kind: pa.DataType) -> Callable[[Any], Any] | None:
    """How a column's bounds are read from JSON, whose fractions are decimals; None: no bounds are given."""
    if pa.types.is_integer(kind):
        return int
    if pa.types.is_decimal(kind):
        return Decimal
    if pa.types.is_floating(kind):
        return lambda value: float(np.float32(value) if kind == pa.float32() else value)
    if pa.types.is_string(kind):
        return _text
    if pa.types.is_date(kind):
        return date.fromisoformat
    if pa.types.is_timestamp(kind):
        return lambda value: _time(value, zoned=kind.tz is not None)
    return None


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(value)
    return value


def _time(value: str, *, zoned: bool) -> datetime:
    time = datetime.fromisoformat(value.replace("Z", "+00:00"))
    if (time.tzinfo is not None) != zoned:
        raise ValueError(value)
    return time
