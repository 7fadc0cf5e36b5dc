"""What a schema version changes in a table, by kinds of edits."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from historian.edits import AddColumn, TruncateTable
from historian.plans import Place, PlannedVersion
from historian.schema import Column, ColumnType, Snapshot, TableName
from sinks.delta.changes import changes, type_change


def _text(name: str, length: int | None = None, charset: str = "utf8mb4") -> ColumnType:
    return ColumnType(name=name, length=length, charset=charset, collation=f"{charset}_bin")


def _decimal(precision: int, scale: int) -> ColumnType:
    return ColumnType(name="decimal", precision=precision, scale=scale)


def _number(name: str, *, unsigned: bool = False) -> ColumnType:
    return ColumnType(name=name, unsigned=unsigned)


PAIRS = [
    (_number("tinyint"), _number("int"), "widen_type"),
    (_number("int"), _number("bigint"), "widen_type"),
    (_number("int", unsigned=True), _number("bigint", unsigned=True), "widen_type"),
    (_number("mediumint"), _number("int"), "attributes"),
    (_number("bigint"), _number("int"), "change_type"),
    (_number("int"), _number("int", unsigned=True), "change_type"),
    (_number("int"), _decimal(12, 2), "change_type"),
    (_decimal(5, 2), _decimal(7, 4), "widen_type"),
    (_decimal(5, 2), _decimal(6, 4), "change_type"),
    (_number("float"), _number("double"), "widen_type"),
    (_number("double"), _number("float"), "change_type"),
    (_text("varchar", 20), _text("varchar", 60), "attributes"),
    (_text("varchar", 60), _text("text"), "attributes"),
    (_text("varchar", 60), _text("varchar", 20), "change_type"),
    (_text("varchar", 20, "latin1"), _text("varchar", 20), "attributes"),
    (_text("varchar", 20), _text("varchar", 20, "latin1"), "change_type"),
    (_number("int"), _text("varchar", 20), "change_type"),
    (_number("date"), _number("datetime"), "change_type"),
    (ColumnType(name="datetime", fraction=0), ColumnType(name="datetime", fraction=6), "attributes"),
    (ColumnType(name="datetime", fraction=6), ColumnType(name="datetime", fraction=0), "change_type"),
]

PAGE = Path(__file__).parents[2] / "docs" / "evolution.md"


def pair_row(old: ColumnType, new: ColumnType, kind: str) -> str:
    """A pair of types as docs/evolution.md has it."""
    return f"| {_named(old)} | {_named(new)} | `{kind}` |"


def _named(kind: ColumnType) -> str:
    return f"{str(kind).upper()}{f' CHARACTER SET {kind.charset}' if kind.charset == 'latin1' else ''}"


@pytest.mark.parametrize("old, new, kind", PAIRS, ids=str)
def test_a_type_change_is_of_the_kind_that_the_page_says(old: ColumnType, new: ColumnType, kind: str) -> None:
    assert kind == type_change(old, new)
    assert pair_row(old, new, kind) in PAGE.read_text().splitlines()


def test_a_version_is_taken_apart_by_column_id() -> None:
    kinds = [_number("int"), _text("varchar", 20), _number("int"), _number("int")]
    a, b, c, d = (
        Column(id=at, name=name, type=kind) for at, (name, kind) in enumerate(zip("abcd", kinds, strict=True), 1)
    )
    before = Snapshot(
        table_id=1,
        name=TableName("s", "t"),
        columns=(a, b, c),
        primary_key=(1,),
        charset="utf8mb4",
        collation="utf8mb4_bin",
    )
    after = replace(
        before,
        columns=(replace(b, name="B"), replace(a, type=_number("bigint")), replace(d, initial_known=False)),
        primary_key=(1, 4),
    )
    edits = (
        AddColumn(table=before.name, column=after.columns[2], after=1),
        TruncateTable(table=before.name, table_id=1),
    )
    place = Place(gtid="", file="f", offset=4, ordinal=1)
    found = changes(before, PlannedVersion(version=2, place=place, edits=edits, snapshot=after, segment=1))

    assert [
        ("truncate", 0),
        ("rename_column", 2),
        ("widen_type", 1),
        ("computed_values", 4),
        ("drop_column", 3),
        ("change_key", 0),
        ("move_column", 0),
    ] == [(change.edit, change.column_id) for change in found]
