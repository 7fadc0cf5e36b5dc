"""The walk over a window's events: transactions, table numbers, and the rows of bound tables."""

from __future__ import annotations

from connectors.readers.binlog.kernels.log.transactions import begin_mariadb, begin_mysql, query
from connectors.readers.binlog.kernels.machine.jit import kernel
from connectors.readers.binlog.kernels.rows.row_events import rows, table_map
from connectors.readers.binlog.kernels.values import layout as at
from connectors.readers.machine.memory import load_i64, load_u8, load_u16, store_i64

__all__ = ["walk"]


@kernel
def _wrong(state: int, reason: int) -> int:
    store_i64(state + 8 * at.DETAIL, reason)
    return at.CORRUPT


@kernel
def _unsupported(state: int, kind: int) -> int:
    store_i64(state + 8 * at.DETAIL, kind)
    return at.UNSUPPORTED


@kernel
def _is_counted(kind: int) -> bool:
    """Whether an event stands inside transactions, rather than for the file or the connection."""
    return kind not in (3, 4, 15, 27, 35, 41, 161, 163)


@kernel
def _is_passed_over(kind: int) -> bool:
    """Counted events without meaning here: variables of statements, files to load, annotations, membership."""
    return kind in (5, 13, 14, 17, 18, 28, 29, 37, 160)


@kernel
def _is_reached(state: int, offset: int, ordinal: int) -> bool:
    """Whether an event stands where table numbers must be resolved anew, or behind."""
    bound = load_i64(state + 8 * at.REBIND)
    return offset > bound or (offset == bound and ordinal >= load_i64(state + 8 * at.REBIND_ORDINAL))


@kernel
def _event(state: int, header: int, end: int, limit: int, offset: int, kind: int, ordinal: int) -> int:
    """One counted event; the code of return."""
    body = header + 19
    if 23 <= kind <= 25 or 30 <= kind <= 32 or kind == 39:
        return rows(state, header, end, limit, kind, ordinal)
    if kind == 19:
        return table_map(state, body, end)
    if kind in (33, 34, 42):
        return begin_mysql(state, body, end, offset, kind)
    if kind == 162:
        return begin_mariadb(state, header, end)
    if kind == 2:
        return query(state, body, end, offset)
    if kind == 16 or (kind == 38 and end > body and load_u8(body)):
        store_i64(state + 8 * at.TRANSACTION, at.OUTSIDE)
        return at.DONE
    if _is_passed_over(kind) or load_u16(header + 17) & 0x80:
        return at.DONE
    return _unsupported(state, kind)


@kernel
def walk(state: int, buffer: int, size: int, starts: int, ends: int, offsets: int, count: int) -> int:
    """Walks on from the state's event to the last of *count*; the code why it returned (see ``layout``).

    *state*, *buffer*, *starts*, *ends* and *offsets* are addresses. A return other than DONE, CORRUPT or UNSUPPORTED is
    answered by the caller, who then calls again.
    """
    index = load_i64(state + 8 * at.EVENT)
    code = at.DONE
    while index < count:
        start = load_i64(starts + 8 * index)
        end = load_i64(ends + 8 * index)
        if start < 0 or end > size or end - start < 19:
            code = _wrong(state, at.EVENT_BOUNDS)
            break
        offset = load_i64(offsets + 8 * index)
        kind = load_u8(buffer + start + 4)
        if _is_counted(kind):
            begins = load_i64(state + 8 * at.TRANSACTION) == at.OUTSIDE
            ordinal = 0 if begins else load_i64(state + 8 * at.ORDINAL) + 1
            if _is_reached(state, offset, ordinal):
                store_i64(state + 8 * at.DETAIL, ordinal)
                code = at.REBOUND
                break
            code = _event(state, buffer + start, buffer + end, buffer + size, offset, kind, ordinal)
            if code:
                if code == at.NEW_MAP:
                    store_i64(state + 8 * at.DETAIL, ordinal)
                break
            store_i64(state + 8 * at.ORDINAL, ordinal)
        store_i64(state + 8 * at.AT, 0)
        index += 1
    store_i64(state + 8 * at.EVENT, index)
    return code
