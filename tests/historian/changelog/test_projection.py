"""Rows of one schema read under another, against a model that goes row by row."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from historian.changelog.operations import CHUNK_COLUMNS, physical_name
from historian.changelog.projection import project
from historian.errors import ValueUnrepresentable
from historian.schema.applying import apply_all
from historian.schema.snapshots import Catalog, Column, ColumnType, Snapshot
from historian.values.arrow_types import arrow_type
from models.changes import WHEN, appended
from models.timelines import BIGINT, INT, random_edits, snapshot

SYSTEM = [field.name for field in CHUNK_COLUMNS]


def table_of(*columns: Column) -> Snapshot:
    return replace(snapshot(1, "t"), columns=columns)


def of(kind: ColumnType, column_id: int = 1, **more: Any) -> Column:
    return Column(id=column_id, name=f"c{column_id}", type=kind, **more)


def test_columns_are_found_by_id_added_ones_filled_and_dropped_ones_left_out() -> None:
    written = table_of(of(INT, 1), of(INT, 2), of(INT, 3))
    target = table_of(of(INT, 5, initial="7"), replace(of(INT, 3), name="renamed"), of(INT, 1), of(INT, 6))

    projected = project(appended(written, (1, 2, 3), (4, None, None)), written, target)

    assert [*SYSTEM, "h5", "h3", "h1", "h6"] == projected.schema.names
    assert [(7, 3, 1, None), (7, None, 4, None)] == [
        tuple(row[name] for name in ("h5", "h3", "h1", "h6")) for row in projected.to_pylist()
    ]


def test_system_columns_are_kept() -> None:
    written = table_of(of(INT))
    rows = appended(written, (1,), (2,))

    assert rows.select(SYSTEM) == project(rows, written, table_of()).select(SYSTEM)
    assert 2 == project(rows, written, table_of()).num_rows


def test_unchanged_columns_are_not_copied() -> None:
    written = table_of(of(INT))
    rows = appended(written, (1,))

    projected = project(rows, written, written)

    assert rows.column("h1").buffers()[1].address == projected.column("h1").buffers()[1].address


def test_no_rows_project_to_no_rows() -> None:
    written, target = table_of(of(INT)), table_of(of(BIGINT), of(INT, 2, initial="1"))

    projected = project(appended(written), written, target)

    assert (0, pa.int64(), pa.int32()) == (
        projected.num_rows,
        projected.schema.field("h1").type,
        projected.schema.field("h2").type,
    )


UNSIGNED_BIGINT = ColumnType(name="bigint", unsigned=True)
MONEY = ColumnType(name="decimal", precision=10, scale=2)
WIDER = ColumnType(name="decimal", precision=12, scale=4)
SMALL = ColumnType(name="smallint")
FLOAT, DOUBLE = ColumnType(name="float"), ColumnType(name="double")


@pytest.mark.parametrize(
    "old,new,values,expected",
    [
        (INT, BIGINT, [1, None, -(2**31)], [1, None, -(2**31)]),
        (BIGINT, INT, [1, None], [1, None]),
        (INT, UNSIGNED_BIGINT, [7], [Decimal(7)]),
        (UNSIGNED_BIGINT, BIGINT, [Decimal(7)], [7]),
        (MONEY, WIDER, [Decimal("1.50"), None], [Decimal("1.5000"), None]),
        (WIDER, MONEY, [Decimal("1.5000")], [Decimal("1.50")]),
        (INT, MONEY, [12], [Decimal("12.00")]),
        (FLOAT, DOUBLE, [0.5, None], [0.5, None]),
        (DOUBLE, FLOAT, [0.5, None], [0.5, None]),
        (ColumnType(name="enum", labels=("a",)), ColumnType(name="varchar", length=9), ["a", None], ["a", None]),
        (ColumnType(name="varbinary", length=2), ColumnType(name="blob"), [b"\x00"], [b"\x00"]),
        (ColumnType(name="bit", length=9), ColumnType(name="bit", length=16), [b"\x01\x00"], [b"\x01\x00"]),
    ],
)
def test_values_are_carried_to_another_type_exactly(
    old: ColumnType, new: ColumnType, values: list[Any], expected: list[Any]
) -> None:
    written, target = table_of(of(old)), table_of(of(new))

    projected = project(appended(written, *((value,) for value in values)), written, target)

    assert pa.array(expected, arrow_type(new)) == projected.column("h1")


@pytest.mark.parametrize(
    "old,new,value",
    [
        (INT, SMALL, 40_000),
        (UNSIGNED_BIGINT, BIGINT, Decimal(2**64 - 1)),
        (WIDER, MONEY, Decimal("1.5001")),
        (INT, MONEY, 2_000_000_000),
        (MONEY, INT, Decimal("1.50")),
        (DOUBLE, FLOAT, 0.1),
        (BIGINT, DOUBLE, 2**53 + 1),
        (DOUBLE, MONEY, 0.125),
    ],
)
def test_a_value_that_does_not_fit_is_refused_by_table_and_column(old: ColumnType, new: ColumnType, value: Any) -> None:
    written, target = table_of(of(old)), table_of(of(new))

    with pytest.raises(ValueUnrepresentable, match=r"shop\.t\.c1"):
        project(appended(written, (value,)), written, target)


@pytest.mark.parametrize(
    "old,new,value",
    [
        (ColumnType(name="time"), BIGINT, 1),
        (ColumnType(name="year"), SMALL, 2024),
        (INT, ColumnType(name="varchar", length=9), 1),
        (ColumnType(name="datetime"), ColumnType(name="date"), WHEN.replace(tzinfo=None)),
        (ColumnType(name="datetime"), ColumnType(name="timestamp"), WHEN.replace(tzinfo=None)),
        (ColumnType(name="varchar", length=9), ColumnType(name="blob"), "a"),
        (ColumnType(name="bit", length=8), ColumnType(name="bit", length=16), b"a"),
        (MONEY, ColumnType(name="decimal", precision=40, scale=2), Decimal("1.50")),
    ],
)
def test_types_whose_values_mean_something_else_are_refused(old: ColumnType, new: ColumnType, value: Any) -> None:
    written, target = table_of(of(old)), table_of(of(new))

    with pytest.raises(ValueUnrepresentable, match="cannot be read as another"):
        project(appended(written, (value,)), written, target)


def test_a_column_that_only_the_server_could_fill_is_refused() -> None:
    with pytest.raises(ValueUnrepresentable, match="only the server knows"):
        project(
            appended(table_of(of(INT)), (1,)), table_of(of(INT)), table_of(of(INT), of(INT, 2, initial_known=False))
        )


@settings(deadline=None, max_examples=100)
@given(st.integers(0, 2**32))
def test_projection_between_versions_equals_a_model_row_by_row(seed: int) -> None:
    random = Random(seed)
    catalog, versions = Catalog(), list[Snapshot]()
    for _ in range(20):
        catalog = apply_all(random_edits(random, catalog), catalog)
        versions += [t for t in catalog.tables.values() if t.columns]
    written = random.choice(versions)
    target = random.choice([v for v in versions if v.table_id == written.table_id])
    rows = [
        tuple(random.choice((None, random.randint(-9, 9))) for _ in written.columns)
        for _ in range(random.randint(0, 6))
    ]

    projected = project(appended(written, *rows), written, target)

    expected = []
    for row in rows:
        values = dict(zip((c.id for c in written.columns), row, strict=True))
        expected.append([values[c.id] if c.id in values else c.initial and int(c.initial) for c in target.columns])
    columns = [projected.column(physical_name(c.id)) for c in target.columns]
    assert expected == [[column[i].as_py() for column in columns] for i in range(len(rows))]
    assert [arrow_type(c.type) for c in target.columns] == [column.type for column in columns]
