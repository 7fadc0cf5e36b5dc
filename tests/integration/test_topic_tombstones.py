"""Messages without a value in topics of Debezium's unwrapped rows: deletes, or nothing, as `source.tombstones` says."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from connectors.check import CheckResult, run_checks
from connectors.config import load_config
from connectors.monitoring.normalization import NormalizationNote
from connectors.pipeline.run import run
from connectors.tracking.sources import make_tracker
from databases.kafka import Kafka
from historian.changelog.operations import Op
from historian.errors import SourceError
from historian.plans.plans import Plan
from historian.store import Store

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = "CREATE TABLE shop.a (id INT PRIMARY KEY); CREATE TABLE shop.b (id INT PRIMARY KEY);"


def key(number: int) -> bytes:
    return json.dumps({"id": number}).encode()


def row(table: str, number: int, op: str = "c", **more: Any) -> tuple[bytes, bytes]:
    return key(number), json.dumps({"id": number, **more, "__op": op, "__db": "shop", "__table": table}).encode()


def rewritten(table: str, number: int, op: str = "c", **more: Any) -> tuple[bytes, bytes]:
    """A row as the transform writes it that rewrites deletes."""
    return row(table, number, op, **more, __deleted=str(op == "d").lower())


def connector(directory: Path, kafka: Kafka, topic: str, extra: str) -> Path:
    schema = directory / "schema.sql"
    schema.write_text(SCHEMA, encoding="utf-8")
    path = directory / "c.yaml"
    path.write_text(
        f"name: c\nsource: {{type: kafka, brokers: '{kafka.brokers}', topics: [{topic}], format: debezium_unwrapped,"
        f" schema: {schema}, {extra}}}\n"
        f"history: {{store: 'sqlite:///{directory}/c.db'}}\n"
        f"sinks: [{{type: delta, path: {directory}/lake, mirror: '{{table}}', changelog: '{{table}}_log'}}]\n",
        encoding="utf-8",
    )
    return path


def planned(path: Path, number: int = 0) -> tuple[Plan, list[tuple[str, int]]]:
    """The plan behind *number*, which may be stored already, and its rows."""
    tracker = make_tracker(load_config(path))
    with closing(tracker.reader), closing(tracker.store):
        plan = tracker.plan_after(number)
        assert plan is not None
        chunks = [chunk for part in plan.ranges for chunk in tracker.reader.read(part, plan.tables)]
        return plan, [(Op(op).sign, value) for chunk in chunks for op, value in _keys(chunk.rows)]


def _keys(rows: Any) -> list[tuple[int, int]]:
    return list(zip(rows.column("op").to_pylist(), rows.column(rows.schema.names[-1]).to_pylist(), strict=True))


def warned(path: Path) -> list[CheckResult]:
    return [each for each in run_checks(load_config(path)) if each.name == "tombstones"]


def test_a_row_of_another_table_ends_a_run_that_takes_tombstones_for_deletes_of_the_topics_even_if_it_is_left_out(
    kafka: Kafka, tmp_path: Path
) -> None:
    topic = "shop.a"
    kafka.make_topic(topic)
    kafka.produce(topic, [row("a", 1), row("b", 1)])
    path = connector(tmp_path, kafka, topic, "tables: [shop.a]")

    with pytest.raises(SourceError, match=r"shop\.a:0:1.*found a row of shop\.b") as caught:
        planned(path)

    assert "source.tombstones: ignore" in str(caught.value)
    (result,) = warned(path)
    assert "warning" == result.status
    assert "found a row of shop.b" in result.found


def test_tombstones_that_are_ignored_delete_nothing_and_stored_plans_are_read_as_they_were_made(
    kafka: Kafka, tmp_path: Path
) -> None:
    topic = "tombstones.ignored"
    kafka.make_topic(topic, cleanup_policy="compact")
    # Compaction took the rewritten delete of row 3 of a table, and left its tombstone.
    messages = [
        rewritten("a", 1),
        rewritten("b", 1),
        rewritten("b", 1, "d"),
        (key(1), None),
        (key(3), None),
        rewritten("a", 2),
    ]
    kafka.produce(topic, messages)
    path = connector(tmp_path, kafka, topic, "tombstones: ignore")

    plan, rows = planned(path)

    assert [("+A", 1), ("+A", 2), ("+A", 1), ("-R", 1)] == rows
    assert ((("tombstone", 2),),) == tuple(part.passed_over for part in plan.ranges)
    (result,) = warned(path)
    assert "warning" == result.status
    assert topic in result.found
    assert "delete.tombstone.handling.mode=rewrite" in str(result.mend)
    assert (plan, rows) == planned(connector(tmp_path, kafka, topic, "tombstones: delete"))


def test_a_normalised_table_takes_a_delete_once_that_is_told_by_a_row_and_a_tombstone(
    kafka: Kafka, spark: SparkSession, tmp_path: Path
) -> None:
    topic = "shop.kept"
    kafka.make_topic(topic)
    messages = [
        rewritten("kept", 1, v="x"),
        rewritten("kept", 1, "u", v="y"),
        rewritten("kept", 1, "d", v="y"),
        (key(1), None),
        rewritten("kept", 2, v="z"),
    ]
    kafka.produce(topic, messages)
    path = connector(tmp_path, kafka, topic, "normalize: true")

    run(load_config(path), once=True, spark=spark)

    log = spark.read.format("delta").load(f"{tmp_path}/lake/kept_log").orderBy("offset").select("op", "id", "v")
    assert [(0, 1, "x"), (2, 1, "x"), (3, 1, "y"), (1, 1, "y"), (0, 2, "z")] == [tuple(each) for each in log.collect()]
    with closing(Store.open(f"sqlite:///{tmp_path}/c.db")) as store:
        (counts,) = NormalizationNote.of(store).tables.values()
    assert 1 == counts.unseen_deletes
