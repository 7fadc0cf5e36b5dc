"""Tables that stop where rows changed without row events come back by themselves, with what differs alone."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from connectors.cli import app
from connectors.config import load_config
from connectors.monitoring.observer import on_written
from connectors.pipeline.pipeline import Pipeline
from connectors.pipeline.run import run
from connectors.pipeline.source_rows import SourceRows
from connectors.tracking.tracker import Tracker
from databases.servers import Server
from historian.plans.plans import Plan
from historian.store import Store
from replicas.first_copies import copying_config
from replicas.plan_ends import assert_lake_is_what_a_server_holds
from replicas.replica_reading import Reading
from replicas.tracked import unlogged

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_GH_OST = (
    "create /* gh-ost */ table _t_ghc (id bigint primary key)",
    "create /* gh-ost */ table _t_gho like t",
    "alter /* gh-ost */ table _t_gho {alter}",
    "insert /* gh-ost */ ignore into _t_gho {copied} from t",
    "create /* gh-ost */ table _t_del (id int primary key)",
    "drop /* gh-ost */ table _t_del",
    "rename /* gh-ost */ table t to _t_del, _t_gho to t",
    "drop /* gh-ost */ table _t_ghc, _t_del",
    "INSERT INTO t (id, v, n) VALUES (500, 'x', 1)",
)
_CASES = {
    "statements": (
        "SET SESSION binlog_format = 'STATEMENT'",
        "UPDATE t SET v = 'stmt' WHERE id < 10",
        "DELETE FROM t WHERE id = 50",
        "SET SESSION binlog_format = 'ROW'",
        "INSERT INTO t VALUES (500, 'x', 1)",
    ),
    "rewritten": ("ALTER TABLE t MODIFY n SMALLINT", "UPDATE t SET n = 7 WHERE id = 3"),
    "rewritten twice": (
        "ALTER TABLE t MODIFY n BIGINT",
        "UPDATE t SET n = 8 WHERE id = 3",
        "ALTER TABLE t MODIFY n INT",
        "ALTER TABLE t MODIFY n SMALLINT",
        "UPDATE t SET n = 7 WHERE id = 3",
    ),
    "added and rewritten": (
        "ALTER TABLE t ADD COLUMN w INT DEFAULT 5",
        "UPDATE t SET w = NULL, n = NULL WHERE id = 3",
        "UPDATE t SET w = 7, n = NULL WHERE id = 4",
        "ALTER TABLE t MODIFY n SMALLINT",
        "UPDATE t SET n = 7 WHERE id = 5",
    ),
    "computed": ("ALTER TABLE t ADD COLUMN g INT AUTO_INCREMENT, ADD KEY (g)", "DELETE FROM t WHERE id = 4"),
    "not_null": (
        "SET SESSION sql_mode = ''",
        "UPDATE t SET n = NULL WHERE id = 9",
        "ALTER TABLE t MODIFY n INT NOT NULL",
        "UPDATE t SET v = 'behind' WHERE id = 9",
    ),
    "timestamp not null": (
        "ALTER TABLE t ADD at TIMESTAMP NULL",
        "UPDATE t SET at = '2020-02-03 04:05:06' WHERE id > 20",
        "SET SESSION sql_mode = ''",
        "ALTER TABLE t MODIFY at TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP",
        "UPDATE t SET v = 'behind' WHERE id = 30",
    ),
    "generated": (
        "ALTER TABLE t ADD g INT GENERATED ALWAYS AS (n * 2) STORED, ADD h VARCHAR(30) GENERATED ALWAYS AS (CONCAT(v, '!')) VIRTUAL",
        "UPDATE t SET n = 7 WHERE id = 3",
    ),
    "generated otherwise": (
        "ALTER TABLE t ADD g INT GENERATED ALWAYS AS (n * 2) STORED",
        "UPDATE t SET n = 7 WHERE id = 3",
        "ALTER TABLE t MODIFY g BIGINT GENERATED ALWAYS AS (n + 1) STORED",
        "ALTER TABLE t MODIFY g BIGINT NULL",
        "UPDATE t SET n = 8 WHERE id = 4",
    ),
    "load data": (
        "SET SESSION binlog_format = 'STATEMENT'",
        "LOAD DATA INFILE '{file}' REPLACE INTO TABLE t (id, v)",
        "SET SESSION binlog_format = 'ROW'",
        "UPDATE t SET n = 8 WHERE id = 99",
    ),
    "insert select": (
        "SET SESSION binlog_format = 'STATEMENT'",
        "INSERT INTO t SELECT id + 1000, v, n FROM t LIMIT 7",
        "REPLACE INTO t SELECT id + 50, v, n FROM t LIMIT 7",
        "SET SESSION binlog_format = 'ROW'",
    ),
    "exchange": (
        (
            "CREATE TABLE p (id INT PRIMARY KEY, v VARCHAR(20), n INT) PARTITION BY RANGE (id) "
            "(PARTITION a VALUES LESS THAN (1000), PARTITION b VALUES LESS THAN MAXVALUE)"
        ),
        "INSERT INTO p VALUES (1, 'of p', 1), (2, 'of p', 2), (2000, 'of p', 3)",
        "ALTER TABLE p EXCHANGE PARTITION a WITH TABLE t",
        "UPDATE t SET v = 'behind' WHERE id = 1",
    ),
    "gh-ost to not null": tuple(
        statement.format(alter="MODIFY n INT NOT NULL", copied="select id, v, if(id = 9, NULL, n)")
        for statement in ("UPDATE t SET n = NULL WHERE id < 9", *_GH_OST)
    ),
    "gh-ost with other values": tuple(
        statement.format(alter="ADD w INT NOT NULL DEFAULT 7", copied="select id, v, n, n + 1") for statement in _GH_OST
    ),
}
_OF_MARIADB = {
    "alter ignore": (
        "UPDATE t SET n = NULL WHERE id < 9",
        "ALTER IGNORE TABLE t MODIFY n INT NOT NULL",
        "UPDATE t SET v = 'behind' WHERE id = 9",
    ),
    "duplicates": (
        "UPDATE t SET v = 'same' WHERE id BETWEEN 10 AND 19",
        "ALTER IGNORE TABLE t ADD UNIQUE KEY (v)",
        "UPDATE t SET v = 'behind' WHERE id = 9",
    ),
}


@pytest.mark.parametrize("kind", ["mysql8", "mariadb1011"])
def test_tables_come_back(request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path, kind: str) -> None:
    """Each case has a database of its own."""
    server: Server = request.getfixturevalue(kind)
    cases = _CASES | (_OF_MARIADB if server.flavor == "mariadb" else {})
    file = tmp_path / "rows.txt"
    file.write_text("5\tloaded\n700\tloaded\n")
    file.chmod(0o644)
    names = {case: f"c_{case.replace(' ', '_').replace('-', '_')}" for case in cases}
    with _replicated(server, tmp_path, *names.values()) as lake:
        _run(lake, spark)
        for case, statements in cases.items():
            _execute(server, names[case], *(statement.replace("{file}", str(file)) for statement in statements))
        assert {} == _run(lake, spark)
        repaired = spark.read.format("delta").load(f"{lake.parent}/lake/historian_repairs").select("table").collect()
        assert {f"{name}.t" for name in names.values()} == {row.table for row in repaired} - {f"{names['exchange']}.p"}
        for name in names.values():
            # Rows that no case has to do with: what a repair made of the others stays to be compared.
            server.sql(f"DELETE FROM {name}.t WHERE id = 60")
            server.sql(f"INSERT INTO {name}.t (id, v, n) VALUES (800, 'later', 1)")
        assert {} == _run(lake, spark)
        assert _compare(server, lake, spark)
        assert len(repaired) == spark.read.format("delta").load(f"{lake.parent}/lake/historian_repairs").count()


@pytest.mark.soak
def test_targets_by_spark_keep_what_a_column_got_before_their_table_stopped(
    mysql8: Server, spark: SparkSession, tmp_path: Path
) -> None:
    case = "added and rewritten"
    with _replicated(mysql8, tmp_path) as lake:
        lake.write_text(lake.read_text().replace('/lake", history', '/lake", writer: spark, history'))
        assert "writer: spark" in lake.read_text()
        _run(lake, spark)
        _execute(mysql8, "c", *_CASES[case])
        assert {} == _run(lake, spark)
        assert _compare(mysql8, lake, spark)


@pytest.mark.parametrize("key", ["PRIMARY KEY", ""])
def test_a_table_that_its_sink_stops_in_its_first_plan_comes_back(
    mysql8: Server, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    """What its targets have is of that plan: rows from before the statement. It may be the first plan of all."""
    begin = Tracker.stop_at_present_end
    names: list[str] = []

    def begin_behind(tracker: Tracker) -> None:
        for name in names:
            mysql8.sql(f"CREATE TABLE c.{name} (id INT NOT NULL {key}, n MEDIUMINT)")
            mysql8.sql(f"INSERT INTO c.{name} VALUES (1, 1), (2, 70000), (3, NULL)")
            mysql8.sql(f"UPDATE c.{name} SET n = 7 WHERE id = 2")
            mysql8.sql(f"ALTER TABLE c.{name} MODIFY n TINYINT")
            mysql8.sql(f"ALTER TABLE c.{name} ADD w INT DEFAULT 4 FIRST")
        begin(tracker)

    monkeypatch.setattr(Tracker, "stop_at_present_end", begin_behind)
    with _replicated(mysql8, tmp_path) as lake:
        for name in ("first", "later"):
            names.append(name)
            assert {} == _run(lake, spark)
            mysql8.sql(f"UPDATE c.{names.pop()} SET w = 7 WHERE id = 2")
            assert {} == _run(lake, spark)
            assert _compare(mysql8, lake, spark)


def test_a_table_whose_key_changes_amid_its_first_copy_comes_back(
    mysql8: Server, spark: SparkSession, tmp_path: Path
) -> None:
    stopping = threading.Event()
    with _replicated(mysql8, tmp_path) as lake:
        lake.write_text(lake.read_text().replace("backfill: {}", "backfill: {chunk_rows: 20, connections: 1}"))

        def report(plan: Plan, _: object) -> None:
            if any(table.copy is not None and table.copy.upto is not None for table in plan.tables):
                stopping.set()

        with Pipeline.opened(load_config(lake), spark, on_written(report)) as pipeline:
            pipeline.run(once=False, until=None, stopping=stopping)
        _execute(mysql8, "c", "DELETE FROM t WHERE id = 2", "ALTER TABLE t DROP PRIMARY KEY, ADD PRIMARY KEY (v)")
        _execute(mysql8, "c", "UPDATE t SET n = 7 WHERE id = 3", "DELETE FROM t WHERE id = 98")
        assert {} == _run(lake, spark)
        assert _compare(mysql8, lake, spark)
        assert {} == _run(lake, spark)
        assert _compare(mysql8, lake, spark)


def test_a_table_comes_back_whose_rows_change_through_a_merge_table(
    mysql8: Server, spark: SparkSession, tmp_path: Path
) -> None:
    with _replicated(mysql8, tmp_path) as lake:
        _execute(mysql8, "c", "ALTER TABLE t ENGINE=MyISAM", "CREATE DATABASE other")
        merge = "CREATE TABLE other.m (id INT NOT NULL, v VARCHAR(20), n INT, KEY (id)) UNION=(c.t) ENGINE=MRG_MyISAM"
        _execute(mysql8, "c", merge)
        _run(lake, spark)
        for number in range(2):
            _execute(mysql8, "c", f"UPDATE other.m SET n = {number} WHERE id < 9")
            assert {} == _run(lake, spark)
            assert _compare(mysql8, lake, spark)


_UNSEEN = {
    "statement": ("SET SESSION binlog_format = 'STATEMENT'", "UPDATE t SET v = 'stmt' WHERE id < 10"),
    "rewritten": ("ALTER TABLE t MODIFY n SMALLINT", "UPDATE t SET n = 7 WHERE id = 3"),
    "both": (
        "ALTER TABLE t MODIFY n SMALLINT",
        "SET SESSION binlog_format = 'STATEMENT'",
        "UPDATE t SET v = 'stmt' WHERE id < 10",
    ),
}


@pytest.mark.parametrize("comes_again", [False, True])
def test_a_stopped_table_that_is_dropped_has_no_rows(
    mysql8: Server, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, comes_again: bool
) -> None:
    """Dropped behind its stop in one plan, or in a later one; some begin in the log."""
    names = {f"c_{case}": statements for case, statements in _UNSEEN.items()}
    create = ("CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(20), n INT)", "INSERT INTO t VALUES (1, 'new', 1)")
    with _replicated(mysql8, tmp_path, *names) as lake:
        _run(lake, spark)
        for is_later in (False, True, False):
            for name, statements in names.items():
                _execute(mysql8, name, *statements)
            if is_later:
                with monkeypatch.context() as patch:
                    patch.setattr(SourceRows, "repaired", lambda *_: None)
                    _run(lake, spark)
            for name in names:
                _execute(mysql8, name, "DROP TABLE t", *(create if comes_again or not is_later else ()))
            assert {} == _run(lake, spark)
            assert (comes_again or not is_later) == _compare(mysql8, lake, spark)
            if is_later and not comes_again:
                for name in names:
                    _execute(mysql8, name, *create)


def test_rows_that_a_new_foreign_key_takes_go(mysql8: Server, spark: SparkSession, tmp_path: Path) -> None:
    with _replicated(mysql8, tmp_path) as lake:
        _run(lake, spark)
        mysql8.sql("CREATE TABLE c.p (id INT PRIMARY KEY)")
        mysql8.sql("INSERT INTO c.p SELECT id FROM c.t")
        mysql8.sql("ALTER TABLE c.t ADD FOREIGN KEY (id) REFERENCES c.p (id) ON DELETE CASCADE")
        mysql8.sql("DELETE FROM c.p WHERE id < 5")

        assert {} == _run(lake, spark)
        assert _compare(mysql8, lake, spark)


def test_a_healed_table_is_compared_with_the_source_where_that_is_asked_for(
    mysql8: Server, spark: SparkSession, tmp_path: Path
) -> None:
    with _replicated(mysql8, tmp_path) as lake:
        _run(lake, spark)
        unlogged(mysql8, "ALTER TABLE c.t ADD COLUMN w INT DEFAULT 7 FIRST", "UPDATE c.t SET v = 'unseen' WHERE id = 5")
        mysql8.sql("INSERT INTO c.t (id, v) VALUES (300, 'seen')")
        run(load_config(lake), once=True, spark=spark)
        mysql8.sql("DELETE FROM c.t WHERE id = 6")

        done = CliRunner().invoke(app, ["heal", str(lake), "--table", "c.t", "--repair"])
        assert 0 == done.exit_code, done.output
        assert "the next run gives its targets what differs" in done.output
        assert {} == _run(lake, spark)
        assert _compare(mysql8, lake, spark)


@contextmanager
def _replicated(server: Server, directory: Path, *names: str) -> Iterator[Path]:
    """The configuration of a connector of the table ``t`` in databases of those names, or in one."""
    server.clear()
    for name in names or ("c",):
        server.sql(f"CREATE DATABASE {name}")
        server.sql(f"CREATE TABLE {name}.t (id INT PRIMARY KEY, v VARCHAR(20), n INT)")
        with server.connect() as connection, connection.cursor() as cursor:
            rows = [(i, f"v{i}", i * 3) for i in range(100)]
            cursor.executemany(f"INSERT INTO {name}.t (id, v, n) VALUES (%s, %s, %s)", rows)
            connection.commit()
    path = copying_config(server, directory)
    history = '/lake", history: "{database}_{table}_history"}'
    path.write_text(path.read_text().replace('/lake"}', history).replace('"c.*"', '"c*.*"'))
    yield path


def _run(path: Path, spark: SparkSession) -> dict[str, str]:
    return dict(run(load_config(path), once=True, spark=spark))


def _execute(server: Server, database: str, *statements: str) -> None:
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute(f"USE {database}")
        for statement in statements:
            cursor.execute(statement)
        connection.commit()


def _compare(server: Server, path: Path, spark: SparkSession) -> bool:
    """Fails unless folded changelog, mirror and present history are the source's rows; gives whether there are some."""
    store = Store.open(load_config(path).history.store)
    try:
        assert () == store.stopped()
        reading = Reading(path.parent / "lake", store.history(), spark)
    finally:
        store.close()
    return assert_lake_is_what_a_server_holds(server, reading, "^c") > 0
