"""Row events decoded byte by byte in plain Python: slow, and a yardstick for the kernels, whose code it does not share.

Written from the layouts that MySQL documents (https://dev.mysql.com/doc/dev/mysql-server/latest/, ``Table_map_event``,
``Rows_event``, ``Transaction_payload_event``, json_binary.h) and those of MariaDB's compressed events (sql/log_event.h).
Events come without checksums. A row has one value a column, in the spelling that Arrow's ``to_pylist`` gives.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from historian.changelog.chunks import Chunk
from historian.changelog.operations import Op, physical_name
from historian.schema.snapshots import Column, Snapshot
from models.plain_values import value_of

__all__ = ["PlainRow", "decoded_rows", "plain_rows_of"]

HEADER_BYTES = 19
QUERY, XID, TABLE_MAP, PAYLOAD, MARIADB_GTID = 2, 16, 19, 40, 162
GTIDS = (33, 34, MARIADB_GTID)
OF_FILE = (3, 4, 15, 27, 35, 41, 161, 163)
WRITES, UPDATES, DELETES = (23, 30), (24, 31), (25, 32)
COMPRESSED = {165: 2, 166: 23, 167: 24, 168: 25, 169: 30, 170: 31, 171: 32}
ONE_BYTE = {4, 5, 17, 18, 19, 242, 245, 249, 250, 251, 252, 255}
TWO_BYTES = {15, 16, 246, 247, 248, 253, 254}


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainRow:
    """A changelog row: the operation's sign, its transaction's number, its event's ordinal, its time, its values."""

    sign: str
    number: int
    ordinal: int
    time_us: int
    values: tuple[Any, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Map:
    table: tuple[str, str]
    types: bytes
    metadata: list[bytes]


class _Bytes:
    """A place in bytes that goes on as they are taken."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def take(self, count: int) -> bytes:
        if count > len(self.data) - self.at:
            raise ValueError(f"{count} bytes at {self.at} of {len(self.data)}")
        self.at += count
        return self.data[self.at - count : self.at]

    def number(self, count: int) -> int:
        return int.from_bytes(self.take(count), "little")

    def packed(self) -> int:
        first = self.number(1)
        return first if first < 251 else self.number({252: 2, 253: 3, 254: 8}[first])

    def rest(self) -> bytes:
        return self.take(len(self.data) - self.at)


def plain_rows_of(events: Iterable[bytes], snapshot: Snapshot) -> Iterator[PlainRow]:
    """The rows of *snapshot*'s table in *events*."""
    maps: dict[int, _Map] = {}
    number = ordinal = commit_us = 0
    for event in _unpacked(events):
        kind, body = event[4], _Bytes(event[HEADER_BYTES:])
        if kind in OF_FILE:
            continue
        ordinal += 1
        if kind in GTIDS:
            number, ordinal, commit_us = _gtid(kind, body)
        elif kind == TABLE_MAP:
            key, described = _table_map(body)
            maps[key] = described
        elif kind in (*WRITES, *UPDATES, *DELETES):
            key = body.number(6)
            if key == 0xFFFFFF or maps[key].table != tuple(snapshot.name):
                continue
            time_us = commit_us or int.from_bytes(event[:4], "little") * 1_000_000
            for sign, values in _rows(kind, body, maps[key], snapshot):
                yield PlainRow(sign=sign, number=number, ordinal=ordinal, time_us=time_us, values=values)


def _unpacked(events: Iterable[bytes]) -> Iterator[bytes]:
    for event in events:
        if event[4] == PAYLOAD:
            yield from _payload(_Bytes(event[HEADER_BYTES:]))
        elif event[4] in COMPRESSED:
            yield _mariadb_uncompressed(event)
        else:
            yield event


def _payload(body: _Bytes) -> Iterator[bytes]:
    fields: dict[int, int] = {}
    while field := body.packed():
        fields[field] = _Bytes(body.take(body.packed())).packed()
    inside = body.rest()
    if fields.get(2, 255) == 0:
        inside = pa.Codec("zstd").decompress(inside, fields[3], asbytes=True)
    while inside:
        size = int.from_bytes(inside[9:13], "little")
        yield inside[:size]
        inside = inside[size:]


def _mariadb_uncompressed(event: bytes) -> bytes:
    kind, body = event[4], _Bytes(event[HEADER_BYTES:])
    if kind == 165:
        head = body.take(13)
        head += body.take(head[8] + 1 + int.from_bytes(head[11:13], "little"))
    else:
        head = body.take(8)
        if kind >= 169:
            extra = body.take(2)
            head += extra + body.take(int.from_bytes(extra, "little") - 2)
        begin = body.at
        columns = body.packed()
        body.take((columns + 7) // 8 * (2 if kind in (167, 170) else 1))
        head += body.data[begin : body.at]
    width = body.number(1) & 7
    size = int.from_bytes(body.take(width), "big")
    text = zlib.decompress(body.rest())
    assert len(text) == size
    return event[:4] + bytes([COMPRESSED[kind]]) + event[5:HEADER_BYTES] + head + text


def _gtid(kind: int, body: _Bytes) -> tuple[int, int, int]:
    """Number, ordinal 0, and the original commit's time where it is said."""
    if kind == MARIADB_GTID:
        return body.number(8), 0, 0
    body.take(1 + 16)
    number = body.number(8)
    commit_us = 0
    if len(body.data) >= 49 and body.number(1) == 2:
        body.take(16)
        commit_us = body.number(7)
        if commit_us >> 55:
            commit_us = body.number(7)
    return number, 0, commit_us


def _table_map(body: _Bytes) -> tuple[int, _Map]:
    key = body.number(6)
    body.take(2)
    names = []
    for _ in range(2):
        names.append(body.take(body.number(1)).decode())
        body.take(1)
    types = body.take(body.packed())
    packed = _Bytes(body.take(body.packed()))
    metadata = [packed.take(1 if kind in ONE_BYTE else 2 if kind in TWO_BYTES else 0) for kind in types]
    return key, _Map(table=(names[0], names[1]), types=types, metadata=metadata)


def _rows(kind: int, body: _Bytes, mapped: _Map, snapshot: Snapshot) -> Iterator[tuple[str, tuple[Any, ...]]]:
    body.take(2)
    if kind >= 30:
        body.take(body.number(2) - 2)
    columns = body.packed()
    assert columns == len(snapshot.columns)
    for _ in range(2 if kind in UPDATES else 1):
        present = body.number((columns + 7) // 8)
        assert present & (1 << columns) - 1 == (1 << columns) - 1, "this reads full images only"
    while body.at < len(body.data):
        before, key = _image(body, mapped, snapshot)
        if kind in UPDATES:
            after, new_key = _image(body, mapped, snapshot)
            yield ("-C" if key == new_key else "-R"), before
            yield ("+C" if key == new_key else "+A"), after
        else:
            yield ("+A" if kind in WRITES else "-R"), before


def _image(body: _Bytes, mapped: _Map, snapshot: Snapshot) -> tuple[tuple[Any, ...], list[bytes]]:
    """The values of an image, and the bytes of its key's."""
    nulls = body.number((len(snapshot.columns) + 7) // 8)
    values: list[Any] = []
    raw: dict[int, bytes] = {}
    for index, column in enumerate(snapshot.columns):
        begin = body.at
        if nulls >> index & 1:
            values.append(None)
        else:
            values.append(_value(body, mapped.types[index], mapped.metadata[index], column))
        raw[column.id] = body.data[begin : body.at]
    return tuple(values), [raw[column] for column in snapshot.primary_key]


def _value(body: _Bytes, kind: int, metadata: bytes, column: Column) -> Any:
    return value_of(kind, metadata, column.type, body.take, _length(body, kind, metadata))


def _length(body: _Bytes, kind: int, metadata: bytes) -> int:
    """Bytes of the value that stands next, its length in front taken."""
    if kind in FIXED:
        return FIXED[kind]
    if kind in (17, 18, 19):
        return {17: 4, 18: 5, 19: 3}[kind] + (metadata[0] + 1) // 2
    if kind == 246:
        return sum((0, 1, 1, 2, 2, 3, 3, 4, 4, 4)[digits] for digits in groups(*metadata))
    if kind == 16:
        return (metadata[0] + 8 * metadata[1] + 7) // 8
    if kind == 15:
        return body.number(1 if int.from_bytes(metadata, "little") < 256 else 2)
    if kind == 254:
        if metadata[0] in (247, 248):
            return metadata[1]
        longest = metadata[1] | (metadata[0] >> 4 & 3 ^ 3) << 8
        return body.number(1 if longest < 256 else 2)
    return body.number(metadata[0])


FIXED = {1: 1, 2: 2, 9: 3, 3: 4, 8: 8, 4: 4, 5: 8, 10: 3, 13: 1}


def groups(precision: int, scale: int) -> Sequence[int]:
    """Digits of each group of a DECIMAL, in front of the point and behind it."""
    whole = precision - scale
    return [whole % 9, *[9] * (whole // 9), *[9] * (scale // 9), scale % 9]


def decoded_rows(chunks: Sequence[Chunk], snapshot: Snapshot, table_id: int = 1) -> list[str]:
    """The rows of one table; as text, so that -0.0 is not 0.0, nor 1.0 1."""
    return [repr(row) for row in _decoded(chunks, snapshot, table_id)]


def _decoded(chunks: Sequence[Chunk], snapshot: Snapshot, table_id: int) -> Iterator[PlainRow]:
    for chunk in sorted(chunks, key=lambda chunk: chunk.sequence):
        if chunk.table_id != table_id:
            continue
        head = [chunk.rows.column(name) for name in ("op", "sequence", "ordinal", "event_time")]
        head[3] = head[3].cast(pa.int64())
        columns = [chunk.rows.column(physical_name(column.id)).to_pylist() for column in snapshot.columns]
        values = zip(*columns, strict=True)
        for op, number, ordinal, time_us, row in zip(*(part.to_pylist() for part in head), values, strict=True):
            yield PlainRow(sign=Op(op).sign, number=number, ordinal=ordinal, time_us=time_us, values=row)
