"""SQL files applied without a server."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from connectors.tracking.schema_file import applied, catalog_of, fresh_server, sql_text
from historian.ddl.types.information_schema import MARIADB, MYSQL, tables_form
from historian.errors import HistorianError, SourceError
from models.ddl_text import table

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


def _catalog(directory: Path, column: bytes) -> list[str | None]:
    file = directory / "dump.sql"
    file.write_bytes(b"\xef\xbb\xbfUSE d;\nCREATE TABLE t (id INT PRIMARY KEY, " + column + b") COMMENT '\xa1'")
    (made,) = catalog_of(sql_text(file), flavor="mariadb", where=str(file)).tables.values()
    return [each.default for each in made.columns[1:]]


def test_bytes_in_a_dump_that_are_no_utf8_are_defaults_of_binary_columns(tmp_path: Path) -> None:
    column = b"a VARBINARY(20) DEFAULT '\xa1K', b BINARY(2) DEFAULT '\xff', c BLOB DEFAULT '\x80\xc3'"
    assert _catalog(tmp_path, column) == ["0xA14B", "0xFF00", "0x80C3"]
    assert _catalog(tmp_path, b"a VARCHAR(5) DEFAULT _latin1'\xe9'") == ["é"]


@pytest.mark.parametrize(
    "column",
    [
        *(b"a VARCHAR(5) DEFAULT '\xe9'", b"a VARCHAR(5) CHARACTER SET latin1 DEFAULT '\xe9'", b"`c\xa1` INT"),
        *(b"a ENUM('\xa1','b')", b"a SET('\xa1') CHARACTER SET binary", b"a VARCHAR(9) AS (CONCAT('\xa1'))"),
        *(b"a BIT(8) DEFAULT '\xe9'", b"a TEXT DEFAULT '\xe9'"),
    ],
)
def test_bytes_that_are_no_utf8_are_no_text(tmp_path: Path, column: bytes) -> None:
    with pytest.raises(SourceError, match=r"dump.sql:2\)?(?s:.*)\\x(e9|a1)"):
        _catalog(tmp_path, column)
