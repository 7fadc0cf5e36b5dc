"""Events that hold others compressed: found, measured, and put back among the plain events of their window.

MySQL's TRANSACTION_PAYLOAD holds the events of a transaction (``Transaction_payload_event``,
libs/mysql/binlog/event/codecs/binary.cpp). They are fields of type, length and value up to a type 0, all packed integers, then
the compressed bytes. MariaDB compresses one event at a time (``binlog_buf_compress``, sql/log_event.cc). The text of a
QUERY, or the images of a row event, are a byte (0x80, algorithm, bytes of length), the length, and what zlib made.
"""

from __future__ import annotations

from connectors.readers.binlog.kernels.machine.jit import kernel
from connectors.readers.binlog.kernels.values.temporal import big_word, little_word
from connectors.readers.machine.memory import (
    copy_bytes,
    load_i64,
    load_u8,
    load_u16,
    load_u32,
    store_i32,
    store_i64,
)

__all__ = [
    "DAMAGED",
    "HOW",
    "LENGTH",
    "PART_WORDS",
    "PLAIN",
    "RAW",
    "SIZE",
    "START",
    "UNKNOWN",
    "ZLIB",
    "ZSTD",
    "collect",
    "first_packed",
    "measure",
    "splice",
    "whole_events",
]

# ---- words of a part, one an event ---------------------------------------------------------------------------------
HOW = 0
START = 1  # index in the buffer of the bytes that are packed
LENGTH = 2  # how many they are
SIZE = 3  # bytes of the event, or of the events in its place
PART_WORDS = 4

# ---- how an event is packed ----------------------------------------------------------------------------------------
PLAIN = 0
ZSTD = 1
RAW = 2  # a payload that is not compressed
ZLIB = 3
DAMAGED = -1
UNKNOWN = -2  # an algorithm that nobody knows

_PAYLOAD, _QUERY, _LAST_QUERY_OR_ROWS = 40, 165, 171
_UPDATES = (167, 170)
_SECOND_ROWS = 169
_PAYLOAD_SIZE, _PAYLOAD_HOW, _PAYLOAD_UNPACKED = 1, 2, 3
_NONE = 255
_HEADER = 19


@kernel
def _packed(at, end):
    """A packed integer and the address behind it; -1: it is not whole."""
    if at >= end:
        return 0, -1
    first = load_u8(at)
    if first < 251:
        return first, at + 1
    width = 2 if first == 252 else 3 if first == 253 else 8 if first == 254 else 0
    if width == 0 or end - at - 1 < width:
        return 0, -1
    return little_word(at + 1, width), at + 1 + width


@kernel
def first_packed(buffer, starts, count, last):
    """Index of the first event that holds others, or is compressed and of a type up to *last*; -1 where none is."""
    for index in range(count):
        kind = load_u8(buffer + load_i64(starts + 8 * index) + 4)
        if kind == _PAYLOAD or _QUERY <= kind <= last:
            return index
    return -1


@kernel
def _part(part, how, start, length, size):
    store_i64(part + 8 * HOW, how)
    store_i64(part + 8 * START, start)
    store_i64(part + 8 * LENGTH, length)
    store_i64(part + 8 * SIZE, size)


@kernel
def _payload(part, buffer, start, end):
    at = buffer + start + _HEADER
    stop = buffer + end
    how = 0
    size = -1
    length = -1
    while True:
        field, at = _packed(at, stop)
        if at < 0:
            return DAMAGED
        if field == 0:
            break
        width, at = _packed(at, stop)
        if at < 0 or width < 0 or width > stop - at:
            return DAMAGED
        if field <= _PAYLOAD_UNPACKED:
            value, behind = _packed(at, at + width)
            if behind < 0:
                return DAMAGED
            if field == _PAYLOAD_SIZE:
                length = value
            elif field == _PAYLOAD_HOW:
                how = value
            else:
                size = value
        at += width
    if length < 0:
        length = stop - at
    if size < 0:
        size = length
    if length != stop - at or size < _HEADER or (how == _NONE and size != length):
        return DAMAGED
    if how not in (0, _NONE):
        return UNKNOWN
    _part(part, ZSTD if how == 0 else RAW, at - buffer, length, size)
    return 0


