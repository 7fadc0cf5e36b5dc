"""Which formats some messages may be of, by what is in them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from connectors.readers.kafka.messages.parsing import parsed

__all__ = ["is_envelope", "likely_formats"]

_MARKS: tuple[tuple[frozenset[str], tuple[str, ...]], ...] = (
    (frozenset(("source", "op")), ("debezium_json_schemaless",)),
    (frozenset(("source", "ddl", "databaseName")), ("debezium_json_schemaless",)),
    (frozenset(("schemaVersion", "commitTs", "version")), ("ticdc_simple",)),
    (frozenset(("tableSchema", "version", "type")), ("ticdc_simple",)),
    (frozenset(("commitTs", "buildTs", "version")), ("ticdc_simple",)),
    (frozenset(("_tidb", "isDdl", "mysqlType")), ("ticdc_canal_json",)),
    (frozenset(("isDdl", "mysqlType", "data")), ("canal_json", "ticdc_canal_json")),
    (frozenset(("isDdl", "database")), ("canal_json", "ticdc_canal_json")),
    (frozenset(("database", "type", "ts")), ("maxwell",)),
    (frozenset(("op_type", "op_ts", "table")), ("ogg_json",)),
    (frozenset(("data", "metadata")), ("dms_json",)),
    (frozenset(("control", "metadata")), ("dms_json",)),
)
"""Members that messages of a format have, the stricter ones first."""


def likely_formats(messages: Iterable[tuple[bytes | None, bytes | None]]) -> tuple[str, ...]:
    """The formats that most of *messages*, keys and values, look like; none where nothing tells."""
    found = Counter(formats for key, value in messages if (formats := _formats(key, value)))
    return found.most_common(1)[0][0] if found else ()


def is_envelope(record: Mapping[str, Any]) -> bool:
    """Whether a record, which was read as a row, is Debezium's envelope of rows: its first bytes do not tell it from one."""
    return isinstance(record.get("source"), dict) and {"before", "after", "op"} <= record.keys()


def _formats(key: bytes | None, value: bytes | None) -> tuple[str, ...]:
    if key is not None and len(key) > 16 and key[:8] == (1).to_bytes(8, "big"):
        return ("ticdc_open_protocol",)
    if value is None:
        return ()
    if value[:1] == b"\0" and len(value) > 5:
        if value[5:6] == b"{":
            return ("debezium_json_schema",)
        return ("debezium_avro", "avro_upsert", "ticdc_avro", "debezium_unwrapped")
    try:
        message = parsed(value, exact=False)
    except (ValueError, RecursionError):
        return ()
    return _of_object(message) if isinstance(message, dict) else ()


def _of_object(message: dict[str, Any]) -> tuple[str, ...]:
    if message.keys() == {"schema", "payload"} and isinstance(message["payload"], dict):
        source = message["payload"].get("source")
        if isinstance(source, dict) and "op" in message["payload"]:
            return ("ticdc_debezium",) if source.get("connector") == "TiCDC" else ("debezium_json", "ticdc_debezium")
        return ("debezium_unwrapped", "debezium_json")
    for members, formats in _MARKS:
        if members <= message.keys():
            return formats
    if any(name in message for name in ("__op", "__deleted", "__table")):
        return ("debezium_unwrapped",)
    return ("json_upsert", "debezium_unwrapped")
