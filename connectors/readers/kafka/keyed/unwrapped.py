"""What Debezium's transform ``ExtractNewRecordState`` leaves of its events: rows, with fields that say where they come from.

A message says itself how it was written: by its first byte with a schema in a registry, by its first member with its schema inline, else
without one.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from connectors.readers.kafka.avro.writers import Writer, Writers
from connectors.readers.kafka.debezium.changes import with_known
from connectors.readers.kafka.debezium.schemas import UNLIKE_A_SCHEMA, columns_of
from connectors.readers.kafka.formats.schemas import UNTOLD, inferred
from connectors.readers.kafka.keyed.keys import key_fields
from connectors.readers.kafka.keyed.names import table_of
from connectors.readers.kafka.messages.events import Conventions, Event, RowSchema
from connectors.readers.kafka.messages.parsing import parsed
from historian.errors import UnsupportedEvent
from historian.names import TableName

__all__ = ["UnwrappedRows"]

_OURS = "__"
"""What names of fields that the transform adds begin with, by its default."""

_INLINE = b'{"schema":'
_FIRST_BYTE = b"\0"


_Schema = Callable[[tuple[str, ...], TableName, Mapping[str, Any]], RowSchema]
"""Gives the schema of a row, of the names of its key's columns, its table, and itself."""


class UnwrappedRows:
    """Reads the messages of one topic. Not for several threads at once; *writers* may be others' too.

    Args:
        topic: whose name tells the table's where no message does.
        written: how values are written without a schema.
        tells: events say what schema their message has, where it stands in none.
    """

    def __init__(self, topic: str, *, written: Conventions, writers: Writers | None = None, tells: bool = True) -> None:
        self._table = table_of(topic)
        self._written, self._writers, self._tells = written, writers, tells
        self._schemas: dict[tuple[Any, ...], RowSchema] = {}
        self._inferred: dict[TableName, RowSchema] = {}
        self._last: _Schema | None = None
        self._is_typed = False

    def events(self, key: bytes | None, value: bytes | None, where: str, time_us: int = 0) -> tuple[Event, ...]:
        """The event of a message, see :class:`connectors.readers.kafka.messages.events.Decoder`.

        Raises:
            UnsupportedEvent: it is no row, or has no key.
            RegistryDown, SourceError: its schema cannot be had.
        """
        fields, schema = self._key(key, where)
        names = tuple(fields)
        whole: Mapping[str, Any] = {}
        if value is not None:
            whole, schema = self._row(value, where)
            self._last = schema
        row = {**fields, **{name: each for name, each in whole.items() if not name.startswith(_OURS)}}
        table, unknown = self._named(whole), tuple[str, ...]()
        if value is None or str(whole.get("__deleted")).lower() == "true" or whole.get("__op") == "d":
            op, before, after = "d", dict(fields), None
        else:
            # Without `__op` a row may be new, or not.
            op, before = str(whole.get("__op") or "u"), None
            after, unknown = with_known(None, row)
        if op not in ("c", "r", "u", "d"):
            raise _unlike(where, f"`__op` is {op!r}")
        return (
            Event(
                table=table,
                # What columns a row has that is gone, the last row tells that was there.
                schema=replace(schema(names, table, row), certainty="names")
                if self._last is None
                else self._last(names, table, row),
                op=op,
                before=before,
                after=after,
                event_time_us=_time_us(whole, time_us),
                written=None if self._is_typed else self._written,
                keyed=op == "d",
                unknown=unknown,
            ),
        )

    def _key(self, key: bytes | None, where: str) -> tuple[dict[str, Any], _Schema]:
        """The columns of a message's key, and what gives the schema of a row that has no others."""
        if key is None or not key.startswith((_INLINE, _FIRST_BYTE)):
            return key_fields(key, where), self._told
        found, schema = self._row(key, f"the key of {where}")
        return dict(found), schema

    def _row(self, text: bytes, where: str) -> tuple[Mapping[str, Any], _Schema]:
        """The fields of a message, and what gives the schema of its row."""
        if text.startswith(_FIRST_BYTE):
            if self._writers is None:
                raise _unlike(where, "a schema in a registry, and no source.registry")
            writer = self._writers.of(text, where)
            self._is_typed = True
            return writer.value(text, where), lambda key, _, __: self._of_avro(writer, key, where)
        try:
            message = parsed(text, exact=True)
        except (ValueError, RecursionError) as error:
            raise _unlike(where, f"broken JSON: {error}") from None
        if isinstance(message, dict) and text.startswith(_INLINE) and message.keys() == {"schema", "payload"}:
            schema, payload = message["schema"], message["payload"]
            if not isinstance(payload, dict) or not isinstance(schema, dict):
                raise _unlike(where, "a payload that is no object")
            self._is_typed = True
            return payload, lambda key, _, __: self._of_fields(schema, key, where)
        if not isinstance(message, dict):
            raise _unlike(where, text[:60].decode("utf-8", "replace"))
        self._is_typed = False
        return message, self._told

    def _of_avro(self, writer: Writer, key: tuple[str, ...], where: str) -> RowSchema:
        return self._held((writer, key), key, writer.fields, where)

    def _of_fields(self, schema: Mapping[str, Any], key: tuple[str, ...], where: str) -> RowSchema:
        return self._held((json.dumps(schema, default=str), key), key, lambda: schema["fields"], where)

    def _held(self, at: tuple[Any, ...], key: tuple[str, ...], fields: Callable[[], Any], where: str) -> RowSchema:
        held = self._schemas.get(at)
        if held is None:
            try:
                own = [each for each in fields() if not str(each["field"]).startswith(_OURS)]
                there = {each["field"] for each in own}
                own += [{"field": name, "type": "string"} for name in key if name not in there]
                held = RowSchema(fields=columns_of({"fields": own}, where), key=key)
            except UNLIKE_A_SCHEMA as error:
                raise _unlike(where, f"a schema that is none of a row: {error!r}") from None
            self._schemas[at] = held
        return held

    def _told(self, key: tuple[str, ...], table: TableName, row: Mapping[str, Any]) -> RowSchema:
        if not self._tells:
            return UNTOLD
        held = self._inferred[table] = inferred(row, self._inferred.get(table), key)
        return held

    def _named(self, fields: Mapping[str, Any]) -> TableName:
        """The table, where the transform tells it (``add.fields``); else that of the topic."""
        table = _first(fields, "__table", "__source_table")
        database = _first(fields, "__schema", "__source_schema") or _first(fields, "__db", "__source_db")
        if table is None:
            return self._table
        return TableName(self._table.database if database is None else database, table)


def _first(fields: Mapping[str, Any], *names: str) -> str | None:
    return next((fields[name] for name in names if isinstance(fields.get(name), str)), None)


def _time_us(fields: Mapping[str, Any], time_us: int) -> int:
    """When the source changed the row, as far as the transform tells; else when the message was sent."""
    for name, unit_us in (("__source_ts_us", 1), ("__source_ts_ms", 1000), ("__ts_us", 1), ("__ts_ms", 1000)):
        found = fields.get(name)
        if isinstance(found, int) and not isinstance(found, bool) and 0 <= found * unit_us < 2**62:
            return found * unit_us
    return time_us


def _unlike(where: str, found: str) -> UnsupportedEvent:
    return UnsupportedEvent(
        "a message is no row that Debezium's ExtractNewRecordState writes",
        where=where,
        expected="the fields of a row",
        found=found,
        next_step="correct source.topics, or source.format",
    )
