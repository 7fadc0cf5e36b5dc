"""``historian changelog``: on files and on a Delta table, with exit codes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner, Result

from connectors.cli import app
from connectors.cli.terminal.outcome import ExitCode
from historian.changelog.operations import Op
from historian.changelog.validation import Profile
from lakes.lake import Lake
from lakes.sink_lab import INT, UUID, Lab, text
from models.changelogs import changelog_of
from sinks.delta.lake.recorded import recorded_changelog

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

A, R, C, D = Op.APPEND, Op.RETRACT, Op.CORRECT_FROM, Op.CORRECT_TO
ROWS = [(A, "a", 1, b"x", None), (C, "a", 1, b"x", None), (D, "a", 1, b"y", None), (A, "b", 1, b"z", None)]


def _run(*words: str | Path) -> Result:
    return CliRunner().invoke(app, ["changelog", *map(str, words)])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    rows = changelog_of([*ROWS], Profile.BINLOG)
    (tmp_path / "files").mkdir()
    pq.write_table(rows.set_column(1, "op", rows.column("op").cast(pa.int32())), tmp_path / "files" / "0.parquet")
    return tmp_path / "files"


def test_a_changelog_is_checked_projected_and_converted(spark: SparkSession, path: Path, tmp_path: Path) -> None:
    checked = _run("check", path, "--key", "k, l")
    projected = _run("project", path, "--key", "k,l", "--until", "2", "--out", tmp_path / "state")
    converted = _run("convert", path, "--to", "upsert", "--out", tmp_path / "upserts")

    assert (0, "nothing is wrong\n") == (checked.exit_code, checked.stdout), checked.output
    assert (0, 0) == (projected.exit_code, converted.exit_code), projected.output + converted.output
    assert [("a", b"y")] == [(row["k"], row["v"]) for row in pq.read_table(tmp_path / "state").to_pylist()]
    upserts = pq.read_table(tmp_path / "upserts").sort_by("offset").to_pylist()
    assert [(0, 0), (2, 0), (3, 0)] == [(row["offset"], row["op"]) for row in upserts]


def test_a_changelog_of_the_delta_sink_knows_its_key_and_its_defaults(spark: SparkSession, tmp_path: Path) -> None:
    lake = Lake(spark, tmp_path / "lake", Lab())
    lake.lab.create("shop.t", {"id": INT, "a": text()})
    lake.lab.insert("shop.t", {"id": 1, "a": "x"}, {"id": 2, "a": "y"})
    lake.lab.add("shop.t", "n", INT, initial="7")
    lake.lab.insert("shop.t", {"id": 3, "a": "z", "n": None})
    lake.cut()
    path = tmp_path / "lake" / "shop_t_changes"

    checked = _run("check", path)
    projected = _run("project", path, "--out", tmp_path / "state")

    assert (0, 0) == (checked.exit_code, projected.exit_code), checked.output + projected.output
    recorded = recorded_changelog(spark, str(path))
    assert recorded is not None
    assert ("id",) == recorded.key
    state = spark.read.format("delta").load(str(tmp_path / "state")).orderBy("id").collect()
    assert [(1, "x", 7), (2, "y", 7), (3, "z", None)] == [(row.id, row.a, row.n) for row in state]
    assert recorded_changelog(spark, str(tmp_path / "state")) is None


POSITIONS = {
    "mysql": [f"{UUID}:1", f"{UUID}:2", f"{UUID}:2", f"{UUID}:3"],
    "mariadb": ["0-5-1", "0-5-2", "0-5-2", "0-5-3"],
    "file": ["log.000009:800", "log.000010:4", "log.000010:4", "log.000010:500"],
}


def _with_positions(path: Path, positions: list[str | None]) -> Path:
    """The rows of ROWS with the place of their transaction, as the Delta sink writes it when asked."""
    rows = changelog_of([*ROWS], Profile.BINLOG)
    rows = rows.set_column(1, "op", rows.column("op").cast(pa.int32()))
    rows = rows.add_column(5, "_position", pa.array(positions, pa.string()))
    rows = rows.add_column(6, "_ordinal", pa.array([1] * rows.num_rows, pa.int32()))
    path.mkdir()
    pq.write_table(rows, path / "0.parquet")
    return path


@pytest.mark.parametrize(
    "source, until", [("mysql", f"{UUID}:1-2"), ("mariadb", "0-5-2"), ("file", "log.000010:500"), ("file", "2")]
)
def test_a_state_at_a_position_holds_what_the_log_held_there(
    spark: SparkSession, tmp_path: Path, source: str, until: str
) -> None:
    path = _with_positions(tmp_path / "changes", [*POSITIONS[source]])

    projected = _run("project", path, "--key", "k,l", "--until", until, "--out", tmp_path / "state")

    assert 0 == projected.exit_code, projected.output
    assert [("a", b"y")] == [(row["k"], row["v"]) for row in pq.read_table(tmp_path / "state").to_pylist()]


def test_a_state_at_a_position_of_a_delta_table(spark: SparkSession, tmp_path: Path) -> None:
    path = _with_positions(tmp_path / "changes", [*POSITIONS["mysql"]])
    spark.read.parquet(str(path)).write.format("delta").save(str(tmp_path / "delta"))

    projected = _run("project", tmp_path / "delta", "--key", "k,l", "--until", f"{UUID}:1", "--out", tmp_path / "state")

    assert 0 == projected.exit_code, projected.output
    state = spark.read.format("delta").load(str(tmp_path / "state")).collect()
    assert [("a", bytearray(b"x"))] == [(row.k, row.v) for row in state]


@pytest.mark.parametrize(
    "positions, until, code, said",
    [
        (POSITIONS["mysql"], "log.000010:4", ExitCode.SOURCE, "without GTID and a position without its file"),
        (POSITIONS["file"], f"{UUID}:1", ExitCode.SOURCE, "without GTID and a position without its file"),
        (POSITIONS["mysql"], "0-5-1", ExitCode.SOURCE, "GTID"),
        ([*POSITIONS["mysql"][:3], None], f"{UUID}:1-2", ExitCode.SOURCE, "NULL in 1 of 4 rows"),
        (POSITIONS["mysql"], "yesterday", ExitCode.USAGE, "neither an offset nor a position"),
        (POSITIONS["mysql"], "1", ExitCode.SOURCE, "cut between -C and +C"),
    ],
)
def test_a_position_that_cannot_be_found_is_said(
    spark: SparkSession, tmp_path: Path, positions: list[str | None], until: str, code: ExitCode, said: str
) -> None:
    path = _with_positions(tmp_path / "changes", positions)

    refused = _run("project", path, "--key", "k,l", "--until", until, "--out", tmp_path / "state")

    assert (code, True) == (refused.exit_code, said in refused.stderr), refused.output


def test_rows_without_positions_have_a_state_at_offsets_alone(spark: SparkSession, path: Path, tmp_path: Path) -> None:
    refused = _run("project", path, "--key", "k,l", "--until", f"{UUID}:1", "--out", tmp_path / "state")
    strange = _run("project", path, "--key", "k,m", "--out", tmp_path / "state")

    assert ExitCode.SOURCE == refused.exit_code
    assert "expected  a changelog with changelog_columns: [position]" in refused.stderr
    assert (ExitCode.SOURCE, True) == (strange.exit_code, "expected  m" in strange.stderr), strange.output


def test_what_is_wrong_is_told(spark: SparkSession, tmp_path: Path) -> None:
    rows = changelog_of([(A, "a", 1, b"x", None), (R, "a", 1, b"y", None)], Profile.BINLOG)
    pq.write_table(rows.set_column(1, "op", rows.column("op").cast(pa.int32())), tmp_path / "0.parquet")

    found = _run("check", tmp_path, "--key", "k,l", "--json")
    shown = _run("check", tmp_path, "--key", "k,l")
    refused = _run("convert", tmp_path, "--to", "append", "--out", tmp_path / "out")
    taken = _run("convert", tmp_path, "--to", "retract", "--out", tmp_path)

    assert [{"rule": "image", "offset": 1, "expected": "v=b'x'", "found": "v=b'y'"}] == json.loads(found.stdout)
    assert (ExitCode.FAILED, ExitCode.FAILED) == (found.exit_code, shown.exit_code)
    assert ["1", "image", "v=b'x'", "v=b'y'"] == shown.stdout.splitlines()[-1].replace("│", " ").split()
    assert ExitCode.SOURCE == refused.exit_code
    assert "expected op 0 (+A); found 1" in refused.stderr
    assert ExitCode.SINK == taken.exit_code
    assert ExitCode.SOURCE == _run("check", tmp_path / "none").exit_code
    assert ExitCode.USAGE == _run("convert", tmp_path, "--to", "odf", "--out", tmp_path / "odf").exit_code
