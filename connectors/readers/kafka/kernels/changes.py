"""Which rows a message is, from what was found in it; and which updates give a row another key."""

from __future__ import annotations

from connectors.readers.kafka.kernels import layout as at
from connectors.readers.kafka.kernels.digits import NO_INTEGER, integer
from connectors.readers.kafka.kernels.jit import inlined, kernel
from connectors.readers.kafka.kernels.tokens import length_of, same, start_of
from connectors.readers.machine.memory import load_i64, load_u8, shift_right, store_i8, store_i64

__all__ = ["changes", "is_of_table", "missing", "moves"]

_MINUS_ZERO = 0x302D
_OPEN_OBJECT = 123
_APPEND, _RETRACT, _CORRECT_FROM, _CORRECT_TO = 0, 1, 2, 3
_MOST = 1 << 62


@inlined
def _is_name(state: int, meta: int, slot_at: int, name_at: int) -> bool:
    """Whether the value in a slot is a name of the state."""
    word = load_i64(meta + 8 * load_i64(state + 8 * slot_at))
    length = load_i64(state + 8 * (name_at + 1))
    kind = shift_right(word, at.KIND_AT)
    if kind != at.TEXT:
        return length == 0 and kind <= at.NULL and load_i64(state + 8 * at.NAMES_MAY_LACK) != 0
    if length_of(word) != length:
        return False
    return same(load_i64(state + 8 * at.BUFFER) + start_of(word), load_i64(state + 8 * name_at), length)


@kernel
def is_of_table(state: int, meta: int) -> bool:
    """Whether a message is of the table that is looked for."""
    return _is_name(state, meta, at.TABLE_SLOT, at.TABLE) and _is_name(state, meta, at.DATABASE_SLOT, at.DATABASE)


@inlined
def _code(state: int, word: int) -> int:
    """The code of the operation in a slot; -1 of none that has rows."""
    length = length_of(word)
    if shift_right(word, at.KIND_AT) != at.TEXT or length == 0 or length > 8:
        return -1
    name = load_i64(load_i64(state + 8 * at.BUFFER) + start_of(word)) & shift_right(-1, 64 - 8 * length)
    known = load_i64(state + 8 * at.OPS)
    for _ in range(load_i64(state + 8 * at.OPS_COUNT)):
        if load_i64(known) == name:
            return load_i64(known + 8)
        known += 16
    return -1


@inlined
def _time_us(state: int, meta: int) -> int:
    """When the source changed the row; a number below TIME_LOW_US where that is not told."""
    none = load_i64(state + 8 * at.TIME_LOW_US) - 1
    word = load_i64(meta + 8 * load_i64(state + 8 * at.TIME_SLOT))
    unit_us = load_i64(state + 8 * at.TIME_UNIT_US)
    coarse = load_i64(state + 8 * at.COARSE_TIME_SLOT)
    if coarse >= 0 and shift_right(word, at.KIND_AT) <= at.NULL:
        word = load_i64(meta + 8 * coarse)
        unit_us = load_i64(state + 8 * at.COARSE_TIME_UNIT_US)
        if shift_right(word, at.KIND_AT) <= at.NULL:
            return 0
    if shift_right(word, at.KIND_AT) != at.INTEGER:
        return none
    found = integer(load_i64(state + 8 * at.BUFFER) + start_of(word), length_of(word))
    if found == NO_INTEGER or found > _MOST // unit_us or found < -_MOST // unit_us:
        return none
    return found * unit_us


@inlined
def _is_true(meta: int, slot: int) -> bool:
    return slot >= 0 and shift_right(load_i64(meta + 8 * slot), at.KIND_AT) == at.TRUE


@inlined
def _rows(state: int, meta: int, slot: int) -> int:
    """How many rows stand in a set; -1 where there is no such set, or it is not understood."""
    kind = load_i64(meta + 8 * slot)
    if kind == at.OBJECT or (kind == at.ARRAY and load_i64(state + 8 * at.WITH_ARRAYS) != 0):
        return load_i64(meta + 8 * (slot + 2))
    return -1


@inlined
def _is_no_row(meta: int, slot: int) -> bool:
    """Whether a set is NULL or missing."""
    kind = load_i64(meta + 8 * slot)
    return kind == 0 or shift_right(kind, at.KIND_AT) == at.NULL


@inlined
def _add(state: int, message: int, image: int, op: int, number: int) -> None:
    used = load_i64(state + 8 * at.ROWS_USED)
    store_i64(load_i64(state + 8 * at.ROW_IMAGE) + 8 * used, image)
    store_i64(load_i64(state + 8 * at.ROW_MESSAGE) + 8 * used, message)
    store_i8(load_i64(state + 8 * at.ROW_OP) + used, op)
    store_i64(load_i64(state + 8 * at.ROW_ORDINAL) + 8 * used, number)
    store_i64(state + 8 * at.ROWS_USED, used + 1)


@inlined
def _overlay(state: int, below: int, above: int) -> None:
    """Gives the image *above* what it lacks of the one *below*."""
    columns = load_i64(state + 8 * at.COLUMNS)
    images = load_i64(state + 8 * at.IMAGES)
    below = images + 8 * columns * below
    above = images + 8 * columns * above
    for column in range(columns):
        if load_i64(above + 8 * column) == 0:
            store_i64(above + 8 * column, load_i64(below + 8 * column))


@inlined
def _is_untold(state: int, meta: int, slot_at: int) -> bool:
    """Whether a message lacks a field that tells its schema."""
    slot = load_i64(state + 8 * slot_at)
    return slot >= 0 and load_i64(meta + 8 * slot) == 0


