"""Merge strategies in Arrow: the table of cases, what is refused, and that the changelog always leads to the batch."""

from __future__ import annotations

from datetime import date, datetime, timezone
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from historian.changelog.merging.batches import merge
from historian.changelog.merging.strategies import Append, ChangelogStream, Ledger, Snapshot, UpsertStream
from historian.changelog.operations import Op
from historian.changelog.state import project_changelog
from historian.changelog.validation import Profile, check
from historian.errors import HistorianError
from models.changelogs import random_changelog
from models.changes import DATA, KEY
from models.merge_cases import CASES, COLUMNS, DEFAULT, SYSTEM, Case, table

A, R, C, D = (int(op) for op in Op)
SNAPSHOT = Snapshot(key=("id",))


def _merged(case: Case) -> pa.Table:
    former = table(case, case.former)
    return merge(
        case.strategy,
        table(case, case.batch),
        former,
        first_offset=7,
        system_time=SYSTEM,
        source_time=DEFAULT,
    )


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_strategy_does_what_its_table_says(case: Case) -> None:
    merged = _merged(case)

    expected = table(case, case.expected, default=DEFAULT)
    assert expected.to_pylist() == merged.select(["op", *COLUMNS]).cast(expected.schema).to_pylist()
    assert [*range(7, 7 + expected.num_rows)] == merged.column("offset").to_pylist()
    assert {SYSTEM} >= {*merged.column("system_time").to_pylist()}


@pytest.mark.parametrize(
    "case", [case for case in CASES if not isinstance(case.strategy, Append)], ids=lambda c: c.name
)
def test_what_comes_out_is_a_changelog_to_the_letter(case: Case) -> None:
    key = ("case", "id", "part")

    assert () == check(_merged(case), key, profile=Profile.ODF, former=table(case, case.former), first_offset=None)


def _rows(*rows: dict[str, Any]) -> pa.Table:
    return pa.Table.from_pylist(list(rows))


@pytest.mark.parametrize(
    "strategy, batch, message",
    [
        (SNAPSHOT, _rows({"id": 1}, {"id": 1}), r"a key is in the batch twice \(Snapshot\).*found \{'id': 1\}"),
        (Snapshot(key=("a", "id")), _rows({"a": 1, "id": 2}, {"a": 1, "id": None}), r"a key of the batch is NULL \(id\); found row 1"),
        (UpsertStream(key=("id",)), _rows({"id": 1, "op": 3}), r"another operation.*expected 0 \(\+A\) or 1 \(-R\); found \[3\]"),
        (UpsertStream(key=("id",)), _rows({"id": 1, "op": None}, {"id": 2, "op": 0}), "another operation"),
        (Ledger(key=("id",)), _rows({"id": 1, "v": 1}, {"id": 1, "v": 2}), "two records that differ"),
        (ChangelogStream(key=("id",)), _rows({"id": 1, "op": 1}), r"presence at offset 0: expected a row to take back"),
        (ChangelogStream(key=("id",)), _rows({"id": 1, "op": 7}), r"operation at offset 0: .* found 7"),
        (ChangelogStream(key=("id",)), _rows({"id": 1, "op": 0}, {"id": 1, "op": 2}), r"pair at offset 1"),
        (ChangelogStream(key=("id",)), _rows({"id": 1}), "a changelog has operations"),
        (SNAPSHOT, _rows({"id": 1, "op": 0}), r"named like columns of the changelog.*found op"),
        (Append(), _rows({"offset": 1}), "named like"),
        (SNAPSHOT, _rows({"number": 1}), r"missing from the batch; expected \['id'\]; found \['number'\]"),
        (Snapshot(key=("id",), compare_columns=("x",)), _rows({"id": 1}), r"missing from the batch and the state.*'x'"),
        (SNAPSHOT, _rows({"id": 1, "event_time": datetime(2026, 1, 1, 0, 0, 0, 1, timezone.utc)}), "finer than milliseconds"),
        (SNAPSHOT, _rows({"id": 1, "event_time": datetime(2026, 1, 1)}), r"a moment or a date.*found timestamp\[us\]"),  # noqa: DTZ001 one without zone
    ],
)  # fmt: skip
def test_a_batch_that_breaks_a_rule_is_refused(strategy: Any, batch: pa.Table, message: str) -> None:
    with pytest.raises(HistorianError, match=message):
        merge(strategy, batch)


def test_a_state_that_breaks_a_rule_is_refused() -> None:
    state = project_changelog(merge(SNAPSHOT, _rows({"id": 1, "v": 1})), ("id",))

    with pytest.raises(HistorianError, match="a key is in the state twice"):
        merge(SNAPSHOT, _rows({"id": 1, "v": 1}), pa.concat_tables([state, state]))
    with pytest.raises(HistorianError, match=r"missing from the state; expected \['event_time', 'id'\]"):
        merge(SNAPSHOT, _rows({"id": 1, "v": 1}), state.select(["id", "v"]))
    with pytest.raises(HistorianError, match=r"another type than in the state \(v\); expected int64; found string"):
        merge(SNAPSHOT, _rows({"id": 1, "v": "1"}), state)


