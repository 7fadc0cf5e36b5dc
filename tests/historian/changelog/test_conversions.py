"""Other systems' forms of a changelog: each by example, and back again over random changelogs."""

from __future__ import annotations

from random import Random

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from historian.changelog.conversions import (
    from_append_stream,
    from_retract_stream,
    from_row_kinds,
    from_single_events,
    from_upsert_stream,
    to_append_stream,
    to_odf,
    to_retract_stream,
    to_row_kinds,
    to_single_events,
    to_upsert_stream,
)
from historian.changelog.operations import Op
from historian.changelog.state import project_changelog
from historian.changelog.validation import Profile, check
from historian.errors import HistorianError
from models.changelogs import random_changelog
from models.changes import DATA, KEY, SCHEMA, Row, batch, plain, rows_of

seeds = st.integers(0, 2**32)
steps = st.integers(0, 30)


def changelog(seed: int, count: int, *, before: int = 0) -> tuple[pa.Table, pa.Table]:
    """A random changelog, and the rows of the table before it."""
    random, held = Random(seed), dict[Row, Row]()
    rows_of(random, before, held)
    former = pa.Table.from_batches([batch([(0, *row) for row in held.values()])]).select(list(DATA))
    rows = rows_of(random, count, held)
    half = random.randint(0, len(rows))
    return pa.Table.from_batches([batch(rows[:half]), batch(rows[half:], half)]), former


def table(*rows: Row) -> pa.Table:
    """Rows ``(op, k, l, v, w)`` cut short are filled with None."""
    return pa.Table.from_batches([batch([(*row, *[None] * (5 - len(row))) for row in rows])])


UPDATE = table((Op.APPEND, "a"), (Op.CORRECT_FROM, "a"), (Op.CORRECT_TO, "a"), (Op.RETRACT, "a"))


def test_a_retract_stream_takes_back_and_adds() -> None:
    assert [0, 1, 0, 1] == to_retract_stream(UPDATE).column("op").to_pylist()


def test_an_upsert_stream_has_the_last_word_only() -> None:
    upserts = to_upsert_stream(UPDATE)

    assert [(0, 0), (0, 2), (1, 3)] == plain(upserts, "op", "offset")


def test_single_events_hold_both_images() -> None:
    events = to_single_events(
        table((0, "a", None, b"1"), (2, "a", None, b"1"), (3, "a", None, b"2"), (1, "a", None, b"2"))
    )

    assert ["event", "offset", "before", "after"] == events.column_names
    assert [("create", 0, None, b"1"), ("update", 2, b"1", b"2"), ("delete", 3, b"2", None)] == [
        (row["event"], row["offset"], row["before"] and row["before"]["v"], row["after"] and row["after"]["v"])
        for row in events.to_pylist()
    ]


def test_row_kinds_are_flinks_short_strings() -> None:
    kinds = to_row_kinds(UPDATE)

    assert (["+I", "-U", "+U", "-D"], False) == (kinds.column("row_kind").to_pylist(), "op" in kinds.column_names)


def test_upserts_and_deletes_get_their_before_images() -> None:
    former = table((0, "a", None, b"1"), (0, "b", None, b"2")).select(list(DATA))
    upserts = table(
        (0, "a", None, b"3"), (1, "b"), (1, "b"), (0, "b", None, b"4"), (0, "c", None, b"5"), (1, "x"), (1, "c")
    )

    changes = from_upsert_stream(upserts, KEY, former)

    assert [
        (Op.CORRECT_FROM, "a", b"1"),
        (Op.CORRECT_TO, "a", b"3"),
        (Op.RETRACT, "b", b"2"),
        (Op.APPEND, "b", b"4"),
        (Op.APPEND, "c", b"5"),
        (Op.RETRACT, "c", b"5"),
    ] == plain(changes, "op", "k", "v")


@settings(deadline=None, max_examples=100)
@given(seeds, steps)
def test_retract_stream_comes_back(seed: int, count: int) -> None:
    rows, _ = changelog(seed, count)
    stream = to_retract_stream(rows)
    again = from_retract_stream(stream, KEY)

    assert stream == to_retract_stream(again)
    ops, back = rows.column("op").to_pylist(), again.column("op").to_pylist()
    keys = plain(rows, *KEY)
    # A delete and an insert of the same key side by side cannot be told from a correction.
    reborn = {i for i in range(1, len(ops)) if (ops[i - 1], ops[i]) == (1, 0) and keys[i - 1] == keys[i]}
    expected = [2 if i + 1 in reborn else 3 if i in reborn else op for i, op in enumerate(ops)]
    assert expected == back
    assert rows.drop(["op"]) == again.drop(["op"])


