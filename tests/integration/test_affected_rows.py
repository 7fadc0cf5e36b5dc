"""Of the children of foreign keys that a server does not log, only the rows concerned are compared."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from connectors.backfill import affected, rows_of_keys
from connectors.backfill.changes import changes_behind
from connectors.backfill.copying_again import copy_again
from connectors.backfill.foreign_keys import referenced
from connectors.backfill.snapshots import snapshot_behind
from connectors.backfill.spool import Spool, chunk_of
from connectors.config import CopyLimits, load_config
from connectors.pipeline.run import run
from connectors.recovery.repairing_rows import repair_rows
from databases.servers import Server
from historian.errors import SourceError
from historian.names import TableName
from logs.binlog_lab import address
from replicas.copying_oracle import CopyingOracle
from replicas.first_copies import copying_config

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_a_delete_of_a_parent_reads_its_children_alone(mysql8: Server, spark: SparkSession, tmp_path: Path) -> None:
    server = mysql8
    server.clear()
    server.sql("CREATE DATABASE c")
    server.sql("CREATE TABLE c.p (id INT PRIMARY KEY)")
    server.sql(
        "CREATE TABLE c.child (id INT PRIMARY KEY, p INT, v INT, FOREIGN KEY (p) REFERENCES c.p (id) ON DELETE CASCADE)"
    )
    server.sql("INSERT INTO c.p VALUES (1), (2), (3), (4)")
    for parent in (1, 2, 3, 4):
        values = ", ".join(f"({parent * 100 + i}, {parent}, 0)" for i in range(50))
        server.sql(f"INSERT INTO c.child VALUES {values}")
    path = copying_config(server, tmp_path)
    assert {} == run(load_config(path), once=True, spark=spark)

    server.sql("UPDATE c.child SET v = 1 WHERE id = 101")
    server.sql("UPDATE c.child SET v = 2 WHERE id = 201")
    server.sql("DELETE FROM c.p WHERE id = 2")
    assert {} == run(load_config(path), once=True, spark=spark)

    mirror = spark.read.format("delta").load(f"{tmp_path}/lake/c_child").select("id", "p", "v").collect()
    assert sorted(server.sql("SELECT id, p, v FROM c.child")) == sorted(map(tuple, mirror))
    (repair,) = spark.read.format("delta").load(f"{tmp_path}/lake/historian_repairs").collect()
    assert (1, 50, 1) == (repair.rows_read, repair.retracted, repair.corrected)


def test_children_whose_columns_are_masked_or_filtered_follow_too(
    mysql8: Server, spark: SparkSession, tmp_path: Path
) -> None:
    """Values do not tell rows there, so all of the child are compared."""
    server = mysql8
    server.clear()
    server.sql("CREATE DATABASE c")
    server.sql("CREATE TABLE c.p (id INT PRIMARY KEY)")
    for child in ("masked", "filtered", "hashed"):
        server.sql(
            f"CREATE TABLE c.{child} (id INT PRIMARY KEY, p INT, v INT, FOREIGN KEY (p) REFERENCES c.p (id) ON DELETE CASCADE)"
        )
    server.sql("INSERT INTO c.p VALUES (1), (2)")
    path = copying_config(server, tmp_path)
    rules = '{c.masked: {mask: {p: 0}}, c.filtered: {where: "v > 0"}, c.hashed: {hash: {p: {salt: s}}}}'
    path.write_text(path.read_text().replace('lake"}', f'lake", tables: {rules}}}'))
    for child in ("masked", "filtered", "hashed"):
        server.sql(f"INSERT INTO c.{child} VALUES (1, 1, 0), (2, 1, 1), (3, 2, 0), (4, 2, 1)")
    assert {} == run(load_config(path), once=True, spark=spark)

    server.sql("UPDATE c.masked SET v = 5 WHERE id = 4")
    server.sql("DELETE FROM c.p WHERE id = 1")
    assert {} == run(load_config(path), once=True, spark=spark)

    lake = {
        child: spark.read.format("delta").load(f"{tmp_path}/lake/c_{child}")
        for child in ("masked", "filtered", "hashed")
    }
    held = {child: sorted((row.id, row.v) for row in rows.collect()) for child, rows in lake.items()}
    assert held == {"masked": [(3, 0), (4, 5)], "filtered": [(4, 1)], "hashed": [(3, 0), (4, 1)]}


_MOVING = (
    "CREATE TABLE c.p (id INT PRIMARY KEY)",
    "CREATE TABLE c.child (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES c.p (id) ON DELETE CASCADE ON UPDATE CASCADE)",
    "INSERT INTO c.p VALUES (1), (2), (3), (4), (5), (6)",
    "INSERT INTO c.child VALUES (11, 1), (12, 1), (21, 2), (31, 3), (41, 4), (51, 5), (61, 6), (71, NULL)",
)


@pytest.mark.parametrize("kind", ["mysql57", "mysql8", "mariadb118"])
def test_rows_that_move_before_they_are_read_neither_come_twice_nor_go(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    server: Server = request.getfixturevalue(kind)
    oracle = _begun(server, tmp_path, *_MOVING)
    server.sql("UPDATE c.p SET id = 10 WHERE id = 1")
    server.sql("DELETE FROM c.p WHERE id = 2")
    _before_the_select(
        monkeypatch,
        lambda: server.sql("UPDATE c.p SET id = 1 WHERE id = 3"),  # 31 comes among the rows that are read
        lambda: server.sql("UPDATE c.p SET id = 20 WHERE id = 10"),  # 11 and 12 leave them
        lambda: server.sql("DELETE FROM c.p WHERE id = 4"),  # 41 goes, one plan early
        lambda: server.sql("UPDATE c.child SET p = 20 WHERE id = 51"),  # the log tells of these two
        lambda: server.sql("UPDATE c.child SET p = 6 WHERE id = 12"),
    )
    oracle.run(plans=1)

    held = {row["id"]: row["p"] for row in oracle.mirror.rows(TableName("c", "child")).to_pylist()}
    assert {11: 20, 12: 20, 31: 1, 51: 5, 61: 6, 71: None} == held
    assert 1 == oracle.repaired_partly
    oracle.run()
    assert {} == oracle.differences("c")
    assert 2 == oracle.repaired_partly == oracle.repaired


_WHOLE: dict[str, tuple[Sequence[str], Sequence[str]]] = {
    "texts": (
        (
            "CREATE TABLE c.p (id VARCHAR(5) PRIMARY KEY)",
            "CREATE TABLE c.child (id INT PRIMARY KEY, p VARCHAR(5), FOREIGN KEY (p) REFERENCES c.p (id) ON DELETE CASCADE)",
            "INSERT INTO c.p VALUES ('1'), ('2')",
            "INSERT INTO c.child VALUES (1, '1'), (2, '2')",
        ),
        ("DELETE FROM c.p WHERE id = '1'",),
    ),
    "itself": (
        (
            "CREATE TABLE c.tree (id INT PRIMARY KEY, up INT, FOREIGN KEY (up) REFERENCES c.tree (id) ON DELETE CASCADE)",
            "INSERT INTO c.tree VALUES (1, NULL), (2, 1), (3, 2), (4, NULL)",
        ),
        ("DELETE FROM c.tree WHERE id = 1",),
    ),
    "too many": (_MOVING, ("DELETE FROM c.p WHERE id IN (1, 2, 3)", "DELETE FROM c.child")),
    "a statement": (_MOVING, ("DELETE FROM c.p WHERE id = 1", "ALTER TABLE c.child ADD COLUMN v INT")),
    "another parent of that name": (
        _MOVING,
        (
            "DELETE FROM c.p WHERE id = 1",
            "SET foreign_key_checks = 0",
            "DROP TABLE c.p",
            "CREATE TABLE c.p (id INT PRIMARY KEY)",
        ),
    ),
    "a part of the image": (
        (
            "CREATE DATABASE x",
            "CREATE TABLE x.p (k INT PRIMARY KEY, id INT NOT NULL UNIQUE)",
            "CREATE TABLE c.child (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES x.p (id) ON DELETE CASCADE)",
            "INSERT INTO x.p VALUES (1, 11), (2, 12)",
            "INSERT INTO c.child VALUES (1, 11), (2, 12)",
        ),
        ("SET binlog_row_image = 'MINIMAL'", "DELETE FROM x.p WHERE k = 1"),
    ),
    "NULL": (
        (
            "CREATE TABLE c.p (k INT PRIMARY KEY, id INT UNIQUE)",
            "CREATE TABLE c.child (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES c.p (id) ON UPDATE CASCADE)",
            "INSERT INTO c.p VALUES (1, 11), (2, 12)",
            "INSERT INTO c.child VALUES (1, 11), (2, 12)",
        ),
        ("UPDATE c.p SET id = NULL WHERE k = 1",),
    ),
    "no key": (
        (
            "CREATE TABLE c.p (id INT PRIMARY KEY)",
            "CREATE TABLE c.child (id INT, p INT, FOREIGN KEY (p) REFERENCES c.p (id) ON DELETE CASCADE)",
            "INSERT INTO c.p VALUES (1), (2)",
            "INSERT INTO c.child VALUES (1, 1), (1, 1), (2, 2)",
        ),
        ("DELETE FROM c.p WHERE id = 1",),
    ),
}


@pytest.mark.parametrize("case", _WHOLE)
def test_all_rows_are_compared_where_values_do_not_tell_which(
    mysql8: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: str
) -> None:
    tables, changes = _WHOLE[case]
    oracle = _begun(mysql8, tmp_path, *tables)
    if case == "too many":
        monkeypatch.setattr(affected, "MOST_VALUES", 6)
    with mysql8.connect() as connection, connection.cursor() as cursor:
        for statement in changes:
            cursor.execute(statement)
        connection.commit()
    oracle.run()

    assert {} == oracle.differences("c")
    assert (1, 0) == (oracle.repaired, oracle.repaired_partly)


def test_a_column_of_a_parent_with_another_name_is_not_taken_for_one_that_has_its_name(
    mysql8: Server, tmp_path: Path
) -> None:
    oracle = _begun(mysql8, tmp_path, *_MOVING)
    mysql8.sql("ALTER TABLE c.p RENAME COLUMN id TO other")
    mysql8.sql("ALTER TABLE c.p ADD COLUMN id INT NOT NULL DEFAULT 6")
    oracle.run()
    mysql8.sql("DELETE FROM c.p WHERE other = 1")
    oracle.run()

    assert {} == oracle.differences("c")
    assert (1, 0) == (oracle.repaired, oracle.repaired_partly)


def test_a_value_that_changes_in_a_column_with_another_name_by_now_counts(mysql8: Server, tmp_path: Path) -> None:
    oracle = _begun(
        mysql8, tmp_path, *(statement.replace("PRIMARY KEY)", "UNIQUE)", 1) for statement in _MOVING[:1]), *_MOVING[1:]
    )
    mysql8.sql("ALTER TABLE c.p RENAME COLUMN id TO other")
    oracle.run()
    mysql8.sql("UPDATE c.p SET other = 10 WHERE other = 1")
    oracle.run()

    assert {} == oracle.differences("c")
    assert (1, 0) == (oracle.repaired, oracle.repaired_partly)


def test_a_foreign_key_that_has_lost_its_action_by_now_counts_as_it_was(
    mysql8: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server says what it does now; what it did then is in the history."""
    oracle = _begun(mysql8, tmp_path, *_MOVING)
    mysql8.sql("DELETE FROM c.p WHERE id = 1")
    asks = affected.child_keys

    def altered(*arguments: Any) -> Any:
        monkeypatch.setattr(affected, "child_keys", asks)
        mysql8.sql("ALTER TABLE c.child DROP FOREIGN KEY child_ibfk_1, ADD FOREIGN KEY (p) REFERENCES c.p (id)")
        return asks(*arguments)

    monkeypatch.setattr(affected, "child_keys", altered)
    oracle.run(plans=1)

    assert [TableName("c", "child")] == [*oracle.stopped]
    assert 0 == oracle.repaired_partly


