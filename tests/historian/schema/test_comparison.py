from dataclasses import replace

from historian.names import TableName
from historian.schema.comparison import differences
from historian.schema.snapshots import Snapshot
from models.ddl_text import after


def made(body: str) -> Snapshot:
    return after(f"CREATE TABLE t ({body})").tables[TableName("shop", "t")]


def test_equal_schemas_differ_in_nothing_but_ids() -> None:
    one = made("a INT DEFAULT 5, b CHAR(2), PRIMARY KEY (a), UNIQUE (b)")
    other = replace(
        one,
        table_id=9,
        columns=tuple(replace(column, id=column.id + 10) for column in one.columns),
        primary_key=tuple(column + 10 for column in one.primary_key),
        unique_keys=tuple(
            replace(key, name="z", columns=tuple(c + 10 for c in key.columns)) for key in one.unique_keys
        ),
    )
    assert differences(one, other) == ()


def test_each_difference_is_a_line() -> None:
    one = made("a INT, b INT NOT NULL DEFAULT 5, c CHAR(1) COLLATE latin1_bin, d DATETIME, PRIMARY KEY (a), UNIQUE (b)")
    other = made("b BIGINT, a INT, c CHAR(1) COLLATE latin1_german1_ci, e INT, PRIMARY KEY (b)")
    assert differences(one, other) == (
        "column a: expected NOT NULL, found NULL",
        "column b: expected int, found bigint",
        "column b default: expected '5', found none",
        "column c: expected char(1) latin1_bin, found char(1) latin1_german1_ci",
        "column d: expected datetime, found no such column",
        "column e: expected no such column, found int",
        "order of columns: expected a, b, c, found b, a, c",
        "primary key: expected a, found b",
        "unique keys: expected (b), found none",
    )


def test_what_servers_print_differently_is_not_compared() -> None:
    one = made("a INT DEFAULT (1 + 2), b TIMESTAMP NULL DEFAULT '2020-01-01 00:00:00', c VARBINARY(3) DEFAULT 0x610062")
    other = made("a INT DEFAULT ((1+2)), b TIMESTAMP NULL DEFAULT '2020-01-01 02:00:00', c VARBINARY(3) DEFAULT 0x61")
    assert differences(one, other) == ()


def test_a_default_that_mysql_hides_is_not_compared() -> None:
    one = made("a INT DEFAULT (1 + 2), b INT DEFAULT 1")
    hidden = replace(one.columns[0], default="", default_is_expression=True)
    assert differences(one, replace(one, columns=(hidden, one.columns[1]))) == ()
