"""Where the values of messages stand: one walk over each, led by a tree of the names that are looked for.

Members mostly come in the order of the last message, so each name is first compared with the one that came next then.
"""

from __future__ import annotations

from connectors.readers.kafka.kernels import layout as at
from connectors.readers.kafka.kernels.changes import changes, is_of_table
from connectors.readers.kafka.kernels.jit import inlined, kernel
from connectors.readers.kafka.kernels.tokens import blank, length_of, same, skip, start_of, value
from connectors.readers.machine.memory import fill_zero, load_i64, load_u8, shift_right, store_i8, store_i64

__all__ = ["locate", "matching"]

_QUOTE, _OPEN_OBJECT, _CLOSE_OBJECT, _OPEN_ARRAY, _CLOSE_ARRAY, _COMMA, _COLON = 34, 123, 125, 91, 93, 44, 58
_SMALL_N = 110
_FULL = -2


@kernel
def _found(node: int, name: int, length: int) -> int:
    """The member of *node* with the name of *length* bytes; 0 where there is none."""
    member = load_i64(node + 8 * at.NODE_FIRST)
    for _ in range(load_i64(node + 8 * at.NODE_MEMBERS)):
        is_as_long = load_i64(member + 8 * at.MEMBER_NAME_BYTES) == length + 3
        if is_as_long and same(load_i64(member + 8 * at.MEMBER_NAME) + 1, name, length):
            return member
        member += 8 * at.MEMBER_WORDS
    return 0


@inlined
def _image(state: int) -> int:
    """A new row image, all its values missing; 0 where there is no room."""
    used = load_i64(state + 8 * at.IMAGES_USED)
    if used >= load_i64(state + 8 * at.IMAGES_ROOM):
        return 0
    store_i64(state + 8 * at.IMAGES_USED, used + 1)
    size = 8 * load_i64(state + 8 * at.COLUMNS)
    image = load_i64(state + 8 * at.IMAGES) + used * size
    fill_zero(image, size)
    return image


@inlined
def _name_bytes(buffer: int, position: int, end: int) -> int:
    """The bytes of the name at *position*, quotes left out; -1 where it is none, or has escapes."""
    if load_u8(position) != _QUOTE:
        return -1
    word = value(buffer, position, end)
    return length_of(word) if shift_right(word, at.KIND_AT) == at.TEXT else -1


@inlined
def _kept(state: int, buffer: int, position: int, end: int, member: int, slot_at: int) -> int:
    """Keeps the value at *position* in the slot of its member; the address behind it, -1 where it is not valid."""
    is_remembered = load_i64(member + 8 * at.MEMBER_ACTION) == at.REMEMBER
    length = load_i64(member + 8 * at.MEMBER_TEXT_BYTES) if is_remembered else 0
    if length and same(position, load_i64(member + 8 * at.MEMBER_TEXT), length):
        # The text is a whole object or array, or null: what follows it cannot belong to it, or is not valid.
        kind = at.NULL if load_u8(position) == _SMALL_N else at.NESTED
        store_i64(slot_at, kind << at.KIND_AT | length << at.START_BITS | (position - buffer))
        return position + length
    if length and load_i64(state + 8 * at.IN_ORDER):
        store_i64(state + 8 * at.IS_STRANGE, 1)
    word = value(buffer, position, end)
    if word == 0:
        return -1
    store_i64(slot_at, word)
    kind = shift_right(word, at.KIND_AT)
    is_text = kind == at.TEXT or kind == at.ESCAPED
    return buffer + start_of(word) + length_of(word) + (1 if is_text else 0)


@inlined
def _begin(level: int, node: int, frame: int, count_at: int) -> None:
    """Begins an object: *count_at* is the address of how many rows its array has, 0 where it is in none."""
    first = load_i64(node + 8 * at.NODE_FIRST)
    store_i64(level + 8 * at.LEVEL_NODE, node)
    store_i64(level + 8 * at.LEVEL_FRAME, frame)
    store_i64(level + 8 * at.LEVEL_EXPECTED, first)
    store_i64(level + 8 * at.LEVEL_BEHIND, first + 8 * at.MEMBER_WORDS * load_i64(node + 8 * at.NODE_MEMBERS))
    store_i64(level + 8 * at.LEVEL_COUNT, count_at)


