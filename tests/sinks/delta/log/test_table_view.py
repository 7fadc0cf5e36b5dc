"""What is known of a table without loading it: whether anything was committed since, and what a commit leaves as it was."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from lakes.held_rows import HeldLake
from sinks.delta.log.columns import plain_schema
from sinks.delta.log.commits import Commit, DataFile
from sinks.delta.log.kernel import CommitConflict, Kernel
from sinks.delta.log.plain_facts import plain_facts
from sinks.delta.log.table_view import TableView
from sinks.delta.rewrite.files import FileWriter

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = plain_schema(a="long")
FEATURE = {"delta.feature.domainMetadata": "supported"}


@pytest.fixture
def kernel(spark: SparkSession) -> Kernel:
    return Kernel(spark, "tests")


def _entry(path: Path, version: int) -> Path:
    return path / "_delta_log" / f"{version:020d}.json"


def test_a_view_is_the_newest_until_something_is_committed(kernel: Kernel, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    view = kernel.create(path, SCHEMA, FEATURE, {})
    assert view.is_newest()
    loaded = kernel.view(path)
    assert loaded is not None
    assert loaded.is_newest()
    after = kernel.commit(view, "x", 1, Commit())
    assert not view.is_newest()
    assert not loaded.is_newest()
    assert after.is_newest()


def test_a_view_is_not_the_newest_of_a_log_that_was_replaced(kernel: Kernel, tmp_path: Path) -> None:
    view = kernel.create(str(tmp_path / "t"), SCHEMA, FEATURE, {})
    other = kernel.create(str(tmp_path / "other"), SCHEMA, FEATURE, {})
    shutil.copy(_entry(tmp_path / "other", 0), _entry(tmp_path / "t", 0))
    assert not view.is_newest()
    shutil.rmtree(tmp_path / "t")
    assert not view.is_newest()
    assert other.is_newest()


def test_the_view_behind_a_commit_says_what_a_loaded_one_says(kernel: Kernel, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    view = kernel.create(path, SCHEMA, FEATURE, {"d.one": "1", "d.two": "2"})
    _ask(view)
    for number, commit in enumerate(
        (
            Commit(domains={"d.one": "one"}),
            Commit(files=_files(path, 3), domains={"d.two": "two"}),
            Commit(files=_files(path, 4)),
            Commit(clear=True),
        ),
        start=1,
    ):
        view = kernel.commit(view, "x", number, commit)
        loaded = kernel.view(path)
        assert loaded is not None
        assert _ask(view) == _ask(loaded)


@pytest.fixture
def plain_kernel(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Kernel:
    """One that finds Java not started yet."""
    monkeypatch.setattr("sinks.delta.log.kernel.has_java", lambda _: False)
    return Kernel(spark, "tests")


def test_the_text_of_a_log_says_what_kernel_says_with_checkpoints_and_without(
    kernel: Kernel, plain_kernel: Kernel, tmp_path: Path
) -> None:
    """A commit may stand on such a view, too; the checkpoint is that of version 10."""
    path = str(tmp_path / "t")
    view = kernel.create(path, SCHEMA, {**FEATURE, "delta.columnMapping.mode": "name"}, {"d.one": "1", "d.two": "2"})
    for number in range(1, 14):
        taken = [file.path for file in view.held_files()][: number % 3]
        commit = Commit(files=_files(path, number), removed=taken, domains={"d.one": f"{number}"})
        told = _told(plain_kernel, path)
        assert told.is_newest()
        assert _ask(view) == _ask(told)
        view = kernel.commit(told, "x" if number < 9 else "y", number, commit)
        assert _ask(view) == _ask(_told(plain_kernel, path))
    assert (8, 13) == (view.transaction("x"), view.transaction("y"))
    for version in range(10):
        _entry(tmp_path / "t", version).unlink()
    assert _ask(view) == _ask(_told(plain_kernel, path))


def _told(kernel: Kernel, path: str) -> TableView:
    view = kernel.view(path)
    assert view is not None
    assert "kernel" not in {key[0] for key in view._known}
    return view


def test_a_commit_on_the_text_of_a_log_is_refused_where_another_came_first(
    kernel: Kernel, plain_kernel: Kernel, tmp_path: Path
) -> None:
    path = str(tmp_path / "t")
    view = kernel.create(path, SCHEMA, FEATURE, {})
    told = _told(plain_kernel, path)
    kernel.commit(view, "x", 1, Commit())
    with pytest.raises(CommitConflict):
        plain_kernel.commit(told, "x", 2, Commit())


@pytest.mark.parametrize(
    "lines",
    [
        [{"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": ["v2Checkpoint"]}}],
        [{"protocol": {"minReaderVersion": 4, "minWriterVersion": 7}}],
        [{"add": {"path": "s3://elsewhere/part.parquet", "size": 1}}],
        [{"add": {"path": "a%20b.parquet", "size": 1}}],
        [{"txn": {"appId": "x"}}],
        ["no action"],
    ],
    ids=["a feature", "a reader to come", "another place", "a quoted name", "a damaged action", "damaged lines"],
)
def test_what_the_text_of_a_log_does_not_tell_for_certain_is_left_to_kernel(
    kernel: Kernel, tmp_path: Path, lines: list[object]
) -> None:
    path = str(tmp_path / "t")
    kernel.create(path, SCHEMA, FEATURE, {})
    assert plain_facts(path) is not None
    _entry(tmp_path / "t", 1).write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert plain_facts(path) is None
    _entry(tmp_path / "t", 1).rename(_entry(tmp_path / "t", 2))
    _entry(tmp_path / "t", 2).write_text("")
    assert plain_facts(path) is None, "a log with a hole"


def test_a_commit_that_another_process_overwrote_stops_the_table(lake: HeldLake, quiet: None) -> None:
    """As a race of two processes leaves it on a local path: the version is there, and is not ours."""
    entry = _entry(lake.path / "shop_t_changes", lake.versions("shop_t_changes"))
    optimized = {"commitInfo": {"operation": "OPTIMIZE", "engineInfo": "Apache-Spark/4.2.0 Delta-Lake/4.4.0"}}
    entry.with_name(f".{entry.name}.crc").unlink()
    entry.unlink()
    entry.write_text(json.dumps(optimized) + "\n")
    lake.lab.insert("shop.t", {"id": 2, "a": 2})
    lake.lab.insert("shop.other", {"id": 2})
    lake.cut()
    assert "overwritten by someone else's" in lake.stopped()["shop.t"]
    lake.check("shop.other")


def _files(path: str, value: int) -> list[DataFile]:
    writer = FileWriter(path, SCHEMA.arrow())
    writer.write_table(pa.table({"a": [value]}, schema=SCHEMA.arrow()))
    return writer.close()


def _ask(view: TableView) -> tuple[object, ...]:
    files = sorted((file.path, file.size_bytes, file.has_deletions) for file in view.held_files())
    domains = [view.domain(name) for name in ("d.one", "d.two", "d.three")]
    owner = view.property("delta.feature.domainMetadata")
    return view.version, view.schema(), view.transaction("x"), domains, files, view.is_empty(), owner
