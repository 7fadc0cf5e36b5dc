"""Little-endian numbers in arrays of bytes, copies of many values, and CRC32. Copies and loads are single machine instructions.

CRC32 goes eight bytes a step (the slicing of Kounavis and Berry, https://doi.org/10.1109/TC.2008.85).
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from llvmlite import ir
from numba import extending, types

from historian.encoding.kernels.jit import kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = [
    "copy_bytes",
    "crc32",
    "gather",
    "load",
    "scatter",
    "signed_values",
    "store",
    "trim_wide",
    "wide_values",
    "with_prefix",
]


# Its own type knows nothing of what the function becomes.
_intrinsic: Any = extending.intrinsic

_BYTE = ir.IntType(8).as_pointer()


def _copy(_context: Any, target: Any, source: Any, count: Any) -> Any:
    def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        copy = builder.module.declare_intrinsic("llvm.memcpy", [_BYTE, _BYTE, ir.IntType(64)])
        ends = [builder.inttoptr(argument, _BYTE) for argument in arguments[:2]]
        builder.call(copy, [*ends, arguments[2], ir.Constant(ir.IntType(1), 0)])
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), generate


def _load(_context: Any, address: Any) -> Any:
    def generate(_target: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        pointer = builder.inttoptr(arguments[0], ir.IntType(32).as_pointer())
        return builder.zext(builder.load(pointer, align=1), ir.IntType(64))

    return types.int64(types.int64), generate


_copy_at: Callable[[int, int, int], None] = _intrinsic(_copy)
_load_at: Callable[[int], int] = _intrinsic(_load)


@kernel
def copy_bytes(out, target, data, source, count):
    """Copies *count* bytes of *data* from *source* to *target* of *out*."""
    _copy_at(np.int64(out.ctypes.data) + target, np.int64(data.ctypes.data) + source, count)


@kernel
def _load_u32(data, at):
    """The unsigned number of four bytes at *at*."""
    return _load_at(np.int64(data.ctypes.data) + at)


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
        low, high = _load_u32(data, at) ^ register, _load_u32(data, at + 4)
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
