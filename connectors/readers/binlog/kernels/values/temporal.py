"""Dates and times of row images as days and microseconds. Formats: MySQL's my_time.cc, ``my_*_packed_from_binary``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from connectors.readers.binlog.kernels.machine.jit import inlined, kernel
from connectors.readers.binlog.kernels.values.layout import NO_DATE_32, NO_DATE_64
from connectors.readers.machine.memory import (
    load_i32,
    load_i64,
    load_u8,
    load_u16,
    load_u32,
    shift_right,
    swap64,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["MONTHS", "big_word", "date_days", "datetime_us", "days", "little_word", "time_us", "timestamp_us"]


def _months() -> NDArray[np.int32]:
    index = np.arange(1 << 17)
    year, month = index // 13, index % 13
    months = (12 * (year - 1970) + month - 1).astype("datetime64[M]")
    first = months.astype("datetime64[D]").astype(np.int64)
    length = (months + 1).astype("datetime64[D]").astype(np.int64) - first
    return np.where((year > 0) & (month > 0), (first - 1) * 32 + length, 0).astype(np.int32)


MONTHS = _months()
"""By 13 * year + month the number of its days and, from bit 5 on, of those from 1970-01-01 to the last one before it.

Months that the calendar does not have (0, and all of year 0) have no days.
"""


@kernel
def big_word(at: int, size: int) -> int:
    """An unsigned big-endian number of 0 to 8 bytes, as a word."""
    if size == 4:
        return shift_right(swap64(load_u32(at)), 32)
    value = 0
    for index in range(size):
        value = (value << 8) | load_u8(at + index)
    return value


@kernel
def little_word(at: int, size: int) -> int:
    """A little-endian number of 0 to 8 bytes, as a word."""
    value = 0
    for index in range(size):
        value |= load_u8(at + index) << (8 * index)
    return value


@inlined
def days(year: int, month: int, day: int) -> int:
    """Days since 1970-01-01; NO_DATE_32 where the calendar has no such day (zero parts, year 0, 31 April)."""
    if year == 0 or month == 0 or month > 12 or day == 0:
        return NO_DATE_32
    if day > 28:
        if month == 2:
            leap = (year & 3) == 0 and (year % 100 != 0 or year % 400 == 0)
            if day > (29 if leap else 28):
                return NO_DATE_32
        elif day > 30 + ((month + (month >> 3)) & 1):
            return NO_DATE_32
    # Years begin in March, so that the leap day is the last one.
    if month > 2:
        month -= 3
    else:
        month += 9
        year -= 1
    century = year // 100
    return 365 * year + (year >> 2) - century + (century >> 2) + (153 * month + 2) // 5 + day - 719469


@kernel
def date_days(at: int) -> int:
    """DATE: three little-endian bytes, day 5 bits, month 4, year 15."""
    packed = load_u16(at) | (load_u8(at + 2) << 16)
    return days(packed >> 9, (packed >> 5) & 15, packed & 31)


@inlined
def _fraction_us(word: int, size: int) -> int:
    """Microseconds of a fraction, the low bytes of *word*: 1 byte hundredths, 2 bytes ten-thousandths, 3 bytes millionths."""
    scale = 10000 if size == 1 else 100 if size == 2 else 1
    return (word & ((1 << (8 * size)) - 1)) * scale


@inlined
def datetime_us(at: int, fraction: int, months: int) -> int:
    """DATETIME2: 40 bits big-endian (sign, year * 13 + month, day, hour, minute, second), then *fraction* bytes.

    *months* is the address of MONTHS. Of the word that ends with the value: something stands before any image.
    """
    word = swap64(load_i64(at + fraction - 3))
    packed = shift_right(word, 8 * fraction)
    month = load_i32(months + 4 * ((packed >> 22) & 0x1FFFF))
    day = (packed >> 17) & 31
    if day == 0 or day > month & 31:
        return NO_DATE_64
    seconds = ((packed >> 12) & 31) * 3600 + ((packed >> 6) & 63) * 60 + (packed & 63)
    return (((month >> 5) + day) * 86400 + seconds) * 1000000 + _fraction_us(word, fraction)


@inlined
def timestamp_us(at: int, fraction: int) -> int:
    """TIMESTAMP2: seconds since 1970, 4 bytes big-endian, then *fraction* bytes; all zero is the zero date."""
    word = swap64(load_i64(at + fraction - 4))
    us = (shift_right(word, 8 * fraction) & 0xFFFFFFFF) * 1000000 + _fraction_us(word, fraction)
    return us or NO_DATE_64


@kernel
def time_us(at: int, fraction: int) -> int:
    """TIME2: 24 bits big-endian (sign, unused, hour 10, minute 6, second 6) and *fraction*, offset by half a range."""
    size = 3 + fraction
    packed = big_word(at, size) - (1 << (8 * size - 1))
    negative = packed < 0
    if negative:
        packed = -packed
    whole = packed >> (8 * fraction)
    part = packed & ((1 << (8 * fraction)) - 1)
    if fraction == 1:
        part *= 10000
    elif fraction == 2:
        part *= 100
    us = (((whole >> 12) & 1023) * 3600 + ((whole >> 6) & 63) * 60 + (whole & 63)) * 1000000 + part
    return -us if negative else us
