"""What bounds of chunks, and chunks, cost a server, counted by its handlers on tables of a hundred thousand rows."""

from __future__ import annotations

from contextlib import closing
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest

from connectors.backfill.keys.boundaries import boundaries
from connectors.backfill.keys.literals import prepare_session
from connectors.backfill.keys.predicates import where
from connectors.backfill.keys.probes import estimated
from connectors.backfill.keys.split_key import SplitKey
from connectors.tracking.capture.catalog import capture_catalog
from historian.names import TableName
from historian.plans.key_ranges import KeyRange

if TYPE_CHECKING:
    from collections.abc import Callable

    from pymysql.connections import Connection

    from databases.servers import Server

TABLE_ROWS = 100_000
ROWS = 1_000
COUNT = 4
PROBES = 60
"""Entries that a server looks at beside those of the rows: ends of the index, its dictionary."""

NUMBER = "a.i + 10 * b.i + 100 * c.i + 1000 * d.i + 10000 * e.i"
TABLES = {
    "dense": ("id INT PRIMARY KEY", NUMBER),
    "sparse": ("id BIGINT UNSIGNED PRIMARY KEY", f"CAST({NUMBER} AS UNSIGNED) * 184467440737095"),
    "texts": ("id CHAR(36) PRIMARY KEY", f"LEFT(SHA2({NUMBER}, 256), 36)"),
    "pairs": ("a INT, b VARCHAR(40), PRIMARY KEY (a, b)", f"({NUMBER}) % 3, LEFT(SHA2({NUMBER}, 256), 32)"),
    "times": ("a DATETIME(6), b INT, PRIMARY KEY (a, b)", f"'2020-01-01' + INTERVAL {NUMBER} SECOND, {NUMBER}"),
    "labels": ("e ENUM('c', 'b', 'a'), n INT, PRIMARY KEY (e, n)", f"({NUMBER}) % 3 + 1, {NUMBER}"),
    "not_primary": ("a BINARY(16) NOT NULL, UNIQUE KEY u (a)", f"UNHEX(LEFT(SHA2({NUMBER}, 256), 32))"),
}


ESTIMATED = ("sparse", "texts", "times", "not_primary")


def _wrong_by_estimates(
    connection: Connection[Any], key: SplitKey, monkeypatch: pytest.MonkeyPatch, read: Callable[[], int]
) -> list[tuple[Any, ...]]:
    """All bounds of a table by estimates, which read a part of it alone: of its end."""
    with monkeypatch.context() as patch:
        patch.setattr("connectors.backfill.keys.boundaries.FEW_ROWS", 0)
        bounds = boundaries(connection, key, None, rows=TABLE_ROWS // 10, count=1_000)
    reads = read()
    ranges = [KeyRange(after=after, upto=upto) for after, upto in pairwise([None, *bounds])]
    held = []
    with connection.cursor() as cursor:
        for keys in ranges:
            cursor.execute(f"SELECT COUNT(*) FROM {key.source} WHERE {where(key, keys)}")
            ((count,),) = cursor.fetchall()
            held.append(count)
    good = reads < TABLE_ROWS // 5 and sum(held) == TABLE_ROWS and max(held) <= TABLE_ROWS // 3 and len(held) < 100
    return [] if good else [(key.table, reads, held)]


@pytest.mark.server
@pytest.mark.parametrize("name", ["mysql8", "mysql57", "mariadb118"])
def test_bounds_and_chunks_are_found_without_a_scan(
    name: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    server: Server = request.getfixturevalue(name)
    with closing(server.connect()) as connection, connection.cursor() as cursor:

        def answers(statement: str) -> tuple[tuple[Any, ...], ...]:
            cursor.execute(statement)
            return tuple(cursor.fetchall())

        def read() -> int:
            """Entries that the session has read since this was asked last."""
            counts = answers("SHOW SESSION STATUS LIKE 'Handler_read%'")
            answers("FLUSH STATUS")
            return sum(int(count) for _, count in counts)

        answers("SET SESSION sql_log_bin = 0")
        answers("CREATE DATABASE reads_little")
        answers("USE reads_little")
        answers("CREATE TABLE digits (i INT)")
        answers("INSERT INTO digits VALUES (0), (1), (2), (3), (4), (5), (6), (7), (8), (9)")
        for table, (columns, values) in TABLES.items():
            # By default twenty pages by chance, of which an estimate can be far off.
            answers(f"CREATE TABLE {table} ({columns}) STATS_SAMPLE_PAGES = 1000")
            answers(f"INSERT INTO {table} SELECT {values} FROM digits a, digits b, digits c, digits d, digits e")
            answers(f"ANALYZE TABLE {table}")
        catalog = capture_catalog(connection, 1, 1)
        prepare_session(connection)
        wrong = []
        for table in TABLES:
            key = SplitKey.of(catalog.tables[TableName("reads_little", table)], server.flavor)
            assert key is not None
            read()
            found = boundaries(connection, key, None, rows=ROWS, count=COUNT)
            stepped = 0 if table == "dense" else ROWS * COUNT
            steps = read()
            far = boundaries(connection, key, found[-1], rows=ROWS, count=1)
            stepped_far = stepped // COUNT
            steps_far = read()
            chunk = where(key, KeyRange(after=found[0], upto=found[1]))
            ((held,),) = answers(f"SELECT COUNT(*) FROM {key.source} WHERE {chunk}")
            chunk_reads = read()
            estimate = estimated(cursor, key.name)
            if (
                steps > stepped + PROBES
                or steps_far > stepped_far + PROBES
                or chunk_reads > held + PROBES
                or None in far
            ):
                wrong.append((table, steps, steps_far, chunk_reads, far))
            if not ROWS * 0.9 <= held <= ROWS * 2 or not TABLE_ROWS / 2 <= estimate <= TABLE_ROWS * 2:
                wrong.append((table, held, estimate))

    assert [] == wrong
