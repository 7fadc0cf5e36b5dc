"""Generated columns know what they come from by id, through every rename."""

from __future__ import annotations

import pytest

from historian.names import TableName
from historian.schema.generated_columns import with_sources
from historian.schema.snapshots import Column, ColumnType
from models.ddl_text import MARIADB, after

CREATE = "CREATE TABLE t (id INT PRIMARY KEY, b INT, c INT, s INT AS (b + 1) STORED, v INT AS (c + s) VIRTUAL)"
INT = ColumnType(name="int")


def sources(*statements: str, table: str = "t") -> dict[str, set[str]]:
    """Of each generated column the present names of what it comes from."""
    columns = after(*statements, context=MARIADB).tables[TableName("shop", table)].columns
    names = {column.id: column.name for column in columns}
    return {column.name: {names[source] for source in column.sources} for column in columns if column.generated}


@pytest.mark.parametrize(
    "statements, expected",
    [
        ((), {"s": {"b"}, "v": {"c", "s"}}),
        (("ALTER TABLE t RENAME COLUMN b TO x",), {"s": {"x"}, "v": {"c", "s"}}),
        (("ALTER TABLE t CHANGE b x INT",), {"s": {"x"}, "v": {"c", "s"}}),
        (("ALTER TABLE t RENAME COLUMN b TO c, RENAME COLUMN c TO b",), {"s": {"c"}, "v": {"b", "s"}}),
        (("ALTER TABLE t RENAME COLUMN b TO x", "ALTER TABLE t ADD b INT"), {"s": {"x"}, "v": {"c", "s"}}),
        (("ALTER TABLE t RENAME COLUMN b TO x, ADD y INT AS (x * 2)",), {"s": {"x"}, "v": {"c", "s"}, "y": {"x"}}),
        (("ALTER TABLE t MODIFY s INT AS (c + 1) STORED",), {"s": {"c"}, "v": {"c", "s"}}),
        (("ALTER TABLE t CHANGE s z INT AS (`b` + 1) STORED",), {"z": {"b"}, "v": {"c", "z"}}),
    ],
)
def test_sources_stay_the_same_columns(statements: tuple[str, ...], expected: dict[str, set[str]]) -> None:
    assert sources(CREATE, *statements) == expected


def test_a_copy_comes_from_its_own_columns() -> None:
    assert sources(CREATE, "CREATE TABLE u LIKE t", table="u") == {"s": {"b"}, "v": {"c", "s"}}


@pytest.mark.parametrize(
    "name, expression, named",
    [
        ("b", "`B` + 1", True),
        ("b", "char_length(`bb`)", False),
        ("a`b", "`a``b` + 1", True),
        ('a"b', '"a""b" + 1', True),
        ("my col", "`my col` + 1", True),
        ("b", "/*!50000b*/ + 1", True),
        ("ΟΔΟΣ", "οδοσ + 1", True),
        ("İd", "id + 1", True),
    ],
)
def test_a_name_is_found_however_it_is_written(name: str, expression: str, named: bool) -> None:
    source = Column(id=1, name=name, type=INT)
    made = Column(id=2, name="made", type=INT, generated="stored", generation_expression=expression)
    assert with_sources([source, made])[1].sources == ((1,) if named else ())
