"""Orphans are files that no version names: those in force, those that were, and those of a write under way are none."""

from __future__ import annotations

import os
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from historian.errors import SinkError
from sinks.delta.log.orphans import orphaned_files, remove

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
DAY_S = 86_400


def _age(path: Path, days: int) -> None:
    then = datetime.now(timezone.utc).timestamp() - days * DAY_S
    os.utime(path, (then, then))


def _before(days: int) -> datetime:
    return datetime.now(timezone.utc) - timedelta(days=days)


def _data_files(table: Path) -> set[Path]:
    return {path for path in table.rglob("*.parquet") if "_delta_log" not in path.parts}


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> Path:
    """A table in a name that a URL has to escape, partitioned, with files that only older versions name, one of them behind a checkpoint."""
    lake = tmp_path / "the lake"
    path = str(lake / "a b%20c" / "t")
    rows = spark.range(4).selectExpr("id", "concat('x y', id % 2) AS part")
    for number in range(4):
        writer = (
            rows.coalesce(1).write.format("delta").partitionBy("part").mode("append" if number % 2 else "overwrite")
        )
        writer.option("delta.checkpointInterval", 3).save(path)
    for file in lake.rglob("*"):
        _age(file, 30)
    return lake


def test_only_old_files_that_no_version_names_are_found_and_removed(spark: SparkSession, lake: Path) -> None:
    table = lake / "a b%20c" / "t"
    assert list((table / "_delta_log").glob("*.checkpoint.parquet")), "a checkpoint names files too"
    held = _data_files(table)
    in_force = {
        Path(file.removeprefix("file://")).name for file in spark.read.format("delta").load(str(table)).inputFiles()
    }
    assert in_force < {path.name for path in held}, "others are older versions'"
    assert [] == orphaned_files(str(lake), _before(7))

    left, fresh, apart = table / "part=x y0" / "left.parquet", table / "fresh.parquet", lake / "apart.parquet"
    for path, days in ((left, 8), (fresh, 6), (apart, 8), (table / "_delta_log" / "x.crc", 8)):
        path.write_bytes(b"123")
        _age(path, days)

    [found] = orphaned_files(str(lake), _before(7))
    assert ("a b%20c/t", "a b%20c/t/part=x y0/left.parquet", 3) == (found.table, found.path, found.size_bytes)
    remove(str(lake), [found])
    remove(str(lake), [found])

    assert held | {fresh} == _data_files(table)
    assert apart.exists(), "what lies in no table is not ours to judge"


def test_what_a_link_in_the_lake_leads_to_is_nobodys_orphan(lake: Path, tmp_path: Path) -> None:
    others = tmp_path / "others"
    others.mkdir()
    (others / "mine.parquet").write_bytes(b"123")
    _age(others / "mine.parquet", 30)
    table = lake / "a b%20c" / "t"
    (table / "part=x y1" / "linked").symlink_to(others)
    (table / "linked.parquet").symlink_to(others / "mine.parquet")

    assert [] == orphaned_files(str(lake), _before(7))


def test_a_log_without_its_begin_is_held_to_its_checkpoint_and_refused_without_one(lake: Path) -> None:
    log = lake / "a b%20c" / "t" / "_delta_log"
    (log / f"{0:020}.json").unlink()
    assert [] == orphaned_files(str(lake), _before(7))

    for path in log.glob("*.checkpoint*"):
        path.unlink()
    with pytest.raises(SinkError, match=r"a b%20c/t.*no version 0"):
        orphaned_files(str(lake), _before(7))


def test_a_log_is_read_whose_texts_hold_the_ends_of_lines(lake: Path) -> None:
    log = lake / "a b%20c" / "t" / "_delta_log"
    (log / f"{4:020}.json").write_text('{"commitInfo": {"note": "a\u2028b\u0085c"}}\n', encoding="utf-8")
    planted = log.parent / "lost.parquet"
    planted.write_bytes(b"x")
    _age(planted, 30)

    assert ["a b%20c/t/lost.parquet"] == [each.path for each in orphaned_files(str(lake), _before(7))]

    (log / f"{5:020}.json").write_bytes(b'{"add": ')
    with pytest.raises(SinkError, match="cannot be read"):
        orphaned_files(str(lake), _before(7))
