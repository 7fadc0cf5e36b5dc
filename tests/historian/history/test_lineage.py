"""The life of a column, over renames of the column and of its table."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from historian.errors import PositionAhead, UnknownTable
from historian.history.history import History
from historian.history.lineage import column_named, lineage
from historian.names import TableName
from historian.schema.applying import apply_all
from historian.schema.edits import (
    AddColumn,
    ChangeType,
    DropColumn,
    DropTable,
    ForgetTable,
    MoveColumn,
    RenameColumn,
    RenameTable,
    SetPrimaryKey,
)
from historian.schema.snapshots import Catalog, Column
from models.timelines import BIGINT, INT, A, capture, create, position, random_log, statement, table

T, U = table("t"), table("u")


def told(history: History, column_id: int, table_id: int = 1) -> list[tuple[int, str, str | None, str | None]]:
    return [
        (
            step.version.number,
            step.version.name.table,
            None if step.column is None else step.column.name,
            None if step.column is None else str(step.column.type),
        )
        for step in lineage(history, column_id, table_id)
    ]


@pytest.fixture
def history() -> History:
    return History.of(
        [
            capture(create(1, "t", "a", "b")),
            statement(2, f"{A}:2", RenameColumn(table=T, column_id=2, old="b", new="c")),
            statement(3, f"{A}:3", MoveColumn(table=T, column_id=2, after=0), SetPrimaryKey(table=T, columns=(2,))),
            statement(4, f"{A}:4", RenameTable(table=T, table_id=1, new=U)),
            statement(5, f"{A}:5", ChangeType(table=U, column_id=2, old=INT, new=BIGINT)),
            statement(6, f"{A}:6", DropColumn(table=U, column_id=2, name="c")),
            statement(7, f"{A}:7", AddColumn(table=U, column=Column(id=3, name="c", type=INT), after=0)),
            statement(8, f"{A}:8", ForgetTable(table=U, reason="odd")),
            statement(9, f"{A}:9", create(2, "u", "c", first=4)),
            statement(10, f"{A}:10", DropTable(table=U, table_id=2)),
        ],
        resolved=position(f"{A}:1-10", 99_000),
    )


def test_names_and_types_are_followed_over_renames_of_column_and_table(history: History) -> None:
    assert [
        (1, "t", "b", "int"),
        (2, "t", "c", "int"),
        (4, "u", "c", "int"),
        (5, "u", "c", "bigint"),
        (6, "u", None, None),
    ] == told(history, 2)


def test_a_column_ends_where_its_table_is_not_known_any_more_and_says_so(history: History) -> None:
    assert [(7, "u", "c", "int"), (8, "u", None, None)] == told(history, 3)
    assert "odd" == lineage(history, 3, 1)[-1].version.unknown
    assert [(9, "u", "c", "int"), (10, "u", None, None)] == told(history, 4, 2)


def test_columns_of_one_name_are_told_apart_by_position(history: History) -> None:
    assert (4, 2) == column_named(history, U, "C")
    assert (2, 1) == column_named(history, T, "c")
    assert [(2, 1), (3, 1), (4, 2)] == [
        column_named(history, U, "c", position(f"{A}:1-{n}", 1000 * n + 500)) for n in (5, 7, 9)
    ]


@pytest.mark.parametrize(
    "name,column,at,error,said",
    [
        ("nope", "a", None, UnknownTable, "no such table"),
        ("u", "z", None, UnknownTable, "one of c"),
        ("t", "c", position(f"{A}:1", 1500), UnknownTable, "one of a, b"),
        ("t", "c", position(f"{A}:1-50", 99_500), PositionAhead, "not been read"),
    ],
)
def test_what_is_not_there_is_said(
    history: History, name: str, column: str, at: object, error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        column_named(history, table(name), column, at)  # type: ignore[arg-type]


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 2**32), st.integers(1, 14))
def test_lineage_is_what_catalogs_say_of_the_id(seed: int, transactions: int) -> None:
    log = random_log(Random(seed), transactions)
    history = History.of(log.entries, resolved=log.end)
    expected: dict[tuple[int, int], list[tuple[int, tuple[TableName, Column] | None]]] = {}
    catalog = Catalog()

    for entry in log.entries:
        catalog = apply_all(entry.edits, catalog)
        seen = {
            (column.id, snapshot.table_id): (snapshot.name, column)
            for snapshot in catalog.tables.values()
            for column in snapshot.columns
        }
        for key in expected.keys() | seen.keys():
            steps = expected.setdefault(key, [])
            if not steps or steps[-1][1] != seen.get(key):
                steps.append((entry.number, seen.get(key)))

    for key, steps in expected.items():
        found = lineage(history, *key)
        assert steps == [
            (step.version.number, None if step.column is None else (step.version.name, step.column)) for step in found
        ]
        name, column = next(made for _, made in reversed(steps) if made is not None)
        last_named = column_named(history, name, column.name)
        assert last_named == key or last_named in expected