@settings(deadline=None, max_examples=100)
@given(seeds, steps, st.integers(0, 8))
def test_upsert_stream_comes_back_with_the_former_rows(seed: int, count: int, before: int) -> None:
    rows, former = changelog(seed, count, before=before)

    again = from_upsert_stream(to_upsert_stream(rows), KEY, former)

    assert plain(rows, *SCHEMA.names) == plain(again, *SCHEMA.names)
    assert SCHEMA == again.schema


@settings(deadline=None, max_examples=100)
@given(seeds, steps)
def test_single_events_come_back(seed: int, count: int) -> None:
    rows, _ = changelog(seed, count)

    again = from_single_events(to_single_events(rows))

    assert ["op", "offset", *DATA] == again.column_names
    assert plain(rows, *SCHEMA.names) == plain(again, *SCHEMA.names)


@settings(deadline=None, max_examples=50)
@given(seeds, steps)
def test_row_kinds_come_back(seed: int, count: int) -> None:
    rows, _ = changelog(seed, count)

    assert rows.cast(SCHEMA) == from_row_kinds(to_row_kinds(rows)).cast(SCHEMA)


@pytest.mark.parametrize("ops", [(2,), (3,), (2, 0), (0, 3), (2, 2, 3), (2, 3, 3)])
def test_corrections_that_do_not_pair_are_refused(ops: tuple[int, ...]) -> None:
    with pytest.raises(HistorianError, match="do not pair"):
        to_single_events(table(*((op, "a") for op in ops)))


def test_words_of_another_system_are_refused() -> None:
    with pytest.raises(HistorianError, match=r"not a row kind.*'-X'"):
        from_row_kinds(pa.table({"row_kind": ["+I", "-X"]}))
    events = to_single_events(UPDATE)
    with pytest.raises(HistorianError, match=r"not an event.*'merge'"):
        from_single_events(events.set_column(0, "event", pa.array(["create", "merge", "delete"])))


def test_an_append_stream_is_a_changelog_that_only_appends() -> None:
    rows = table((Op.APPEND, "a"), (Op.APPEND, "b"))
    stream = to_append_stream(rows)

    assert ["offset", *DATA] == stream.column_names
    assert rows.cast(SCHEMA) == from_append_stream(stream).cast(SCHEMA)
    with pytest.raises(HistorianError, match=r"takes rows back is no append stream; expected \+A; found \+C, -C, -R"):
        to_append_stream(UPDATE)
    with pytest.raises(HistorianError, match="rows of an append stream have no column op"):
        from_append_stream(rows)


@settings(deadline=None, max_examples=50)
@given(seeds, steps, st.integers(0, 5))
def test_a_binlog_changelog_becomes_strict_odf(seed: int, count: int, before: int) -> None:
    rows, former = random_changelog(seed, count, Profile.BINLOG, before=before)
    strict, _ = random_changelog(seed, count, Profile.ODF, before=before)

    odf = to_odf(rows, KEY, former)

    assert strict.to_pylist() == odf.to_pylist()
    assert () == check(odf, KEY, profile=Profile.ODF, former=former)


def test_strict_odf_wants_the_rows_that_are_taken_back() -> None:
    rows, _ = random_changelog(3, 8, before=8)

    with pytest.raises(HistorianError, match=r"a row is taken back that did not come before \(row \d+\)"):
        to_odf(rows, KEY)


@settings(deadline=None, max_examples=50)
@given(seeds, steps, st.integers(0, 8))
def test_every_form_leads_to_the_same_state(seed: int, count: int, before: int) -> None:
    rows, former = random_changelog(seed, count, before=before)
    state = _state(rows, former)

    assert state == _state(to_retract_stream(rows), former)
    assert state == _state(from_retract_stream(to_retract_stream(rows), KEY), former)
    assert state == _state(to_upsert_stream(rows), former)
    assert state == _state(from_upsert_stream(to_upsert_stream(rows), KEY, former), former)
    assert state == _state(from_single_events(to_single_events(rows)), former)
    assert state == _state(from_row_kinds(to_row_kinds(rows)), former)
    assert () == check(from_upsert_stream(to_upsert_stream(rows), KEY, former), KEY, former=former)


def _state(rows: pa.Table, former: pa.Table) -> list[str]:
    columns = ["op", *DATA]
    start = from_append_stream(former.select(list(DATA))).select(columns)
    every = pa.concat_tables([start, rows.select(columns).cast(start.schema)])
    return sorted(map(repr, project_changelog(every, KEY).to_pylist()))
