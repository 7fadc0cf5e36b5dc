"""A walk over messages of Avro, led by instructions: where each value stands, and which rows the messages are.

What is not certainly whole and of the schema is left to the library. Every read is behind a comparison with the message's end.
"""

from __future__ import annotations

from connectors.readers.kafka.kernels import avro_layout as avro
from connectors.readers.kafka.kernels import layout as at
from connectors.readers.kafka.kernels.jit import inlined, kernel
from connectors.readers.kafka.kernels.tokens import character, length_of, same, start_of
from connectors.readers.machine.memory import fill_zero, load_i64, load_u8, shift_right, store_i8, store_i64

__all__ = ["locate_avro", "varint_end", "zigzag"]

_HIGH = -0x7F7F7F7F7F7F7F80  # 0x80 in each byte
_LONGEST_VARINT = 10
_APPEND, _RETRACT, _CORRECT_FROM, _CORRECT_TO = 0, 1, 2, 3
_C, _R, _U, _D = 99, 114, 117, 100
_MOST_US = 1 << 62
_MOST_MS = 1 << 52


@inlined
def varint_end(position: int, end: int) -> int:
    """The address behind the integer at *position*; 0 where it is not whole, or none of 64 bits."""
    behind = position
    while behind < end and behind - position < _LONGEST_VARINT:
        byte = load_u8(behind)
        behind += 1
        if byte < 0x80:
            return 0 if behind - position == _LONGEST_VARINT and byte > 1 else behind
    return 0


@inlined
def zigzag(position: int, behind: int) -> int:
    """The number of the integer from *position* to *behind*."""
    found = 0
    shift = 0
    while position < behind:
        found |= (load_u8(position) & 0x7F) << shift
        shift += 7
        position += 1
    return shift_right(found, 1) ^ -(found & 1)


@kernel
def _is_text(position: int, end: int) -> bool:
    """Whether the bytes are UTF-8. The bytes behind them may be read."""
    while position < end:
        if end - position >= 8 and load_i64(position) & _HIGH == 0:
            position += 8
        elif load_u8(position) < 0x80:
            position += 1
        else:
            size = character(position)
            if size == 0:
                return False
            position += size
    return position == end


@kernel
def _items_end(position: int, end: int, size: int) -> int:
    """The address behind an array of items of *size* bytes; 0 where it is not whole, or tells its bytes, which no writer of Connect's does."""
    while True:
        position, begin = varint_end(position, end), position
        if position == 0:
            return 0
        count = zigzag(begin, position)
        if count == 0:
            return position
        if count < 0 or count > (end - position) // size:
            return 0
        position += count * size


@inlined
def _word(buffer: int, start: int, end: int, kind: int) -> int:
    return (kind << at.KIND_AT) | ((end - start) << at.START_BITS) | (start - buffer)


@kernel
def _walk(state: int, position: int, end: int) -> int:
    """The address behind the message's record; 0 where that is not told."""
    buffer = load_i64(state + 8 * avro.BUFFER)
    facts = load_i64(state + 8 * avro.FACTS)
    row_bytes = 8 * load_i64(state + 8 * avro.COLUMNS)
    instruction = load_i64(state + 8 * avro.INSTRUCTIONS)
    first = instruction
    image = facts
    nest = position
    while True:
        code = load_i64(instruction + 8 * avro.CODE)
        slot = load_i64(instruction + 8 * avro.SLOT)
        argument = load_i64(instruction + 8 * avro.ARGUMENT)
        target = image + 8 * slot if slot < avro.META else facts + 8 * (slot - avro.META)
        start = position
        kind = at.MISSING
        if code == avro.END:
            return position
        if code == avro.UNION:
            if position >= end:
                return 0
            branch = load_u8(position)
            if branch != 0 and branch != 2:
                return 0
            position += 1
            if branch == argument:
                if slot >= 0:
                    store_i64(target, at.NULL << at.KIND_AT)
                instruction = first + 8 * avro.CODE_WORDS * load_i64(instruction + 8 * avro.JUMP)
                continue
        elif code == avro.LONG:
            position = varint_end(position, end)
            if position == 0:
                return 0
            kind = avro.VARINT
            if slot == avro.META + avro.TIME_US or slot == avro.META + avro.TIME_MS:
                store_i64(target + 8, zigzag(start, position))
        elif code == avro.STRING or code == avro.BYTES:
            behind = varint_end(position, end)
            if behind == 0:
                return 0
            size = zigzag(position, behind)
            if size < 0 or size > end - behind or size > at.LENGTH_MASK:
                return 0
            start = behind
            position = behind + size
            kind = avro.BODY
            if code == avro.STRING:
                kind = at.TEXT
                if not _is_text(start, position):
                    return 0
        elif code == avro.FIXED:
            size = argument >> avro.FIXED_KIND_BITS
            if size > end - position:
                return 0
            position += size
            kind = argument & 0xFF
        elif code == avro.BOOLEAN:
            if position >= end or load_u8(position) > 1:
                return 0
            kind = at.FALSE + load_u8(position)
            position += 1
        elif code == avro.ITEMS:
            position = _items_end(position, end, argument)
            if position == 0:
                return 0
            kind = at.NESTED
        elif code == avro.NEST:
            nest = position
        elif code == avro.NESTED:
            start = nest
            kind = at.NESTED
        elif code == avro.ROW:
            used = load_i64(state + 8 * avro.IMAGES_USED)
            image = load_i64(state + 8 * avro.IMAGES) + row_bytes * used
            store_i64(state + 8 * avro.IMAGES_USED, used + 1)
            store_i64(facts + 8 * argument, used + 1)
        if kind and slot >= 0:
            if position - start > at.LENGTH_MASK:
                return 0
            store_i64(target, _word(buffer, start, position, kind))
        instruction += 8 * avro.CODE_WORDS


