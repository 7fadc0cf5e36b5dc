"""What a lake refuses: places that are taken or cannot be written, other runs, and a table whose key is gone."""

from __future__ import annotations

import pickle
from dataclasses import replace
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from historian.errors import ChainBroken, SinkError
from lakes.held_rows import HeldLake
from lakes.sink_lab import INT
from sinks.delta import DeltaSettings, DeltaSink
from sinks.delta.rewrite import files

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.usefixtures("quiet")


def test_what_stands_in_a_targets_place_stops_that_table_alone(lake: HeldLake) -> None:
    lab = lake.lab
    (lake.path / "shop_file").write_text("mine")
    (lake.path / "shop_parquet_changes").mkdir()
    (lake.path / "shop_parquet_changes" / "part-0.parquet").write_text("mine")
    (lake.path / "shop_begun" / "_delta_log").mkdir(parents=True)  # a run that ended before it made the table
    elsewhere = lake.path.parent / "elsewhere"
    elsewhere.mkdir()
    (lake.path / "shop_linked_changes").symlink_to(elsewhere)
    (lake.path / "shop_dangling_changes").symlink_to(lake.path.parent / "nowhere")
    names = ("shop.file", "shop.parquet", "shop.begun", "shop.linked", "shop.dangling")
    for name in names:
        lab.create(name, {"id": INT})
        lab.insert(name, {"id": 1})
    lake.cut()

    stopped = lake.stopped()
    assert {"shop.file", "shop.parquet", "shop.linked", "shop.dangling"} == set(stopped)
    assert [] == list(elsewhere.iterdir())
    assert not (lake.path.parent / "nowhere").exists()
    for name in stopped:
        assert "a target's place is taken by what is no Delta table" in stopped[name]
        assert "Next: move that away, or choose other target names" in stopped[name]
    assert ["mine", "mine"] == [
        (lake.path / "shop_file").read_text(),
        (lake.path / "shop_parquet_changes" / "part-0.parquet").read_text(),
    ]
    assert [{"id": 1}] == lake.mirror("shop_begun")


def test_a_target_of_another_shape_stops_the_table(lake: HeldLake) -> None:
    lake.spark.sql(f"ALTER TABLE delta.`{lake.path}/shop_t` ADD COLUMN mine INT")
    lake.lab.insert("shop.t", {"id": 2, "a": 2})
    lake.lab.insert("shop.other", {"id": 2})
    lake.cut()

    assert ["shop.t"] == list(lake.stopped())
    assert "a target was changed by someone else" in lake.stopped()["shop.t"]
    assert "found ADD COLUMNS by" in lake.stopped()["shop.t"]
    assert [{"id": 2}] == lake.mirror("shop_other")


def test_what_kernel_does_not_follow_stops_the_table_that_someone_gave_it(lake: HeldLake) -> None:
    """Kernel writes rows of a table with column defaults, and no schema."""
    lab = lake.lab
    properties = "SET TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported')"
    lake.spark.sql(f"ALTER TABLE delta.`{lake.path}/shop_t` {properties}")
    lab.insert("shop.t", {"id": 2, "a": 2})
    lake.cut()
    assert {} == lake.stopped()

    lab.add("shop.t", "b", INT)
    lab.insert("shop.other", {"id": 2})
    lake.cut()

    assert ["shop.t"] == list(lake.stopped())
    assert "Delta Kernel does not go on with a target as it is" in lake.stopped()["shop.t"]
    assert "default values table feature" in lake.stopped()["shop.t"]
    assert [{"id": 2}] == lake.mirror("shop_other")


@pytest.mark.parametrize("place", ["file", "/sys"], ids=["a file in the way", "read-only"])
def test_a_path_that_cannot_be_made_is_said(spark: SparkSession, tmp_path: Path, place: str) -> None:
    """Both fail for root too: nobody makes directories in Linux's /sys."""
    (tmp_path / "file").write_text("")
    path = tmp_path / place / "lake"

    with pytest.raises(SinkError, match=r"cannot be (created|read) \(.*Next: mend the path, its rights or its space"):
        DeltaSink(spark, DeltaSettings(path=str(path))).open("shop")


@pytest.mark.parametrize("directory", ["historian_plans", "shop_t", "shop_t_changes"])
def test_a_path_without_space_is_said(lake: HeldLake, monkeypatch: pytest.MonkeyPatch, directory: str) -> None:
    numbers = count()
    for number in range(20):
        (lake.path / directory / f"part-full{number}.zstd.parquet").symlink_to("/dev/full")
    lake.lab.insert("shop.t", {"id": 2, "a": 2})
    plan = lake.lab.cut()
    with monkeypatch.context() as broken:
        broken.setattr(files, "uuid", SimpleNamespace(uuid4=lambda: f"full{next(numbers)}"))
        where = rf"\({lake.path}/{directory}/part-full.*\)"
        with pytest.raises(
            SinkError,
            match=rf"a file cannot be written {where}; expected .* found OSError: .*No space left.*Next: mend",
        ):
            lake.write(plan)
    lake.catch_up()
    lake.check("shop.t")


def test_two_runs_of_one_name_do_not_both_write(lake: HeldLake) -> None:
    other = HeldLake(lake.spark, lake.path, pickle.loads(pickle.dumps(lake.lab)))
    other.lab.insert("shop.t", {"id": 2, "a": 2}, {"id": 3, "a": 3})
    other.cut()
    lake.lab.insert("shop.t", {"id": 2, "a": 2})

    with pytest.raises(ChainBroken, match=r"another connector of this name writes to this lake \(plan 2 in"):
        lake.cut()
    other.lab.insert("shop.t", {"id": 4, "a": 4})
    other.cut()
    other.check("shop.t")


def test_a_table_whose_key_column_is_dropped_stops(lake: HeldLake) -> None:
    lake.lab.set_key("shop.t")
    lake.lab.drop_column("shop.t", "id")
    lake.lab.insert("shop.t", {"a": 5})
    lake.lab.insert("shop.other", {"id": 2})
    lake.cut()

    assert ["shop.t"] == list(lake.stopped())
    assert "the primary key of a mirrored table changes" in lake.stopped()["shop.t"]
    assert "ALTER TABLE shop.t ADD PRIMARY KEY" in lake.stopped()["shop.t"]
    assert [{"id": 1, "a": 1}] == lake.mirror("shop_t")
    assert [{"id": 2}] == lake.mirror("shop_other")


def test_tables_of_a_database_called_historian_and_the_lakes_own_stand_beside_each_other(
    lake: HeldLake,
) -> None:
    lab = lake.lab
    for table in ("plans", "dead_letters"):
        lab.create(f"historian.{table}", {"id": INT})
        lab.insert(f"historian.{table}", {"id": 1})
    lake.cut()
    lab.insert("historian.plans", {"id": 2})
    lake.cut()

    plans, letters = (lab.table_id(f"historian.{table}") for table in ("plans", "dead_letters"))
    assert sorted(row["id"] for row in lake.mirror(f"historian_plans__t{plans}")) == [1, 2]
    assert lake.mirror(f"historian_dead_letters__t{letters}") == [{"id": 1}]
    assert not (lake.path / "historian_dead_letters").exists()
    lake.reopen()
    assert (lake.held, lake.stopped()) == (len(lab.plans), {})

    state = lake.sink.reading()
    assert state is not None
    wrong = replace(state.locations[letters], mirror="historian_dead_letters")
    state.record_locations({**state.locations, letters: wrong}, len(lab.plans))
    with pytest.raises(SinkError, match="the name of one of the lake's own tables"):
        lake.reopen()
