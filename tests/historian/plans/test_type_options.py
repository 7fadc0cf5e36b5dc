"""Which columns a user's choices are for, and what they make of the versions that a plan takes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from historian.ddl import resolve
from historian.errors import ValueUnrepresentable
from historian.history.history import History
from historian.names import TableName
from historian.plans.plans import Plan, PlannedTable
from historian.plans.segments import planned_tables
from historian.plans.type_options import (
    NO_TYPE_OPTIONS,
    TYPE_OPTIONS,
    TypeOptions,
    TypeRule,
    planned_type_options,
    type_options_of,
)
from historian.positions import LogPosition
from historian.schema.applying import apply_all
from historian.schema.snapshots import Column, ColumnType
from historian.schema.type_compatibility import is_compatible
from historian.values.policies import REASONS, holds_all, is_possible, may_be_dead_letter, policy_of
from historian.values.texts import initial_scalar
from models.ddl_text import MYSQL, after, shop
from models.timelines import A, statement

ORDERS = TableName("shop", "orders")
UNSIGNED = ColumnType(name="bigint", unsigned=True)
FLAG = ColumnType(name="tinyint", length=1)


def rule(pattern: str = "", **values: str) -> TypeRule:
    return TypeRule(pattern=pattern, values=tuple(values.items()))


@pytest.mark.parametrize(
    "rules,expected",
    [
        ((), ""),
        ((rule(time="text"),), ""),
        ((rule(bigint_unsigned="text"),), "text"),
        ((rule(bigint_unsigned="text"), rule("shop.*", bigint_unsigned="decimal")), ""),
        ((rule("shop.*", bigint_unsigned="int64"), rule(bigint_unsigned="text")), "int64"),
        ((rule("shop.orders.id", bigint_unsigned="int64"), rule("shop.orders", bigint_unsigned="text")), "int64"),
        ((rule("shop.order?", bigint_unsigned="int64"), rule("shop.orders", bigint_unsigned="text")), "text"),
        ((rule("shop.orders.i", bigint_unsigned="int64"), rule("bar.*", bigint_unsigned="text")), ""),
        ((rule("*.*.id", bigint_unsigned="text"),), "text"),
    ],
)
def test_the_narrowest_rule_wins_and_of_equals_the_last(rules: tuple[TypeRule, ...], expected: str) -> None:
    assert TypeOptions(rules).form(ORDERS, "id", UNSIGNED) == expected


@pytest.mark.parametrize(
    "kind,chosen,form",
    [
        (UNSIGNED, {"bigint_unsigned": "int64", "int64_overflow": "null_and_count"}, "int64 int64_overflow=null"),
        (UNSIGNED, {"int64_overflow": "null_and_count"}, ""),
        (UNSIGNED, {"bigint_unsigned": "int64", "int64_overflow": "fail"}, "int64"),
        (FLAG, {"tinyint1": "boolean", "invalid_boolean": "dead_letter"}, "boolean invalid_boolean=dead_letter"),
        (
            ColumnType(name="json"),
            {"json": "variant", "invalid_variant": "null_and_count", "invalid_json": "dead_letter"},
            "variant invalid_variant=null invalid_json=dead_letter",
        ),
        (
            ColumnType(name="json"),
            {"invalid_variant": "null_and_count", "invalid_json": "null_and_count"},
            "invalid_json=null",
        ),
        (ColumnType(name="date"), {"zero_dates": "fail", "invalid_text": "null_and_count"}, "error"),
        (
            ColumnType(name="text"),
            {"invalid_text": "dead_letter", "invalid_compressed": "null_and_count"},
            "dead_letter invalid_compressed=null",
        ),
    ],
)
def test_a_policy_is_a_word_of_the_form_where_there_are_such_values(
    kind: ColumnType, chosen: dict[str, str], form: str
) -> None:
    assert TypeOptions((rule(**chosen),)).form(ORDERS, "c", kind) == form
    formed = replace(kind, options=form)
    assert formed.shape == (form.partition(" ")[0] if form.startswith(("int64", "boolean", "variant")) else "")
    for reason in REASONS:
        wanted = chosen.get(reason, next(iter(TYPE_OPTIONS[reason])))
        if reason in type_options_of(kind) and is_possible(reason, formed.shape):
            assert policy_of(formed, reason) == wanted
    assert may_be_dead_letter(formed) == ("dead_letter" in form)
    assert is_compatible(formed, replace(kind, options=formed.shape))


@pytest.mark.parametrize(
    "kind,reason,shape,held",
    [
        (ColumnType(name="date"), "zero_dates", "text", True),
        (ColumnType(name="date"), "zero_dates", "", False),
        (UNSIGNED, "int64_overflow", "int64", False),
        (UNSIGNED, "int64_overflow", "", True),
        (UNSIGNED, "int64_overflow", "text", True),
        (FLAG, "invalid_boolean", "boolean", False),
        (FLAG, "invalid_boolean", "", True),
        (ColumnType(name="json"), "invalid_variant", "", True),
        (ColumnType(name="json"), "invalid_json", "", False),
        (ColumnType(name="enum"), "invalid_member", "", False),
    ],
)
def test_a_shape_that_holds_what_another_does_not_is_known(
    kind: ColumnType, reason: str, shape: str, *, held: bool
) -> None:
    assert holds_all(replace(kind, options=shape), reason) == held


def test_a_choice_is_for_its_types_alone() -> None:
    kinds = {
        ("bigint_unsigned", "int64_overflow"): [UNSIGNED],
        ("tinyint1", "invalid_boolean"): [FLAG],
        ("bit1",): [ColumnType(name="bit", length=1)],
        ("time",): [ColumnType(name="time", fraction=3)],
        ("zero_dates",): [ColumnType(name=name) for name in ("date", "datetime", "timestamp")],
        (): [
            *(ColumnType(name="bigint"), ColumnType(name="tinyint"), ColumnType(name="bit", length=2)),
            *(ColumnType(name="year"), ColumnType(name="binary", length=3), ColumnType(name="decimal")),
        ],
        ("invalid_text",): [ColumnType(name="char", length=3)],
        ("invalid_text", "invalid_compressed"): [ColumnType(name="longtext"), ColumnType(name="varchar", length=3)],
        ("invalid_compressed",): [ColumnType(name="blob"), ColumnType(name="varbinary", length=3)],
        ("invalid_member",): [ColumnType(name="enum"), ColumnType(name="set")],
        ("json", "invalid_variant", "invalid_json"): [ColumnType(name="json")],
    }
    assert set(TYPE_OPTIONS) == {choice for type_options in kinds for choice in type_options}
    for type_options, each in kinds.items():
        assert [type_options] * len(each) == [type_options_of(kind) for kind in each]


@pytest.mark.parametrize(
    "pattern,values", [("", {"bigint_unsigned": "int32"}), ("", {"no": "x"}), ("a", {}), ("a.b.c.d", {}), ("a..b", {})]
)
def test_no_other_values_and_patterns(pattern: str, values: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="expected"):
        rule(pattern, **values)


def planned(type_options: TypeOptions, *statements: str) -> PlannedTable:
    history, catalog = History(), shop()
    for number, sql in enumerate(statements, 1):
        edits = resolve(sql, MYSQL, catalog).edits
        history.record(statement(number, f"{A}:{number}", *edits))
        catalog = apply_all(edits, catalog)
    (table,) = planned_tables(
        history,
        base=0,
        last=history.last_number,
        captured=lambda _: True,
        touched=(),
        quarantines={},
        type_options=type_options,
    )
    return table


STATEMENTS = (
    "CREATE TABLE orders (id BIGINT UNSIGNED PRIMARY KEY, paid TINYINT(1), at DATETIME(3))",
    "ALTER TABLE orders RENAME COLUMN paid TO done",
    "ALTER TABLE orders MODIFY at DATETIME(6)",
    "RENAME TABLE orders TO bills",
    "ALTER TABLE bills ADD due TIME NOT NULL DEFAULT '01:00:00'",
)


def test_a_choice_stays_with_its_column_through_renames_and_is_in_edits_too() -> None:
    type_options = TypeOptions((rule("shop.orders", tinyint1="boolean", zero_dates="text"), rule(time="text")))

    table = planned(type_options, *STATEMENTS)

    last = table.versions[-1].snapshot
    assert last is not None
    assert {"id": "", "done": "boolean", "at": "text", "due": "text"} == {c.name: c.type.options for c in last.columns}
    kinds = {edit.kind: edit for version in table.versions for edit in version.edits}
    assert kinds["change_type"].new.options == kinds["change_type"].old.options == "text"
    assert kinds["add_column"].column.type.options == "text"
    assert kinds["create_table"].snapshot.columns[1].type.options == "boolean"
    # As text a value says how many digits its type has, so that old and new rows are not alike.
    assert [0, 0, 1, 1, 1] == [version.segment for version in table.versions]
    assert [0] * 5 == [version.segment for version in planned(NO_TYPE_OPTIONS, *STATEMENTS).versions]


def test_what_fixes_a_target_is_told_by_column() -> None:
    table = planned(TypeOptions((rule(tinyint1="boolean", zero_dates="fail"),)), *STATEMENTS)
    position = LogPosition(flavor="mysql", gtids="", file="b.1", offset=4)
    plan = Plan(
        number=1,
        previous=0,
        connector="c",
        start=position,
        end=position,
        ranges=(),
        tables=(table,),
        version=5,
        system_time_us=0,
        revision="",
    )
    assert sorted(planned_type_options(plan).items()) == [
        ("1 bigint_unsigned", ""),
        ("2 tinyint1", "boolean"),
        ("3 zero_dates", ""),
        ("4 time", ""),
    ]


@pytest.mark.parametrize(
    "old,new,expected",
    [
        (FLAG, ColumnType(name="int"), True),
        (ColumnType(name="tinyint", length=1, options="boolean"), ColumnType(name="int"), False),
        (ColumnType(name="int", unsigned=True), ColumnType(name="bigint", unsigned=True, options="int64"), True),
        (ColumnType(name="int", unsigned=True), ColumnType(name="bigint", unsigned=True, options="text"), False),
        (ColumnType(name="date", options="error"), ColumnType(name="date"), True),
        (ColumnType(name="date", options="text"), ColumnType(name="date"), False),
        (ColumnType(name="time", options="text"), ColumnType(name="time", fraction=3, options="text"), False),
        (ColumnType(name="bit", length=1), ColumnType(name="bit", length=8), False),
        (ColumnType(name="json", options="variant"), ColumnType(name="longtext", charset="utf8mb4"), False),
        (ColumnType(name="bit", length=1, options="binary"), ColumnType(name="bit", length=8), True),
        (ColumnType(name="bit", length=1, options="binary"), ColumnType(name="bit", length=9), False),
    ],
)
def test_values_in_other_forms_are_other_values(old: ColumnType, new: ColumnType, *, expected: bool) -> None:
    assert is_compatible(old, new) == expected


@pytest.mark.parametrize(
    "kind,initial,expected",
    [
        (ColumnType(name="bigint", unsigned=True, options="int64"), "5", 5),
        (ColumnType(name="bigint", unsigned=True, zerofill=True, options="text"), "005", "5"),
        (ColumnType(name="tinyint", length=1, options="boolean"), "1", True),
        (ColumnType(name="bit", length=1, options="binary"), "b'1'", b"\1"),
        (ColumnType(name="date", options="text"), "0000-00-00", "0000-00-00"),
        (ColumnType(name="json", options="variant"), "null", "null"),
        (ColumnType(name="time", fraction=1, options="text"), "-00:00:01.5", "-00:00:01.5"),
        (ColumnType(name="bigint", unsigned=True, options="int64"), str(2**63), None),
        (ColumnType(name="tinyint", length=1, options="boolean"), "2", None),
        (ColumnType(name="date", options="error"), "0000-00-00", None),
        (ColumnType(name="datetime", options="error"), "0000-00-00 00:00:00", None),
    ],
)
def test_what_old_rows_read_in_an_added_column_has_its_form(kind: ColumnType, initial: str, expected: object) -> None:
    column = Column(id=1, name="c", type=kind, initial=initial)
    if expected is None:
        with pytest.raises(ValueUnrepresentable):
            initial_scalar(column)
    else:
        assert initial_scalar(column).as_py() == expected


@pytest.mark.parametrize(
    "kind,initial",
    [
        (ColumnType(name="bigint", unsigned=True, options="int64 int64_overflow=null"), str(2**63)),
        (ColumnType(name="tinyint", length=1, options="boolean invalid_boolean=dead_letter"), "2"),
        (ColumnType(name="date", options="dead_letter"), "0000-00-00"),
    ],
)
def test_a_default_that_cannot_be_represented_is_null_where_the_policy_lets_it(kind: ColumnType, initial: str) -> None:
    assert initial_scalar(Column(id=1, name="c", type=kind, initial=initial)).as_py() is None


def test_the_history_knows_no_forms() -> None:
    catalog = after(*STATEMENTS[:1], context=MYSQL)
    assert {column.type.options for column in catalog.tables[ORDERS].columns} == {""}
