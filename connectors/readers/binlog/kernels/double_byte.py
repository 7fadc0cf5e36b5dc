"""Text of one or two bytes a character into UTF-8, by tables of the character set."""

from __future__ import annotations

from connectors.readers.binlog.kernels.jit import kernel
from connectors.readers.binlog.kernels.memory import load_i32, load_i64, load_u8, store_i32, store_i64

__all__ = ["LEAD", "double_byte_text"]

LEAD = -1
"""Stands in the table of single bytes for one that begins a pair."""

_HIGH_BITS = -0x7F7F7F7F7F7F7F80  # 0x80 in each byte


@kernel
def double_byte_text(singles: int, pairs: int, offsets: int, rows: int, data: int, out_offsets: int, out: int) -> int:
    """Converts *rows* values; returns -1, or the row that holds bytes which the tables do not know.

    All but *rows* are addresses. The tables have 256 and 65,536 words of 32 bits: UTF-8 bytes and, in the top byte, their
    number; 0: not known. Bytes below 128 are themselves where they stand alone. *out* has room for 3 bytes a byte and 8
    more.
    """
    used = 0
    for row in range(rows):
        at = load_i32(offsets + 4 * row)
        end = load_i32(offsets + 4 * row + 4)
        while at < end:
            byte = load_u8(data + at)
            if byte < 0x80 and end - at >= 8 and load_i64(data + at) & _HIGH_BITS == 0:
                store_i64(out + used, load_i64(data + at))
                at += 8
                used += 8
                continue
            entry = load_i32(singles + 4 * byte)
            if entry == LEAD:
                if end - at < 2:
                    return row
                entry = load_i32(pairs + 4 * (byte << 8 | load_u8(data + at + 1)))
                at += 1
            if entry == 0:
                return row
            store_i32(out + used, entry)
            used += entry >> 24
            at += 1
        store_i32(out_offsets + 4 * row + 4, used)
    return -1
