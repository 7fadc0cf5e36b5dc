"""Values of Avro as those of Arrow's buffers: of each row one, and a byte that says what it is (see ``layout``)."""

from __future__ import annotations

from connectors.readers.kafka.kernels import avro_layout as avro
from connectors.readers.kafka.kernels import layout as at
from connectors.readers.kafka.kernels.avro_walk import zigzag
from connectors.readers.kafka.kernels.jit import kernel
from connectors.readers.kafka.kernels.numbers import fits_digits, store_number, word_of
from connectors.readers.kafka.kernels.tokens import length_of, start_of
from connectors.readers.machine.memory import (
    copy_bytes,
    load_i32,
    load_i64,
    load_u8,
    shift_right,
    store_i8,
    store_i32,
    store_i64,
)

__all__ = ["avro_bodies", "avro_decimals", "avro_floats", "avro_integers"]

_MOST = 1 << 62


@kernel
def avro_integers(
    buffer: int,
    images: int,
    columns: int,
    column: int,
    rows: int,
    count: int,
    out: int,
    status: int,
    width: int,
    low: int,
    high: int,
    multiplier: int,
    divisor: int,
    truths: int,
    wraps: int,
) -> int:
    """Integers, see :func:`connectors.readers.kafka.kernels.numbers.integers`; how many are misfits."""
    misfits = 0
    for row in range(count):
        word = word_of(images, columns, column, rows, row)
        kind = shift_right(word, at.KIND_AT)
        value = 0
        found = at.NO_VALUE
        if kind > at.NULL:
            found = at.HAS_VALUE
            if kind == avro.VARINT:
                value = zigzag(buffer + start_of(word), buffer + start_of(word) + length_of(word))
            elif truths and kind <= at.TRUE:
                value = kind - at.FALSE
            else:
                found = at.MISFIT
            if multiplier != 1:
                if -_MOST // multiplier < value < _MOST // multiplier:
                    value *= multiplier
                else:
                    found = at.MISFIT
            if divisor != 1:
                found = found if value % divisor == 0 else at.MISFIT
                value = value // divisor
            if value < low or value > high or found == at.MISFIT:
                found = at.MISFIT
                misfits += 1
                value = 0
        store_number(out, width, row, value, wraps)
        store_i8(status + row, found)
    return misfits


@kernel
def avro_floats(
    buffer: int,
    images: int,
    columns: int,
    column: int,
    rows: int,
    count: int,
    out: int,
    status: int,
    width: int,
) -> int:
    """Floating numbers of *width* bytes; how many are misfits."""  # fmt: skip
    misfits = 0
    wanted = avro.DOUBLE if width == 8 else avro.FLOAT
    for row in range(count):
        word = word_of(images, columns, column, rows, row)
        kind = shift_right(word, at.KIND_AT)
        found = at.NO_VALUE
        if kind == wanted:
            found = at.HAS_VALUE
        elif kind > at.NULL:
            found = at.MISFIT
            misfits += 1
        position = buffer + start_of(word)
        if width == 8:
            store_i64(out + 8 * row, load_i64(position) if found == at.HAS_VALUE else 0)
        else:
            store_i32(out + 4 * row, load_i32(position) if found == at.HAS_VALUE else 0)
        store_i8(status + row, found)
    return misfits


@kernel
def avro_decimals(
    buffer: int,
    images: int,
    columns: int,
    column: int,
    rows: int,
    count: int,
    out: int,
    status: int,
    precision: int,
) -> int:
    """DECIMALs whose digits without a point are a number of up to 8 bytes, 16 bytes each; how many are misfits."""  # fmt: skip
    misfits = 0
    for row in range(count):
        word = word_of(images, columns, column, rows, row)
        kind = shift_right(word, at.KIND_AT)
        value = 0
        found = at.NO_VALUE
        if kind > at.NULL:
            found = at.MISFIT
            size = length_of(word)
            if kind == avro.BODY and 1 <= size <= 8:
                position = buffer + start_of(word)
                for index in range(size):
                    value = value << 8 | load_u8(position + index)
                value = (value << (64 - 8 * size)) >> (64 - 8 * size)
                if fits_digits(value, precision):
                    found = at.HAS_VALUE
            if found == at.MISFIT:
                misfits += 1
                value = 0
        store_number(out, 16, row, value, 0)
        store_i8(status + row, found)
    return misfits


@kernel
def avro_bodies(
    buffer: int, images: int, columns: int, column: int, rows: int, count: int, offsets: int, data: int, status: int
) -> int:
    """Bytes as they are, see :func:`connectors.readers.kafka.kernels.texts.texts`."""
    misfits = 0
    out = data
    store_i32(offsets, 0)
    for row in range(count):
        word = word_of(images, columns, column, rows, row)
        kind = shift_right(word, at.KIND_AT)
        found = at.NO_VALUE
        if kind == avro.BODY:
            found = at.HAS_VALUE
            copy_bytes(out, buffer + start_of(word), length_of(word))
            out += length_of(word)
        elif kind > at.NULL:
            found = at.MISFIT
            misfits += 1
        store_i32(offsets + 4 * row + 4, out - data)
        store_i8(status + row, found)
    return misfits
