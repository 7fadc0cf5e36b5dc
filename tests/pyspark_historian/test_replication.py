"""``replicate`` runs a connector beside other code in a session that somebody else has made, and leaves that as it is."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from connectors.config import load_config
from connectors.pipeline.run import run
from historian.errors import ConfigError, LeaseHeld
from pyspark_historian import replicate
from sinks.session import SessionUnusable
from workload.waiting import wait_until

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BINLOG = Path(__file__).parents[2] / "examples" / "shop" / "binlog"


def _config(directory: Path, **run_settings: str) -> Path:
    directory.mkdir(exist_ok=True)
    path = directory / "shop.yaml"
    path.write_text(
        f"name: shop\nsource: {{type: binlog-files, directory: {BINLOG}, tables: [shop.coupons]}}\n"
        f"sinks: [{{type: delta, path: {directory}/lake}}]\nrun: {{{', '.join(f'{k}: {v}' for k, v in run_settings.items())}}}\n"
    )
    return path


def _settings(spark: SparkSession) -> list[object]:
    """All that is set of a session: Spark's, SQL's and Hadoop's settings, and what Python workers are told."""
    context: Any = spark.sparkContext
    entries = context._jsc.hadoopConfiguration().iterator()
    hadoop = {}
    while entries.hasNext():
        entry = entries.next()
        hadoop[entry.getKey()] = entry.getValue()
    return [dict(spark.conf.getAll), sorted(context.getConf().getAll()), hadoop, dict(context.environment)]


def _rows(spark: SparkSession, directory: Path) -> list[tuple[object, ...]]:
    tables = [spark.read.format("delta").load(str(path)) for path in sorted((directory / "lake").glob("*coupons*"))]
    return [tuple(row) for table in tables for row in sorted(table.drop("system_time").collect(), key=str)]


def test_it_returns_at_once_and_neither_changes_the_session_nor_heeds_what_it_says_of_zones(
    spark: SparkSession, tmp_path: Path
) -> None:
    run(load_config(_config(tmp_path / "plain")), once=True, spark=spark)
    theirs = spark.newSession()
    theirs.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    theirs.conf.set("spark.sql.shuffle.partitions", "7")
    before = _settings(theirs)

    shop = replicate(_config(tmp_path / "beside"), theirs, once=True)
    early = shop.status()
    stopped = shop.wait(timeout_s=120)

    assert ("shop", "starts") == (early.connector, early.state)
    assert {} == stopped
    done = shop.status()
    assert ("ended", "", True, True) == (done.state, done.failure, done.plans > 0, done.rows > 0)
    assert before == _settings(theirs)
    expected = _rows(spark, tmp_path / "plain")
    assert expected
    assert expected == _rows(spark, tmp_path / "beside")


def test_as_a_context_manager_it_runs_until_the_end_of_the_with(spark: SparkSession, tmp_path: Path) -> None:
    with replicate(_config(tmp_path), spark) as shop:
        wait_until(lambda: shop.status().plans > 0, 60)
        assert "runs" == shop.status().state

    assert "ended" == shop.status().state


def test_it_can_be_awaited(spark: SparkSession, tmp_path: Path) -> None:
    async def outcome() -> object:
        return await replicate(_config(tmp_path), spark, once=True)

    assert {} == asyncio.run(outcome())


def test_what_it_fails_with_is_raised_by_wait_alone(spark: SparkSession, tmp_path: Path) -> None:
    path = _config(tmp_path)
    with replicate(path, spark) as first:
        wait_until(lambda: first.status().state == "runs", 60)
        second = replicate(path, spark, once=True)
        with pytest.raises(LeaseHeld) as raised:
            second.wait(timeout_s=60)
        second.stop()

        assert ("failed", str(raised.value)) == (second.status().state, second.status().failure)
        with pytest.raises(TimeoutError, match="has not ended"):
            first.wait(timeout_s=0)


def test_a_configuration_that_cannot_be_used_is_refused_before_anything_runs(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = tmp_path / "shop.yaml"
    path.write_text(f"name: shop\nsource: {{type: binlog-files, directory: {BINLOG}, tables: ['shop.*']}}\n")

    with pytest.raises(ConfigError, match="nothing to write to"):
        replicate(path, spark)


def test_a_client_of_spark_connect_is_refused_with_the_reason(tmp_path: Path) -> None:
    client: Any = type("SparkSession", (), {"__module__": "pyspark.sql.connect.session"})()

    with pytest.raises(SessionUnusable, match="needs the driver's own Spark session") as raised:
        replicate(_config(tmp_path), client)

    assert "spark-submit" in str(raised.value)


def test_a_session_without_delta_is_refused_with_what_it_needs(spark: SparkSession, tmp_path: Path) -> None:
    conf = SimpleNamespace(getAll={"spark.sql.extensions": "someone.Else"})
    bare: Any = SimpleNamespace(sparkContext=spark.sparkContext, conf=conf, _jvm=spark._jvm)

    with pytest.raises(SessionUnusable, match="no Delta") as raised:
        replicate(_config(tmp_path), bare)

    assert "someone.Else" in str(raised.value)
