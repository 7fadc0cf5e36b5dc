"""The scan over a window: transactions, statements and tables, without a look at row images.

What ends a transaction is what MySQL's ``Transaction_boundary_parser``
(libs/mysql/binlog/event/trx_boundary_parser.cpp) and MariaDB's ``Log_event::is_part_of_group`` (sql/log_event.h) say.
"""

from __future__ import annotations

from connectors.readers.binlog.kernels.log import scan_layout as at
from connectors.readers.binlog.kernels.log.gtids import NUMBER, TIME, mariadb_gtid, mysql_gtid, same_source
from connectors.readers.binlog.kernels.machine.jit import kernel
from connectors.readers.machine.memory import load_i64, load_u8, load_u16, load_u32, store_i64

__all__ = ["scan"]

_BEGIN = int.from_bytes(b"BEGIN", "little")
_COMMIT = int.from_bytes(b"COMMIT", "little")
_ROLLBACK = int.from_bytes(b"ROLLBACK", "little", signed=True)
_SAVEPOINT = int.from_bytes(b"SAVEPOIN", "little", signed=True)
_RELEASE = int.from_bytes(b"RELEASE ", "little", signed=True)
_XA = int.from_bytes(b"XA ", "little")
_S, _E, _C, _R = b"SECR"

_SQL_STATEMENT, _SQL_BEGIN, _SQL_COMMIT, _SQL_ROLLBACK, _SQL_SAVEPOINT, _SQL_NOTHING = range(6)
_SQL_XA_START, _SQL_XA_OUTCOME = 6, 7
_DUMMY_TABLE = 0xFFFFFF
_ANONYMOUS = 34
_LAST_NUMBER = 2**63 - 2

# Flags of MariaDB's GTID event, and those behind its group's number.
_GROUP_COMMIT, _PREPARED_XA, _OF_XA = 2, 64, 0xC0
_START_ALTER, _ROLLBACK_ALTER = 2, 8


@kernel
def _get(state, word):
    return load_i64(state + 8 * word)


@kernel
def _set(state, word, value):
    store_i64(state + 8 * word, value)


@kernel
def _sql_kind(text, size):
    """What a statement's text does to its transaction, from its first bytes, which the server writes in capitals."""
    if size < 5:
        return _SQL_STATEMENT
    if size == 5:
        return _SQL_BEGIN if load_u32(text) | load_u8(text + 4) << 32 == _BEGIN else _SQL_STATEMENT
    if size == 6:
        return _SQL_COMMIT if load_u32(text) | load_u16(text + 4) << 32 == _COMMIT else _SQL_STATEMENT
    if load_u32(text) & 0xFFFFFF == _XA:
        first = load_u8(text + 3)
        if first == _S:
            return _SQL_XA_START
        return _SQL_NOTHING if first == _E else _SQL_XA_OUTCOME if first in (_C, _R) else _SQL_STATEMENT
    if size < 8:
        return _SQL_STATEMENT
    word = load_i64(text)
    if word == _ROLLBACK:
        return _SQL_ROLLBACK if size == 8 else _SQL_SAVEPOINT
    if word == _SAVEPOINT:
        return _SQL_SAVEPOINT
    return _SQL_NOTHING if word == _RELEASE else _SQL_STATEMENT


@kernel
def _is_contained(intervals, source, number):
    low = load_i64(source + 8 * at.INTERVALS)
    end = load_i64(source + 8 * at.INTERVALS_END)
    high = end
    while low < high:
        middle = (low + high) >> 1
        if load_i64(intervals + 16 * middle + 8) < number:
            low = middle + 1
        else:
            high = middle
    return low < end and load_i64(intervals + 16 * low) <= number


@kernel
def _find_source(state, sources):
    gtid = state + 8 * at.GTID
    # The source of the transaction before is nearly always the one.
    before = _get(state, at.SOURCE)
    if before >= 0 and same_source(sources + 8 * at.SOURCE_WORDS * before, gtid):
        return before
    for index in range(_get(state, at.SOURCES)):
        if same_source(sources + 8 * at.SOURCE_WORDS * index, gtid):
            return index
    return -1


