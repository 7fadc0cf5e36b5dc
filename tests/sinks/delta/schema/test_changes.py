"""What a schema version changes in a table, by kinds of edits."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from historian.ddl.types.captured_types import parse_column_type
from historian.names import TableName
from historian.plans.plans import PlannedVersion
from historian.positions.places import Place
from historian.schema.edits import AddColumn, ChangeType, TruncateTable
from historian.schema.snapshots import Column, ColumnType, Snapshot
from historian.schema.type_compatibility import is_compatible
from historian.secret import Secret
from sinks.delta.schema.changes import changes, type_change
from sinks.shaping.rules import Rules
from sinks.shaping.tables import shape_of, shape_version


def _text(name: str, length: int | None = None, charset: str = "utf8mb4") -> ColumnType:
    return ColumnType(name=name, length=length, charset=charset, collation=f"{charset}_bin")


def _decimal(precision: int, scale: int) -> ColumnType:
    return ColumnType(name="decimal", precision=precision, scale=scale)


def _number(name: str, *, unsigned: bool = False) -> ColumnType:
    return ColumnType(name=name, unsigned=unsigned)


def parsed(text: str) -> ColumnType:
    return parse_column_type(text, flavor="mysql")


PAIRS = [
    (_number("tinyint"), _number("int"), "widen_type"),
    (_number("int"), _number("bigint"), "widen_type"),
    (_number("int", unsigned=True), _number("bigint", unsigned=True), "widen_type"),
    (_number("mediumint"), _number("int"), "attributes"),
    (_number("bigint"), _number("int"), "change_type"),
    (_number("int"), _number("int", unsigned=True), "change_type"),
    (_number("int"), _decimal(12, 2), "widen_type"),
    (_number("int"), _decimal(11, 2), "change_type"),
    (_number("int", unsigned=True), _decimal(12, 2), "change_type"),
    (_number("bigint"), _decimal(20, 0), "widen_type"),
    (_number("bigint", unsigned=True), _decimal(20, 0), "attributes"),
    (_number("int"), _number("double"), "widen_type"),
    (_number("int", unsigned=True), _number("double"), "change_type"),
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
    (_number("date"), _number("datetime"), "widen_type"),
    (_number("date"), _number("timestamp"), "change_type"),
    (ColumnType(name="datetime", fraction=0), ColumnType(name="datetime", fraction=6), "attributes"),
    (ColumnType(name="datetime", fraction=6), ColumnType(name="datetime", fraction=0), "change_type"),
]

PAGE = Path(__file__).parents[4] / "docs" / "explanation" / "evolution.md"

_INTEGERS = ("tinyint", "smallint", "mediumint", "int", "bigint")
SHOWN = (
    *(parsed(f"{name}{sign}") for name in _INTEGERS for sign in ("", " unsigned")),
    *(parsed(name) for name in ("decimal(5,2)", "decimal(7,4)", "decimal(10,0)", "decimal(12,2)", "decimal(22,2)")),
    *(parsed(name) for name in ("float", "double", "date", "datetime", "datetime(6)", "timestamp", "timestamp(6)")),
    *(parsed(name) for name in ("time", "time(6)", "year", "bit(1)", "bit(9)", "bit(16)")),
    *(_text("char", 20), _text("varchar", 20), _text("varchar", 20, "latin1"), _text("varchar", 60), _text("text")),
    *(replace(_text("enum"), labels=labels) for labels in (("a", "b"), ("a", "b", "c"))),
    *(parsed(name) for name in ("json", "binary(8)", "varbinary(8)", "varbinary(60)", "blob", "point", "geometry")),
)
"""The types of the page's table."""


def shown_rows() -> list[str]:
    """The page's table: each type, and the types to which a change of it is of the kind that the column says."""
    rows = []
    for old in SHOWN:
        kinds = [(new, type_change(old, new)) for new in SHOWN if new != old]
        cells = (", ".join(_named(new) for new, is_of in kinds if is_of == kind) for kind in _KINDS)
        rows.append(f"| {_named(old)} | {' | '.join(cell or '—' for cell in cells)} |")
    return rows


_KINDS = ("widen_type", "attributes")


def _named(kind: ColumnType) -> str:
    labels = "(" + ",".join(f"'{label}'" for label in kind.labels) + ")" if kind.labels else ""
    name = f"{kind.name.upper()}{labels}" if labels else re.sub(r"^[a-z ]+| unsigned", _upper, str(kind))
    return f"{name}{' CHARACTER SET latin1' if kind.charset == 'latin1' else ''}"


def _upper(found: re.Match[str]) -> str:
    return found[0].upper()


def test_the_page_shows_of_each_type_what_it_widens_to() -> None:
    head = "| from | `widen_type` to | `attributes` to |"
    lines = PAGE.read_text().splitlines()
    begin = lines.index(head) + 2
    table = lines[begin : lines.index("", begin)]
    assert shown_rows() == table, "\n".join(shown_rows())


@pytest.mark.parametrize("old, new, kind", PAIRS, ids=str)
def test_a_type_change_is_of_a_kind(old: ColumnType, new: ColumnType, kind: str) -> None:
    assert kind == type_change(old, new)


@pytest.mark.parametrize("old", SHOWN, ids=str)
def test_delta_follows_every_type_that_carries_values(old: ColumnType) -> None:
    """So that a part of a plan is never cut, nor stopped, for less than a change of values."""
    assert "change_type" not in {type_change(old, new) for new in SHOWN if is_compatible(old, new)}
    assert {"change_type"} >= {type_change(old, new) for new in SHOWN if not is_compatible(old, new)}


def test_a_hash_of_a_number_is_another_one_where_the_number_is_of_another_kind() -> None:
    """DECIMAL(12,2) prints 7 as 7.00."""
    rules = Rules(hash=(("b", Secret("salt")),))
    column = Column(id=1, name="b", type=_number("int"))
    table = Snapshot(
        table_id=1, name=TableName("s", "t"), columns=(column,), charset="utf8mb4", collation="utf8mb4_bin"
    )
    shape = shape_of(table, rules, by_key=False)
    for kind, edits in ((_number("bigint"), []), (_decimal(12, 2), [("change_type", True)])):
        edit = ChangeType(table=table.name, column_id=1, old=column.type, new=kind)
        after = replace(table, columns=(replace(column, type=kind),))
        place = Place(gtid="", file="f", offset=4, ordinal=1)
        version = PlannedVersion(version=2, place=place, edits=(edit,), snapshot=after, segment=0)
        found = changes(shape.snapshot(table), shape_version(version, shape))
        assert edits == [(change.edit, change.rewritten) for change in found]


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
