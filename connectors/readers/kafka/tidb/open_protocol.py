"""TiCDC's open protocol: several events a message, their keys in its key and their values in its value."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from typing import Any

from connectors.readers.kafka.messages.events import Conventions, Event, Field, RowSchema, SqlEvent, Watermark
from connectors.readers.kafka.messages.parsing import parsed
from connectors.readers.kafka.messages.timestamps import time_us
from connectors.readers.kafka.messages.whole_rows import only_key_sent
from historian.errors import UnsupportedEvent
from historian.names import TableName
from historian.schema.snapshots import Column, ColumnType

__all__ = ["OpenProtocol"]

_VERSION = 1
_ROW, _STATEMENT, _RESOLVED = 1, 2, 3
_BINARY, _HANDLE, _PRIMARY, _NULLABLE, _UNSIGNED = 0x01, 0x02, 0x08, 0x40, 0x80
_CHARSET, _COLLATION = "utf8mb4", "utf8mb4_bin"
_INTEGERS = {1: "tinyint", 2: "smallint", 3: "int", 8: "bigint", 9: "mediumint"}
_OTHERS: Mapping[int, ColumnType] = {
    4: ColumnType(name="float"),
    5: ColumnType(name="double"),
    7: ColumnType(name="timestamp", fraction=6),
    10: ColumnType(name="date"),
    11: ColumnType(name="time", fraction=6),
    12: ColumnType(name="datetime", fraction=6),
    13: ColumnType(name="year"),
    14: ColumnType(name="date"),
    16: ColumnType(name="bit"),
    245: ColumnType(name="json"),
    246: ColumnType(name="decimal"),
    247: ColumnType(name="enum", charset=_CHARSET, collation=_COLLATION),
    248: ColumnType(name="set", charset=_CHARSET, collation=_COLLATION),
}
_TEXTS = {15: "long", 249: "tiny", 250: "medium", 251: "long", 252: "", 253: "long", 254: "long"}
"""What stands before TEXT or BLOB of types that are one or the other. CHAR and VARCHAR are told without their length."""

_ENCODED = (249, 250, 251, 252)
_ESCAPED = (15, 253, 254)
_ESCAPE = re.compile(r'(\\(?:[abfnrtv\\"]|x[0-9a-f]{2}|u[0-9a-f]{4}|U[0-9a-f]{8}))')
_CONTROLS = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


class OpenProtocol:
    """Reads messages. Not for several threads at once.

    Args:
        zone: of TIMESTAMPs, in which the changefeed runs.
    """

    def __init__(self, *, zone: str = "UTC") -> None:
        self._written = Conventions(labels="number", documents="text", zone=zone, whole=True)
        self._schemas: dict[tuple[Any, ...], RowSchema] = {}

    def events(
        self,
        key: bytes | None,
        value: bytes | None,
        where: str,
        time_us: int = 0,  # noqa: ARG002 messages tell when the source changed the row
    ) -> tuple[Event | SqlEvent | Watermark, ...]:
        """The events of a message, see :class:`connectors.readers.kafka.messages.events.Decoder`.

        Raises:
            UnsupportedEvent: it is none of this protocol, or an event's row is not in it.
        """
        try:
            pairs = _pairs(key or b"", value or b"")
            return tuple(self._event(*pair, number, where) for number, pair in enumerate(pairs))
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise UnsupportedEvent(
                "a message is none of TiCDC's open protocol",
                where=where,
                expected="version 1: lengths of 8 bytes, each before a JSON object",
                found=str(error),
                next_step="correct source.topics, or source.format",
            ) from None

    def _event(
        self, key: dict[str, Any], value: dict[str, Any], number: int, where: str
    ) -> Event | SqlEvent | Watermark:
        at_us, kind = time_us(key["ts"]), key["t"]
        if kind == _RESOLVED:
            return Watermark(time_us=at_us)
        if kind == _STATEMENT:
            sql = value["q"]
            if not isinstance(sql, str) or not sql:
                raise ValueError("a statement without text")
            return SqlEvent(sql=sql, database=str(key.get("scm") or ""), event_time_us=at_us)
        if kind != _ROW:
            raise ValueError(f"an event of type {kind!r}")
        if key.get("ohk") or key.get("ccl"):
            found = "ohk: true" if key.get("ohk") else "ccl: a place in a storage"
            raise only_key_sent(where, found, "set at the changefeed: large-message-handle-option=none")
        columns = value.get("u") or value.get("d")
        if not isinstance(columns, dict) or not columns:
            raise ValueError("an event without `u` and `d`")
        gone, former = "u" not in value, value.get("p")
        row = {name: _value(each) for name, each in columns.items()}
        before = None
        if gone:
            before = row
        elif former:
            # What did not change may be left out of the former row.
            before = {**row, **{name: _value(each) for name, each in former.items()}}
        schema = self._schema(columns)
        return Event(
            table=TableName(str(key["scm"]), str(key["tbl"])),
            schema=schema,
            # Without a former row an update looks as an insert does, where the changefeed sends none at all.
            op="d" if gone else "u" if former else "c",
            before=before,
            after=None if gone else row,
            event_time_us=at_us,
            number=number,
            written=self._written,
            keyed=gone and set(row) == set(schema.key or ()),
        )

    def _schema(self, columns: Mapping[str, Any]) -> RowSchema:
        told = tuple(
            (name, each["t"], int(each.get("f") or 0), each.get("h") is True) for name, each in columns.items()
        )
        held = self._schemas.get(told)
        if held is None:
            primary = tuple(name for name, _, flags, _ in told if flags & _PRIMARY)
            key = primary or tuple(name for name, _, flags, handle in told if handle or flags & _HANDLE)
            fields = tuple(_field(name, code, flags, is_key=name in key) for name, code, flags, _ in told)
            # A delete may be of the key alone, which says nothing of other columns.
            certainty = "names" if {*key} == {name for name, *_ in told} else "type_names"
            held = self._schemas[told] = RowSchema(fields=fields, key=key, certainty=certainty)
        return held


def _pairs(key: bytes, value: bytes) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """The keys and values of a message's events."""
    keys = _parts(key[8:])
    if int.from_bytes(key[:8], "big") != _VERSION or not keys:
        raise ValueError("no version 1 of the protocol")
    values = _parts(value) or [b""] * len(keys)
    if len(values) != len(keys):
        raise ValueError(f"{len(keys)} keys and {len(values)} values")
    return [(_object(each), _object(body) if body else {}) for each, body in zip(keys, values, strict=True)]


