"""Long commands on a real server and a lake, on a terminal: each shows how far it is, and prints what it prints without one."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Sequence
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
"""Of commands that start Spark, on a machine that has much to do."""
TOGETHER = """
import json, sys
from connectors.cli import app
for words in json.loads(sys.argv[1]):
    print(sys.argv[2], flush=True)
    assert not app(words, standalone_mode=False), words
"""
"""Commands, one after another in one process, whose Java is started once; behind a line before each."""
_NEXT = "--- next ---"


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


def _shown(command: Sequence[str]) -> tuple[str, str]:
    """What the terminal was told, and what stands there at the end."""
    with on_a_screen(command, columns=120) as screen:
        assert 0 == screen.end(LONGEST_S), screen.text()
        assert screen.has_cursor
        return screen.raw.decode(), screen.text()


def _plain(told: str) -> str:
    return re.sub(r"\x1b\[[0-9;]*m", "", told)


def test_long_commands_show_how_far_they_are(replicated: Path, tmp_path: Path) -> None:
    told, left = _shown(
        [*HISTORIAN, "tail", str(replicated), "--from", "earliest", "--table", "c.t", "--format", "ndjson"]
    )
    assert "reading the log ━" in _plain(told)
    assert ROWS == told.count('"op":')
    assert "reading the log" not in left

    changelog, out = tmp_path / "lake" / "c_t_changes", tmp_path / "out"
    commands: list[list[str]] = [
        ["verify", str(replicated)],
        ["replay", str(replicated), "--table", "c.t", "--from", "earliest"],
        ["changelog", "convert", str(changelog), "--to", "upsert", "--out", str(out)],
    ]
    told, left = _shown([sys.executable, "-c", TOGETHER, json.dumps(commands), _NEXT])
    _, *each = told.split(_NEXT)
    assert [True] * 3 == [part.rfind("\x1b[?25h") >= part.rfind("\x1b[?25l") for part in each], "each leaves a cursor"
    verified, replayed, converted = map(_plain, each)
    _, verified_left, replayed_left, converted_left = left.split(_NEXT)

    assert "verifying c.t, 1 of 1 ━" in verified
    lines = verified_left.splitlines()
    assert ["c.t: 3000 rows"] == [line.split(" at ")[0] for line in lines if line.startswith("c.t:")]
    assert "verifying" not in verified_left

    assert "reading the log ━" in replayed
    assert "reading the log" not in replayed_left
    assert "c.t: the next run reads from " in replayed_left

    assert f"writing {out}"[:30] in converted
    assert "writing" not in converted_left
    assert list(out.rglob("*.parquet"))
