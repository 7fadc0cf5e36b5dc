"""Row images into columns: one interpreter for all tables, driven by a table's steps (see ``layout``).

Several images at a time are located, then written column by column, so that a step is looked at once for all of them.
Every read is behind a comparison with the event's end, every write behind one with the room that the caller gave.
"""

from __future__ import annotations

from connectors.readers.binlog.kernels.machine.jit import inlined, kernel
from connectors.readers.binlog.kernels.rows.locating import locate
from connectors.readers.binlog.kernels.values import layout as at
from connectors.readers.binlog.kernels.values.decimals import decimal_18, decimal_38
from connectors.readers.binlog.kernels.values.temporal import (
    big_word,
    date_days,
    datetime_us,
    little_word,
    time_us,
    timestamp_us,
)
from connectors.readers.machine.memory import (
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

__all__ = ["images", "written"]


@kernel
def _null(nulls: int, column: int) -> None:
    place = nulls + (column >> 3)
    store_i8(place, load_u8(place) | (1 << (column & 7)))


@inlined
def _blank(step: int, row: int) -> None:
    """Writes the value that stands under a NULL."""
    out = load_i64(step + 8 * at.STEP_OUT)
    width = load_i64(step + 8 * at.STEP_WIDTH)
    if width == 8:
        store_i64(out + 8 * row, 0)
    elif width == 4:
        store_i32(out + 4 * row, 0)
    else:
        fill_zero(out + width * row, width)


@inlined
def _fixed(
    kind: int, size: int, meta: int, data: int, position: int, out: int, row: int, nulls: int, column: int
) -> bool:
    """Writes a value of fixed width; False where the bytes are no such value. *size*, *meta*, *data*: of the step."""
    if kind == at.DECIMAL_18:
        return decimal_18(position, meta, out + 16 * row)
    if kind == at.DATETIME or kind == at.TIMESTAMP:
        us = datetime_us(position, meta, data) if kind == at.DATETIME else timestamp_us(position, meta)
        if us == at.NO_DATE_64:
            _null(nulls, column)
        store_i64(out + 8 * row, us)
    elif kind == at.COPY_8:
        store_i64(out + 8 * row, load_i64(position))
    elif kind == at.COPY_4:
        store_i32(out + 4 * row, load_i32(position))
    elif kind == at.COPY_1:
        store_i8(out + row, load_u8(position))
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
        store_i64(out + 8 * row, little_word(position, size))
    elif kind == at.BIG_WORD:
        store_i64(out + 8 * row, big_word(position, size))
    return True


@inlined
def _values(
    kind: int, step: int, column: int, row: int, count: int, starts: int, pitch: int, nulls: int, stride: int
) -> bool:
    """One column of fixed width; *kind* is a constant where the loop is to be made for it."""
    out = load_i64(step + 8 * at.STEP_OUT)
    # Once for all: nobody but us knows that stores change none of them.
    size, meta = load_i64(step + 8 * at.STEP_SIZE), load_i64(step + 8 * at.STEP_META)
    data = load_i64(step + 8 * at.STEP_DATA)
    valid = True
    for index in range(row, row + count):
        position = load_i64(starts)
        if load_i64(starts + 8) == position:
            _blank(step, index)
        else:
            valid &= _fixed(kind, size, meta, data, position, out, index, nulls + stride * index, column)
        starts += pitch
    return valid


@inlined
def _copy_text(target: int, source: int, length: int, limit: int) -> None:
    """Copies short texts in words, as far as SLACK and the buffer's *limit* let it."""
    if length > 256 or source + length + 32 > limit:
        copy_bytes(target, source, length)
        return
    one, two = load_i64(source), load_i64(source + 8)
    three, four = load_i64(source + 16), load_i64(source + 24)
    store_i64(target, one)
    store_i64(target + 8, two)
    store_i64(target + 16, three)
    store_i64(target + 24, four)
    done = 32
    while done < length:
        one, two = load_i64(source + done), load_i64(source + done + 8)
        three, four = load_i64(source + done + 16), load_i64(source + done + 24)
        store_i64(target + done, one)
        store_i64(target + done + 8, two)
        store_i64(target + done + 16, three)
        store_i64(target + done + 24, four)
        done += 32


@kernel
def _texts(state: int, step: int, column: int, row: int, count: int, starts: int, pitch: int, limit: int) -> int:
    """One column of varying width, padded with zeros to the step's META; 0, or minus a code."""
    prefix = load_i64(step + 8 * at.STEP_SIZE) if load_i64(step + 8 * at.STEP_KIND) == at.TEXT else 0
    shortest = load_i64(step + 8 * at.STEP_META)
    room = load_i64(step + 8 * at.STEP_CAPACITY) - at.SLACK
    data = load_i64(step + 8 * at.STEP_DATA)
    out = load_i64(step + 8 * at.STEP_OUT) + 4 * row
    used = load_i32(out)
    for _ in range(count):
        source = load_i64(starts) + prefix
        length = load_i64(starts + 8) - source
        # A NULL has not even a prefix, and bytes without one are never none.
        if length + prefix:
            padded = max(length, shortest)
            if used + padded > room:
                store_i64(state + 8 * at.COLUMN, column)
                store_i64(state + 8 * at.DETAIL, used + padded)
                return -at.GROW_DATA
            _copy_text(data + used, source, length, limit)
            if padded > length:
                fill_zero(data + used + length, padded - length)
            used += padded
        out += 4
        store_i32(out, used)
        starts += pitch
    return 0


@kernel
def written(state: int, table: int, row: int, count: int, starts: int, limit: int) -> int:
    """Writes *count* located images to the rows from *row* on; their buffer ends at *limit*.

    *starts*: what ``locate`` has stored, COLUMNS + 1 words an image. Returns 0, or minus a code of return, which leaves the
    rows as if never begun.
    """
    columns = load_i64(table + 8 * at.COLUMNS)
    pitch = 8 * (columns + 1)
    nulls, stride = load_i64(table + 8 * at.NULLS), (columns + 7) >> 3
    step = load_i64(table + 8 * at.STEPS)
    for column in range(columns):
        kind = load_i64(step + 8 * at.STEP_KIND)
        valid = True
        if kind == at.TEXT or kind == at.BYTES_FIXED:
            failed = _texts(state, step, column, row, count, starts, pitch, limit)
            if failed:
                return failed
        elif kind == at.COPY_4:
            valid = _values(at.COPY_4, step, column, row, count, starts, pitch, nulls, stride)
        elif kind == at.COPY_8:
            valid = _values(at.COPY_8, step, column, row, count, starts, pitch, nulls, stride)
        elif kind == at.COPY_1:
            valid = _values(at.COPY_1, step, column, row, count, starts, pitch, nulls, stride)
        elif kind == at.COPY_2:
            valid = _values(at.COPY_2, step, column, row, count, starts, pitch, nulls, stride)
        elif kind == at.U64_TO_128:
            valid = _values(at.U64_TO_128, step, column, row, count, starts, pitch, nulls, stride)
        elif kind == at.DECIMAL_18:
            valid = _values(at.DECIMAL_18, step, column, row, count, starts, pitch, nulls, stride)
        elif kind == at.DATETIME:
            valid = _values(at.DATETIME, step, column, row, count, starts, pitch, nulls, stride)
        elif kind == at.TIMESTAMP:
            valid = _values(at.TIMESTAMP, step, column, row, count, starts, pitch, nulls, stride)
        else:
            valid = _values(kind, step, column, row, count, starts, pitch, nulls, stride)
        if not valid:
            store_i64(state + 8 * at.COLUMN, column)
            store_i64(state + 8 * at.DETAIL, at.VALUE)
            return -at.CORRUPT
        starts += 8
        step += 8 * at.STEP_WORDS
    return 0


@kernel
def images(state: int, table: int, position: int, end: int, limit: int, need: int) -> int:
    """Decodes row images from *position* on, *need* a row of the event, which ends at *end* and its buffer at *limit*.

    Returns how many, as SCRATCH and the table's and the chunk's room let it; the caller has seen that there is room for
    *need*. Else minus a code of return, which leaves the rows as if never begun.
    """
    starts = load_i64(state + 8 * at.SCRATCH)
    words = load_i64(table + 8 * at.COLUMNS) + 1
    row = load_i64(table + 8 * at.ROWS)
    most = min(
        at.MAX_LOCATED,
        at.SCRATCH_WORDS // words,
        min(load_i64(table + 8 * at.CAPACITY), load_i64(state + 8 * at.MAX_ROWS)) - row,
    )
    # The same limits as of each row alone, so that chunks end where they would without it.
    room = min(
        load_i64(state + 8 * at.MAX_BYTES) - load_i64(table + 8 * at.BYTES),
        load_i64(state + 8 * at.MAX_OPEN_BYTES) - load_i64(state + 8 * at.OPEN_BYTES),
    )
    fixed = load_i64(table + 8 * at.FIXED)
    begin = position
    count = 0
    while position < end and count + need <= most and (count == 0 or position - begin + count * fixed < room):
        behind = position
        for index in range(count, count + need):
            if behind >= 0:
                behind = locate(state, table, behind, end, row + index, starts + 8 * words * index)
        if behind < 0:
            if count == 0:
                return behind
            # Those before it come first.
            break
        position = behind
        count += need
    failed = written(state, table, row, count, starts, limit)
    return failed if failed < 0 else count