@kernel
def _enter(state: int, level: int, member: int, slot_at: int, position: int) -> int:
    """Begins, on the level above, the object or the array of rows at *position*; the address behind the opening brace, -1 or _FULL."""
    above = level + 8 * at.LEVEL_WORDS
    if above == load_i64(state + 8 * at.STACK) + 8 * at.LEVEL_WORDS * at.LEVELS:
        return -1
    node = load_i64(member + 8 * at.MEMBER_NODE)
    if load_i64(member + 8 * at.MEMBER_ACTION) == at.ENTER:
        store_i64(slot_at, at.OBJECT)
        # Members of objects that are no rows go to the message's own frame.
        _begin(above, node, load_i64(level + 8 * at.LEVEL_FRAME), 0)
        return position + 1
    is_array = load_u8(position) == _OPEN_ARRAY
    if is_array:
        position = blank(position + 1)
        if load_u8(position) != _OPEN_OBJECT:
            return -1
    store_i64(slot_at, at.ARRAY if is_array else at.OBJECT)
    store_i64(slot_at + 8, load_i64(state + 8 * at.IMAGES_USED))
    store_i64(slot_at + 16, 1)
    frame = _image(state)
    if frame == 0:
        return _FULL
    _begin(above, node, frame, slot_at + 16 if is_array else 0)
    return position + 1


@kernel
def _leave(state: int, level: int, position: int) -> int:
    """Ends the object whose closing brace stands before *position*; the address behind it, or behind its array.

    Where another row of the array begins, the negative of the address behind its brace; -1 and _FULL as :func:`_walk`.
    """
    node = load_i64(level + 8 * at.LEVEL_NODE)
    is_whole = load_i64(level + 8 * at.LEVEL_EXPECTED) == load_i64(level + 8 * at.LEVEL_BEHIND)
    if not is_whole and load_i64(node + 8 * at.NODE_IS_ROW) == 1 and load_i64(state + 8 * at.IN_ORDER):
        store_i64(state + 8 * at.IS_STRANGE, 1)
    count_at = load_i64(level + 8 * at.LEVEL_COUNT)
    if count_at == 0:
        return position
    position = blank(position)
    byte = load_u8(position)
    if byte == _CLOSE_ARRAY:
        return position + 1
    position = blank(position + 1)
    if byte != _COMMA or load_u8(position) != _OPEN_OBJECT:
        return -1
    frame = _image(state)
    if frame == 0:
        return _FULL
    store_i64(count_at, load_i64(count_at) + 1)
    _begin(level, node, frame, count_at)
    return -position - 1


@kernel
def _other_name(state: int, level: int, position: int, end: int) -> int:
    """The address of the value behind the name at *position*, which is not the one that was expected; -1 where there is none.

    EXPECTED of the level is its member then, or 0.
    """
    length = _name_bytes(load_i64(state + 8 * at.BUFFER), position, end)
    if length < 0:
        return -1
    node = load_i64(level + 8 * at.LEVEL_NODE)
    member = _found(node, position + 1, length)
    is_row = load_i64(node + 8 * at.NODE_IS_ROW)
    if is_row and (member == 0 or (is_row == 1 and load_i64(state + 8 * at.IN_ORDER))):
        store_i64(state + 8 * at.IS_STRANGE, 1)
    store_i64(level + 8 * at.LEVEL_EXPECTED, member)
    position = blank(position + length + 2)
    return position + 1 if load_u8(position) == _COLON else -1


@inlined
def _is_expected(level: int, member: int, position: int) -> bool:
    """Whether the name of *member* stands at *position*."""
    if member == load_i64(level + 8 * at.LEVEL_BEHIND):
        return False
    return same(position, load_i64(member + 8 * at.MEMBER_NAME), load_i64(member + 8 * at.MEMBER_NAME_BYTES))


@kernel
def _walk(state: int, position: int, end: int, meta: int) -> int:
    """Walks the object at *position*; the address behind it, -1 where it is not understood, _FULL without room for its rows."""
    buffer = load_i64(state + 8 * at.BUFFER)
    level = lowest = load_i64(state + 8 * at.STACK)
    if load_u8(position) != _OPEN_OBJECT:
        return -1
    _begin(level, load_i64(state + 8 * at.ROOT), meta, 0)
    position = blank(position + 1)
    is_closing = load_u8(position) == _CLOSE_OBJECT
    while True:
        if is_closing:
            position = _leave(state, level, position + 1)
            if position == -1 or position == _FULL:
                return position
            if position < 0:
                position = blank(-position)
                is_closing = load_u8(position) == _CLOSE_OBJECT
                continue
            if level == lowest:
                return position
            level -= 8 * at.LEVEL_WORDS
        else:
            member = load_i64(level + 8 * at.LEVEL_EXPECTED)
            if _is_expected(level, member, position):
                position += load_i64(member + 8 * at.MEMBER_NAME_BYTES)
            else:
                position = _other_name(state, level, position, end)
                if position < 0:
                    return -1
                found = load_i64(level + 8 * at.LEVEL_EXPECTED)
                if found == 0:
                    store_i64(level + 8 * at.LEVEL_EXPECTED, member)
                member = found
            if load_u8(position) <= 32:
                position = blank(position)
            action = at.PASS_OVER
            slot_at = 0
            if member:
                store_i64(level + 8 * at.LEVEL_EXPECTED, member + 8 * at.MEMBER_WORDS)
                action = load_i64(member + 8 * at.MEMBER_ACTION)
                slot_at = load_i64(level + 8 * at.LEVEL_FRAME) + 8 * load_i64(member + 8 * at.MEMBER_SLOT)
            if action == at.PASS_OVER:
                position = skip(position, end)
            elif load_i64(slot_at):
                return -1  # it was there before: the last one counts
            else:
                byte = load_u8(position)
                is_array = byte == _OPEN_ARRAY and action == at.ROWS
                if is_array or (byte == _OPEN_OBJECT and (action == at.ENTER or action == at.ROWS)):
                    position = _enter(state, level, member, slot_at, position)
                    if position < 0:
                        return position
                    level += 8 * at.LEVEL_WORDS
                    position = blank(position)
                    is_closing = load_u8(position) == _CLOSE_OBJECT
                    continue
                position = _kept(state, buffer, position, end, member, slot_at)
            if position < 0:
                return -1
        # Behind a value.
        position = blank(position)
        byte = load_u8(position)
        is_closing = byte == _CLOSE_OBJECT
        if byte == _COMMA:
            position = blank(position + 1)
        elif not is_closing:
            return -1