@pytest.mark.parametrize("key", [(), "id"])
def test_a_strategy_without_a_key_is_refused(key: Any) -> None:
    with pytest.raises(HistorianError, match=r"Ledger needs the key's columns"):
        Ledger(key=key)


def _state(*rows: dict[str, Any]) -> pa.Table:
    return project_changelog(merge(SNAPSHOT, _rows(*rows), system_time=SYSTEM), ("id",))


def test_a_column_that_comes_changes_the_rows_that_have_a_value_in_it() -> None:
    merged = merge(
        SNAPSHOT,
        _rows({"id": 1, "v": "a", "n": 5}, {"id": 2, "v": "b", "n": None}),
        _state({"id": 1, "v": "a"}, {"id": 2, "v": "b"}),
    )

    assert ["offset", "op", "system_time", "event_time", "id", "v", "n"] == merged.schema.names
    assert [(C, 1, "a", None), (D, 1, "a", 5)] == [(r["op"], r["id"], r["v"], r["n"]) for r in merged.to_pylist()]


def test_a_column_that_goes_changes_the_rows_that_had_a_value_in_it() -> None:
    merged = merge(SNAPSHOT, _rows({"id": 1}, {"id": 2}, {"id": 3}), _state({"id": 1, "v": "a"}, {"id": 2, "v": None}))

    assert [(C, 1, "a"), (D, 1, None), (A, 3, None)] == [(r["op"], r["id"], r["v"]) for r in merged.to_pylist()]


def test_event_times_can_be_dates() -> None:
    merged = merge(
        SNAPSHOT, _rows({"id": 1, "event_time": date(2026, 2, 3)}, {"id": 2, "event_time": None}), source_time=SYSTEM
    )

    assert [date(2026, 2, 3), date(2026, 1, 1)] == merged.column("event_time").to_pylist()


def test_floats_that_are_equal_for_the_server_are_no_change() -> None:
    former = _state({"id": 1, "v": float("nan")}, {"id": 2, "v": -0.0})

    assert 0 == merge(SNAPSHOT, _rows({"id": 1, "v": float("nan")}, {"id": 2, "v": 0.0}), former).num_rows


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 2**32), st.integers(0, 12), st.integers(0, 20))
def test_a_snapshot_of_any_state_leads_from_any_other_to_it(seed: int, before: int, steps: int) -> None:
    former = project_changelog(random_changelog(seed, before, Profile.ODF)[0], KEY)
    wanted = project_changelog(random_changelog(seed + 1, steps, Profile.ODF)[0], KEY)

    merged = merge(Snapshot(key=KEY), wanted, former)

    assert () == check(merged, KEY, profile=Profile.ODF, former=former)
    assert _sorted(wanted) == _sorted(_after(former, merged))


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 2**32), st.integers(0, 12), st.integers(0, 20))
def test_upserts_and_changes_lead_to_the_same_state(seed: int, before: int, steps: int) -> None:
    changes, former = random_changelog(seed, steps, Profile.ODF, before=before)
    batch = changes.drop(["offset", "system_time"])
    upserts = batch.take(pa.array([i for i, op in enumerate(batch.column("op").to_pylist()) if op != C], pa.int64()))
    ops = pa.array([A if op == D else op for op in upserts.column("op").to_pylist()], pa.uint8())

    carried = merge(ChangelogStream(key=KEY), batch, former, system_time=SYSTEM)
    merged = merge(UpsertStream(key=KEY), upserts.set_column(0, "op", ops), former)

    assert (
        changes.select(["offset", "op", "event_time", *DATA]).to_pylist()
        == carried.select(["offset", "op", "event_time", *DATA]).to_pylist()
    )
    assert () == check(merged, KEY, profile=Profile.ODF, former=former)
    assert _sorted(_after(former, carried)) == _sorted(_after(former, merged))
    assert [] == _twice(merged)


def _after(former: pa.Table, changes: pa.Table) -> pa.Table:
    first = merge(Append(), former.select(["event_time", *DATA]), system_time=SYSTEM)
    every = pa.concat_tables([first, changes.cast(first.schema)])
    return project_changelog(every, KEY)


def _sorted(state: pa.Table) -> list[str]:
    return sorted(map(repr, state.select(["event_time", *DATA]).to_pylist()))


def _twice(changes: pa.Table) -> list[Any]:
    """Keys that a merge changes more than once."""
    keys = [(r["k"], r["l"]) for r in changes.to_pylist() if r["op"] != C]
    return [key for key in keys if keys.count(key) > 1]
