"""TABLE_MAP events and the row events that refer to them: WRITE, UPDATE and DELETE, versions 1 and 2, partial updates."""

from __future__ import annotations

from connectors.readers.binlog.kernels.machine.jit import kernel
from connectors.readers.binlog.kernels.rows.images import images
from connectors.readers.binlog.kernels.rows.partial_images import partial_row
from connectors.readers.binlog.kernels.values import layout as at
from connectors.readers.machine.memory import (
    fill_zero,
    load_i64,
    load_u8,
    load_u16,
    load_u32,
    store_i8,
    store_i16,
    store_i32,
    store_i64,
)

__all__ = ["rows", "table_map"]

_WRITE, _UPDATE, _DELETE = 0, 1, 2
_APPEND, _RETRACT, _CORRECT_FROM, _CORRECT_TO = 0, 1, 2, 3
_DUMMY_NUMBER = 0xFFFFFF
_PARTIAL_UPDATE = 39


@kernel
def _corrupt(state: int, reason: int) -> int:
    store_i64(state + 8 * at.DETAIL, reason)
    return at.CORRUPT


@kernel
def _equal(one: int, other: int, count: int) -> bool:
    """Whether *count* bytes at two addresses are the same."""
    done = 0
    while count - done >= 8:
        if load_i64(one + done) != load_i64(other + done):
            return False
        done += 8
    while done < count:
        if load_u8(one + done) != load_u8(other + done):
            return False
        done += 1
    return True


@kernel
def _map_entry(maps: int, mask: int, number: int) -> int:
    """Address of the table number's entry, or of the free one where it belongs."""
    index = number & mask
    while True:
        entry = maps + 8 * at.MAP_WORDS * index
        held = load_i64(entry)
        if held == number + 1 or held == 0:
            return entry
        index = (index + 1) & mask


@kernel
def _table_number(body: int) -> int:
    return load_u32(body) | (load_u16(body + 4) << 32)


@kernel
def table_map(state: int, body: int, end: int) -> int:
    """Compares a TABLE_MAP with the bytes that its table number is bound to."""
    if end - body < 8:
        return _corrupt(state, at.EVENT_SHORT)
    entry = _map_entry(load_i64(state + 8 * at.MAPS), load_i64(state + 8 * at.MAPS_MASK), _table_number(body))
    length = end - body - 8
    if (
        load_i64(entry + 8 * at.MAP_NUMBER)
        and load_i64(entry + 8 * at.MAP_LENGTH) == length
        and _equal(load_i64(entry + 8 * at.MAP_BYTES), body + 8, length)
    ):
        return at.DONE
    return at.NEW_MAP


@kernel
def _is_full(position: int, columns: int) -> bool:
    """Whether the columns-present bitmap has a bit for each column."""
    whole = columns >> 3
    for index in range(whole):
        if load_u8(position + index) != 0xFF:
            return False
    rest = (1 << (columns & 7)) - 1
    return load_u8(position + whole) & rest == rest if rest else True


@kernel
def _is_empty(position: int, columns: int) -> bool:
    """Whether the columns-present bitmap has no bit."""
    bits = 0
    for index in range((columns + 7) >> 3):
        bits |= load_u8(position + index)
    return bits == 0


@kernel
def _same_key(table: int, before: int, after: int) -> bool:
    """Whether two images, given by where their columns start, have the same bytes in all key columns."""
    keys = load_i64(table + 8 * at.KEYS)
    for index in range(load_i64(table + 8 * at.KEY_COUNT)):
        column = 8 * load_i64(keys + 8 * index)
        one, other = load_i64(before + column), load_i64(after + column)
        length = load_i64(before + column + 8) - one
        if load_i64(after + column + 8) - other != length or not _equal(one, other, length):
            return False
    return True


@kernel
def _stamp(state: int, table: int, kind: int, count: int, event_time: int, ordinal: int) -> None:
    """Writes the changelog columns of the last *count* located images, the rows behind those that the table has."""
    row = load_i64(table + 8 * at.ROWS)
    ops = load_i64(table + 8 * at.OP) + row
    times = load_i64(table + 8 * at.EVENT_TIME) + 8 * row
    sources = load_i64(table + 8 * at.ROW_SOURCE) + 2 * row
    sequences = load_i64(table + 8 * at.ROW_SEQUENCE) + 8 * row
    ordinals = load_i64(table + 8 * at.ROW_ORDINAL) + 4 * row
    source, sequence = load_i64(state + 8 * at.SOURCE), load_i64(state + 8 * at.SEQUENCE)
    op = _APPEND if kind == _WRITE else _RETRACT
    # A loop each, which becomes few wide stores.
    for index in range(count):
        store_i8(ops + index, op)
    for index in range(count):
        store_i64(times + 8 * index, event_time)
    for index in range(count):
        store_i16(sources + 2 * index, source)
    for index in range(count):
        store_i64(sequences + 8 * index, sequence)
    for index in range(count):
        store_i32(ordinals + 4 * index, ordinal)
    if kind == _UPDATE:
        before = load_i64(state + 8 * at.SCRATCH)
        pitch = 8 * (load_i64(table + 8 * at.COLUMNS) + 1)
        for index in range(0, count, 2):
            corrects = _same_key(table, before, before + pitch)
            store_i8(ops + index, _CORRECT_FROM if corrects else _RETRACT)
            store_i8(ops + index + 1, _CORRECT_TO if corrects else _APPEND)
            before += 2 * pitch