@kernel
def changes(state: int, message: int, meta: int) -> bool:
    """Adds the rows of a message; False, and none, where it is no change of rows, or none that is understood."""
    code = _code(state, load_i64(meta + 8 * load_i64(state + 8 * at.OP_SLOT)))
    if code < 0 or _is_true(meta, load_i64(state + 8 * at.SECOND_FALSE_SLOT)):
        return False
    if _is_true(meta, load_i64(state + 8 * at.FALSE_SLOT)):
        return False
    if _is_untold(state, meta, at.TOLD_SLOT) or _is_untold(state, meta, at.SECOND_TOLD_SLOT):
        return False
    source = load_i64(state + 8 * at.SOURCE_SLOT)
    if source >= 0 and load_i64(meta + 8 * source) != at.OBJECT:
        return False
    slot = load_i64(state + 8 * at.OBJECT_SLOT)
    if slot >= 0:
        word = load_i64(meta + 8 * slot)
        kind = shift_right(word, at.KIND_AT)
        if kind > at.NULL and kind != at.NESTED:
            return False
        if kind == at.NESTED and load_u8(load_i64(state + 8 * at.BUFFER) + start_of(word)) != _OPEN_OBJECT:
            return False
    time_us = _time_us(state, meta)
    if time_us < load_i64(state + 8 * at.TIME_LOW_US) or time_us > load_i64(state + 8 * at.TIME_HIGH_US):
        return False
    after, before = load_i64(state + 8 * at.AFTER_SLOT), load_i64(state + 8 * at.BEFORE_SLOT)
    is_strict = load_i64(state + 8 * at.WITH_ARRAYS) == 0
    if is_strict:
        # Whatever the operation is, both are rows or nothing.
        if _rows(state, meta, after) < 0 and not _is_no_row(meta, after):
            return False
        if _rows(state, meta, before) < 0 and not _is_no_row(meta, before):
            return False
    if code == at.DELETED:
        after = load_i64(state + 8 * at.DELETED_SLOT)
    count = _rows(state, meta, after)
    if count < 0:
        return False
    image = load_i64(meta + 8 * (after + 1))
    if code == at.UPDATED or (code == at.WRITTEN and not _is_no_row(meta, before)):
        if _rows(state, meta, before) != count:
            return False
        former = load_i64(meta + 8 * (before + 1))
        for number in range(count):
            if load_i64(state + 8 * at.IS_OVERLAY):
                _overlay(state, image + number, former + number)
            _add(state, message, former + number, _CORRECT_FROM, number)
            _add(state, message, image + number, _CORRECT_TO, number)
    else:
        op = _RETRACT if code == at.DELETED else _CORRECT_TO if code == at.WRITTEN else _APPEND
        for number in range(count):
            _add(state, message, image + number, op, number)
    store_i64(load_i64(state + 8 * at.TIMES) + 8 * message, time_us)
    return True


@inlined
def _differ(buffer: int, one: int, other: int) -> int:
    """1 where two values differ, 0 where they are the same, -1 where it takes more to tell."""
    kind, second = shift_right(one, at.KIND_AT), shift_right(other, at.KIND_AT)
    if kind <= at.NULL or second <= at.NULL:
        return 1 if (kind <= at.NULL) != (second <= at.NULL) else 0
    length = length_of(one)
    if kind == second and length == length_of(other) and same(buffer + start_of(one), buffer + start_of(other), length):
        return 0
    if kind == at.TEXT and (second == at.TEXT or second == at.INTEGER):
        return 1
    if kind == at.INTEGER and second == at.TEXT:
        return 1
    if kind == at.INTEGER and second == at.INTEGER:
        # Of all integers zero alone has two texts.
        zero = length == 2 and load_i64(buffer + start_of(one)) & 0xFFFF == _MINUS_ZERO
        zero |= length_of(other) == 2 and load_i64(buffer + start_of(other)) & 0xFFFF == _MINUS_ZERO
        return -1 if zero else 1
    return -1


@kernel
def moves(buffer: int, images: int, columns: int, rows: int, ops: int, count: int, keys: int, key_count: int) -> int:
    """Makes -R and +A of updates whose values of *key_count* columns differ; -1, or the first row about which that takes more to tell.

    Args:
        rows: address of a word a row: its image; *ops*: of a byte a row, both of *count* rows.
        keys: address of a word a column of the key.
    """
    row = 0
    while row < count:
        if load_u8(ops + row) != _CORRECT_FROM:
            row += 1
            continue
        one = images + 8 * columns * load_i64(rows + 8 * row)
        other = images + 8 * columns * load_i64(rows + 8 * row + 8)
        is_moved = False
        is_unsure = False
        for index in range(key_count):
            column = load_i64(keys + 8 * index)
            found = _differ(buffer, load_i64(one + 8 * column), load_i64(other + 8 * column))
            is_moved |= found > 0
            is_unsure |= found < 0
        if is_moved:
            store_i8(ops + row, _RETRACT)
            store_i8(ops + row + 1, _APPEND)
        elif is_unsure:
            return row
        row += 2
    return -1


@kernel
def missing(images: int, columns: int, column: int, rows: int, count: int) -> int:
    """How many rows have no value of a column, not even NULL."""
    found = 0
    for row in range(count):
        found += load_i64(images + 8 * (load_i64(rows + 8 * row) * columns + column)) == 0
    return found
