"""Tables of topics that stopped go on as a file says: `historian heal`."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from typer.testing import CliRunner

from connectors.cli import app
from connectors.config import load_config
from connectors.pipeline.run import run
from connectors.tracking.sources import make_tracker
from databases.kafka import Kafka

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TOPIC = "shop.healed"


def maxwell(number: int, **values: Any) -> dict[str, Any]:
    data = {"id": number, **values}
    return {"database": "shop", "table": "t", "type": "insert", "ts": 1_700_000_000 + number, "data": data}


def historian(path: Path, *arguments: str, code: int = 0) -> str:
    answer = CliRunner().invoke(app, [arguments[0], str(path), *arguments[1:]])
    assert code == answer.exit_code, answer.output
    return answer.output


def read(path: Path, after: int) -> tuple[int, list[tuple[Any, ...]]]:
    """Makes the plans behind one; gives the last one's number and the rows of all."""
    found, number = [], after
    tracker = make_tracker(load_config(path))
    with closing(tracker.store):
        while (plan := tracker.plan_after(number)) is not None:
            number = plan.number
            for planned in plan.ranges:
                for chunk in tracker.reader.read(planned, plan.tables):
                    found += [tuple(row.values())[5:] for row in chunk.rows.to_pylist()]
    return number, found


def test_a_table_of_topics_goes_on_as_its_file_says(kafka: Kafka, tmp_path: Path) -> None:
    kafka.make_topic(TOPIC)
    path, file = tmp_path / "shop.yaml", tmp_path / "now.sql"

    def configure(more: str = "") -> None:
        path.write_text(
            f"name: shop\nsource: {{type: kafka, brokers: '{kafka.brokers}', topics: [{TOPIC}], format: maxwell{more}}}\n"
            f"history: {{store: 'sqlite:///{tmp_path}/shop.db'}}\nsinks: [{{type: parquet, path: {tmp_path}/lake}}]\n",
            encoding="utf-8",
        )

    def send(*messages: dict[str, Any]) -> None:
        kafka.produce(TOPIC, [(None, json.dumps(each).encode()) for each in messages])

    configure()
    send(maxwell(1, v="a"))
    number, rows = read(path, 0)
    assert [(1, "a")] == rows
    send(maxwell(2, v=[1]), maxwell(3, v="lost"))
    number, rows = read(path, number)
    assert [] == rows
    refused = historian(path, "heal", "--table", "shop.t", code=3)
    assert "no file says what the table is by now" in refused
    overridden = historian(path, "ddl-override", "--table", "shop.t", "--statement", "", code=2)
    assert "the table's rows do not fit the given statement" in overridden

    file.write_text("CREATE TABLE shop.t (id INT PRIMARY KEY, v JSON)", encoding="utf-8")
    configure(f", schema: {file}")
    said = historian(path, "heal", "--table", "shop.t")
    send(maxwell(4, v={"a": 1}))
    _, rows = read(path, number)

    assert f"shop.t goes on from {TOPIC}:0:3" in said
    assert [(4, '{"a": 1}')] == rows
    with closing(make_tracker(load_config(path)).store) as store:
        assert () == store.stopped()
    assert "json" in historian(path, "schemas", "at", "shop.t", f"{TOPIC}:0:3")


def canal(es: int, **message: Any) -> dict[str, Any]:
    return {
        "database": "shop",
        "table": "t",
        "isDdl": "sql" in message,
        "type": "ALTER",
        "es": es,
        "pkNames": ["id"],
        **message,
    }


def inserted(es: int, **values: str) -> dict[str, Any]:
    types = {name: "int" if name == "id" else "varchar(9)" for name in values}
    return canal(es, type="INSERT", mysqlType=types, data=[values])


def test_what_a_person_says_of_a_statement_in_a_topic_loses_no_row(
    kafka: Kafka, spark: SparkSession, tmp_path: Path
) -> None:
    """Rows of two partitions stand before the statement and behind it."""
    topic, path = "canal.overridden", tmp_path / "canal.yaml"
    kafka.make_topic(topic, 2)
    path.write_text(
        f"name: canal\nsource: {{type: kafka, brokers: '{kafka.brokers}', topics: [{topic}], format: canal_json}}\n"
        f"history: {{store: 'sqlite:///{tmp_path}/canal.db'}}\n"
        f"sinks: [{{type: delta, path: {tmp_path}/lake, mirror: '{{table}}', changelog: '{{table}}_log'}}]\n",
        encoding="utf-8",
    )

    def send(partition: int, *messages: dict[str, Any]) -> None:
        kafka.produce(topic, [(None, json.dumps(each).encode()) for each in messages], partition=partition)

    create = "CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(9))"
    send(0, canal(1, sql=create), inserted(2, id="1", v="a"), canal(4, sql="ALTER TABLE t FROBNICATE"))
    send(1, inserted(3, id="2", v="b"), inserted(5, id="3", w="c"))
    run(load_config(path), once=True, spark=spark)
    send(0, inserted(6, id="4", w="d"))
    run(load_config(path), once=True, spark=spark)

    refused = historian(path, "ddl-override", "--table", "shop.t", "--statement", "ALTER TABLE t ADD n INT", code=2)
    said = historian(path, "ddl-override", "--table", "shop.t", "--statement", "ALTER TABLE t RENAME COLUMN v TO w")
    send(
        1,
        canal(
            7, type="UPDATE", mysqlType={"id": "int", "w": "varchar(9)"}, data=[{"id": "2", "w": "e"}], old=[{"w": "b"}]
        ),
    )
    run(load_config(path), once=True, spark=spark)

    assert "the table's rows do not fit the given statement" in refused
    assert f"shop.t goes on behind {topic}:0:2,{topic}:1:1" in said
    mirror = spark.read.format("delta").load(f"{tmp_path}/lake/t").orderBy("id").select("id", "w").collect()
    assert [(1, "a"), (2, "e"), (3, "c"), (4, "d")] == [tuple(row) for row in mirror]
    log = (
        spark.read.format("delta").load(f"{tmp_path}/lake/t_log").orderBy("id", "offset", "op").select("op", "id", "w")
    )
    wanted = [(0, 1, "a"), (0, 2, "b"), (2, 2, "b"), (3, 2, "e"), (0, 3, "c"), (0, 4, "d")]
    assert wanted == [tuple(row) for row in log.collect()]
    assert "w" in historian(path, "schemas", "at", "shop.t", f"{topic}:1:1")
