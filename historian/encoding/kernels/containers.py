"""Containers of the second form: rows, structs, lists and maps (docs/reference/row-encoding.md)."""

from __future__ import annotations

import numpy as np

from historian.encoding.kernels.jit import kernel
from historian.encoding.kernels.memory import copy_bytes, crc32, load, store

__all__ = [
    "CHECKSUM",
    "MAGIC",
    "POSITIONAL",
    "count_elements",
    "find_columns",
    "find_elements",
    "put_checksums",
    "put_column",
    "put_list_heads",
    "put_row_heads",
    "size_of_lists",
    "size_of_rows",
    "wrong_checksum",
]

MAGIC = 0xC0
CHECKSUM = 0x20
POSITIONAL = 0x10


@kernel
def _width_code(number):
    return 1 if number < 1 << 8 else 2 if number < 1 << 16 else 3


@kernel
def _width(code):
    return 4 if code == 3 else code


@kernel
def size_of_rows(columns, head, flags, totals, bounds):
    """Fills ``bounds`` with where each row begins; returns how many bytes all take.

    *head* is how many bytes stand in front of a row's ends, ``totals`` how many its values take.
    """
    at = 0
    for i in range(len(totals)):
        bounds[i] = at
        at += head + columns * _width(_width_code(totals[i])) + totals[i] + (4 if flags & CHECKSUM else 0)
    bounds[len(totals)] = at
    return at


@kernel
def put_row_heads(columns, flag, names, kinds, totals, bounds, out, cursors):
    """Writes the flag, *names* (count and ids) and *kinds* of each row into *out*, which is zero.

    ``cursors`` is where its first value goes.
    """
    behind = 1 + len(names) + ((columns + 7) >> 3)
    for i in range(len(totals)):
        at, code = bounds[i], _width_code(totals[i])
        out[at] = flag | code
        copy_bytes(out, at + 1, names, 0, len(names))
        copy_bytes(out, at + behind, kinds, 0, len(kinds))
        cursors[i] = at + behind + len(kinds) + columns * _width(code)


@kernel
def put_column(column, columns, head, totals, bounds, cursors, data, starts, lengths, valid, out):
    """Writes one column's value of each row: itself, where it ends, and whether it is NULL. Moves ``cursors`` on."""
    bit = 1 << (column & 7)
    null = head - ((columns + 1) >> 1) - ((columns + 7) >> 3) + (column >> 3)
    for i in range(len(totals)):
        ends, length, target = bounds[i] + head, lengths[i], cursors[i]
        # Most values have one of these widths, and a copy of a known one is an instruction.
        if length == 8:
            copy_bytes(out, target, data, starts[i], 8)
        elif length == 4:
            copy_bytes(out, target, data, starts[i], 4)
        else:
            copy_bytes(out, target, data, starts[i], length)
        cursors[i] = target + length
        width = _width(_width_code(totals[i]))
        end = target + length - ends - columns * width
        if width == 1:
            out[ends + column] = end
        else:
            store(out, ends + column * width, end, width)
        if not valid[i]:
            out[bounds[i] + null] |= bit


@kernel
def size_of_lists(first, lengths, bounds):
    """Fills ``bounds`` with where each list begins; returns how many bytes all take."""
    at = 0
    for i in range(len(first) - 1):
        count, total = first[i + 1] - first[i], 0
        for k in range(first[i], first[i + 1]):
            total += lengths[k]
        bounds[i] = at
        at += 1 + _width(_width_code(count)) + ((count + 7) >> 3) + ((count + 1) >> 1)
        at += count * _width(_width_code(total)) + total
    bounds[len(first) - 1] = at
    return at


@kernel
def put_list_heads(first, lengths, valid, kind, bounds, out, places):
    """Writes everything in front of the elements into *out*, which is zero; fills ``places`` with where each goes."""
    for i in range(len(first) - 1):
        at, count, total = bounds[i], first[i + 1] - first[i], 0
        for k in range(first[i], first[i + 1]):
            total += lengths[k]
        wide_code, far_code = _width_code(count), _width_code(total)
        wide, far = _width(wide_code), _width(far_code)
        out[at] = MAGIC | POSITIONAL | (wide_code << 2) | far_code
        store(out, at + 1, count, wide)
        nulls = at + 1 + wide
        kinds = nulls + ((count + 7) >> 3)
        ends = kinds + ((count + 1) >> 1)
        begin, end = ends + count * far, 0
        for j in range(count):
            k = first[i] + j
            if not valid[k]:
                out[nulls + (j >> 3)] |= 1 << (j & 7)
            out[kinds + (j >> 1)] |= kind << (4 * (j & 1))
            places[k] = begin + end
            end += lengths[k]
            store(out, ends + j * far, end, far)


