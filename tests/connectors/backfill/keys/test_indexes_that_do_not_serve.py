"""Indexes that do not have a key's rows in its order: the table is one chunk, and is read without them."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from connectors.backfill.keys.boundaries import boundaries
from connectors.backfill.keys.literals import prepare_session
from connectors.backfill.keys.split_key import SplitKey
from connectors.tracking.capture.catalog import capture_catalog
from historian.errors import SourceError
from historian.names import TableName
from historian.plans.key_ranges import Key

if TYPE_CHECKING:
    from databases.servers import Server

ENDS: list[Key | None] = [(9, 9), (19, 19), (29, 29), None]
ONE_CHUNK: list[Key | None] = [None]
TABLES: dict[str, tuple[str, list[Key | None]]] = {
    "forth": ("a INT, b INT, PRIMARY KEY (a, b))", ENDS),
    "back": ("a INT, b INT, PRIMARY KEY (a DESC, b DESC))", ENDS),
    "both_ways": ("a INT, b INT, PRIMARY KEY (a, b DESC))", ONE_CHUNK),
    "prefix": ("a VARCHAR(20), b INT, PRIMARY KEY (a(5)))", ONE_CHUNK),
    "hash": ("a INT, b INT, PRIMARY KEY (a, b)) ENGINE=MEMORY", ONE_CHUNK),
    "unseen": ("a FLOAT PRIMARY KEY, b INT NOT NULL, UNIQUE KEY u (b) UNSEEN)", ONE_CHUNK),
}


@pytest.mark.server
@pytest.mark.parametrize("name", ["mysql8", "mariadb118"])
def test_a_table_whose_index_does_not_serve_is_one_chunk(name: str, request: pytest.FixtureRequest) -> None:
    server: Server = request.getfixturevalue(name)
    unseen = "INVISIBLE" if server.flavor == "mysql" else "IGNORED"
    with closing(server.connect()) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE DATABASE unserved")
        cursor.execute("USE unserved")
        for table, (definition, _) in TABLES.items():
            cursor.execute(f"CREATE TABLE {table} ({definition.replace('UNSEEN', unseen)}")
            cursor.execute(f"INSERT INTO {table} VALUES {', '.join(f'({number}, {number})' for number in range(30))}")
        catalog = capture_catalog(connection, 1, 1)
        prepare_session(connection)
        found = {}
        for table in TABLES:
            key = SplitKey.of(catalog.tables[TableName("unserved", table)], server.flavor)
            assert key is not None
            found[table] = boundaries(connection, key, None, rows=10, count=9)
            assert 30 == cursor.execute(f"SELECT 1 FROM {key.name}")

    assert {table: expected for table, (_, expected) in TABLES.items()} == found


@pytest.mark.parametrize("statement", ["ALTER TABLE gone.t CHANGE a b INT", "DROP TABLE gone.t"])
def test_a_table_that_has_changed_is_an_error(statement: str, mysql8: Server) -> None:
    with closing(mysql8.connect()) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE DATABASE gone")
        cursor.execute("CREATE TABLE gone.t (a INT PRIMARY KEY)")
        key = SplitKey.of(capture_catalog(connection, 1, 1).tables[TableName("gone", "t")], "mysql")
        assert key is not None
        assert [None] == boundaries(connection, key, None, rows=10, count=9)
        cursor.execute(statement)
        with pytest.raises(SourceError, match="refuses a statement"):
            boundaries(connection, key, None, rows=10, count=9)
        cursor.execute("DROP DATABASE gone")
