"""Tables of MariaDB whose UNIQUE keys are kept as hashes, which stand in every row behind the table's own columns."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from connectors.readers.base import MappedColumn
from connectors.readers.binlog.events.hidden_columns import hidden_columns
from connectors.readers.binlog.events.table_maps import ColumnCode
from connectors.tracking.capture.catalog import capture_catalog
from historian.names import TableName
from historian.schema.snapshots import Snapshot
from logs.decoder_lab import changes, decode, log_end, planned
from logs.image_lab import has_whole_images
from models.ddl_text import MARIADB, after

if TYPE_CHECKING:
    from databases.servers import Server

HASH = MappedColumn(type=ColumnCode.LONGLONG, metadata=0, nullable=False)


def made(body: str) -> Snapshot:
    return after(f"CREATE TABLE t ({body})", context=MARIADB).tables[TableName("shop", "t")]


@pytest.mark.parametrize(
    "keys,least,most",
    [
        ("UNIQUE (a)", 1, 1),
        ("UNIQUE (a), UNIQUE (b)", 1, 2),
        ("UNIQUE (a(10))", 0, 0),
        ("UNIQUE (b)", 0, 1),
        ("UNIQUE (c)", 0, 0),
        ("KEY (b)", 0, 0),
    ],
)
def test_hashes_are_as_many_as_keys_that_are_too_long(keys: str, least: int, most: int) -> None:
    table = made(f"a TEXT, b VARCHAR(300), c INT, {keys}")
    own = (replace(HASH, type=ColumnCode.BLOB),) * 3
    found = [hidden_columns(table, own + (HASH,) * count, "mariadb") for count in range(4)]
    assert found == [count if least <= count <= most else 0 for count in range(4)]
    assert hidden_columns(table, (*own, HASH), "mysql") == 0
    assert hidden_columns(table, (*own, replace(HASH, type=ColumnCode.LONG)), "mariadb") == 0
    assert hidden_columns(table, (*own, replace(HASH, name="d")), "mariadb") == 0


@pytest.mark.parametrize("image", ["FULL", "MINIMAL", "NOBLOB"])
@pytest.mark.parametrize("metadata", ["NO_LOG", "FULL"])
@pytest.mark.parametrize("server", ["mariadb105", "mariadb1011", "mariadb118"], indirect=True)
def test_rows_of_a_table_with_hashed_keys_are_read(server: Server, image: str, metadata: str) -> None:
    server.sql(f"SET GLOBAL binlog_row_metadata = {metadata}")
    with contextlib.closing(server.connect()) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE DATABASE hidden")
        cursor.execute("USE hidden")
        cursor.execute(
            "CREATE TABLE t (id INT PRIMARY KEY, a TEXT, v INT AS (id + 1) VIRTUAL, b VARCHAR(3000), UNIQUE (a), UNIQUE (b, a))"
        )
        snapshot = capture_catalog(connection, 1, 1).tables[TableName("hidden", "t")]
        since = log_end(server)
        cursor.execute(f"SET binlog_row_image = {image}")
        cursor.execute("INSERT INTO t (id, a, b) VALUES (1, 'one', 'x'), (2, NULL, NULL)")
        cursor.execute("UPDATE t SET a = 'two' WHERE id = 1")
        cursor.execute("DELETE FROM t WHERE id = 2")
        chunks = decode(server, planned(snapshot), since)
        cursor.execute("DROP DATABASE hidden")
    server.sql("SET GLOBAL binlog_row_metadata = NO_LOG")
    whole = image == "FULL" and has_whole_images(server)
    rows = [row if whole else (row[0], row[1], row[2]) for row in changes(chunks, snapshot)]
    full = [
        ("+A", 1, "one", 2, "x"),
        ("+A", 2, None, 3, None),
        ("-C", 1, "one", 2, "x"),
        ("+C", 1, "two", 2, "x"),
        ("-R", 2, None, 3, None),
    ]
    if whole:
        assert rows == full
    else:
        assert [row[:2] for row in rows] == [row[:2] for row in full]
        assert rows[0][2] == "one"
        assert rows[3][2] == "two"
