"""Where in its source's log a change stands, as messages say it: numbers of GTIDs, files and offsets."""

from __future__ import annotations

from connectors.readers.kafka.kernels import avro_layout as avro
from connectors.readers.kafka.kernels import layout as at
from connectors.readers.kafka.kernels.avro_walk import zigzag
from connectors.readers.kafka.kernels.digits import NO_INTEGER, integer
from connectors.readers.kafka.kernels.jit import inlined, kernel
from connectors.readers.kafka.kernels.tokens import length_of, start_of
from connectors.readers.machine.memory import load_i64, load_u8, shift_right, store_i64

__all__ = ["source_places"]

_FIRST, _PRIME = -3750763034362895579, 1099511628211
"""Of the FNV-1a hash, in signed numbers of 64 bits."""
_LOWER_R = 114
_DIGITS = 18
_FILE_LIMIT, _OFFSET_BITS = 1 << 31, 32
"""Of a log without GTIDs: below these, file and offset fit a number."""


@inlined
def _number_at_end(start: int, length: int) -> int:
    """Where the digits begin with which a text ends; *length* where there are none, or too many."""
    begin = length
    while begin > 0 and load_u8(start + begin - 1) >= 48 and load_u8(start + begin - 1) <= 57:
        begin -= 1
    return begin if length - begin <= _DIGITS else length


@inlined
def _digits(start: int, begin: int, end: int) -> int:
    found = 0
    for place in range(begin, end):
        found = found * 10 + load_u8(start + place) - 48
    return found


@inlined
def _hashed(found: int, start: int, length: int) -> int:
    for place in range(length):
        found = (found ^ load_u8(start + place)) * _PRIME
    return found


@inlined
def _integer_of(buffer: int, word: int) -> int:
    """The integer that a value is, of JSON or of Avro; NO_INTEGER where it is none."""
    kind = shift_right(word, at.KIND_AT)
    start = buffer + start_of(word)
    if kind == avro.VARINT:
        return zigzag(start, start + length_of(word))
    if kind == at.INTEGER:
        return integer(start, length_of(word))
    return NO_INTEGER


@kernel
def source_places(buffer: int, meta: int, meta_words: int, messages: int, count: int, slots: int, out: int) -> None:
    """Tells of each of *count* rows' messages where it stands in the source's log.

    Args:
        messages: address of a word a row: its message; *meta*: of the words of each message.
        slots: address of five words: of the operation, the GTID, the file, the offset and the row in the event.
        out: address of six words a row. The first says whether all is told, by an operation that is no snapshot's. Then come a hash of GTID
            and file without their numbers, these two numbers, offset and row. Where there is no GTID, file and offset are its number.
    """
    for index in range(count):
        words = meta + 8 * meta_words * load_i64(messages + 8 * index)
        told = out + 48 * index
        store_i64(told, 0)
        op = load_i64(words + 8 * load_i64(slots))
        gtid = load_i64(words + 8 * load_i64(slots + 8))
        file = load_i64(words + 8 * load_i64(slots + 16))
        offset = load_i64(words + 8 * load_i64(slots + 24))
        row = load_i64(words + 8 * load_i64(slots + 32))
        if shift_right(op, at.KIND_AT) != at.TEXT:
            continue
        if length_of(op) == 1 and load_u8(buffer + start_of(op)) == _LOWER_R:
            continue
        gtid_kind = shift_right(gtid, at.KIND_AT)
        has_gtid = gtid_kind == at.TEXT
        if not has_gtid and gtid_kind != at.NULL and gtid_kind != at.MISSING:
            continue
        if shift_right(file, at.KIND_AT) != at.TEXT:
            continue
        file_at, file_bytes = buffer + start_of(file), length_of(file)
        file_end = _number_at_end(file_at, file_bytes)
        position = _integer_of(buffer, offset)
        line = 0
        if shift_right(row, at.KIND_AT) == at.INTEGER or shift_right(row, at.KIND_AT) == avro.VARINT:
            line = _integer_of(buffer, row)
        if file_end == file_bytes or position == NO_INTEGER or line == NO_INTEGER:
            continue
        file_number = _digits(file_at, file_end, file_bytes)
        if has_gtid:
            gtid_at, gtid_bytes = buffer + start_of(gtid), length_of(gtid)
            gtid_end = _number_at_end(gtid_at, gtid_bytes)
            if gtid_end == gtid_bytes:
                continue
            server = _hashed(_FIRST, gtid_at, gtid_end)
            number = _digits(gtid_at, gtid_end, gtid_bytes)
        else:
            if file_number >= _FILE_LIMIT or position < 0 or position >= 1 << _OFFSET_BITS:
                continue
            server = _FIRST
            number = (file_number << _OFFSET_BITS) + position
        store_i64(told, 1)
        store_i64(told + 8, _hashed(server, file_at, file_end))
        store_i64(told + 16, number)
        store_i64(told + 24, file_number)
        store_i64(told + 32, position)
        store_i64(told + 40, line)
