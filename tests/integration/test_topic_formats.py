"""Topics of formats without a schema of their own, into a lake: what `historian` says of them, and what their targets hold."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from confluent_kafka import Consumer, TopicPartition
from typer.testing import CliRunner

from connectors.cli import app
from connectors.config import load_config
from connectors.pipeline.lakes import consistent
from connectors.pipeline.run import run
from databases.kafka import Kafka

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TOPIC = "canal.into.a.lake"


def ddl(es: int, sql: str) -> dict[str, Any]:
    return {
        "database": "shop",
        "table": "t",
        "type": "QUERY",
        "isDdl": True,
        "es": es,
        "sql": sql,
        "data": None,
        "old": None,
    }


def change(es: int, kind: str, data: dict[str, Any], old: dict[str, Any] | None = None, **types: str) -> dict[str, Any]:
    return {
        "database": "shop",
        "table": "t",
        "type": kind,
        "isDdl": False,
        "es": es,
        "pkNames": ["id"],
        "mysqlType": {"id": "int", **types},
        "data": [data],
        "old": None if old is None else [old],
    }


BEGUN = [
    ddl(1000, "CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(9))"),
    change(2000, "INSERT", {"id": "1", "v": "gone"}, v="varchar(9)"),
    ddl(3000, "TRUNCATE TABLE t"),
    change(4000, "INSERT", {"id": "2", "v": "a"}, v="varchar(9)"),
    change(5000, "UPDATE", {"id": "2", "v": None}, {"v": "a"}, v="varchar(9)"),
]
GOES_ON = [
    ddl(6000, "ALTER TABLE t CHANGE v w VARCHAR(20), ADD COLUMN n INT NOT NULL DEFAULT 7"),
    change(7000, "UPDATE", {"id": "2", "w": "b", "n": "7"}, {"w": None}, w="varchar(20)", n="int"),
    change(8000, "INSERT", {"id": "3", "w": "c", "n": "8"}, w="varchar(20)", n="int"),
]


def sent(kafka: Kafka, messages: list[dict[str, Any]]) -> None:
    kafka.produce(TOPIC, [(None, json.dumps(message).encode()) for message in messages])


def test_statements_of_a_topic_lead_the_targets_as_those_of_a_binlog_do(
    kafka: Kafka, spark: SparkSession, tmp_path: Path
) -> None:
    kafka.make_topic(TOPIC)
    sent(kafka, BEGUN)
    path = tmp_path / "canal.yaml"
    path.write_text(
        f"name: canal\nsource: {{type: kafka, brokers: '{kafka.brokers}', topics: [{TOPIC}], format: canal_json}}\n"
        f"history: {{store: 'sqlite:///{tmp_path}/canal.db'}}\n"
        f"sinks: [{{type: delta, path: {tmp_path}/lake, mirror: '{{table}}', changelog: '{{table}}_log'}}]\n",
        encoding="utf-8",
    )

    run(load_config(path), once=True, spark=spark)
    sent(kafka, GOES_ON)
    run(load_config(path), once=True, spark=spark)

    mirror = spark.read.format("delta").load(f"{tmp_path}/lake/t").orderBy("id").select("id", "w", "n").collect()
    assert [(2, "b", 7), (3, "c", 8)] == [tuple(row) for row in mirror]
    log = spark.read.format("delta").load(f"{tmp_path}/lake/t_log").orderBy("offset")
    found = [tuple(row) for row in log.select("op", "id", "w").collect()]
    gone, kept = [row for row in found if row[1] == 1], [row for row in found if row[1] != 1]
    assert [(0, 1, "gone"), (1, 1, "gone")] == gone, found
    assert [(0, 2, "a"), (2, 2, "a"), (3, 2, None), (2, 2, None), (3, 2, "b"), (0, 3, "c")] == kept, found
    cuts = [consistent(spark, load_config(path), at=at) for at in (f"{TOPIC}:0:3", None)]
    assert [(1, f"{TOPIC}:0:5"), (2, f"{TOPIC}:0:8")] == [(cut.plan, str(cut.position)) for cut in cuts]
    assert [[2], [2, 3]] == [sorted(row["id"] for row in cut.mirror["shop.t"].collect()) for cut in cuts]
    runner = CliRunner()
    for command, code, parts in (
        (["check", str(path)], 0, ["canal_json", "shop.t"]),
        (["verify", str(path)], 2, ["topics hold no tables to compare with"]),
        (["backfill", str(path), "--table", "shop.t"], 2, ["topics hold no tables to copy"]),
        (["schemas", str(path), "at", "shop.t", f"{TOPIC}:0:4"], 0, ["varchar(9)"]),
        (["schemas", str(path), "at", "shop.t", f"{TOPIC}:0:6"], 0, ["varchar(20)"]),
    ):
        answer = runner.invoke(app, command)
        assert code == answer.exit_code, answer.output
        assert all(part in answer.output for part in parts), answer.output


def test_streams_read_topics_in_both_shapes_and_a_group_tells_how_far_a_run_is(
    kafka: Kafka, spark: SparkSession, tmp_path: Path
) -> None:
    topic = "canal.as.a.stream"
    kafka.make_topic(topic)
    begun = [
        BEGUN[0],
        *(change(2000 + number, "INSERT", {"id": str(number), "v": "a"}, v="varchar(9)") for number in range(5)),
    ]
    kafka.produce(topic, [(None, json.dumps(message).encode()) for message in begun])
    path = tmp_path / "canal.yaml"
    path.write_text(
        f"name: streamed\nsource: {{type: kafka, brokers: '{kafka.brokers}', topics: [{topic}], format: canal_json, group: watchers}}\n"
        f"history: {{store: 'sqlite:///{tmp_path}/canal.db'}}\n"
        f"sinks: [{{type: delta, path: {tmp_path}/lake, mirror: '{{table}}'}}]\n",
        encoding="utf-8",
    )
    shapes = {"typed": {"table": "shop.t", "name": "typed"}, "chunks": {}}

    def streamed(name: str) -> Any:
        options = {"config": str(path), "store": f"sqlite:///{tmp_path}/{name}.db", **shapes[name]}
        rows = spark.readStream.format("historian").options(**options).load()
        query = rows.writeStream.format("parquet").option("checkpointLocation", f"{tmp_path}/{name}-checkpoint")
        query.trigger(availableNow=True).start(f"{tmp_path}/{name}").awaitTermination()
        return spark.read.parquet(f"{tmp_path}/{name}")

    assert [0, 1, 2, 3, 4] == sorted(row["id"] for row in streamed("typed").collect())
    more = change(3000, "UPDATE", {"id": "2", "v": "b"}, {"v": "a"}, v="varchar(9)")
    kafka.produce(topic, [(None, json.dumps(more).encode())])
    run(load_config(path), once=True, spark=spark)

    assert [(0, "a")] * 5 + [(2, "a"), (3, "b")] == sorted((row["op"], row["v"]) for row in streamed("typed").collect())
    assert 7 == streamed("chunks").selectExpr("sum(row_count)").first()[0]
    consumer = Consumer({"bootstrap.servers": kafka.brokers, "group.id": "watchers"})
    (noted,) = consumer.committed([TopicPartition(topic, 0)], timeout=30)
    consumer.close()
    assert len(begun) + 1 == noted.offset
