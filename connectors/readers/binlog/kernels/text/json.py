"""Binary JSON as the server's own text. Format: MySQL's sql-common/json_binary.h; text: ``Json_wrapper::to_string``."""

from __future__ import annotations

from connectors.readers.binlog.kernels.machine.jit import kernel, kernel_with_gil
from connectors.readers.binlog.kernels.text import json_layout as at
from connectors.readers.binlog.kernels.text.digits import MAX_DOUBLE_BYTES, put_double, put_integer, put_unsigned
from connectors.readers.binlog.kernels.text.json_scalars import put_opaque, put_string
from connectors.readers.machine.memory import (
    load_i16,
    load_i32,
    load_i64,
    load_u8,
    load_u16,
    load_u32,
    store_i32,
    store_i64,
)

__all__ = ["json_text"]

_NULL = int.from_bytes(b"null", "little")
_TRUE = int.from_bytes(b"true", "little")
_FALS = int.from_bytes(b"fals", "little")
_SEPARATOR = int.from_bytes(b", ", "little")


@kernel
def _put_bytes(state: int, value: int, count: int) -> int:
    """Appends up to 8 bytes held in a word."""
    used = load_i64(state + 8 * at.USED)
    if used + 8 > load_i64(state + 8 * at.OUT_CAPACITY):
        return at.FULL
    store_i64(load_i64(state + 8 * at.OUT_DATA) + used, value)
    store_i64(state + 8 * at.USED, used + count)
    return at.DONE


@kernel
def _take(state: int, count: int) -> bool:
    """Counts *count* bytes of the document as used; False where more are used than there are.

    Values of a real document share no bytes. In a damaged one, elements that point at each other would never end.
    """
    left = load_i64(state + 8 * at.LEFT) - count
    store_i64(state + 8 * at.LEFT, left)
    return left >= 0


@kernel
def _put_number(state: int, kind: int, value: int, limit: int) -> int:
    """Appends a number at address *value*."""
    size = 2 if kind <= at.UINT16 else (4 if kind <= at.UINT32 else 8)
    if limit - value < size:
        return at.INVALID
    used = load_i64(state + 8 * at.USED)
    if used + MAX_DOUBLE_BYTES > load_i64(state + 8 * at.OUT_CAPACITY):
        return at.FULL
    out = load_i64(state + 8 * at.OUT_DATA) + used
    if kind == at.DOUBLE:
        behind = put_double(out, load_i64(value), load_i64(state + 8 * at.BARE))
    elif kind == at.UINT64:
        behind = put_unsigned(out, load_i64(value))
    else:
        number = load_i64(value) if size == 8 else 0
        if size == 2:
            number = load_i16(value) if kind == at.INT16 else load_u16(value)
        elif size == 4:
            number = load_i32(value) if kind == at.INT32 else load_u32(value)
        behind = put_integer(out, number)
    store_i64(state + 8 * at.USED, used + behind - out)
    return at.DONE


@kernel
def _put_literal(state: int, value: int, limit: int) -> int:
    if limit - value < 1:
        return at.INVALID
    literal = load_u8(value)
    if literal == 0:
        return _put_bytes(state, _NULL, 4)
    if literal == 1:
        return _put_bytes(state, _TRUE, 4)
    if literal == 2:
        return _put_bytes(state, _FALS | 101 << 32, 5)
    return at.INVALID


@kernel
def _scalar(state: int, kind: int, value: int, limit: int) -> int:
    """Appends the scalar of that *kind* at address *value*; its container ends at *limit*."""
    if kind == at.STRING or kind == at.OPAQUE:
        start = value + (1 if kind == at.OPAQUE else 0)
        length = 0
        shift = 0
        while True:
            if start >= limit or shift > 28:
                return at.INVALID
            byte = load_u8(start)
            start += 1
            length |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
        if limit - start < length or not _take(state, length):
            return at.INVALID
        if kind == at.STRING:
            return put_string(state, start, length)
        return put_opaque(state, load_u8(value), start, length)
    if kind == at.LITERAL:
        return _put_literal(state, value, limit)
    if at.INT16 <= kind <= at.DOUBLE:
        return _put_number(state, kind, value, limit)
    return at.INVALID


