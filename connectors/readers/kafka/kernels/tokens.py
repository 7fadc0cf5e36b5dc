"""The parts that JSON is made of: blanks, texts, numbers, whole values. What is not certainly valid is refused.

A read may go beyond the end of a message, into the next one or the slack, but none that counts: who calls compares what came out with the end.
"""

from __future__ import annotations

from connectors.readers.kafka.kernels import layout as at
from connectors.readers.kafka.kernels.jit import inlined, kernel
from connectors.readers.machine.memory import load_i64, load_u8, shift_right, trailing_zeros

__all__ = ["blank", "character", "length_of", "same", "skip", "start_of", "value"]

_ONES = 0x0101010101010101
_QUOTES = 0x2222222222222222
_BACKSLASHES = 0x5C5C5C5C5C5C5C5C
_BLANKS = 0x2020202020202020
_HIGH = -0x7F7F7F7F7F7F7F80  # 0x80 in each byte
_QUOTE, _BACKSLASH, _MINUS, _POINT, _ZERO, _NINE = 34, 92, 45, 46, 48, 57
_OPEN_OBJECT, _CLOSE_OBJECT, _OPEN_ARRAY, _CLOSE_ARRAY, _COMMA, _COLON = 123, 125, 91, 93, 44, 58
_MOST_DEEP = 60
_LONGEST_NUMBER = 64
_MOST_EXPONENT_DIGITS = 2


@inlined
def blank(position: int) -> int:
    """The address of the first byte from *position* on that is no blank."""
    byte = load_u8(position)
    while byte == 32 or byte == 10 or byte == 13 or byte == 9:
        position += 1
        byte = load_u8(position)
    return position


@inlined
def start_of(word: int) -> int:
    """Where a found value starts in the buffer."""
    return word & at.START_MASK


@inlined
def length_of(word: int) -> int:
    """How many bytes a found value has."""
    return shift_right(word, at.START_BITS) & at.LENGTH_MASK


@kernel
def same(one: int, other: int, length: int) -> bool:
    """Whether *length* bytes are the same at both addresses."""
    while length >= 64:
        found = 0
        for index in range(8):
            found |= load_i64(one + 8 * index) ^ load_i64(other + 8 * index)
        if found:
            return False
        one += 64
        other += 64
        length -= 64
    while length >= 8:
        if load_i64(one) != load_i64(other):
            return False
        one += 8
        other += 8
        length -= 8
    while length > 0:
        if load_u8(one) != load_u8(other):
            return False
        one += 1
        other += 1
        length -= 1
    return True


@inlined
def _is_follow(position: int) -> bool:
    return load_u8(position) & 0xC0 == 0x80


@kernel
def character(position: int) -> int:
    """The bytes of the UTF-8 character at *position*, which is not ASCII; 0 where it is none."""
    first = load_u8(position)
    second = load_u8(position + 1)
    if 0xC2 <= first <= 0xDF:
        return 2 if second & 0xC0 == 0x80 else 0
    if 0xE0 <= first <= 0xEF:
        low = 0xA0 if first == 0xE0 else 0x80
        high = 0x9F if first == 0xED else 0xBF
        return 3 if low <= second <= high and _is_follow(position + 2) else 0
    if 0xF0 <= first <= 0xF4:
        low = 0x90 if first == 0xF0 else 0x80
        high = 0x8F if first == 0xF4 else 0xBF
        return 4 if low <= second <= high and _is_follow(position + 2) and _is_follow(position + 3) else 0
    return 0


@inlined
def _is_hexadecimal(byte: int) -> bool:
    return 48 <= byte <= 57 or 65 <= byte <= 70 or 97 <= byte <= 102


@kernel
def _escape(position: int) -> int:
    """The bytes of the escape whose backslash stands at *position*; 0 where it is none, or stands for half a character."""
    byte = load_u8(position + 1)
    if byte == 117:  # u
        for index in range(2, 6):
            if not _is_hexadecimal(load_u8(position + index)):
                return 0
        first, second = load_u8(position + 2) | 0x20, load_u8(position + 3) | 0x20
        is_half = first == 100 and (second == 56 or second == 57 or second >= 97)  # D8 to DF
        return 0 if is_half else 6
    is_known = (
        byte == 34 or byte == 92 or byte == 47 or byte == 98 or byte == 102 or byte == 110 or byte == 114 or byte == 116
    )
    return 2 if is_known else 0


@inlined
def _text(position: int) -> int:
    """Twice the address of the quote that ends the text which begins at *position*, and 1 more where it has escapes; -1 where it is none."""
    escaped = 0
    while True:
        word = load_i64(position)
        quotes, backslashes = word ^ _QUOTES, word ^ _BACKSLASHES
        # Above the lowest byte that is marked others may be marked wrongly.
        marked = (
            ((quotes - _ONES) & ~quotes) | ((backslashes - _ONES) & ~backslashes) | ((word - _BLANKS) & ~word) | word
        ) & _HIGH
        if marked == 0:
            position += 8
            continue
        position += trailing_zeros(marked) >> 3
        byte = load_u8(position)
        if byte == _QUOTE:
            return position << 1 | escaped
        if byte == _BACKSLASH:
            size = _escape(position)
            escaped = 1
        elif byte >= 0x80:
            size = character(position)
        else:
            size = 0
        if size == 0:
            return -1
        position += size


