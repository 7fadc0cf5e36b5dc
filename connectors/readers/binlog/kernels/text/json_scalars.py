"""Strings, decimals, dates and opaque values inside JSON documents, as the server prints them."""

from __future__ import annotations

from connectors.readers.binlog.kernels.machine.jit import inlined, kernel
from connectors.readers.binlog.kernels.text import json_layout as at
from connectors.readers.binlog.kernels.text.digits import put_padded, put_unsigned
from connectors.readers.machine.memory import load_i64, load_u8, load_u32, store_i8, store_i32, store_i64

__all__ = ["put_opaque", "put_string"]

_DECIMAL = 246
_DATE, _TIME, _DATETIME, _TIMESTAMP = 10, 11, 12, 7
_MAX_DECIMAL_BYTES = 96
_DIGITS_BYTES = (0, 1, 1, 2, 2, 3, 3, 4, 4, 4)
_ALPHABET = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
_LINE_BYTES = 57  # of input a line of 76 letters
_PREFIX = b'"base64:type'
_EACH = 0x0101010101010101
_HIGH_BITS = -0x7F7F7F7F7F7F7F80  # 0x80 in each byte


@kernel
def _escape(byte: int) -> int:
    """The letter behind the backslash; 117 (u) for those written as a number, 0 for those that stand as they are."""
    if byte == 34 or byte == 92:
        return byte
    if byte >= 32:
        return 0
    if byte == 8:
        return 98
    if byte == 9:
        return 116
    if byte == 10:
        return 110
    if byte == 12:
        return 102
    if byte == 13:
        return 114
    return 117


@inlined
def _has_escapes(word: int) -> bool:
    """Whether one of eight bytes is below 32, a quotation mark or a backslash."""
    quotes = word ^ _EACH * 34
    slashes = word ^ _EACH * 92
    found = (word - _EACH * 32) & ~word | (quotes - _EACH) & ~quotes | (slashes - _EACH) & ~slashes
    return found & _HIGH_BITS != 0


@kernel
def _copy_plain(out: int, start: int, length: int) -> bool:
    """Copies a string in words; False, with anything written, where one of its bytes must be escaped."""
    if length >= 8:
        done = 0
        while length - done >= 8:
            word = load_i64(start + done)
            if _has_escapes(word):
                return False
            store_i64(out + done, word)
            done += 8
        # The last word overlaps the one before.
        word = load_i64(start + length - 8)
        store_i64(out + length - 8, word)
        return not _has_escapes(word)
    if length >= 4:
        first, last = load_u32(start), load_u32(start + length - 4)
        store_i32(out, first)
        store_i32(out + length - 4, last)
        return not _has_escapes(first | last << 32)
    for index in range(length):
        byte = load_u8(start + index)
        if _escape(byte):
            return False
        store_i8(out + index, byte)
    return True


@kernel
def put_string(state: int, start: int, length: int) -> int:
    """Appends a string of *length* bytes with its quotes."""
    used = load_i64(state + 8 * at.USED)
    room = load_i64(state + 8 * at.OUT_CAPACITY) - used - 2
    out = load_i64(state + 8 * at.OUT_DATA) + used
    begin = out
    if room < length:
        return at.FULL
    # Each byte has room for itself; what escapes take is counted against the rest.
    spare = room - length
    store_i8(out, 34)
    out += 1
    if _copy_plain(out, start, length):
        store_i8(out + length, 34)
        store_i64(state + 8 * at.USED, used + length + 2)
        return at.DONE
    for index in range(length):
        byte = load_u8(start + index)
        escape = _escape(byte)
        if escape == 0:
            store_i8(out, byte)
            out += 1
            continue
        spare -= 5 if escape == 117 else 1
        if spare < 0:
            return at.FULL
        store_i8(out, 92)
        store_i8(out + 1, escape)
        out += 2
        if escape == 117:
            low = byte & 15
            store_i8(out, 48)
            store_i8(out + 1, 48)
            store_i8(out + 2, 48 + (byte >> 4))
            store_i8(out + 3, 48 + low if low < 10 else 87 + low)
            out += 4
    store_i8(out, 34)
    store_i64(state + 8 * at.USED, used + out + 1 - begin)
    return at.DONE


