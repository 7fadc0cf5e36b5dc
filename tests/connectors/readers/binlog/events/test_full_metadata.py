"""What a TABLE_MAP with FULL metadata makes of a table, type by type."""

from __future__ import annotations

from dataclasses import replace

import pytest

from connectors.readers.base import MappedColumn
from connectors.readers.binlog.events.crosscheck import logged_type
from connectors.readers.binlog.events.full_metadata import described
from historian.ddl import parse_column_type
from historian.names import TableName
from historian.schema.snapshots import Column, Snapshot, UniqueKey

UTF8, BINARY = 255, 63
OLD = Snapshot(
    table_id=1,
    name=TableName("shop", "t"),
    columns=(
        Column(id=1, name="id", type=parse_column_type("int"), nullable=False),
        Column(id=2, name="a", type=parse_column_type("int"), initial="3"),
    ),
    primary_key=(1,),
    unique_keys=(UniqueKey(name="u", columns=(2,)),),
    charset="utf8mb4",
    collation="utf8mb4_0900_ai_ci",
)


def _mapped(
    name: str, type_text: str, *, flavor: str = "mysql", charset: int | None = None, key: bool = False
) -> MappedColumn:
    kind = parse_column_type(type_text, "utf8mb4" if charset == UTF8 else None, None, flavor)
    logged = logged_type(kind, flavor)
    assert logged is not None
    return MappedColumn(
        type=logged[0],
        metadata=logged[1],
        nullable=not key,
        name=name,
        unsigned=kind.unsigned,
        charset=charset,
        labels=kind.labels or None,
        primary_key=key or None,
    )


ID = _mapped("id", "int", key=True)


@pytest.mark.parametrize(
    "text",
    [
        *("tinyint", "smallint unsigned", "mediumint", "bigint unsigned", "float", "double", "decimal(20,6)"),
        *("bit(1)", "bit(17)", "year", "date", "time(3)", "datetime", "timestamp(6)", "json"),
        *("varchar(7)", "varchar(300)", "char(3)", "char(255)", "tinytext", "text", "mediumtext", "longtext"),
        *("varbinary(9)", "binary(255)", "tinyblob", "longblob", "enum('x','y')", "set('a','b','c')"),
    ],
)
def test_a_type_is_read_back(text: str) -> None:
    is_text = any(word in text for word in ("char", "text", "enum", "set("))
    is_bytes = any(word in text for word in ("binary", "blob"))
    found = described(
        OLD, (ID, _mapped("n", text, charset=UTF8 if is_text else BINARY if is_bytes else None)), "mysql", 9
    )

    assert found is not None
    column = found.columns[1]
    assert (9, "n", text, False) == (column.id, column.name, str(column.type), column.initial_known)
    assert column.type.charset == ("utf8mb4" if is_text else None)


@pytest.mark.parametrize("text,charset", [("longtext", 46), ("binary(16)", BINARY), ("varbinary(8)", BINARY)])
def test_what_may_be_of_two_types_on_mariadb_is_not_told(text: str, charset: int) -> None:
    kind = parse_column_type(text, "utf8mb4" if charset == 46 else None, None, "mariadb")
    logged = logged_type(kind, "mariadb")
    assert logged is not None
    column = MappedColumn(type=logged[0], metadata=logged[1], nullable=True, name="n", charset=charset)

    assert described(OLD, (ID, column), "mariadb", 9) is None


def test_a_column_is_the_same_by_its_name_where_its_values_are() -> None:
    same = described(OLD, (ID, _mapped("a", "int")), "mysql", 9)
    wider = described(OLD, (_mapped("a", "bigint"), ID), "mysql", 9)
    other = described(OLD, (ID, _mapped("a", "smallint")), "mysql", 9)
    renamed = described(OLD, (ID, _mapped("b", "int")), "mysql", 9)
    # A statement would widen it; here nobody says that there was one, and not two.
    another = described(OLD, (ID, _mapped("a", "double")), "mysql", 9)

    assert same == OLD
    assert wider is not None
    assert other is not None
    assert renamed is not None
    assert another is not None
    assert [(2, "bigint", "3"), (1, "int", None)] == [(c.id, str(c.type), c.initial) for c in wider.columns]
    assert [[1, 9]] * 3 == [[c.id for c in found.columns] for found in (other, renamed, another)]
    assert (OLD.unique_keys, ()) == (wider.unique_keys, renamed.unique_keys)


def test_without_names_or_the_order_of_a_new_key_nothing_is_told() -> None:
    assert described(OLD, (replace(ID, name=None),), "mysql", 9) is None
    assert described(OLD, (ID, _mapped("a", "int", key=True)), "mysql", 9) is None
    without = described(OLD, (replace(ID, primary_key=None), _mapped("a", "int")), "mysql", 9)
    assert without is not None
    assert without.primary_key == ()