@kernel
def _announce_mysql(state, sources, intervals, body, end, kind):
    """Takes a GTID, ANONYMOUS_GTID or GTID_TAGGED event; the code of return."""
    gtid = state + 8 * at.GTID
    if not mysql_gtid(body, end, kind, gtid):
        return at.SHORT
    source = -1
    number = 0
    contained = False
    if kind == _ANONYMOUS and _get(state, at.BY_GTID):
        return at.ANONYMOUS
    if kind != _ANONYMOUS:
        source = _find_source(state, sources)
        if source < 0:
            return at.NEW_SOURCE
        number = load_i64(gtid + 8 * NUMBER)
        if number < 1 or number > _LAST_NUMBER:
            return at.NUMBERLESS
        contained = _is_contained(intervals, sources + 8 * at.SOURCE_WORDS * source, number)
    if not contained and (_get(state, at.GAP) or _get(state, at.FIND_ONLY)):
        return at.GAP_ENDS
    _set(state, at.SOURCE, source)
    _set(state, at.NUMBER, number)
    _set(state, at.GROUP, at.ANNOUNCED)
    _set(state, at.STANDALONE, 0)
    _set(state, at.SKIP, at.CONTAINED if contained else at.NOT_SKIPPED)
    _set(state, at.XA, 0)
    time_us = load_i64(gtid + 8 * TIME)
    _set(state, at.TIME_IS_KNOWN, time_us != 0)
    _set(state, at.TIME_US, time_us)
    return at.DONE


@kernel
def _changes_nothing(body, end, flags):
    """Whether a MariaDB GTID event begins or takes back an ALTER in two phases, whose COMMIT ALTER says all again."""
    extra = body + (21 if flags & _GROUP_COMMIT else 13)
    return flags & _OF_XA == 0 and extra < end and load_u8(extra) & (_START_ALTER | _ROLLBACK_ALTER) != 0


@kernel
def _announce_mariadb(state, sources, intervals, header, end):
    """Takes a MariaDB GTID event; the code of return."""
    body = header + 19
    if end - body < 13:
        return at.SHORT
    flags = load_u8(body + 12)
    mariadb_gtid(body, 0, state + 8 * at.GTID)
    source = _find_source(state, sources)
    if source < 0:
        return at.NEW_SOURCE
    number = _get(state, at.GTID + NUMBER)
    address = sources + 8 * at.SOURCE_WORDS * source
    contained = _is_contained(intervals, address, number)
    if not contained:
        if _get(state, at.GAP) or _get(state, at.FIND_ONLY):
            return at.GAP_ENDS
        if number <= load_i64(address + 8 * at.LAST):
            return at.DESCENDING
        _set(address, at.LAST, number)
    _set(state, at.SOURCE, source)
    _set(state, at.NUMBER, number)
    _set(state, at.SERVER, load_u32(header + 5))
    _set(state, at.STANDALONE, flags & 1)
    _set(state, at.GROUP, at.ANNOUNCED if flags & 1 else at.OPEN)
    counted = at.COUNTED if _changes_nothing(body, end, flags) else at.NOT_SKIPPED
    _set(state, at.SKIP, at.CONTAINED if contained else counted)
    _set(state, at.TIME_IS_KNOWN, 0)
    _set(state, at.XA, flags & _PREPARED_XA)
    return at.DONE


@kernel
def _end_group(state, sources, records, behind):
    """The transaction ends at offset *behind*; the code of return."""
    _set(state, at.GROUP, at.OUTSIDE)
    before = _get(state, at.GROUP_END)
    _set(state, at.GROUP_END, behind)
    _set(state, at.LAST_TIME_US, _get(state, at.TIME_US))
    if _get(state, at.SKIP) == at.CONTAINED:
        if _get(state, at.GAP) == 0:
            _set(state, at.GAP, 1)
            _set(state, at.GAP_START, before)
        return at.DONE
    source = _get(state, at.SOURCE)
    count = _get(state, at.RECORDS)
    stop = False
    if source >= 0:
        number = _get(state, at.NUMBER)
        record = records + 24 * count
        store_i64(record, source)
        store_i64(record + 8, number)
        store_i64(record + 16, _get(state, at.SERVER))
        count += 1
        _set(state, at.RECORDS, count)
        stop = load_i64(sources + 8 * (at.SOURCE_WORDS * source + at.STOP_AT)) == number
    if stop or behind >= _get(state, at.BOUND_AT):
        return at.BOUND
    return at.DONE


