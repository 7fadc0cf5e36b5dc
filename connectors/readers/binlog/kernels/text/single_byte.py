"""Text of one byte a character into UTF-8, by tables of the character set."""

from __future__ import annotations

from connectors.readers.binlog.kernels.machine.jit import inlined, kernel
from connectors.readers.binlog.kernels.text.latin1 import latin1_run
from connectors.readers.machine.memory import (
    load_i32,
    load_i64,
    load_u8,
    load_u16,
    prefetch,
    shift_right,
    store_i32,
    store_i64,
)

__all__ = ["MAX_UTF8_BYTES", "high_bytes", "single_byte_text"]

MAX_UTF8_BYTES = 3
"""Of one character of any of these sets."""

_HIGH_BITS = -0x7F7F7F7F7F7F7F80  # 0x80 in each byte
_LETTERS = (1 << 56) - 1
_PREFETCH_BYTES = 512
_EACH = 0x0101010101010101
_COUNTED_WORDS = 255  # before the count of one byte's place overflows


@kernel
def high_bytes(data: int, size: int) -> int:
    """How many of *size* bytes at an address are above 127."""
    found = 0
    at = data
    end = data + size
    while end - at >= 8:
        counts = 0
        stop = at + 8 * min(_COUNTED_WORDS, (end - at) >> 3)
        while at < stop:
            counts += shift_right(load_i64(at), 7) & _EACH
            at += 8
        pairs = (counts & 0x00FF00FF00FF00FF) + (shift_right(counts, 8) & 0x00FF00FF00FF00FF)
        found += shift_right(pairs * 0x0001000100010001, 48)
    while at < end:
        found += load_u8(at) >> 7
        at += 1
    return found


@inlined
def _word(pairs: int, word: int, out: int, used: int, unknown: int) -> tuple[int, int]:
    """Eight characters, nearly without a branch, since which of them are ASCII cannot be guessed."""
    prefetch(out + used + _PREFETCH_BYTES)
    for _ in range(2):
        entry = load_i64(pairs + 8 * (word & 0xFFFF))
        other = load_i64(pairs + 8 * (shift_right(word, 16) & 0xFFFF))
        unknown |= (entry - 1) | (other - 1)
        count, both = entry >> 56, (entry >> 56) + (other >> 56)
        if both < 8:
            store_i64(out + used, (entry & _LETTERS) | other << 8 * count)
        else:
            store_i64(out + used, entry)
            store_i64(out + used + count, other)
        used += both
        word = shift_right(word, 32)
    return used, unknown


@kernel
def single_byte_text(
    singles: int,
    pairs: int,
    shuffles: int,
    is_ascii: int,
    offsets: int,
    rows: int,
    data: int,
    out_offsets: int,
    out: int,
) -> int:
    """Converts *rows* values; returns -1, or the row that holds a byte without a character.

    All but *rows* and *is_ascii* (bytes below 128 are themselves) are addresses. *singles* has 256 words of 32 bits: UTF-8
    bytes and, in the top byte, their number; 0: no character. *pairs* has 65,536 words of 64 bits, the same of two
    characters, the first one in the low byte. *shuffles* is the table of :mod:`kernels.latin1` where bytes from 0xA0 on
    are Latin-1 and the processor can use it, else 0. *out* has room for the longest result and 16 bytes more.
    """
    used = 0
    for row in range(rows):
        at = data + load_i32(offsets + 4 * row)
        end = data + load_i32(offsets + 4 * row + 4)
        unknown = 0
        if shuffles != 0:
            taken = latin1_run(at, (end - at) >> 3, out + used, shuffles)
            at += 8 * (taken >> 32)
            used += taken & 0xFFFFFFFF
        while end - at >= 32:
            first, second, third, fourth = load_i64(at), load_i64(at + 8), load_i64(at + 16), load_i64(at + 24)
            at += 32
            if is_ascii and (first | second | third | fourth) & _HIGH_BITS == 0:
                store_i64(out + used, first)
                store_i64(out + used + 8, second)
                store_i64(out + used + 16, third)
                store_i64(out + used + 24, fourth)
                used += 32
                continue
            used, unknown = _word(pairs, first, out, used, unknown)
            used, unknown = _word(pairs, second, out, used, unknown)
            used, unknown = _word(pairs, third, out, used, unknown)
            used, unknown = _word(pairs, fourth, out, used, unknown)
        while end - at >= 8:
            used, unknown = _word(pairs, load_i64(at), out, used, unknown)
            at += 8
        while end - at >= 2:
            entry = load_i64(pairs + 8 * load_u16(at))
            unknown |= entry - 1
            store_i64(out + used, entry)
            used += entry >> 56
            at += 2
        if at < end:
            single = load_i32(singles + 4 * load_u8(at))
            unknown |= single - 1
            store_i32(out + used, single)
            used += single >> 24
        if unknown < 0:
            return row
        store_i32(out_offsets + 4 * row + 4, used)
    return -1
