"""TABLE_MAP events: the columns of the rows that follow, as the server describes them.

Layout: ``Table_map_event`` in MySQL's libs/mysql/binlog/event/rows_event.h, optional metadata of 8.0 and MariaDB 10.5
included.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from connectors.readers.base import MappedColumn
from connectors.readers.binlog.events.collations import collation
from connectors.readers.binlog.events.layout import HEADER_BYTES, packed_integer
from historian.charsets.client_text import stored_label
from historian.errors import LogCorrupt
from historian.names import TableName
from historian.schema.snapshots import GEOMETRIES

__all__ = ["COMPRESSED", "OLD_TEMPORAL", "ColumnCode", "TableMap", "table_map"]


class ColumnCode:
    """Type numbers of columns (MYSQL_TYPE_*) as they stand in the binlog."""

    TINY, SHORT, LONG, FLOAT, DOUBLE = 1, 2, 3, 4, 5
    TIMESTAMP, LONGLONG, INT24, DATE, TIME, DATETIME, YEAR = 7, 8, 9, 10, 11, 12, 13
    VARCHAR, BIT, TIMESTAMP2, DATETIME2, TIME2 = 15, 16, 17, 18, 19
    BLOB_COMPRESSED, VARCHAR_COMPRESSED, VECTOR, JSON, NEWDECIMAL = 140, 141, 242, 245, 246
    ENUM, SET, TINY_BLOB, MEDIUM_BLOB, LONG_BLOB, BLOB = 247, 248, 249, 250, 251, 252
    VAR_STRING, STRING, GEOMETRY = 253, 254, 255


_C = ColumnCode
COMPRESSED = {_C.BLOB_COMPRESSED: _C.BLOB, _C.VARCHAR_COMPRESSED: _C.VARCHAR}
"""Types whose values MariaDB keeps compressed, and those of the same values without that."""
OLD_TEMPORAL = {_C.TIME: _C.TIME2, _C.DATETIME: _C.DATETIME2, _C.TIMESTAMP: _C.TIMESTAMP2}
"""Types in the form of before MySQL 5.6, and those of the same values in the newer one."""
_ONE_BYTE = frozenset(
    (
        *(_C.FLOAT, _C.DOUBLE, _C.TIMESTAMP2, _C.DATETIME2, _C.TIME2, _C.VECTOR, _C.JSON, _C.GEOMETRY),
        *(_C.TINY_BLOB, _C.MEDIUM_BLOB, _C.LONG_BLOB, _C.BLOB, _C.BLOB_COMPRESSED),
    )
)
_TWO_BYTES_LOW_FIRST = frozenset((_C.VARCHAR, _C.VARCHAR_COMPRESSED, _C.BIT))
_TWO_BYTES_HIGH_FIRST = frozenset((_C.NEWDECIMAL, _C.STRING, _C.VAR_STRING, _C.ENUM, _C.SET))
# What the number can be where few are possible: bytes of a length, digits of a fraction, bytes of a float.
_POSSIBLE = {
    **dict.fromkeys((_C.BLOB, _C.BLOB_COMPRESSED, _C.JSON, _C.GEOMETRY, _C.VECTOR), range(1, 5)),
    **dict.fromkeys((_C.TIMESTAMP2, _C.DATETIME2, _C.TIME2), range(7)),
    _C.FLOAT: (4,),
    _C.DOUBLE: (8,),
}
_NUMERIC = frozenset((_C.TINY, _C.SHORT, _C.INT24, _C.LONG, _C.LONGLONG, _C.NEWDECIMAL, _C.FLOAT, _C.DOUBLE, _C.YEAR))
_TEXT = frozenset((_C.STRING, _C.VAR_STRING, _C.VARCHAR, _C.BLOB, _C.TINY_BLOB, _C.MEDIUM_BLOB, _C.LONG_BLOB))
_WITH_CHARSET = {
    "mysql": _TEXT | {_C.VECTOR},
    "mariadb": _TEXT | {_C.GEOMETRY, _C.VARCHAR_COMPRESSED, _C.BLOB_COMPRESSED},
}
_WITH_LABELS = frozenset((_C.ENUM, _C.SET))


@dataclass(frozen=True, slots=True, kw_only=True)
class TableMap:
    """A table's number in the log, its name and columns."""

    number: int
    table: TableName
    columns: tuple[MappedColumn, ...]