@inlined
def _is_digit(byte: int) -> bool:
    return _ZERO <= byte <= _NINE


@inlined
def _number(position: int) -> int:
    """Twice the address behind the number at *position*, and 1 more where it is no integer; -1 where it is none, or an odd one."""
    begin = position
    fractional = 0
    if load_u8(position) == _MINUS:
        position += 1
    byte = load_u8(position)
    if not _is_digit(byte):
        return -1
    position += 1
    if byte != _ZERO:
        while _is_digit(load_u8(position)):
            position += 1
    byte = load_u8(position)
    if byte == _POINT:
        fractional = 1
        position += 1
        if not _is_digit(load_u8(position)):
            return -1
        while _is_digit(load_u8(position)):
            position += 1
        byte = load_u8(position)
    if byte == 101 or byte == 69:  # e
        fractional = 1
        position += 1
        byte = load_u8(position)
        if byte == 43 or byte == 45:
            position += 1
        digits = position
        while _is_digit(load_u8(position)):
            position += 1
        if position == digits or position - digits > _MOST_EXPONENT_DIGITS:
            return -1
    return -1 if position - begin > _LONGEST_NUMBER else position << 1 | fractional


@inlined
def _name(position: int, byte: int) -> int:
    """The bytes of true, false or null at *position*, which begins with *byte*; 0 where it is none."""
    word = load_i64(position)
    if byte == 110:
        return 4 if word & 0xFFFFFFFF == 0x6C6C756E else 0
    if byte == 116:
        return 4 if word & 0xFFFFFFFF == 0x65757274 else 0
    return 5 if word & 0xFFFFFFFFFF == 0x65736C6166 else 0


@kernel
def _skip_nested(position: int, end: int) -> int:
    """The address behind the object or array at *position*; -1 where it is not valid, or very deep."""
    objects = 0  # a bit for each that is open: whether it is an object
    depth = 0
    while True:
        # A value begins here.
        position = blank(position)
        byte = load_u8(position)
        is_opened = False
        if byte == _OPEN_OBJECT or byte == _OPEN_ARRAY:
            if depth == _MOST_DEEP:
                return -1
            objects = objects << 1 | (1 if byte == _OPEN_OBJECT else 0)
            depth += 1
            position = blank(position + 1)
            is_opened = load_u8(position) != (_CLOSE_OBJECT if byte == _OPEN_OBJECT else _CLOSE_ARRAY)
        elif byte == _QUOTE:
            found = _text(position + 1)
            if found < 0:
                return -1
            position = (found >> 1) + 1
        elif byte == _MINUS or _is_digit(byte):
            found = _number(position)
            if found < 0:
                return -1
            position = found >> 1
        else:
            size = _name(position, byte)
            if size == 0:
                return -1
            position += size
        if position > end:
            return -1
        if not is_opened:
            # What is complete is closed, until a further value follows.
            while True:
                position = blank(position)
                byte = load_u8(position)
                position += 1
                if byte == _COMMA:
                    break
                if byte != (_CLOSE_OBJECT if objects & 1 else _CLOSE_ARRAY):
                    return -1
                objects >>= 1
                depth -= 1
                if depth == 0:
                    return position
            position = blank(position)
        if objects & 1:
            if load_u8(position) != _QUOTE:
                return -1
            found = _text(position + 1)
            if found < 0:
                return -1
            position = blank((found >> 1) + 1)
            if load_u8(position) != _COLON:
                return -1
            position += 1


@inlined
def skip(position: int, end: int) -> int:
    """The address behind the value at *position*; -1 where it is not valid."""
    byte = load_u8(position)
    if byte == _QUOTE:
        found = _text(position + 1)
        return -1 if found < 0 else (found >> 1) + 1
    if byte == _MINUS or _is_digit(byte):
        found = _number(position)
        return -1 if found < 0 else found >> 1
    if byte == _OPEN_OBJECT or byte == _OPEN_ARRAY:
        return _skip_nested(position, end)
    size = _name(position, byte)
    return position + size if size else -1


@inlined
def value(buffer: int, position: int, end: int) -> int:
    """The word of the value at *position*, see :mod:`connectors.readers.kafka.kernels.layout`; 0 where it is not valid."""
    byte = load_u8(position)
    if byte == _QUOTE:
        found = _text(position + 1)
        if found < 0:
            return 0
        kind = at.ESCAPED if found & 1 else at.TEXT
        start, behind = position + 1, found >> 1
    elif byte == _MINUS or _is_digit(byte):
        found = _number(position)
        if found < 0:
            return 0
        kind = at.NUMBER if found & 1 else at.INTEGER
        start, behind = position, found >> 1
    elif byte == _OPEN_OBJECT or byte == _OPEN_ARRAY:
        found = _skip_nested(position, end)
        if found < 0:
            return 0
        kind, start, behind = at.NESTED, position, found
    else:
        size = _name(position, byte)
        if size == 0:
            return 0
        kind = at.NULL if byte == 110 else at.TRUE if byte == 116 else at.FALSE
        start, behind = position, position + size
    length = behind - start
    if length > at.LENGTH_MASK:
        return 0
    return kind << at.KIND_AT | length << at.START_BITS | (start - buffer)
