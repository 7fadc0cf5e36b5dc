"""Text of one byte a character into UTF-8, by tables of the character set."""

from __future__ import annotations

from connectors.readers.binlog.kernels.jit import kernel
from connectors.readers.binlog.kernels.memory import load_i32, load_i64, load_u8, shift_right, store_i32, store_i64

__all__ = ["MAX_UTF8_BYTES", "single_byte_text"]

MAX_UTF8_BYTES = 3
"""Of one character of any of these sets."""

_HIGH_BITS = -0x7F7F7F7F7F7F7F80  # 0x80 in each byte


@kernel
def single_byte_text(
    singles: int, pairs: int, is_ascii: int, offsets: int, rows: int, data: int, out_offsets: int, out: int
) -> int:
    """Converts *rows* values; returns -1, or the row that holds a byte without a character.

    All but *rows* and *is_ascii* (bytes below 128 are themselves) are addresses. *singles* has 256 words of 32 bits: UTF-8
    bytes and, in the top byte, their number; 0: no character. *pairs* has 65,536 words of 64 bits, the same of two
    characters, the first one in the low byte. *out* has room for MAX_UTF8_BYTES a byte and 8 more.
    """
    used = 0
    for row in range(rows):
        at = load_i32(offsets + 4 * row)
        end = load_i32(offsets + 4 * row + 4)
        known = True
        while end - at >= 8:
            word = load_i64(data + at)
            at += 8
            if is_ascii and word & _HIGH_BITS == 0:
                store_i64(out + used, word)
                used += 8
                continue
            for _ in range(4):
                entry = load_i64(pairs + 8 * (word & 0xFFFF))
                known &= entry != 0
                store_i64(out + used, entry)
                used += entry >> 56
                word = shift_right(word, 16)
        while at < end:
            single = load_i32(singles + 4 * load_u8(data + at))
            known &= single != 0
            store_i32(out + used, single)
            used += single >> 24
            at += 1
        if not known:
            return row
        store_i32(out_offsets + 4 * row + 4, used)
    return -1
