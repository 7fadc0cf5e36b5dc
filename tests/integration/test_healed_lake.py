"""What the commands and tools mean for a lake: targets go on, lack what they are said to lack, and equal the source."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

from connectors.cli import app
from connectors.pipeline.opening import make_sinks
from databases.online_tools import gh_ost, pt_osc
from databases.servers import Server
from historian.store import Store
from replicas.replica import Replica
from replicas.tracked import unlogged

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Rows = list[tuple[Any, ...]]


def _lake(spark: SparkSession, replica: Replica, directory: str, *columns: str) -> Rows:
    table = spark.read.format("delta").load(str(replica.lake / directory))
    table = table.select(*columns) if columns else table
    return sorted(tuple(row) for row in table.collect())


def _source(server: Server, table: str) -> Rows:
    return sorted(server.sql(f"SELECT * FROM {table}"))


def _historian(replica: Replica, command: str, *options: str) -> str:
    result = CliRunner().invoke(app, [command, str(replica.path), *options])
    assert result.exit_code == 0, result.output
    return result.output


def test_a_healed_table_lacks_what_it_is_said_to_lack_and_one_that_was_explained_lacks_nothing(
    mysql9: Server, spark: SparkSession, tmp_path: Path
) -> None:
    replica = Replica(mysql9, tmp_path, ["mend"])
    mysql9.sql("CREATE DATABASE mend")
    for table in ("t", "s"):
        mysql9.sql(f"CREATE TABLE mend.{table} (id INT PRIMARY KEY, a INT)")
        mysql9.sql(f"INSERT INTO mend.{table} VALUES (1, 10), (2, 20)")
        unlogged(mysql9, f"ALTER TABLE mend.{table} ADD hidden INT AFTER id")
        mysql9.sql(f"UPDATE mend.{table} SET a = 11 WHERE id = 1")
        mysql9.sql(f"INSERT INTO mend.{table} VALUES (3, 3, 30)")
    replica.run(spark)

    said = _historian(
        replica, "ddl-override", "--table", "mend.s", "--statement", "ALTER TABLE s ADD hidden INT AFTER id"
    )
    assert "mend.s goes on behind" in said
    said = _historian(replica, "heal", "--table", "mend.t")
    assert "mend.t goes on from" in said
    assert "not known: its schema and rows behind" in said
    for table in ("t", "s"):
        mysql9.sql(f"UPDATE mend.{table} SET a = 31 WHERE id = 3")
        mysql9.sql(f"DELETE FROM mend.{table} WHERE id = 2")
    stopped = replica.run(spark)

    assert _lake(spark, replica, "mend_s") == _source(mysql9, "mend.s") == [(1, None, 11), (3, 3, 31)]
    assert set(stopped) == {"mend.t"}
    assert "the mirror stands as it was; it lacks what changed behind" in stopped["mend.t"]
    assert _lake(spark, replica, "mend_t") == [(1, 10), (2, 20)]
    changes = _lake(spark, replica, "changes_mend_t", "offset", "op", "id", "hidden", "a")
    assert changes == [
        (0, 0, 1, None, 10),
        (1, 0, 2, None, 20),
        (2, 2, 3, 3, 30),
        (3, 3, 3, 3, 31),
        (4, 1, 2, None, 20),
    ]
    (sink,) = make_sinks(replica.config, spark)
    table_status = {status.target: status.stopped for status in sink.status()}
    assert "it lacks what changed" in (table_status.pop("mend_t") or "")
    assert table_status == {"mend_s": None, "changes_mend_s": None, "changes_mend_t": None}

    (tmp_path / "store.db").unlink()
    mysql9.sql("INSERT INTO mend.t VALUES (4, 4, 40)")
    mysql9.sql("TRUNCATE mend.t")
    replica.run(spark)
    store = Store.open(replica.config.history.store)
    assert store.stopped() == ()
    store.close()
    assert [row[1:] for row in _lake(spark, replica, "changes_mend_t", "offset", "op", "id", "a")[5:]] == [
        (0, 4, 40),
        (1, 1, 10),
        (1, 3, 31),
        (1, 4, 40),
    ], "what the changelog amounts to is taken back, the mirror being no measure of it"


@pytest.mark.parametrize("kind,runs", [("mysql9", 2), ("mariadb118", 1)])
def test_online_schema_changes_edit_the_targets_of_one_table(
    kind: str, runs: int, request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path
) -> None:
    source: Server = request.getfixturevalue(kind)
    replica = Replica(source, tmp_path, ["swapped"])
    source.sql("CREATE DATABASE swapped")
    source.sql("CREATE TABLE swapped.t (id INT PRIMARY KEY, a INT NOT NULL, b VARCHAR(20))")
    source.sql("INSERT INTO swapped.t VALUES (1, 1, 'x'), (2, 2, 'y'), (3, 3, 'z')")

    def writing(statement: str) -> Callable[[], None]:
        return lambda: (source.sql(statement), None)[1]

    gh_ost(source, "swapped", "t", "ADD given_up INT", abort_before="cut-over")
    writes = writing("UPDATE swapped.t SET a = 20 WHERE id = 2")
    gh_ost(
        source,
        "swapped",
        "t",
        "ADD c VARCHAR(9) NOT NULL DEFAULT 'new' AFTER id, MODIFY a BIGINT NOT NULL",
        writes=writes,
    )
    source.sql("DELETE FROM swapped.t WHERE id = 3")
    if runs == 2:
        assert replica.run(spark) == {}
        assert _lake(spark, replica, "swapped_t") == _source(source, "swapped.t")
    writes = writing("INSERT INTO swapped.t (id, a, b) VALUES (4, 4, 'w')")
    pt_osc(source, "swapped", "t", "DROP b, ADD d INT DEFAULT 4", writes=writes)
    gh_ost(source, "swapped", "t", "ADD b VARCHAR(5) FIRST", two_step=True)
    source.sql("UPDATE swapped.t SET b = 'back' WHERE id = 1")
    assert replica.run(spark) == {}

    columns = [row[0] for row in source.sql("SHOW COLUMNS FROM swapped.t")]
    mirror = spark.read.format("delta").load(str(replica.lake / "swapped_t"))
    assert mirror.columns == columns == ["b", "id", "c", "a", "d"]
    assert sorted(map(tuple, mirror.collect()), key=repr) == sorted(source.sql("SELECT * FROM swapped.t"), key=repr)
    locations = spark.read.format("delta").load(str(replica.lake / "historian_tables")).collect()
    assert [(location.name, location.stopped, location.quarantined, location.dropped) for location in locations] == [
        ("swapped.t", "", "", 0)
    ]
    assert sorted(map(repr, (tuple(row.values()) for row in replica.folded(locations[0].table_id, spark)))) == sorted(
        map(repr, source.sql("SELECT * FROM swapped.t"))
    )
    ops = [row[0] for row in _lake(spark, replica, "changes_swapped_t", "op")]
    assert [ops.count(op) for op in range(4)] == [4, 1, 2, 2], "only what people did"
