"""Logs of real servers: transactions of every form, versions by place, renames, quarantine, generated columns."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pymysql
import pytest

from connectors.tracking.capture.catalog import capture_catalog
from historian.changelog.chunks import positions
from historian.names import TableName
from historian.plans.plans import PlannedTable, PlannedVersion, Quarantine
from historian.positions.places import Place
from historian.schema.snapshots import Snapshot
from logs.decoder_lab import capture, changes, decode, log_end, planned
from logs.image_lab import UNKNOWN, changes_of, has_whole_images

if TYPE_CHECKING:
    from databases.servers import Server

DATABASE = "decoder_logs"


@pytest.fixture
def cursor(server: Server) -> Iterator[Any]:
    with contextlib.closing(server.connect()) as connection, connection.cursor() as found:
        found.execute(f"DROP DATABASE IF EXISTS {DATABASE}")
        found.execute(f"CREATE DATABASE {DATABASE}")
        found.execute(f"USE {DATABASE}")
        yield found
        found.execute("ROLLBACK")
        found.execute(f"DROP DATABASE {DATABASE}")


def here(server: Server) -> Place:
    file, offset = log_end(server)
    return Place(gtid="", file=file, offset=offset, ordinal=0)


def run(cursor: Any, *statements: str) -> None:
    for statement in statements:
        cursor.execute(statement)


def test_transactions_of_every_form_give_their_rows_in_order(server: Server, cursor: Any) -> None:
    run(cursor, "CREATE TABLE t (a INT PRIMARY KEY, b INT)", "CREATE TABLE m (a INT, b INT) ENGINE=MyISAM")
    run(cursor, "CREATE TABLE unwanted (a INT PRIMARY KEY)")
    since = log_end(server)
    run(cursor, "INSERT INTO t VALUES (1, 1), (2, 2)")
    run(cursor, "BEGIN", "INSERT INTO t VALUES (3, 3)", "SAVEPOINT s", "INSERT INTO t VALUES (4, 4)", "ROLLBACK TO s")
    run(cursor, "INSERT INTO unwanted VALUES (1)", "UPDATE t SET b = b + 10", "RELEASE SAVEPOINT s", "COMMIT")
    run(cursor, "BEGIN", "INSERT INTO t VALUES (5, 5)", "ROLLBACK", "INSERT INTO m VALUES (1, 1), (2, 2)")
    run(cursor, "UPDATE m SET b = 7", "DELETE FROM m WHERE a = 1", "CREATE TABLE other (a INT)")
    run(cursor, "UPDATE t SET a = 9 WHERE a = 1", "DELETE FROM t WHERE a = 2", "TRUNCATE unwanted")
    table, bag = capture(server, DATABASE, "t"), capture(server, DATABASE, "m")

    chunks = decode(server, planned(table, bag), since)

    assert list(changes(chunks, table, 1)) == [
        *(("+A", 1, 1), ("+A", 2, 2), ("+A", 3, 3)),
        *(("-C", 1, 1), ("+C", 1, 11), ("-C", 2, 2), ("+C", 2, 12), ("-C", 3, 3), ("+C", 3, 13)),
        *(("-R", 1, 11), ("+A", 9, 11), ("-R", 2, 12)),
    ]
    assert list(changes(chunks, bag, 2)) == [
        *(("+A", 1, 1), ("+A", 2, 2)),
        *(("-C", 1, 1), ("+C", 1, 7), ("-C", 2, 2), ("+C", 2, 7), ("-R", 1, 7)),
    ]


def test_rows_name_their_transactions_by_gtid(server: Server, cursor: Any) -> None:
    run(cursor, "CREATE TABLE t (a INT PRIMARY KEY)")
    since = log_end(server)
    noted = []
    for number in range(3):
        run(cursor, f"INSERT INTO t VALUES ({number})")
        if server.flavor == "mariadb":
            cursor.execute("SELECT @@last_gtid")
            noted.append(cursor.fetchone()[0])
        else:
            noted.append(server.sql("SELECT @@GLOBAL.gtid_executed")[0][0].rpartition("-")[2])
    snapshot = capture(server, DATABASE, "t")
    (chunk,) = decode(server, planned(snapshot), since)

    found = positions(chunk).to_pylist()

    assert [text if server.flavor == "mariadb" else text.rpartition(":")[2] for text in found] == noted
    assert (chunk.first_position, chunk.last_position) == (found[0], found[-1])
    if server.flavor == "mysql":
        assert chunk.sources == (server.sql("SELECT @@server_uuid")[0][0],)


def test_the_time_of_a_row_is_that_of_its_commit(server: Server, cursor: Any) -> None:
    run(cursor, "CREATE TABLE t (a INT PRIMARY KEY)")
    since = log_end(server)
    (before,) = server.sql("SELECT UNIX_TIMESTAMP()")[0]
    run(cursor, "INSERT INTO t VALUES (1)")
    (after,) = server.sql("SELECT UNIX_TIMESTAMP()")[0]
    (chunk,) = decode(server, planned(capture(server, DATABASE, "t")), since)
    (found,) = chunk.rows.column("event_time").to_pylist()
    assert before <= found.timestamp() <= after + 1
    # 8.0 notes microseconds at the commit, the others know the second of the statement.
    assert found.microsecond == 0 or server.name in {"mysql8", "mysql9"}


def test_anonymous_transactions_are_known_by_file_and_offset(fresh_server: Callable[..., Server]) -> None:
    server = fresh_server("mysql8", "gtid_mode=OFF", "enforce_gtid_consistency=OFF")
    server.sql("CREATE DATABASE d")
    server.sql("CREATE TABLE d.t (a INT PRIMARY KEY)")
    since = log_end(server)
    server.sql("INSERT INTO d.t VALUES (1), (2)")
    (chunk,) = decode(server, planned(capture(server, "d", "t")), since)
    assert chunk.rows.column("source").to_pylist() == [-1, -1]
    assert positions(chunk).to_pylist() == [f"{since[0]}:{since[1]}"] * 2
    assert chunk.first_position == f"{since[0]}:{since[1]}"


def versions(snapshots: Sequence[tuple[Place | None, Snapshot | None]], *, table_id: int = 1) -> PlannedTable:
    return PlannedTable(
        table_id=table_id,
        versions=tuple(
            PlannedVersion(version=number, place=place, edits=(), snapshot=snapshot, segment=number // 3)
            for number, (place, snapshot) in enumerate(snapshots, 1)
        ),
    )


def test_a_row_takes_the_last_version_before_it(server: Server, cursor: Any) -> None:
    """Two columns of one type change places: only the place of the DDL tells which value is whose."""
    run(cursor, "CREATE TABLE t (a INT PRIMARY KEY, b INT)")
    first = capture(server, DATABASE, "t")
    since = log_end(server)
    found: list[tuple[Place | None, Snapshot | None]] = [(None, first)]
    run(cursor, "INSERT INTO t VALUES (1, 20)")
    for statement, ids in (
        ("ALTER TABLE t DROP COLUMN b, ADD COLUMN c INT FIRST", (3, 1)),
        ("ALTER TABLE t CHANGE c d VARCHAR(10) CHARACTER SET utf8mb4", (4, 1)),
    ):
        place = here(server)
        run(cursor, statement, f"INSERT INTO t VALUES ('7', {place.offset})")
        snapshot = capture(server, DATABASE, "t")
        columns = tuple(replace(column, id=i) for column, i in zip(snapshot.columns, ids, strict=True))
        found.append((place, replace(snapshot, columns=columns, primary_key=(1,))))
    run(cursor, "INSERT INTO t VALUES ('x', 5)")

    chunks = decode(server, [versions(found)], since)

    assert [(chunk.version, chunk.segment, chunk.sequence) for chunk in chunks] == [(1, 0, 0), (2, 0, 1), (3, 1, 2)]
    rows = [row for chunk, (_, snapshot) in zip(chunks, found, strict=True) for row in changes([chunk], snapshot)]  # type: ignore[arg-type]
    assert rows[0] == ("+A", 1, 20)
    assert [row[1] for row in rows[1:]] == [7, "7", "x"]
    assert chunks[1].rows.schema.names[-2:] == ["h3", "h1"]


def test_tables_that_swap_names_keep_their_rows_apart(server: Server, cursor: Any) -> None:
    run(cursor, "CREATE TABLE one (a INT PRIMARY KEY)", "CREATE TABLE two (a INT PRIMARY KEY)")
    one, two = capture(server, DATABASE, "one"), capture(server, DATABASE, "two")
    since = log_end(server)
    run(cursor, "INSERT INTO one VALUES (1)", "INSERT INTO two VALUES (2)")
    place = here(server)
    run(cursor, "RENAME TABLE one TO t, two TO one, t TO two")
    run(cursor, "INSERT INTO one VALUES (3)", "INSERT INTO two VALUES (4)")
    gone = here(server)
    run(cursor, "DROP TABLE two", "CREATE TABLE two (b INT)", "INSERT INTO two VALUES (5)")
    plan = [
        versions([(None, one), (place, replace(one, name=two.name)), (gone, None)]),
        versions([(None, two), (place, replace(two, name=one.name))], table_id=2),
    ]
    chunks = decode(server, plan, since)
    assert [row[1] for row in changes(chunks, one, 1)] == [1, 4]
    assert [row[1] for row in changes(chunks, one, 2)] == [2, 3]


def test_rows_at_and_behind_a_quarantine_are_left_out(server: Server, cursor: Any) -> None:
    run(cursor, "CREATE TABLE t (a INT PRIMARY KEY)")
    snapshot = capture(server, DATABASE, "t")
    since = log_end(server)
    run(cursor, "INSERT INTO t VALUES (1)", "INSERT INTO t VALUES (2)")
    stop = Quarantine(place=here(server), reason="a test")
    run(cursor, "INSERT INTO t VALUES (3)", "ALTER TABLE t ADD b INT", "INSERT INTO t VALUES (4, 4)")
    plan = [replace(planned(snapshot)[0], quarantine=stop)]
    assert [row[1] for row in changes(decode(server, plan, since), snapshot)] == [1, 2]


def test_rows_of_create_table_select_are_those_of_the_new_table(server: Server, cursor: Any) -> None:
    run(cursor, "CREATE TABLE source_rows (a INT PRIMARY KEY)", "INSERT INTO source_rows VALUES (1), (2)")
    since = log_end(server)
    place = here(server)
    statement = "CREATE TABLE made (PRIMARY KEY (a)) AS SELECT a, a * 2 AS b FROM source_rows"
    if server.name == "mysql57":
        with pytest.raises(pymysql.err.OperationalError, match="GTID consistency"):
            run(cursor, statement)
        return
    run(cursor, statement, "INSERT INTO made VALUES (3, 6)")
    snapshot = capture(server, DATABASE, "made")
    chunks = decode(server, [versions([(place, snapshot)])], since)
    assert list(changes(chunks, snapshot)) == [("+A", 1, 2), ("+A", 2, 4), ("+A", 3, 6)]


def test_generated_and_invisible_columns_stand_in_their_places(server: Server, cursor: Any) -> None:
    run(cursor, "CREATE TABLE t (a INT PRIMARY KEY, v INT AS (a + 1) VIRTUAL, s INT AS (a + 2) STORED, b VARCHAR(9))")
    if server.name != "mysql57":
        run(cursor, "ALTER TABLE t ADD COLUMN hidden INT INVISIBLE DEFAULT 8")
    if server.name in {"mysql8", "mysql9"}:
        run(cursor, "ALTER TABLE t ADD INDEX functional ((a * 3))")
    since = log_end(server)
    run(cursor, "INSERT INTO t (a, b) VALUES (1, 'x')", "UPDATE t SET a = 5, b = NULL", "DELETE FROM t")
    with contextlib.closing(server.connect()) as connection:
        snapshot = capture_catalog(connection, 1, 1).tables[TableName(DATABASE, "t")]
    tail = () if server.name == "mysql57" else (8,)
    told = [
        (change.op.sign, *(change.values | dict.fromkeys(change.absent, UNKNOWN)).values())
        for change in changes_of(decode(server, planned(snapshot), since), snapshot)
    ]
    generated = ((2, 3), (6, 7)) if has_whole_images(server) else ((UNKNOWN, UNKNOWN),) * 2
    assert told == [
        ("+A", 1, 2, 3, "x", *tail),
        ("-R", 1, *generated[0], "x", *tail),
        ("+A", 5, *generated[1], None, *tail),
        ("-R", 5, *generated[1], None, *tail),
    ]


def test_windows_and_chunks_cut_anywhere_give_the_same_rows(server: Server, cursor: Any) -> None:
    run(
        cursor,
        "CREATE TABLE t (a INT PRIMARY KEY, b VARCHAR(300), c TEXT)",
        "CREATE TABLE u (a BIGINT, b DECIMAL(30,5))",
    )
    since = log_end(server)
    for number in range(40):
        run(cursor, "BEGIN")
        for row in range(number % 7 * 10):
            key = number * 100 + row
            run(cursor, f"INSERT INTO t VALUES ({key}, REPEAT('b', {row}), NULLIF(REPEAT('c', {key % 400}), ''))")
        run(
            cursor,
            f"INSERT INTO u VALUES ({number}, {number}.5)",
            "UPDATE t SET b = 'changed' WHERE a % 3 = 0",
            "COMMIT",
        )
    snapshots = capture(server, DATABASE, "t"), capture(server, DATABASE, "u")
    whole = decode(server, planned(*snapshots), since)
    assert len(whole) == 2
    for events, rows, size in ((1, 2, 1), (3, 7, 10**6), (1000, 64, 2000)):
        limits = {"max_chunk_rows": rows, "max_chunk_bytes": size}
        chunks = decode(server, planned(*snapshots), since, events=events, **limits)
        assert chunks == decode(server, planned(*snapshots), since, **limits)
        for table_id, snapshot in enumerate(snapshots, 1):
            assert list(changes(chunks, snapshot, table_id)) == list(changes(whole, snapshot, table_id))
