"""MERGE tables: what changes rows of captured tables through another name stops these tables, and nothing else does."""

from __future__ import annotations

from pathlib import Path

import pytest

from databases.server_builds import BUILDS
from databases.servers import Server
from historian.names import TableName
from logs.binlog_lab import run
from models.source_oracle import SourceOracle

TABLES = (
    "CREATE DATABASE z",
    "CREATE TABLE z.a (id INT NOT NULL PRIMARY KEY, v INT) ENGINE=MyISAM",
    "CREATE TABLE z.`b``1` LIKE z.a",
    "CREATE TABLE z.c LIKE z.a",
)
ROWS = ("INSERT INTO z.a VALUES (1, 1), (2, 2)", "INSERT INTO z.`b``1` VALUES (11, 1)")
MERGE = "CREATE TABLE z.m (id INT NOT NULL, v INT, KEY (id)) UNION=(z.a, z.`b``1`) INSERT_METHOD=LAST ENGINE=MRG_MyISAM"
CHANGES = {
    "an insert": ("INSERT INTO z.m VALUES (12, 5)",),
    "an update": ("UPDATE z.m SET v = 99 WHERE id = 1",),
    "a delete": ("DELETE FROM z.m WHERE id = 2",),
    "truncate": ("TRUNCATE TABLE z.m",),
    "a statement": ("SET binlog_format = STATEMENT", "UPDATE z.m SET v = v + 1"),
    "renamed": ("RENAME TABLE z.m TO z.n", "ALTER TABLE z.n RENAME TO z.o", "DELETE FROM z.o"),
}


MERGED = {"m", "n", "o"}


def _stopped(oracle: SourceOracle) -> set[str]:
    return {name.table for name in oracle.stopped} - MERGED


def _differences(oracle: SourceOracle) -> dict[str, object]:
    return {table: found for table, found in oracle.differences("z").items() if table not in MERGED}


@pytest.mark.parametrize("change", list(CHANGES))
@pytest.mark.parametrize("made", ["in the log", "before the log"])
@pytest.mark.parametrize("name", ["mysql57", "mysql9", "mariadb118"])
def test_rows_that_change_through_a_merge_table_stop_their_tables(
    name: str, made: str, change: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    server: Server = request.getfixturevalue(name)
    server.clear()
    run(server, *TABLES, MERGE)
    if made == "before the log":
        run(server, "FLUSH BINARY LOGS")
        *_, (newest, *_) = server.sql("SHOW BINARY LOGS")
        run(server, f"PURGE BINARY LOGS TO '{newest}'")
    oracle = SourceOracle(server, tmp_path)
    run(server, *ROWS)
    oracle.run()
    assert not _stopped(oracle)
    assert {} == _differences(oracle)

    run(server, *CHANGES[change])
    run(server, "INSERT INTO z.c VALUES (4, 4)")
    oracle.run()
    assert {"a", "b`1"} == _stopped(oracle)
    begin = "changed by a statement" if change == "a statement" else "its rows change through another table"
    begin = "its rows are not known any more" if change == "truncate" else begin
    assert oracle.stopped[TableName("z", "a")].startswith(begin)
    assert {} == _differences(oracle)


@pytest.mark.parametrize("name", list(BUILDS))
def test_a_merge_table_stands_for_what_its_last_alter_says_and_for_nothing_once_it_is_dropped(
    name: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    server: Server = request.getfixturevalue(name)
    server.clear()
    run(server, *TABLES, MERGE, *ROWS)
    run(server, "ALTER TABLE z.m UNION=(z.`b``1`, z.c)", "UPDATE z.m SET v = 5")
    run(server, "DROP TABLE z.m", "CREATE TABLE z.m LIKE z.a", "INSERT INTO z.m SELECT * FROM z.a", "TRUNCATE z.m")
    oracle = SourceOracle(server, tmp_path)
    oracle.run()

    assert {"b`1", "c"} == _stopped(oracle)
    assert {} == _differences(oracle)


@pytest.mark.parametrize("change", ["CREATE", "ALTER"])
def test_a_merge_table_is_told_by_its_union_where_the_session_gave_the_engine(
    server: Server, change: str, tmp_path: Path
) -> None:
    server.clear()
    union = "UNION=(z.a) INSERT_METHOD=LAST"
    made = f"CREATE TABLE z.m (id INT NOT NULL, v INT, KEY (id)) {union if change == 'CREATE' else ''}"
    run(server, *TABLES, "SET default_storage_engine = MERGE", made)
    oracle = SourceOracle(server, tmp_path)
    if change == "ALTER":
        run(server, f"ALTER TABLE z.m {union}")
    run(server, "INSERT INTO z.m VALUES (1, 1)", "INSERT INTO z.c VALUES (2, 2)")
    oracle.run()

    assert {"a"} == _stopped(oracle)
    assert TableName("z", "m") in oracle.stopped
    assert {} == _differences(oracle)


def test_a_merge_table_that_nobody_can_open_does_not_keep_a_run_from_its_start(server: Server, tmp_path: Path) -> None:
    server.clear()
    run(server, *TABLES, MERGE, "ALTER TABLE z.a ENGINE=InnoDB")
    itself = "CREATE TABLE z.n (id INT NOT NULL, v INT, KEY (id)) ENGINE=MERGE UNION=(z.n)"
    run(server, itself)
    oracle = SourceOracle(server, tmp_path)
    run(server, "INSERT INTO z.c VALUES (1, 1)")
    oracle.run()
    run(server, "DROP TABLE z.m, z.n", "INSERT INTO z.c VALUES (2, 2)")
    oracle.run()

    assert set() == _stopped(oracle)
    assert {} == _differences(oracle)
