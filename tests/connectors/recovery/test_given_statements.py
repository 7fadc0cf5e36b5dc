"""Which statements stop a table again that is read anew from its stop on."""

from __future__ import annotations

import pytest

from connectors.recovery.given_statements import is_stopped_by
from historian.ddl import resolve
from historian.names import TableName
from models.ddl_text import MYSQL, after


@pytest.mark.parametrize(
    "sql, is_stopped",
    [
        ("RENAME TABLE gone TO v, t TO gone", False),
        ("RENAME TABLE gone TO tmp, t TO gone, tmp TO t", False),
        ("RENAME TABLE gone TO t", True),
        ("RENAME TABLE gone TO v", False),
        ("ALTER TABLE t FROBNICATE", True),
        ("ALTER TABLE t RENAME TO v, FROBNICATE", True),
        ("DROP TABLE gone, t", False),
        ("INSERT INTO t VALUES (1)", True),
        ("INSERT INTO u VALUES (1)", False),
        ("ALTER TABLE t DISCARD TABLESPACE", True),
        ("ALTER TABLE t ADD b INT", False),
    ],
)
def test_a_table_stops_again_where_it_is_not_known_behind_a_statement(sql: str, is_stopped: bool) -> None:
    catalog = after("CREATE TABLE t (a INT)", "CREATE TABLE u (a INT)")
    assert is_stopped == is_stopped_by(resolve(sql, MYSQL, catalog), TableName("shop", "t"))
