"""Every line of the tables of docs/reference/types.md is what the code does, and no type or choice is left out."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from historian.ddl.types.captured_types import parse_column_type
from historian.plans.type_options import TYPE_OPTIONS, type_options_of
from historian.schema.snapshots import Column, ColumnType
from historian.values import arrow_types
from historian.values.arrow_types import arrow_type
from historian.values.policies import POLICIES, REASONS
from sinks.delta.log.columns import delta_type

DOCS = (Path(__file__).parents[2] / "docs" / "reference" / "types.md").read_text(encoding="utf-8")
KINDS = re.findall(r"^\| `([^`]*)` \| `([^`]*)` \| `([^`]*)` \| ([^|]*)\|$", DOCS, re.MULTILINE)
CHOSEN = re.findall(r"^\| `(\w+)` \| `([^`]*)` \| `(\w+)` \| `([^`]*)` \| `([^`]*)` \|$", DOCS, re.MULTILINE)
UNREPRESENTABLE = "## What cannot be represented"
SPARK = {"byte": "tinyint", "short": "smallint", "integer": "int", "long": "bigint"}


def parsed(text: str) -> ColumnType:
    return parse_column_type(text, flavor="mariadb" if text == "geometrycollection" else "mysql")


def carried(kind: ColumnType) -> tuple[str, str]:
    """Arrow's and Spark's names of what carries values of that type."""
    delta = delta_type(Column(id=1, name="c", type=kind))
    return str(arrow_type(kind)), SPARK.get(delta, delta)


def test_no_line_of_the_tables_is_left_out() -> None:
    rows = [
        line
        for line in DOCS.partition(UNREPRESENTABLE)[0].splitlines()
        if line.startswith("|") and not line.startswith(("| type", "| choice", "|---"))
    ]
    assert len(rows) == len(KINDS) + len(CHOSEN)


@pytest.mark.parametrize("text,arrow,spark_type,how", KINDS, ids=[text for text, *_ in KINDS])
def test_a_documented_type_is_carried_as_written(text: str, arrow: str, spark_type: str, how: str) -> None:
    kind = parsed(text)
    assert (str(kind), *carried(kind)) == (text, arrow, spark_type)
    assert [choice for choice in type_options_of(kind) if f"`{choice}`" not in how] == []


def test_every_type_is_documented() -> None:
    assert {parsed(text).name for text, *_ in KINDS} == set(arrow_types._ARROW)


@pytest.mark.parametrize("choice,text,value,arrow,spark_type", CHOSEN)
def test_a_documented_choice_does_what_is_written(
    choice: str, text: str, value: str, arrow: str, spark_type: str
) -> None:
    kind = parsed(text)
    assert choice in type_options_of(kind)
    assert (arrow, spark_type) == carried(replace(kind, options=TYPE_OPTIONS[choice][value]))


def test_every_choice_is_documented_with_its_default_first() -> None:
    found: dict[str, list[str]] = {}
    for choice, _, value, _, _ in CHOSEN:
        values = found.setdefault(choice, [])
        values += [] if value in values else [value]
    assert found == {choice: list(values) for choice, values in TYPE_OPTIONS.items()}


def test_every_reason_of_a_dead_letter_is_documented() -> None:
    assert set(POLICIES) == set(REASONS)
    found = re.findall(r"^\| (.*) \| `(\w+)` \| .* \| `(\w+)` \|$", DOCS.partition(UNREPRESENTABLE)[2], re.MULTILINE)
    assert found == [(reason, choice, next(iter(POLICIES[choice]))) for choice, reason in REASONS.items()]
