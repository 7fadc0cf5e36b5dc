"""Tables in the words of each server's information_schema. What is expected here was read from the servers themselves."""

from __future__ import annotations

from typing import Any

import pytest

from historian.ddl import StatementContext
from historian.ddl.types.information_schema import ServerForm, server_form, table_form, tables_form
from historian.names import TableName
from models.ddl_text import MARIADB, MYSQL, MYSQL57, after

MYSQL_8_FORM = ServerForm(flavor="mysql", version=80031)
MARIADB_FORM = ServerForm(flavor="mariadb", version=101119)


def forms(columns: str, context: StatementContext = MYSQL) -> list[dict[str, Any]]:
    snapshot = after(f"CREATE TABLE t ({columns})", context=context).tables[TableName("shop", "t")]
    found: list[dict[str, Any]] = table_form(snapshot, server_form(context.flavor, context.version))["columns"]
    return found


def one(column: str, what: str, context: StatementContext) -> Any:
    return forms(f"{column}, other INT", context)[0][what]


def test_a_table_has_its_columns_in_order_and_the_names_of_its_key() -> None:
    catalog = after("CREATE TABLE t (a INT, b VARCHAR(3) CHARSET latin1 NOT NULL DEFAULT 'x', PRIMARY KEY (b, a))")
    form = tables_form((), catalog.tables.values(), MYSQL_8_FORM)
    assert form == {
        "edits": [],
        "tables": {
            "shop.t": {
                "columns": [
                    {
                        "id": 1,
                        "name": "a",
                        "type": "int",
                        "nullable": False,
                        "default": None,
                        "charset": None,
                        "collation": None,
                        "key": "PRI",
                        "extra": "",
                    },
                    {
                        "id": 2,
                        "name": "b",
                        "type": "varchar(3)",
                        "nullable": False,
                        "default": "x",
                        "charset": "latin1",
                        "collation": "latin1_swedish_ci",
                        "key": "PRI",
                        "extra": "",
                    },
                ],
                "primary_key": ["b", "a"],
            }
        },
    }


@pytest.mark.parametrize(
    "column,mysql,old",
    [
        ("a INT", "int", "int(11)"),
        ("a INT(5)", "int", "int(5)"),
        ("a INT UNSIGNED", "int unsigned", "int(10) unsigned"),
        ("a BIGINT UNSIGNED", "bigint unsigned", "bigint(20) unsigned"),
        ("a BOOL", "tinyint(1)", "tinyint(1)"),
        ("a TINYINT(1) UNSIGNED", "tinyint unsigned", "tinyint(1) unsigned"),
        ("a INT ZEROFILL", "int(10) unsigned zerofill", "int(10) unsigned zerofill"),
        ("a YEAR", "year", "year(4)"),
        ("a DEC", "decimal(10,0)", "decimal(10,0)"),
        ("a ENUM('it''s', 'b\\\\s', 'n\\nl')", "enum('it''s','b\\\\s','n\\nl')", "enum('it''s','b\\\\s','n\\nl')"),
    ],
)
def test_types(column: str, mysql: str, old: str) -> None:
    assert one(column, "type", MYSQL) == mysql
    assert (one(column, "type", MYSQL57), one(column, "type", MARIADB)) == (old, old)


@pytest.mark.parametrize(
    "column,mysql,mariadb",
    [
        ("a INT", None, "NULL"),
        ("a INT NOT NULL", None, None),
        ("a INT AUTO_INCREMENT NULL UNIQUE", None, None),
        ("a INT DEFAULT 5", "5", "5"),
        ("a VARCHAR(9) DEFAULT 'it''s'", "it's", "'it''s'"),
        ("a DATETIME(2) DEFAULT NOW(2)", "CURRENT_TIMESTAMP(2)", "current_timestamp(2)"),
        ("a DATETIME DEFAULT NOW()", "CURRENT_TIMESTAMP", "current_timestamp()"),
        ("a DATE DEFAULT '2020-1-2'", "2020-01-02", "'2020-01-02'"),
        ("a BIT(3) DEFAULT b'101'", "b'101'", "b'101'"),
        ("a BINARY(3) DEFAULT 'a'", "0x61", "'a\\0\\0'"),
        ("a VARBINARY(3) DEFAULT ''", "", "''"),
        ("a CHAR(36) DEFAULT (UUID())", "uuid()", "uuid()"),
        ("a DATE DEFAULT (CURRENT_DATE)", "curdate()", "curdate()"),
        ("a INT DEFAULT (1+1)", "(1 + 1)", "(1 + 1)"),
        ("a VARCHAR(9) DEFAULT ('x')", "_utf8mb4\\'x\\'", "'x'"),
    ],
)
def test_defaults(column: str, mysql: str | None, mariadb: str | None) -> None:
    assert (one(column, "default", MYSQL), one(column, "default", MARIADB)) == (mysql, mariadb)


