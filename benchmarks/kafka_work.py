"""Topics for benchmarks: change events of a table of ten mixed columns, as Debezium and Canal write them, and what drains them."""

from __future__ import annotations

import json
import time
from base64 import b64encode
from collections.abc import Callable
from contextlib import closing
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

from confluent_kafka import Consumer, Producer, TopicPartition

from connectors.readers.kafka.reader import KafkaReader
from historian.ddl import parse_column_type
from historian.names import TableName
from historian.plans.plans import PartitionRange, Passage, PlannedTable, PlannedVersion
from historian.schema.snapshots import Column, Snapshot

if TYPE_CHECKING:
    from connectors.readers.kafka.client import KafkaSettings
    from databases.kafka import Kafka
    from historian.changelog.chunks import Chunk

__all__ = ["PARTITIONS", "SHAPES", "TABLE", "canal_insert", "chunks_of", "drained", "envelope_of", "fill", "row_of"]

PARTITIONS = 2
_NOTE = "order {0} of customer {1}, to be left with the neighbours at number {2} where nobody opens"
_BEGIN = datetime(2024, 1, 1, tzinfo=timezone.utc)
_BEGIN_MS = 1_704_067_200_000
_SOURCE = (
    '{{"version":"3.6.1.Final","connector":"mysql","name":"shop","ts_ms":{0},"snapshot":"false","db":"shop","sequence":null,'
    '"ts_us":{0}123,"ts_ns":{0}123000,"table":"orders","server_id":1,"gtid":"3e11fa47-71ca-11e1-9e33-c80aa9429562:{1}",'
    '"file":"binlog.000002","pos":{1},"row":0,"thread":8,"query":null}}'
)
_FIELDS: list[dict[str, Any]] = [
    {"type": "int64", "optional": False, "field": "id"},
    {"type": "int32", "optional": False, "field": "customer"},
    {"type": "string", "optional": True, "field": "status"},
    {
        "type": "bytes",
        "optional": False,
        "name": "org.apache.kafka.connect.data.Decimal",
        "version": 1,
        "parameters": {"scale": "2", "connect.decimal.precision": "12"},
        "field": "amount",
    },
    {"type": "int64", "optional": False, "name": "io.debezium.time.Timestamp", "version": 1, "field": "created"},
    {"type": "string", "optional": False, "name": "io.debezium.time.ZonedTimestamp", "version": 1, "field": "updated"},
    {"type": "string", "optional": True, "field": "note"},
    {"type": "int16", "optional": False, "field": "quantity"},
    {"type": "double", "optional": False, "field": "weight"},
    {"type": "int16", "optional": False, "field": "flag"},
]
_TYPES = {
    "id": "bigint",
    "customer": "int",
    "status": "varchar(20)",
    "amount": "decimal(12,2)",
    "created": "datetime(3)",
    "updated": "timestamp(6)",
    "note": "varchar(200)",
    "quantity": "smallint",
    "weight": "double",
    "flag": "tinyint",
}


TABLE = Snapshot(
    table_id=1,
    name=TableName("shop", "orders"),
    columns=tuple(
        Column(
            id=number,
            name=name,
            type=parse_column_type(text, "utf8mb4", "utf8mb4_bin")
            if "char" in text
            else parse_column_type(text, None, None),
        )
        for number, (name, text) in enumerate(_TYPES.items(), 1)
    ),
    primary_key=(1,),
    charset="utf8mb4",
    collation="utf8mb4_bin",
)
"""The table as a plan has it."""


def row_of(number: int, change: int) -> dict[str, Any]:
    amount = number % 1_000_000 * 100 + change
    return {
        "id": number,
        "customer": number % 9973,
        "status": ("new", "paid", "shipped")[(number + change) % 3],
        "amount": b64encode(amount.to_bytes(5, "big")).decode(),
        "created": _BEGIN_MS + 1000 * number,
        "updated": f"{(_BEGIN + timedelta(microseconds=1001 * number)).isoformat(timespec='microseconds')[:-6]}Z",
        "note": None if number % 5 == 0 else _NOTE.format(number, number % 9973, number % 77),
        "quantity": number % 100 + change,
        "weight": (number % 1_000_003) / 8,
        "flag": number % 2,
    }


def _texts(number: int, change: int) -> dict[str, Any]:
    row = row_of(number, change)
    amount = number % 1_000_000 * 100 + change
    moment = (_BEGIN + timedelta(seconds=number)).replace(tzinfo=None)
    return {name: None if value is None else str(value) for name, value in row.items()} | {
        "amount": f"{amount // 100}.{amount % 100:02}",
        "created": moment.isoformat(" ", "milliseconds"),
        "updated": row["updated"].replace("T", " ")[:-1],
    }


def envelope_of(number: int) -> bytes:
    """Debezium's change event of that number, as JSON without its schema."""
    # Of ten messages eight are updates, one an insert, one a delete.
    kind = "c" if number % 10 == 0 else "d" if number % 10 == 1 else "u"
    rows = {"before": None if kind == "c" else row_of(number, 0), "after": None if kind == "d" else row_of(number, 1)}
    head = json.dumps(rows, separators=(",", ":"))[:-1]
    moment = _BEGIN_MS + number
    source = _SOURCE.format(moment, number)
    tail = f'"transaction":null,"op":"{kind}","ts_ms":{moment},"ts_us":{moment}456,"ts_ns":{moment}456789'
    return f'{head},"source":{source},{tail}}}'.encode()


