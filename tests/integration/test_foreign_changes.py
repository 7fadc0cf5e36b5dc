"""Someone else writes to targets: ``historian verify --repair`` puts them back, the next run goes on, and the lake equals the source."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

from connectors.cli import app
from connectors.config import load_config
from connectors.pipeline.run import run
from databases.servers import Server
from lakes.held_rows import held_table
from replicas.first_copies import copying_config
from sinks.delta.log.kernel import Kernel

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_TARGETS = ("c_t", "c_t_changes", "c_t_history")
_CHANGES = {
    ("UPDATE",): ("UPDATE {t} SET v = 'theirs' WHERE id = 3",),
    ("DELETE",): ("DELETE FROM {t} WHERE id = 1",),
    ("WRITE",): ("INSERT INTO {t} SELECT * FROM {t} WHERE id = 2", "OPTIMIZE {t}"),
    ("RESTORE",): ("RESTORE TABLE {t} TO VERSION AS OF 1",),
    ("ADD COLUMNS", "RENAME COLUMN"): (
        "ALTER TABLE {t} ADD COLUMN theirs INT",
        "ALTER TABLE {t} RENAME COLUMN v TO w",
    ),
}
"""By the operations that a log tells of them."""


@pytest.fixture
def replicated(mysql8: Server, spark: SparkSession, tmp_path: Path) -> Path:
    mysql8.clear()
    mysql8.sql("CREATE DATABASE c")
    mysql8.sql("CREATE TABLE c.t (id INT PRIMARY KEY, v VARCHAR(20))")
    mysql8.sql("INSERT INTO c.t VALUES (1, 'a'), (2, 'b'), (3, 'c')")
    path = copying_config(mysql8, tmp_path)
    path.write_text(path.read_text().replace('/lake"}', '/lake", history: "{database}_{table}_history"}'))
    assert {} == _run(path, spark)
    mysql8.sql("UPDATE c.t SET v = 'z' WHERE id = 1")
    assert {} == _run(path, spark)
    return path


@pytest.mark.parametrize("count", [1, pytest.param(len(_TARGETS), marks=pytest.mark.soak)])
def test_what_others_did_to_targets_is_put_back_and_the_run_goes_on(
    mysql8: Server, replicated: Path, spark: SparkSession, count: int
) -> None:
    """*count* targets at a time, each kind of target in its turn."""
    held = _rows(spark, replicated)
    for number, (operations, statements) in enumerate(_CHANGES.items()):
        changed = {_TARGETS[(number + each) % len(_TARGETS)] for each in range(count)}
        for target in changed:
            _do(spark, replicated, target, *statements)
        code, lines = _verify(replicated, "--repair")
        told = [line.split(" at version")[0] for line in lines if "was changed by someone else" in line]
        expected = [
            f"c.t: {target} was changed by someone else: {operation}"
            for target in ("c_t_changes", "c_t", "c_t_history")
            if target in changed
            for operation in operations
        ]
        assert (1, expected) == (code, told)
        assert "0 changelog rows would mend its targets" in lines[-1]
        assert held == _rows(spark, replicated)

    assert 0 == _verify(replicated)[0]
    _goes_on(mysql8, replicated, spark)


@pytest.mark.parametrize("target", ["c_t", *(pytest.param(t, marks=pytest.mark.soak) for t in _TARGETS[1:])])
def test_a_table_that_a_run_has_stopped_for_it_goes_on_too(
    mysql8: Server, replicated: Path, spark: SparkSession, target: str
) -> None:
    _do(spark, replicated, target, "DELETE FROM {t} WHERE id = 2")
    mysql8.sql("INSERT INTO c.t VALUES (8, 'h')")
    mysql8.sql("DELETE FROM c.t WHERE id = 3")
    stopped = _run(replicated, spark)
    assert "changed by someone else" in stopped["c.t"]
    assert "`historian verify --repair`" in stopped["c.t"]
    assert 1 == _verify(replicated)[0]

    code, lines = _verify(replicated, "--repair")
    assert (1, "c.t: the next run compares it, and writes what differs") == (code, lines[-1])
    _goes_on(mysql8, replicated, spark)


def test_a_target_whose_files_are_gone_is_told_and_left_as_it_is(replicated: Path, spark: SparkSession) -> None:
    _do(spark, replicated, "c_t", "UPDATE {t} SET v = 'theirs'")
    place = replicated.parent / "lake" / "c_t"
    kept = {Path(file.removeprefix("file:")).name for file in spark.read.format("delta").load(str(place)).inputFiles()}
    for file in place.rglob("*.parquet"):
        if "_delta_log" not in file.parts and file.name not in kept:
            file.unlink()
    held = _rows(spark, replicated)

    code, lines = _verify(replicated, "--repair")
    said = "\n".join(lines)
    assert (1, True) == (code, "a target that someone else changed cannot be put back" in said), said
    assert "historian replay --table TABLE --from earliest" in said
    assert held == _rows(spark, replicated)


def _goes_on(server: Server, path: Path, spark: SparkSession) -> None:
    server.sql("INSERT INTO c.t VALUES (9, 'n')")
    server.sql("DELETE FROM c.t WHERE id = 2")
    server.sql("UPDATE c.t SET v = 'y' WHERE id = 1")
    assert {} == _run(path, spark)
    rows = sorted(tuple(row) for row in server.sql("SELECT id, v FROM c.t"))
    assert rows == sorted(tuple(row) for row in _read(spark, path, "c_t").select("id", "v").collect())
    history = _read(spark, path, "c_t_history").where("to_offset IS NULL").select("id", "v").collect()
    assert rows == sorted(map(tuple, history))
    assert rows == _folded(_read(spark, path, "c_t_changes").orderBy("offset").collect())
    assert 0 == _verify(path)[0]


def _folded(changes: list[Any]) -> list[tuple[Any, ...]]:
    """The rows that a strict changelog amounts to."""
    rows: dict[int, tuple[Any, ...]] = {}
    for number, change in enumerate(changes):
        assert number == change.offset
        row = (change.id, change.v)
        if change.op in (1, 2):  # -R, -C
            assert row == rows.pop(change.id)
        else:
            assert change.id not in rows
            rows[change.id] = row
    return sorted(rows.values())


def _rows(spark: SparkSession, path: Path) -> dict[str, list[str]]:
    kernel, lake = Kernel(spark, "tests"), path.parent / "lake"
    return {target: sorted(map(str, held_table(kernel, str(lake / target)).to_pylist())) for target in _TARGETS}


def _do(spark: SparkSession, path: Path, target: str, *statements: str) -> None:
    for statement in statements:
        spark.sql(statement.format(t=f"delta.`{path.parent}/lake/{target}`"))


def _read(spark: SparkSession, path: Path, name: str) -> Any:
    return spark.read.format("delta").load(f"{path.parent}/lake/{name}")


def _run(path: Path, spark: SparkSession) -> dict[str, str]:
    return dict(run(load_config(path), once=True, spark=spark))


def _verify(path: Path, *arguments: str) -> tuple[int, list[str]]:
    done = CliRunner().invoke(app, ["verify", str(path), *arguments])
    return done.exit_code, done.output.splitlines()
