"""Numbers of messages as the values of Arrow's buffers: of each row one, and a byte that says what it is (see ``layout``)."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from connectors.readers.kafka.kernels import layout as at
from connectors.readers.kafka.kernels.digits import NO_INTEGER, digits, integer
from connectors.readers.kafka.kernels.jit import inlined, kernel
from connectors.readers.kafka.kernels.tokens import length_of, start_of
from connectors.readers.machine.memory import (
    load_i64,
    load_u8,
    shift_right,
    store_i8,
    store_i16,
    store_i32,
    store_i64,
)

__all__ = ["base64_decimals", "booleans", "decimals", "doubles", "fits_digits", "integers", "store_number", "word_of"]

_POWERS = tuple(10**power for power in range(19))
_FLOATS = tuple(float(10**power) for power in range(23))
_MINUS, _PLUS, _POINT, _EQUALS = 45, 43, 46, 61
_EXACT = 1 << 53
_MOST = 1 << 62


@inlined
def word_of(images: int, columns: int, column: int, rows: int, row: int) -> int:
    """The value of a row: *rows* is the address of a word a row, the number of its image of *columns* words."""
    return load_i64(images + 8 * (load_i64(rows + 8 * row) * columns + column))


@inlined
def store_number(out: int, width: int, row: int, value: int, wraps: int) -> None:
    """Stores an integer of *width* bytes as the value of *row*; *wraps*: see :func:`integers`."""
    if width == 4:
        store_i32(out + 4 * row, value)
    elif width == 8:
        store_i64(out + 8 * row, value)
    elif width == 2:
        store_i16(out + 2 * row, value)
    elif width == 1:
        store_i8(out + row, value)
    else:
        store_i64(out + 16 * row, value)
        store_i64(out + 16 * row + 8, 0 if wraps else value >> 63)


@inlined
def fits_digits(value: int, precision: int) -> bool:
    """Whether a number without its point has at most *precision* digits; above 18 none of 8 bytes has more."""
    # The least number has no positive one.
    return precision > 18 or -_POWERS[min(precision, 18)] < value < _POWERS[min(precision, 18)]


@kernel
def integers(
    buffer: int,
    images: int,
    columns: int,
    column: int,
    rows: int,
    count: int,
    out: int,
    status: int,
    width: int,
    low: int,
    high: int,
    multiplier: int,
    divisor: int,
    texts: int,
    truths: int,
    wraps: int,
) -> int:
    """Integers of *width* bytes between *low* and *high*; how many are misfits.

    Args:
        multiplier, divisor: of the value; one that is no multiple of the divisor is a misfit.
        texts: texts of digits are integers too; *truths*: true and false are 1 and 0.
        wraps: of 16 bytes; a negative number stands for one that is 2^64 greater.
    """  # fmt: skip
    misfits = 0
    for row in range(count):
        word = word_of(images, columns, column, rows, row)
        kind = shift_right(word, at.KIND_AT)
        value = 0
        found = at.NO_VALUE
        if kind > at.NULL:
            value = NO_INTEGER
            if kind == at.INTEGER or (texts and kind == at.TEXT):
                value = integer(buffer + start_of(word), length_of(word))
            elif truths and kind <= at.TRUE:
                value = kind - at.FALSE
            if value != NO_INTEGER and multiplier != 1:
                value = value * multiplier if -_MOST // multiplier < value < _MOST // multiplier else NO_INTEGER
            if value != NO_INTEGER and divisor != 1:
                value = value // divisor if value % divisor == 0 else NO_INTEGER
            found = at.HAS_VALUE
            if value == NO_INTEGER or value < low or value > high:
                found = at.MISFIT
                misfits += 1
                value = 0
        store_number(out, width, row, value, wraps)
        store_i8(status + row, found)
    return misfits


@kernel
def booleans(
    buffer: int,
    images: int,
    columns: int,
    column: int,
    rows: int,
    count: int,
    out: int,
    status: int,
    numbers: int,
) -> int:
    """True and false as bytes, and with *numbers* 1 and 0 as numbers or texts; how many are misfits."""  # fmt: skip
    misfits = 0
    for row in range(count):
        word = word_of(images, columns, column, rows, row)
        kind = shift_right(word, at.KIND_AT)
        value = 0
        found = at.NO_VALUE
        if kind > at.NULL:
            found = at.HAS_VALUE
            if kind <= at.TRUE:
                value = kind - at.FALSE
            elif numbers and (kind == at.INTEGER or kind == at.TEXT) and length_of(word) == 1:
                value = load_u8(buffer + start_of(word)) - 48
                if value < 0 or value > 1:
                    value = 0
                    found = at.MISFIT
                    misfits += 1
            else:
                found = at.MISFIT
                misfits += 1
        store_i8(out + row, value)
        store_i8(status + row, found)
    return misfits


@inlined
def _scaled(position: int, length: int, scale: int) -> int:
    """A number of at most 18 digits with *scale* of them behind the point; NO_INTEGER where it is none or has more of them."""
    negative = load_u8(position) == _MINUS
    if negative:
        position += 1
        length -= 1
    whole = 0
    while whole < length and load_u8(position + whole) != _POINT:
        whole += 1
    fraction = length - whole - 1 if whole < length else 0
    if whole == 0 or fraction > scale or whole + scale > 18 or (whole < length and fraction == 0):
        return NO_INTEGER
    found = digits(position, whole)
    behind = digits(position + whole + 1, fraction) if fraction else 0
    if found < 0 or behind < 0:
        return NO_INTEGER
    scaled: int = found * _POWERS[scale] + behind * _POWERS[scale - fraction]
    return -scaled if negative else scaled


@kernel
def decimals(
    buffer: int,
    images: int,
    columns: int,
    column: int,
    rows: int,
    count: int,
    out: int,
    status: int,
    precision: int,
    scale: int,
) -> int:
    """DECIMALs of texts and of numbers, of up to 18 digits, 16 bytes each; how many are misfits."""  # fmt: skip
    misfits = 0
    for row in range(count):
        word = word_of(images, columns, column, rows, row)
        kind = shift_right(word, at.KIND_AT)
        value = 0
        found = at.NO_VALUE
        if kind > at.NULL:
            value = NO_INTEGER
            length = length_of(word)
            # What Python reads by binary numbers is exact up to 15 digits.
            if (kind == at.TEXT and length) or ((kind == at.INTEGER or kind == at.NUMBER) and length <= 16):
                value = _scaled(buffer + start_of(word), length, scale)
            found = at.HAS_VALUE
            if value == NO_INTEGER or (precision < 19 and abs(value) >= _POWERS[min(precision, 18)]):
                found = at.MISFIT
                misfits += 1
                value = 0
        store_number(out, 16, row, value, 0)
        store_i8(status + row, found)
    return misfits


@kernel
def base64_decimals(
    buffer: int,
    images: int,
    columns: int,
    column: int,
    rows: int,
    count: int,
    out: int,
    status: int,
    precision: int,
    values: int,
) -> int:
    """DECIMALs whose digits without a point are a number of up to 8 bytes in base64, 16 bytes each; how many are misfits.

    Args:
        values: address of what each character of base64 stands for, by its byte; 255 of another one.
    """  # fmt: skip
    misfits = 0
    for row in range(count):
        word = word_of(images, columns, column, rows, row)
        kind = shift_right(word, at.KIND_AT)
        value = 0
        found = at.NO_VALUE
        if kind > at.NULL:
            found = at.MISFIT
            length = length_of(word)
            if kind == at.TEXT and 4 <= length <= 12 and length & 3 == 0:
                position = buffer + start_of(word)
                padding = 0
                if load_u8(position + length - 1) == _EQUALS:
                    padding = 2 if load_u8(position + length - 2) == _EQUALS else 1
                size = (length >> 2) * 3 - padding
                bits = 0
                wrong = 0
                # The last characters have bits that belong to no byte.
                for index in range(length - padding):
                    six = load_u8(values + load_u8(position + index))
                    wrong |= six
                    if index == length - padding - 1 and padding:
                        bits = (bits << (6 - 2 * padding)) | (six >> (2 * padding))
                    else:
                        bits = bits << 6 | six
                if wrong < 64 and size <= 8:
                    others = 64 - 8 * size
                    value = (bits << others) >> others
                    if fits_digits(value, precision):
                        found = at.HAS_VALUE
            if found == at.MISFIT:
                misfits += 1
                value = 0
        store_number(out, 16, row, value, 0)
        store_i8(status + row, found)
    return misfits


def _store_double(_context: Any, address: Any, value: Any) -> Any:
    def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        pointer = builder.inttoptr(arguments[0], ir.DoubleType().as_pointer())
        builder.store(arguments[1], pointer, align=1)
        return context.get_dummy_value()

    return types.void(types.int64, types.float64), generate


_make: Any = intrinsic
_put_double = _make(_store_double)


@inlined
def _signed_digits(position: int, count: int) -> int:
    negative = load_u8(position) == _MINUS
    if negative or load_u8(position) == _PLUS:
        position += 1
        count -= 1
    found = digits(position, count)
    return -found if negative else found


@kernel
def doubles(
    buffer: int,
    images: int,
    columns: int,
    column: int,
    rows: int,
    count: int,
    out: int,
    status: int,
    texts: int,
    most: int,
) -> int:
    """Doubles of numbers, and with *texts* of texts that are numbers; how many are misfits or LONG_NUMBERs.

    Args:
        most: no integer is further from 0.

    A number of up to 15 digits times or by a power of ten that a double holds exactly is rounded once, so it is the nearest one.
    """  # fmt: skip
    misfits = 0
    for row in range(count):
        word = word_of(images, columns, column, rows, row)
        kind = shift_right(word, at.KIND_AT)
        found = at.NO_VALUE
        result = 0.0
        if kind > at.NULL:
            found = at.MISFIT
            if kind == at.INTEGER or kind == at.NUMBER or (texts and kind == at.TEXT):
                position = buffer + start_of(word)
                end = position + length_of(word)
                negative = load_u8(position) == _MINUS
                if negative:
                    position += 1
                mantissa = 0
                used = 0
                power = 0
                begin = position
                byte = load_u8(position)
                while position < end and 48 <= byte <= 57:
                    if used or byte != 48:
                        used += 1
                    if used < 18:
                        mantissa = mantissa * 10 + byte - 48
                    position += 1
                    byte = load_u8(position)
                valid = position > begin
                if position < end and byte == _POINT:
                    position += 1
                    point = position
                    byte = load_u8(position)
                    while position < end and 48 <= byte <= 57:
                        if used or byte != 48:
                            used += 1
                        if used < 18:
                            mantissa = mantissa * 10 + byte - 48
                        position += 1
                        byte = load_u8(position)
                    valid = valid and position > point
                    power = point - position
                if position < end and (byte == 101 or byte == 69):
                    size = end - position - 1
                    # A message's number has digits here; a text may have anything.
                    if 0 < size < 4 and (kind != at.TEXT):
                        power += _signed_digits(position + 1, size)
                        position = end
                if valid and position == end:
                    if used < 16 and mantissa < _EXACT and -22 <= power <= 22:
                        result = float(mantissa)
                        result = result * _FLOATS[power] if power >= 0 else result / _FLOATS[-power]
                        if negative:
                            result = -result
                        found = at.HAS_VALUE
                        if kind == at.INTEGER and (mantissa > most or (negative and mantissa == 0)):
                            found = at.MISFIT
                    elif kind != at.INTEGER:
                        found = at.LONG_NUMBER
            if found != at.HAS_VALUE:
                misfits += 1
        _put_double(out + 8 * row, result)
        store_i8(status + row, found)
    return misfits
