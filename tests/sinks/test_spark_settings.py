"""Which settings a new session has: what the configuration says, then what Spark is told, then ours."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark import SparkContext

from sinks.session import SessionUnusable, runs_here, spark_session
from sinks.spark_settings import DELTA_EXTENSION, chosen_settings, driver_memory, said_settings


def _chosen(
    said: dict[str, str] | None = None,
    settings: dict[str, str] | None = None,
    *,
    master: str | None = None,
    jars: str = "",
) -> dict[str, str]:
    return chosen_settings(said or {}, settings or {}, master=master, jars=jars)


def test_by_default_spark_runs_on_all_cores_of_this_machine_and_listens_there_alone() -> None:
    chosen = _chosen()

    assert ("local[*]", "127.0.0.1", driver_memory()) == tuple(
        chosen[name] for name in ("spark.master", "spark.driver.bindAddress", "spark.driver.memory")
    )


def test_the_configuration_wins_over_what_spark_is_told_and_both_over_ours() -> None:
    said = {"spark.master": "spark://a:7077", "spark.driver.memory": "9g", "spark.ui.enabled": "true"}

    chosen = _chosen(said, {"spark.driver.memory": "3g"}, master="spark://b:7077")

    assert ("spark://b:7077", "3g", "true") == tuple(
        chosen[name] for name in ("spark.master", "spark.driver.memory", "spark.ui.enabled")
    )
    assert "spark.driver.bindAddress" not in chosen, "executors elsewhere have to reach the driver"
    assert "spark.sql.shuffle.partitions" not in chosen, "a cluster's size is its owner's to say"


def test_extensions_and_jars_are_added_to_those_of_the_user() -> None:
    chosen = _chosen({"spark.sql.extensions": "a.B, c.D", "spark.jars": "/x.jar"}, jars="/delta.jar")

    assert ("a.B,c.D," + DELTA_EXTENSION, "/x.jar,/delta.jar") == (chosen["spark.sql.extensions"], chosen["spark.jars"])
    assert chosen["spark.sql.extensions"] == _chosen(chosen)["spark.sql.extensions"]


def test_the_zone_of_sessions_is_not_the_users_to_say() -> None:
    assert "UTC" == _chosen({"spark.sql.session.timeZone": "Asia/Tokyo"})["spark.sql.session.timeZone"]


def test_what_spark_defaults_conf_says_is_read_as_spark_submit_reads_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "spark-defaults.conf").write_text(
        "# spark.master local\nspark.master   spark://h:7077\nspark.a=b c\nspark.e :  f=g\n\nother.x y\n"
    )
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))

    assert {"spark.master": "spark://h:7077", "spark.a": "b c", "spark.e": "f=g"} == said_settings()
    assert (False, True) == (runs_here(), runs_here("local[2]"))


def test_the_heap_is_a_part_of_the_memory_that_there_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    limit = tmp_path / "memory.max"
    monkeypatch.setattr("sinks.spark_settings._CONTROL_GROUPS", (limit,))
    heaps = {}
    for gib in (1, 2, 3, 6, 8):
        limit.write_text(f"{gib << 30}\n")
        heaps[gib] = driver_memory()

    assert {1: "512m", 2: "1024m", 3: "1024m", 6: "1536m", 8: "2048m"} == heaps


@pytest.mark.parametrize("line", ["spark.api.mode  Connect", "spark.remote=sc://far:15002/;token=secret"])
def test_spark_connect_is_refused_where_spark_defaults_conf_asks_for_it(
    line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SparkContext, "_active_spark_context", None)
    (tmp_path / "spark-defaults.conf").write_text(f"{line}\n")
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))

    with pytest.raises(SessionUnusable, match="Spark Connect cannot run") as raised:
        spark_session()

    assert "secret" not in str(raised.value)


@pytest.mark.parametrize("variable", ["HADOOP_CONF_DIR", "YARN_CONF_DIR", "SPARK_CONF_DIR"])
def test_settings_of_s3_are_left_to_a_core_site_xml_of_the_user(
    variable: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, str(tmp_path))
    ours = {name for name in _chosen() if name.startswith("spark.hadoop.fs.s3a.")}
    (tmp_path / "core-site.xml").write_text("<configuration/>")

    assert len(ours) == 2
    assert ours.isdisjoint(_chosen())
