"""``historian verify --continuous`` beside a run that writes the lake: it tells what differs, and nothing that does not."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import subprocess
import threading
from collections.abc import Callable, Collection
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from command_line import HISTORIAN
from connectors.cli.replay import lake_of
from connectors.config import load_config
from connectors.monitoring.observer import Observer
from connectors.pipeline import continuous
from connectors.pipeline.continuous import ContinuousComparison
from connectors.pipeline.pipeline import Pipeline
from connectors.pipeline.run import run
from connectors.tail.json_lines import ndjson_rows
from connectors.tracking.recorded import recorded_store
from databases.servers import Server
from historian.changelog.chunks import Chunk
from historian.names import TableName
from historian.schema.snapshots import Snapshot
from monitoring.screens import on_a_screen
from replicas.first_copies import copying_config
from replicas.tracked import unlogged
from workload.beside import beside

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ROWS = 600


@pytest.mark.usefixtures("few_rows")
@pytest.mark.parametrize("kind", [pytest.param("mysql8", marks=pytest.mark.soak), "mariadb1011"])
def test_what_differs_is_found_while_the_run_goes_on(
    request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path, kind: str
) -> None:
    server: Server = request.getfixturevalue(kind)
    path = _replicated(server, spark, tmp_path)
    watcher = _Watcher(path, spark)
    with beside(lambda ended: _write(server, ended)), beside(lambda ended: _carry(path, spark, ended)):
        assert not watcher.rounds(2)
        assert [] == watcher.rows
        assert 450 <= watcher.most_rows["c.t"] <= 1200, "told range by range, with the rows of all but the last one"
        server.sql("ALTER TABLE c.t ADD COLUMN w INT NOT NULL DEFAULT 7")
        server.sql("CREATE TABLE c.later (id INT PRIMARY KEY)")
        server.sql("INSERT INTO c.later VALUES (1)")
        assert not watcher.rounds(1, until="c.later: 1 rows")
        assert [] == watcher.rows

        unlogged(
            server,
            "UPDATE c.t SET v = 'unseen' WHERE id = 5001",
            "DELETE FROM c.t WHERE id = 5002",
            "INSERT INTO c.bag VALUES (77)",
        )
        assert watcher.rounds(2)
    told = {(row["table"], row["op"], row["data"].get("id")) for row in watcher.rows}
    assert {("c.t", "-C", 5001), ("c.t", "+C", 5001), ("c.t", "-R", 5002), ("c.bag", "+A", None)} == told
    assert any("c.t" in line and "`historian verify --table c.t --repair`" in line for line in watcher.lines)


@pytest.mark.usefixtures("few_rows")
def test_what_only_the_source_shows_yet_is_not_told(
    mysql8: Server, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Children that went with their parents, behind what the run has followed."""
    path = _replicated(mysql8, spark, tmp_path)
    mysql8.sql("INSERT INTO c.parents VALUES (1), (2)")
    mysql8.sql("INSERT INTO c.children (parent) VALUES (1), (2), (2)")
    assert {} == run(load_config(path), once=True, spark=spark)
    mysql8.sql("DELETE FROM c.parents WHERE id = 2")
    watcher = _Watcher(path, spark)
    monkeypatch.setattr(continuous, "_FOLLOWS_TRIES", 1)
    assert not watcher.rounds(0, until="c.children")
    assert "c.children: 2 rows differ at" in watcher.lines[-1]
    assert "or only until the run has followed the log" in watcher.lines[-1]

    follows, followed = ContinuousComparison._has_followed, []

    def has_followed(comparison: ContinuousComparison) -> bool:
        followed.append(run(load_config(path), once=True, spark=spark))
        return follows(comparison)

    monkeypatch.setattr(ContinuousComparison, "_has_followed", has_followed)
    assert not watcher.rounds(0, until="c.children")
    assert ([{}], []) == (followed, watcher.rows)
    assert "c.children: 1 rows up to" in watcher.lines[-1]


def test_a_signal_ends_it(mysql8: Server, spark: SparkSession, tmp_path: Path) -> None:
    """To the process alone, or to its whole group, as Ctrl-C of a terminal and systemd send them."""
    path = _replicated(mysql8, spark, tmp_path)
    command = [*HISTORIAN, "verify", str(path), "--continuous"]
    cases: list[tuple[Callable[[int], None], tuple[str, ...], int]] = [
        (lambda number: os.kill(number, signal.SIGTERM), (), 0),
        (lambda number: os.killpg(number, signal.SIGTERM), ("DELETE FROM c.t WHERE id = 5001",), 1),
    ]
    for end, statements, code in cases:
        unlogged(mysql8, *statements)
        with subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
        ) as process:
            assert process.stdout is not None
            assert process.stderr is not None
            lines: list[str] = []
            for line in process.stdout:
                if line.startswith("c.t:") and not any(before.startswith("c.t:") for before in lines):
                    end(process.pid)
                lines.append(line)
            said = process.stderr.read()
            assert (code, bool(code)) == (process.wait(), any(line.startswith("{") for line in lines)), said
            assert "Traceback" not in said

    with on_a_screen(command, columns=120) as screen:
        screen.wait(lambda text: "c.t: " in text and re.search("round [2-9]: verifying c", text) is not None)
        screen.type(b"\x03")
        assert 1 == screen.end(), screen.text()
        assert screen.has_cursor
        assert "Traceback" not in screen.text()
        assert "round" not in screen.text(), "the bar is gone"
    shown = re.sub(r"\x1b\[[0-9;]*m", "", screen.raw.decode())
    assert re.search("round [1-9]: verifying c.t, 4 of 4 ━", shown)


