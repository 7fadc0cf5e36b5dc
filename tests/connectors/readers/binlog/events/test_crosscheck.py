"""What a TABLE_MAP must say of keys."""

from __future__ import annotations

from dataclasses import replace

import pytest

from connectors.readers.base import MappedColumn
from connectors.readers.binlog.events.crosscheck import logged_type, mismatch
from connectors.readers.binlog.events.full_metadata import described
from historian.names import TableName
from historian.schema.snapshots import Snapshot
from models.ddl_text import MYSQL, after


def _mapped(snapshot: Snapshot, *primary: str) -> tuple[MappedColumn, ...]:
    mapped = []
    for column in snapshot.columns:
        logged = logged_type(column.type, "mysql")
        assert logged is not None
        mapped.append(
            MappedColumn(
                type=logged[0],
                metadata=logged[1],
                nullable=column.nullable,
                name=column.name,
                primary_key=column.name in primary,
            )
        )
    return tuple(mapped)


@pytest.mark.parametrize(
    "columns,primary,fits",
    [
        ("a INT PRIMARY KEY, b INT NOT NULL UNIQUE", "a", True),
        ("a INT PRIMARY KEY, b INT NOT NULL UNIQUE", "b", False),
        ("a INT NOT NULL, b INT NOT NULL UNIQUE", "b", True),
        ("a INT NOT NULL, b INT NOT NULL UNIQUE", "", True),
        ("a INT NOT NULL, b INT NOT NULL UNIQUE", "a", False),
        ("a INT NOT NULL, b INT UNIQUE", "b", False),
        ("a INT NOT NULL, b INT NOT NULL, UNIQUE (b, a)", "a b", True),
    ],
)
def test_without_a_primary_key_a_unique_one_may_be_logged_for_it(columns: str, primary: str, *, fits: bool) -> None:
    snapshot = after(f"CREATE TABLE t ({columns})", context=MYSQL).tables[TableName("shop", "t")]
    found = mismatch(snapshot, _mapped(snapshot, *primary.split()), "mysql")
    assert (found is None) == fits, found


def test_a_vector_of_another_dimension_is_no_fit_and_the_log_says_which_it_is() -> None:
    snapshot = after("CREATE TABLE t (v VECTOR(3))", context=MYSQL).tables[TableName("shop", "t")]
    (column,) = _mapped(snapshot)
    assert mismatch(snapshot, (replace(column, dimension=3),), "mysql") is None
    other = (replace(column, dimension=4),)
    assert "v vector(3) | v VECTOR 0x4 of 4 numbers" in (mismatch(snapshot, other, "mysql") or "")
    healed = described(snapshot, other, "mysql", 9)
    assert healed is not None
    assert [(c.id, str(c.type)) for c in healed.columns] == [(9, "vector(4)")]


def test_other_columns_are_named_side_by_side() -> None:
    snapshot = after("CREATE TABLE t (a INT, b INT)", context=MYSQL).tables[TableName("shop", "t")]
    first, second = _mapped(snapshot)
    assert "! 2. b int | c LONG" in (mismatch(snapshot, (first, replace(second, name="c")), "mysql") or "")
