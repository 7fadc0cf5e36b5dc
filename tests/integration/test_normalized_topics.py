"""Topics whose changes lack the former row, into a lake with whole changelogs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from connectors.config import load_config
from connectors.pipeline.run import run
from databases.kafka import Kafka
from historian.errors import HistorianError
from sinks.delta import faults

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def change(
    op: str, number: int, after: dict[str, Any] | None = None, before: dict[str, Any] | None = None
) -> tuple[bytes, bytes]:
    """A message of Debezium's without its schema, as PostgreSQL with its default replica identity makes it."""
    body = {
        "before": before,
        "after": after,
        "source": {"ts_ms": 1_700_000_000_000 + number, "db": "shop", "schema": "public", "table": "t"},
        "op": op,
    }
    row = after or before or {}
    return json.dumps({"id": row["id"]}).encode(), json.dumps(body).encode()


def row(number: int, a: int | None = None, b: str | None = None) -> dict[str, Any]:
    return {"id": number, "a": a, "b": b}


FIRST = [
    change("r", 1, row(1, 1, "x")),
    change("c", 2, row(2, 2, "y")),
    change("u", 3, row(1, 5, "x")),
    change("u", 4, row(1, 6, None)),
]
SECOND = [
    change("u", 5, row(2, 3, "y")),
    change("d", 6, before=row(1)),
    change("d", 7, before=row(9)),
    change("u", 8, row(7, 7, "new")),
    change("c", 9, row(1, 1, "again")),
]
ROWS = [
    (0, 1, 1, "x"),
    (0, 2, 2, "y"),
    (2, 1, 1, "x"),
    (3, 1, 5, "x"),
    (2, 1, 5, "x"),
    (3, 1, 6, None),
    (2, 2, 2, "y"),
    (3, 2, 3, "y"),
    (1, 1, 6, None),
    (0, 7, 7, "new"),
    (0, 1, 1, "again"),
]
MIRROR = [(1, 1, "again"), (2, 3, "y"), (7, 7, "new")]


def connector(directory: Path, kafka: Kafka, topic: str, extra: str = "normalize: true") -> Path:
    schema = directory / "schema.sql"
    schema.write_text("CREATE TABLE shop.t (id INT PRIMARY KEY, a INT, b VARCHAR(20));")
    path = directory / "c.yaml"
    path.write_text(
        f"name: c\nsource: {{type: kafka, brokers: '{kafka.brokers}', topics: [{topic}], schema: {schema},"
        f" format: debezium_json_schemaless, {extra}}}\n"
        f"history: {{store: 'sqlite:///{directory}/c.db'}}\n"
        f"sinks: [{{type: delta, path: {directory}/lake, mirror: '{{table}}', changelog: '{{table}}_log'}}]\n"
    )
    return path


def held(spark: SparkSession, directory: Path) -> tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]:
    log = spark.read.format("delta").load(f"{directory}/lake/t_log").orderBy("offset").select("op", "id", "a", "b")
    mirror = spark.read.format("delta").load(f"{directory}/lake/t").orderBy("id").select("id", "a", "b")
    return [tuple(each) for each in log.collect()], [tuple(each) for each in mirror.collect()]


def test_changes_without_their_former_rows_make_the_changelog_of_changes_that_have_them(
    kafka: Kafka, spark: SparkSession, tmp_path: Path
) -> None:
    kafka.make_topic("bare.changes")
    kafka.produce("bare.changes", FIRST)
    path = connector(tmp_path, kafka, "bare.changes")
    run(load_config(path), once=True, spark=spark)
    kafka.produce("bare.changes", SECOND)
    run(load_config(path), once=True, spark=spark)
    assert (ROWS, MIRROR) == held(spark, tmp_path)


def test_a_plan_that_all_targets_hold_goes_on_to_the_state_in_the_next_run(
    kafka: Kafka, spark: SparkSession, tmp_path: Path
) -> None:
    kafka.make_topic("bare.again")
    kafka.produce("bare.again", FIRST)
    path = connector(tmp_path, kafka, "bare.again")

    def ended(place: str, at: str) -> None:
        if place == "commit_begun" and "historian_state" in at and not at.endswith(" 0"):
            raise HistorianError("the run ends here")

    faults.arm_at(ended)
    try:
        with pytest.raises(HistorianError, match="ends here"):
            run(load_config(path), once=True, spark=spark)
    finally:
        faults.disarm()
    kafka.produce("bare.again", SECOND)
    run(load_config(path), once=True, spark=spark)
    assert (ROWS, MIRROR) == held(spark, tmp_path)


def test_a_connector_that_has_run_without_a_state_is_not_normalised(
    kafka: Kafka, spark: SparkSession, tmp_path: Path
) -> None:
    kafka.make_topic("bare.late")
    kafka.produce("bare.late", FIRST[:2])
    run(load_config(connector(tmp_path, kafka, "bare.late", "start: earliest")), once=True, spark=spark)
    with pytest.raises(HistorianError, match="only of a connector that begins with it"):
        run(load_config(connector(tmp_path, kafka, "bare.late")), once=True, spark=spark)
