"""Values of one key column against one bound: -1, 0 and 1, as the server orders them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import date, datetime, timezone
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from connectors.backfill.keys.literals import literal, text_literal
from historian.errors import SourceError, ValueUnrepresentable
from historian.plans.key_ranges import KeyValue
from historian.schema.snapshots import INTEGER_TYPES, ColumnType

__all__ = ["Signs", "compared"]

Signs = np.ndarray[tuple[int], np.dtype[np.int8]]
"""-1, 0 or 1 a row."""

_Ask = Callable[[str], Sequence[Sequence[Any]]]

_CODE_POINTS = {
    **dict.fromkeys(("utf8mb4_bin", "utf8mb3_bin", "ascii_bin"), True),
    **dict.fromkeys(("utf8mb4_0900_bin", "utf8mb4_nopad_bin", "utf8mb3_nopad_bin", "ascii_nopad_bin"), False),
}
"""Collations by the numbers of characters, and whether blanks at the end do not count. The bytes of these sets are UTF-8."""

_STATEMENT_BYTES = 200_000
_STATEMENT_KEYS = 500
_TIME = re.compile(r"(-?)(\d+):(\d{2}):(\d{2})(?:\.(\d{1,6}))?")
_DATETIME = re.compile(r"(\d{4})-(\d{2})-(\d{2})(?: (\d{2}):(\d{2}):(\d{2})(?:\.(\d{1,6}))?)?")
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def compared(values: pa.Array, kind: ColumnType, bound: KeyValue, ask: _Ask) -> Signs:
    """For each of *values*, none of them NULL, on which side of *bound* it lies.

    Args:
        values: of a column of type *kind*, in any form.
    """
    how = _LOCAL.get(kind.name)
    if how is not None:
        return how(values, kind, bound)
    distinct = values.dictionary_encode()
    texts = distinct.dictionary.to_pylist()
    if kind.collation in _CODE_POINTS:
        signs = _code_points(distinct.dictionary, str(bound), pads=_CODE_POINTS[kind.collation])
    else:
        make = literal if kind.charset is None else text_literal
        signs = _asked([make(kind, text) for text in texts], kind, bound, ask)
    result: Signs = signs[distinct.indices.to_numpy()]
    return result


def _asked(literals: Sequence[str], kind: ColumnType, bound: KeyValue, ask: _Ask) -> Signs:
    """As the server compares literals; one text of digits is its answer, whatever the number of keys."""
    collate = "" if kind.collation is None else f" COLLATE {kind.collation}"
    other = f"SELECT {literal(kind, bound)}{collate} AS b"
    digits = ""
    for some in _statements(literals):
        terms = (f"STRCMP({one}, k.b) + 1" if collate else f"({one} > k.b) + ({one} >= k.b)" for one in some)
        ((answer,),) = ask(f"SELECT CONCAT({', '.join(terms)}) FROM ({other}) AS k")  # noqa: S608 - literals of our own
        found = answer.decode() if isinstance(answer, bytes) else str(answer)
        if len(found) != len(some):
            raise SourceError("the server cannot compare keys", where=str(kind), expected=len(some), found=answer)
        digits += found
    signs: Signs = np.frombuffer(digits.encode(), dtype=np.int8) - np.int8(ord("1"))
    return signs


def _statements(literals: Sequence[str]) -> Iterator[Sequence[str]]:
    """As many of them as go into one statement: servers take longer for each of many."""
    first = size = 0
    for at, one in enumerate(literals):
        if at > first and (size + len(one) > _STATEMENT_BYTES or at - first == _STATEMENT_KEYS):
            yield literals[first:at]
            first, size = at, 0
        size += len(one)
    if first < len(literals):
        yield literals[first:]


def _code_points(values: pa.Array, bound: str, *, pads: bool) -> Signs:
    """In the order of characters' numbers, which is that of their UTF-8."""
    text = bytes.fromhex(bound).decode()
    if pads:
        width = max(len(text), pc.max(pc.utf8_length(values)).as_py() or 0)
        values, text = pc.utf8_rpad(values, width, padding=" "), text.ljust(width)
    return _arrow(values, pa.scalar(text, values.type))


def _arrow(values: pa.Array, bound: pa.Scalar) -> Signs:
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
        return _arrow(values, pa.scalar(Decimal(number), pa.decimal128(38, 0)))
    plain = pc.cast(values, pa.int64()).to_numpy()
    # numpy compares with numbers beyond its own exactly.
    signs: Signs = (plain > number).astype(np.int8) - (plain < number).astype(np.int8)
    return signs


def _bits(values: pa.Array, kind: ColumnType, bound: KeyValue) -> Signs:
    if pa.types.is_boolean(values.type):
        return _numbers(values, kind, bound)
    return _arrow(values, pa.scalar(int(bound).to_bytes(((kind.length or 1) + 7) // 8, "big"), pa.binary()))


def _decimals(values: pa.Array, _: ColumnType, bound: KeyValue) -> Signs:
    number = Decimal(bound)
    if pa.types.is_string(values.type):
        return _python(map(Decimal, values.to_pylist()), number)
    try:
        return _arrow(values, pa.scalar(number, values.type))
    except pa.ArrowInvalid:
        # The bound is of a type with more digits, from before or behind a change.
        return _python(values.to_pylist(), number)


def _binary(values: pa.Array, _: ColumnType, bound: KeyValue) -> Signs:
    return _arrow(values, pa.scalar(bytes.fromhex(str(bound)), pa.binary()))


def _labels(values: pa.Array, kind: ColumnType, bound: KeyValue) -> Signs:
    numbers = pc.index_in(values, pa.array(("", *kind.labels), pa.string()))
    if numbers.null_count:
        raise ValueUnrepresentable("a label that the schema does not have", where=str(kind))
    return _numbers(numbers, kind, bound)


def _times(values: pa.Array, kind: ColumnType, bound: KeyValue) -> Signs:
    if pa.types.is_string(values.type):
        return _python(map(_micros, values.to_pylist()), _micros(str(bound)))
    return _numbers(values, kind, _micros(str(bound)))


def _micros(text: str) -> int:
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


_LOCAL: dict[str, Callable[[pa.Array, ColumnType, KeyValue], Signs]] = {
    **dict.fromkeys((*INTEGER_TYPES, "year"), _numbers),
    "bit": _bits,
    "decimal": _decimals,
    **dict.fromkeys(("date", "datetime", "timestamp"), _dates),
    "time": _times,
    **dict.fromkeys(("binary", "varbinary"), _binary),
    "enum": _labels,
}
"""How types are compared here; all others are compared by the server."""
