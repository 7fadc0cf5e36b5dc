"""Rows of the first form, RisingWave's (docs/reference/row-encoding.md)."""

from __future__ import annotations

import numpy as np

from historian.encoding.kernels.jit import kernel
from historian.encoding.kernels.memory import load, store

__all__ = ["find_plain", "put_plain_heads", "size_of_plain"]


@kernel
def _code(columns, count, lengths, i):
    """The width code of row i, by where its last value begins."""
    last = 0
    for j in range(columns - 1):
        last += lengths[j * count + i]
    return 1 if last < 1 << 8 else 2 if last < 1 << 16 else 3


@kernel
def size_of_plain(columns, count, lengths, bounds):
    """Fills ``bounds`` with where each row begins; returns how many bytes all take."""
    at = 0
    for i in range(count):
        code, total = _code(columns, count, lengths, i), 0
        for j in range(columns):
            total += lengths[j * count + i]
        bounds[i] = at
        at += 5 + columns * (4 + (4 if code == 3 else code)) + total
    bounds[count] = at
    return at


@kernel
def put_plain_heads(ids, count, lengths, bounds, out, places):
    """Writes everything in front of the values into *out*; fills ``places`` with where each value goes."""
    columns = len(ids)
    for i in range(count):
        code, at = _code(columns, count, lengths, i), bounds[i]
        width = 4 if code == 3 else code
        out[at] = 0x80 | code
        store(out, at + 1, columns, 4)
        begin, end = at + 5 + columns * (4 + width), 0
        for j in range(columns):
            store(out, at + 5 + 4 * j, ids[j], 4)
            store(out, at + 5 + 4 * columns + j * width, end, width)
            places[j * count + i] = begin + end
            end += lengths[j * count + i]


@kernel
def _position(data, ids, count, wanted, hint):
    """Where *wanted* is among the ids, which are in no order; -1: not there."""
    if 0 <= hint < count and load(data, ids + 4 * hint, 4) == wanted:
        return hint
    for j in range(count):
        if load(data, ids + 4 * j, 4) == wanted:
            return j
    return -1


@kernel
def find_plain(data, starts, lengths, wanted, found_starts, found_lengths, found):
    """Finds column ``wanted[w]``, 0 to 2**32, of row i: row w, column i of the last three.

    ``found`` is 0 where it is not there, 1 where it is NULL, else 2. Returns the number of the first row that is no valid
    one; -1 where all are.
    """
    hints = np.full(len(wanted), -1, np.int64)
    for i in range(len(starts)):
        start, end = starts[i], starts[i] + lengths[i]
        if end - start < 5:
            return i
        flag = np.int64(data[start])
        width = 4 if flag == 0x83 else flag & 3
        count = load(data, start + 1, 4)
        offsets = start + 5 + 4 * count
        values = offsets + width * count
        if flag & 0xFC != 0x80 or width == 0 or values > end:
            return i
        for w in range(len(wanted)):
            j = _position(data, start + 5, count, wanted[w], hints[w])
            if j < 0:
                continue
            hints[w] = j
            begin = values + load(data, offsets + j * width, width)
            stop = values + load(data, offsets + (j + 1) * width, width) if j + 1 < count else end
            if not values <= begin <= stop <= end:
                return i
            found_starts[w, i], found_lengths[w, i], found[w, i] = begin, stop - begin, 1 if begin == stop else 2
    return -1
