"""TiCDC's simple protocol as JSON: rows name the version of their table's schema, which messages before them have told."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timezone
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from connectors.readers.kafka.messages.events import Conventions, Event, RowSchema, SqlEvent, Watermark
from connectors.readers.kafka.messages.parsing import parsed
from connectors.readers.kafka.messages.timestamps import time_us
from connectors.readers.kafka.tidb.table_schemas import told_schema, untold_schema
from historian.errors import UnsupportedEvent
from historian.names import TableName

__all__ = ["SimpleProtocol"]

_STATEMENTS = ("CREATE", "RENAME", "CINDEX", "DINDEX", "ERASE", "TRUNCATE", "ALTER", "QUERY")
_ROWS = {"INSERT": "c", "UPDATE": "u", "DELETE": "d"}
_WRITTEN = Conventions(labels="number", documents="text", whole=True)
_REMEMBERED = 10_000


class SimpleProtocol:
    """Reads messages. What they tell of a table serves for the rows behind them. Not for several threads at once."""

    def __init__(self) -> None:
        self._told: dict[tuple[TableName, Any], RowSchema] = {}
        self._untold: dict[tuple[str, ...], RowSchema] = {}

    def events(
        self,
        key: bytes | None,  # noqa: ARG002 all is in the value
        value: bytes | None,
        where: str,
        time_us: int = 0,  # noqa: ARG002 messages tell when the source changed the row
    ) -> tuple[Event | SqlEvent | Watermark, ...]:
        """The events of a message, see :class:`connectors.readers.kafka.messages.events.Decoder`.

        Raises:
            UnsupportedEvent: it is none of this protocol, or its row is not in it.
        """
        try:
            return self._events(_message(value), where)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise UnsupportedEvent(
                "a message is none of TiCDC's simple protocol as JSON",
                where=where,
                expected='{"version": 1, "type": ..., "commitTs": ...}',
                found=str(error),
                next_step="correct source.topics, or source.format",
            ) from None

    def _events(self, message: Mapping[str, Any], where: str) -> tuple[Event | SqlEvent | Watermark, ...]:
        kind = message["type"]
        for name in ("preTableSchema", "tableSchema"):
            if message.get(name):
                self._note(message[name])
        if kind == "BOOTSTRAP":
            return ()
        at_us = time_us(message["commitTs"])
        if kind == "WATERMARK":
            return (Watermark(time_us=at_us),)
        if kind in _STATEMENTS:
            return (self._statement(message, at_us),)
        return (self._row(message, _ROWS[kind], at_us, where),)

    def _note(self, schema: Mapping[str, Any]) -> None:
        if len(self._told) >= _REMEMBERED:
            self._told.clear()
        self._told[TableName(str(schema["schema"]), str(schema["table"])), schema["version"]] = told_schema(schema)

    def _statement(self, message: Mapping[str, Any], at_us: int) -> SqlEvent:
        sql = message["sql"]
        if not isinstance(sql, str) or not sql:
            raise ValueError("a statement without text")
        # The database of names without one: of a rename that of the table before.
        schema = message.get("preTableSchema") or message.get("tableSchema") or {}
        return SqlEvent(sql=sql, database=str(schema.get("schema") or ""), event_time_us=at_us)

    def _row(self, message: Mapping[str, Any], op: str, at_us: int, where: str) -> Event:
        if message.get("handleKeyOnly") or message.get("claimCheckLocation"):
            raise UnsupportedEvent(
                "a row of which only the key is sent",
                where=where,
                expected="whole rows",
                found="handleKeyOnly: true" if message.get("handleKeyOnly") else "claimCheckLocation",
                next_step="set at the changefeed: large-message-handle-option=none",
            )
        table = TableName(str(message["database"]), str(message["table"]))
        after = None if op == "d" else _values(message["data"])
        before = None if op == "c" else _values(message["old"])
        if before is not None and after is not None:
            before = {**after, **before}  # what did not change may be left out
        schema = self._told.get((table, message["schemaVersion"]))
        if schema is None:
            names = tuple(after or before or ())
            schema = self._untold.setdefault(names, untold_schema(names))
        key = set(schema.key or ())
        return Event(
            table=table,
            schema=schema,
            op=op,
            before=before,
            after=after,
            event_time_us=at_us,
            written=_WRITTEN,
            keyed=op == "d" and bool(key) and set(before or ()) == key and len(schema.fields) > len(key),
        )


def _message(value: bytes | None) -> dict[str, Any]:
    if value is None:
        raise ValueError("no value")
    message = parsed(value, exact=True)
    if not isinstance(message, dict) or message.get("version") != 1:
        raise ValueError(value[:60].decode("utf-8", "replace"))
    return message


def _values(row: Any) -> dict[str, Any]:
    if not isinstance(row, dict) or not row:
        raise ValueError("no row in `data` or `old`")
    return {name: _moment(value) if isinstance(value, dict) else value for name, value in row.items()}


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