@kernel
def _table_number(body):
    return load_u32(body) | load_u16(body + 4) << 32


@kernel
def _slot(maps, number):
    """Address of the table number's entry, or of the free one where it would stand."""
    mask = load_i64(maps)
    index = number & mask
    while True:
        address = maps + 8 * at.MAP_WORDS * (index + 1)
        found = load_i64(address)
        if found in (number, -1):
            return address
        index = (index + 1) & mask


@kernel
def _is_seen(maps, store, body, end):
    entry = _slot(maps, _table_number(body))
    size = end - body
    if load_i64(entry) < 0 or load_i64(entry + 8 * at.MAP_SIZE) != size:
        return False
    kept = store + load_i64(entry + 8 * at.MAP_AT)
    done = 0
    while size - done >= 8:
        if load_i64(body + done) != load_i64(kept + done):
            return False
        done += 8
    while done < size:
        if load_u8(body + done) != load_u8(kept + done):
            return False
        done += 1
    return True


@kernel
def _rows(state, maps, body, end):
    """Takes a row event of any kind, whose images are nobody's matter here; the code of return."""
    if end - body < 8:
        return at.SHORT
    number = _table_number(body)
    if number == _DUMMY_TABLE:
        return at.DONE
    entry = _slot(maps, number)
    if load_i64(entry) < 0:
        _set(state, at.DETAIL, number)
        return at.UNMAPPED
    return at.DONE


@kernel
def _query(state, sources, records, header, end, behind, kind):
    """Takes a QUERY or EXECUTE_LOAD_QUERY event; the code of return."""
    body = header + 19
    skipped = _get(state, at.SKIP) != at.NOT_SKIPPED
    sql = _SQL_STATEMENT
    if kind == 2:
        if end - body < 14:
            return at.SHORT
        text = body + 13 + load_u16(body + 11) + load_u8(body + 8) + 1
        if text > end:
            return at.SHORT
        sql = _sql_kind(text, end - text)
    if sql == _SQL_NOTHING or (sql == _SQL_SAVEPOINT and skipped):
        return at.DONE
    if sql == _SQL_SAVEPOINT:
        return at.SAVEPOINT
    if sql in (_SQL_BEGIN, _SQL_XA_START):
        _set(state, at.GROUP, at.OPEN)
        _set(state, at.XA, sql == _SQL_XA_START)
        return at.DONE
    if sql == _SQL_COMMIT or (sql != _SQL_STATEMENT and skipped):
        return _end_group(state, sources, records, behind)
    if sql == _SQL_ROLLBACK:
        if _get(state, at.HAS_ROWS) == 0:
            return _end_group(state, sources, records, behind)
        _set(state, at.ENDING, behind)
        return at.ROLLED_BACK
    if sql == _SQL_XA_OUTCOME:
        _set(state, at.ENDING, behind)
        return at.XA_OUTCOME
    ends = _get(state, at.GROUP) == at.ANNOUNCED
    if skipped:
        return _end_group(state, sources, records, behind) if ends else at.DONE
    _set(state, at.ENDING, behind if ends else 0)
    return at.STATEMENT


@kernel
def _xa_prepare(state, sources, records, body, end, behind):
    """Takes an XA_PREPARE event, whose first byte says whether it commits in one phase; the code of return."""
    if end - body < 13:
        return at.SHORT
    if load_u8(body):
        return _end_group(state, sources, records, behind)
    _set(state, at.ENDING, behind)
    return at.XA_PREPARED


@kernel
def _is_of_connection_or_file(kind):
    return kind in (3, 4, 15, 27, 35, 41, 161, 163)


@kernel
def _is_row_event(kind):
    return 23 <= kind <= 25 or 30 <= kind <= 32 or kind == 39 or 166 <= kind <= 171


