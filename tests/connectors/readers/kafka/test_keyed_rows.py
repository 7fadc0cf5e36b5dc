"""Rows under their keys: what a message without a value says of its table's columns."""

from __future__ import annotations

from typing import Any

from connectors.readers.kafka.decoders import decoder_of
from connectors.readers.kafka.messages.events import Event
from logs.topic_messages import body, recorded_writers


def record(table: str, *columns: str) -> dict[str, Any]:
    key = {"name": "id", "type": {"type": "int", "connect.parameters": {"tidb_type": "INT"}}}
    texts = [
        {"name": name, "type": ["null", {"type": "string", "connect.parameters": {"tidb_type": "TEXT"}}]}
        for name in columns
    ]
    return {"type": "record", "name": table, "namespace": "default.shop", "fields": [key, *texts]}


def test_a_delete_has_the_columns_of_its_own_table_where_a_topic_has_several() -> None:
    case = {"registry": {"1": record("a"), "2": record("a", "x"), "3": record("b"), "4": record("b", "y")}}
    decoder = decoder_of("ticdc_avro", writers=recorded_writers(case), topic="shop")
    messages = [(1, 2, {"x": "1"}), (3, 4, {"y": "1"}), (1, None, {}), (3, None, {})]

    found = []
    for key, value, row in messages:
        of_key = body({"schema": key, "record": {"id": 1}}, case["registry"])
        of_value = body({"schema": value, "record": {"id": 1, **row}}, case["registry"]) if value else None
        found += decoder.events(of_key, of_value, "shop:0:0")

    columns = []
    for event in found:
        assert isinstance(event, Event)
        columns.append((event.op, event.table.table, [each.column.name for each in event.schema.fields]))
    assert [
        ("u", "a", ["id", "x"]),
        ("u", "b", ["id", "y"]),
        ("d", "a", ["id", "x"]),
        ("d", "b", ["id", "y"]),
    ] == columns
