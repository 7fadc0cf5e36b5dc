"""Events that begin and end transactions: GTIDs of both flavours, and BEGIN, COMMIT, ROLLBACK as statements."""

from __future__ import annotations

from connectors.readers.binlog.kernels import layout as at
from connectors.readers.binlog.kernels.jit import kernel
from connectors.readers.binlog.kernels.memory import load_i64, load_u8, load_u16, load_u32, store_i64
from connectors.readers.binlog.kernels.temporal import little_word

__all__ = ["begin_mariadb", "begin_mysql", "query"]

_MARIADB_STANDALONE = 1
_LOGICAL_TIMESTAMP = 2
_ORIGINAL_TOO = 1 << 55


def _number(text: str) -> int:
    return int.from_bytes(text.encode(), "little")


_BEGIN_4 = _number("BEGI")
_COMM = _number("COMM")
_ROLLBACK = _number("ROLLBACK")
_XA = _number("XA")


@kernel
def _short(state: int) -> int:
    store_i64(state + 8 * at.DETAIL, at.EVENT_SHORT)
    return at.CORRUPT


@kernel
def _source(state: int, first: int, second: int) -> bool:
    """Makes the source of these two words the transaction's; False where it is not known yet."""
    known = load_i64(state + 8 * at.SOURCES)
    count = load_i64(state + 8 * at.SOURCE_COUNT)
    last = load_i64(state + 8 * at.SOURCE)
    if 0 <= last < count and load_i64(known + 16 * last) == first and load_i64(known + 16 * last + 8) == second:
        return True
    for index in range(count):
        if load_i64(known + 16 * index) == first and load_i64(known + 16 * index + 8) == second:
            store_i64(state + 8 * at.SOURCE, index)
            return True
    store_i64(state + 8 * at.DETAIL, first)
    store_i64(state + 8 * at.DETAIL_2, second)
    return False


@kernel
def _not_outside(state: int) -> bool:
    return load_i64(state + 8 * at.TRANSACTION) != at.OUTSIDE


@kernel
def begin_mysql(state: int, body: int, end: int, offset: int, has_gtid: int) -> int:
    """GTID and anonymous GTID: flags, UUID, number, then logical clock (5.7) and commit times (8.0)."""
    if end - body < 25:
        return _short(state)
    if _not_outside(state):
        store_i64(state + 8 * at.DETAIL, at.TRANSACTION_OPEN)
        return at.CORRUPT
    if has_gtid:
        if not _source(state, load_i64(body + 1), load_i64(body + 9)):
            return at.NEW_SOURCE
        store_i64(state + 8 * at.SEQUENCE, load_i64(body + 17))
    else:
        store_i64(state + 8 * at.SOURCE, -1)
        store_i64(state + 8 * at.SEQUENCE, offset)
    committed = 0
    if end - body >= 49 and load_u8(body + 25) == _LOGICAL_TIMESTAMP:
        committed = little_word(body + 42, 7)
        if committed & _ORIGINAL_TOO:
            if end - body < 56:
                return _short(state)
            committed = little_word(body + 49, 7)
    store_i64(state + 8 * at.COMMIT_TIME, committed)
    store_i64(state + 8 * at.TRANSACTION, at.ANNOUNCED)
    return at.DONE


@kernel
def begin_mariadb(state: int, header: int, end: int) -> int:
    """MariaDB's GTID: sequence, domain, flags; the server stands in the header. It is its transaction's BEGIN too."""
    body = header + 19
    if end - body < 13:
        return _short(state)
    if _not_outside(state):
        store_i64(state + 8 * at.DETAIL, at.TRANSACTION_OPEN)
        return at.CORRUPT
    if not _source(state, load_u32(body + 8), load_u32(header + 5)):
        return at.NEW_SOURCE
    store_i64(state + 8 * at.SEQUENCE, load_i64(body))
    store_i64(state + 8 * at.COMMIT_TIME, 0)
    alone = load_u8(body + 12) & _MARIADB_STANDALONE
    store_i64(state + 8 * at.TRANSACTION, at.ANNOUNCED if alone else at.OPEN)
    return at.DONE


@kernel
def query(state: int, body: int, end: int, offset: int) -> int:
    """A statement: thread 4, seconds 4, name's length 1, error 2, variables' length 2, those, name, NUL, text."""
    if end - body < 13:
        return _short(state)
    text = body + 14 + load_u8(body + 8) + load_u16(body + 11)
    length = end - text
    if length < 0:
        return _short(state)
    before = load_i64(state + 8 * at.TRANSACTION)
    after = at.OPEN if before == at.OPEN else at.OUTSIDE
    if length == 5 and load_u32(text) == _BEGIN_4:
        after = at.OPEN
    elif length == 6 and load_u32(text) == _COMM:
        after = at.OUTSIDE
    elif length >= 8 and load_i64(text) == _ROLLBACK:
        if length == 8:
            after = at.OUTSIDE
    elif length >= 3 and load_u16(text) == _XA and load_u8(text + 2) <= 32:
        # Rows of a prepared XA become visible at a later event; emitting them here would be wrong.
        store_i64(state + 8 * at.DETAIL, 2)
        return at.UNSUPPORTED
    if before == at.OUTSIDE:
        store_i64(state + 8 * at.SOURCE, -1)
        store_i64(state + 8 * at.SEQUENCE, offset)
        store_i64(state + 8 * at.COMMIT_TIME, 0)
    store_i64(state + 8 * at.TRANSACTION, after)
    return at.DONE