@kernel
def _inside(state, sources, records, maps, store, header, end, behind, kind):
    """Takes an event inside a transaction; the code of return."""
    body = header + 19
    if kind in (2, 18):
        return _query(state, sources, records, header, end, behind, kind)
    skipped = _get(state, at.SKIP) != at.NOT_SKIPPED
    if _is_row_event(kind):
        if not skipped:
            _set(state, at.HAS_ROWS, 1)
            code = _rows(state, maps, body, end)
            if code:
                return code
        if end - body < 8:
            return at.SHORT
        if _get(state, at.STANDALONE) and load_u16(body + 6) & 1:
            return _end_group(state, sources, records, behind)
        return at.DONE
    if kind == 19:
        if skipped:
            return at.DONE
        if end - body < 8 or not _is_seen(maps, store, body, end):
            return at.MAPPED
        _set(state, at.DETAIL, _table_number(body))
        return at.XA_MAPPED if _get(state, at.XA) else at.DONE
    if kind == 16 or (kind == 38 and skipped):
        return _end_group(state, sources, records, behind)
    if kind == 38:
        return _xa_prepare(state, sources, records, body, end, behind)
    if kind in (26, 40, 165):
        if not skipped:
            return at.UNSUPPORTED
        if kind != 165 or _get(state, at.GROUP) == at.ANNOUNCED:
            return _end_group(state, sources, records, behind)
        return at.DONE
    known = kind in (5, 9, 11, 13, 14, 17, 28, 29, 36, 37, 160)
    return at.DONE if known or skipped or load_u16(header + 17) & 0x80 else at.UNSUPPORTED


@kernel
def _outside(state, header, kind):
    """Takes an event between transactions; the code of return."""
    if kind in (35, 163):
        return at.OTHER
    if _is_of_connection_or_file(kind) or load_u16(header + 17) & 0x80:
        return at.DONE
    if kind == 26 or kind == 164 or kind > 171:
        return at.UNSUPPORTED
    return at.STRAY


@kernel
def _event(state, sources, intervals, records, maps, store, header, end, offset, kind):
    """Takes one event; the code of return."""
    group = _get(state, at.GROUP)
    if kind in (33, 34, 42, 162):
        if group:
            return at.NESTED
        if (kind == 162) != (_get(state, at.IS_MARIADB) != 0):
            return at.FOREIGN
        if kind == 162:
            code = _announce_mariadb(state, sources, intervals, header, end)
        else:
            code = _announce_mysql(state, sources, intervals, header + 19, end, kind)
        if code == at.DONE:
            if _get(state, at.COUNT_ONLY) and _get(state, at.SKIP) == at.NOT_SKIPPED:
                _set(state, at.SKIP, at.COUNTED)
            if _get(state, at.TIME_IS_KNOWN) == 0:
                _set(state, at.TIME_US, load_u32(header) * 1000000)
            _set(state, at.GROUP_START, offset)
            _set(state, at.ORDINAL, 0)
            _set(state, at.HAS_ROWS, 0)
        return code
    if group == at.OUTSIDE:
        return _outside(state, header, kind)
    if _is_of_connection_or_file(kind):
        return at.DONE
    _set(state, at.ORDINAL, _get(state, at.ORDINAL) + 1)
    return _inside(state, sources, records, maps, store, header, end, offset + load_u32(header + 9), kind)


@kernel
def scan(state, sources, intervals, records, room, maps, store, buffer, starts, ends, offsets, count):
    """Scans on from the state's event to the last of *count*; the code why it returned (see ``scan_layout``).

    All but *room* (of the records) and *count* are addresses. After NEW_SOURCE and GAP_ENDS the same event comes again,
    after all other returns the next one.
    """
    if _get(state, at.ENDING):
        behind = _get(state, at.ENDING)
        _set(state, at.ENDING, 0)
        code = _end_group(state, sources, records, behind)
        if code:
            return code
    index = _get(state, at.EVENT)
    while index < count:
        if _get(state, at.RECORDS) >= room:
            _set(state, at.EVENT, index)
            return at.RECORDS_FULL
        header = buffer + load_i64(starts + 8 * index)
        end = buffer + load_i64(ends + 8 * index)
        kind = load_u8(header + 4)
        code = _event(state, sources, intervals, records, maps, store, header, end, load_i64(offsets + 8 * index), kind)
        _set(state, at.LAST_KIND, kind)
        if code in (at.NEW_SOURCE, at.GAP_ENDS):
            _set(state, at.EVENT, index)
            return code
        index += 1
        if code:
            _set(state, at.EVENT, index)
            return code
    _set(state, at.EVENT, index)
    return at.DONE
