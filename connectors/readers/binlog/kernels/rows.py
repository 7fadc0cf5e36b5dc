"""Row images into columns: one interpreter for all tables, driven by a table's steps (see ``layout``).

Every read is behind a comparison with the event's end, every write behind one with the room that the caller gave.
"""

from __future__ import annotations

from connectors.readers.binlog.kernels import layout as at
from connectors.readers.binlog.kernels.decimals import decimal_18, decimal_38
from connectors.readers.binlog.kernels.jit import inlined, kernel
from connectors.readers.binlog.kernels.memory import (
    copy_bytes,
    fill_zero,
    load_i8,
    load_i16,
    load_i32,
    load_i64,
    load_u8,
    load_u16,
    load_u32,
    store_i8,
    store_i16,
    store_i32,
    store_i64,
)
from connectors.readers.binlog.kernels.temporal import (
    big_word,
    date_days,
    datetime_us,
    little_word,
    time_us,
    timestamp_us,
)

__all__ = ["image"]


@kernel
def _null(nulls: int, column: int) -> None:
    place = nulls + (column >> 3)
    store_i8(place, load_u8(place) | (1 << (column & 7)))


@inlined
def _blank(step: int, row: int) -> None:
    """Writes the value that stands under a NULL."""
    out = load_i64(step + 8 * at.STEP_OUT)
    width = load_i64(step + 8 * at.STEP_WIDTH)
    if width == 0:
        store_i32(out + 4 * row + 4, load_i32(out + 4 * row))
    elif width == 8:
        store_i64(out + 8 * row, 0)
    elif width == 4:
        store_i32(out + 4 * row, 0)
    else:
        fill_zero(out + width * row, width)


@inlined
def _fixed(kind: int, step: int, position: int, out: int, row: int, nulls: int, column: int) -> bool:
    """The rarer kinds of fixed width; False where the bytes are no such value."""
    meta = load_i64(step + 8 * at.STEP_META)
    if kind == at.DECIMAL_18:
        return decimal_18(position, meta, out + 16 * row)
    if kind == at.DATETIME or kind == at.TIMESTAMP:
        us = datetime_us(position, meta) if kind == at.DATETIME else timestamp_us(position, meta)
        if us == at.NO_DATE_64:
            _null(nulls, column)
        store_i64(out + 8 * row, us)
    elif kind == at.COPY_2:
        store_i16(out + 2 * row, load_i16(position))
    elif kind == at.U8_TO_16:
        store_i16(out + 2 * row, load_u8(position))
    elif kind == at.U16_TO_32:
        store_i32(out + 4 * row, load_u16(position))
    elif kind == at.I24_TO_32:
        store_i32(out + 4 * row, load_u16(position) | (load_i8(position + 2) << 16))
    elif kind == at.U24_TO_32:
        store_i32(out + 4 * row, load_u16(position) | (load_u8(position + 2) << 16))
    elif kind == at.U32_TO_64:
        store_i64(out + 8 * row, load_u32(position))
    elif kind == at.U64_TO_128:
        store_i64(out + 16 * row, load_i64(position))
        store_i64(out + 16 * row + 8, 0)
    elif kind == at.DECIMAL_38:
        return decimal_38(position, meta, out + 16 * row)
    elif kind == at.DATE:
        days = date_days(position)
        if days == at.NO_DATE_32:
            _null(nulls, column)
        store_i32(out + 4 * row, days)
    elif kind == at.TIME:
        store_i64(out + 8 * row, time_us(position, meta))
    elif kind == at.YEAR:
        year = load_u8(position)
        store_i16(out + 2 * row, year + 1900 if year else 0)
    elif kind == at.WORD:
        store_i64(out + 8 * row, little_word(position, load_i64(step + 8 * at.STEP_SIZE)))
    elif kind == at.BIG_WORD:
        store_i64(out + 8 * row, big_word(position, load_i64(step + 8 * at.STEP_SIZE)))
    return True


@kernel
def _wrong(state: int, reason: int, column: int) -> int:
    store_i64(state + 8 * at.COLUMN, column)
    store_i64(state + 8 * at.DETAIL, reason)
    return -at.CORRUPT


@inlined
def _data(state: int, step: int, column: int, row: int, source: int, length: int, limit: int) -> int:
    """Appends *length* bytes, padded with zeros to the step's META, to the column's data; 0, or minus a code."""
    out = load_i64(step + 8 * at.STEP_OUT) + 4 * row
    used = load_i32(out)
    padded = max(length, load_i64(step + 8 * at.STEP_META))
    if used + padded + at.SLACK > load_i64(step + 8 * at.STEP_CAPACITY):
        store_i64(state + 8 * at.COLUMN, column)
        store_i64(state + 8 * at.DETAIL, used + padded)
        return -at.GROW_DATA
    target = load_i64(step + 8 * at.STEP_DATA) + used
    if length <= 32 and source + 32 <= limit:
        store_i64(target, load_i64(source))
        store_i64(target + 8, load_i64(source + 8))
        if length > 16:
            store_i64(target + 16, load_i64(source + 16))
            store_i64(target + 24, load_i64(source + 24))
    else:
        copy_bytes(target, source, length)
    if padded > length:
        fill_zero(target + length, padded - length)
    store_i32(out + 4, used + padded)
    return 0


@kernel
def image(state: int, table: int, position: int, end: int, limit: int, row: int, starts: int) -> int:
    """Decodes the row image at *position* into *row*; its event ends at *end*, its buffer at *limit*.

    Returns the address behind the image, or minus a code of return, which leaves the row as if never begun. Stores
    where each column's bytes start, and where the last one's end, at *starts*.
    """
    columns = load_i64(table + 8 * at.COLUMNS)
    stride = (columns + 7) >> 3
    if end - position < stride:
        return _wrong(state, at.IMAGE_SHORT, 0)
    given = position
    nulls = load_i64(table + 8 * at.NULLS) + stride * row
    copy_bytes(nulls, given, stride)
    position += stride
    step = load_i64(table + 8 * at.STEPS)
    for column in range(columns):
        store_i64(starts + 8 * column, position)
        if (load_u8(given + (column >> 3)) >> (column & 7)) & 1:
            _blank(step, row)
        else:
            kind = load_i64(step + 8 * at.STEP_KIND)
            size = load_i64(step + 8 * at.STEP_SIZE)
            if end - position < size:
                return _wrong(state, at.IMAGE_SHORT, column)
            if kind == at.TEXT or kind == at.BYTES_FIXED:
                length = size
                if kind == at.TEXT:
                    length = load_u8(position)
                    if size != 1:
                        length = load_u16(position) if size == 2 else little_word(position, size)
                    position += size
                    if end - position < length:
                        return _wrong(state, at.IMAGE_SHORT, column)
                failed = _data(state, step, column, row, position, length, limit)
                if failed:
                    return failed
                position += length
            else:
                out = load_i64(step + 8 * at.STEP_OUT)
                if kind == at.COPY_4:
                    store_i32(out + 4 * row, load_i32(position))
                elif kind == at.COPY_8:
                    store_i64(out + 8 * row, load_i64(position))
                elif kind == at.COPY_1:
                    store_i8(out + row, load_u8(position))
                elif not _fixed(kind, step, position, out, row, nulls, column):
                    return _wrong(state, at.VALUE, column)
                position += size
        step += 8 * at.STEP_WORDS
    store_i64(starts + 8 * columns, position)
    return position
