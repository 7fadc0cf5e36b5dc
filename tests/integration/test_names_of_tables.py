"""Names that tables share with views, come under by RENAME, and take over from tables of a tool."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from databases.servers import Server
from historian.names import TableName
from logs.binlog_lab import run
from models.source_oracle import SourceOracle
from replicas.replica import Replica
from replicas.tracked import Tracked
from sinks import consistent

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def oracle(server: Server, tmp_path: Path) -> Iterator[SourceOracle]:
    server.clear()
    run(server, "CREATE DATABASE named", "CREATE TABLE named.t (id INT PRIMARY KEY, a INT)")
    run(server, "INSERT INTO named.t VALUES (1, 10), (2, 20), (3, 30)")
    return SourceOracle(server, tmp_path)


def test_a_view_is_no_table_and_its_name_can_be_one_later(oracle: SourceOracle) -> None:
    statements = (
        "CREATE VIEW v AS SELECT id FROM t",
        "CREATE TABLE IF NOT EXISTS v (x INT PRIMARY KEY)",
        "CREATE OR REPLACE VIEW v AS SELECT a FROM t",
        "RENAME TABLE v TO w",
        "CREATE TABLE IF NOT EXISTS w (x INT PRIMARY KEY)",
        "CREATE TABLE IF NOT EXISTS v (y INT PRIMARY KEY)",
        "INSERT INTO v VALUES (5)",
        "DROP VIEW w",
        "CREATE TABLE IF NOT EXISTS w (z INT PRIMARY KEY)",
        "INSERT INTO w VALUES (6)",
    )
    for statement in statements:
        run(oracle.server, statement, database="named")
        oracle.run()
        assert {} == oracle.stopped, statement
        assert {} == oracle.differences("named"), statement


def test_what_is_renamed_from_a_sequence_or_made_like_one_is_no_table(mariadb118: Server, tmp_path: Path) -> None:
    mariadb118.clear()
    run(mariadb118, "CREATE DATABASE named", "CREATE TABLE named.t (id INT PRIMARY KEY)")
    oracle = SourceOracle(mariadb118, tmp_path)
    for statement in (
        "CREATE SEQUENCE s",
        "ALTER TABLE s RENAME TO r",
        "INSERT INTO t VALUES (NEXT VALUE FOR r)",
        "CREATE TABLE s (id INT PRIMARY KEY)",
        "INSERT INTO s VALUES (5)",
        "CREATE TABLE q LIKE r",
        "INSERT INTO t VALUES (100 + NEXT VALUE FOR q)",
    ):
        run(mariadb118, statement, database="named")
        oracle.run()
        assert {} == oracle.stopped, statement
        assert {} == oracle.differences("named"), statement


def test_views_that_were_there_at_the_start_are_known(server: Server, tmp_path: Path) -> None:
    server.clear()
    run(
        server,
        "CREATE DATABASE named",
        "CREATE TABLE named.t (id INT PRIMARY KEY)",
        "CREATE VIEW named.v AS SELECT 1 AS x",
    )
    tracked = Tracked.of(server, tmp_path, "named")
    tracked.begin()
    run(server, "CREATE TABLE IF NOT EXISTS named.v (x INT)", "INSERT INTO named.t VALUES (1)")

    with tracked.tracker() as tracker:
        assert {"t": [("+A", {"id": 1})]} == tracked.news(tracker)
        assert TableName("named", "v") not in tracker.history.catalog.tables
        assert {} == tracked.stopped(tracker)


@pytest.mark.parametrize("end", ["new", "gho"])
def test_a_swap_by_hand_under_a_tools_names_does_not_go_on_wrong(server: Server, end: str, tmp_path: Path) -> None:
    server.clear()
    run(server, "CREATE DATABASE named", "CREATE TABLE named.t (id INT PRIMARY KEY, a INT)")
    tracked = Tracked.of(server, tmp_path, "named")
    tracked.begin()
    run(
        server,
        "INSERT INTO t VALUES (1, 10), (2, 20), (3, 30)",
        f"CREATE TABLE _t_{end} LIKE t",
        f"INSERT INTO _t_{end} SELECT * FROM t WHERE id >= 3",
        f"RENAME TABLE t TO _t_old, _t_{end} TO t",
        "INSERT INTO t VALUES (4, 40)",
        database="named",
    )

    with tracked.tracker() as tracker:
        assert 3 == len(tracked.news(tracker)["t"])
        assert "whose rows are not captured" in tracked.stopped(tracker)["t"]


def test_a_table_that_is_renamed_among_the_captured_ones_stops_unless_it_is_empty(
    server: Server, tmp_path: Path
) -> None:
    server.clear()
    run(server, "CREATE DATABASE named", "CREATE DATABASE stage", "CREATE TABLE named.x (id INT)")
    tracked = Tracked.of(server, tmp_path, "named")
    tracked.begin()
    for name in ("full", "empty"):
        run(server, f"CREATE TABLE stage.{name} (id INT PRIMARY KEY)")
    run(server, "INSERT INTO stage.full VALUES (1)")
    for name in ("full", "empty"):
        run(server, f"RENAME TABLE stage.{name} TO named.{name}", f"INSERT INTO named.{name} VALUES (2)")

    with tracked.tracker() as tracker:
        assert {"empty": [("+A", {"id": 2})]} == tracked.news(tracker)
        assert {"full"} == set(tracked.stopped(tracker))


@pytest.mark.parametrize("name", ["mysql8", "mariadb118"])
def test_a_table_that_was_filled_without_row_events_is_not_empty_when_it_is_renamed(
    name: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    server: Server = request.getfixturevalue(name)
    server.clear()
    run(server, "CREATE DATABASE named", "CREATE DATABASE stage", "CREATE TABLE named.x (id INT)")
    tracked = Tracked.of(server, tmp_path, "named")
    tracked.begin()
    run(
        server,
        "CREATE TABLE written (id INT PRIMARY KEY)",
        "CREATE TABLE swapped (id INT PRIMARY KEY)",
        "CREATE TABLE p (id INT PRIMARY KEY) PARTITION BY RANGE (id) (PARTITION p0 VALUES LESS THAN (9))",
        "INSERT INTO p VALUES (1)",
        "ALTER TABLE p EXCHANGE PARTITION p0 WITH TABLE swapped",
        "SET SESSION binlog_format = STATEMENT",
        "INSERT INTO written VALUES (1)",
        "RENAME TABLE written TO named.written, swapped TO named.swapped",
        database="stage",
    )

    with tracked.tracker() as tracker:
        assert {} == tracked.news(tracker)
        assert {"written", "swapped"} == set(tracked.stopped(tracker))


@pytest.mark.parametrize("statement", ["ALTER TABLE named.x ADD COLUMN b INT FIRST", "DROP TABLE named.x"])
def test_a_run_that_ends_sees_at_once_that_the_database_is_not_as_the_log_says(
    mysql9: Server, statement: str, tmp_path: Path
) -> None:
    mysql9.clear()
    run(mysql9, "CREATE DATABASE named", "CREATE TABLE named.x (id INT)")
    tracked = Tracked.of(mysql9, tmp_path, "named")
    tracked.begin()
    run(mysql9, "SET sql_log_bin = 0", statement)

    with tracked.tracker() as tracker:
        tracker.stop_at_present_end()
        assert {} == tracked.news(tracker)
        assert {} == tracked.stopped(tracker)
        tracker.confirm_head()
        assert {"x"} == set(tracked.stopped(tracker))


@pytest.mark.usefixtures("few_rows")
@pytest.mark.parametrize("kind", ["mysql9", "mariadb118"])
def test_a_database_called_historian_stands_beside_the_lakes_own_tables(
    kind: str, request: pytest.FixtureRequest, tmp_path: Path, spark: SparkSession
) -> None:
    """Its tables are called as the lake's own ones would be; the values that have no form go to the lake's table."""
    server: Server = request.getfixturevalue(kind)
    own = ("plans", "tables", "schema_changes", "repairs", "dead_letters")
    server.sql("CREATE DATABASE historian")
    try:
        for number, table in enumerate(own):
            server.sql(f"CREATE TABLE historian.{table} (id INT PRIMARY KEY, big BIGINT UNSIGNED)")
            server.sql(f"INSERT INTO historian.{table} VALUES (1, {number}), (2, 18446744073709551615)")
        replica = Replica(server, tmp_path / "replica", ["historian"])
        policies = "types: {bigint_unsigned: int64, columns: {'*.*': {int64_overflow: dead_letter}}}\n"
        replica.path.write_text(replica.path.read_text() + policies)
        assert {} == replica.run(spark)
        server.sql("UPDATE historian.dead_letters SET big = 7 WHERE id = 1")
        server.sql("DELETE FROM historian.plans WHERE id = 1")
        assert {} == replica.run(spark)

        tables = consistent(spark, str(replica.lake)).mirror
        found = {
            name: sorted(tuple(row) for row in tables[f"historian.{name}"].select("id", "big").collect())
            for name in own
        }
        expected = {
            name: [
                (key, None if big > 2**63 else big)
                for key, big in server.sql(f"SELECT id, big FROM historian.{name} ORDER BY id")
            ]
            for name in own
        }
        assert expected == found
        letters = spark.read.format("delta").load(f"{replica.lake}/historian_dead_letters").collect()
        assert sorted(f"historian.{name}" for name in own) == sorted({row.table for row in letters})
        assert {"18446744073709551615"} == {row.text for row in letters}
    finally:
        server.sql("DROP DATABASE historian")
