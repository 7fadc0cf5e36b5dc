"""DECIMAL of row images: groups of nine digits in four big-endian bytes, shorter groups at both ends.

Format: MySQL's ``decimal2bin`` (strings/decimal.c). The sign bit is
inverted; a negative number has all bytes inverted.
"""

from __future__ import annotations

from connectors.readers.binlog.kernels.machine.jit import inlined, kernel
from connectors.readers.machine.memory import load_i64, load_u8, shift_right, store_i64, swap64

__all__ = ["decimal_18", "decimal_38"]

_POWERS = (1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000, 1000000000)


@inlined
def _big(at: int, size: int) -> int:
    """An unsigned big-endian number of 1 to 4 bytes, of the word that ends with it: something stands before any image."""
    return swap64(load_i64(at + size - 8)) & ((1 << (8 * size)) - 1)


@inlined
def decimal_18(at: int, meta: int, out: int) -> bool:
    """Stores a DECIMAL of up to 18 digits as 128 bits; False where a group has more digits than it may."""
    lead = meta & 0xFF
    groups = (meta >> 8) & 0xFF
    tail = (meta >> 16) & 0xFF
    negative = load_u8(at) < 0x80
    flip = -1 if negative else 0
    # The sign bit is set for positive numbers; taking it off the first group is one subtraction.
    first = lead or (4 if groups else tail)
    sign = 1 << (8 * first - 1)
    value = 0
    valid = True
    if lead:
        value = ((_big(at, lead) ^ flip) & ((1 << (8 * lead)) - 1)) ^ sign
        valid = value < _POWERS[meta >> 32]
        sign = 0
        at += lead
    for _ in range(groups):
        part = ((_big(at, 4) ^ flip) & 0xFFFFFFFF) ^ sign
        valid &= part < 1000000000
        value = value * 1000000000 + part
        sign = 0
        at += 4
    if tail:
        limit = _POWERS[(meta >> 24) & 0xFF]
        part = ((_big(at, tail) ^ flip) & ((1 << (8 * tail)) - 1)) ^ sign
        valid &= part < limit
        value = value * limit + part
    if negative:
        value = -value
    store_i64(out, value)
    store_i64(out + 8, value >> 63)
    return valid


@kernel
def decimal_38(at: int, meta: int, out: int) -> bool:
    """Stores a DECIMAL of up to 38 digits as 128 bits; False where a group has more digits than it may."""
    lead = meta & 0xFF
    groups = (meta >> 8) & 0xFF
    tail = (meta >> 16) & 0xFF
    negative = load_u8(at) < 0x80
    flip = -1 if negative else 0
    low = 0
    high = 0
    valid = True
    first = True
    for index in range(groups + 2):
        size = lead if index == 0 else (tail if index > groups else 4)
        if size == 0:
            continue
        part = (_big(at, size) ^ flip) & ((1 << (8 * size)) - 1)
        if first:
            part ^= 1 << (8 * size - 1)
            first = False
        times = _POWERS[(meta >> 24) & 0xFF] if index > groups else 1000000000
        valid &= part < (_POWERS[meta >> 32] if index == 0 else times)
        lower = (low & 0xFFFFFFFF) * times + part
        upper = shift_right(low, 32) * times + (lower >> 32)
        low = (upper << 32) | (lower & 0xFFFFFFFF)
        high = high * times + (upper >> 32)
        at += size
    if negative:
        low = -low
        high = ~high + (1 if low == 0 else 0)
    store_i64(out, low)
    store_i64(out + 8, high)
    return valid
