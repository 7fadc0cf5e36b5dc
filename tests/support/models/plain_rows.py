"""The second form of encoded rows, written value by value in plain Python: the yardstick of tests and of the benchmark.

Types are Arrow's, with ids in the fields' metadata; rows are tuples of Python values in the order of the fields. Written
from docs/reference/row-encoding.md alone, without the code of the package. All that a schema decides is decided once.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Sequence
from datetime import date, datetime, timedelta, timezone
from decimal import Context, Decimal
from typing import Any

import pyarrow as pa

MICROSECOND = timedelta(microseconds=1)
NAIVE, AWARE = datetime(1970, 1, 1), datetime(1970, 1, 1, tzinfo=timezone.utc)  # noqa: DTZ001 a naive type
EXACT = Context(prec=40)
EPOCH_DAY = date(1970, 1, 1).toordinal()
WIDTHS = (0, 1, 2, 4)

Write = Callable[[Any], bytes]


def row_writer(fields: Sequence[pa.Field]) -> Callable[[Sequence[Any]], bytes]:
    """What writes rows of those fields, each with its checksum."""
    write = keyed(fields, 0x20)

    def with_checksum(row: Sequence[Any]) -> bytes:
        body = write(row)
        return body + zlib.crc32(body).to_bytes(4, "little")

    return with_checksum


def keyed(fields: Sequence[pa.Field], flags: int = 0) -> Callable[[Sequence[Any]], bytes]:
    """What writes containers with ids, of the fields' values in the order of the fields."""
    ids = [int(field.metadata[b"PARQUET:field_id"]) for field in fields]
    order = sorted(range(len(ids)), key=lambda i: ids[i])
    kinds = [kind(fields[i].type) for i in order]
    writers = [(i, writer(fields[i].type)) for i in order]
    code = width_code(max([len(ids), *ids]))
    names = b"".join(ids[i].to_bytes(WIDTHS[code], "little") for i in order)
    head = len(ids).to_bytes(WIDTHS[code], "little") + names
    tail = packed_kinds(kinds)

    def write(row: Sequence[Any]) -> bytes:
        values = [None if row[i] is None else one(row[i]) for i, one in writers]
        return container(0xC0 | flags | code << 2, head, tail, values)

    return write


def positional(values: list[bytes | None], kinds: list[int]) -> bytes:
    code = width_code(len(values))
    return container(0xD0 | code << 2, len(values).to_bytes(WIDTHS[code], "little"), packed_kinds(kinds), values)


