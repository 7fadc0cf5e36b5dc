"""Chunks in the shape of the lake."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
import pytest

from historian.changelog.chunks import Chunk, dead_letters
from historian.changelog.missing_columns import ABSENT, missing_names
from historian.changelog.operations import Op
from historian.secret import Secret
from lakes.sink_lab import INT, Lab, text
from sinks.shaping.bindings import Bindings
from sinks.shaping.rows import EvaluatedRows, shaped_chunk
from sinks.shaping.rules import Rules
from sinks.shaping.tables import TableShape


def shape(rules: Rules, *names: str) -> TableShape:
    return TableShape(
        bindings=Bindings(rules, {at: (name, rules.action(name).mark) for at, name in enumerate(names, 1)})
    )


def chunk_of(lab: Lab) -> Chunk:
    lab.flush()
    return lab.tables[1].chunks[0]


def kept(rows: Sequence[tuple[str, bool]]) -> list[str]:
    """The operations that stay of rows with their operations, where a filter wants some."""
    lab = Lab()
    lab.create("shop.t", {"id": INT})
    written = lab.catalog.tables[next(iter(lab.catalog.tables))]
    lab.insert("shop.t", *({"id": number} for number in range(len(rows))))
    codes = {op.sign: int(op) for op in Op}
    chunk = chunk_of(lab)
    arrays = [pa.array([codes[sign] for sign, _ in rows], pa.uint8()), *chunk.rows.columns[1:]]
    chunk = replace(chunk, rows=pa.RecordBatch.from_arrays(arrays, schema=chunk.rows.schema))
    keep = pa.array([wanted for _, wanted in rows])
    found = shaped_chunk(chunk, written, shape(Rules(where="x"), "id"), EvaluatedRows(keep=keep, computed={}))
    return [
        f"{Op(op).sign}{number}"
        for op, number in zip(*(found.rows.column(n).to_pylist() for n in ("op", "h1")), strict=True)
    ]


def test_a_filter_makes_the_half_of_an_update_that_stays_a_retraction_or_an_append() -> None:
    pairs = [
        ("-C", True),
        ("+C", True),
        ("-C", True),
        ("+C", False),
        ("-C", False),
        ("+C", True),
        ("-C", False),
        ("+C", False),
    ]

    assert kept(pairs) == ["-C0", "+C1", "-R2", "+A5"]
    assert kept([("+A", False), ("-R", True), ("+A", True), ("-R", False)]) == ["-R1", "+A2"]
    assert kept([("+A", False)]) == []


def test_what_is_not_known_to_be_wanted_is_not() -> None:
    assert kept([("+A", None), ("+A", True)]) == ["+A1"]  # type: ignore[list-item]


def test_absent_columns_stay_absent_under_every_rule() -> None:
    lab = Lab()
    lab.create("shop.t", {"id": INT, "gone": text(), "a": text(), "b": text(), "c": text()})
    written = lab.catalog.tables[next(iter(lab.catalog.tables))]
    row = {"id": 1, "gone": "g", "a": "aa", "b": "bb", "c": "cc"}
    lab.insert("shop.t", row)
    lab.update_part("shop.t", {"id": 1}, b="new")
    rules = Rules(exclude=("gone",), mask=(("a", "*"),), hash=(("b", Secret("s")),), truncate=(("c", 1),))

    found = shaped_chunk(chunk_of(lab), written, shape(rules, "id", "gone", "a", "b", "c"))

    assert [name for name in found.rows.schema.names if name[0] == "h"] == ["h1", "h3", "h4", "h5"]
    assert found.rows.column("h3").to_pylist() == ["*", None, None]
    assert found.rows.column("h5").to_pylist() == ["c", None, None]
    assert [len(value or "") for value in found.rows.column("h4").to_pylist()] == [64, 0, 64]
    absent = [names.get(ABSENT) for names in missing_names(found.rows, ["id", "a", "b", "c"])]
    assert absent == [None, ["a", "b", "c"], ["a", "c"]]


def test_rows_with_absent_columns_stop_a_table_with_expressions() -> None:
    lab = Lab()
    lab.create("shop.t", {"id": INT, "a": INT})
    written = lab.catalog.tables[next(iter(lab.catalog.tables))]
    lab.insert("shop.t", {"id": 1, "a": 1})
    lab.update_part("shop.t", {"id": 1}, a=2)

    found = shaped_chunk(chunk_of(lab), written, shape(Rules(where="a > 1"), "id", "a"))

    assert found.rows.num_rows == 0
    assert "binlog_row_image=FULL" in found.stopped


@pytest.mark.parametrize(
    "rules, told",
    [
        (Rules(), [("2024-02-30", "aa", 2), ("0000-00-00", "bb", 3)]),
        (Rules(mask=(("d", None),)), [("", "", 2), ("", "", 3)]),
        (Rules(exclude=("d",)), []),
    ],
)
def test_dead_letters_say_nothing_of_a_value_that_is_shaped(rules: Rules, told: list[tuple[str, str, int]]) -> None:
    lab = Lab()
    lab.create("shop.t", {"id": INT, "d": text()})
    written = lab.catalog.tables[next(iter(lab.catalog.tables))]
    lab.insert("shop.t", {"id": 1, "d": None}, {"id": 2, "d": None})
    chunk = chunk_of(lab)
    said = [[0, "h2", "aa", "2024-02-30", "zero_dates"], [1, "h2", "bb", "0000-00-00", "zero_dates"]]
    rows = chunk.rows.replace_schema_metadata({"dead_letters": json.dumps(said), "nulled": '{"h2": 2}'})
    chunk = replace(chunk, rows=rows)

    found = shaped_chunk(chunk, written, shape(rules, "id", "d"))

    text_ = dead_letters(found)
    assert [(x["text"], x["raw"], x["ordinal"]) for x in (json.loads(text_) if text_ else [])] == told


def test_the_letter_of_a_row_that_is_filtered_goes_with_it() -> None:
    lab = Lab()
    lab.create("shop.t", {"id": INT, "d": text()})
    written = lab.catalog.tables[next(iter(lab.catalog.tables))]
    lab.insert("shop.t", {"id": 1, "d": None}, {"id": 2, "d": None})
    chunk = chunk_of(lab)
    said = json.dumps([[0, "h2", "aa", "x", "invalid_text"], [1, "h2", "bb", "y", "invalid_text"]])
    rows = chunk.rows.replace_schema_metadata({"dead_letters": said})
    chunk = replace(chunk, rows=rows)

    evaluated = EvaluatedRows(keep=pa.array([False, True]), computed={})
    found = shaped_chunk(chunk, written, shape(Rules(where="id = 2"), "id", "d"), evaluated)

    assert [(x["text"], x["reason"], x["ordinal"]) for x in json.loads(dead_letters(found))] == [
        ("y", "invalid_text", 3)
    ]