@kernel
def locate(state: int) -> int:
    """Looks at the messages of TODO from DONE on, and gives those of the table their rows; how many were looked at.

    That is less than TODO_COUNT where there is no room for more images.
    """
    buffer = load_i64(state + 8 * at.BUFFER)
    starts = load_i64(state + 8 * at.STARTS)
    todo = load_i64(state + 8 * at.TODO)
    status = load_i64(state + 8 * at.STATUS)
    meta_bytes = 8 * load_i64(state + 8 * at.META_COUNT)
    prefix, prefix_bytes = load_i64(state + 8 * at.PREFIX), load_i64(state + 8 * at.PREFIX_BYTES)
    suffix = load_i64(state + 8 * at.SUFFIX)
    done = load_i64(state + 8 * at.DONE)
    while done < load_i64(state + 8 * at.TODO_COUNT):
        message = load_i64(todo + 8 * done)
        meta = load_i64(state + 8 * at.META) + message * meta_bytes
        position = buffer + load_i64(starts + 8 * message)
        end = buffer + load_i64(starts + 8 * message + 8)
        # Where an earlier pass found the names they need not be looked for again.
        is_other = load_i64(meta + 8 * load_i64(state + 8 * at.TABLE_SLOT)) != 0 and not is_of_table(state, meta)
        if prefix_bytes:
            is_other |= end - position <= prefix_bytes or not same(position, prefix, prefix_bytes)
            position += prefix_bytes
        if not is_other:
            fill_zero(meta, meta_bytes)
            used = load_i64(state + 8 * at.IMAGES_USED)
            store_i64(state + 8 * at.IS_STRANGE, 0)
            position = _walk(state, blank(position), end, meta)
            if position == _FULL:
                store_i64(state + 8 * at.IMAGES_USED, used)
                fill_zero(meta, meta_bytes)
                break
            found = at.SLOW
            if position > 0:
                position = blank(position)
                if suffix and position < end and load_u8(position) == suffix:
                    position += 1
                elif suffix:
                    position = 0
                if position == end:
                    if not is_of_table(state, meta):
                        found = at.OPEN
                    elif load_i64(state + 8 * at.IS_STRANGE):
                        found = at.STRANGE
                    else:
                        found = at.LOCATED if changes(state, message, meta) else at.SLOW
            store_i8(status + message, found)
            if found != at.LOCATED:
                store_i64(state + 8 * at.IMAGES_USED, used)
            if found == at.SLOW:
                fill_zero(meta, meta_bytes)
        done += 1
    store_i64(state + 8 * at.DONE, done)
    return done


@kernel
def matching(buffer: int, starts: int, count: int, prefix: int, prefix_bytes: int, suffix: int, matches: int) -> int:
    """Tells of each of *count* texts whether it is *prefix*, an object, and the byte *suffix*; how many are.

    Args:
        starts: address of where each text begins in the buffer, and the end of the last one.
        matches: address of a byte a text, set to 1 or 0.
    """
    total = 0
    for text in range(count):
        position = buffer + load_i64(starts + 8 * text)
        end = buffer + load_i64(starts + 8 * text + 8)
        found = 0
        if end - position > prefix_bytes and same(position, prefix, prefix_bytes):
            position = blank(position + prefix_bytes)
            if load_u8(position) == _OPEN_OBJECT:
                position = skip(position, end)
                if position > 0:
                    position = blank(position)
                    found = 1 if position == end - 1 and load_u8(position) == suffix else 0
        store_i8(matches + text, found)
        total += found
    return total
