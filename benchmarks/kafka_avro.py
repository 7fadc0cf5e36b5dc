"""Change events of topics as Avro into changelog rows, against Spark's own Kafka source with ``from_avro`` and ``explode``.

Both read the same topic of a real broker, in turn, with a thread for each of its two partitions, and make the same rows: two of an
update, values typed. Ours ask a real registry for the schema of each message; Spark's side strips the header and is given the one schema.
Ours end as Arrow in memory, Spark's go to its ``noop`` writer. Counts and sums are compared first. librdkafka's drain of the topic,
which looks at no message, is printed beside. Of ten messages eight are updates, one an insert, one a delete. Rates in messages a second.
Run: ``python benchmarks/kafka_avro.py [--rounds 3] [--messages 2000000]``.
"""

from __future__ import annotations

import argparse
import io
import json
import sys
import tempfile
import urllib.request
from base64 import b64decode
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

sys.path[:0] = [str(Path(__file__).parent.parent), str(Path(__file__).parent.parent / "tests" / "support")]

import pyarrow.compute as pc
from binlog_work import in_turn, report
from fastavro import parse_schema, schemaless_writer
from kafka_spark import kafka_session
from kafka_work import PARTITIONS, SHAPES, chunks_of, drained, envelope_of, fill

from connectors.readers.kafka.client import KafkaSettings
from connectors.readers.kafka.registry.client import RegistrySettings
from databases.kafka import start_kafka
from databases.registry import start_registry

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from databases.kafka import Kafka
    from databases.registry import Registry
    from historian.changelog.chunks import Chunk

NAME = "debezium_avro"
_OPTIONAL_LONG, _OPTIONAL_TEXT = ["null", "long"], ["null", "string"]


def _named(kind: str, name: str, **more: Any) -> dict[str, Any]:
    return {"type": kind, "connect.version": 1, "connect.name": name, **more}


_DECIMAL = _named(
    "bytes",
    "org.apache.kafka.connect.data.Decimal",
    scale=2,
    precision=12,
    logicalType="decimal",
    **{"connect.parameters": {"scale": "2", "connect.decimal.precision": "12"}},
)
_ROW: dict[str, Any] = {
    "id": "long",
    "customer": "int",
    "status": _OPTIONAL_TEXT,
    "amount": _DECIMAL,
    "created": _named("long", "io.debezium.time.Timestamp"),
    "updated": _named("string", "io.debezium.time.ZonedTimestamp"),
    "note": _OPTIONAL_TEXT,
    "quantity": {"type": "int", "connect.type": "int16"},
    "weight": "double",
    "flag": {"type": "int", "connect.type": "int16"},
}
_SOURCE: dict[str, Any] = {
    **dict.fromkeys(("version", "connector", "name"), "string"),
    "ts_ms": "long",
    "snapshot": ["string", "null"],
    "db": "string",
    "sequence": _OPTIONAL_TEXT,
    "ts_us": _OPTIONAL_LONG,
    "ts_ns": _OPTIONAL_LONG,
    "table": _OPTIONAL_TEXT,
    "server_id": "long",
    "gtid": _OPTIONAL_TEXT,
    "file": "string",
    "pos": "long",
    "row": "int",
    "thread": _OPTIONAL_LONG,
    "query": _OPTIONAL_TEXT,
}