def table_map(event: bytes | memoryview, flavor: str) -> TableMap:
    """Reads a TABLE_MAP event.

    A column's ``metadata`` is the server's own number of it. For types of two bytes the first is the high one, except
    VARCHAR and BIT, where it is the low one.

    Raises:
        LogCorrupt: lengths that do not fit, or a column's number that its type cannot have.
    """
    body = bytes(event[HEADER_BYTES:])
    try:
        found = _table_map(body, flavor)
    except (IndexError, ValueError, LogCorrupt) as error:
        raise LogCorrupt("a TABLE_MAP event does not fit its length", found=f"{len(body)} bytes") from error
    for place, column in enumerate(found.columns, 1):
        possible = _POSSIBLE.get(column.type)
        if possible is not None and column.metadata not in possible:
            raise LogCorrupt(
                f"a TABLE_MAP event describes column {place} as no server does",
                expected=f"metadata from {possible[0]} to {possible[-1]} for type {column.type}",
                found=column.metadata,
            )
    return found


def _table_map(body: bytes, flavor: str) -> TableMap:
    number = int.from_bytes(body[:6], "little")
    at = 8
    names: list[str] = []
    for _ in range(2):
        length, at = packed_integer(body, at)
        names.append(body[at : at + length].decode("utf-8"))
        at += length + 1
    count, at = packed_integer(body, at)
    types = body[at : at + count]
    at += count
    length, at = packed_integer(body, at)
    columns = list(_columns(types, body[at : at + length]))
    at += length
    nulls = body[at : at + (count + 7) // 8]
    at += len(nulls)
    columns = [replace(column, nullable=bool(nulls[i >> 3] >> (i & 7) & 1)) for i, column in enumerate(columns)]
    while at < len(body):
        kind = body[at]
        length, at = packed_integer(body, at + 1)
        if at + length > len(body):
            raise IndexError(at + length)
        _read(kind, columns, body[at : at + length], flavor)
        at += length
    columns = [_with_labels_decoded(column, flavor) for column in columns]
    return TableMap(number=number, table=TableName(*names), columns=tuple(columns))


def _with_labels_decoded(column: MappedColumn, flavor: str) -> MappedColumn:
    """Members come before the charset that they are in: read as bytes (latin-1) first, decoded here."""
    if column.labels is None:
        return column
    charset = "utf8mb4" if column.charset is None else collation(column.charset, flavor).charset
    raw = [label.encode("latin-1") for label in column.labels]
    return replace(column, labels=tuple(stored_label(label, charset, flavor) for label in raw))


def _columns(types: bytes, metadata: bytes) -> Iterator[MappedColumn]:
    at = 0
    for kind in types:
        if kind in _ONE_BYTE:
            value, at = metadata[at], at + 1
        elif kind in _TWO_BYTES_LOW_FIRST:
            value, at = metadata[at] | metadata[at + 1] << 8, at + 2
        elif kind in _TWO_BYTES_HIGH_FIRST:
            value, at = metadata[at] << 8 | metadata[at + 1], at + 2
        else:
            value = 0
        yield MappedColumn(type=_real_type(kind, value), metadata=value, nullable=True)


def _real_type(kind: int, metadata: int) -> int:
    # CHAR, ENUM and SET all travel as STRING; the first metadata byte tells them apart, two of its bits being length
    # bits of CHAR.
    if kind != _C.STRING:
        return kind
    return metadata >> 8 if metadata >> 8 in (_C.ENUM, _C.SET) else _C.STRING


# ---- optional metadata: (type, length, value)*; each function changes the columns that it speaks of ----------------
_Columns = list[MappedColumn]


def _of(columns: _Columns, types: frozenset[int]) -> list[int]:
    return [index for index, column in enumerate(columns) if column.type in types]


def _bits(data: bytes, count: int) -> list[bool]:
    return [bool(data[index >> 3] & 0x80 >> (index & 7)) for index in range(count)]


def _signedness(columns: _Columns, data: bytes) -> None:
    indexes = _of(columns, _NUMERIC)
    for index, unsigned in zip(indexes, _bits(data, len(indexes)), strict=True):
        columns[index] = replace(columns[index], unsigned=unsigned)


def _integers(data: bytes) -> list[int]:
    found, at = [], 0
    while at < len(data):
        value, at = packed_integer(data, at)
        found.append(value)
    return found


def _default_charset(columns: _Columns, types: frozenset[int], data: bytes) -> None:
    usual, *pairs = _integers(data)
    others = dict(zip(pairs[::2], pairs[1::2], strict=True))
    for place, index in enumerate(_of(columns, types)):
        columns[index] = replace(columns[index], charset=others.get(place, usual))


def _column_charsets(columns: _Columns, types: frozenset[int], data: bytes) -> None:
    for index, charset in zip(_of(columns, types), _integers(data), strict=True):
        columns[index] = replace(columns[index], charset=charset)


def _names(columns: _Columns, data: bytes) -> None:
    at = 0
    for index, column in enumerate(columns):
        length, at = packed_integer(data, at)
        columns[index] = replace(column, name=data[at : at + length].decode("utf-8"))
        at += length


def _labels(kind: int) -> Callable[[_Columns, bytes], None]:
    def read(columns: _Columns, data: bytes) -> None:
        at = 0
        for index in _of(columns, frozenset((kind,))):
            count, at = packed_integer(data, at)
            labels: list[str] = []
            for _ in range(count):
                length, at = packed_integer(data, at)
                labels.append(data[at : at + length].decode("latin-1"))
                at += length
            columns[index] = replace(columns[index], labels=tuple(labels))

    return read


def _shapes(columns: _Columns, data: bytes) -> None:
    for index, shape in zip(_of(columns, frozenset((_C.GEOMETRY,))), _integers(data), strict=True):
        columns[index] = replace(columns[index], geometry=shape if shape < len(GEOMETRIES) else None)


def _dimensions(columns: _Columns, data: bytes) -> None:
    for index, dimension in zip(_of(columns, frozenset((_C.VECTOR,))), _integers(data), strict=True):
        columns[index] = replace(columns[index], dimension=dimension)


def _primary_key(step: int) -> Callable[[_Columns, bytes], None]:
    def read(columns: _Columns, data: bytes) -> None:
        keys = frozenset(_integers(data)[::step])
        for index, column in enumerate(columns):
            columns[index] = replace(column, primary_key=index in keys)

    return read


def _visibility(columns: _Columns, data: bytes) -> None:
    for index, visible in enumerate(_bits(data, len(columns))):
        columns[index] = replace(columns[index], visible=visible)


_FIELDS: dict[int, Callable[[_Columns, bytes], None]] = {
    1: _signedness,
    4: _names,
    5: _labels(_C.SET),
    6: _labels(_C.ENUM),
    7: _shapes,
    8: _primary_key(1),
    9: _primary_key(2),
    12: _visibility,
    13: _dimensions,
}
_CHARSET_FIELDS = {2: _default_charset, 3: _column_charsets, 10: _default_charset, 11: _column_charsets}


def _read(kind: int, columns: _Columns, data: bytes, flavor: str) -> None:
    if kind in _CHARSET_FIELDS:
        _CHARSET_FIELDS[kind](columns, _WITH_LABELS if kind >= 10 else _WITH_CHARSET[flavor], data)
    elif kind in _FIELDS:
        _FIELDS[kind](columns, data)
