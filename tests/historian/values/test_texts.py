"""The server's text as values."""

# ruff: noqa: DTZ001 a DATETIME has no time zone
from __future__ import annotations

from datetime import date, datetime, timezone
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from historian.errors import ValueUnrepresentable
from historian.schema.snapshots import Column, ColumnType
from historian.values.arrow_types import arrow_type
from historian.values.texts import Value, default_scalar, initial_scalar, initial_value


def column(name: str, initial: str | None, **of_type: object) -> Column:
    return Column(id=1, name="n", type=ColumnType(name=name, **of_type), initial=initial)  # type: ignore[arg-type]


HOUR_US = 3_600_000_000

CASES: list[tuple[Column, Value]] = [
    (column("int", None), None),
    (column("tinyint", "-128"), -128),
    (column("int", "4294967295", unsigned=True), 4294967295),
    (column("bigint", "18446744073709551615", unsigned=True), Decimal(2**64 - 1)),
    (column("bigint", "-9223372036854775808"), -(2**63)),
    (column("year", "2024", length=4), 2024),
    (column("year", "0000", length=4), 0),
    (column("decimal", "-12.50", precision=10, scale=2), Decimal("-12.50")),
    (column("decimal", "1" * 39 + ".5", precision=41, scale=1), "1" * 39 + ".5"),
    (column("double", "-0.1"), -0.1),
    (column("double", "1e300"), 1e300),
    (column("float", "0.1"), 0.1),
    (column("bit", "b'1'", length=1), True),
    (column("bit", "b'0'"), False),
    (column("bit", "b'100000001'", length=9), b"\x01\x01"),
    (column("bit", "0x41", length=8), b"A"),
    (column("bit", "0b101", length=3), b"\x05"),
    (column("bit", "b''", length=3), b"\x00"),
    (column("date", "2024-02-29"), date(2024, 2, 29)),
    (column("date", "0000-00-00"), None),
    (column("date", "2024-00-10"), None),
    (column("datetime", "2024-02-29 23:59:58"), datetime(2024, 2, 29, 23, 59, 58)),
    (column("datetime", "0001-01-01 00:00:00.5", fraction=1), datetime(1, 1, 1, 0, 0, 0, 500_000)),
    (column("datetime", "0000-00-00 00:00:00"), None),
    (column("timestamp", "2024-02-29 23:59:58.000001", fraction=6), datetime(2024, 2, 29, 23, 59, 58, 1, timezone.utc)),
    (column("time", "12:00:00"), 12 * HOUR_US),
    (column("time", "-838:59:59"), -(839 * HOUR_US - 1_000_000)),
    (column("time", "00:00:00.000007", fraction=6), 7),
    (column("varchar", "", length=5), ""),
    (column("varchar", "0x41", length=5), "0x41"),
    (column("enum", "b", labels=("a", "b")), "b"),
    (column("set", "a,b", labels=("a", "b")), "a,b"),
    (column("json", "null"), "null"),
    (column("binary", "0x41", length=3), b"A\0\0"),
    (column("binary", "", length=2), b"\0\0"),
    (column("varbinary", "0x00ff", length=3), b"\x00\xff"),
    (column("blob", "é"), "é".encode()),
    (column("point", "0x"), b""),
    (column("vector", "0x0000803F", length=1), b"\0\0\x80?"),
    (column("uuid", "123E4567e89b12d3a456426655440000"), "123e4567-e89b-12d3-a456-426655440000"),
    (column("inet4", "10.0.0.1"), "10.0.0.1"),
    (column("inet6", "2001:DB8:0::1"), "2001:db8::1"),
    (column("inet6", "1:0:2:3:4:5:6:7"), "1::2:3:4:5:6:7"),
    (column("inet6", "::ffff:1.2.3.4"), "::ffff:1.2.3.4"),
]


