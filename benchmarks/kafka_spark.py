"""The yardstick of Kafka's benchmarks: a changelog by Spark's own Kafka source, ``from_json`` and ``explode``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafka_work import PARTITIONS, SHAPES

from connectors.spark.jvm import delta_jars
from databases.java_parts import jars_of
from sinks.session import spark_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from databases.kafka import Kafka

__all__ = ["changelog", "kafka_session"]

_DEBEZIUM_ROW = (
    "struct<id:bigint,customer:int,status:string,amount:string,created:bigint,updated:timestamp,note:string,quantity:smallint,"
    "weight:double,flag:tinyint>"
)
_ENVELOPE = f"struct<before:{_DEBEZIUM_ROW},after:{_DEBEZIUM_ROW},source:struct<ts_us:bigint>,op:string>"
_CANAL_ROW = (
    "struct<id:string,customer:string,status:string,amount:string,created:string,updated:string,note:string,quantity:string,"
    "weight:string,flag:string>"
)
_CANAL = f"struct<data:array<{_CANAL_ROW}>,old:array<map<string,string>>,es:bigint,type:string>"
_NAMES = ("id", "customer", "status", "amount", "created", "updated", "note", "quantity", "weight", "flag")


def kafka_session() -> SparkSession:
    """A session with Spark's Kafka source and Delta, and a thread for each partition."""
    return spark_session(
        jars=[*delta_jars(), *jars_of("spark_kafka")],
        master=f"local[{PARTITIONS}]",
        name="bench",
        settings={"spark.driver.memory": "4g", "spark.sql.session.timeZone": "UTC"},
    )


def changelog(spark: SparkSession, kafka: Kafka, topic: str) -> DataFrame:
    """The rows of all changes in a topic: op, event_time, and typed columns."""
    messages = (
        spark.read.format("kafka")
        .option("kafka.bootstrap.servers", kafka.brokers)
        .option("subscribe", topic)
        .load()
        .selectExpr("CAST(value AS STRING) AS text")
    )
    return _canal(messages) if SHAPES[topic][0] == "canal_json" else _debezium(messages, topic)


def _debezium(messages: DataFrame, topic: str) -> DataFrame:
    is_inline = SHAPES[topic][0] == "debezium_json"
    schema, at = (f"struct<payload:{_ENVELOPE}>", "m.payload") if is_inline else (_ENVELOPE, "m")
    # A digit string of base 16 is a number of base 10 by conv alone.
    amount = "CAST(CAST(conv(hex(unbase64(r.amount)), 16, 10) AS DECIMAL(14,0)) / 100 AS DECIMAL(12,2)) AS amount"
    typed = {"amount": amount, "created": "CAST(timestamp_millis(r.created) AS TIMESTAMP_NTZ) AS created"}
    return (
        messages.selectExpr(f"from_json(text, '{schema}') AS m")
        .selectExpr(f"{at} AS m")
        .selectExpr(
            "timestamp_micros(m.source.ts_us) AS event_time",
            "explode(CASE m.op WHEN 'u' THEN array(struct(2Y AS op, m.before AS r), struct(3Y AS op, m.after AS r)) "
            "WHEN 'd' THEN array(struct(1Y AS op, m.before AS r)) ELSE array(struct(0Y AS op, m.after AS r)) END) AS e",
        )
        .selectExpr("e.op AS op", "event_time", "e.r AS r")
        .selectExpr("op", "event_time", *(typed.get(name, f"r.{name}") for name in _NAMES))
    )


def _canal(messages: DataFrame) -> DataFrame:
    types = {
        "id": "BIGINT",
        "customer": "INT",
        "amount": "DECIMAL(12,2)",
        "created": "TIMESTAMP_NTZ",
        "updated": "TIMESTAMP",
        "quantity": "SMALLINT",
        "weight": "DOUBLE",
        "flag": "TINYINT",
    }
    # What `old` names had another value, NULL too.
    former = ", ".join(f"IF(map_contains_key(o, '{name}'), o['{name}'], d.{name}) AS {name}" for name in _NAMES)
    return (
        messages.selectExpr(f"from_json(text, '{_CANAL}') AS m")
        .selectExpr(
            "timestamp_millis(m.es) AS event_time", "m.type AS type", "posexplode(m.data) AS (at, d)", "m.old AS olds"
        )
        .selectExpr("event_time", "type", "d", "olds[at] AS o")
        .selectExpr(
            "event_time",
            f"explode(CASE type WHEN 'UPDATE' THEN array(struct(2Y AS op, struct({former}) AS r), struct(3Y AS op, d AS r)) "
            "WHEN 'DELETE' THEN array(struct(1Y AS op, d AS r)) ELSE array(struct(0Y AS op, d AS r)) END) AS e",
        )
        .selectExpr("e.op AS op", "event_time", "e.r AS r")
        .selectExpr(
            "op",
            "event_time",
            *(f"CAST(r.{name} AS {types[name]}) AS {name}" if name in types else f"r.{name}" for name in _NAMES),
        )
    )
