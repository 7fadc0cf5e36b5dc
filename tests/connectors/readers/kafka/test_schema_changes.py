"""Debezium's topic of schema changes: which statements it has."""

from __future__ import annotations

import json
from typing import Any

import pytest

from connectors.readers.kafka.client import KafkaSettings
from connectors.readers.kafka.decoders import decoder_of
from connectors.readers.kafka.messages.events import SqlEvent
from connectors.readers.kafka.scanning import TopicScan
from historian.errors import UnsupportedEvent
from logs.topic_streams import batch_of

ALTER = "ALTER TABLE t RENAME COLUMN a TO b"


def change(ddl: Any, snapshot: Any = "false", **more: Any) -> bytes:
    source = {"db": "shop", "ts_ms": 5, "ts_us": 5123, "snapshot": snapshot, "file": "binlog.000002", "pos": 4}
    return json.dumps({"source": source, "databaseName": "shop", "schemaName": None, "ddl": ddl, **more}).encode()


def inline(value: bytes) -> bytes:
    return b'{"schema":{"type":"struct"},"payload":' + value + b"}"


@pytest.mark.parametrize(
    "value, wanted",
    [
        (change(ALTER), ALTER),
        (inline(change(ALTER)), ALTER),
        (change(ALTER, None), ALTER),
        (change("CREATE TABLE t (a INT)"), "CREATE TABLE t (a INT)"),
        # A snapshot makes anew what is there.
        (change("CREATE TABLE `t` (\n a INT)", "true"), "CREATE TABLE IF NOT EXISTS `t` (\n a INT)"),
        (change("DROP TABLE IF EXISTS `shop`.`t`", "first"), None),
        (change("CREATE DATABASE `shop`", "last"), None),
        (change("", "true"), None),
        (change(None), None),
        (None, None),
    ],
)
def test_its_messages_are_statements_of_the_source(value: bytes | None, wanted: str | None) -> None:
    decoder = decoder_of("debezium_json", topic="prefix", schema_topic="prefix")
    expected = () if wanted is None else (SqlEvent(sql=wanted, database="shop", event_time_us=5123),)
    assert expected == decoder.events(b"{}", value, "prefix:0:1")


@pytest.mark.parametrize("value", [b"no JSON", b"[]", b'{"source": {"ts_ms": 1}}', change(ALTER, source="here")])
def test_another_message_is_an_error_that_says_what_the_topic_is(value: bytes) -> None:
    decoder = decoder_of("debezium_json_schemaless", topic="prefix", schema_topic="prefix")
    with pytest.raises(UnsupportedEvent, match=r"prefix:0:1.*include\.schema\.changes=true"):
        decoder.events(None, value, "prefix:0:1")


def test_rows_tell_columns_alone_where_statements_tell_their_types() -> None:
    def row(number: int) -> bytes:
        fields = [
            {"type": "int32", "optional": False, "field": "id"},
            {"type": "string", "optional": True, "field": "a"},
        ]
        schema = {"type": "struct", "fields": [{"type": "struct", "fields": fields, "field": "after"}]}
        source = {"db": "shop", "table": "t", "ts_us": number}
        payload = {"before": None, "after": {"id": number, "a": "x"}, "source": source, "op": "c"}
        return json.dumps({"schema": schema, "payload": payload}).encode()

    settings = KafkaSettings(brokers="", topics=("prefix.shop.t",), schema_topic="prefix")
    scan = TopicScan({("prefix", 0): (0, 1), ("prefix.shop.t", 0): (0, 1)}, settings)
    scan.take(("prefix", 0), batch_of([(None, change(ALTER))]))
    scan.take(("prefix.shop.t", 0), batch_of([(None, row(9000))]))
    statement, met = (found for _, found in scan.found)
    assert ("prefix:0:0", ALTER) == (statement.place.gtid, statement.sql)  # type: ignore[union-attr]
    assert "columns" == met.certainty  # type: ignore[union-attr]
