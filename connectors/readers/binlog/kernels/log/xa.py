"""Where XA transactions begin and end in a window."""

from __future__ import annotations

from connectors.readers.binlog.kernels.machine.jit import kernel
from connectors.readers.machine.memory import load_i64, load_u8, load_u16, load_u32

__all__ = ["BEGIN", "BEGIN_MARIADB", "COMMIT", "ROLLBACK", "next_end", "next_xa"]

BEGIN, BEGIN_MARIADB, COMMIT, ROLLBACK = 1, 2, 3, 4

_XA = int.from_bytes(b"XA ", "little")
_S, _C, _R = b"SCR"
_PREPARED_XA = 64


@kernel
def next_xa(buffer: int, starts: int, ends: int, index: int, count: int) -> int:
    """The next event from *index* on that begins an XA transaction or settles a prepared one: its index * 8 + what it is.

    BEGIN: the QUERY behind the GTID event; BEGIN_MARIADB: the GTID event itself; COMMIT, ROLLBACK: the QUERY. Without any
    -1. All but *index* and *count* are addresses.
    """
    while index < count:
        header = buffer + load_i64(starts + 8 * index)
        end = buffer + load_i64(ends + 8 * index)
        kind = load_u8(header + 4)
        body = header + 19
        if kind == 2 and end - body >= 14:
            text = body + 14 + load_u16(body + 11) + load_u8(body + 8)
            if end - text >= 8 and load_u32(text) & 0xFFFFFF == _XA:
                first = load_u8(text + 3)
                if first == _S:
                    return index * 8 + BEGIN
                if first == _C:
                    return index * 8 + COMMIT
                if first == _R:
                    return index * 8 + ROLLBACK
        elif kind == 162 and end - body >= 13 and load_u8(body + 12) & _PREPARED_XA:
            return index * 8 + BEGIN_MARIADB
        index += 1
    return -1


@kernel
def next_end(buffer: int, starts: int, index: int, count: int) -> int:
    """Index of the next XA_PREPARE or GTID event from *index* on; *count* where there is none."""
    while index < count:
        kind = load_u8(buffer + load_i64(starts + 8 * index) + 4)
        if kind in (33, 34, 38, 42, 162):
            return index
        index += 1
    return count
