"""A plan's chunks are the same wherever they are decoded."""

from __future__ import annotations

import json
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import Mock

import pytest

from connectors.config import load_config
from connectors.pipeline.decoding import PlannedLog, _is_encrypted, decoded, decoded_ahead
from connectors.tracking.sources import make_tracker
from databases.kafka import Kafka
from historian.changelog.chunks import Chunk

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql import SparkSession

    from sinks.contract.chunks import ChunkHead

SHOP = Path(__file__).parents[3] / "examples" / "shop"


def test_threads_and_executors_give_the_same_chunks(spark: SparkSession, tmp_path: Path) -> None:
    file = tmp_path / "shop.yaml"
    source = f"{{type: binlog-files, directory: {SHOP / 'binlog'}, tables: ['shop.*']}}"
    file.write_text(f"name: shop\nsource: {source}\nhistory: {{store: 'sqlite://'}}\nsinks: [{{type: console}}]\n")
    with closing(make_tracker(load_config(file), range_bytes=100_000)) as tracker:
        plan = tracker.plan_after(0)
        assert plan is not None
        assert len(plan.ranges) > 2
        planned = PlannedLog.of(plan, tracker.reader)

        with decoded(planned, tracker.reader, spark, executors=False) as here:
            expected, heads = here.map(list), here.heads
        given_up = decoded_ahead(planned, tracker.reader, spark, lambda: True)
        assert given_up == replace(planned, cached=(None,) * len(plan.ranges))
        with (
            closing(decoded_ahead(planned, tracker.reader, spark, lambda: False)) as ahead,
            decoded(ahead, tracker.reader, spark) as before,
        ):
            assert before is ahead.chunks
            assert (before.map(list), before.heads) == (expected, heads)
            assert ahead.decode_s > 0
        with decoded(planned, tracker.reader, spark, executors=True) as there:
            assert _sized_alike(there.heads) == _sized_alike(heads)
            assert _by_sequence(there.map(list)) == expected
            counts = there.map(lambda chunks: [sum(chunk.rows.num_rows for chunk in chunks)], by_table=True)

    assert sum(counts) == sum(head.row_count for head in heads) > 1000


def test_partitions_of_topics_are_the_same_chunks_on_executors(
    kafka: Kafka, spark: SparkSession, tmp_path: Path
) -> None:
    topic, file = "decoded.anywhere", tmp_path / "shop.yaml"
    kafka.make_topic(topic, 2)
    for partition in range(2):
        kafka.produce(topic, [(None, _inserted(number)) for number in range(partition, 1200, 2)], partition)
    client = json.dumps(kafka.security())
    source = f"{{type: kafka, brokers: '{kafka.secured}', topics: [{topic}], format: canal_json, client: {client}}}"
    file.write_text(f"name: shop\nsource: {source}\nhistory: {{store: 'sqlite://'}}\nsinks: [{{type: console}}]\n")
    with closing(make_tracker(load_config(file))) as tracker:
        plan = tracker.plan_after(0)
        assert plan is not None
        planned = PlannedLog.of(plan, tracker.reader)

        with decoded(planned, tracker.reader, spark, executors=False) as here:
            expected = here.map(list)
        with decoded(planned, tracker.reader, spark, executors=True) as there:
            found = _by_sequence(there.map(list))

    assert 2 == len(plan.ranges)
    assert found == expected
    assert list(range(1200)) == sorted(number for chunk in found for number in chunk.rows["h1"].to_pylist())


def _inserted(number: int) -> bytes:
    message = {"database": "shop", "table": "t", "type": "INSERT", "isDdl": False, "es": 1_700_000_000_000 + number}
    return json.dumps(message | {"mysqlType": {"id": "int"}, "pkNames": ["id"], "data": [{"id": str(number)}]}).encode()


@pytest.mark.parametrize("word", ["true", "TRUE", " True "])
def test_rows_lie_on_no_disk_of_an_executor_where_spark_encrypts_its_own_in_any_spelling(word: str) -> None:
    def session(**settings: str) -> Any:
        return Mock(sparkContext=Mock(getConf=lambda: {key.replace("_", "."): text for key, text in settings.items()}))

    assert _is_encrypted(session(spark_io_encryption_enabled=word))
    assert not _is_encrypted(session(spark_io_encryption_enabled="false"))
    assert not _is_encrypted(session())


def _sized_alike(heads: Iterable[ChunkHead]) -> list[ChunkHead]:
    """Heads without sizes: as rows of a DataFrame they have those of their IPC streams."""
    return [replace(head, size_bytes=0) for head in heads]


def _by_sequence(chunks: Iterable[Chunk]) -> list[Chunk]:
    return sorted(chunks, key=lambda chunk: chunk.sequence)
