"""TiCDC's simple protocol: rows name the version of their table's schema, which messages before them have told."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timezone
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from connectors.readers.kafka.messages.events import Conventions, Event, RowSchema, SqlEvent, Watermark
from connectors.readers.kafka.messages.parsing import parsed
from connectors.readers.kafka.messages.timestamps import time_us
from connectors.readers.kafka.messages.whole_rows import only_key_sent
from connectors.readers.kafka.tidb.table_schemas import told_schema, untold_schema
from historian.errors import UnsupportedEvent
from historian.names import TableName

__all__ = ["SimpleProtocol"]

_STATEMENTS = ("CREATE", "RENAME", "CINDEX", "DINDEX", "ERASE", "TRUNCATE", "ALTER", "QUERY")
_ROWS = {"INSERT": "c", "UPDATE": "u", "DELETE": "d"}
_WRITTEN = Conventions(labels="number", documents="text", whole=True)
_REMEMBERED = 10_000


def _of_json(value: bytes) -> Any:
    return parsed(value, exact=True)


class SimpleProtocol:
    """Reads messages. What they tell of a table serves for the rows behind them. Not for several threads at once.

    Args:
        read: makes a message of a value; raises ValueError, TypeError or KeyError where it is none.
    """

    def __init__(self, read: Callable[[bytes], Any] = _of_json) -> None:
        self._read = read
        self._told: dict[tuple[TableName, Any], RowSchema] = {}
        self._untold: dict[tuple[tuple[str, ...], bool], RowSchema] = {}

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
            if value is not None:
                return self._events(self._message(value), where)
            found = "no value"
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            found = str(error)
        raise UnsupportedEvent(
            "a message is none of TiCDC's simple protocol",
            where=where,
            expected='{"version": 1, "type": ..., "commitTs": ...}',
            found=found,
            next_step="correct source.topics, or source.format",
        )

    def _message(self, value: bytes) -> Mapping[str, Any]:
        message = self._read(value)
        if not isinstance(message, dict) or message.get("version") != 1:
            raise ValueError(value[:60].decode("utf-8", "replace"))
        return message

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
        table = TableName(_database(schema), str(schema["table"]))
        self._told[table, schema["version"]] = told_schema(schema)

    def _statement(self, message: Mapping[str, Any], at_us: int) -> SqlEvent:
        sql = message["sql"]
        if not isinstance(sql, str) or not sql:
            raise ValueError("a statement without text")
        # The database of names without one: of a rename that of the table before.
        schema = message.get("preTableSchema") or message.get("tableSchema") or {}
        return SqlEvent(sql=sql, database=_database(schema), event_time_us=at_us)

    def _row(self, message: Mapping[str, Any], op: str, at_us: int, where: str) -> Event:
        if message.get("handleKeyOnly") or message.get("claimCheckLocation"):
            found = "handleKeyOnly: true" if message.get("handleKeyOnly") else "claimCheckLocation"
            raise only_key_sent(where, found, "set at the changefeed: large-message-handle-option=none")
        table = TableName(str(message["database"]), str(message["table"]))
        after = None if op == "d" else _values(message["data"])
        before = None if op == "c" else _values(message["old"])
        if before is not None and after is not None:
            before = {**after, **before}  # what did not change may be left out
        schema = self._told.get((table, message["schemaVersion"]))
        if schema is None:
            names = tuple(after or before or ())
            schema = self._untold.setdefault((names, op == "d"), untold_schema(names, is_part=op == "d"))
        return Event(
            table=table,
            schema=schema,
            op=op,
            before=before,
            after=after,
            event_time_us=at_us,
            written=_WRITTEN,
            keyed=op == "d" and _may_be_key(before or {}, schema),
        )


def _may_be_key(row: Mapping[str, Any], schema: RowSchema) -> bool:
    """Whether a row that is gone is told by its key alone; where no message has told the key, its table's version says."""
    if schema.key is None:
        return True
    return bool(schema.key) and row.keys() == {*schema.key} and len(schema.fields) > len(schema.key)


def _database(schema: Mapping[str, Any]) -> str:
    """The database of a table's schema, which has another name in JSON than in Avro."""
    return str(schema.get("schema") or schema.get("database") or "")


def _values(row: Any) -> dict[str, Any]:
    if not isinstance(row, dict) or not row:
        raise ValueError("no row in `data` or `old`")
    return {name: _plain(value) if isinstance(value, dict) else value for name, value in row.items()}


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
