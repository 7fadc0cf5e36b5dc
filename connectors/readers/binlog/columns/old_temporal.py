"""TIME, DATETIME and TIMESTAMP as servers kept them before MySQL 5.6, and MariaDB with ``mysql56_temporal_format=OFF``.

Without fractional digits a value is decimal digits in a little-endian number (hhmmss; YYYYMMDDhhmmss), a TIMESTAMP its
seconds. With them, which only MariaDB has here, it is a big-endian number in the unit of the last digit. Of TIME and
DATETIME it is parts packed with their ranges as factors (``pack_time``, ``Field_*_hires`` in MariaDB's sql/field.cc), TIME offset by
the longest one. A TIMESTAMP is seconds and behind them its fraction.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from connectors.readers.binlog.columns.arrays import Cells, Finish, text_array
from connectors.readers.binlog.kernels.values import layout as at

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["old_temporal", "old_temporal_text", "old_width"]

_PLAIN_BYTES = {"time": 3, "datetime": 8, "timestamp": 4}
_FINE_BYTES = {
    "time": (3, 4, 4, 5, 5, 5, 6),
    "datetime": (5, 6, 6, 7, 7, 7, 8),
    "timestamp": (4, 5, 5, 6, 6, 7, 7),
}
_LONGEST_TIME_S = 838 * 3600 + 59 * 60 + 59
_US = 1_000_000


class _Parts(NamedTuple):
    """Values in parts, an array each; of TIME the hours may be above 23 and ``sign`` is -1 or 1."""

    sign: NDArray[np.int64]
    year: NDArray[np.int64]
    month: NDArray[np.int64]
    day: NDArray[np.int64]
    hour: NDArray[np.int64]
    minute: NDArray[np.int64]
    second: NDArray[np.int64]
    us: NDArray[np.int64]


def old_width(name: str, digits: int) -> tuple[int, int]:
    """The kernel's kind of such a column, and the bytes of a value; *digits* fractional ones."""
    return (at.BIG_WORD, _FINE_BYTES[name][digits]) if digits else (at.WORD, _PLAIN_BYTES[name])


def old_temporal(name: str, digits: int) -> Finish:
    """Microseconds as the newer forms give them; dates that the calendar lacks become NULL and are counted."""
    read = _READ[name]

    def finish(cells: Cells) -> pa.Array:
        valid = cells.valid()
        us, there = _micros(name, read(cells.words, digits))
        missing = np.flatnonzero(valid & ~there)
        if len(missing):
            cells.unrepresentable, cells.first_unrepresentable = len(missing), int(missing[0])
        kept = valid & there
        nulls = cells.rows - int(np.count_nonzero(kept))
        validity = pa.py_buffer(np.packbits(kept, bitorder="little")) if nulls else None
        return pa.Array.from_buffers(cells.arrow, cells.rows, [validity, pa.py_buffer(us)], nulls)

    return finish


def old_temporal_text(name: str, digits: int) -> Finish:
    """The server's own text; a TIMESTAMP in UTC."""
    read, show = _READ[name], _time_text if name == "time" else _moment_text

    def finish(cells: Cells) -> pa.Array:
        rows = zip(*(part.tolist() for part in read(cells.words, digits)), cells.valid().tolist(), strict=True)
        return text_array(show(_Row(*row[:-1]), digits) if row[-1] else None for row in rows)

    return finish


class _Row(NamedTuple):
    sign: int
    year: int
    month: int
    day: int
    hour: int
    minute: int
    second: int
    us: int


def _fraction(us: int, digits: int) -> str:
    return f".{us:06d}"[: digits + 1] if digits else ""


def _time_text(row: _Row, digits: int) -> str:
    sign = "-" if row.sign < 0 else ""
    return f"{sign}{row.hour:02d}:{row.minute:02d}:{row.second:02d}{_fraction(row.us, digits)}"


def _moment_text(row: _Row, digits: int) -> str:
    date = f"{row.year:04d}-{row.month:02d}-{row.day:02d}"
    return f"{date} {row.hour:02d}:{row.minute:02d}:{row.second:02d}{_fraction(row.us, digits)}"


def _time(words: NDArray[np.int64], digits: int) -> _Parts:
    zero = np.zeros_like(words)
    if digits:
        unit = 10**digits
        units = words - (_LONGEST_TIME_S + 1) * unit
        seconds, part = np.divmod(np.abs(units), unit)
        us = part * 10 ** (6 - digits)
        hour, minute, second = seconds // 3600, seconds // 60 % 60, seconds % 60
    else:
        units = np.where(words >= 1 << 23, words - (1 << 24), words)
        number = np.abs(units)
        hour, minute, second, us = number // 10000, number // 100 % 100, number % 100, zero
    return _Parts(np.where(units < 0, -1, 1), zero, zero, zero, hour, minute, second, us)


def _datetime(words: NDArray[np.int64], digits: int) -> _Parts:
    sign = np.ones_like(words)
    if not digits:
        days, clock = np.divmod(words, 1_000_000)
        date = days // 10000, days // 100 % 100, days % 100
        return _Parts(sign, *date, clock // 10000, clock // 100 % 100, clock % 100, np.zeros_like(words))
    rest, part = np.divmod(words, 10**digits)
    found = []
    for size in (60, 60, 24, 32, 13):
        rest, value = np.divmod(rest, size)
        found.append(value)
    second, minute, hour, day, month = found
    return _Parts(sign, rest, month, day, hour, minute, second, part * 10 ** (6 - digits))


def _timestamp(words: NDArray[np.int64], digits: int) -> _Parts:
    bits = 8 * (_FINE_BYTES["timestamp"][digits] - 4)
    seconds, part = words >> bits, words & ((1 << bits) - 1)
    stamps = seconds.astype("datetime64[s]")
    days = stamps.astype("datetime64[D]")
    months = days.astype("datetime64[M]")
    years = months.astype("datetime64[Y]")
    is_zero = words == 0  # the zero date, not the epoch
    clock = (stamps - days).astype(np.int64)
    parts = (
        years.astype(np.int64) + 1970,
        (months - years).astype(np.int64) + 1,
        (days - months).astype(np.int64) + 1,
        clock // 3600,
        clock // 60 % 60,
        clock % 60,
        part * 10 ** (6 - digits),
    )
    return _Parts(np.ones_like(words), *(np.where(is_zero, 0, each) for each in parts))


_READ: dict[str, Callable[[NDArray[np.int64], int], _Parts]] = {
    "time": _time,
    "datetime": _datetime,
    "timestamp": _timestamp,
}


def _micros(name: str, parts: _Parts) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Microseconds, and where there are any."""
    clock = ((parts.hour * 60 + parts.minute) * 60 + parts.second) * _US + parts.us
    if name == "time":
        return parts.sign * clock, np.ones(len(clock), np.bool_)
    years = (parts.year - 1970).astype("datetime64[Y]")
    months = years.astype("datetime64[M]") + (parts.month - 1)
    days = months.astype("datetime64[D]") + (parts.day - 1)
    # A day behind its month's end is one of the next month.
    there = (parts.year > 0) & (parts.month > 0) & (parts.day > 0) & (days.astype("datetime64[M]") == months)
    return days.astype(np.int64) * 86400 * _US + clock, there
