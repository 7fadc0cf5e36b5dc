"""Tables of unusual columns on real servers: many of them, invisible, generated, behind an index, without a key, in partitions."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from connectors.tracking.capture.catalog import capture_catalog
from historian.changelog.operations import Op
from historian.names import TableName
from logs.decoder_lab import decode, log_end, planned
from logs.image_lab import UNKNOWN, changes_of, has_whole_images, lacking, replayed

if TYPE_CHECKING:
    from databases.servers import Server

IMAGES = ("FULL", "MINIMAL", "NOBLOB")
UPDATES = ("UPDATE t SET a = a + 10 WHERE a < 3", "UPDATE t SET b = 'w' WHERE a = 11", "DELETE FROM t WHERE a = 12")
INVISIBLE = {"mysql57": "", "mysql8": "INVISIBLE", "mysql9": "INVISIBLE"}


def replay(
    server: Server, create: str, *statements: str, setting: str = "", hideable: frozenset[str] = frozenset()
) -> tuple[list[str], list[dict[str, Any]]]:
    """Runs *statements* on a new table t under each image; gives its columns and its rows, which the log tells as SELECT does.

    Columns *hideable* may be unknown.
    """
    with server.connect(autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE DATABASE IF NOT EXISTS unusual")
        cursor.execute("USE unusual")
        cursor.execute("DROP TABLE IF EXISTS t")
        if setting:
            cursor.execute(setting)
        cursor.execute(create)
        snapshot = capture_catalog(connection, 1, 1).tables[TableName("unusual", "t")]
        names = [column.name for column in snapshot.columns]
        key = [column.name for column in snapshot.columns if column.id in snapshot.primary_key]
        for image in IMAGES:
            cursor.execute("TRUNCATE t")
            cursor.execute("FLUSH BINARY LOGS")
            since = log_end(server)
            cursor.execute(f"SET SESSION binlog_row_image = {image}")
            for statement in statements:
                cursor.execute(statement)
            cursor.execute(f"SELECT {', '.join(f'`{name}`' for name in names)} FROM t")
            wanted = [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
            changes = list(changes_of(decode(server, planned(snapshot), since), snapshot))
            assert changes
            if key:
                held: dict[Any, dict[str, Any]] = {}
                replayed(held, changes, *key)
                for row in wanted:
                    hidden = held.get(row[key[0]], {})
                    hidden.update({name: row[name] for name in hideable if hidden.get(name) is UNKNOWN})
                assert held == {row[key[0]]: row for row in wanted}, image
            else:
                bag: Counter[tuple[Any, ...]] = Counter()
                for change in changes:
                    assert not change.absent
                    bag[tuple(change.values.values())] += 1 if change.op in (Op.APPEND, Op.CORRECT_TO) else -1
                assert +bag == Counter(tuple(row.values()) for row in wanted), image
                assert min(bag.values()) >= 0
    return names, wanted


@pytest.mark.parametrize("count", [64, 65, 250, 251, 1017])
def test_a_table_may_have_many_columns(server: Server, count: int) -> None:
    columns = ", ".join(f"c{number} SMALLINT DEFAULT {number}" for number in range(count - 2))
    names, _ = replay(
        server,
        f"CREATE TABLE t (a INT PRIMARY KEY, {columns}, b VARCHAR(9))",
        "INSERT INTO t (a, b) VALUES (1, 'x'), (2, NULL)",
        *UPDATES,
        f"UPDATE t SET c{count - 3} = NULL",
    )
    assert len(names) == count


def test_a_table_has_up_to_4096_columns(mysql9: Server) -> None:
    columns = ", ".join(f"c{number} TINYINT" for number in range(4095))
    names, _ = replay(
        mysql9,
        f"CREATE TABLE t (a INT PRIMARY KEY, {columns}) ENGINE = MyISAM",
        "INSERT INTO t (a, c4094) VALUES (1, 1), (2, NULL)",
        "UPDATE t SET c4094 = 7, c0 = 1 WHERE a = 2",
        "DELETE FROM t WHERE a = 1",
    )
    assert len(names) == 4096


def test_a_table_without_a_key_is_logged_whole(server: Server) -> None:
    rows = "INSERT INTO t (a, b, g) VALUES (1, 'x', NULL), (1, 'x', NULL), (2, NULL, 'blob')"
    replay(server, "CREATE TABLE t (a INT, b VARCHAR(9), g BLOB)", rows, *UPDATES, "UPDATE t SET g = 'new' LIMIT 1")


def test_columns_that_people_do_not_see_are_in_images(server: Server) -> None:
    hidden = INVISIBLE.get(server.name, "INVISIBLE")
    kind = "STORED" if server.flavor == "mariadb" else "VIRTUAL"
    names, rows = replay(
        server,
        f"CREATE TABLE t (a INT PRIMARY KEY, h INT DEFAULT 4 {hidden}, v INT GENERATED ALWAYS AS (a * 2) {kind},"
        f" s VARCHAR(20) GENERATED ALWAYS AS (CONCAT(b, '!')) STORED {hidden}, b VARCHAR(9))",
        "INSERT INTO t (a, b) VALUES (1, 'x'), (2, 'y')",
        *UPDATES,
        "UPDATE t SET h = 5",
        hideable=frozenset() if has_whole_images(server) else frozenset("vs"),
    )
    assert names == ["a", "h", "v", "s", "b"]
    assert rows == [{"a": 11, "h": 5, "v": 22, "s": "w!", "b": "w"}]


@pytest.mark.parametrize("name", ["mysql8", "mysql9"])
def test_a_generated_primary_key_and_what_stands_behind_an_index(name: str, request: pytest.FixtureRequest) -> None:
    names, rows = replay(
        request.getfixturevalue(name),
        "CREATE TABLE t (a INT, b VARCHAR(9), j JSON, KEY f ((a + 1)), KEY u ((UPPER(b))),"
        " KEY m ((CAST(j->'$.n' AS UNSIGNED ARRAY))))",
        """INSERT INTO t (a, b, j) VALUES (1, 'x', '{"n": [1, 2]}'), (2, 'y', NULL)""",
        *UPDATES,
        "UPDATE t SET j = '[1]'",
        setting="SET SESSION sql_generate_invisible_primary_key = ON",
    )
    assert names == ["my_row_id", "a", "b", "j"]
    assert rows == [{"my_row_id": 1, "a": 11, "b": "w", "j": "[1]"}]


@pytest.mark.parametrize("name", ["mysql8", "mysql9", "mariadb118"])
def test_partitions_and_cascades_leave_their_marks_beside_rows(name: str, request: pytest.FixtureRequest) -> None:
    server: Server = request.getfixturevalue(name)
    replay(
        server,
        "CREATE TABLE t (a INT PRIMARY KEY, b VARCHAR(9)) PARTITION BY HASH (a) PARTITIONS 4",
        "INSERT INTO t VALUES (1, 'x'), (2, NULL)",
        *UPDATES,
    )
    if name == "mysql9":
        server.sql("CREATE TABLE unusual.parent (a INT PRIMARY KEY)")
        replay(
            server,
            "CREATE TABLE t (a INT PRIMARY KEY, b INT, FOREIGN KEY (b) REFERENCES parent (a) ON UPDATE CASCADE)",
            "INSERT INTO parent VALUES (1)",
            "INSERT INTO t VALUES (1, 1), (2, NULL)",
            "UPDATE parent SET a = 2",
            "DELETE FROM t WHERE a = 2",
            "DELETE FROM t",
            "DELETE FROM parent",
            "INSERT INTO t VALUES (7, NULL)",
        )


def test_old_row_events_are_read(fresh_server: Any) -> None:
    server = fresh_server("mysql57", "log_bin_use_v1_row_events=ON")
    create = "CREATE TABLE t (a INT PRIMARY KEY, b VARCHAR(9), g BLOB)"
    replay(server, create, "INSERT INTO t (a, b) VALUES (1, 'x'), (2, NULL)", *UPDATES)
    (path,) = server.binlog_files()[-1:]
    assert {kind for kind, _ in lacking(path.read_bytes(), ["a", "b", "g"])} == {23, 24, 25}
