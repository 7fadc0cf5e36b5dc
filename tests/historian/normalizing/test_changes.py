"""Rows made whole by the last row of each key."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest

from historian.changelog.chunks import Chunk
from historian.changelog.missing_columns import pack
from historian.changelog.operations import Op
from historian.ddl import parse_column_type
from historian.errors import TableStopped
from historian.normalizing.changes import normalized
from historian.normalizing.counts import NormalCounts
from historian.normalizing.keys import key_form, keys_of
from historian.schema.edits import AddColumn, SetPrimaryKey, TruncateTable
from historian.schema.snapshots import ColumnType
from models.keyed_changes import (
    MemoryState,
    Row,
    chunk_of,
    plainly,
    planned,
    random_rows,
    rows_of,
    snapshot_of,
    version_of,
)


def kind(text: str) -> ColumnType:
    return parse_column_type(text, "utf8mb4", "utf8mb4_bin") if "char" in text else parse_column_type(text, None, None)


COLUMNS = {"id": (1, kind("int")), "n": (2, kind("int")), "s": (3, kind("varchar(20)"))}
PLAIN = snapshot_of(COLUMNS)
FIRST = version_of(1, PLAIN)
A, R, F, T = Op.APPEND, Op.RETRACT, Op.CORRECT_FROM, Op.CORRECT_TO


def one(number: int, n: int | None = None, s: str | None = None) -> dict[str, object]:
    return {"id": number, "n": n, "s": s}


def test_a_lone_change_takes_back_the_row_that_its_key_had_in_an_earlier_plan() -> None:
    state = MemoryState()
    normalized(planned(FIRST), [chunk_of([(A, one(1, 1)), (A, one(2, 2))], FIRST)], state)
    chunks, counts = normalized(planned(FIRST), [chunk_of([(T, one(2, 5)), (R, {"id": 1})], FIRST)], state)
    assert rows_of(chunks, PLAIN) == [(F, one(2, 2)), (T, one(2, 5)), (R, one(1, 1))]
    assert counts == NormalCounts()


def test_a_lone_change_takes_back_the_row_that_its_key_had_before_in_the_plan() -> None:
    rows = [(A, one(1, 1)), (T, one(1, 2)), (T, one(1, 3)), (R, {"id": 1}), (A, one(1, 4))]
    chunks, counts = normalized(
        planned(FIRST), [chunk_of(rows[:2], FIRST), chunk_of(rows[2:], FIRST, 1)], MemoryState()
    )
    assert rows_of(chunks, PLAIN) == [
        (A, one(1, 1)),
        (F, one(1, 1)),
        (T, one(1, 2)),
        (F, one(1, 2)),
        (T, one(1, 3)),
        (R, one(1, 3)),
        (A, one(1, 4)),
    ]
    assert counts == NormalCounts()


def test_what_a_source_does_not_send_in_order_is_counted() -> None:
    rows = [
        (T, one(1, 1)),  # a change of a key that has no row
        (A, one(1, 2)),  # an insert of one that has
        (A, one(1, 2)),  # the same again
        (R, {"id": 9}),  # a delete of one that has none
    ]
    chunks, counts = normalized(planned(FIRST), [chunk_of(rows, FIRST)], MemoryState())
    assert rows_of(chunks, PLAIN) == [(A, one(1, 1)), (F, one(1, 1)), (T, one(1, 2))]
    assert counts == NormalCounts(unchanged=1, seen_inserts=1, unseen_updates=1, unseen_deletes=1)


def test_the_row_taken_back_has_time_and_place_of_what_takes_it_back() -> None:
    state = MemoryState()
    normalized(planned(FIRST), [chunk_of([(A, one(1, 1))], FIRST)], state)
    (chunk,), _ = normalized(planned(FIRST), [chunk_of([(A, one(2)), (T, one(1, 2))], FIRST, 3)], state)
    assert chunk.rows.column("sequence").to_pylist() == [3000, 3001, 3001]


def test_a_plan_whose_rows_all_came_before_has_no_chunk() -> None:
    state = MemoryState()
    chunk = chunk_of([(A, one(1, 1))], FIRST)
    normalized(planned(FIRST), [chunk], state)
    assert normalized(planned(FIRST), [chunk], state) == ((), NormalCounts(unchanged=1))


def test_a_row_from_before_a_column_was_added_has_its_default() -> None:
    added = {"since": (4, kind("int"))}
    more = {"since": {"initial": "7"}}
    wide = snapshot_of({**COLUMNS, **added}, **more)
    edit = AddColumn(table=wide.name, column=wide.columns[-1], after=3)
    second = version_of(2, wide, edit)
    state = MemoryState()
    normalized(planned(FIRST), [chunk_of([(A, one(1, 1)), (A, one(2, 2))], FIRST)], state)
    rows = [(T, {**one(1, 1), "since": 8}), (T, {**one(2, 2), "since": 7})]
    chunks, counts = normalized(planned(FIRST, second), [chunk_of(rows, second)], state)
    assert rows_of(chunks, wide) == [(F, {**one(1, 1), "since": 7}), (T, {**one(1, 1), "since": 8})]
    assert counts == NormalCounts(unchanged=1)


def test_a_truncate_leaves_no_row_to_take_back() -> None:
    emptied = version_of(2, PLAIN, TruncateTable(table=PLAIN.name, table_id=7), segment=1)
    state = MemoryState()
    normalized(planned(FIRST), [chunk_of([(A, one(1, 1))], FIRST)], state)
    chunks, counts = normalized(planned(FIRST, emptied), [chunk_of([(A, one(1, 2))], emptied)], state)
    assert rows_of(chunks, PLAIN) == [(A, one(1, 2))]
    assert counts == NormalCounts()
    again, _ = normalized(planned(FIRST, emptied), [], state)
    assert (again, state.held) == ((), {})


def test_rows_are_found_by_another_key_once_the_table_has_it() -> None:
    other = snapshot_of(COLUMNS, ("s",))
    moved = version_of(2, other, SetPrimaryKey(table=other.name, columns=(3,)), segment=1)
    state = MemoryState()
    normalized(planned(FIRST), [chunk_of([(A, one(1, 1, "a")), (A, one(2, 2, "b"))], FIRST)], state)
    chunks, _ = normalized(planned(FIRST, moved), [chunk_of([(T, one(9, 9, "b"))], moved)], state)
    assert rows_of(chunks, other) == [(F, one(2, 2, "b")), (T, one(9, 9, "b"))]


def test_a_key_that_tells_rows_apart_no_more_stops_the_table() -> None:
    other = snapshot_of(COLUMNS, ("s",))
    moved = version_of(2, other, SetPrimaryKey(table=other.name, columns=(3,)), segment=1)
    state = MemoryState()
    normalized(planned(FIRST), [chunk_of([(A, one(1, 1, "a")), (A, one(2, 2, "a"))], FIRST)], state)
    with pytest.raises(TableStopped, match="same key"):
        normalized(planned(moved), [chunk_of([(T, one(9, 9, "b"))], moved)], state)


def test_an_integer_key_that_gets_wider_is_the_same_key() -> None:
    wide = snapshot_of({**COLUMNS, "id": (1, kind("bigint"))})
    second = version_of(2, wide)
    state = MemoryState()
    normalized(planned(FIRST), [chunk_of([(A, one(1, 1))], FIRST)], state)
    assert key_form(wide) == key_form(PLAIN)
    chunks, counts = normalized(planned(FIRST, second), [chunk_of([(T, one(1, 1)), (T, one(1, 2))], second)], state)
    assert rows_of(chunks, wide) == [(F, one(1, 1)), (T, one(1, 2))]
    assert counts == NormalCounts(unchanged=1)


def lacking(chunk: Chunk, *columns: frozenset[int]) -> Chunk:
    """*chunk* whose rows do not tell some columns, by their places."""
    bits = np.array([[at in each for at in range(len(COLUMNS))] for each in columns])
    rows = chunk.rows.append_column("absent", pack(bits))
    return replace(chunk, rows=rows)


NONE, S, BOTH = frozenset[int](), frozenset({2}), frozenset({1, 2})


def test_values_that_a_change_does_not_tell_are_as_they_were() -> None:
    state = MemoryState()
    normalized(planned(FIRST), [chunk_of([(A, one(1, 1, "held")), (A, one(2, 2, "two"))], FIRST)], state)
    first = chunk_of([(T, one(1, 5)), (T, one(2, 3, "new")), (A, one(3, 1, "made"))], FIRST)
    second = chunk_of([(T, one(1)), (T, one(3, 2)), (T, one(2)), (T, one(1, 6))], FIRST, 1)
    chunks = [lacking(first, S, NONE, NONE), lacking(second, BOTH, S, BOTH, S)]
    found, counts = normalized(planned(FIRST), chunks, state)
    assert rows_of(found, PLAIN) == [
        (F, one(1, 1, "held")),
        (T, one(1, 5, "held")),
        (F, one(2, 2, "two")),
        (T, one(2, 3, "new")),
        (A, one(3, 1, "made")),
        (F, one(3, 1, "made")),
        (T, one(3, 2, "made")),
        (F, one(1, 5, "held")),
        (T, one(1, 6, "held")),
    ]
    assert counts == NormalCounts(unchanged=2)
    again, _ = normalized(planned(FIRST), [chunk_of([(R, {"id": n}) for n in (1, 2, 3)], FIRST)], state)
    assert rows_of(again, PLAIN) == [(R, one(1, 6, "held")), (R, one(2, 3, "new")), (R, one(3, 2, "made"))]


def moved(chunk: Chunk, *texts: str | None) -> Chunk:
    """*chunk* with what the two halves of a changed key have in common."""
    return replace(chunk, rows=chunk.rows.append_column("moved", pa.array(texts, pa.string())))


@pytest.mark.parametrize("is_first", [True, False])
def test_a_row_that_has_a_new_key_keeps_the_values_that_are_not_told(is_first: bool) -> None:
    """The row that goes may come by another partition, before or behind the one that comes. It may itself have kept its values."""
    state = MemoryState()
    normalized(planned(FIRST), [chunk_of([(A, one(1, 1, "held")), (A, one(2, 2, "two"))], FIRST)], state)
    gone = moved(
        lacking(chunk_of([(T, one(1, 5)), (R, {"id": 1}), (R, {"id": 2})], FIRST, int(not is_first)), S, NONE, NONE),
        *(None, "7/1", "8/1"),
    )
    came = moved(lacking(chunk_of([(A, one(9, 5)), (A, one(8, 2))], FIRST, int(is_first)), S, S), "7/1", "8/1")

    found, counts = normalized(planned(FIRST), [gone, came], state)

    parts = [
        [
            (F, one(1, 1, "held")),
            (T, one(1, 5, "held")),
            (R, one(1, 5, "held")),
            (R, one(2, 2, "two")),
        ],
        [(A, one(9, 5, "held")), (A, one(8, 2, "two"))],
    ]
    assert [row for part in parts[:: 1 if is_first else -1] for row in part] == rows_of(found, PLAIN)
    assert counts == NormalCounts()
    again, _ = normalized(planned(FIRST), [chunk_of([(R, {"id": n}) for n in (9, 8)], FIRST)], state)
    assert rows_of(again, PLAIN) == [(R, one(9, 5, "held")), (R, one(8, 2, "two"))]


@pytest.mark.parametrize("texts", [("7/1", "7/1", "7/1"), ("7/1", "8/1", "9/1"), ("7/1", None, None)])
def test_a_row_that_has_a_new_key_is_not_guessed_from_several(texts: tuple[str | None, ...]) -> None:
    state = MemoryState()
    normalized(planned(FIRST), [chunk_of([(A, one(1, 1, "held")), (A, one(2, 2, "two"))], FIRST)], state)
    rows = chunk_of([(R, {"id": 1}), (R, {"id": 2}), (A, one(9, 5))], FIRST)

    with pytest.raises(TableStopped, match="its key has no row that has it"):
        normalized(planned(FIRST), [moved(lacking(rows, NONE, NONE, S), *texts)], state)


@pytest.mark.parametrize("op", [A, T])
@pytest.mark.parametrize("before", [[], [(A, one(1, 1, "x")), (R, {"id": 1})]])
def test_a_value_that_nothing_tells_stops_the_table(before: list[Row], op: Op) -> None:
    chunk = lacking(chunk_of([*before, (op, one(1, 5))], FIRST), *([NONE] * len(before)), S)
    with pytest.raises(TableStopped, match="its key has no row that has it"):
        normalized(planned(FIRST), [chunk], MemoryState())


@pytest.mark.parametrize("initial", [None, "7"])
@pytest.mark.parametrize("in_one_plan", [True, False])
def test_a_value_that_is_not_told_stops_the_table_where_the_former_row_was_written_before_the_column(
    initial: str | None, in_one_plan: bool
) -> None:
    # A column that PostgreSQL renamed comes as a new one, so its first value is not what the row has in it.
    wide = snapshot_of({"id": COLUMNS["id"], "n": COLUMNS["n"], "s": (9, kind("int"))}, s={"initial": initial})
    second = version_of(2, wide, AddColumn(table=wide.name, column=wide.columns[-1], after=2))
    first = version_of(1, snapshot_of({"id": COLUMNS["id"], "n": COLUMNS["n"]}))
    made = chunk_of([(A, {"id": 1, "n": 1})], first)
    untold = lacking(chunk_of([(T, one(1, 2))], second, 1), S)
    state = MemoryState()
    if not in_one_plan:
        normalized(planned(first), [made], state)
    with pytest.raises(TableStopped, match="its key has no row that has it"):
        normalized(planned(first, second), [made, untold] if in_one_plan else [untold], state)


def test_a_value_that_is_not_told_is_never_null() -> None:
    chunk = lacking(chunk_of([(A, one(1, 1)), (T, one(1, 5))], FIRST), NONE, S)
    with pytest.raises(TableStopped, match="its key has no row that has it"):
        normalized(planned(FIRST), [chunk], MemoryState())


def test_a_table_without_a_key_stops() -> None:
    keyless = version_of(1, snapshot_of(COLUMNS, ()))
    with pytest.raises(TableStopped, match="the table has none"):
        normalized(planned(keyless), [chunk_of([(A, one(1))], keyless)], MemoryState())


@pytest.mark.parametrize("seed", range(20))
def test_random_changes_are_as_one_would_make_them_row_by_row(seed: int) -> None:
    numbers = random.Random(seed)
    state, held = MemoryState(), dict[object, dict[str, object]]()
    for _ in range(4):
        rows = random_rows(numbers, numbers.randrange(60), 8)
        cuts = sorted({0, len(rows), *(numbers.randrange(len(rows) + 1) for _ in range(3))})
        # No chunk ends between -C and +C.
        cuts = [at for at in cuts if at in (0, len(rows)) or rows[at][0] != T or rows[at - 1][0] != F]
        chunks = [chunk_of(rows[begin:end], FIRST, number) for number, (begin, end) in enumerate(pairwise(cuts))]
        found, _ = normalized(planned(FIRST), chunks, state)
        assert rows_of(found, PLAIN) == plainly(rows, held)
    assert len(state.held) == len(held)


def test_different_keys_have_different_hashes() -> None:
    rows = chunk_of([(A, one(number)) for number in range(10_000)], FIRST).rows
    keys = keys_of(rows, PLAIN, PLAIN)
    assert len(np.unique(keys.high)) == len(np.unique(keys.low)) == 10_000


@pytest.mark.parametrize("name", ["float", "double"])
def test_a_key_is_found_by_its_number_whether_its_zero_has_a_sign_or_not(name: str) -> None:
    signed = snapshot_of({"id": (1, kind(name)), "n": (2, kind("int"))})
    version, state = version_of(1, signed), MemoryState()
    normalized(planned(version), [chunk_of([(A, {"id": -0.0, "n": 1})], version)], state)
    chunks, counts = normalized(planned(version), [chunk_of([(R, {"id": 0.0})], version)], state)
    assert rows_of(chunks, signed) == [(R, {"id": -0.0, "n": 1})]
    assert counts == NormalCounts()


def test_keys_that_a_collation_compares_alike_are_those_of_two_rows() -> None:
    """A source's log has each row's key as it is stored, so changes of one row have one spelling."""
    text = snapshot_of({"id": (1, kind("varchar(20)")), "n": (2, kind("int"))})
    version, state = version_of(1, text), MemoryState()
    normalized(planned(version), [chunk_of([(A, {"id": "a", "n": 1})], version)], state)
    chunks, counts = normalized(planned(version), [chunk_of([(T, {"id": "A", "n": 2})], version)], state)
    assert rows_of(chunks, text) == [(A, {"id": "A", "n": 2})]
    assert counts == NormalCounts(unseen_updates=1)
