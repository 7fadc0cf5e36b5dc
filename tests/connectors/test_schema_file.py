"""SQL files applied without a server."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from connectors.schema_file import applied, catalog_of, fresh_server
from ddl_text import table
from historian.errors import HistorianError, SourceError
from historian.information_schema import MARIADB, MYSQL, tables_form

STATEMENTS = (
    "CREATE DATABASE d CHARACTER SET latin1",
    "USE `d`",
    "SET sql_mode = 'ANSI_QUOTES', @x = @@sql_mode",
    "SET NAMES utf8mb4",
    "CREATE TABLE t (a INT PRIMARY KEY, b VARCHAR(9) DEFAULT 'x', c TIMESTAMP, d ENUM('x','y'), UNIQUE u (b))",
    "ALTER TABLE t ADD COLUMN e DECIMAL(10,2) UNSIGNED NOT NULL DEFAULT '1.5' AFTER a, DROP b",
    "CREATE TABLE s LIKE t",
    "ALTER TABLE t EXCHANGE PARTITION p WITH TABLE s",
    "DROP TABLE IF EXISTS t, s",
    "DELIMITER ;;",
    "INSERT INTO t VALUES (';')",
    "/*!50003 CREATE TRIGGER x BEFORE INSERT ON t FOR EACH ROW SET NEW.a = 1 */",
)
PIECES = st.sampled_from(sorted({piece for sql in STATEMENTS for piece in sql.replace("(", " ( ").split()}))


@given(
    st.lists(st.one_of(st.sampled_from(STATEMENTS), PIECES, st.text(max_size=12)), max_size=12),
    st.text(max_size=4),
    st.sampled_from(("mysql", "mariadb")),
)
@settings(max_examples=300)
def test_scripts_are_applied_or_refused_and_what_they_make_can_be_printed(
    parts: list[str], between: str, flavor: str
) -> None:
    catalog, context = fresh_server(flavor, database="shop")
    with contextlib.suppress(HistorianError):
        for step in applied(f"{between};\n".join(parts), catalog=catalog, context=context, where="f.sql"):
            for form in (MYSQL, MARIADB):
                tables_form(step.resolution.edits, step.after.tables.values(), form)


def test_a_database_that_is_used_has_the_servers_defaults() -> None:
    sql = "USE d; CREATE TABLE t (a CHAR(3))"
    assert table(catalog_of(sql, flavor="mysql", where="f.sql"), "d.t") == ["a char(3) utf8mb4_0900_ai_ci"]
    assert table(catalog_of(sql, flavor="mariadb", where="f.sql"), "d.t") == ["a char(3) utf8mb4_uca1400_ai_ci"]
    old = catalog_of(sql, flavor="mariadb", where="f.sql", version=101100)
    assert table(old, "d.t") == ["a char(3) latin1_swedish_ci"]


def test_a_statement_that_does_not_fit_says_where() -> None:
    with pytest.raises(SourceError) as error:
        catalog_of("USE d;\nCREATE TABLE t (a INT);\nALTER TABLE t DROP b", flavor="mysql", where="f.sql")
    assert error.value.where == "f.sql:3"
    assert "there is no column 'b'" in str(error.value.found)
