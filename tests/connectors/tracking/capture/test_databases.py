"""A capture of some databases is the same of them as one of all."""

from __future__ import annotations

from contextlib import closing

import pytest

from connectors.tracking.capture.catalog import capture_catalog
from databases.servers import Server
from historian.ddl.resolving.unnamed_tables import triggers_name
from historian.schema.comparison import differences

ODD = "it's \\ odd"


@pytest.mark.parametrize("databases", [("one",), ("one", ODD)], ids=["one", "two"])
def test_what_is_captured_of_some_databases_is_what_is_captured_of_all(
    server: Server, databases: tuple[str, ...]
) -> None:
    server.clear()
    with closing(server.connect(autocommit=True)) as connection, connection.cursor() as cursor:
        for database in ("one", ODD, "another"):
            quoted = f"`{database}`"
            cursor.execute(f"CREATE DATABASE {quoted} CHARACTER SET latin1")
            cursor.execute(f"CREATE TABLE {quoted}.p (id INT PRIMARY KEY, n VARCHAR(9) DEFAULT 'x', UNIQUE (n))")
            cursor.execute(
                f"CREATE TABLE {quoted}.c (id INT PRIMARY KEY, p INT, "
                f"FOREIGN KEY (p) REFERENCES {quoted}.p (id) ON DELETE CASCADE)"
            )
            cursor.execute(f"CREATE VIEW {quoted}.v AS SELECT id FROM {quoted}.p")
            cursor.execute(f"CREATE TRIGGER {quoted}.r BEFORE INSERT ON {quoted}.p FOR EACH ROW SET NEW.n = 'y'")
        whole = capture_catalog(connection, 1, 1)
        some = capture_catalog(connection, 1, 1, databases=databases)

    assert set(some.databases) == set(databases)
    assert set(some.tables) == {name for name in whole.tables if name.database in databases}
    assert [] == [line for name, found in some.tables.items() for line in differences(whole.tables[name], found)]
    assert some.unknown == {name: why for name, why in whole.unknown.items() if name.database in databases}
    assert triggers_name("one") in some.unknown
    assert [whole.databases[name] for name in databases] == [some.databases[name] for name in databases]
