"""Copies of tables without a key: a moment is found at which nobody changes the table, before its rows are read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from connectors.backfill import changes, selection, snapshots
from connectors.backfill.spool import Spool
from connectors.config import CopyLimits
from databases.servers import Server
from historian.changelog.chunks import Chunk
from historian.names import TableName
from replicas.copying_oracle import CopyingOracle

_LIMITS = CopyLimits(chunk_rows=100, connections=1)


@pytest.fixture(params=["mysql9", "without GTIDs"])
def server(request: pytest.FixtureRequest, fresh_server: Callable[..., Server]) -> Server:
    if request.param == "without GTIDs":
        return _filled(fresh_server("mysql8", "gtid_mode=OFF", "enforce_gtid_consistency=OFF"))
    found: Server = request.getfixturevalue(request.param)
    found.clear()
    return _filled(found)


def _filled(server: Server) -> Server:
    for statement in (
        "CREATE DATABASE c",
        "CREATE TABLE c.t (id INT PRIMARY KEY)",
        "INSERT INTO c.t VALUES (1), (2)",
        "CREATE TABLE c.bag (v INT)",
        "INSERT INTO c.bag VALUES (1), (1), (2), (3)",
        "CREATE TABLE c.other (v INT)",
        "INSERT INTO c.other VALUES (7), (7)",
    ):
        server.sql(statement)
    return server


def _selects_of_bag(monkeypatch: pytest.MonkeyPatch, act: Callable[[], object] = tuple) -> list[str]:
    """The names of keyless tables that are SELECTed from now on; *act* happens right before ``bag`` is."""
    read, real = [], selection.read_piece

    def read_piece(snapshot: Any, flavor: str, plan: Any, piece: Any, number: int, add: Any) -> None:
        read.append(piece.version.snapshot.name.table)
        if read[-1] == "bag":
            act()
        real(snapshot, flavor, plan, piece, number, add)

    monkeypatch.setattr(selection, "read_piece", read_piece)
    return read


def _written_at_each_snapshot(server: Server, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Has someone write to the table each time that the log's end is asked beside a snapshot, while the list has something to take."""
    left, real = [], snapshots._log_end

    def log_end(cursor: Any, *, is_new: bool) -> Any:
        if left:
            server.sql("INSERT INTO c.bag VALUES (%s)", left.pop())
            server.sql("DELETE FROM c.bag WHERE v = 1 LIMIT 1")
        return real(cursor, is_new=is_new)

    monkeypatch.setattr(snapshots, "_log_end", log_end)
    return left


def test_a_table_is_not_read_before_a_moment_is_found_at_which_nobody_changes_it(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    left = _written_at_each_snapshot(server, monkeypatch)
    left.extend(range(100, 106))
    read = _selects_of_bag(monkeypatch)
    oracle = CopyingOracle(server, tmp_path, _LIMITS, "c")
    oracle.run()
    assert ([], ["bag", "other"]) == (left, sorted(read))
    assert {} == oracle.stopped
    assert {} == oracle.differences("c")
    assert "nobody" not in caplog.text


def test_a_table_that_is_written_to_all_the_time_waits_unread_and_is_told(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(selection, "_STILL_S", 0.3)
    left = _written_at_each_snapshot(server, monkeypatch)
    left.extend(range(100, 100_000))
    read = _selects_of_bag(monkeypatch)
    oracle = CopyingOracle(server, tmp_path, _LIMITS, "c")
    oracle.run(plans=1)
    assert ["other"] == read
    said = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert any(text.startswith("table c.bag: no moment was found at which nobody changes it") for text in said), said
    left.clear()
    oracle.run()
    assert ["other", "bag"] == read
    assert {} == oracle.stopped
    assert {} == oracle.differences("c")


@pytest.mark.parametrize(
    "name, statement",
    [
        ("mysql9", "RENAME TABLE c.bag TO c.old, c.other TO c.bag"),
        ("mysql57", "TRUNCATE TABLE c.bag"),
        ("mariadb118", "RENAME TABLE c.bag TO c.old, c.other TO c.bag"),
    ],
)
def test_a_statement_between_a_snapshot_and_its_select_is_not_passed_over(
    name: str, statement: str, request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An old snapshot shows another table of that name, and on MySQL 5.7 an emptied one, without an error."""
    server: Server = request.getfixturevalue(name)
    server.clear()
    _filled(server)
    oracle = CopyingOracle(server, tmp_path, _LIMITS, "c")
    statements = [statement]
    with monkeypatch.context() as patch:
        _selects_of_bag(patch, lambda: statements and server.sql(statements.pop()))
        oracle.run(plans=1)
    oracle.run()
    assert [] == statements
    assert {} == oracle.stopped
    assert {} == oracle.differences("c")


def test_what_changes_before_a_keyless_table_is_read_is_held_within_a_limit(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.sql("ALTER TABLE c.bag ADD COLUMN t VARCHAR(100) NOT NULL DEFAULT ''")
    with server.connect() as connection, connection.cursor() as cursor:
        rows = [(number % 500, f"{number % 250}" * 20) for number in range(1000)]
        cursor.executemany("INSERT INTO c.bag VALUES (%s, %s)", rows)
        connection.commit()
    made: list[_Counted] = []

    def spool(memory_bytes: int) -> Spool:
        made.append(_Counted(memory_bytes))
        return made[-1]

    monkeypatch.setattr(changes, "Spool", spool)
    monkeypatch.setattr(changes, "_MEMORY_BYTES", 20_000)
    monkeypatch.setattr(changes, "_PART_ROWS", 100)
    real = selection.snapshot_behind
    statements = [
        "UPDATE c.bag SET v = v + 1 WHERE v % 2 = 0",
        "DELETE FROM c.bag WHERE v % 3 = 0",
        "INSERT INTO c.bag SELECT v + 1000, t FROM c.bag WHERE v < 200",
    ]

    def snapshot_behind(*given: Any, **named: Any) -> Any:
        for statement in statements:
            server.sql(statement)
        statements.clear()
        return real(*given, **named)

    monkeypatch.setattr(selection, "snapshot_behind", snapshot_behind)
    before = server.sql("SELECT v, t FROM c.bag")
    oracle = CopyingOracle(server, tmp_path, _LIMITS, "c")
    oracle.run(plans=1)
    assert Counter(before) == oracle.rows_of(TableName("c", "bag"))
    oracle.run()
    assert ({}, {}) == (oracle.stopped, oracle.differences("c"))
    assert max(each.taken_bytes for each in made) > 100_000
    assert max(each.held_bytes for each in made) <= 20_000


class _Counted(Spool):
    """A spool that knows how much it was given."""

    taken_bytes = 0

    def add(self, chunk: Chunk) -> None:
        self.taken_bytes += chunk.rows.nbytes
        super().add(chunk)