@inlined
def _is_name(buffer: int, word: int, name: int, length: int) -> bool:
    if shift_right(word, at.KIND_AT) != at.TEXT:
        return length == 0
    return length_of(word) == length and same(buffer + start_of(word), name, length)


@inlined
def _add(state: int, message: int, image: int, op: int) -> None:
    used = load_i64(state + 8 * avro.ROWS_USED)
    store_i64(load_i64(state + 8 * avro.ROW_IMAGE) + 8 * used, image - 1)
    store_i64(load_i64(state + 8 * avro.ROW_MESSAGE) + 8 * used, message)
    store_i8(load_i64(state + 8 * avro.ROW_OP) + used, op)
    facts = load_i64(state + 8 * avro.FACTS)
    place = load_i64(state + 8 * avro.ROW_PLACE) + 8 * avro.PLACE_WORDS * used
    store_i64(place, load_i64(facts + 8 * avro.OPERATION))
    store_i64(place + 8, load_i64(facts + 8 * avro.GTID))
    store_i64(place + 16, load_i64(facts + 8 * avro.FILE))
    store_i64(place + 24, load_i64(facts + 8 * avro.OFFSET))
    store_i64(place + 32, load_i64(facts + 8 * avro.EVENT_ROW))
    store_i64(state + 8 * avro.ROWS_USED, used + 1)


@kernel
def _changes(state: int, message: int) -> bool:
    """Adds the rows of a message; False, and none, where it is no change of rows, or none that is understood."""
    buffer, facts = load_i64(state + 8 * avro.BUFFER), load_i64(state + 8 * avro.FACTS)
    word = load_i64(facts + 8 * avro.OPERATION)
    if shift_right(word, at.KIND_AT) != at.TEXT or length_of(word) != 1:
        return False
    if load_i64(facts + 8 * avro.SOURCE) != 0:
        return False
    mark, mark_bytes = load_i64(state + 8 * avro.MARK), load_i64(state + 8 * avro.MARK_BYTES)
    if mark_bytes and _is_name(buffer, load_i64(facts + 8 * avro.SNAPSHOT), mark, mark_bytes):
        return False
    op = load_u8(buffer + start_of(word))
    time_us = 0
    if shift_right(load_i64(facts + 8 * avro.TIME_US), at.KIND_AT) == avro.VARINT:
        time_us = load_i64(facts + 8 * avro.TIME_US + 8)
        if time_us < -_MOST_US or time_us > _MOST_US:
            return False
    elif shift_right(load_i64(facts + 8 * avro.TIME_MS), at.KIND_AT) == avro.VARINT:
        time_us = load_i64(facts + 8 * avro.TIME_MS + 8)
        if time_us < -_MOST_MS or time_us > _MOST_MS:
            return False
        time_us *= 1000
    before, after = load_i64(facts + 8 * avro.BEFORE), load_i64(facts + 8 * avro.AFTER)
    # A row that is NULL has left a value of that kind, which is no image.
    before = before if shift_right(before, at.KIND_AT) == 0 else 0
    after = after if shift_right(after, at.KIND_AT) == 0 else 0
    if op == _C or op == _R:
        if after == 0:
            return False
        _add(state, message, after, _APPEND)
    elif op == _U:
        if after == 0 or (before == 0 and load_i64(state + 8 * avro.LONE_UPDATES) == 0):
            return False
        if before:
            _add(state, message, before, _CORRECT_FROM)
        _add(state, message, after, _CORRECT_TO)
    elif op == _D:
        if before == 0:
            return False
        _add(state, message, before, _RETRACT)
    else:
        return False
    store_i64(load_i64(state + 8 * avro.TIMES) + 8 * message, time_us)
    return True


@kernel
def locate_avro(state: int) -> None:
    """Looks at the messages of TODO, and gives those of the table their rows."""
    buffer = load_i64(state + 8 * avro.BUFFER)
    starts = load_i64(state + 8 * avro.STARTS)
    todo = load_i64(state + 8 * avro.TODO)
    status = load_i64(state + 8 * avro.STATUS)
    facts = load_i64(state + 8 * avro.FACTS)
    database, database_bytes = load_i64(state + 8 * avro.DATABASE), load_i64(state + 8 * avro.DATABASE_BYTES)
    table, table_bytes = load_i64(state + 8 * avro.TABLE), load_i64(state + 8 * avro.TABLE_BYTES)
    for number in range(load_i64(state + 8 * avro.TODO_COUNT)):
        message = load_i64(todo + 8 * number)
        position = buffer + load_i64(starts + 8 * message)
        end = buffer + load_i64(starts + 8 * message + 8)
        used = load_i64(state + 8 * avro.IMAGES_USED)
        fill_zero(facts, 8 * avro.META_WORDS)
        found = at.SLOW
        if _walk(state, position + load_i64(state + 8 * avro.HEADER_BYTES), end) == end:
            is_of_table = _is_name(buffer, load_i64(facts + 8 * avro.TABLE_NAME), table, table_bytes)
            is_of_table &= _is_name(buffer, load_i64(facts + 8 * avro.DATABASE_NAME), database, database_bytes)
            if not is_of_table:
                found = at.OPEN
            elif _changes(state, message):
                found = at.LOCATED
        store_i8(status + message, found)
        if found != at.LOCATED:
            store_i64(state + 8 * avro.IMAGES_USED, used)
