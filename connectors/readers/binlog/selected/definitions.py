"""What the server says of a result's columns, compared with the schema that its rows are to have.

Packets: https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_com_query_response_text_resultset_column_definition.html.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from connectors.readers.binlog.events.collations import bytes_per_character, canonical_charset, collation
from connectors.readers.binlog.events.layout import packed_integer
from connectors.readers.binlog.events.table_maps import ColumnCode
from historian.errors import UnsupportedEvent
from historian.schema.snapshots import GEOMETRIES, INTEGER_TYPES, ColumnType

__all__ = ["Definition", "definition", "misfit"]

_C = ColumnCode
_UNSIGNED = 32
_TEXTS_BEFORE_NAME = 4
_CODES: dict[str, int] = {
    "tinyint": _C.TINY,
    "smallint": _C.SHORT,
    "mediumint": _C.INT24,
    "int": _C.LONG,
    "bigint": _C.LONGLONG,
    "float": _C.FLOAT,
    "double": _C.DOUBLE,
    "decimal": _C.NEWDECIMAL,
    "bit": _C.BIT,
    "year": _C.YEAR,
    "date": _C.DATE,
    "time": _C.TIME,
    "datetime": _C.DATETIME,
    "timestamp": _C.TIMESTAMP,
    **dict.fromkeys(("char", "binary", "uuid", "inet4", "inet6"), _C.STRING),
    **dict.fromkeys(("varchar", "varbinary"), _C.VAR_STRING),
    **{f"{size}{name}": _C.BLOB for size in ("tiny", "", "medium", "long") for name in ("text", "blob")},
    # The numbers of their members.
    **dict.fromkeys(("enum", "set"), _C.LONGLONG),
    **dict.fromkeys((*GEOMETRIES, "geometrycollection"), _C.GEOMETRY),
}
_BY_FLAVOR = {
    "mysql": {"json": _C.JSON, "vector": _C.VECTOR},
    "mariadb": {"json": _C.BLOB, "vector": _C.VAR_STRING},
}
_FRACTIONS = frozenset(("time", "datetime", "timestamp"))
_OF_LENGTH = frozenset(("char", "varchar", "binary", "varbinary"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """A column of a result, in the protocol's words."""

    name: str
    type: int
    charset: int
    length: int
    unsigned: bool
    decimals: int


def definition(payload: bytes) -> Definition:
    """Reads a column definition packet; IndexError where it ends too early."""
    place = 0
    for _ in range(_TEXTS_BEFORE_NAME):
        length, place = packed_integer(payload, place)
        place += length
    length, place = packed_integer(payload, place)
    name = payload[place : place + length].decode("utf-8", "replace")
    length, place = packed_integer(payload, place + length)
    fixed = payload[place + length + 1 :]
    return Definition(
        name=name,
        charset=int.from_bytes(fixed[:2], "little"),
        length=int.from_bytes(fixed[2:6], "little"),
        type=fixed[6],
        unsigned=bool(int.from_bytes(fixed[7:9], "little") & _UNSIGNED),
        decimals=fixed[9],
    )


def misfit(kind: ColumnType, found: Definition, flavor: str) -> str | None:
    """What of a result's column is not as the type has it, expected against found; None where all is."""
    return next((text for text in _differences(kind, found, flavor) if text), None)


def _differences(kind: ColumnType, found: Definition, flavor: str) -> Iterator[str | None]:
    code = _BY_FLAVOR[flavor].get(kind.name) or _CODES.get(kind.name)
    yield _compared("type number", code, found.type)
    if kind.name in INTEGER_TYPES or kind.name == "decimal":
        yield _compared("unsigned", kind.unsigned, found.unsigned)
    if kind.name == "decimal":
        digits, scale = 10 if kind.precision is None else kind.precision, kind.scale or 0
        # Room for a sign and for the point.
        yield _compared("length", digits + (not kind.unsigned) + (scale > 0), found.length)
        yield _compared("digits behind the point", scale, found.decimals)
    if kind.name in _FRACTIONS:
        yield _compared("fractional digits", kind.fraction, found.decimals)
    if kind.name == "bit":
        yield _compared("bits", kind.length or 1, found.length)
    if kind.name in _OF_LENGTH:
        length = (1 if kind.length is None else kind.length) * bytes_per_character(kind.charset or "binary")
        # MariaDB counts the byte in front of compressed data; how a column is stored is no part of its schema.
        is_compressed = flavor == "mariadb" and kind.name.startswith("var") and found.length == length + 1
        yield _compared("bytes", length + is_compressed, found.length)
    if kind.charset is not None and kind.name not in ("enum", "set"):
        yield _compared("charset", canonical_charset(kind.charset), _charset(found.charset, flavor))


def _compared(what: str, expected: object, found: object) -> str | None:
    return None if expected == found else f"{what} {expected} expected, {found} found"


def _charset(number: int, flavor: str) -> str:
    try:
        return collation(number, flavor).charset
    except UnsupportedEvent:
        return f"of collation {number}"
