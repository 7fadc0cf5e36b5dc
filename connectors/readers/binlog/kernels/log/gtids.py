"""GTID events of both servers, taken apart into words that sources are compared by.

MySQL's GTID and ANONYMOUS_GTID have fields at fixed places. GTID_TAGGED (8.3) is a message of its serialization library
(libs/mysql/serialization/readme.md): version, size and last field that must be known, then each field behind its
number. Integers have as many bytes more as their first byte has ones at its low end.
"""

from __future__ import annotations

from connectors.readers.binlog.kernels.machine.jit import kernel
from connectors.readers.binlog.kernels.values.temporal import little_word
from connectors.readers.machine.memory import (
    copy_bytes,
    fill_zero,
    load_i64,
    load_u8,
    load_u32,
    shift_right,
    store_i64,
)

__all__ = ["GTID_WORDS", "NUMBER", "SOURCE_KEY_WORDS", "TIME", "mariadb_gtid", "mysql_gtid", "same_source"]

SOURCE_KEY_WORDS = 6
"""Words of a source. MySQL: the UUID's halves and the tag, padded with zeros; MariaDB: the domain, perhaps a server."""

NUMBER = SOURCE_KEY_WORDS
TIME = SOURCE_KEY_WORDS + 1
"""Word of the original commit time in microseconds; 0 where the event has none (before 8.0, MariaDB)."""

GTID_WORDS = SOURCE_KEY_WORDS + 2

_TAGGED = 42
_LOGICAL_TIMESTAMP = 2
_ORIGINAL_TOO = 1 << 55
_FLAGS, _UUID, _NUMBER, _TAG, _IMMEDIATE_TIME, _ORIGINAL_TIME = 0, 1, 2, 3, 6, 7
_LAST_KNOWN_FIELD = 11
_TAG_BYTES = 32


@kernel
def same_source(one: int, other: int) -> bool:
    """Whether the words of two sources at these addresses are the same."""
    differ = 0
    for index in range(SOURCE_KEY_WORDS):
        differ |= load_i64(one + 8 * index) ^ load_i64(other + 8 * index)
    return differ == 0


@kernel
def mariadb_gtid(body: int, server: int, gtid: int) -> None:
    """Writes the words of a MariaDB GTID event of at least 13 bytes; *server* tells sources apart, too."""
    fill_zero(gtid, 8 * GTID_WORDS)
    store_i64(gtid, load_u32(body + 8))
    store_i64(gtid + 8, server)
    store_i64(gtid + 8 * NUMBER, load_i64(body))


@kernel
def mysql_gtid(body: int, end: int, kind: int, gtid: int) -> bool:
    """Writes the words of a MySQL GTID event of any kind; False where it is too short."""
    if kind == _TAGGED:
        return _tagged(body, end, gtid)
    if end - body < 25:
        return False
    fill_zero(gtid, 8 * GTID_WORDS)
    store_i64(gtid, load_i64(body + 1))
    store_i64(gtid + 8, load_i64(body + 9))
    store_i64(gtid + 8 * NUMBER, load_i64(body + 17))
    if end - body >= 49 and load_u8(body + 25) == _LOGICAL_TIMESTAMP:
        committed = little_word(body + 42, 7)
        if committed & _ORIGINAL_TOO:
            if end - body < 56:
                return False
            committed = little_word(body + 49, 7)
        store_i64(gtid + 8 * TIME, committed)
    return True


@kernel
def _integer(at: int, end: int) -> tuple[int, int]:
    """An unsigned integer and the address behind it; -1: it is not whole."""
    if at >= end:
        return 0, -1
    first = load_u8(at)
    more = 0
    while more < 8 and first & (1 << more):
        more += 1
    if end - at <= more:
        return 0, -1
    if more == 8:
        return load_i64(at + 1), at + 9
    return shift_right(little_word(at, more + 1), more + 1), at + more + 1


@kernel
def _uuid(at: int, end: int, gtid: int) -> int:
    """Writes a UUID, each of whose bytes is an integer; the address behind it, -1: not whole."""
    for half in range(2):
        word = 0
        for index in range(8):
            value, at = _integer(at, end)
            if at < 0 or value > 255:
                return -1
            word |= value << (8 * index)
        store_i64(gtid + 8 * half, word)
    return at


@kernel
def _tag(at: int, end: int, gtid: int) -> int:
    """Writes a tag's text; the address behind it, -1: not whole."""
    length, at = _integer(at, end)
    if at < 0 or length < 0 or length > min(_TAG_BYTES, end - at):
        return -1
    copy_bytes(gtid + 16, at, length)
    return at + length


@kernel
def _tagged(body: int, end: int, gtid: int) -> bool:
    fill_zero(gtid, 8 * GTID_WORDS)
    _, at = _integer(body, end)
    if at < 0:
        return False
    size, at = _integer(at, end)
    if at < 0 or size != end - body:
        return False
    _, at = _integer(at, end)
    if at < 0:
        return False
    seen = 0
    while at < end:
        field, at = _integer(at, end)
        if at < 0:
            return False
        if field < 0 or field > _LAST_KNOWN_FIELD:
            break
        if field == _UUID:
            at = _uuid(at, end, gtid)
        elif field == _TAG:
            at = _tag(at, end, gtid)
        else:
            value, at = _integer(at, end)
            if field == _NUMBER:
                # A signed one: its sign is the lowest bit.
                store_i64(gtid + 8 * NUMBER, shift_right(value, 1))
            elif field in (_IMMEDIATE_TIME, _ORIGINAL_TIME):
                store_i64(gtid + 8 * TIME, value)
        if at < 0:
            return False
        seen |= 1 << field
    needed = 1 << _UUID | 1 << _NUMBER
    return seen & needed == needed