def _inline(number: int) -> bytes:
    return _INLINE + envelope_of(number) + b"}"


def canal_insert(number: int, change: int) -> bytes:
    """Canal's message of a row that is there since that change."""
    return _canal_message(number, "INSERT", {}, _texts(number, change))


def _canal(number: int) -> bytes:
    kind = "INSERT" if number % 10 == 0 else "DELETE" if number % 10 == 1 else "UPDATE"
    return _canal_message(number, kind, _texts(number, 0), _texts(number, 1))


def _canal_message(number: int, kind: str, before: dict[str, Any], after: dict[str, Any]) -> bytes:
    message = {
        "data": [before if kind == "DELETE" else after],
        "database": "shop",
        "es": _BEGIN_MS + number,
        "gtid": "",
        "id": number,
        "isDdl": False,
        "mysqlType": _TYPES,
        "old": [{name: before[name] for name in after if after[name] != before[name]}] if kind == "UPDATE" else None,
        "pkNames": ["id"],
        "sql": "",
        "sqlType": dict.fromkeys(_TYPES, 12),
        "table": "orders",
        "ts": _BEGIN_MS + number,
        "type": kind,
    }
    return json.dumps(message, separators=(",", ":")).encode()


def _struct(name: str, fields: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    return {"type": "struct", "fields": fields, "optional": True, "name": name, **more}


_SOURCE_FIELDS = [
    {"type": "string" if isinstance(value, str) else "int64", "optional": True, "field": name}
    for name, value in json.loads(_SOURCE.format(1, 1)).items()
]
_ENVELOPE = _struct(
    "shop.orders.Envelope",
    [
        _struct("shop.orders.Value", _FIELDS, field="before"),
        _struct("shop.orders.Value", _FIELDS, field="after"),
        _struct("io.debezium.connector.mysql.Source", _SOURCE_FIELDS, field="source"),
        {"type": "string", "optional": False, "field": "op"},
        *({"type": "int64", "optional": True, "field": name} for name in ("ts_ms", "ts_us", "ts_ns")),
    ],
)
_INLINE = b'{"schema":' + json.dumps(_ENVELOPE, separators=(",", ":")).encode() + b',"payload":'
_KEY = json.dumps(_struct("shop.orders.Key", _FIELDS[:1]), separators=(",", ":")).encode()

SHAPES: dict[str, tuple[str, Callable[[int], bytes], Callable[[int], bytes]]] = {
    "debezium_json": ("debezium_json_schemaless", lambda number: b'{"id":%d}' % number, envelope_of),
    "debezium_json_with_schema": (
        "debezium_json",
        lambda number: b'{"schema":%b,"payload":{"id":%d}}' % (_KEY, number),
        _inline,
    ),
    "canal_json": ("canal_json", lambda _: b"", _canal),
}
"""By the benchmark's name the format, and what makes key and value of a message by its number."""


def fill(kafka: Kafka, shape: str, messages: int) -> int:
    """Makes a topic named as the shape and fills it; the bytes of all values."""
    kafka.make_topic(shape, PARTITIONS)
    _, key, value = SHAPES[shape]
    producer = Producer({"bootstrap.servers": kafka.brokers, "linger.ms": 50, "batch.size": 1_000_000})
    size = 0
    for number in range(messages):
        body = value(number)
        size += len(body)
        while True:
            try:
                producer.produce(shape, key=key(number), value=body, partition=number % PARTITIONS)
                break
            except BufferError:
                producer.poll(0.1)
        if number % 10_000 == 0:
            producer.poll(0)
    if producer.flush(60):
        raise SystemExit("the broker did not take all messages")
    return size


def chunks_of(settings: KafkaSettings, partition: int, messages: int) -> list[Chunk]:
    """All rows of a partition of a topic that has so many messages in all."""
    planned = PartitionRange(
        topic=settings.topics[0],
        partition=partition,
        start=0,
        end=messages // PARTITIONS,
        bytes_read=1,
        passages=(Passage(table_id=1, version=1, offset=0),),
    )
    version = PlannedVersion(version=1, place=None, edits=(), snapshot=TABLE, segment=0)
    with closing(KafkaReader(settings)) as reader:
        return list(reader.read(planned, [PlannedTable(table_id=1, versions=(version,))]))


def drained(kafka: Kafka, topic: str, messages: int) -> float:
    """Messages a second of librdkafka, which are looked at no further."""
    consumer = Consumer(
        {
            "bootstrap.servers": kafka.brokers,
            "group.id": "bench",
            "enable.auto.commit": False,
            "fetch.queue.backoff.ms": 5,
        }
    )
    consumer.assign([TopicPartition(topic, number, 0) for number in range(PARTITIONS)])
    begin, count = time.perf_counter(), 0
    while count < messages:
        count += len(consumer.consume(10_000, timeout=0.5))
    spent_s = time.perf_counter() - begin
    consumer.close()
    return messages / spent_s
