"""A table's size and rows by its log alone, against what an independent reader finds."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from historian.errors import SinkError
from lakes.lake import Lake
from lakes.sink_lab import INT, Lab
from sinks.delta.reading.plain_files import PlainTable, plain_rows, plain_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.usefixtures("quiet")


def _independent(path: Path) -> tuple[int, int, int, int]:
    """Version, files, bytes and rows."""
    from deltalake import DeltaTable

    table = DeltaTable(str(path))
    adds = table.get_add_actions(flatten=True)
    sizes, rows = (sum(value for value in adds[name].to_pylist()) for name in ("size_bytes", "num_records"))
    return table.version(), len(table.file_uris()), sizes, rows


def _told(found: PlainTable | None) -> tuple[int, int, int, int | None]:
    assert found is not None
    return found.version, len(found.names), found.size_bytes, found.rows


def test_sizes_are_those_of_an_independent_reader(spark: SparkSession, tmp_path: Path) -> None:
    lake = Lake(spark, tmp_path / "lake", Lab())
    lake.lab.create("shop.t", {"id": INT, "a": INT})
    for value in range(4):
        lake.lab.insert("shop.t", {"id": value, "a": value})
        lake.cut()
    changes, mirror = (tmp_path / "lake" / name for name in ("shop_t_changes", "shop_t"))
    for path in (changes, mirror):
        assert _independent(path) == _told(plain_table(str(path)))

    spark.sql(f"OPTIMIZE delta.`{changes}`")
    spark.sql(f"ALTER TABLE delta.`{changes}` SET TBLPROPERTIES ('delta.checkpointInterval' = '1')")
    spark.sql(f"ALTER TABLE delta.`{changes}` SET TBLPROPERTIES ('mine' = '1')")
    assert list(changes.glob("_delta_log/*.checkpoint*.parquet"))
    spark.sql(f"ALTER TABLE delta.`{changes}` SET TBLPROPERTIES ('delta.checkpointInterval' = '100', 'mine' = '2')")
    assert _independent(changes) == _told(plain_table(str(changes)))
    # What a checkpoint has need not be there once more.
    (changes / "_delta_log" / f"{0:020}.json").unlink()
    assert _independent(changes) == _told(plain_table(str(changes)))

    expected = [row.asDict() for row in spark.read.format("delta").load(f"{lake.path}/historian_plans").collect()]
    rows = plain_rows(f"{lake.path}/historian_plans", ("plan", "version", "rows"))
    assert _sorted([{name: row[name] for name in ("plan", "version", "rows")} for row in expected]) == _sorted(rows)


def _sorted(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda row: row["plan"])


def _commit(log: Path, number: int, *actions: dict[str, Any]) -> None:
    log.mkdir(parents=True, exist_ok=True)
    (log / f"{number:020}.json").write_text("\n".join(map(json.dumps, actions)))


def test_a_file_whose_deleted_rows_are_marked_anew_is_there_once(tmp_path: Path) -> None:
    log = tmp_path / "t" / "_delta_log"
    _commit(log, 0, {"add": {"path": "a", "size": 5, "stats": '{"numRecords": 3}'}})
    _commit(log, 1, {"add": {"path": "a", "size": 5, "stats": None}}, {"remove": {"path": "a"}})

    assert PlainTable(version=1, size_bytes=5, rows=None, names=("a",)) == plain_table(str(tmp_path / "t"))


def test_a_table_is_read_anew_only_where_its_log_has_changed(tmp_path: Path) -> None:
    log = tmp_path / "t" / "_delta_log"
    _commit(log, 0, {"add": {"path": "a", "size": 5, "stats": None}})
    first = plain_table(str(tmp_path / "t"))
    assert first is not None
    assert plain_table(str(tmp_path / "t"), first) is first

    _commit(log, 1, {"add": {"path": "b", "size": 6, "stats": None}})
    second = plain_table(str(tmp_path / "t"), first)
    assert second is not None
    assert (1, 11) == (second.version, second.size_bytes)
    shutil.rmtree(tmp_path / "t")
    _commit(log, 1, {"add": {"path": "c", "size": 70, "stats": None}})
    _commit(log, 0, {"add": {"path": "d", "size": 7, "stats": None}})
    assert ("d", "c") == getattr(plain_table(str(tmp_path / "t"), second), "names", None)


@pytest.mark.parametrize(
    "body", [b'{"add": {', b'{"add": {"path": "a"}}', b'{"add": {"path": "a", "size": 1, "stats": "{"}}', b"\xff"]
)
def test_a_damaged_commit_is_an_error_of_ours(tmp_path: Path, body: bytes) -> None:
    log = tmp_path / "t" / "_delta_log"
    log.mkdir(parents=True)
    (log / f"{0:020}.json").write_bytes(body)
    for ask in (plain_table, lambda path: plain_rows(path, ("a",))):
        with pytest.raises(SinkError, match=r"the files of a Delta table cannot be read .+/t"):
            ask(str(tmp_path / "t"))


def test_a_damaged_checkpoint_or_file_is_too(tmp_path: Path) -> None:
    log = tmp_path / "t" / "_delta_log"
    log.mkdir(parents=True)
    (log / f"{0:020}.json").write_text('{"add": {"path": "a.parquet", "size": 1}}')
    (tmp_path / "t" / "a.parquet").write_bytes(b"no Parquet")
    with pytest.raises(SinkError, match="cannot be read"):
        plain_rows(str(tmp_path / "t"), ("a",))
    (log / f"{0:020}.checkpoint.parquet").write_bytes(b"")
    with pytest.raises(SinkError, match="cannot be read"):
        plain_table(str(tmp_path / "t"))


def test_a_log_that_lacks_a_commit_is_no_table_and_no_guess(tmp_path: Path) -> None:
    assert plain_table(str(tmp_path / "none")) is None
    assert [] == plain_rows(str(tmp_path / "none"), ("a",))
    log = tmp_path / "t" / "_delta_log"
    _commit(log, 0, {"add": {"path": "a", "size": 5}})
    _commit(log, 2, {"add": {"path": "b", "size": 5}})

    with pytest.raises(SinkError, match="hole"):
        plain_table(str(tmp_path / "t"))
    shutil.rmtree(log)
    _commit(log, 1, {"add": {"path": "a", "size": 5}})
    with pytest.raises(SinkError, match="hole"):
        plain_table(str(tmp_path / "t"))
