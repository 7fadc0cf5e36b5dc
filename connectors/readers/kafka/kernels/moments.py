"""Dates and times that messages have as text: days and microseconds."""

from __future__ import annotations

from connectors.readers.kafka.kernels import layout as at
from connectors.readers.kafka.kernels.digits import digits
from connectors.readers.kafka.kernels.jit import inlined, kernel
from connectors.readers.kafka.kernels.numbers import word_of
from connectors.readers.kafka.kernels.tokens import length_of, start_of
from connectors.readers.machine.memory import load_u8, shift_right, store_i8, store_i32, store_i64

__all__ = ["dates", "moments", "times"]

_MINUS, _COLON, _POINT, _BLANK, _T, _Z = 45, 58, 46, 32, 84, 90
_DAY_US = 86400000000
_POWERS = (1, 10, 100, 1000, 10000, 100000, 1000000)
_NONE = -0x8000000000000000


@inlined
def _day(position: int) -> int:
    """The days since 1970 of a date of ten characters from year 1 on; _NONE where it is none."""
    year, month, day = digits(position, 4), digits(position + 5, 2), digits(position + 8, 2)
    if load_u8(position + 4) != _MINUS or load_u8(position + 7) != _MINUS:
        return _NONE
    if year < 1 or month < 1 or month > 12 or day < 1 or day > 31:
        return _NONE
    is_leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    if day > 30 and (month == 4 or month == 6 or month == 9 or month == 11):
        return _NONE
    if month == 2 and day > (29 if is_leap else 28):
        return _NONE
    # Years begin with March, so that the leap day is the last one.
    moved = year - (1 if month < 3 else 0)
    century = moved // 100
    of_year = (153 * (month + (9 if month < 3 else -3)) + 2) // 5 + day - 1
    return century * 146097 // 4 + (moved - 100 * century) * 1461 // 4 + of_year - 719468


@inlined
def _fraction_us(position: int, end: int) -> int:
    """The microseconds of what stands from the point on, -1 where it is none, or tells a fraction of one."""
    if position == end:
        return 0
    count = end - position - 1
    if load_u8(position) != _POINT or count < 1 or count > 18:
        return -1
    found = digits(position + 1, count)
    if found < 0 or count <= 6:
        return found if found < 0 else found * _POWERS[6 - count]
    return digits(position + 1, 6) if digits(position + 7, count - 6) == 0 else -1


@inlined
def _clock_us(position: int, hour_digits: int, end: int) -> int:
    """The microseconds of HH:MM:SS and a fraction; -1 where they are none."""
    minutes = position + hour_digits
    if end - minutes < 6 or load_u8(minutes) != _COLON or load_u8(minutes + 3) != _COLON:
        return -1
    hour, minute, second = digits(position, hour_digits), digits(minutes + 1, 2), digits(minutes + 4, 2)
    fraction = _fraction_us(minutes + 6, end)
    if hour < 0 or minute < 0 or minute > 59 or second < 0 or second > 59 or fraction < 0:
        return -1
    return (hour * 3600 + minute * 60 + second) * 1000000 + fraction


@kernel
def moments(
    buffer: int,
    images: int,
    columns: int,
    column: int,
    rows: int,
    count: int,
    out: int,
    status: int,
    zulu: int,
) -> int:
    """Microseconds since 1970 of texts of a date and a time, with a Z behind where *zulu*; how many are misfits."""  # fmt: skip
    misfits = 0
    for row in range(count):
        word = word_of(images, columns, column, rows, row)
        kind = shift_right(word, at.KIND_AT)
        value = 0
        found = at.NO_VALUE
        if kind > at.NULL:
            found = at.MISFIT
            length = length_of(word)
            position = buffer + start_of(word)
            if kind == at.TEXT and length >= 19:
                end = position + length
                middle = load_u8(position + 10)
                valid = middle == _T or middle == _BLANK
                if zulu:
                    end -= 1
                    valid = valid and load_u8(end) == _Z
                day, clock_us = _day(position), _clock_us(position + 11, 2, end)
                if valid and day != _NONE and 0 <= clock_us < _DAY_US:
                    value = day * _DAY_US + clock_us
                    found = at.HAS_VALUE
            if found == at.MISFIT:
                misfits += 1
        store_i64(out + 8 * row, value)
        store_i8(status + row, found)
    return misfits


@kernel
def dates(buffer: int, images: int, columns: int, column: int, rows: int, count: int, out: int, status: int) -> int:
    """Days since 1970, four bytes each, of texts of a date; how many are misfits."""
    misfits = 0
    for row in range(count):
        word = word_of(images, columns, column, rows, row)
        kind = shift_right(word, at.KIND_AT)
        value = 0
        found = at.NO_VALUE
        if kind > at.NULL:
            found = at.MISFIT
            if kind == at.TEXT and length_of(word) == 10:
                value = _day(buffer + start_of(word))
                found = at.MISFIT if value == _NONE else at.HAS_VALUE
            if found == at.MISFIT:
                misfits += 1
                value = 0
        store_i32(out + 4 * row, value)
        store_i8(status + row, found)
    return misfits


@kernel
def times(buffer: int, images: int, columns: int, column: int, rows: int, count: int, out: int, status: int) -> int:
    """Microseconds of texts of a TIME; how many are misfits."""
    misfits = 0
    for row in range(count):
        word = word_of(images, columns, column, rows, row)
        kind = shift_right(word, at.KIND_AT)
        value = 0
        found = at.NO_VALUE
        if kind > at.NULL:
            found = at.MISFIT
            position = buffer + start_of(word)
            end = position + length_of(word)
            if kind == at.TEXT and end > position:
                negative = load_u8(position) == _MINUS
                if negative:
                    position += 1
                hours = 3 if end - position > 3 and load_u8(position + 3) == _COLON else 2
                value = _clock_us(position, hours, end)
                if value >= 0:
                    found = at.HAS_VALUE
                    value = -value if negative else value
            if found == at.MISFIT:
                misfits += 1
                value = 0
        store_i64(out + 8 * row, value)
        store_i8(status + row, found)
    return misfits