@kernel
def _open(state: int, depth: int, kind: int, base: int, limit: int) -> int:
    """Begins an array or object at address *base* as frame number *depth*."""
    word = 4 if kind == at.LARGE_OBJECT or kind == at.LARGE_ARRAY else 2
    if depth >= at.MAX_DEPTH or limit - base < 2 * word:
        return at.INVALID
    count = load_u32(base) if word == 4 else load_u16(base)
    size = load_u32(base + 4) if word == 4 else load_u16(base + 2)
    is_object = kind <= at.LARGE_OBJECT
    entries = count * (1 + word + (word + 2 if is_object else 0))
    if size > limit - base or 2 * word + entries > size:
        return at.INVALID
    frame = state + 8 * (at.FRAMES + at.FRAME_WORDS * depth)
    store_i64(frame + 8 * at.BASE, base)
    store_i64(frame + 8 * at.SIZE, size)
    store_i64(frame + 8 * at.COUNT, count)
    store_i64(frame + 8 * at.NEXT, 0)
    store_i64(frame + 8 * at.KIND, kind)
    return _put_bytes(state, 123 if is_object else 91, 1)


@kernel
def _key(state: int, base: int, size: int, word: int, index: int) -> int:
    """Appends an object's key and what stands behind it."""
    entry = base + 2 * word + index * (word + 2)
    offset = load_u32(entry) if word == 4 else load_u16(entry)
    length = load_u16(entry + word)
    if offset + length > size or not _take(state, length):
        return at.INVALID
    code = put_string(state, base + offset, length)
    return code or _put_bytes(state, 58 | 32 << 8, 2)


@kernel
def _is_inline(kind: int, word: int) -> bool:
    """Whether the value stands in its entry, where others have their offset."""
    return at.LITERAL <= kind <= at.UINT16 or (word == 4 and kind <= at.UINT32 and kind >= at.INT32)


@kernel
def _document(state: int, value: int, limit: int) -> int:
    """Appends the document at address *value* that ends at *limit*."""
    if limit == value:
        # What the server reads of a column that was filled without a value.
        return _put_bytes(state, _NULL, 4)
    store_i64(state + 8 * at.LEFT, limit - value)
    kind = load_u8(value)
    if kind > at.LARGE_ARRAY:
        return _scalar(state, kind, value + 1, limit)
    code = _open(state, 0, kind, value + 1, limit)
    depth = 1
    while depth and code == at.DONE:
        frame = state + 8 * (at.FRAMES + at.FRAME_WORDS * (depth - 1))
        base, size = load_i64(frame + 8 * at.BASE), load_i64(frame + 8 * at.SIZE)
        index, kind = load_i64(frame + 8 * at.NEXT), load_i64(frame + 8 * at.KIND)
        count = load_i64(frame + 8 * at.COUNT)
        is_object = kind <= at.LARGE_OBJECT
        if index == count:
            code = _put_bytes(state, 125 if is_object else 93, 1)
            depth -= 1
            continue
        if not _take(state, 1):
            return at.INVALID
        store_i64(frame + 8 * at.NEXT, index + 1)
        if index:
            code = _put_bytes(state, _SEPARATOR, 2)
        word = 4 if kind == at.LARGE_OBJECT or kind == at.LARGE_ARRAY else 2
        entry = base + 2 * word + index * (1 + word)
        if is_object:
            code = code or _key(state, base, size, word, index)
            entry += count * (word + 2)
        kind = load_u8(entry)
        place = entry + 1
        if not _is_inline(kind, word):
            offset = load_u32(place) if word == 4 else load_u16(place)
            if offset >= size:
                return at.INVALID
            place = base + offset
        if code:
            return code
        if kind <= at.LARGE_ARRAY:
            code = _open(state, depth, kind, place, base + size)
            depth += 1
        else:
            code = _scalar(state, kind, place, base + size)
    return code


@kernel_with_gil
def json_text(state: int) -> int:
    """Prints a column of documents from the state's row on; the code why it stopped (see ``layout_json``).

    A document that did not fit is begun anew with the next call.
    """
    offsets, data = load_i64(state + 8 * at.IN_OFFSETS), load_i64(state + 8 * at.IN_DATA)
    results = load_i64(state + 8 * at.OUT_OFFSETS)
    row = load_i64(state + 8 * at.ROW)
    code = at.DONE
    while row < load_i64(state + 8 * at.ROW_COUNT):
        store_i64(state + 8 * at.USED, load_i32(results + 4 * row))
        code = _document(state, data + load_i32(offsets + 4 * row), data + load_i32(offsets + 4 * row + 4))
        if code:
            break
        row += 1
        store_i32(results + 4 * row, load_i64(state + 8 * at.USED))
    store_i64(state + 8 * at.ROW, row)
    return code
