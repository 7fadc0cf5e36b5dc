"""Which type changes keep values: pairs as the servers convert them, and what projection makes of values at the ends of ranges."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal
from itertools import product
from typing import Any

import pyarrow as pa
import pytest

from historian.changelog.operations import CHUNK_COLUMNS, physical_name
from historian.changelog.projection import project
from historian.errors import ValueUnrepresentable
from historian.schema.applying import apply_all
from historian.schema.edits import ChangeType
from historian.schema.snapshots import Catalog, Column, ColumnType, Snapshot
from historian.schema.type_compatibility import is_compatible, resembles, retyped
from historian.values.arrow_types import arrow_type
from historian.values.texts import initial_scalar
from models.timelines import snapshot


def kind(text: str) -> ColumnType:
    """``name[(length | precision,scale | 'label',...)] [unsigned] [charset]``."""
    head, *rest = text.split(" ")
    name, _, inside = head.rstrip(")").partition("(")
    charset = next((word for word in rest if word != "unsigned"), None)
    made = ColumnType(name=name, unsigned="unsigned" in rest, charset=charset, collation=charset and f"{charset}_bin")
    if inside.startswith("'"):
        return replace(made, labels=tuple(label.strip("'") for label in inside.split(",")))
    if "," in inside:
        precision, scale = map(int, inside.split(","))
        return replace(made, precision=precision, scale=scale)
    if inside and name in {"datetime", "timestamp", "time"}:
        return replace(made, fraction=int(inside))
    return replace(made, length=int(inside)) if inside else made


KEPT = """
tinyint -> smallint | tinyint -> bigint | mediumint -> int | int -> bigint | tinyint(1) -> tinyint
tinyint unsigned -> smallint | int unsigned -> bigint | int unsigned -> bigint unsigned | bigint -> bigint
float -> double | float unsigned -> double | float(7,4) -> float | float(7,4) -> double | double(9,3) -> double
decimal(10,2) -> decimal(12,2) | decimal(10,2) -> decimal(12,4) | decimal(10,2) unsigned -> decimal(10,2)
decimal(40,2) -> decimal(50,2)
varchar(10) latin1 -> varchar(20) latin1 | varchar(10) latin1 -> varchar(10) utf8mb4 | varchar(10) latin1 -> text latin1
char(10) utf8mb4 -> varchar(10) utf8mb4 | char(10) utf8mb4 -> char(11) utf8mb4 | tinytext latin1 -> text latin1
varchar(63) utf8mb4 -> tinytext utf8mb4 | tinytext latin1 -> varchar(255) latin1 | tinytext latin1 -> text utf8mb4
varchar(9) utf8mb3 -> varchar(9) utf8mb4 | varchar(9) utf8mb3 -> varchar(9) ucs2 | varchar(9) ascii -> varchar(9) latin1
text utf8mb4 -> text utf8mb4 | tinytext utf16 -> varchar(127) utf16 | varchar(9) gbk -> varchar(9) utf8mb4
varbinary(10) -> varbinary(11) | binary(4) -> varbinary(4) | varbinary(255) -> tinyblob | blob -> longblob
enum('a','b') utf8mb4 -> enum('a','b','c') utf8mb4 | enum('a','b') utf8mb4 -> enum('c','b','a') utf8mb4
set('a','b') utf8mb4 -> set('a','x','b') utf8mb4
datetime -> datetime(3) | timestamp(3) -> timestamp(6) | time(1) -> time(2)
bit(9) -> bit(16) | point -> geometry | geomcollection -> geometrycollection
"""

CROSSED = """
tinyint -> decimal(10,0) | tinyint -> decimal(14,4) | tinyint unsigned -> decimal(10,0) unsigned | tinyint(1) -> double
smallint -> decimal(12,2) | smallint unsigned -> decimal(10,0) | mediumint -> decimal(10,0) | mediumint unsigned -> double
int -> decimal(10,0) | int -> decimal(12,2) | int -> decimal(38,28) | int -> double | tinyint unsigned -> double unsigned
int unsigned -> decimal(20,0) | bigint -> decimal(20,0) | bigint -> decimal(22,2) | bigint unsigned -> decimal(25,5)
bigint unsigned -> decimal(20,0) unsigned | date -> datetime | date -> datetime(6)
"""

REWRITTEN = """
smallint -> tinyint | int -> int unsigned | int -> bigint unsigned | int unsigned -> int | bigint unsigned -> bigint
int -> varchar(20) utf8mb4 | int -> decimal(9,0) | int -> decimal(11,2) | int -> double unsigned | year -> smallint
tinyint -> decimal(3,0) | int unsigned -> decimal(19,0) | bigint -> decimal(19,0) | bigint -> double | int -> float
int -> double(20,2) | int unsigned -> double | int -> decimal(10,0) unsigned | bigint -> decimal(40,0) | year -> decimal(10,0)
bit(1) -> decimal(10,0) | decimal(10,0) -> double | decimal(10,0) -> bigint | double -> decimal(20,2) | date -> timestamp
date -> varchar(20) utf8mb4 | datetime -> date | float(7,4) -> double(7,4) | year -> int | bit(1) -> bit(8)
bit(8) -> bit(9) | bit(16) -> bit(9)
double -> float | float -> float(7,4) | float(7,4) -> double(9,3) | double -> double unsigned
decimal(10,2) -> decimal(10,3) | decimal(10,2) -> decimal(12,1) | decimal(10,2) -> decimal(10,2) unsigned
decimal(38,2) -> decimal(40,2) | decimal(40,2) -> decimal(42,4)
varchar(20) latin1 -> varchar(10) latin1 | varchar(10) utf8mb4 -> varchar(10) latin1
varchar(10) latin1 -> char(10) latin1 | text latin1 -> tinytext latin1
varchar(64) utf8mb4 -> tinytext utf8mb4 | text latin1 -> text utf8mb4
text latin1 -> varchar(255) latin1 | varchar(9) utf8mb4 -> varchar(9) utf8mb3 | varchar(9) ascii -> varchar(9) swe7
varchar(9) latin1 -> varchar(9) latin2 | varchar(9) latin1 -> varbinary(9) | varbinary(9) -> varchar(9) latin1
binary(4) -> binary(5) | varbinary(4) -> binary(4) | blob -> tinyblob | varbinary(256) -> tinyblob
enum('a','b') utf8mb4 -> enum('a') utf8mb4 | enum('a','b') utf8mb4 -> enum('A','b') utf8mb4
enum('a') utf8mb4 -> set('a') utf8mb4 | set('a','b') utf8mb4 -> set('b','a') utf8mb4
enum('a') utf8mb4 -> enum('a') latin1
datetime(3) -> datetime | datetime -> timestamp | timestamp -> datetime | time -> datetime
geometry -> point | json -> text utf8mb4
"""


def changes(table_of: str) -> list[tuple[str, str]]:
    return [tuple(pair.strip().split(" -> ")) for pair in table_of.replace("\n", " | ").split(" | ") if pair.strip()]  # type: ignore[misc]


@pytest.mark.parametrize("old,new", changes(KEPT))
def test_type_changes_that_keep_every_value(old: str, new: str) -> None:
    assert is_compatible(kind(old), kind(new))
    assert resembles(kind(old), kind(new))


@pytest.mark.parametrize("old,new", changes(CROSSED))
def test_type_changes_that_keep_every_value_as_another_kind_of_it(old: str, new: str) -> None:
    assert is_compatible(kind(old), kind(new))
    assert not is_compatible(kind(new), kind(old))
    assert not resembles(kind(old), kind(new))


@pytest.mark.parametrize("old,new", changes(REWRITTEN))
def test_type_changes_that_may_rewrite_a_value(old: str, new: str) -> None:
    assert not is_compatible(kind(old), kind(new))
    assert not resembles(kind(old), kind(new))


@pytest.mark.parametrize(
    "old,new",
    [
        (ColumnType(name="date", options="text"), ColumnType(name="datetime", options="text")),
        (ColumnType(name="tinyint", length=1, options="boolean"), kind("decimal(10,0)")),
        (ColumnType(name="bigint", unsigned=True, options="int64"), kind("decimal(20,0)")),
        (ColumnType(name="bigint", unsigned=True, options="text"), kind("decimal(20,0)")),
    ],
)
def test_values_in_forms_of_their_own_are_not_carried_to_another_kind(old: ColumnType, new: ColumnType) -> None:
    assert not is_compatible(old, new)


@pytest.mark.parametrize("policy", ["", "error", "dead_letter"])
def test_a_date_that_is_none_is_null_as_a_time_too(policy: str) -> None:
    assert is_compatible(ColumnType(name="date", options=policy), ColumnType(name="datetime", options=policy))


NUMBERS = [
    *(kind(f"{name}int{sign}") for name in ("tiny", "small", "medium", "", "big") for sign in ("", " unsigned")),
    *(kind(name) for name in ("float", "double", "float unsigned", "year", "decimal(60,2)")),
    *(kind(f"decimal({p},{s})") for p in (3, 9, 10, 12, 19, 20, 22, 38) for s in (0, 2) if s < p),
]
TIMES = [kind(name) for name in ("date", "datetime", "datetime(6)", "timestamp(3)", "time")]


def ends(of: ColumnType) -> list[Any]:
    """The least and the greatest values of a type, and some that are not round in another."""
    arrow = arrow_type(of)
    bits = {"tinyint": 8, "smallint": 16, "mediumint": 24, "int": 32, "bigint": 64}.get(of.name)
    if bits:
        found = [0, 2**bits - 1] if of.unsigned else [-(2 ** (bits - 1)), -1, 2 ** (bits - 1) - 1]
        return [Decimal(n) for n in found] if pa.types.is_decimal(arrow) else found
    if of.name == "decimal":
        largest = Decimal(f"{10 ** (of.precision or 10) - 1}E-{of.scale or 0}")
        return [f"{largest:f}"] if pa.types.is_string(arrow) else [largest, largest.copy_negate()]
    if of.name in ("float", "double"):
        return [0.10000000149011612, 3.4028234663852886e38, *([0.1, 1.5e308] if of.name == "double" else [])]
    fraction = [datetime(2024, 1, 1, 0, 0, 0, 10 ** (6 - of.fraction))] if of.fraction else []  # noqa: DTZ001
    if of.name == "datetime":
        return [datetime(1000, 1, 1), datetime(9999, 12, 31, 23, 59, 59), *fraction]  # noqa: DTZ001 it has no zone
    return {
        "date": [date(1000, 1, 1), date(9999, 12, 31)],
        "year": [0, 1901, 2155],
        "time": [-1, 3_020_399_000_000],
    }.get(of.name, [])


def table_of(of: ColumnType, **more: Any) -> Snapshot:
    return replace(snapshot(1, "t"), columns=(Column(id=1, name="c", type=of, **more),))


def projected(values: list[Any], old: ColumnType, new: ColumnType) -> list[Any]:
    count = len(values)
    system = [pa.nulls(count, field.type) for field in CHUNK_COLUMNS]
    fields = [*CHUNK_COLUMNS, pa.field(physical_name(1), arrow_type(old))]
    rows = pa.RecordBatch.from_arrays([*system, pa.array(values, arrow_type(old))], schema=pa.schema(fields))
    found: list[Any] = project(rows, table_of(old), table_of(new)).column("h1").to_pylist()
    return found


@pytest.mark.parametrize("kinds", [NUMBERS, TIMES], ids=["numbers", "times"])
def test_what_is_carried_is_projected_to_the_same_values(kinds: list[ColumnType]) -> None:
    pairs = [(old, new) for old, new in product(kinds, kinds) if is_compatible(old, new)]
    assert len(pairs) > len(kinds)
    for old, new in pairs:
        values = [*ends(old), None]
        wanted = [datetime(v.year, v.month, v.day) if type(v) is date and new.name != "date" else v for v in values]  # noqa: DTZ001
        assert projected(values, old, new) == wanted, f"{old} as {new}"


@pytest.mark.parametrize("old,new", [("datetime", "date"), ("date", "timestamp"), ("date", "varchar(20) utf8mb4")])
def test_times_are_not_projected_to_others(old: str, new: str) -> None:
    with pytest.raises(ValueUnrepresentable, match="cannot be read as another"):
        projected([None], kind(old), kind(new))


@pytest.mark.parametrize(
    "old,new,initial,expected",
    [
        ("int", "decimal(12,2)", "-7", Decimal(-7)),
        ("int unsigned", "decimal(20,0)", "0000000007", Decimal(7)),
        ("int", "double", "42", 42.0),
        ("float", "double", "0.1", 0.10000000149011612),
        ("float(7,4)", "double", "0.1000", 0.10000000149011612),
        ("date", "datetime", "2024-02-29", datetime(2024, 2, 29)),  # noqa: DTZ001 it has no zone
        ("date", "datetime(3)", "2024-02-29", datetime(2024, 2, 29)),  # noqa: DTZ001
        ("date", "datetime", "0000-00-00", None),
        ("date", "datetime", None, None),
        ("decimal(5,2)", "decimal(7,4)", "1.50", Decimal("1.5")),
    ],
)
def test_what_rows_from_before_a_column_read_follows_its_type(
    old: str, new: str, initial: str | None, expected: Any
) -> None:
    table = table_of(kind(old), initial=initial)
    catalog = Catalog(tables={table.name: table})
    edit = ChangeType(table=table.name, column_id=1, old=kind(old), new=kind(new))
    (column,) = apply_all((edit,), catalog).tables[table.name].columns

    assert expected == initial_scalar(column).as_py()
    assert column == retyped(table.columns[0], kind(new))


def test_what_only_the_server_knows_stays_unknown() -> None:
    column = Column(id=1, name="c", type=kind("date"), initial_known=False)
    assert retyped(column, kind("datetime")) == replace(column, type=kind("datetime"))