@pytest.mark.parametrize("of,expected", CASES, ids=lambda case: str(case.type) if isinstance(case, Column) else "")
def test_text_of_the_server_becomes_a_value_of_the_columns_type(of: Column, expected: Value) -> None:
    value, scalar = initial_value(of), initial_scalar(of)

    assert (type(expected), expected) == (type(value), value)
    assert arrow_type(of.type) == scalar.type
    assert scalar == pa.scalar(expected, arrow_type(of.type))


def test_a_float_is_rounded_to_what_the_server_stores() -> None:
    assert pa.array([0.1], pa.float32())[0] == initial_scalar(column("float", "0.1"))


@pytest.mark.parametrize(
    "of",
    [
        column("int", "x"),
        column("decimal", "x", precision=5, scale=0),
        column("date", "2024-02-30"),
        column("date", "yesterday"),
        column("datetime", "2024-02-29"),
        column("time", "12:60:00"),
        column("time", "noon"),
        column("uuid", "none"),
        column("inet6", "1:2"),
        column("bit", "b'111'", length=2),
        column("bit", "two", length=2),
    ],
    ids=lambda of: f"{of.type} {of.initial}",
)
def test_text_that_is_no_value_of_the_type_is_refused(of: Column) -> None:
    with pytest.raises(ValueUnrepresentable, match="none of its type") as caught:
        initial_value(of)

    assert repr(of.initial) in str(caught.value)


@pytest.mark.parametrize(
    "of", [column("tinyint", "300"), column("decimal", "1000", precision=3, scale=0)], ids=lambda of: str(of.type)
)
def test_a_value_that_the_type_cannot_hold_is_refused(of: Column) -> None:
    with pytest.raises(ValueUnrepresentable, match="does not fit"):
        initial_scalar(of)


def test_a_value_that_only_the_server_knows_is_refused() -> None:
    with pytest.raises(ValueUnrepresentable, match="only the server knows"):
        initial_value(Column(id=1, name="n", type=ColumnType(name="int"), initial_known=False))


@pytest.mark.parametrize(
    "kind, default, value",
    [
        (ColumnType(name="int"), "5", 5),
        (ColumnType(name="int"), None, None),
        (ColumnType(name="decimal", precision=12, scale=3), "1.250", Decimal("1.250")),
        (ColumnType(name="bit", length=9), "b'101'", b"\x00\x05"),
        (ColumnType(name="float"), "0", 0.0),
        (ColumnType(name="enum", labels=("a", "b")), "b", "b"),
    ],
)
def test_a_column_that_an_insert_does_not_name_has_its_default(
    kind: ColumnType, default: str | None, value: Any
) -> None:
    column = Column(id=1, name="c", type=kind, default=default)
    assert default_scalar(column, arrow_type(kind)).as_py() == value


def test_without_a_default_a_column_that_cannot_be_null_has_its_types_zero() -> None:
    column = Column(id=1, name="c", type=ColumnType(name="varchar", length=9), nullable=False)
    assert default_scalar(column, pa.string()).as_py() == ""


@pytest.mark.parametrize(
    "column",
    [
        Column(id=1, name="c", type=ColumnType(name="int"), default="uuid()", default_is_expression=True),
        Column(id=1, name="c", type=ColumnType(name="int"), auto_increment=True, nullable=False),
        Column(id=1, name="c", type=ColumnType(name="int"), generated="virtual"),
        Column(id=1, name="c", type=ColumnType(name="timestamp"), default="2020-01-01 00:00:00"),
        Column(id=1, name="c", type=ColumnType(name="timestamp"), nullable=False),
        Column(id=1, name="c", type=ColumnType(name="float"), default="1.23457"),
    ],
)
def test_a_default_that_only_the_server_knows_is_not_guessed(column: Column) -> None:
    with pytest.raises(ValueUnrepresentable, match="only the server knows"):
        default_scalar(column, arrow_type(column.type))


def test_a_default_of_a_date_is_the_servers_text_where_that_is_wanted() -> None:
    column = Column(id=1, name="c", type=ColumnType(name="datetime", fraction=3), default="2020-01-02 03:04:05.000")
    assert default_scalar(column, pa.string()).as_py() == "2020-01-02 03:04:05.000"
