"""Values of a key's first column as numbers, so that one between two others can be named without knowing which there are.

Numbers lead to candidates alone. Where a candidate lies, and how many rows lie before it, is for the server to say: numbers
of texts follow its order only roughly.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import takewhile

from historian.charsets.conversion import decoded, encoded
from historian.plans.key_ranges import KeyValue
from historian.schema.snapshots import INTEGER_TYPES, ColumnType

__all__ = ["Scale", "scale_between"]

_EPOCH = datetime(1, 1, 1)  # noqa: DTZ001 - of values in one zone
_MICROSECOND = timedelta(microseconds=1)
_BYTES = 12
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
"""Characters that are in this order in every collation that has them all."""
_TEXT_DIGITS = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """Numbers of values from one to another one; ``value`` gives the value of each number between.

    Attributes:
        low, high: numbers of the two.
    """

    low: int
    high: int
    value: Callable[[int], KeyValue]


def scale_between(kind: ColumnType, low: KeyValue, high: KeyValue) -> Scale | None:
    """The scale for values from *low* to *high*; None for types that have none, and dates that the calendar does not have."""
    make = _SCALES.get(kind.name)
    try:
        return None if make is None else make(kind, low, high)
    except ValueError:
        return None


def _numbers(_: ColumnType, low: KeyValue, high: KeyValue) -> Scale:
    return Scale(low=int(low), high=int(high), value=int)


def _decimals(kind: ColumnType, low: KeyValue, high: KeyValue) -> Scale:
    scale = kind.scale or 0

    def text(number: int) -> str:
        digits = str(abs(number)).rjust(scale + 1, "0")
        whole, fraction = digits[: len(digits) - scale], digits[len(digits) - scale :]
        return ("-" if number < 0 else "") + (f"{whole}.{fraction}" if fraction else whole)

    def number(value: KeyValue) -> int:
        whole, _, fraction = str(value).partition(".")
        return int(whole + fraction.ljust(scale, "0"))

    return Scale(low=number(low), high=number(high), value=text)


def _moments(kind: ColumnType, low: KeyValue, high: KeyValue) -> Scale:
    def number(value: KeyValue) -> int:
        text = str(value)
        return (datetime.fromisoformat(text.ljust(26, "0") if "." in text else text) - _EPOCH) // unit

    def text(number: int) -> str:
        moment = _EPOCH + number * unit
        return moment.date().isoformat() if kind.name == "date" else moment.isoformat(" ", "microseconds")

    unit = timedelta(days=1) if kind.name == "date" else _MICROSECOND
    return Scale(low=number(low), high=number(high), value=text)


def _bytes(kind: ColumnType, low: KeyValue, high: KeyValue) -> Scale:
    both = bytes.fromhex(str(low)), bytes.fromhex(str(high))
    shared = both[0][: _shared(*both)]
    width = min(_BYTES, (kind.length or 255) - len(shared))
    first, last = (int.from_bytes(value[len(shared) :][:width].ljust(width, b"\0"), "big") for value in both)
    return Scale(low=first, high=last, value=lambda number: (shared + number.to_bytes(width, "big")).hex())


def _texts(kind: ColumnType, low: KeyValue, high: KeyValue) -> Scale:
    charset = str(kind.charset)
    both = decoded(bytes.fromhex(str(low)), charset), decoded(bytes.fromhex(str(high)), charset)
    shared = both[0][: _shared(*both)]
    start = encoded(shared, charset).hex()
    width = min(_TEXT_DIGITS, (kind.length or 255) - len(shared))

    def number(text: str) -> int:
        found = 0
        for char in text[len(shared) :].lower()[:width].ljust(width, _DIGITS[0]):
            # What is no digit counts as the one before it, by the characters' numbers.
            place = sum(digit <= char for digit in _DIGITS)
            found = found * len(_DIGITS) + max(place - 1, 0)
        return found

    def value(number: int) -> str:
        digits = ""
        for _ in range(width):
            number, place = divmod(number, len(_DIGITS))
            digits = _DIGITS[place] + digits
        return start + encoded(digits, charset).hex()

    return Scale(low=number(both[0]), high=number(both[1]), value=value)


def _shared(one: Sequence[object], other: Sequence[object]) -> int:
    """How many items both begin with."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


_SCALES: dict[str, Callable[[ColumnType, KeyValue, KeyValue], Scale]] = {
    **dict.fromkeys((*INTEGER_TYPES, "bit"), _numbers),
    "decimal": _decimals,
    **dict.fromkeys(("date", "datetime", "timestamp"), _moments),
    **dict.fromkeys(("binary", "varbinary"), _bytes),
    **dict.fromkeys(("char", "varchar"), _texts),
}