def container(flags: int, head: bytes, kinds: bytes, values: list[bytes | None]) -> bytes:
    nulls, ends, end = 0, [], 0
    for j, value in enumerate(values):
        if value is None:
            nulls |= 1 << j
        else:
            end += len(value)
        ends.append(end)
    far = width_code(end)
    bits = nulls.to_bytes((len(values) + 7) // 8, "little")
    bounds = struct.pack(f"<{len(ends)}{'BHI'[far - 1]}", *ends)
    return b"".join([bytes([flags | far]), head, bits, kinds, bounds, *(value for value in values if value)])


def width_code(number: int) -> int:
    return 1 if number < 256 else 2 if number < 65536 else 3


def packed_kinds(kinds: list[int]) -> bytes:
    return sum(kind << 4 * j for j, kind in enumerate(kinds)).to_bytes((len(kinds) + 1) // 2, "little")


def kind(type_: pa.DataType) -> int:
    if pa.types.is_timestamp(type_):
        return 8 if type_.tz is None else 9
    return KINDS.get(type_.id, 0)


def writer(type_: pa.DataType) -> Write:
    """What writes values of a type that are not None."""
    is_ = pa.types
    if str(type_) in PACKED:
        return struct.Struct(f"<{PACKED[str(type_)]}").pack
    if is_.is_decimal(type_):
        return decimal_writer(type_.scale)
    if is_.is_string(type_):
        return str.encode
    if is_.is_binary(type_):
        return bytes
    if is_.is_date32(type_):
        return lambda value: (value.toordinal() - EPOCH_DAY).to_bytes(4, "little", signed=True)
    if is_.is_timestamp(type_):
        epoch = NAIVE if type_.tz is None else AWARE
        return lambda value: ((value - epoch) // MICROSECOND).to_bytes(8, "little", signed=True)
    if is_.is_struct(type_):
        names, write = [field.name for field in type_], keyed(list(type_))
        return lambda value: write([value[name] for name in names])
    if is_.is_list(type_):
        return list_writer(type_.value_type)
    keys, items = list_writer(type_.key_type), list_writer(type_.item_type)
    return lambda value: positional([keys([k for k, _ in value]), items([v for _, v in value])], [0, 0])


def list_writer(type_: pa.DataType) -> Write:
    code, write = kind(type_), writer(type_)
    return lambda values: positional([None if v is None else write(v) for v in values], [code] * len(values))


def decimal_writer(scale: int) -> Write:
    head = bytes([scale])

    def write(value: Any) -> bytes:
        unscaled = int(value.scaleb(scale, EXACT))
        length = (unscaled if unscaled >= 0 else ~unscaled).bit_length() // 8 + 1
        return head + unscaled.to_bytes(length, "little", signed=True)

    return write


def row_reader(fields: Sequence[pa.Field]) -> Callable[[bytes], tuple[Any, ...]]:
    """What reads those fields, no nested ones, of rows of :func:`row_writer`; None where a row lacks one."""
    wanted = [(int(field.metadata[b"PARQUET:field_id"]), reader(field.type)) for field in fields]

    def read(row: bytes) -> tuple[Any, ...]:
        if zlib.crc32(row[:-4]) != int.from_bytes(row[-4:], "little"):
            raise ValueError(row)
        wide, far = row[0] >> 2 & 3, row[0] & 3
        at = 1 + WIDTHS[wide]
        count = int.from_bytes(row[1:at], "little")
        ids = struct.unpack_from(f"<{count}{'BHI'[wide - 1]}", row, at)
        nulls = at + count * WIDTHS[wide]
        ends_at = nulls + (count + 7) // 8 + (count + 1) // 2
        ends = struct.unpack_from(f"<{count}{'BHI'[far - 1]}", row, ends_at)
        begin = ends_at + count * WIDTHS[far]
        bits = int.from_bytes(row[nulls : nulls + (count + 7) // 8], "little")
        places = {number: j for j, number in enumerate(ids)}
        values = []
        for number, one in wanted:
            j = places.get(number)
            if j is None or bits >> j & 1:
                values.append(None)
            else:
                values.append(one(row[begin + (ends[j - 1] if j else 0) : begin + ends[j]]))
        return tuple(values)

    return read


def reader(type_: pa.DataType) -> Callable[[bytes], Any]:
    """What reads values of a type that is not nested."""
    is_ = pa.types
    if str(type_) in PACKED:
        unpack = struct.Struct(f"<{PACKED[str(type_)]}").unpack
        return lambda data: unpack(data)[0]
    if is_.is_decimal(type_):
        return lambda data: Decimal(int.from_bytes(data[1:], "little", signed=True)).scaleb(-data[0], EXACT)
    if is_.is_string(type_):
        return bytes.decode
    if is_.is_timestamp(type_):
        epoch = NAIVE if type_.tz is None else AWARE
        return lambda data: epoch + timedelta(microseconds=int.from_bytes(data, "little", signed=True))
    if is_.is_date32(type_):
        return lambda data: date.fromordinal(EPOCH_DAY + int.from_bytes(data, "little", signed=True))
    return bytes


PACKED = {"int8": "b", "int16": "h", "int32": "i", "int64": "q", "float": "f", "double": "d", "bool": "?"}
KINDS = {
    **dict.fromkeys((pa.int8().id, pa.int16().id, pa.int32().id, pa.int64().id), 1),
    pa.float32().id: 2,
    pa.float64().id: 2,
    pa.decimal128(1).id: 3,
    pa.bool_().id: 4,
    pa.string().id: 5,
    pa.binary().id: 6,
    pa.date32().id: 7,
}
