"""Where events begin and end: in the bytes of a file, and in the packets of a connection."""

from __future__ import annotations

from connectors.readers.binlog.kernels.machine.jit import kernel
from connectors.readers.machine.memory import (
    copy_bytes,
    load_i64,
    load_u8,
    load_u16,
    load_u32,
    store_i64,
)

__all__ = [
    "AT",
    "BAD_POSITION",
    "BAD_SIZE",
    "END",
    "ERROR",
    "FIND_WORDS",
    "FULL",
    "MORE",
    "NEEDED",
    "OFFSET",
    "SPECIAL",
    "find_in_file",
    "find_in_packets",
]

# ---- words of the state --------------------------------------------------------------------------------------------
AT = 0  # index in the buffer to go on at
OFFSET = 1  # of that byte in the binlog file
COUNT = 2  # events found
NEEDED = 3  # out, with MORE: bytes from AT on that the next event takes, 0: unknown
EVENT_START = 4  # out, with SPECIAL and ERROR: index of the event or error packet
EVENT_END = 5  # out: index behind it
FIND_WORDS = 6

# ---- why a search returned -----------------------------------------------------------------------------------------
MORE = 0  # the rest is no whole event
FULL = 1  # no room for more events
SPECIAL = 2  # an event about the file or the connection; the caller takes it and calls again
END = 3  # the server has sent all there is
ERROR = 4  # the server has sent an error
BAD_SIZE = 5
BAD_POSITION = 6

_SPLIT = 0xFFFFFF


@kernel
def _add(starts, ends, offsets, count, start, end, offset):
    store_i64(starts + 8 * count, start)
    store_i64(ends + 8 * count, end)
    store_i64(offsets + 8 * count, offset)


@kernel
def find_in_file(state, buffer, fill, starts, ends, offsets, room, checksum):
    """Finds whole events from the state's place up to index *fill*; *checksum* bytes end each."""
    at = load_i64(state + 8 * AT)
    offset = load_i64(state + 8 * OFFSET)
    count = load_i64(state + 8 * COUNT)
    code = MORE
    needed = 0
    while True:
        if fill - at < 19:
            break
        size = load_u32(buffer + at + 9)
        if size < 19 + checksum:
            code = BAD_SIZE
            break
        following = load_u32(buffer + at + 13)
        # MariaDB 11 leaves the position out inside transactions.
        if following != 0 and following != (offset + size) & 0xFFFFFFFF:
            code = BAD_POSITION
            break
        if fill - at < size:
            needed = size
            break
        if count == room:
            code = FULL
            break
        _add(starts, ends, offsets, count, at, at + size - checksum, offset)
        count += 1
        at += size
        offset += size
    store_i64(state + 8 * AT, at)
    store_i64(state + 8 * OFFSET, offset)
    store_i64(state + 8 * COUNT, count)
    store_i64(state + 8 * NEEDED, needed)
    return code


@kernel
def _packet_end(buffer, at, fill):
    """Index behind all packets of the payload that begins at *at*; negative: so many bytes are missing."""
    while True:
        if fill - at < 4:
            return fill - at - 4
        length = load_u32(buffer + at) & _SPLIT
        if fill - at - 4 < length:
            return fill - at - 4 - length
        at += 4 + length
        if length < _SPLIT:
            return at


@kernel
def _join(buffer, at, end):
    """Moves the parts of a payload of several packets together, in place; the index behind the payload."""
    target = at + 4 + _SPLIT
    at = target
    while at < end:
        length = load_u32(buffer + at) & _SPLIT
        # Source and target overlap where a part is longer than the headers passed so far: copy in steps of that
        # distance.
        distance = at + 4 - target
        moved = 0
        while moved < length:
            step = min(distance, length - moved)
            copy_bytes(buffer + target + moved, buffer + at + 4 + moved, step)
            moved += step
        target += length
        at += 4 + length
    return target


@kernel
def _file_offset(expected, following, size):
    """The event's first byte in the file, from the low half of the offset behind it; -1: before *expected*."""
    if following == 0:
        return expected
    behind = (expected + size) & ~0xFFFFFFFF | following
    if behind < expected + size:
        # The low half has wrapped: only a file beyond 4 GB comes here rightly.
        return behind + 0x100000000 - size if expected + size - behind > 0x80000000 else -1
    return behind - size


@kernel
def find_in_packets(state, buffer, fill, starts, ends, offsets, room, checksum):
    """Finds whole events in MySQL packets from the state's place up to index *fill*.

    A packet is 3 bytes of length, one of sequence, then for an event a zero byte before it. 0xFF begins an error, 0xFE
    with fewer than 9 bytes ends the dump. An event of 16 MB and more comes in several packets and is joined in place.
    """
    at = load_i64(state + 8 * AT)
    expected = load_i64(state + 8 * OFFSET)
    count = load_i64(state + 8 * COUNT)
    code = MORE
    needed = 0
    while True:
        end = _packet_end(buffer, at, fill)
        if end < 0:
            needed = fill - at - end
            break
        if count == room:
            code = FULL
            break
        length = load_u32(buffer + at) & _SPLIT
        first = load_u8(buffer + at + 4)
        start = at + 5
        if first != 0 or length < 20:
            store_i64(state + 8 * EVENT_START, at + 4)
            store_i64(state + 8 * EVENT_END, end)
            code = ERROR if first == 0xFF else END if first == 0xFE and length < 9 else BAD_SIZE
            at = end
            break
        body_end = end if length < _SPLIT else _join(buffer, at, end)
        at = end
        kind = load_u8(buffer + start + 4)
        size = load_u32(buffer + start + 9)
        # MariaDB sends START_ENCRYPTION (164) of a file's beginning, without a place, wherever a dump starts in it.
        if kind in (15, 27, 41, 164) or load_u16(buffer + start + 17) & 0x20:
            store_i64(state + 8 * EVENT_START, start)
            store_i64(state + 8 * EVENT_END, body_end)
            code = SPECIAL
            break
        if size != body_end - start or size < 19 + checksum:
            code = BAD_SIZE
            break
        offset = _file_offset(expected, load_u32(buffer + start + 13), size)
        if offset < 0:
            code = BAD_POSITION
            break
        _add(starts, ends, offsets, count, start, body_end - checksum, offset)
        count += 1
        expected = offset + size
    store_i64(state + 8 * AT, at)
    store_i64(state + 8 * OFFSET, expected)
    store_i64(state + 8 * COUNT, count)
    store_i64(state + 8 * NEEDED, needed)
    return code
