"""TiCDC's open protocol: several events a message, whose columns say their types by number."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Any

from connectors.readers.kafka.messages.events import Conventions, Field, RowSchema
from connectors.readers.kafka.tidb.decoder import TidbProtocol
from connectors.readers.kafka.tidb.framing import pairs_of
from connectors.readers.kafka.tidb.go_quotes import unescaped
from historian.names import TableName
from historian.schema.snapshots import Column, ColumnType

__all__ = ["OPEN_PROTOCOL", "OpenRows"]

OPEN_PROTOCOL = TidbProtocol(
    title="TiCDC's open protocol",
    shape="version 1: lengths of 8 bytes, each before a JSON object",
    kind="t",
    ops={1: None},
    statements=frozenset((2,)),
    watermark=3,
    time="ts",
    database="scm",
    table="tbl",
    sql="q",
    data="u",
    deleted="d",
    old="p",
    cut={"ohk": "ohk: true", "ccl": "ccl: a place in a storage"},
)

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


class OpenRows:
    """The protocol's own part, see :class:`connectors.readers.kafka.tidb.decoder.TidbRows`.

    Args:
        zone: of TIMESTAMPs, in which the changefeed runs.
    """

    def __init__(self, *, zone: str = "UTC") -> None:
        self.written = Conventions(labels="number", documents="text", zone=zone, whole=True)
        self._schemas: dict[tuple[Any, ...], RowSchema] = {}

    def events(self, key: bytes | None, value: bytes | None) -> list[dict[str, Any]]:
        """Of each the fields of its part of the key and of the value."""
        return [{**body, **head} for head, body in pairs_of(key or b"", value or b"")]

    def database(self, event: Mapping[str, Any]) -> str:
        """As the event tells it."""
        return str(event.get("scm") or "")

    def value(self, told: Any) -> Any:
        """Of BLOBs and BINARYs bytes, else as JSON has it."""
        return _value(told)

    def is_key(self, row: Mapping[str, Any], schema: RowSchema) -> bool:
        """Whether it has no other column."""
        return row.keys() == {*(schema.key or ())}

    def schema(
        self,
        event: Mapping[str, Any],  # noqa: ARG002 each column tells its type
        table: TableName,  # noqa: ARG002
        told: Mapping[str, Any],
        *,
        is_gone: bool,  # noqa: ARG002
    ) -> RowSchema:
        """By the types and flags of columns."""
        columns = tuple(
            (name, each["t"], int(each.get("f") or 0), each.get("h") is True) for name, each in told.items()
        )
        held = self._schemas.get(columns)
        if held is None:
            primary = tuple(name for name, _, flags, _ in columns if flags & _PRIMARY)
            key = primary or tuple(name for name, _, flags, handle in columns if handle or flags & _HANDLE)
            fields = tuple(_field(name, code, flags, is_key=name in key) for name, code, flags, _ in columns)
            # A delete may be of the key alone, which says nothing of other columns.
            certainty = "names" if {*key} == {name for name, *_ in columns} else "type_names"
            held = self._schemas[columns] = RowSchema(fields=fields, key=key, certainty=certainty)
        return held


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
        return unescaped(value)
    return value
