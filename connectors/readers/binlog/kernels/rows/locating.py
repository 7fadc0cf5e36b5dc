"""Where the columns of row images begin: all comparisons with an event's end are here.

Columns are taken in runs (see ``layout``): where none of a run is NULL, its columns stand at fixed distances.
"""

from __future__ import annotations

from connectors.readers.binlog.kernels.machine.jit import inlined, kernel
from connectors.readers.binlog.kernels.values import layout as at
from connectors.readers.binlog.kernels.values.temporal import little_word
from connectors.readers.machine.memory import (
    load_i64,
    load_u8,
    load_u16,
    prefetch_load,
    store_i8,
    store_i64,
)

__all__ = ["locate", "short"]

_PREFETCH_BYTES = 1024
_LINE_BYTES = 64


@kernel
def short(state: int, column: int) -> int:
    """Notes the column at which an image ends too early; minus a code of return."""
    store_i64(state + 8 * at.COLUMN, column)
    store_i64(state + 8 * at.DETAIL, at.IMAGE_SHORT)
    return -at.CORRUPT


@inlined
def _take_nulls(given: int, nulls: int, count: int) -> int:
    """Copies up to 8 bytes of a NULL bitmap, and gives them as a word."""
    word = 0
    for index in range(count):
        byte = load_u8(given + index)
        store_i8(nulls + index, byte)
        word |= byte << (8 * index)
    return word


@inlined
def _length(behind: int, prefix: int) -> int:
    """The number in the *prefix* bytes before *behind*."""
    if prefix == 1:
        return load_u8(behind - 1)
    if prefix == 2:
        return load_u16(behind - 2)
    return little_word(behind - prefix, prefix)


@kernel
def _each(state: int, table: int, run: int, word: int, position: int, end: int, starts: int) -> int:
    """The columns of a run one by one, since some are NULL or the image is too short."""
    first = load_i64(run + 8 * at.RUN_FIRST)
    step = load_i64(table + 8 * at.STEPS) + 8 * at.STEP_WORDS * first
    for column in range(first, first + load_i64(run + 8 * at.RUN_COUNT)):
        store_i64(starts + 8 * column, position)
        if (word >> (column & 63)) & 1 == 0:
            size = load_i64(step + 8 * at.STEP_SIZE)
            if end - position < size:
                return short(state, column)
            position += size
            if load_i64(step + 8 * at.STEP_KIND) == at.TEXT:
                length = _length(position, size)
                if end - position < length:
                    return short(state, column)
                position += length
        step += 8 * at.STEP_WORDS
    return position


@inlined
def locate(state: int, table: int, position: int, end: int, row: int, starts: int) -> int:
    """Stores where each column's bytes begin, and where the last one's end, at *starts*; a NULL takes none.

    Copies the image's NULL bitmap to that of *row*. Returns the address behind the image at *position*, or minus a code of
    return where it ends behind *end*.
    """
    # Where an image begins is known when all before it are measured: too late for the processor to fetch it by itself.
    prefetch_load(position + _PREFETCH_BYTES)
    prefetch_load(position + _PREFETCH_BYTES + _LINE_BYTES)
    columns = load_i64(table + 8 * at.COLUMNS)
    stride = (columns + 7) >> 3
    if end - position < stride:
        return short(state, 0)
    given = position
    nulls = load_i64(table + 8 * at.NULLS) + stride * row
    position += stride
    run = load_i64(table + 8 * at.RUNS)
    behind = run + 8 * at.RUN_WORDS * load_i64(table + 8 * at.RUN_TOTAL)
    word = 0
    while run < behind:
        first = load_i64(run + 8 * at.RUN_FIRST)
        if first & 63 == 0:
            byte = first >> 3
            if end - given >= byte + 8:
                # Bits of no column of these are looked at by nobody, and the next row's own come later.
                word = load_i64(given + byte)
                store_i64(nulls + byte, word)
            else:
                word = _take_nulls(given + byte, nulls + byte, min(8, stride - byte))
        size = load_i64(run + 8 * at.RUN_SIZE)
        fits = end - position >= size
        if fits and word & load_i64(run + 8 * at.RUN_MASK) == 0:
            count = load_i64(run + 8 * at.RUN_COUNT)
            distances = load_i64(run + 8 * at.RUN_DISTANCES)
            # Some at a time: what is stored behind the run's last column is stored anew.
            place = starts + 8 * first
            for index in range(0, count, at.RUN_STEP):
                near = distances + 8 * index
                one, two = position + load_i64(near), position + load_i64(near + 8)
                three, four = position + load_i64(near + 16), position + load_i64(near + 24)
                store_i64(place + 8 * index, one)
                store_i64(place + 8 * index + 8, two)
                store_i64(place + 8 * index + 16, three)
                store_i64(place + 8 * index + 24, four)
            position += size
            prefix = load_i64(run + 8 * at.RUN_PREFIX)
            if prefix:
                length = _length(position, prefix)
                if end - position < length:
                    return short(state, first + count - 1)
                position += length
        else:
            position = _each(state, table, run, word, position, end, starts)
            if position < 0:
                return position
        run += 8 * at.RUN_WORDS
    store_i64(starts + 8 * columns, position)
    return position
