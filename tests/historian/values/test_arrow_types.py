"""Column types as Arrow types, and as the server prints them."""

from __future__ import annotations

import pyarrow as pa
import pytest

from historian.errors import ValueUnrepresentable
from historian.schema.snapshots import ColumnType
from historian.values.arrow_types import arrow_type, is_readable

CASES = [
    (ColumnType(name="tinyint", length=1), pa.int8(), "tinyint(1)"),
    (ColumnType(name="tinyint", unsigned=True), pa.int16(), "tinyint unsigned"),
    (ColumnType(name="smallint", unsigned=True), pa.int32(), "smallint unsigned"),
    (ColumnType(name="mediumint", unsigned=True), pa.int32(), "mediumint unsigned"),
    (ColumnType(name="int", unsigned=True, zerofill=True), pa.int64(), "int unsigned zerofill"),
    (ColumnType(name="bigint"), pa.int64(), "bigint"),
    (ColumnType(name="bigint", unsigned=True), pa.decimal128(20, 0), "bigint unsigned"),
    (ColumnType(name="decimal", precision=38, scale=30), pa.decimal128(38, 30), "decimal(38,30)"),
    (ColumnType(name="decimal", precision=39, scale=2), pa.string(), "decimal(39,2)"),
    (ColumnType(name="float", precision=7, scale=4), pa.float32(), "float(7,4)"),
    (ColumnType(name="double"), pa.float64(), "double"),
    (ColumnType(name="bit", length=1), pa.bool_(), "bit(1)"),
    (ColumnType(name="bit", length=2), pa.binary(), "bit(2)"),
    (ColumnType(name="date"), pa.date32(), "date"),
    (ColumnType(name="datetime", fraction=6), pa.timestamp("us"), "datetime(6)"),
    (ColumnType(name="timestamp"), pa.timestamp("us", tz="UTC"), "timestamp"),
    (ColumnType(name="time", fraction=3), pa.int64(), "time(3)"),
    (ColumnType(name="year", length=4), pa.int16(), "year(4)"),
    (ColumnType(name="varchar", length=9, charset="latin1"), pa.string(), "varchar(9)"),
    (ColumnType(name="enum", labels=("a", "it's", "x,y")), pa.string(), "enum('a','it''s','x,y')"),
    (ColumnType(name="json"), pa.string(), "json"),
    (ColumnType(name="binary", length=16), pa.binary(), "binary(16)"),
    (ColumnType(name="geomcollection"), pa.binary(), "geomcollection"),
    (ColumnType(name="vector", length=3), pa.binary(), "vector(3)"),
    (ColumnType(name="uuid"), pa.string(), "uuid"),
    (ColumnType(name="inet4"), pa.string(), "inet4"),
    (ColumnType(name="inet6"), pa.string(), "inet6"),
]


@pytest.mark.parametrize("kind,arrow,text", CASES, ids=[text for *_, text in CASES])
def test_type_has_an_arrow_type_and_prints_as_the_servers(kind: ColumnType, arrow: pa.DataType, text: str) -> None:
    assert (arrow, text, True) == (arrow_type(kind), str(kind), is_readable(kind))


def test_a_type_that_is_not_read_is_refused_by_name() -> None:
    xml = ColumnType(name="xmltype")

    assert not is_readable(xml)
    with pytest.raises(ValueUnrepresentable, match=r"not read yet \(xmltype\)"):
        arrow_type(xml)