@kernel
def put_checksums(bounds, out):
    """Writes the CRC32 of each container behind it."""
    for i in range(len(bounds) - 1):
        end = bounds[i + 1] - 4
        store(out, end, crc32(out, bounds[i], end), 4)


@kernel
def wrong_checksum(data, starts, lengths):
    """Number of the first container without a right checksum; -1 where all have one."""
    for i in range(len(starts)):
        start, end = starts[i], starts[i] + lengths[i] - 4
        if end - start < 2 or data[start] & CHECKSUM == 0 or crc32(data, start, end) != load(data, end, 4):
            return i
    return -1


@kernel
def _head(data, start, length):
    """Count, width of ids (0: positional), where ids, nulls, kinds, ends, values begin, width of ends, bytes of values.

    A count of -1: the bytes are no container.
    """
    broken = (-1, 0, 0, 0, 0, 0, 0, 0, 0)
    if length < 2:
        return broken
    flag = np.int64(data[start])
    wide, far = _width((flag >> 2) & 3), _width(flag & 3)
    if flag & MAGIC != MAGIC or wide == 0 or far == 0:
        return broken
    limit = start + length - (4 if flag & CHECKSUM else 0)
    if start + 1 + wide > limit:
        return broken
    count = load(data, start + 1, wide)
    ids = start + 1 + wide
    id_width = 0 if flag & POSITIONAL else wide
    nulls = ids + count * id_width
    kinds = nulls + ((count + 7) >> 3)
    ends = kinds + ((count + 1) >> 1)
    values = ends + count * far
    if values > limit:
        return broken
    total = load(data, values - far, far) if count else 0
    if values + total != limit:
        return broken
    return count, id_width, ids, nulls, kinds, ends, values, far, total


@kernel
def _place(data, head, j):
    """Of value j: where it starts, its bytes (-1: out of bounds), and what it is: 1 NULL, else 2 + its kind."""
    _, _, _, nulls, kinds, ends, values, far, total = head
    before = load(data, ends + (j - 1) * far, far) if j else 0
    end = load(data, ends + j * far, far)
    length = end - before if before <= end <= total else -1
    if (data[nulls + (j >> 3)] >> (j & 7)) & 1:
        return values + before, length if length == 0 else -1, 1
    return values + before, length, 2 + ((np.int64(data[kinds + (j >> 1)]) >> (4 * (j & 1))) & 15)


@kernel
def _find(data, head, wanted, hint):
    """Where *wanted* is among the sorted ids; -1: not there. Rows in a row are alike, so *hint* is tried first."""
    count, wide, ids = head[0], head[1], head[2]
    if 0 <= hint < count and load(data, ids + hint * wide, wide) == wanted:
        return hint
    low, high = 0, count
    while low < high:
        middle = (low + high) >> 1
        if load(data, ids + middle * wide, wide) < wanted:
            low = middle + 1
        else:
            high = middle
    return low if low < count and load(data, ids + low * wide, wide) == wanted else -1


@kernel
def find_columns(data, starts, lengths, present, wanted, found_starts, found_lengths, found):
    """Finds column ``wanted[w]`` of container i: row w, column i of the last three.

    ``found`` is 0 where it is not there or the container is not present, 1 where it is NULL, else 2 + its kind.
    Returns the number of the first container that is no valid one; -1 where all are.
    """
    hints = np.full(len(wanted), -1, np.int64)
    for i in range(len(starts)):
        if not present[i]:
            continue
        head = _head(data, starts[i], lengths[i])
        if head[0] < 0 or head[1] == 0:
            return i
        for w in range(len(wanted)):
            j = _find(data, head, wanted[w], hints[w])
            if j >= 0:
                hints[w] = j
                place = _place(data, head, j)
                if place[1] < 0:
                    return i
                found_starts[w, i], found_lengths[w, i], found[w, i] = place
    return -1


@kernel
def count_elements(data, starts, lengths, present, first):
    """Fills ``first`` for positional containers; returns the number of the first that is no valid one, else -1."""
    for i in range(len(starts)):
        count = 0
        if present[i]:
            head = _head(data, starts[i], lengths[i])
            if head[0] < 0 or head[1] != 0:
                return i
            count = head[0]
        first[i + 1] = first[i] + count
    return -1


@kernel
def find_elements(data, starts, lengths, first, found_starts, found_lengths, found):
    """Finds all elements of positional containers that :func:`count_elements` has counted; returns as it does."""
    for i in range(len(starts)):
        if first[i] == first[i + 1]:
            continue
        head = _head(data, starts[i], lengths[i])
        for j in range(head[0]):
            place = _place(data, head, j)
            if place[1] < 0:
                return i
            found_starts[first[i] + j], found_lengths[first[i] + j], found[first[i] + j] = place
    return -1
