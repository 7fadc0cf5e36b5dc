"""Whether a table's last version takes values of the types that messages tell."""

from __future__ import annotations

import pytest

from connectors.readers.base import SchemaMet
from connectors.tracking.topics.told import completed, fits_told
from historian.ddl import parse_column_type
from historian.names import TableName
from historian.positions.places import Place
from historian.schema.snapshots import Column, ColumnType, Snapshot

NAME = TableName("shop", "t")


def _type(text: str) -> ColumnType:
    is_text = any(each in text for each in ("char", "text", "set"))
    return parse_column_type(text, "utf8mb4", "utf8mb4_bin") if is_text else parse_column_type(text, None, None)


def held_and_met(held: str, told: str) -> tuple[Snapshot, SchemaMet]:
    types = [_type(each) for each in (held, told)]
    columns = [Column(id=number, name="a", type=each) for number, each in zip((1, 0), types, strict=True)]
    snapshot = Snapshot(
        table_id=1, name=NAME, columns=(columns[0],), primary_key=(), charset="utf8mb4", collation="utf8mb4_bin"
    )
    place = Place(gtid="t:0:5", file="t:0", offset=5, ordinal=0)
    met = SchemaMet(place=place, table=NAME, columns=(columns[1],), key=None, event_time_us=1, certainty="columns")
    return snapshot, met


@pytest.mark.parametrize(
    "held, told",
    [
        ("int", "double"),
        ("bigint", "float"),
        ("float", "double"),
        ("float", "bigint"),
        ("double", "bigint"),
        ("double", "int"),
        ("double", "decimal(20,0)"),
        ("int", "date"),
        ("bigint", "datetime(6)"),
        ("bigint", "decimal(9,1)"),
        ("datetime", "bigint"),
        ("date", "datetime(3)"),
        ("varchar(9)", "longblob"),
        ("varbinary(9)", "longtext"),
        ("varchar(9)", "int"),
    ],
)
def test_values_that_a_type_of_a_statement_would_change_make_a_version_of_what_is_told(held: str, told: str) -> None:
    snapshot, met = held_and_met(held, told)
    assert not fits_told(snapshot, met)
    (column,) = completed(met, snapshot).columns
    assert met.columns[0].type == column.type


@pytest.mark.parametrize(
    "held, told",
    [
        ("tinyint", "smallint"),
        ("tinyint(1)", "bit(1)"),
        ("mediumint unsigned", "int"),
        ("bigint unsigned", "decimal(20,0)"),
        ("decimal(9,2)", "double"),
        ("decimal(9,2)", "longtext"),
        ("double", "float"),
        ("float(7,3)", "double"),
        ("varchar(9)", "longtext"),
        ("timestamp", "timestamp(6)"),
        ("point", "geometry"),
    ],
)
def test_types_that_debezium_writes_for_those_of_statements_make_no_version(held: str, told: str) -> None:
    snapshot, met = held_and_met(held, told)
    assert fits_told(snapshot, met)
