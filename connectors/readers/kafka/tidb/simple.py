"""TiCDC's simple protocol: rows name the version of their table's schema, which messages before them have told."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timezone
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from connectors.readers.kafka.messages.events import Conventions, RowSchema
from connectors.readers.kafka.messages.parsing import parsed
from connectors.readers.kafka.tidb.decoder import TidbProtocol
from connectors.readers.kafka.tidb.table_schemas import told_schema, untold_schema
from historian.names import TableName

__all__ = ["SIMPLE_PROTOCOL", "SimpleRows"]

SIMPLE_PROTOCOL = TidbProtocol(
    title="TiCDC's simple protocol",
    shape='{"version": 1, "type": ..., "commitTs": ...}',
    kind="type",
    ops={"INSERT": "c", "UPDATE": "u", "DELETE": "d"},
    statements=frozenset(("CREATE", "RENAME", "CINDEX", "DINDEX", "ERASE", "TRUNCATE", "ALTER", "QUERY")),
    watermark="WATERMARK",
    passed_over=frozenset(("BOOTSTRAP",)),
    time="commitTs",
    database="database",
    table="table",
    sql="sql",
    data="data",
    deleted="old",
    old="old",
    cut={"handleKeyOnly": "handleKeyOnly: true", "claimCheckLocation": "claimCheckLocation"},
)

_REMEMBERED = 10_000


def _of_json(value: bytes) -> Any:
    return parsed(value, exact=True)


class SimpleRows:
    """The protocol's own part, see :class:`connectors.readers.kafka.tidb.decoder.TidbRows`.

    Args:
        read: makes a message of a value; raises ValueError, TypeError or KeyError where it is none.
    """

    written = Conventions(labels="number", documents="text", whole=True)

    def __init__(self, read: Callable[[bytes], Any] = _of_json) -> None:
        self._read = read
        self._told: dict[tuple[TableName, Any], RowSchema] = {}
        self._untold: dict[tuple[tuple[str, ...], bool], RowSchema] = {}

    def events(self, key: bytes | None, value: bytes | None) -> list[Mapping[str, Any]]:  # noqa: ARG002 all is in the value
        """The one of the value, once what it tells of tables is noted."""
        if value is None:
            raise ValueError("no value")
        message = self._read(value)
        if not isinstance(message, dict) or message.get("version") != 1:
            raise ValueError(value[:60].decode("utf-8", "replace"))
        for name in ("preTableSchema", "tableSchema"):
            if message.get(name):
                self._note(message[name])
        return [message]

    def _note(self, schema: Mapping[str, Any]) -> None:
        if len(self._told) >= _REMEMBERED:
            self._told.clear()
        table = TableName(_database(schema), str(schema["table"]))
        self._told[table, schema["version"]] = told_schema(schema)

    def database(self, event: Mapping[str, Any]) -> str:
        """Of the table that it is on; of a rename that of the table before."""
        return _database(event.get("preTableSchema") or event.get("tableSchema") or {})

    def schema(
        self, event: Mapping[str, Any], table: TableName, told: Mapping[str, Any], *, is_gone: bool
    ) -> RowSchema:
        """That of the version which the row names, as far as a message has told it."""
        found = self._told.get((table, event["schemaVersion"]))
        names = tuple(told)
        return found or self._untold.setdefault((names, is_gone), untold_schema(names, is_part=is_gone))

    def value(self, told: Any) -> Any:
        """As JSON has it, or what an object stands for."""
        return _plain(told) if isinstance(told, dict) else told

    def is_key(self, row: Mapping[str, Any], schema: RowSchema) -> bool:
        """Where no message has told the key, its table's version says."""
        if schema.key is None:
            return True
        return bool(schema.key) and row.keys() == {*schema.key} and len(schema.fields) > len(schema.key)


def _database(schema: Mapping[str, Any]) -> str:
    """The database of a table's schema, which has another name in JSON than in Avro."""
    return str(schema.get("schema") or schema.get("database") or "")


def _plain(value: Mapping[str, Any]) -> Any:
    """A value that is an object: a TIMESTAMP, or in Avro a BIGINT UNSIGNED as if it were signed."""
    return int(value["value"]) % 2**64 if value.keys() == {"value"} else _moment(value)


def _moment(value: Mapping[str, Any]) -> str:
    """A TIMESTAMP with its zone, in UTC."""
    text, zone = str(value["value"]), str(value["location"])
    if text.startswith("0000-00-00"):
        return text
    try:
        at = datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone))
    except (ZoneInfoNotFoundError, OSError) as error:
        raise ValueError(f"no time zone: {zone}: {error}") from None
    return at.astimezone(timezone.utc).strftime("%Y-%m-%d %H:%M:%S.%f")
