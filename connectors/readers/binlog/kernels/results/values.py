"""Values of the binary protocol in the form that row images have: texts of decimals, dates and times taken apart.

Formats of images: MySQL's ``decimal2bin`` (strings/decimal.c) and ``my_*_packed_to_binary`` (my_time.cc).
"""

from __future__ import annotations

from connectors.readers.binlog.kernels.machine.jit import inlined, kernel
from connectors.readers.binlog.kernels.values.temporal import days
from connectors.readers.machine.memory import (
    load_i64,
    load_u8,
    load_u16,
    load_u32,
    shift_right,
    store_i8,
    store_i16,
    store_i64,
    swap64,
)

__all__ = ["date", "datetime", "decimal", "time", "timestamp"]

_DIGITS_BYTES = (0, 1, 1, 2, 2, 3, 3, 4, 4, 4)
_MINUS, _POINT, _ZERO = 45, 46, 48
_ZEROS = 0x3030303030303030
_SIXES = 0x0606060606060606
_UPPER_HALVES = -0x0F0F0F0F0F0F0F10


@inlined
def _big_bytes(out: int, value: int, size: int) -> None:
    """Stores the lowest *size* bytes of *value*, 1 to 8, the highest first; as many as are left of eight are set behind them."""
    store_i64(out, swap64(value << (64 - 8 * size)))


@inlined
def _digits(source: int, count: int) -> int:
    """The number that *count* digits, at most nine, stand for; -1 where one is none.

    Of the word that ends with the last digit: a packet's header and NULL bits stand before any text.
    """
    if count == 0:
        return 0
    first = 0
    if count == 9:
        first = load_u8(source) - _ZERO
        if first < 0 or first > 9:
            return -1
        source += 1
        count = 8
    others = 64 - 8 * count
    word = (shift_right(load_i64(source + count - 8) ^ _ZEROS, others)) << others
    # A byte above 9 has a bit of its upper half, or gets one.
    if (word | (word + _SIXES)) & _UPPER_HALVES:
        return -1
    # Neighbours become one number, of two, four and then eight digits.
    word = (word * 10 + shift_right(word, 8)) & 0x00FF00FF00FF00FF
    word = (word * 100 + shift_right(word, 16)) & 0x0000FFFF0000FFFF
    return first * 100000000 + ((word * 10000 + shift_right(word, 32)) & 0xFFFFFFFF)


@kernel
def decimal(source: int, length: int, whole: int, scale: int, out: int) -> bool:
    """The text of a DECIMAL of *whole* digits before the point and *scale* behind it; False where it is none."""
    end = source + length
    flip = 0
    if length and load_u8(source) == _MINUS:
        flip = -1
        source += 1
    point = end - scale - 1 if scale else end
    if point < source or (scale and load_u8(point) != _POINT):
        return False
    # ZEROFILL, and the zero before the point of a number that has none there.
    while source < point and load_u8(source) == _ZERO:
        source += 1
    there = point - source
    if there > whole:
        return False
    first = out
    left = whole
    while left:
        # The first group has what is left over by those of nine.
        group = left % 9 or 9
        left -= group
        count = min(max(there - left, 0), group)
        value = _digits(source, count)
        if value < 0:
            return False
        source += count
        size = _DIGITS_BYTES[group]
        _big_bytes(out, value ^ flip, size)
        out += size
    source = point + 1
    left = scale
    while left:
        group = min(left, 9)
        left -= group
        value = _digits(source, group)
        if value < 0:
            return False
        source += group
        size = _DIGITS_BYTES[group]
        _big_bytes(out, value ^ flip, size)
        out += size
    store_i8(first, load_u8(first) ^ 0x80)
    return True


@inlined
def _fraction(out: int, us: int, size: int) -> None:
    if size == 3:
        _big_bytes(out, us, 3)
    elif size == 2:
        _big_bytes(out, us // 100, 2)
    elif size == 1:
        _big_bytes(out, us // 10000, 1)


@inlined
def _clock(source: int, length: int) -> int:
    """Hour, minute and second in 5, 6 and 6 bits."""
    if length < 7:
        return 0
    return load_u8(source + 4) << 12 | load_u8(source + 5) << 6 | load_u8(source + 6)


@inlined
def _is_moment(source: int, length: int) -> bool:
    """Whether the bytes are a date and time whose parts fit into an image; 0 bytes are the zero date."""
    if length == 0:
        return True
    if length != 4 and length != 7 and length != 11:
        return False
    if load_u16(source) > 9999 or load_u8(source + 2) > 12 or load_u8(source + 3) > 31:
        return False
    if length > 4 and (load_u8(source + 4) > 23 or load_u8(source + 5) > 59 or load_u8(source + 6) > 59):
        return False
    return length < 11 or load_u32(source + 7) < 1000000


@inlined
def date(source: int, length: int, out: int) -> bool:
    """A DATE; False where it is none."""
    if not _is_moment(source, length):
        return False
    packed = load_u16(source) << 9 | load_u8(source + 2) << 5 | load_u8(source + 3) if length else 0
    store_i16(out, packed)
    store_i8(out + 2, packed >> 16)
    return True


@inlined
def datetime(source: int, length: int, fraction: int, out: int) -> bool:
    """A DATETIME with *fraction* bytes of a fraction; False where it is none."""
    if not _is_moment(source, length):
        return False
    packed = 1 << 39
    if length:
        months = 13 * load_u16(source) + load_u8(source + 2)
        packed |= months << 22 | load_u8(source + 3) << 17 | _clock(source, length)
    _big_bytes(out, packed, 5)
    _fraction(out + 5, load_u32(source + 7) if length == 11 else 0, fraction)
    return True


@inlined
def timestamp(source: int, length: int, fraction: int, out: int) -> bool:
    """A TIMESTAMP in UTC with *fraction* bytes of a fraction; False where it is none."""
    if not _is_moment(source, length):
        return False
    seconds = 0
    if length:
        clock = _clock(source, length)
        seconds = (clock >> 12) * 3600 + ((clock >> 6) & 63) * 60 + (clock & 63)
        seconds += 86400 * days(load_u16(source), load_u8(source + 2), load_u8(source + 3))
        if seconds < 0 or seconds > 0xFFFFFFFF:
            return False
    _big_bytes(out, seconds, 4)
    _fraction(out + 4, load_u32(source + 7) if length == 11 else 0, fraction)
    return True


@inlined
def time(source: int, length: int, fraction: int, out: int) -> bool:
    """A TIME with *fraction* bytes of a fraction; False where it is none."""
    if length != 0 and length != 8 and length != 12:
        return False
    size = 3 + fraction
    value = 0
    if length:
        hours = 24 * load_u32(source + 1) + load_u8(source + 5)
        if hours > 838 or load_u8(source + 6) > 59 or load_u8(source + 7) > 59:
            return False
        us = load_u32(source + 8) if length == 12 else 0
        if us > 999999:
            return False
        value = (hours << 12 | load_u8(source + 6) << 6 | load_u8(source + 7)) << (8 * fraction)
        if fraction:
            value += us if fraction == 3 else us // (10000 if fraction == 1 else 100)
        if load_u8(source):
            value = -value
    _big_bytes(out, value + (1 << (8 * size - 1)), size)
    return True
