"""Old and new rows under old and new schemas, for every kind of statement, on every path of an online change."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from historian.changelog.operations import CHUNK_COLUMNS, physical_name
from historian.changelog.projection import project
from historian.errors import PositionUnknown, TableStopped, UnknownTable, ValueUnrepresentable
from historian.history.history import History
from historian.history.versions import Version
from historian.plans.quadrants import ReconciledRows, RowFate, reconcile
from historian.plans.segments import cuts, retracts
from historian.schema.edits import (
    AddColumn,
    ChangeType,
    DropColumn,
    DropTable,
    Edit,
    ForgetTable,
    RenameColumn,
    SetPrimaryKey,
    TruncateTable,
)
from historian.schema.online_states import (
    ADD_OPTIONAL,
    ADD_REQUIRED,
    DROP_OPTIONAL,
    DROP_REQUIRED,
    RULES,
    OnlineState,
    neighbours,
)
from historian.schema.snapshots import Column
from models.changes import appended
from models.timelines import BIGINT, INT, capture, create, random_log, statement, table

if TYPE_CHECKING:
    import pyarrow as pa

T = table("t")
ADDED = Column(id=3, name="c", type=INT, initial="7")


def versions(*edits: Edit) -> tuple[Version, ...]:
    """Version 1 is t (a 1, b 2, key a); each edit makes the next."""
    first = capture(create(1, "t", "a", "b", key=(1,)))
    entries = [statement(number, f"s:{number}", edit) for number, edit in enumerate(edits, 2)]
    return History.of([first, *entries]).versions_of(1)


def outcome(chain: tuple[Version, ...], written: int, in_force: int, *rows: tuple[Any, ...]) -> Any:
    """The data of the rows that go on, else their fate."""
    held = next(v.snapshot for v in reversed(chain) if v.number <= written and v.snapshot is not None)
    result = reconcile(appended(held, *rows), chain, written=written, in_force=in_force)
    assert (result.rows is None) == (result.fate is not RowFate.KEEP) == (result.reason != "")
    if result.rows is None:
        return result.fate
    return [tuple(row.values())[len(CHUNK_COLUMNS) :] for row in result.rows.to_pylist()]


ADD = AddColumn(table=T, column=ADDED, after=2)
DROP = DropColumn(table=T, column_id=2, name="b")
WIDEN = ChangeType(table=T, column_id=2, old=INT, new=BIGINT)
TRUNCATE = TruncateTable(table=T, table_id=1)
GONE = DropTable(table=T, table_id=1)


@pytest.mark.parametrize(
    "edit,old_data_new_schema,new_data,new_data_old_schema",
    [
        (ADD, [(1, 2, 7)], (1, 2, 7), [(1, 2)]),
        (DROP, [(1,)], (1,), [(1, None)]),
        (WIDEN, [(1, 2)], (1, 2), [(1, 2)]),
        (WIDEN, [(1, 2)], (1, 2**40), RowFate.WAIT),
        (ADD, [(1, 2, 7)], (1, 2, 8), RowFate.WAIT),
        (ADD, [(1, 2, 7)], (1, 2, None), RowFate.WAIT),
        (AddColumn(table=T, column=replace(ADDED, initial=None), after=2), [(1, 2, None)], (1, 2, None), [(1, 2)]),
        (AddColumn(table=T, column=replace(ADDED, initial=None), after=2), [(1, 2, None)], (1, 2, 0), RowFate.WAIT),
        (TRUNCATE, RowFate.SKIP, (1, 2), RowFate.WAIT),
        (RenameColumn(table=T, column_id=2, old="b", new="x"), [(1, 2)], (1, 2), [(1, 2)]),
    ],
)
def test_the_four_quadrants(
    edit: Edit, old_data_new_schema: Any, new_data: tuple[Any, ...], new_data_old_schema: Any
) -> None:
    chain = versions(edit)

    assert [(1, 2)] == outcome(chain, 1, 1, (1, 2))
    assert old_data_new_schema == outcome(chain, 1, 2, (1, 2))
    assert new_data_old_schema == outcome(chain, 2, 1, new_data)
    assert [new_data] == outcome(chain, 2, 2, new_data)


def test_rows_of_a_dropped_table_are_skipped_and_none_are_written_after_it() -> None:
    chain = versions(GONE)

    assert RowFate.SKIP is outcome(chain, 1, 2, (1, 2))
    with pytest.raises(UnknownTable):
        outcome(chain, 2, 2, (1, 2))


def test_rows_of_a_table_yet_to_be_created_wait_and_earlier_ones_cannot_be() -> None:
    chain = versions(ADD)[1:]

    assert RowFate.WAIT is outcome(chain, 2, 1, (1, 2, 7))
    with pytest.raises(UnknownTable):
        reconcile(appended(chain[0].snapshot or create(1, "t").snapshot), chain, written=1, in_force=2)


def test_a_version_holds_until_the_next() -> None:
    chain = versions(ADD)

    assert [(1, 2, 7)] == outcome(chain, 1, 99, (1, 2))
    assert [(1, 2)] == outcome(chain, 99, 1, (1, 2, 7))


def test_one_value_that_would_be_lost_holds_all_rows_back() -> None:
    assert RowFate.WAIT is outcome(versions(ADD), 2, 1, (1, 2, 7), (1, 2, 8))


def test_no_rows_go_on() -> None:
    assert [] == outcome(versions(ADD), 2, 1)


def test_a_column_dropped_reads_what_held_when_it_was_added() -> None:
    chain = versions(ADD, DropColumn(table=T, column_id=3, name="c"))

    assert [(1, 2, 7)] == outcome(chain, 3, 2, (1, 2))


def test_a_column_dropped_and_added_again_is_another_one() -> None:
    again = AddColumn(table=T, column=replace(ADDED, id=4, name="b", initial="9"), after=1)

    assert [(1, 9)] == outcome(versions(DROP, again), 1, 3, (1, 2))
    assert [(1, None)] == outcome(versions(DROP, again), 3, 1, (1, 9))


def test_a_changed_key_holds_new_rows_back_and_stops_at_old_ones() -> None:
    chain = versions(SetPrimaryKey(table=T, columns=(2,)))

    assert RowFate.WAIT is outcome(chain, 2, 1, (1, 2))
    with pytest.raises(TableStopped, match="another key"):
        outcome(chain, 1, 2, (1, 2))


@pytest.mark.parametrize("keys", [((1, 2), (2, 1)), ((1,), ())], ids=["in_another_order", "dropped"])
def test_old_rows_go_on_where_nothing_merges_them_by_another_key(keys: tuple[tuple[int, ...], ...]) -> None:
    chain = versions(*(SetPrimaryKey(table=T, columns=key) for key in keys))

    assert [(1, 2)] == outcome(chain, 2, 3, (1, 2))


def test_a_narrower_type_takes_old_values_that_fit_and_new_ones_wait() -> None:
    chain = versions(WIDEN, ChangeType(table=T, column_id=2, old=BIGINT, new=INT))

    assert [(1, 2)] == outcome(chain, 2, 3, (1, 2))
    assert RowFate.WAIT is outcome(chain, 3, 2, (1, 2))
    with pytest.raises(ValueUnrepresentable, match=r"shop\.t\.b"):
        outcome(chain, 2, 3, (1, 2**40))


def test_where_the_schema_is_not_known_nothing_is_reconciled() -> None:
    chain = versions(ForgetTable(table=T, reason="not understood"))

    with pytest.raises(PositionUnknown, match="not understood"):
        outcome(chain, 1, 2, (1, 2))


ADDS = [(path, pair) for path in (ADD_OPTIONAL, ADD_REQUIRED) for pair in neighbours(path)]
DROPS = [(path, pair) for path in (DROP_OPTIONAL, DROP_REQUIRED) for pair in neighbours(path)]


@pytest.mark.parametrize("path,pair", ADDS)
@pytest.mark.parametrize("in_force", [1, 2])
def test_rows_of_servers_at_two_states_of_an_added_column(
    path: tuple[OnlineState, ...], pair: tuple[OnlineState, OnlineState], in_force: int
) -> None:
    chain = versions(ADD)
    for state in pair:
        rules = RULES[state]
        # Only users who see the column give it another value than its default.
        values = ([8, None, 7] if rules.reads else [7]) if rules.writes else []
        rows = [(1, 2, value) for value in values] or [(1, 2)]
        for row in rows:
            found = outcome(chain, 1 + rules.writes, in_force, row)
            seen = row[2] if rules.writes else 7
            if in_force == 2:
                assert [(1, 2, seen)] == found
            else:
                assert (found == [(1, 2)]) if seen == 7 else (found is RowFate.WAIT)


@pytest.mark.parametrize("path,pair", DROPS)
@pytest.mark.parametrize("in_force", [2, 3])
def test_rows_of_servers_at_two_states_of_a_dropped_column(
    path: tuple[OnlineState, ...], pair: tuple[OnlineState, OnlineState], in_force: int
) -> None:
    chain = versions(ADD, DropColumn(table=T, column_id=3, name="c"))
    for state in pair:
        rules = RULES[state]
        row = (1, 2, 5 if rules.reads else 7) if rules.writes else (1, 2)
        found = outcome(chain, 2 if rules.writes else 3, in_force, row)
        # Until the drop a row without the column reads its default; after it nobody reads the column.
        assert [(1, 2, row[2] if rules.writes else 7)] == found if in_force == 2 else [(1, 2)] == found


@settings(deadline=None, max_examples=150)
@given(st.integers(0, 2**32))
def test_rows_that_go_on_lose_nothing(seed: int) -> None:
    random = Random(seed)
    log = random_log(random, 15)
    history = History.of(log.entries)
    ids = {v.table_id for e in log.entries for v in history.versions_by(e.number)}
    chain = history.versions_of(random.choice(sorted(ids)))
    held = random.choice([v for v in chain if v.snapshot is not None])
    at = random.randint(0, history.last_number)
    now = next((v for v in reversed(chain) if v.number <= at), None)
    assert held.snapshot is not None
    choices = (None, 7, 7, 7, random.randint(-9, 9))
    rows = appended(held.snapshot, *(tuple(random.choice(choices) for _ in held.snapshot.columns) for _ in range(2)))
    if now is not None and now.unknown is not None:
        with pytest.raises(PositionUnknown):
            reconcile(rows, chain, written=held.number, in_force=at)
        return
    try:
        result = reconcile(rows, chain, written=held.number, in_force=at)
    except TableStopped:
        assert now is not None
        assert now.snapshot is not None
        assert now.number > held.number
        assert now.snapshot.primary_key != held.snapshot.primary_key
        return
    _check(result, rows, held, now, chain)


def _check(
    result: ReconciledRows, rows: pa.RecordBatch, held: Version, now: Version | None, chain: tuple[Version, ...]
) -> None:
    assert held.snapshot is not None
    if now is None:
        assert result.fate is RowFate.WAIT
        return
    low, high = sorted((held.number, now.number))
    between = [edit for v in chain if low < v.number <= high for edit in v.edits]
    later = now.number >= held.number
    emptied = any(retracts(edit) for edit in between)
    assert (result.fate is RowFate.SKIP) == (later and emptied)
    if result.rows is None:
        assert later or emptied or _differ(held, now, between)
        return
    assert now.snapshot is not None
    there = project(result.rows, now.snapshot, held.snapshot)
    if later:
        common = [c.id for c in held.snapshot.columns if now.snapshot.column_by_id(c.id) is not None]
    else:
        common = [c.id for c in held.snapshot.columns]
    names = [physical_name(number) for number in common]
    assert rows.select(names) == there.select(names)


def _differ(held: Version, now: Version, between: list[Edit]) -> bool:
    """Whether something may be lost on the way: a column to come, another key, another type."""
    assert held.snapshot is not None
    assert now.snapshot is not None
    if any(now.snapshot.column_by_id(column.id) is None for column in held.snapshot.columns):
        return True
    return held.snapshot.primary_key != now.snapshot.primary_key or any(cuts(e, now.snapshot) for e in between)
