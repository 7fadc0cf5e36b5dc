"""Rows whose columns say their types themselves, by number and flags: one reading of them, led by a protocol's table."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from connectors.readers.kafka.messages.events import Conventions, Field, RowSchema
from connectors.readers.kafka.tidb.framing import pairs_of
from connectors.readers.kafka.tidb.go_quotes import unescaped
from historian.names import TableName
from historian.schema.snapshots import INTEGER_TYPES, Column, ColumnType

__all__ = ["TypedColumns", "TypedRows"]

_CHARSET, _COLLATION = "utf8mb4", "utf8mb4_bin"


@dataclass(frozen=True, slots=True, kw_only=True)
class TypedColumns:
    """How a column is told.

    Attributes:
        type: the field of its type's number; ``value``: of its value; ``flags``: of its flags, bits that the next ones name.
        handle: the field that is true of columns of the key, where none is flagged ``primary``.
        binary: of bytes, which are text else; ``is_handle``: of columns as those of ``handle``; ``primary``: of those of the primary key.
        nullable: not NOT NULL, which without any flag is not told; ``unsigned``: of integers.
        types: by number; ``texts``: what stands before TEXT or BLOB of those that are one or the other.
        base64: numbers of types whose values are in base64, and ``quoted``: as Go quotes texts where they are bytes.
    """

    type: str
    value: str
    flags: str
    handle: str
    binary: int
    is_handle: int
    primary: int
    nullable: int
    unsigned: int
    types: Mapping[int, ColumnType]
    texts: Mapping[int, str]
    base64: frozenset[int]
    quoted: frozenset[int]


class TypedRows:
    """A protocol's own part, see :class:`connectors.readers.kafka.tidb.decoder.TidbRows`.

    Args:
        zone: of TIMESTAMPs, in which the changefeed runs.
    """

    def __init__(self, columns: TypedColumns, *, zone: str = "UTC") -> None:
        self.written = Conventions(labels="number", documents="text", zone=zone, whole=True)
        self._told = columns
        self._schemas: dict[tuple[Any, ...], RowSchema] = {}

    def events(self, key: bytes | None, value: bytes | None) -> list[dict[str, Any]]:
        """Of each the fields of its part of the key and of the value."""
        return [{**body, **head} for head, body in pairs_of(key or b"", value or b"")]

    def database(self, event: Mapping[str, Any], named: str) -> str:
        """As the event tells it."""
        return str(event.get(named) or "")

    def value(self, told: Any) -> Any:
        """Of BLOBs and BINARYs bytes, else as JSON has it."""
        form = self._told
        value, code = told[form.value], told[form.type]
        if not isinstance(value, str):
            return value
        is_bytes = bool(self._flags(told) & form.binary)
        if code in form.base64:
            try:
                body = base64.b64decode(value, validate=True)
            except binascii.Error as error:
                raise ValueError(f"no base64: {error}") from None
            return body if is_bytes else body.decode("utf-8")
        return unescaped(value) if is_bytes and code in form.quoted else value

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
        form = self._told
        columns = tuple(
            (name, each[form.type], self._flags(each), each.get(form.handle) is True) for name, each in told.items()
        )
        held = self._schemas.get(columns)
        if held is None:
            primary = tuple(name for name, _, flags, _ in columns if flags & form.primary)
            key = primary or tuple(name for name, _, flags, handle in columns if handle or flags & form.is_handle)
            fields = tuple(self._field(name, code, flags, is_key=name in key) for name, code, flags, _ in columns)
            # A delete may be of the key alone, which says nothing of other columns.
            certainty = "names" if {*key} == {name for name, *_ in columns} else "type_names"
            held = self._schemas[columns] = RowSchema(fields=fields, key=key, certainty=certainty)
        return held

    def _flags(self, told: Mapping[str, Any]) -> int:
        return int(told.get(self._told.flags) or 0)

    def _field(self, name: str, code: Any, flags: int, *, is_key: bool) -> Field:
        nullable = not is_key and (flags == 0 or bool(flags & self._told.nullable))
        column = Column(id=0, name=name, type=self._type(code, flags), nullable=nullable)
        return Field(column=column, type="", name="", parameters={})

    def _type(self, code: Any, flags: int) -> ColumnType:
        form = self._told
        size = form.texts.get(code)
        if size is not None and flags & form.binary:
            return ColumnType(name=f"{size}blob")
        if size is not None:
            return ColumnType(name=f"{size}text", charset=_CHARSET, collation=_COLLATION)
        found = form.types.get(code) or ColumnType(name=f"type {code}")
        return replace(found, unsigned=True) if found.name in INTEGER_TYPES and flags & form.unsigned else found
