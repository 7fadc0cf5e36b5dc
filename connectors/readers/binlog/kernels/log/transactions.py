"""Events that begin and end transactions: GTIDs of both flavours, and BEGIN, COMMIT, ROLLBACK and XA as statements.

Rows of a prepared XA transaction come where it is committed (see :mod:`connectors.readers.binlog.xa.commit_order`): behind the
GTID of the XA COMMIT, without the XA_PREPARE.
"""

from __future__ import annotations

from connectors.readers.binlog.kernels.log.gtids import (
    NUMBER,
    SOURCE_KEY_WORDS,
    TIME,
    mariadb_gtid,
    mysql_gtid,
    same_source,
)
from connectors.readers.binlog.kernels.machine.jit import kernel
from connectors.readers.binlog.kernels.values import layout as at
from connectors.readers.machine.memory import load_i64, load_u8, load_u16, load_u32, store_i64

__all__ = ["begin_mariadb", "begin_mysql", "query"]

_MARIADB_STANDALONE = 1
_ANONYMOUS = 34


def _number(text: str) -> int:
    return int.from_bytes(text.encode(), "little")


_BEGIN_4 = _number("BEGI")
_COMM = _number("COMM")
_ROLLBACK = _number("ROLLBACK")
_XA = _number("XA ")
_START, _END = b"SE"


@kernel
def _short(state: int) -> int:
    store_i64(state + 8 * at.DETAIL, at.EVENT_SHORT)
    return at.CORRUPT


@kernel
def _source(state: int) -> bool:
    """Makes the source of the words in GTID the transaction's; False where it is not known yet."""
    known = load_i64(state + 8 * at.SOURCES)
    count = load_i64(state + 8 * at.SOURCE_COUNT)
    last = load_i64(state + 8 * at.SOURCE)
    gtid = state + 8 * at.GTID
    if 0 <= last < count and same_source(known + 8 * SOURCE_KEY_WORDS * last, gtid):
        return True
    for index in range(count):
        if same_source(known + 8 * SOURCE_KEY_WORDS * index, gtid):
            store_i64(state + 8 * at.SOURCE, index)
            return True
    return False


@kernel
def _not_outside(state: int) -> bool:
    return load_i64(state + 8 * at.TRANSACTION) != at.OUTSIDE


@kernel
def begin_mysql(state: int, body: int, end: int, offset: int, kind: int) -> int:
    """A GTID event of any kind."""
    gtid = state + 8 * at.GTID
    if not mysql_gtid(body, end, kind, gtid):
        return _short(state)
    if _not_outside(state):
        store_i64(state + 8 * at.DETAIL, at.TRANSACTION_OPEN)
        return at.CORRUPT
    if kind == _ANONYMOUS:
        store_i64(state + 8 * at.SOURCE, -1)
        store_i64(state + 8 * at.SEQUENCE, offset)
    else:
        if not _source(state):
            return at.NEW_SOURCE
        store_i64(state + 8 * at.SEQUENCE, load_i64(gtid + 8 * NUMBER))
    store_i64(state + 8 * at.COMMIT_TIME, load_i64(gtid + 8 * TIME))
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
    mariadb_gtid(body, load_u32(header + 5), state + 8 * at.GTID)
    if not _source(state):
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
    elif length >= 8 and load_u32(text) & 0xFFFFFF == _XA:
        what = load_u8(text + 3)
        after = at.OPEN if what == _START else before if what == _END else at.OUTSIDE
    if before == at.OUTSIDE:
        store_i64(state + 8 * at.SOURCE, -1)
        store_i64(state + 8 * at.SEQUENCE, offset)
        store_i64(state + 8 * at.COMMIT_TIME, 0)
    store_i64(state + 8 * at.TRANSACTION, after)
    return at.DONE
