"""Rows that name the version of their table's schema, which messages before them have told."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timezone
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from connectors.readers.kafka.messages.events import Conventions, RowSchema
from connectors.readers.kafka.messages.parsing import parsed
from connectors.readers.kafka.tidb.table_schemas import ToldSchemas, told_schema, untold_schema
from historian.names import TableName

__all__ = ["VersionedRows"]

_REMEMBERED = 10_000


def _of_json(value: bytes) -> Any:
    return parsed(value, exact=True)


class VersionedRows:
    """A protocol's own part, see :class:`connectors.readers.kafka.tidb.decoder.TidbRows`.

    Args:
        read: makes a message of a value; raises ValueError, TypeError or KeyError where it is none.
    """

    written = Conventions(labels="number", documents="text", whole=True)

    def __init__(self, schemas: ToldSchemas, read: Callable[[bytes], Any] = _of_json) -> None:
        self._names, self._read = schemas, read
        self._told: dict[tuple[TableName, Any], RowSchema] = {}
        self._untold: dict[tuple[tuple[str, ...], bool], RowSchema] = {}

    def events(self, key: bytes | None, value: bytes | None) -> list[Mapping[str, Any]]:  # noqa: ARG002 all is in the value
        """The one of the value, once what it tells of tables is noted."""
        if value is None:
            raise ValueError("no value")
        message = self._read(value)
        if not isinstance(message, dict) or message.get(self._names.version) != self._names.messages:
            raise ValueError(value[:60].decode("utf-8", "replace"))
        for name in self._names.told:
            if message.get(name):
                self._note(message[name])
        return [message]

    def _note(self, schema: Mapping[str, Any]) -> None:
        if len(self._told) >= _REMEMBERED:
            self._told.clear()
        table = TableName(self._database_of(schema), str(schema[self._names.table]))
        self._told[table, schema[self._names.version]] = told_schema(schema, self._names)

    def database(self, event: Mapping[str, Any], named: str) -> str:  # noqa: ARG002 schemas name it
        """Of the table that it is on; of a rename that of the table before."""
        return self._database_of(next((event[name] for name in self._names.told if event.get(name)), {}))

    def _database_of(self, schema: Mapping[str, Any]) -> str:
        return str(next((schema[name] for name in self._names.database if schema.get(name)), ""))

    def schema(
        self, event: Mapping[str, Any], table: TableName, told: Mapping[str, Any], *, is_gone: bool
    ) -> RowSchema:
        """That of the version which the row names, as far as a message has told it."""
        found = self._told.get((table, event[self._names.row_version]))
        columns = tuple(told)
        return found or self._untold.setdefault((columns, is_gone), untold_schema(columns, is_part=is_gone))

    def value(self, told: Any) -> Any:
        """As JSON has it, or what an object stands for: a TIMESTAMP, or in Avro a BIGINT UNSIGNED as if it were signed."""
        if not isinstance(told, dict):
            return told
        value = told[self._names.value]
        return int(value) % 2**64 if len(told) == 1 else _moment(str(value), str(told[self._names.zone]))

    def is_key(self, row: Mapping[str, Any], schema: RowSchema) -> bool:
        """Where no message has told the key, its table's version says."""
        if schema.key is None:
            return True
        return bool(schema.key) and row.keys() == {*schema.key} and len(schema.fields) > len(schema.key)


def _moment(text: str, zone: str) -> str:
    """A TIMESTAMP of a zone in UTC."""
    if text.startswith("0000-00-00"):
        return text
    try:
        at = datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone))
    except (ZoneInfoNotFoundError, OSError) as error:
        raise ValueError(f"no time zone: {zone}: {error}") from None
    return at.astimezone(timezone.utc).strftime("%Y-%m-%d %H:%M:%S.%f")
