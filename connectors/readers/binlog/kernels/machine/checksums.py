"""CRC32 of events, sixteen bytes a step (the slicing of Kounavis and Berry, https://doi.org/10.1109/TC.2008.85)."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

import numpy as np

from connectors.readers.binlog.kernels.machine.folding import FOLD_FROM_BYTES, fold, fold_wide
from connectors.readers.binlog.kernels.machine.jit import kernel
from connectors.readers.machine.memory import load_i64, load_u8, load_u32, shift_right

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["CRC_TABLES", "first_wrong_checksum", "first_wrong_folded"]


def _tables() -> NDArray[np.uint32]:
    """Table k holds the remainder of each byte followed by k zero bytes."""
    tables = np.zeros((16, 256), np.uint32)
    for byte in range(256):
        # zlib inverts the register before and after; with a register of 0 in front the plain remainder is left.
        tables[0, byte] = zlib.crc32(bytes([byte]), 0xFFFFFFFF) ^ 0xFFFFFFFF
    for k in range(1, 16):
        before = tables[k - 1]
        tables[k] = (before >> 8) ^ tables[0][before & 0xFF]
    return tables


CRC_TABLES = _tables()


@kernel
def _lookup(tables, k, byte):
    return load_u32(tables + (k << 10) + (byte << 2))


@kernel
def _eight(tables, word, k):
    return (
        _lookup(tables, k + 7, word & 0xFF)
        ^ _lookup(tables, k + 6, shift_right(word, 8) & 0xFF)
        ^ _lookup(tables, k + 5, shift_right(word, 16) & 0xFF)
        ^ _lookup(tables, k + 4, shift_right(word, 24) & 0xFF)
        ^ _lookup(tables, k + 3, shift_right(word, 32) & 0xFF)
        ^ _lookup(tables, k + 2, shift_right(word, 40) & 0xFF)
        ^ _lookup(tables, k + 1, shift_right(word, 48) & 0xFF)
        ^ _lookup(tables, k, shift_right(word, 56))
    )


@kernel
def _remainder(tables, at, end, register):
    while end - at >= 16:
        register = _eight(tables, load_i64(at) ^ register, 8) ^ _eight(tables, load_i64(at + 8), 0)
        at += 16
    while at < end:
        register = _lookup(tables, 0, (register ^ load_u8(at)) & 0xFF) ^ (register >> 8)
        at += 1
    return register


@kernel
def first_wrong_checksum(tables, buffer, starts, ends, count, limit):
    """Index of the first event under *limit* bytes whose CRC32 is not the four bytes behind its end; -1 where all are.

    The first four are addresses. One event after the other is checked without waiting, since their sums do not depend
    on each
    other: that makes small events as fast as large ones in zlib.
    """
    for index in range(count):
        start = buffer + load_i64(starts + 8 * index)
        end = buffer + load_i64(ends + 8 * index)
        if end - start < limit and _remainder(tables, start, end, 0xFFFFFFFF) ^ 0xFFFFFFFF != load_u32(end):
            return index
    return -1


@kernel
def first_wrong_folded(tables, buffer, starts, ends, count, scratch, wide_from):
    """Like :func:`first_wrong_checksum` for events of any size, where CAN_FOLD.

    *scratch*: address of 16 bytes; *wide_from*: bytes from which on events are folded in wide words, WIDE_FROM_BYTES or more.
    """
    for index in range(count):
        start = buffer + load_i64(starts + 8 * index)
        end = buffer + load_i64(ends + 8 * index)
        register = 0xFFFFFFFF
        if end - start >= FOLD_FROM_BYTES:
            blocks = (end - start) >> 4
            if end - start >= wide_from:
                fold_wide(start, blocks, register, scratch)
            else:
                fold(start, blocks, register, scratch)
            register = _remainder(tables, scratch, scratch + 16, 0)
            start += 16 * blocks
        if _remainder(tables, start, end, register) ^ 0xFFFFFFFF != load_u32(end):
            return index
    return -1
