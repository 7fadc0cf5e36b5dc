"""Long commands on a real server and a lake, on a terminal: each shows how far it is, and prints what it prints without one."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from command_line import HISTORIAN
from connectors.config import load_config
from connectors.pipeline.run import run
from databases.servers import Server
from monitoring.screens import on_a_screen
from replicas.first_copies import copying_config

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS = 3000
LONGEST_S = 240
"""Of a command that starts Spark, on a machine that has much to do."""


@pytest.fixture
def replicated(mysql8: Server, spark: SparkSession, tmp_path: Path) -> Path:
    mysql8.clear()
    mysql8.sql("CREATE DATABASE c")
    mysql8.sql("CREATE TABLE c.t (id INT PRIMARY KEY, v VARCHAR(20))")
    path = copying_config(mysql8, tmp_path)
    assert {} == run(load_config(path), once=True, spark=spark)
    with mysql8.connect() as connection, connection.cursor() as cursor:
        cursor.executemany("INSERT INTO c.t VALUES (%s, %s)", [(i, f"value {i}") for i in range(ROWS)])
        connection.commit()
    assert {} == run(load_config(path), once=True, spark=spark)
    return path


def _shown(*words: str | Path) -> tuple[str, str]:
    """What the terminal was told, and what stands there at the end."""
    with on_a_screen([*HISTORIAN, *map(str, words)], columns=120) as screen:
        assert 0 == screen.end(LONGEST_S), screen.text()
        assert screen.has_cursor
        return re.sub(r"\x1b\[[0-9;]*m", "", screen.raw.decode()), screen.text()


def test_long_commands_show_how_far_they_are(replicated: Path, tmp_path: Path) -> None:
    told, left = _shown("tail", replicated, "--from", "earliest", "--table", "c.t", "--format", "ndjson")
    assert "reading the log ━" in told
    assert ROWS == told.count('"op":')
    assert "reading the log" not in left

    told, left = _shown("verify", replicated)
    assert "verifying c.t, 1 of 1 ━" in told
    assert ["c.t: 3000 rows"] == [line.split(" at ")[0] for line in left.splitlines() if line.startswith("c.t:")]
    assert "verifying" not in left

    told, left = _shown("replay", replicated, "--table", "c.t", "--from", "earliest")
    assert "reading the log ━" in told
    assert "reading the log" not in left
    assert "c.t: the next run reads from " in left

    changelog, out = tmp_path / "lake" / "c_t_changes", tmp_path / "out"
    told, left = _shown("changelog", "convert", changelog, "--to", "upsert", "--out", out)
    assert f"writing {out}"[:30] in told
    assert "writing" not in left
    assert list(out.rglob("*.parquet"))
