"""Values of key columns against bounds of ranges, as servers order them: numbers, times and bytes, whose order is the same everywhere.

The order of texts, and of MariaDB's UUID, INET4 and INET6, is a server's own affair.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from datetime import date, datetime, timezone
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from historian.errors import ValueUnrepresentable
from historian.plans.key_ranges import KeyValue
from historian.schema.snapshots import INTEGER_TYPES, ColumnType
from historian.values.arrow_types import MAX_DECIMAL_DIGITS

__all__ = ["Signs", "arrow_signs", "compared_here", "has_plain_order", "time_us"]

Signs = np.ndarray[tuple[int], np.dtype[np.int8]]
"""-1, 0 or 1 a row."""

_TIME = re.compile(r"(-?)(\d+):(\d{2}):(\d{2})(?:\.(\d{1,6}))?")
_DATETIME = re.compile(r"(\d{4})-(\d{2})-(\d{2})(?: (\d{2}):(\d{2}):(\d{2})(?:\.(\d{1,6}))?)?")
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_PLAIN = frozenset((*INTEGER_TYPES, "decimal", "date", "datetime", "timestamp", "time", "year", "binary", "varbinary"))


def has_plain_order(kind: ColumnType) -> bool:
    """Whether values of that type, in the form that targets have them, stand in the server's order as they are.

    >>> has_plain_order(ColumnType(name="bigint", unsigned=True)), has_plain_order(ColumnType(name="varchar"))
    (True, False)
    """
    is_text = kind.name == "decimal" and (kind.precision or 0) > MAX_DECIMAL_DIGITS
    return kind.name in _PLAIN and not kind.shape and not is_text


def compared_here(values: pa.Array, kind: ColumnType, bound: KeyValue) -> Signs | None:
    """For each of *values*, none of them NULL, on which side of *bound* it lies: -1, 0 or 1; None where servers alone tell.

    Args:
        values: of a column of type *kind*, in any form.
    """
    how = _HERE.get(kind.name)
    return None if how is None else how(values, kind, bound)


def arrow_signs(values: pa.Array, bound: pa.Scalar) -> Signs:
    """The same of values whose order is Arrow's."""
    above = pc.cast(pc.greater(values, bound), pa.int8())
    below = pc.cast(pc.less(values, bound), pa.int8())
    signs: Signs = pc.subtract(above, below).to_numpy(zero_copy_only=False)
    return signs


def _python(values: Iterable[Any], bound: Any) -> Signs:
    return np.fromiter(((value > bound) - (value < bound) for value in values), dtype=np.int8)


def _numbers(values: pa.Array, _: ColumnType, bound: KeyValue) -> Signs:
    number = int(bound)
    if pa.types.is_string(values.type):
        return _python(map(int, values.to_pylist()), number)
    if pa.types.is_decimal(values.type):
        return arrow_signs(values, pa.scalar(Decimal(number), pa.decimal128(38, 0)))
    plain = pc.cast(values, pa.int64()).to_numpy()
    # numpy compares with numbers beyond its own exactly.
    signs: Signs = (plain > number).astype(np.int8) - (plain < number).astype(np.int8)
    return signs


def _bits(values: pa.Array, kind: ColumnType, bound: KeyValue) -> Signs:
    if pa.types.is_boolean(values.type):
        return _numbers(values, kind, bound)
    return arrow_signs(values, pa.scalar(int(bound).to_bytes(((kind.length or 1) + 7) // 8, "big"), pa.binary()))


def _decimals(values: pa.Array, _: ColumnType, bound: KeyValue) -> Signs:
    number = Decimal(bound)
    if pa.types.is_string(values.type):
        return _python(map(Decimal, values.to_pylist()), number)
    try:
        return arrow_signs(values, pa.scalar(number, values.type))
    except pa.ArrowInvalid:
        # The bound is of a type with more digits, from before or behind a change.
        return _python(values.to_pylist(), number)


def _binary(values: pa.Array, _: ColumnType, bound: KeyValue) -> Signs:
    return arrow_signs(values, pa.scalar(bytes.fromhex(str(bound)), pa.binary()))


def _labels(values: pa.Array, kind: ColumnType, bound: KeyValue) -> Signs:
    numbers = pc.index_in(values, pa.array(("", *kind.labels), pa.string()))
    if numbers.null_count:
        raise ValueUnrepresentable("a label that the schema does not have", where=str(kind))
    return _numbers(numbers, kind, bound)


def _times(values: pa.Array, kind: ColumnType, bound: KeyValue) -> Signs:
    if pa.types.is_string(values.type):
        return _python(map(time_us, values.to_pylist()), time_us(str(bound)))
    return _numbers(values, kind, time_us(str(bound)))


def time_us(text: str) -> int:
    """Microseconds of a TIME as servers write it. Raises ValueUnrepresentable."""
    match = _TIME.fullmatch(text)
    if match is None:
        raise ValueUnrepresentable("a text that is no TIME", found=repr(text))
    seconds = (int(match[2]) * 60 + int(match[3])) * 60 + int(match[4])
    micros = seconds * 1_000_000 + int((match[5] or "").ljust(6, "0"))
    return -micros if match[1] else micros


def _dates(values: pa.Array, kind: ColumnType, bound: KeyValue) -> Signs:
    """Servers order dates by year, month, day and time, be they in the calendar or not."""
    text = str(bound)
    match = _DATETIME.fullmatch(text)
    if match is None:
        raise ValueUnrepresentable("a text that is no date", where=str(kind), found=repr(text))
    if pa.types.is_string(values.type):
        return _python(map(_digits, values.to_pylist()), _digits(text))
    year, month, day, hour, minute, second = (int(part or 0) for part in match.groups()[:6])
    micros = int((match[7] or "").ljust(6, "0"))
    try:
        moment = datetime(year, month, day, hour, minute, second, micros, timezone.utc)
    except ValueError:
        return _python(map(_packed, values.to_pylist()), (year, month, day, hour, minute, second, micros))
    if pa.types.is_date(values.type):
        return _numbers(pc.cast(values, pa.int32()), kind, (moment.date() - date(1970, 1, 1)).days)
    since = moment - _EPOCH
    return _numbers(pc.cast(values, pa.int64()), kind, (since.days * 86_400 + since.seconds) * 1_000_000 + micros)


def _digits(text: str) -> str:
    """A date's or a moment's digits, which sort as it does; fractions may have been given more of them."""
    return re.sub(r"\D", "", text).ljust(20, "0")


def _packed(value: date | datetime) -> tuple[int, ...]:
    if isinstance(value, datetime):
        return (value.year, value.month, value.day, value.hour, value.minute, value.second, value.microsecond)
    return (value.year, value.month, value.day, 0, 0, 0, 0)


_HERE: dict[str, Callable[[pa.Array, ColumnType, KeyValue], Signs]] = {
    **dict.fromkeys((*INTEGER_TYPES, "year"), _numbers),
    "bit": _bits,
    "decimal": _decimals,
    **dict.fromkeys(("date", "datetime", "timestamp"), _dates),
    "time": _times,
    **dict.fromkeys(("binary", "varbinary"), _binary),
    "enum": _labels,
}