@pytest.mark.parametrize(
    "column,mysql,mariadb,old",
    [
        ("a SERIAL", "auto_increment", "auto_increment", "auto_increment"),
        (
            "a TIMESTAMP DEFAULT NOW() ON UPDATE NOW()",
            "DEFAULT_GENERATED on update CURRENT_TIMESTAMP",
            "on update current_timestamp()",
            "on update CURRENT_TIMESTAMP",
        ),
        (
            "a INT AS (1) STORED INVISIBLE",
            "STORED GENERATED INVISIBLE",
            "STORED GENERATED, INVISIBLE",
            "STORED GENERATED INVISIBLE",
        ),
        ("a INT DEFAULT (1 + 1)", "DEFAULT_GENERATED", "", ""),
    ],
)
def test_extra(column: str, mysql: str, mariadb: str, old: str) -> None:
    assert (one(column, "extra", MYSQL), one(column, "extra", MARIADB)) == (mysql, mariadb)
    assert one(column, "extra", MYSQL57) == old


@pytest.mark.parametrize(
    "columns,mysql,others",
    [
        ("a INT PRIMARY KEY, b INT UNIQUE, c INT, KEY (c, b)", "PRI UNI MUL", "PRI UNI MUL"),
        ("a INT, b INT, c INT, UNIQUE (a, b), UNIQUE (a), UNIQUE (b), UNIQUE (b, c)", "MUL UNI ", "UNI UNI "),
        ("a INT, b INT NOT NULL, c INT, UNIQUE (b, a), UNIQUE (b)", " PRI ", " PRI "),
        ("a INT, b INT NOT NULL, c INT NOT NULL, UNIQUE (c, b), UNIQUE (b)", " PRI PRI", " PRI PRI"),
        ("a VARCHAR(9) NOT NULL, b INT, c INT, UNIQUE (a(3)), KEY ((b + 1), c)", "UNI  ", "UNI  "),
    ],
)
def test_keys_mark_their_first_column(columns: str, mysql: str, others: str) -> None:
    assert " ".join(form["key"] for form in forms(columns)) == mysql
    assert " ".join(form["key"] for form in forms(columns, MARIADB)) == others


def test_a_long_key_of_mariadb_stands_for_no_primary_key() -> None:
    assert [form["key"] for form in forms("a LONGTEXT NOT NULL, UNIQUE (a)", MARIADB)] == ["UNI"]


def test_old_servers_call_utf8mb3_utf8() -> None:
    assert one("a CHAR(3) CHARSET utf8", "collation", MYSQL57) == "utf8_general_ci"
    assert one("a CHAR(3) CHARSET utf8", "charset", MARIADB) == "utf8mb3"


def test_mysql_prints_no_charset_for_members_of_bytes() -> None:
    assert one("a ENUM('x') CHARSET binary", "charset", MYSQL) is None
    assert one("a ENUM('x') CHARSET binary DEFAULT 'x'", "default", MYSQL) == "0x78"
    assert one("a ENUM('x') CHARSET binary", "charset", MARIADB) == "binary"


def test_a_key_over_a_virtual_column_does_not_stand_for_the_primary_key() -> None:
    for how, expected in (("VIRTUAL", ["MUL", ""]), ("STORED", ["PRI", "PRI"])):
        found = forms(f"a INT NOT NULL, b INT AS (a + 1) {how} NOT NULL, UNIQUE u (a, b)")
        assert [column["key"] for column in found] == expected


def test_a_key_over_a_part_of_a_geometry_does_not_stand_for_the_primary_key() -> None:
    assert forms("a GEOMETRYCOLLECTION NOT NULL, UNIQUE u (a(3))", MYSQL57)[0]["key"] == "UNI"
