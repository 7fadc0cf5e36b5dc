"""Text of one or two bytes a character into UTF-8, by tables of the character set."""

from __future__ import annotations

from connectors.readers.binlog.kernels.machine.jit import kernel
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

__all__ = ["LEAD", "double_byte_text"]

LEAD = -1
"""Stands in the table of single bytes for one that begins a pair."""

_PREFETCH_BYTES = 512
_HIGH_BITS = -0x7F7F7F7F7F7F7F80  # 0x80 in each byte
_HIGH_LEADS = 0x0080008000800080  # 0x80 in each second byte, from the first one on


@kernel
def double_byte_text(
    singles: int, pairs: int, all_lead: int, offsets: int, rows: int, data: int, out_offsets: int, out: int
) -> int:
    """Converts *rows* values; returns -1, or the row that holds bytes which the tables do not know.

    All but *rows* and *all_lead* (no byte from 128 on stands alone) are addresses. The tables have 256 and 65,536 words of
    32 bits: UTF-8 bytes and, in the top byte, their number; 0: not known. The first byte of a pair is the low one of its
    index. Bytes below 128 are themselves where they stand alone. *out* has room for the longest result and 8 bytes more.
    """
    used = 0
    for row in range(rows):
        at = load_i32(offsets + 4 * row)
        end = load_i32(offsets + 4 * row + 4)
        unknown = 0
        while at < end:
            if end - at >= 8:
                word = load_i64(data + at)
                if word & _HIGH_BITS == 0:
                    store_i64(out + used, word)
                    at += 8
                    used += 8
                    continue
                if all_lead and word & _HIGH_LEADS == _HIGH_LEADS:
                    prefetch(out + used + _PREFETCH_BYTES)
                    one = load_i32(pairs + 4 * (word & 0xFFFF))
                    two = load_i32(pairs + 4 * (shift_right(word, 16) & 0xFFFF))
                    three = load_i32(pairs + 4 * (shift_right(word, 32) & 0xFFFF))
                    four = load_i32(pairs + 4 * shift_right(word, 48))
                    if (one & two & three & four) >> 24 == 3:
                        # Nearly always, and then few stores do.
                        low = (one & 0xFFFFFF) | (two & 0xFFFFFF) << 24 | three << 48
                        store_i64(out + used, low)
                        store_i32(out + used + 8, (three >> 16) & 0xFF | four << 8)
                        at += 8
                        used += 12
                        continue
                    for _ in range(4):
                        entry = load_i32(pairs + 4 * (word & 0xFFFF))
                        unknown |= entry - 1
                        store_i32(out + used, entry)
                        used += entry >> 24
                        word = shift_right(word, 16)
                    at += 8
                    continue
            entry = load_i32(singles + 4 * load_u8(data + at))
            at += 1
            if entry == LEAD:
                if at == end:
                    return row
                entry = load_i32(pairs + 4 * load_u16(data + at - 1))
                at += 1
            unknown |= entry - 1
            store_i32(out + used, entry)
            used += entry >> 24
        if unknown < 0:
            return row
        store_i32(out_offsets + 4 * row + 4, used)
    return -1
