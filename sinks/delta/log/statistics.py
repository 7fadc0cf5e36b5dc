"""Delta's file statistics, taken from what the Parquet writer measured.

Format: "Per-file Statistics" of Delta's protocol. Bounds must hold, they need not be tight. Timestamps are cut to
milliseconds as Delta's readers expect, long strings to a prefix, the upper one followed by the highest code point.
Decimals are widened to the digits that a double keeps: Delta Kernel reads every fraction in JSON as a double.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from datetime import date, datetime, timedelta
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

__all__ = ["file_statistics"]

_INDEXED_COLUMNS = 32
"""Delta's default ``delta.dataSkippingNumIndexedCols``."""
_PREFIX_CHARACTERS = 32
_HIGHEST = "\U0010ffff"
_BELOW = Context(prec=sys.float_info.dig, rounding=ROUND_FLOOR)
_ABOVE = Context(prec=sys.float_info.dig, rounding=ROUND_CEILING)


def file_statistics(footer: pq.FileMetaData, schema: pa.Schema) -> str:
    """The statistics of one file as JSON text, columns by their names in the file.

    Args:
        footer: of the file, whose row groups say least, greatest and NULLs of each column.
        schema: that it was written with.
    """
    low, high, nulls = {}, {}, {}
    leaf = 0
    for column in list(schema)[:_INDEXED_COLUMNS]:
        at, leaf = leaf, leaf + (column.type.num_fields or 1)
        if pa.types.is_nested(column.type):
            continue
        groups = [footer.row_group(group).column(at).statistics for group in range(footer.num_row_groups)]
        if any(group is None or not group.has_null_count for group in groups):
            continue
        nulls[column.name] = str(sum(group.null_count for group in groups))
        groups = [group for group in groups if group.num_values > 0]
        if not groups or not all(group.has_min_max for group in groups):
            continue
        bounds = _bounds(column.type, groups)
        if bounds is not None:
            low[column.name], high[column.name] = bounds
    return (
        f'{{"numRecords":{footer.num_rows},"minValues":{_object(low)},"maxValues":{_object(high)},'
        f'"nullCount":{_object(nulls)},"tightBounds":true}}'
    )


def _object(values: dict[str, str]) -> str:
    return "{" + ",".join(f"{json.dumps(name)}:{text}" for name, text in values.items()) + "}"


def _bounds(kind: pa.DataType, groups: list[Any]) -> tuple[str, str] | None:
    if pa.types.is_string(kind):
        return _string_bounds(min(g.min for g in groups), max(g.max for g in groups))
    if pa.types.is_decimal(kind):
        return _decimal_bounds(kind, min(g.min for g in groups), max(g.max for g in groups))
    form = _form(kind)
    if form is None:
        return None
    return form(min(g.min_raw for g in groups)), form(max(g.max_raw for g in groups))


def _form(kind: pa.DataType) -> Callable[[Any], str] | None:
    """How a column's bounds read in JSON, from Parquet's raw values; None: no bounds are given."""
    if pa.types.is_integer(kind):
        return str
    if pa.types.is_date(kind):
        return lambda days: json.dumps((date(1970, 1, 1) + timedelta(days=days)).isoformat())
    if pa.types.is_timestamp(kind):
        return lambda us: json.dumps(_milliseconds(us, "Z" if kind.tz else ""))
    if pa.types.is_floating(kind):
        return lambda value: json.dumps(float(value))
    return None


def _milliseconds(us: int, zone: str) -> str:
    return (datetime(1970, 1, 1) + timedelta(milliseconds=us // 1000)).isoformat(timespec="milliseconds") + zone  # noqa: DTZ001 the zone is appended


def _decimal_bounds(kind: pa.Decimal128Type, low: Decimal, high: Decimal) -> tuple[str, str] | None:
    low, high = _BELOW.plus(low), _ABOVE.plus(high)
    limit = Decimal(1).scaleb(kind.precision - kind.scale)
    return (f"{low:f}", f"{high:f}") if -limit < low and high < limit else None


def _string_bounds(low: str, high: str) -> tuple[str, str] | None:
    if len(high) > _PREFIX_CHARACTERS:
        if high[_PREFIX_CHARACTERS] == _HIGHEST:
            return None
        high = high[:_PREFIX_CHARACTERS] + _HIGHEST
    return json.dumps(low[:_PREFIX_CHARACTERS]), json.dumps(high)
