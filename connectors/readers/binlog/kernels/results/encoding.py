"""Rows of the binary protocol into row images of a WRITE_ROWS event: the values that a log would have of the same rows.

Rows: https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_binary_resultset.html. Every read is behind a comparison
with the packet's end. Before a row is begun there is room for its packet's bytes and MOST_FIXED more, which no image exceeds.
"""

from __future__ import annotations

from connectors.readers.binlog.kernels.machine.jit import inlined, kernel
from connectors.readers.binlog.kernels.results import layout as at
from connectors.readers.binlog.kernels.results.values import date, datetime, decimal, time, timestamp
from connectors.readers.machine.memory import (
    copy_bytes,
    load_i32,
    load_i64,
    load_u8,
    load_u16,
    load_u32,
    shift_right,
    store_i8,
    store_i16,
    store_i32,
    store_i64,
)

__all__ = ["encode"]

_LONGEST_PART = 0xFFFFFF
_WORDS_UP_TO = 64


@inlined
def _prefix(position: int) -> int:
    """Bytes of a length-encoded number."""
    first = load_u8(position)
    return 1 if first < 251 else 3 if first == 252 else 4 if first == 253 else 9


@inlined
def _length(position: int) -> int:
    """A length-encoded number."""
    first = load_u8(position)
    if first < 251:
        return first
    if first == 252:
        return load_u16(position + 1)
    if first == 253:
        return shift_right(load_u32(position), 8)
    return load_i64(position + 1)


@inlined
def _copy(target: int, source: int, length: int) -> None:
    """Copies short data in words, of which SLACK lets the last one reach too far."""
    if length > _WORDS_UP_TO:
        copy_bytes(target, source, length)
        return
    done = 0
    while done < length:
        store_i64(target + done, load_i64(source + done))
        done += 8


@inlined
def _number(kind: int, size: int, position: int, end: int, out: int) -> int:
    """A number of fixed size; the address behind it in the packet, or -1."""
    if kind == at.COPY_4:
        if end - position < 4:
            return -1
        store_i32(out, load_i32(position))
        return position + 4
    if kind == at.COPY_8:
        if end - position < 8:
            return -1
        store_i64(out, load_i64(position))
        return position + 8
    if kind == at.COPY_1:
        if end - position < 1:
            return -1
        store_i8(out, load_u8(position))
        return position + 1
    if kind == at.COPY_2:
        if end - position < 2:
            return -1
        store_i16(out, load_u16(position))
        return position + 2
    if kind == at.CUT_4:
        if end - position < 4:
            return -1
        store_i32(out, load_i32(position))
        return position + 4
    if kind == at.CUT_8:
        if end - position < 8:
            return -1
        value = load_i64(position)
        if size < 8 and shift_right(value, 8 * size):
            return -1
        store_i64(out, value)
        return position + 8
    if end - position < 2:
        return -1
    year = load_u16(position)
    if year and not 1901 <= year <= 2155:
        return -1
    store_i8(out, year - 1900 if year else 0)
    return position + 2


@inlined
def _moment(kind: int, meta: int, position: int, length: int, out: int) -> bool:
    """A date or time of *length* bytes; False where it is none."""
    if kind == at.DATETIME:
        return datetime(position, length, meta, out)
    if kind == at.TIMESTAMP:
        return timestamp(position, length, meta, out)
    if kind == at.DATE:
        return date(position, length, out)
    return time(position, length, meta, out)


@kernel
def _image(state: int, position: int, end: int, out: int) -> int:
    """One row, from its NULL bitmap on, as an image at *out*; the address behind the image, or -1."""
    columns = load_i64(state + 8 * at.COLUMNS)
    stride = (columns + 7) >> 3
    given = (columns + 9) >> 3
    if end - position < given:
        return -1
    nulls = out
    # The protocol leaves two bits free in front.
    for index in range(stride):
        store_i8(nulls + index, load_u16(position + index) >> 2)
    position += given
    out += stride
    column_at = load_i64(state + 8 * at.PROGRAM)
    for column in range(columns):
        kind = load_i64(column_at + 8 * at.COLUMN_KIND)
        size = load_i64(column_at + 8 * at.COLUMN_SIZE)
        meta = load_i64(column_at + 8 * at.COLUMN_META)
        column_at += 8 * at.COLUMN_WORDS
        if (load_u8(nulls + (column >> 3)) >> (column & 7)) & 1:
            continue
        if kind < at.VARYING:
            position = _number(kind, size, position, end, out)
            if position < 0:
                store_i64(state + 8 * at.COLUMN, column)
                return -1
            out += size
            continue
        # What follows a length of one byte is mostly short.
        length = load_u8(position) if position < end else 255
        if length < 251:
            position += 1
        elif position < end and position + _prefix(position) <= end:
            length = _length(position)
            position += _prefix(position)
        else:
            length = -1
        valid = 0 <= length <= end - position
        if valid:
            if kind == at.VARYING:
                valid = size > 3 or shift_right(length, 8 * size) == 0
                if valid:
                    store_i32(out, length)
                    _copy(out + size, position, length)
                    out += length
            elif kind == at.DECIMAL:
                valid = decimal(position, length, meta & 0xFF, meta >> 8, out)
            elif kind == at.BYTES:
                valid = length == size
                _copy(out, position, size if valid else 0)
            else:
                valid = _moment(kind, meta, position, length, out)
        if not valid:
            store_i64(state + 8 * at.COLUMN, column)
            return -1
        position += length
        out += size
    store_i64(state + 8 * at.COLUMN, columns)
    return out if position == end else -1


@kernel
def encode(state: int, buffer: int, fill: int) -> int:
    """Makes images of the packets in the *fill* bytes at *buffer*, as far as there is room; the code why it returned."""
    packet = load_i64(state + 8 * at.AT)
    out = load_i64(state + 8 * at.IMAGES)
    room_end = load_i64(state + 8 * at.IMAGES_END) - load_i64(state + 8 * at.MOST_FIXED)
    rows = load_i64(state + 8 * at.IMAGE_ROWS)
    code = at.MORE
    while True:
        store_i64(state + 8 * at.NEEDED, 4)
        if fill - packet < 4:
            break
        length = load_u32(buffer + packet) & 0xFFFFFF
        behind = packet + 4 + length
        if length == _LONGEST_PART:
            if load_i64(state + 8 * at.JOINED) == 0:
                code = at.PARTS
                break
            length = load_i64(state + 8 * at.JOINED)
            behind = load_i64(state + 8 * at.JOINED_END)
        store_i64(state + 8 * at.NEEDED, behind - packet)
        if behind > fill:
            break
        position = buffer + packet + 4
        kind = load_u8(position) if length else 1
        if kind:
            code = at.END if kind == 0xFE and length < 9 else at.ERROR if kind == 0xFF else at.MISFIT
            store_i64(state + 8 * at.COLUMN, -1)
            break
        if out + length > room_end:
            code = at.FULL
            break
        written = _image(state, position + 1, position + length, out)
        if written < 0:
            code = at.MISFIT
            break
        out = written
        rows += 1
        packet = behind
        store_i64(state + 8 * at.JOINED, 0)
    store_i64(state + 8 * at.AT, packet)
    store_i64(state + 8 * at.IMAGES, out)
    store_i64(state + 8 * at.IMAGE_ROWS, rows)
    return code
