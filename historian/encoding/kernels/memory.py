"""Little-endian numbers in arrays of bytes, copies of many values, and CRC32.

CRC32 goes eight bytes a step (the slicing of Kounavis and Berry, https://doi.org/10.1109/TC.2008.85).
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

import numpy as np

from historian.encoding.kernels.jit import kernel
from historian.encoding.kernels.machine import copy_bytes, load_u32

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["crc32", "gather", "load", "scatter", "signed_values", "store", "trim_wide", "wide_values", "with_prefix"]


def _tables() -> NDArray[np.int64]:
    """Table k holds the remainder of each byte followed by k zero bytes."""
    tables = np.zeros((8, 256), np.int64)
    for byte in range(256):
        # zlib inverts the register before and after; with a register of 0 in front the plain remainder is left.
        tables[0, byte] = zlib.crc32(bytes([byte]), 0xFFFFFFFF) ^ 0xFFFFFFFF
    for k in range(1, 8):
        before = tables[k - 1]
        tables[k] = (before >> 8) ^ tables[0][before & 0xFF]
    return tables


_TABLES = _tables()


@kernel
def load(data, at, width):
    """The unsigned number of *width* bytes at *at*, up to 7 bytes; of 8 bytes, the signed one."""
    if width == 1:
        return np.int64(data[at])
    number = np.int64(0)
    for k in range(width):
        number |= np.int64(data[at + k]) << (8 * k)
    return number


@kernel
def store(data, at, number, width):
    """Writes the lowest *width* bytes of *number* at *at*."""
    if width == 1:
        data[at] = number & 0xFF
        return
    for k in range(width):
        data[at + k] = (number >> (8 * k)) & 0xFF


@kernel
def crc32(data, at, end):
    """What :func:`zlib.crc32` gives."""
    register = np.int64(0xFFFFFFFF)
    while end - at >= 8:
        low, high = load_u32(data, at) ^ register, load_u32(data, at + 4)
        register = (
            _TABLES[7, low & 0xFF]
            ^ _TABLES[6, (low >> 8) & 0xFF]
            ^ _TABLES[5, (low >> 16) & 0xFF]
            ^ _TABLES[4, (low >> 24) & 0xFF]
            ^ _TABLES[3, high & 0xFF]
            ^ _TABLES[2, (high >> 8) & 0xFF]
            ^ _TABLES[1, (high >> 16) & 0xFF]
            ^ _TABLES[0, (high >> 24) & 0xFF]
        )
        at += 8
    while at < end:
        register = _TABLES[0, (register ^ np.int64(data[at])) & 0xFF] ^ (register >> 8)
        at += 1
    return register ^ 0xFFFFFFFF


@kernel
def scatter(out, places, data, starts, lengths):
    """Copies value i to ``places[i]`` of *out*."""
    for i in range(len(starts)):
        # Most values have one of these widths, and a copy of a known one is an instruction.
        if lengths[i] == 8:
            copy_bytes(out, places[i], data, starts[i], 8)
        elif lengths[i] == 4:
            copy_bytes(out, places[i], data, starts[i], 4)
        else:
            copy_bytes(out, places[i], data, starts[i], lengths[i])


@kernel
def gather(data, starts, lengths, out):
    """Copies all values to *out*, one behind the other."""
    target = 0
    for i in range(len(starts)):
        copy_bytes(out, target, data, starts[i], lengths[i])
        target += lengths[i]


@kernel
def with_prefix(data, starts, lengths, valid, out, bounds):
    """Copies valid values to *out* from ``bounds[i]``, each behind its length as four bytes."""
    for i in range(len(starts)):
        if valid[i]:
            store(out, bounds[i], lengths[i], 4)
            copy_bytes(out, bounds[i] + 4, data, starts[i], lengths[i])


@kernel
def signed_values(data, starts, lengths, out):
    """Each value of up to 8 bytes as a signed number; one of no bytes is 0."""
    for i in range(len(starts)):
        length = lengths[i]
        number = load(data, starts[i], length)
        bits = 64 - 8 * length
        out[i] = (number << bits) >> bits if length else 0


@kernel
def wide_values(data, starts, lengths, out):
    """Each value of up to 16 bytes, as a signed number of 16 bytes; one of no bytes is 0."""
    for i in range(len(starts)):
        length = lengths[i]
        sign = 0xFF if length and data[starts[i] + length - 1] & 0x80 else 0
        for k in range(length):
            out[i, k] = data[starts[i] + k]
        for k in range(length, 16):
            out[i, k] = sign


@kernel
def trim_wide(data, valid, scale, out, lengths):
    """Writes *scale*, then each signed number of 16 bytes, to 17 bytes of *out* a number; ``lengths`` says how many matter.

    They end behind the lowest bytes that the number and its sign need.
    """
    for i in range(len(valid)):
        at, used = 17 * i + 1, 16
        out[at - 1] = scale
        copy_bytes(out, at, data, 16 * i, 16)
        sign = 0xFF if data[16 * i + 15] & 0x80 else 0
        while used > 1 and out[at + used - 1] == sign and (out[at + used - 2] ^ sign) & 0x80 == 0:
            used -= 1
        lengths[i] = used + 1 if valid[i] else 0