class _Watcher:
    """Rounds of a comparison, and what it told."""

    def __init__(self, path: Path, spark: SparkSession) -> None:
        self._settings = load_config(path)
        self._spark = spark
        self.lines: list[str] = []
        self.rows: list[dict[str, Any]] = []
        self.most_rows: dict[str, int] = {}

    def rounds(self, count: int, until: str = "") -> bool:
        """Whether something differed in that many rounds of c.t, and up to a line that begins with *until*."""
        self._stopping = threading.Event()
        self._left, self._until = count, until
        store = recorded_store(self._settings)
        assert store is not None
        with closing(store):
            return ContinuousComparison(
                self._spark, self._settings, lake_of(self._settings), store, None, told=self, stopping=self._stopping
            ).run()

    def say(self, line: str) -> None:
        self.lines.append(line)
        self._left -= line.startswith("c.t:")
        if self._until and line.startswith(self._until):
            self._until = ""
        if self._left <= 0 and not self._until:
            self._stopping.set()

    def differs(self, chunk: Chunk, table: Snapshot) -> None:
        self.rows += map(json.loads, ndjson_rows(chunk, table))

    def begins(self, tables: Collection[TableName]) -> None:
        self._reached = dict.fromkeys(map(str, tables), -1)

    def reached(self, table: TableName, rows: int) -> None:
        """Tables come in their order, and each counts its rows from 0."""
        names = list(self._reached)
        assert all(self._reached[name] >= 0 for name in names[: names.index(str(table))])
        assert rows == 0 or self._reached[str(table)] >= 0
        self._reached[str(table)] = rows
        self.most_rows[str(table)] = max(rows, self.most_rows.get(str(table), 0))


def _replicated(server: Server, spark: SparkSession, directory: Path) -> Path:
    server.clear()
    server.sql("CREATE DATABASE c")
    server.sql("CREATE TABLE c.bag (n INT)")
    server.sql("CREATE TABLE c.t (id INT PRIMARY KEY, v VARCHAR(20))")
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.executemany("INSERT INTO c.t VALUES (%s, %s)", [(i * 10 + 1, f"v{i}") for i in range(_ROWS)])
        cursor.execute("INSERT INTO c.t VALUES (5002, 'x')")
        cursor.execute("INSERT INTO c.bag VALUES (1), (1), (2)")
        connection.commit()
    server.sql("CREATE TABLE c.parents (id INT PRIMARY KEY)")
    server.sql(
        "CREATE TABLE c.children (id INT AUTO_INCREMENT PRIMARY KEY, parent INT NOT NULL,"
        " FOREIGN KEY (parent) REFERENCES c.parents (id) ON DELETE CASCADE)"
    )
    path = copying_config(server, directory, backfill="{connections: 2, chunk_rows: 150}")
    text = path.read_text().replace('/lake"}', '/lake", keyless: rows}')
    path.write_text(f"{text}run: {{trigger: 200 milliseconds}}\n")
    assert {} == run(load_config(path), once=True, spark=spark)
    return path


def _write(server: Server, ended: threading.Event) -> None:
    """All keys but those that end in 1 and 2 under 6000 come, change and go. Children go with their parents, which no log tells."""
    rng = random.Random(1)
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute("USE c")
        while not ended.wait(0.02):
            key = rng.randrange(600) * 10 + rng.randrange(3, 9)
            cursor.execute("INSERT IGNORE INTO t (id, v) VALUES (%s, 'new')", (key,))
            cursor.execute("UPDATE t SET v = %s WHERE id = %s", (f"u{rng.randrange(10**6)}", key))
            cursor.execute("DELETE FROM t WHERE id BETWEEN %s AND %s AND id %% 10 > 2", (key - 300, key - 250))
            cursor.execute("DELETE FROM parents WHERE id = %s", (key % 7,))
            cursor.execute("INSERT INTO parents VALUES (%s)", (key % 7,))
            cursor.execute("INSERT INTO children (parent) VALUES (%s), (%s)", (key % 7, key % 7))
            connection.commit()


def _carry(path: Path, spark: SparkSession, ended: threading.Event) -> None:
    with Pipeline.opened(load_config(path), spark, Observer()) as pipeline:
        pipeline.run(once=False, until=None, stopping=ended)
