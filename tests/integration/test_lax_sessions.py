"""A session that is not strict: an ALTER to NOT NULL makes values of NULLs, of which the log has no rows."""

from __future__ import annotations

import pymysql
import pytest

from connectors.recovery.overriding import override
from databases.servers import Server
from historian.names import TableName
from replicas.tracked import Tracked


@pytest.fixture(params=["mysql9", "mysql57", "mariadb105", "mariadb118"])
def source(request: pytest.FixtureRequest) -> Server:
    """A server of each kind, old and new."""
    server: Server = request.getfixturevalue(request.param)
    return server


def test_only_what_a_server_may_have_changed_unseen_stops_its_table(
    source: Server, database: str, tracked: Tracked
) -> None:
    for name in ("lax", "altered", "strict", "added"):
        source.sql(f"CREATE TABLE {database}.{name} (id INT PRIMARY KEY, n INT, t VARCHAR(9) NOT NULL)")
        source.sql(f"INSERT INTO {database}.{name} VALUES (1, NULL, 'a')")
    source.sql(f"UPDATE {database}.strict SET n = 5")
    source.sql(f"ALTER TABLE {database}.strict MODIFY n INT NOT NULL")
    with source.connect(init_command="SET sql_mode = ''") as connection, connection.cursor() as cursor:
        cursor.execute(f"ALTER TABLE {database}.lax MODIFY n INT NOT NULL")
        cursor.execute(f"ALTER TABLE {database}.altered CHANGE n m BIGINT NOT NULL FIRST")
        cursor.execute(f"ALTER TABLE {database}.added ADD m INT NOT NULL, MODIFY t VARCHAR(9) NULL")
    assert ((0,),) == source.sql(f"SELECT n FROM {database}.lax") == source.sql(f"SELECT m FROM {database}.altered")
    source.sql(f"INSERT INTO {database}.strict VALUES (2, 6, 'b')")
    source.sql(f"INSERT INTO {database}.added VALUES (2, NULL, 'b', 0)")

    with tracked.tracker() as tracker:
        news, stopped = tracked.news(tracker), tracked.stopped(tracker)

    assert set(stopped) == {"lax", "altered"}
    assert "NULL in n becomes a value of the server's without row events" in stopped["lax"]
    assert "NULL in m becomes a value of the server's without row events" in stopped["altered"]
    assert news["lax"] == news["altered"] == [("+A", {"id": 1, "n": None, "t": "a"})]
    assert news["strict"][-1] == ("+A", {"id": 2, "n": 6, "t": "b"})
    assert news["added"][-1] == ("+A", {"id": 2, "n": None, "t": "b", "m": 0})


TO_NOT_NULL = (
    "MODIFY ts TIMESTAMP NOT NULL",
    "MODIFY ts TIMESTAMP(6) NOT NULL",
    "MODIFY ts TIMESTAMP NOT NULL, MODIFY n BIGINT",
    "MODIFY ts TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP",
    "MODIFY dt TIMESTAMP NOT NULL",
    "MODIFY dt DATETIME(3) NOT NULL",
    "MODIFY n INT NOT NULL",
    "MODIFY n BIGINT NOT NULL",
    "MODIFY n VARCHAR(20) NOT NULL",
)


def test_a_strict_server_makes_values_of_nulls_too_where_a_column_becomes_a_timestamp(
    source: Server, database: str, tracked: Tracked
) -> None:
    taken = set()
    for at, action in enumerate(TO_NOT_NULL):
        source.sql(f"CREATE TABLE {database}.t{at} (id INT PRIMARY KEY, n INT, ts TIMESTAMP NULL, dt DATETIME)")
        source.sql(f"INSERT INTO {database}.t{at} (id) VALUES (1)")
        try:
            source.sql(f"ALTER TABLE {database}.t{at} {action}")
        except pymysql.MySQLError:
            continue
        taken.add(f"t{at}")

    with tracked.tracker() as tracker:
        tracker.catch_up()
        assert set(tracked.stopped(tracker)) == taken
    assert 2 <= len(taken) <= 5


def test_a_second_such_statement_stops_the_table_again(source: Server, database: str, tracked: Tracked) -> None:
    source.sql(f"CREATE TABLE {database}.p (id INT PRIMARY KEY, n INT, m INT)")
    alters = [f"ALTER TABLE {database}.p MODIFY {column} INT NOT NULL" for column in "nm"]
    with source.connect(init_command="SET sql_mode = ''") as connection, connection.cursor() as cursor:
        cursor.execute(alters[0])
        cursor.execute(f"INSERT INTO {database}.p VALUES (1, 1, NULL)")
        connection.commit()
        cursor.execute(alters[1])

    with tracked.tracker() as tracker:
        tracker.catch_up()
        override(tracker, TableName(database, "p"), alters[0])
        assert "NULL in m becomes a value" in tracked.stopped(tracker)["p"]


def test_a_table_without_nulls_goes_on_where_a_person_says_so(source: Server, database: str, tracked: Tracked) -> None:
    source.sql(f"CREATE TABLE {database}.p (id INT PRIMARY KEY, n INT)")
    source.sql(f"INSERT INTO {database}.p VALUES (1, 10)")
    alter = f"ALTER TABLE {database}.p MODIFY n BIGINT NOT NULL"
    with source.connect(init_command="SET sql_mode = ''") as connection, connection.cursor() as cursor:
        cursor.execute(alter)
    source.sql(f"INSERT INTO {database}.p VALUES (2, 20)")

    with tracked.tracker() as tracker:
        assert tracked.news(tracker) == {"p": [("+A", {"id": 1, "n": 10})]}
        last = tracker.store.last_plan()
        assert last is not None
        override(tracker, TableName(database, "p"), alter)
        assert tracked.news(tracker, last.number) == {"p": [("+A", {"id": 2, "n": 20})]}
        assert tracked.stopped(tracker) == {}
        snapshot = tracker.history.versions(TableName(database, "p"))[-1].snapshot

    assert snapshot is not None
    assert [(c.name, c.type.name, c.nullable) for c in snapshot.columns] == [
        ("id", "int", False),
        ("n", "bigint", False),
    ]