def _record(name: str, fields: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": [{"name": n, "type": kind} for n, kind in fields.items()], **more}


_ENVELOPE = _record(
    "Envelope",
    {
        "before": ["null", _record("Value", _ROW)],
        "after": ["null", "Value"],
        "source": _record("Source", _SOURCE, namespace="io.debezium.connector.mysql"),
        "transaction": ["null", _record("block", {"id": "string"}, namespace="event")],
        "op": "string",
        **dict.fromkeys(("ts_ms", "ts_us", "ts_ns"), _OPTIONAL_LONG),
    },
    namespace="shop.shop.orders",
)
_KEY = _record("Key", {"id": "long"}, namespace="shop.shop.orders")


def registered(registry: Registry, subject: str, schema: dict[str, Any]) -> bytes:
    """What messages of *schema* begin with, once *registry* has it."""
    request = urllib.request.Request(
        f"{registry.url}/subjects/{subject}/versions",
        data=json.dumps({"schema": json.dumps(schema)}).encode(),
        headers={"Content-Type": "application/vnd.schemaregistry.v1+json"},
    )
    with urllib.request.urlopen(request, timeout=30) as answer:
        return b"\0" + int(json.loads(answer.read())["id"]).to_bytes(4, "big")


def _without_meaning(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_without_meaning(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    return {key: _without_meaning(value) for key, value in schema.items() if key != "logicalType"}


def messages_of(key_header: bytes, header: bytes) -> tuple[Callable[[int], bytes], Callable[[int], bytes]]:
    """What makes key and value of a message by its number."""
    key_schema, schema = parse_schema(_KEY), parse_schema(_without_meaning(_ENVELOPE))

    def key(number: int) -> bytes:
        out = io.BytesIO()
        schemaless_writer(out, key_schema, {"id": number})
        return key_header + out.getvalue()

    def value(number: int) -> bytes:
        record = json.loads(envelope_of(number))
        for row in (record["before"], record["after"]):
            if row is not None:
                row["amount"] = b64decode(row["amount"])
        out = io.BytesIO()
        schemaless_writer(out, schema, record)
        return header + out.getvalue()

    return key, value


def ours(kafka: Kafka, registry: Registry, messages: int) -> tuple[float, list[Chunk]]:
    """Messages a second of our reader, and what it read."""
    settings = KafkaSettings(
        brokers=kafka.brokers, topics=(NAME,), format=NAME, registry=RegistrySettings(url=registry.url)
    )
    begin = perf_counter()
    with ThreadPoolExecutor(PARTITIONS) as threads:
        every = threads.map(lambda number: chunks_of(settings, number, messages), range(PARTITIONS))
        found = [chunk for chunks in every for chunk in chunks]
    return messages / (perf_counter() - begin), found


def changelog(spark: SparkSession, kafka: Kafka) -> Any:
    """The rows of all changes by Spark's own parts: op, event_time, and typed columns."""
    from pyspark.sql.avro.functions import from_avro

    messages = spark.read.format("kafka").option("kafka.bootstrap.servers", kafka.brokers).option("subscribe", NAME)
    typed = {
        "created": "CAST(timestamp_millis(r.created) AS TIMESTAMP_NTZ) AS created",
        "updated": "CAST(r.updated AS TIMESTAMP) AS updated",
        "quantity": "CAST(r.quantity AS SMALLINT) AS quantity",
        "flag": "CAST(r.flag AS TINYINT) AS flag",
    }
    body = messages.load().selectExpr("substring(value, 6) AS body")
    return (
        body.select(from_avro(body["body"], json.dumps(_ENVELOPE)).alias("m"))
        .selectExpr(
            "timestamp_micros(m.source.ts_us) AS event_time",
            "explode(CASE m.op WHEN 'u' THEN array(struct(2Y AS op, m.before AS r), struct(3Y AS op, m.after AS r)) "
            "WHEN 'd' THEN array(struct(1Y AS op, m.before AS r)) ELSE array(struct(0Y AS op, m.after AS r)) END) AS e",
        )
        .selectExpr("e.op AS op", "event_time", "e.r AS r")
        .selectExpr("op", "event_time", *(typed.get(name, f"r.{name}") for name in _ROW))
    )


def theirs(spark: SparkSession, kafka: Kafka, messages: int) -> float:
    """Messages a second of Spark."""
    begin = perf_counter()
    changelog(spark, kafka).write.format("noop").mode("overwrite").save()
    return messages / (perf_counter() - begin)


def check(spark: SparkSession, kafka: Kafka, chunks: list[Chunk]) -> None:
    """Compares rows with Spark's: how many, ids by operation, amounts, the last moment."""
    rows = [chunk.rows for chunk in chunks]
    former = [each.filter(pc.is_in(each["op"], value_set=pc.cast([1, 2], "uint8"))) for each in rows]
    mine = (
        sum(each.num_rows for each in rows),
        *(sum(pc.sum(each["h1"]).as_py() or 0 for each in part) for part in (rows, former)),
        sum(pc.sum(each["h4"]).as_py() for each in rows),
        max(pc.max(pc.cast(each["h6"], "int64")).as_py() for each in rows),
    )
    found = changelog(spark, kafka).selectExpr(
        "count(*)", "sum(id)", "sum(IF(op IN (1, 2), id, 0))", "sum(amount)", "max(unix_micros(updated))"
    )
    if tuple(found.first() or ()) != mine:
        raise SystemExit(f"rows differ: {mine} of ours, {found.first()} of Spark's")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--messages", type=int, default=2_000_000)
    chosen = options.parse_args()
    messages = chosen.messages // PARTITIONS * PARTITIONS
    with tempfile.TemporaryDirectory(prefix="historian-bench-") as name:
        kafka, registry = start_kafka(Path(name) / "kafka"), start_registry(Path(name) / "registry")
        spark = kafka_session()
        try:
            headers = (
                registered(registry, f"{NAME}-{part}", schema) for part, schema in (("key", _KEY), ("value", _ENVELOPE))
            )
            SHAPES[NAME] = (NAME, *messages_of(*headers))
            size = fill(kafka, NAME, messages)
            print(f"{NAME}: {messages:,} messages of {size / messages:,.0f} bytes", flush=True)
            check(spark, kafka, ours(kafka, registry, messages)[1])
            theirs(spark, kafka, messages)
            result = in_turn(
                NAME,
                "messages/s",
                chosen.rounds,
                lambda: ours(kafka, registry, messages)[0],
                lambda: theirs(spark, kafka, messages),
            )
            drain = round(drained(kafka, NAME, messages))
        finally:
            spark.stop()
            registry.stop()
            kafka.stop()
    report([result, {"name": f"{NAME}_drain", "value": drain, "unit": "messages/s of librdkafka alone"}])


if __name__ == "__main__":
    main()
