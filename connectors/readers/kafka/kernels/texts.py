"""Texts of messages as the data of Arrow's buffers: as they are, with escapes undone, or as the bytes that they stand for."""

from __future__ import annotations

from connectors.readers.kafka.kernels import layout as at
from connectors.readers.kafka.kernels.jit import inlined, kernel
from connectors.readers.kafka.kernels.numbers import word_of
from connectors.readers.kafka.kernels.tokens import length_of, start_of
from connectors.readers.machine.memory import (
    copy_bytes,
    load_i64,
    load_u8,
    shift_right,
    store_i8,
    store_i32,
    store_i64,
)

__all__ = ["base64_bytes", "latin1_bytes", "most_bytes", "spans", "texts"]

_BACKSLASH, _EQUALS, _U = 92, 61, 117
_WORDS_UP_TO = 64


@kernel
def most_bytes(images: int, columns: int, column: int, rows: int, count: int) -> int:
    """The bytes of all values of a column as they stand in messages, which no text of them exceeds."""
    found = 0
    for row in range(count):
        found += length_of(word_of(images, columns, column, rows, row))
    return found


@inlined
def _copy(target: int, source: int, length: int) -> None:
    """Copies short data in words: the room behind may be written to, and the slack read."""
    if length > _WORDS_UP_TO:
        copy_bytes(target, source, length)
        return
    done = 0
    while done < length:
        store_i64(target + done, load_i64(source + done))
        done += 8


@inlined
def _hexadecimal(position: int) -> int:
    """The number of four hexadecimal digits."""
    found = 0
    for index in range(4):
        byte = load_u8(position + index)
        found = found << 4 | (byte - 48 if byte <= 57 else (byte | 0x20) - 87)
    return found


@inlined
def _put(out: int, character: int) -> int:
    """Writes a character below 0x10000 as UTF-8; the address behind it."""
    if character < 0x80:
        store_i8(out, character)
        return out + 1
    if character < 0x800:
        store_i8(out, 0xC0 | character >> 6)
        store_i8(out + 1, 0x80 | character & 0x3F)
        return out + 2
    store_i8(out, 0xE0 | character >> 12)
    store_i8(out + 1, 0x80 | (character >> 6) & 0x3F)
    store_i8(out + 2, 0x80 | character & 0x3F)
    return out + 3


@inlined
def _escaped(position: int) -> int:
    """The character of the escape whose backslash stands at *position*."""
    byte = load_u8(position + 1)
    if byte == _U:
        return _hexadecimal(position + 2)
    if byte == 110:
        return 10
    if byte == 116:
        return 9
    if byte == 114:
        return 13
    if byte == 98:
        return 8
    return 12 if byte == 102 else byte


@kernel
def _plain(position: int, end: int, out: int) -> int:
    """Writes a text with its escapes undone; the address behind it."""
    while position < end:
        byte = load_u8(position)
        if byte != _BACKSLASH:
            store_i8(out, byte)
            out += 1
            position += 1
        else:
            out = _put(out, _escaped(position))
            position += 6 if load_u8(position + 1) == _U else 2
    return out


@kernel
def texts(
    buffer: int,
    images: int,
    columns: int,
    column: int,
    rows: int,
    count: int,
    offsets: int,
    data: int,
    status: int,
    escapes: int,
) -> int:
    """Texts, with the number behind each in the int32 words of *offsets*; how many are misfits. *data* has SLACK too.

    With *escapes* those too that have some.
    """  # fmt: skip
    misfits = 0
    out = data
    store_i32(offsets, 0)
    for row in range(count):
        word = word_of(images, columns, column, rows, row)
        kind = shift_right(word, at.KIND_AT)
        found = at.HAS_VALUE
        position = buffer + start_of(word)
        length = length_of(word)
        if kind == at.TEXT:
            _copy(out, position, length)
            out += length
        elif kind == at.ESCAPED and escapes:
            out = _plain(position, position + length, out)
        elif kind <= at.NULL:
            found = at.NO_VALUE
        else:
            found = at.MISFIT
            misfits += 1
        store_i32(offsets + 4 * row + 4, out - data)
        store_i8(status + row, found)
    return misfits


@kernel
def spans(buffer: int, images: int, columns: int, column: int, rows: int, count: int, offsets: int, data: int) -> None:
    """Values as they stand in messages, with the number behind each in the int32 words of *offsets*."""
    out = data
    store_i32(offsets, 0)
    for row in range(count):
        word = word_of(images, columns, column, rows, row)
        copy_bytes(out, buffer + start_of(word), length_of(word))
        out += length_of(word)
        store_i32(offsets + 4 * row + 4, out - data)


@kernel
def base64_bytes(
    buffer: int,
    images: int,
    columns: int,
    column: int,
    rows: int,
    count: int,
    offsets: int,
    data: int,
    status: int,
    values: int,
) -> int:
    """Bytes in base64 with padding, see :func:`texts`; *values* as of ``base64_decimals``."""  # fmt: skip
    misfits = 0
    out = data
    store_i32(offsets, 0)
    for row in range(count):
        word = word_of(images, columns, column, rows, row)
        kind = shift_right(word, at.KIND_AT)
        found = at.NO_VALUE
        if kind > at.NULL:
            found = at.MISFIT
            position = buffer + start_of(word)
            length = length_of(word)
            if kind == at.TEXT and length & 3 == 0:
                padding = 0
                if length and load_u8(position + length - 1) == _EQUALS:
                    padding = 2 if load_u8(position + length - 2) == _EQUALS else 1
                wrong = 0
                begin = out
                for index in range(0, length, 4):
                    left = min(4, length - padding - index)
                    bits = 0
                    for place in range(4):
                        six = load_u8(values + load_u8(position + index + place)) if place < left else 0
                        wrong |= six
                        bits = bits << 6 | six
                    store_i8(out, bits >> 16)
                    store_i8(out + 1, bits >> 8)
                    store_i8(out + 2, bits)
                    out += left * 6 >> 3
                if wrong < 64:
                    found = at.HAS_VALUE
                else:
                    out = begin
            if found == at.MISFIT:
                misfits += 1
        store_i32(offsets + 4 * row + 4, out - data)
        store_i8(status + row, found)
    return misfits


@kernel
def latin1_bytes(
    buffer: int, images: int, columns: int, column: int, rows: int, count: int, offsets: int, data: int, status: int
) -> int:
    """Bytes of which each is the character of its number, see :func:`texts`."""
    misfits = 0
    out = data
    store_i32(offsets, 0)
    for row in range(count):
        word = word_of(images, columns, column, rows, row)
        kind = shift_right(word, at.KIND_AT)
        found = at.NO_VALUE
        if kind > at.NULL:
            found = at.HAS_VALUE if kind == at.TEXT or kind == at.ESCAPED else at.MISFIT
            position = buffer + start_of(word)
            end = position + length_of(word)
            begin = out
            while found == at.HAS_VALUE and position < end:
                byte = load_u8(position)
                character = byte
                if byte == _BACKSLASH:
                    character = _escaped(position)
                    position += 6 if load_u8(position + 1) == _U else 2
                elif byte < 0x80:
                    position += 1
                elif byte < 0xC4:
                    character = (byte & 0x1F) << 6 | load_u8(position + 1) & 0x3F
                    position += 2
                else:
                    character = 256
                if character > 255:
                    found = at.MISFIT
                    out = begin
                else:
                    store_i8(out, character)
                    out += 1
            if found == at.MISFIT:
                misfits += 1
        store_i32(offsets + 4 * row + 4, out - data)
        store_i8(status + row, found)
    return misfits
