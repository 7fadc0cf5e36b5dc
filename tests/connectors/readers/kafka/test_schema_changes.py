"""Debezium's topic of schema changes: which statements it has."""

from __future__ import annotations

import json
from typing import Any

import pytest

from connectors.readers.kafka.client import KafkaSettings
from connectors.readers.kafka.decoders import decoder_of
from connectors.readers.kafka.messages.events import SqlEvent
from connectors.readers.kafka.reader import KafkaReader
from connectors.readers.kafka.scanning import TopicScan
from historian.errors import SourceError, UnsupportedEvent
from historian.positions import KAFKA, LogPosition, TopicOffsets
from logs.registered_events import RegisteredEvents
from logs.topic_streams import batch_of

ALTER = "ALTER TABLE t RENAME COLUMN a TO b"


def change(ddl: Any, snapshot: Any = "false", **more: Any) -> bytes:
    source = {"db": "shop", "ts_ms": 5, "ts_us": 5123, "snapshot": snapshot}
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


def row(number: int) -> bytes:
    fields = [
        {"type": "int32", "optional": False, "field": "id"},
        {"type": "string", "optional": True, "field": "a"},
    ]
    schema = {"type": "struct", "fields": [{"type": "struct", "fields": fields, "field": "after"}]}
    source = {"db": "shop", "table": "t", "ts_us": number}
    payload = {"before": None, "after": {"id": number, "a": "x"}, "source": source, "op": "c"}
    return json.dumps({"schema": schema, "payload": payload}).encode()


def test_rows_tell_columns_alone_where_statements_tell_their_types() -> None:
    settings = KafkaSettings(brokers="", topics=("prefix.shop.t",), schema_topic="prefix")
    scan = TopicScan({("prefix", 0): (0, 1), ("prefix.shop.t", 0): (0, 1)}, settings)
    scan.take(("prefix", 0), batch_of([(None, change(ALTER))]))
    scan.take(("prefix.shop.t", 0), batch_of([(None, row(9000))]))
    statement, met = (found for _, found in scan.found)
    assert ("prefix:0:0", ALTER, True) == (statement.place.gtid, statement.sql, statement.apart)  # type: ignore[union-attr]
    assert "columns" == met.certainty  # type: ignore[union-attr]


def test_a_statement_that_is_dated_by_the_second_is_refused() -> None:
    value = change(ALTER).replace(b'"ts_us": 5123', b'"ts_us": 7000000')
    decoder = decoder_of("debezium_json", topic="prefix", schema_topic="prefix")
    with pytest.raises(SourceError, match="tells seconds alone"):
        decoder.events(None, value, "prefix:0:1")


@pytest.mark.parametrize("rows, is_refused", [(5, False), (2, True), (0, True)])
def test_a_statement_does_not_run_ahead_of_rows_that_are_not_read(rows: int, is_refused: bool) -> None:
    settings = KafkaSettings(brokers="", topics=("prefix.shop.t",), schema_topic="prefix")
    scan = TopicScan({("prefix", 0): (0, 2), ("prefix.shop.t", 0): (0, 5)}, settings)
    create = change("CREATE TABLE t (a INT)")
    scan.take(("prefix", 0), batch_of([(None, create), (None, change(ALTER))]))
    if rows:
        scan.take(("prefix.shop.t", 0), batch_of([(None, row(1000 + number)) for number in range(rows)]))
    if is_refused:
        with pytest.raises(
            SourceError, match=r"later than rows that a plan has no room for.*RENAME COLUMN.*max_batch_bytes"
        ):
            scan.waiting_ends()
    else:
        scan.waiting_ends()


def test_a_statement_may_be_earlier_than_all_rows_that_are_not_read() -> None:
    settings = KafkaSettings(brokers="", topics=("prefix.shop.t",), schema_topic="prefix")
    scan = TopicScan({("prefix", 0): (0, 1), ("prefix.shop.t", 0): (0, 5)}, settings)
    scan.take(("prefix", 0), batch_of([(None, change(ALTER))]))
    scan.take(("prefix.shop.t", 0), batch_of([(None, row(9000))]))
    scan.waiting_ends()


SOURCE = {"ts_ms": 7000, "server_id": 3, "file": "binlog.000002", "pos": 4}


@pytest.mark.parametrize("name", ["debezium_json", "debezium_json_schemaless", "debezium_json_schema", "debezium_avro"])
def test_a_statement_that_is_dated_by_the_second_has_its_place(name: str) -> None:
    registered = RegisteredEvents(name)
    decoder = decoder_of(name, topic="prefix", schema_topic="prefix", writers=registered.writers)
    whole = {**SOURCE, "connector": "mysql", "db": "shop", "row": 0}
    (event,) = decoder.events(*registered.message((None, change(ALTER, source=whole))), "prefix:0:1")
    assert "3//binlog.000002:4s" == event.source  # type: ignore[union-attr]
    copied = change("CREATE TABLE t (a INT)", source={**whole, "snapshot": "true"})
    (made,) = decoder.events(*registered.message((None, copied)), "prefix:0:1")
    assert "" == made.source  # type: ignore[union-attr]


def test_a_topic_of_statements_that_comes_later_is_refused() -> None:
    reader = KafkaReader(KafkaSettings(brokers="", topics=("t",), schema_topic="prefix"))
    begins = [("prefix", 0), ("t", 0)]

    def at(*offsets: tuple[tuple[str, int], int]) -> LogPosition:
        return LogPosition(flavor=KAFKA, gtids=str(TopicOffsets.of(dict(offsets))), file="", offset=0)

    reader._check_schema_topic(at(), begins)
    reader._check_schema_topic(at((("prefix", 0), 3), (("t", 0), 7)), begins)
    with pytest.raises(SourceError, match="comes to a connector that has read rows without it"):
        reader._check_schema_topic(at((("t", 0), 7)), begins)
