"""Digits as numbers."""

from __future__ import annotations

from connectors.readers.kafka.kernels.jit import inlined, kernel
from connectors.readers.machine.memory import load_i64, load_u8, shift_right

__all__ = ["NO_INTEGER", "digits", "integer"]

NO_INTEGER = -0x8000000000000000
"""What stands for a text that is no integer, or one of which it takes more to tell."""

_MINUS, _ZERO = 45, 48
_ZEROS = 0x3030303030303030
_SIXES = 0x0606060606060606
_UPPER_HALVES = -0x0F0F0F0F0F0F0F10
_LAST = 223372036854775807  # of 19 digits that begin with 9


@inlined
def _eight(position: int) -> int:
    """The number of eight digits; -1 where one is none."""
    word = load_i64(position) ^ _ZEROS
    # A byte above 9 has a bit of its upper half, or gets one.
    if (word | (word + _SIXES)) & _UPPER_HALVES:
        return -1
    # Neighbours become one number, of two, four and then eight digits.
    word = (word * 10 + shift_right(word, 8)) & 0x00FF00FF00FF00FF
    word = (word * 100 + shift_right(word, 16)) & 0x0000FFFF0000FFFF
    return (word * 10000 + shift_right(word, 32)) & 0xFFFFFFFF


@inlined
def digits(position: int, count: int) -> int:
    """The number that *count* digits, at most 18, stand for; -1 where one is none."""
    found = 0
    while count >= 8:
        part = _eight(position)
        if part < 0:
            return -1
        found = found * 100000000 + part
        position += 8
        count -= 8
    while count > 0:
        byte = load_u8(position) - _ZERO
        if byte < 0 or byte > 9:
            return -1
        found = found * 10 + byte
        position += 1
        count -= 1
    return found


@kernel
def integer(position: int, length: int) -> int:
    """The integer of *length* bytes; NO_INTEGER where they are none, have too many digits, or are a zero with a sign."""
    negative = length > 0 and load_u8(position) == _MINUS
    if negative:
        position += 1
        length -= 1
    if length == 0 or length > 19:
        return NO_INTEGER
    if length == 19:
        first, rest = load_u8(position) - _ZERO, digits(position + 1, 18)
        if rest < 0 or first < 0 or first > 9 or (first == 9 and rest > _LAST):
            return NO_INTEGER
        found = first * 1000000000000000000 + rest
    else:
        found = digits(position, length)
        if found < 0:
            return NO_INTEGER
    if negative:
        return -found if found else NO_INTEGER
    return found