@kernel
def _compressed(part, buffer, start, end, kind):
    body = buffer + start + _HEADER
    stop = buffer + end
    if stop - body < 14:
        return DAMAGED
    if kind == _QUERY:
        at = body + 13 + load_u16(body + 11) + load_u8(body + 8) + 1
    else:
        at = body + 8
        if kind >= _SECOND_ROWS:
            at += load_u16(at)
        columns, at = _packed(at, stop)
        if at < 0 or columns < 0 or columns > 8 * (stop - at):
            return DAMAGED
        at += ((columns + 7) >> 3) * (2 if kind in _UPDATES else 1)
    if stop - at < 2:
        return DAMAGED
    first = load_u8(at)
    width = first & 7
    if first & 0x80 == 0 or not 1 <= width <= 4 or stop - at < 1 + width:
        return DAMAGED
    if first & 0x70:
        return UNKNOWN
    size = at - buffer - start + big_word(at + 1, width)
    if size > 0xFFFFFFFF:
        return DAMAGED
    _part(part, ZLIB, at - buffer, stop - at, size)
    return 0


@kernel
def measure(buffer, starts, ends, count, last, parts):
    """Writes a part for each event; index of the first one that is no whole event, its HOW saying why, -1: all are."""
    for index in range(count):
        start = load_i64(starts + 8 * index)
        end = load_i64(ends + 8 * index)
        part = parts + 8 * PART_WORDS * index
        kind = load_u8(buffer + start + 4)
        code = 0
        if kind == _PAYLOAD:
            code = _payload(part, buffer, start, end)
        elif _QUERY <= kind <= last:
            code = _compressed(part, buffer, start, end, kind)
        else:
            _part(part, PLAIN, start, end - start, end - start)
        if code:
            store_i64(part + 8 * HOW, code)
            return index
    return -1


@kernel
def collect(parts, first, behind, buffer, target):
    """Copies the zstd frames of these parts one behind the other, which together unpack like one; bytes copied."""
    done = 0
    for index in range(first, behind):
        part = parts + 8 * PART_WORDS * index
        if load_i64(part + 8 * HOW) == ZSTD:
            length = load_i64(part + 8 * LENGTH)
            copy_bytes(target + done, buffer + load_i64(part + 8 * START), length)
            done += length
    return done


@kernel
def whole_events(at, size):
    """Bytes of the whole events at the front of *size* bytes; -1 where what stands there cannot be one."""
    done = 0
    while size - done >= _HEADER:
        length = load_u32(at + done + 9)
        if length < _HEADER:
            return -1
        if length > size - done:
            break
        done += length
    return done


@kernel
def splice(parts, first, behind, buffer, starts, offsets, unpacked, target, out_starts, out_ends, out_offsets):
    """Copies the events of these parts to *target*, those that were packed from *unpacked*; how many there are.

    What was packed stands at its container's offset and says its size, so that offset and size lead behind it.
    Where what was packed is no row of whole events: -1 - index of the part.
    """
    at = 0
    found = 0
    for index in range(first, behind):
        part = parts + 8 * PART_WORDS * index
        how = load_i64(part + 8 * HOW)
        left = load_i64(part + 8 * SIZE)
        container = load_u32(buffer + load_i64(starts + 8 * index) + 9)
        source = unpacked
        if how in (PLAIN, RAW):
            source = buffer + load_i64(part + 8 * START)
        else:
            unpacked += left
        if how != PLAIN and whole_events(source, left) != left:
            return -1 - index
        copy_bytes(target + at, source, left)
        while left:
            length = left if how == PLAIN else load_u32(target + at + 9)
            if how != PLAIN:
                store_i32(target + at + 9, container)
            store_i64(out_starts + 8 * found, at)
            store_i64(out_ends + 8 * found, at + length)
            store_i64(out_offsets + 8 * found, load_i64(offsets + 8 * index))
            found += 1
            at += length
            left -= length
    return found