def _parts(body: bytes) -> list[bytes]:
    """What stands behind each other, each with its length before it."""
    found, at = list[bytes](), 0
    while at < len(body):
        size = int.from_bytes(body[at : at + 8], "big", signed=True)
        if size < 0 or at + 8 + size > len(body):
            raise ValueError("a length that leads beyond the end")
        found.append(body[at + 8 : at + 8 + size])
        at += 8 + size
    return found


def _object(text: bytes) -> dict[str, Any]:
    found = parsed(text, exact=True)
    if not isinstance(found, dict):
        raise TypeError("no object")
    return found


def _field(name: str, code: Any, flags: int, *, is_key: bool) -> Field:
    nullable = not is_key and (flags == 0 or bool(flags & _NULLABLE))
    column = Column(id=0, name=name, type=_type(code, flags), nullable=nullable)
    return Field(column=column, type="", name="", parameters={})


def _type(code: Any, flags: int) -> ColumnType:
    if code in _INTEGERS:
        return ColumnType(name=_INTEGERS[code], unsigned=bool(flags & _UNSIGNED))
    if code in _TEXTS:
        if flags & _BINARY:
            return ColumnType(name=f"{_TEXTS[code]}blob")
        return ColumnType(name=f"{_TEXTS[code]}text", charset=_CHARSET, collation=_COLLATION)
    return _OTHERS.get(code) or ColumnType(name="" if code == 6 else f"type {code}")


def _value(column: Mapping[str, Any]) -> Any:
    """A column's value: of BLOBs and BINARYs bytes, else as JSON has it."""
    value, code = column["v"], column["t"]
    if not isinstance(value, str):
        return value
    is_bytes = bool(int(column.get("f") or 0) & _BINARY)
    if code in _ENCODED:
        try:
            body = base64.b64decode(value, validate=True)
        except binascii.Error as error:
            raise ValueError(f"no base64: {error}") from None
        return body if is_bytes else body.decode("utf-8")
    if code in _ESCAPED and is_bytes:
        return _unescaped(value)
    return value


def _unescaped(text: str) -> bytes:
    """Bytes that are written as Go's ``strconv.Quote`` writes a string, without its quotes.

    A byte that is no text stands there by its number; so does a character that is not printable, whose bytes are those of UTF-8.
    """
    plain = _ESCAPE.sub("", text)
    if "\\" in plain:
        raise ValueError(f"an escape that is none of Go's: {text[:60]}")
    return b"".join(
        _unescaped_one(part[1:]) if part.startswith("\\") else part.encode("utf-8") for part in _ESCAPE.split(text)
    )


def _unescaped_one(escape: str) -> bytes:
    kind, digits = escape[0], escape[1:]
    if not digits:
        return _CONTROLS.get(kind, kind).encode("ascii")
    return bytes.fromhex(digits) if kind == "x" else chr(int(digits, 16)).encode("utf-8")