def test_more_values_than_a_parent_may_lose_are_not_gathered(
    mysql8: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    oracle = _begun(mysql8, tmp_path, *_MOVING)
    monkeypatch.setattr(referenced, "MOST_VALUES", 2)
    mysql8.sql("DELETE FROM c.p WHERE id IN (1, 2)")
    oracle.run()
    assert (1, 1) == (oracle.repaired, oracle.repaired_partly)
    mysql8.sql("DELETE FROM c.p WHERE id IN (3, 4, 5)")
    oracle.run()
    assert (2, 1) == (oracle.repaired, oracle.repaired_partly)
    assert {} == oracle.differences("c")


def test_nothing_is_compared_where_no_row_of_a_child_can_have_changed(mysql8: Server, tmp_path: Path) -> None:
    oracle = _begun(
        mysql8,
        tmp_path,
        "CREATE TABLE c.p (id INT PRIMARY KEY)",
        "CREATE TABLE c.child (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES c.p (id) ON UPDATE CASCADE)",
        "INSERT INTO c.p VALUES (1), (2)",
        "INSERT INTO c.child VALUES (2, 2)",
    )
    mysql8.sql("DELETE FROM c.p WHERE id = 1")
    mysql8.sql("INSERT INTO c.child VALUES (3, 2)")
    oracle.run()

    assert {} == oracle.differences("c")
    assert 0 == oracle.repaired


def test_rows_that_were_lost_with_the_store_are_read_again_if_they_are_the_same(mysql8: Server, tmp_path: Path) -> None:
    oracle = _begun(mysql8, tmp_path, *_MOVING)
    mysql8.sql("UPDATE c.p SET id = 10 WHERE id = 1")
    mysql8.sql("UPDATE c.child SET p = 5 WHERE id = 61")
    oracle.run()
    mysql8.sql("INSERT INTO c.child VALUES (81, 10)")
    with oracle._tracker() as tracker:
        plan = tracker.stored(oracle.number)
        stored = [chunk_of(body).rows for body in tracker.store.copied_chunks(plan.number)]
        with closing(Spool()) as spool:
            copy_again(tracker, address(mysql8), plan, spool)
            again = [chunk_of(body).rows for body in spool]
    assert stored == again
    assert 3 == sum(rows.num_rows for rows in again)
    mysql8.sql("UPDATE c.p SET id = 1 WHERE id = 3")
    with (
        oracle._tracker() as tracker,
        closing(Spool()) as spool,
        pytest.raises(SourceError, match="lost with the store"),
    ):
        copy_again(tracker, address(mysql8), plan, spool)


def _begun(server: Server, directory: Path, *statements: str) -> CopyingOracle:
    """A connector that has copied the database ``c`` as *statements* make it."""
    server.clear()
    server.sql("CREATE DATABASE c")
    for statement in statements:
        server.sql(statement)
    oracle = CopyingOracle(server, directory, CopyLimits(), "c")
    oracle.run()
    return oracle


def _before_the_select(monkeypatch: pytest.MonkeyPatch, *steps: Callable[[], object]) -> None:
    """Lets *steps* happen once, behind a plan's end and before its rows are read."""
    left = list(steps)

    def snapshot(*args: Any, **kwargs: Any) -> Any:
        while left:
            left.pop(0)()
        return snapshot_behind(*args, **kwargs)

    monkeypatch.setattr(affected, "snapshot_behind", snapshot)


@pytest.mark.parametrize("kind", ["mysql8", "mariadb118"])
@pytest.mark.parametrize("owner", [affected, rows_of_keys], ids=["foreign key", "keys"])
def test_a_table_keeps_its_name_until_its_rows_are_read(
    kind: str, owner: Any, request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An old snapshot shows the rows of the table that has the name by now, and the log was read before."""
    server: Server = request.getfixturevalue(kind)
    other = ("CREATE TABLE c.other (id INT PRIMARY KEY, p INT)", "INSERT INTO c.other VALUES (11, 7), (99, 1)")
    oracle = _begun(server, tmp_path, *_MOVING, *other)
    swap = "RENAME TABLE c.child TO c.old, c.other TO c.child"
    swapping = threading.Thread(target=server.sql, args=(swap,))

    def changes(*args: Any, **kwargs: Any) -> Any:
        found = changes_behind(*args, **kwargs)
        swapping.start()
        swapping.join(1)
        return found

    with monkeypatch.context() as patch:
        patch.setattr(owner, "changes_behind", changes)
        if owner is affected:
            server.sql("DELETE FROM c.p WHERE id = 1")
            oracle.run(plans=1)
        else:
            with oracle._tracker() as tracker:
                tables = tracker.history.catalog_at(tracker.history.last_number).tables
                table_id = tables[TableName("c", "child")].table_id
                repair_rows(tracker, address(server), table_id, "", "id < 30")
    swapping.join()
    oracle.run()
    assert {} == oracle.stopped
    # Rows that are compared come once more here, where no sink compares them.
    assert set(server.sql("SELECT id, p FROM c.old")) == set(oracle.rows_of(TableName("c", "old")))
    assert set(server.sql("SELECT id, p FROM c.child")) == set(oracle.rows_of(TableName("c", "child")))