@kernel
def _temporal(out: int, kind: int, packed: int) -> int:
    """Writes a packed date or time with its quotes; returns the address behind it."""
    store_i8(out, 34)
    out += 1
    if packed < 0:
        store_i8(out, 45)
        out += 1
        packed = -packed
    micros = packed & 0xFFFFFF
    whole = packed >> 24
    if kind != _TIME:
        months = whole >> 22
        out = put_padded(out, months // 13, 4)
        store_i8(out, 45)
        out = put_padded(out + 1, months % 13, 2)
        store_i8(out, 45)
        out = put_padded(out + 1, (whole >> 17) & 31, 2)
        if kind == _DATE:
            store_i8(out, 34)
            return out + 1
        store_i8(out, 32)
        out += 1
    out = put_padded(out, (whole >> 12) & (1023 if kind == _TIME else 31), 2)
    store_i8(out, 58)
    out = put_padded(out + 1, (whole >> 6) & 63, 2)
    store_i8(out, 58)
    out = put_padded(out + 1, whole & 63, 2)
    store_i8(out, 46)
    out = put_padded(out + 1, micros, 6)
    store_i8(out, 34)
    return out + 1


@kernel
def _decimal(out: int, start: int, length: int) -> int:
    """Writes a decimal: precision, scale, then as in a row image; returns the address behind it, 0 where it is none."""
    if length < 2:
        return 0
    digits, scale = load_u8(start), load_u8(start + 1)
    whole = digits - scale
    if digits > 81 or whole < 0:
        return 0
    size = _DIGITS_BYTES[whole % 9] + 4 * (whole // 9) + 4 * (scale // 9) + _DIGITS_BYTES[scale % 9]
    if length != 2 + size or size == 0:
        return 0
    start += 2
    flip = 0
    if load_u8(start) < 0x80:
        flip = 0xFF
        store_i8(out, 45)
        out += 1
    sign = 0x80
    begin = out
    groups = (whole + 8) // 9 + (scale + 8) // 9
    for group in range(groups):
        before = group < (whole + 8) // 9
        count = 9
        if group == 0 and whole % 9:
            count = whole % 9
        elif group == groups - 1 and not before and scale % 9:
            count = scale % 9
        value = 0
        for _ in range(_DIGITS_BYTES[count]):
            value = (value << 8) | (load_u8(start) ^ flip ^ sign)
            sign = 0
            start += 1
        if group == (whole + 8) // 9:
            if out == begin:
                store_i8(out, 48)
                out += 1
            store_i8(out, 46)
            out += 1
        if before and out == begin:
            if value:
                out = put_unsigned(out, value)
        else:
            out = put_padded(out, value, count)
    if out == begin:
        store_i8(out, 48)
        out += 1
    return out


@kernel
def _base64(out: int, start: int, length: int, bare: int) -> int:
    """Writes base64 in lines of 76 letters; returns the address behind it."""
    done = 0
    while done < length:
        if done and done % _LINE_BYTES == 0:
            # 8.0 prints the line end as JSON does, 5.7 as it is.
            if bare:
                store_i8(out, 10)
                out += 1
            else:
                store_i8(out, 92)
                store_i8(out + 1, 110)
                out += 2
        value = load_u8(start + done) << 16
        if done + 1 < length:
            value |= load_u8(start + done + 1) << 8
        if done + 2 < length:
            value |= load_u8(start + done + 2)
        store_i8(out, _ALPHABET[value >> 18])
        store_i8(out + 1, _ALPHABET[(value >> 12) & 63])
        store_i8(out + 2, _ALPHABET[(value >> 6) & 63] if done + 1 < length else 61)
        store_i8(out + 3, _ALPHABET[value & 63] if done + 2 < length else 61)
        out += 4
        done += 3
    return out


@kernel
def put_opaque(state: int, kind: int, start: int, length: int) -> int:
    """Appends a value that JSON has no type for; *kind* is its column type's number."""
    used = load_i64(state + 8 * at.USED)
    capacity = load_i64(state + 8 * at.OUT_CAPACITY)
    begin = load_i64(state + 8 * at.OUT_DATA) + used
    if used + _MAX_DECIMAL_BYTES + length // 3 * 4 + length // _LINE_BYTES * 2 > capacity:
        return at.FULL
    out = begin
    if kind == _DECIMAL:
        out = _decimal(begin, start, length)
        if out == 0:
            return at.INVALID
    elif kind in (_DATE, _TIME, _DATETIME, _TIMESTAMP):
        if length != 8:
            return at.INVALID
        out = _temporal(begin, kind, load_i64(start))
    else:
        for index in range(len(_PREFIX)):
            store_i8(out, _PREFIX[index])
            out += 1
        out = put_unsigned(out, kind)
        store_i8(out, 58)
        out = _base64(out + 1, start, length, load_i64(state + 8 * at.BARE))
        store_i8(out, 34)
        out += 1
    store_i64(state + 8 * at.USED, used + out - begin)
    return at.DONE