@kernel
def _room(state: int, table: int, need: int) -> int:
    """DONE, or what must happen before *need* more rows go into the table's chunk. Depends on the log alone."""
    count = load_i64(table + 8 * at.ROWS)
    if count and (
        count + need > load_i64(state + 8 * at.MAX_ROWS)
        or load_i64(table + 8 * at.BYTES) >= load_i64(state + 8 * at.MAX_BYTES)
    ):
        return at.FLUSH
    if load_i64(state + 8 * at.OPEN_BYTES) >= load_i64(state + 8 * at.MAX_OPEN_BYTES):
        return at.FLUSH_ALL
    if count + need > load_i64(table + 8 * at.CAPACITY):
        return at.GROW_ROWS
    return at.DONE


@kernel
def _all_rows(
    state: int,
    table: int,
    position: int,
    end: int,
    limit: int,
    kind: int,
    event_time: int,
    ordinal: int,
    body: int,
    partial: int,
    options: int,
) -> int:
    """The rows of one event from *position* on; keeps in the state how far it came.

    *partial*: address of the bitmaps of columns that images have, 0 where they have all. *options*: see ``partial_row``.
    """
    pitch = 8 * (load_i64(table + 8 * at.COLUMNS) + 1)
    need = 2 if kind == _UPDATE else 1
    code = at.DONE
    # One row whose columns all have their defaults takes no bytes; of several the server makes no event.
    empty = partial != 0 and position == end and kind == _WRITE and _is_empty(partial, load_i64(table + 8 * at.COLUMNS))
    while position < end or empty:
        code = _room(state, table, need)
        if code:
            break
        row = load_i64(table + 8 * at.ROWS)
        flags = load_i64(table + 8 * at.FLAGS)
        if partial:
            if flags == 0:
                code = at.PARTIAL
                break
            count = need
            behind = partial_row(state, table, position, end, limit, row, partial, need, options)
            if behind == position and not empty:
                code = _corrupt(state, at.EVENT_SHORT)
                break
        else:
            count = images(state, table, position, end, limit, need)
            # Where the last one's last column ends.
            behind = load_i64(load_i64(state + 8 * at.SCRATCH) + pitch * count - 8) if count > 0 else count
            if flags and count > 0:
                stride = at.FLAG_MAPS * ((load_i64(table + 8 * at.COLUMNS) + 7) >> 3)
                fill_zero(flags + stride * row, stride * count)
        if behind < 0:
            code = -behind
            break
        _stamp(state, table, kind, count, event_time, ordinal)
        store_i64(table + 8 * at.ROWS, row + count)
        grown = behind - position + count * load_i64(table + 8 * at.FIXED)
        store_i64(table + 8 * at.BYTES, load_i64(table + 8 * at.BYTES) + grown)
        store_i64(state + 8 * at.OPEN_BYTES, load_i64(state + 8 * at.OPEN_BYTES) + grown)
        position = behind
        empty = False
    store_i64(state + 8 * at.AT, position - body)
    return code


@kernel
def rows(state: int, header: int, end: int, limit: int, kind: int, ordinal: int) -> int:
    """A row event: table number 6, flags 2, in version 2 extra data, then count of columns, bitmaps, rows."""
    body = header + 19
    second = kind >= 30
    position = body + (10 if second else 8)
    if end - position < 1:
        return _corrupt(state, at.EVENT_SHORT)
    number = _table_number(body)
    if number == _DUMMY_NUMBER:
        return at.DONE
    entry = _map_entry(load_i64(state + 8 * at.MAPS), load_i64(state + 8 * at.MAPS_MASK), number)
    if load_i64(entry) == 0:
        return _corrupt(state, at.NO_MAP)
    if load_i64(state + 8 * at.TRANSACTION) != at.OPEN:
        return _corrupt(state, at.NO_TRANSACTION)
    slot = load_i64(entry + 8 * at.MAP_SLOT)
    if slot < 0:
        return at.DONE
    store_i64(state + 8 * at.SLOT, slot)
    table = load_i64(state + 8 * at.TABLES) + 8 * at.TABLE_WORDS * slot
    action = _UPDATE if kind == _PARTIAL_UPDATE else kind - (30 if second else 23)
    if second:
        position += load_u16(body + 8) - 2
    columns = load_i64(table + 8 * at.COLUMNS)
    bitmap = (columns + 7) >> 3
    prefix = 1 if columns < 251 else 3
    bitmaps = position + prefix
    images = 2 if action == _UPDATE else 1
    if position < body or end - bitmaps < bitmap * images:
        return _corrupt(state, at.EVENT_SHORT)
    found = load_u8(position) if prefix == 1 else load_u16(position + 1)
    if found != columns or (prefix == 3 and load_u8(position) != 252):
        return _corrupt(state, at.COLUMN_COUNT)
    is_full = kind != _PARTIAL_UPDATE
    for index in range(images):
        is_full = is_full and _is_full(bitmaps + bitmap * index, columns)
    resumed = load_i64(state + 8 * at.AT)
    position = body + resumed if resumed else bitmaps + bitmap * images
    event_time = load_i64(state + 8 * at.COMMIT_TIME)
    if event_time == 0:
        event_time = load_u32(header) * 1000000
    return _all_rows(
        state,
        table,
        position,
        end,
        limit,
        action,
        event_time,
        ordinal,
        body,
        0 if is_full else bitmaps,
        1 if kind == _PARTIAL_UPDATE else 0,
    )
