"""A changelog projected to states: at its end, at an offset, at a position; by key and by whole rows."""

from __future__ import annotations

import pickle

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from historian.changelog.operations import Op
from historian.changelog.state import AddedColumn, project_changelog
from historian.changelog.validation import Profile
from historian.errors import HistorianError, PositionUnknown
from historian.positions import parse_position
from models.changelogs import changelog_of, random_changelog
from models.changes import DATA, KEY

A, R, C, D = Op.APPEND, Op.RETRACT, Op.CORRECT_FROM, Op.CORRECT_TO
UUID = "3e11fa47-71ca-11e1-9e33-c80aa9429562"


def _log(*rows: tuple[object, ...]) -> pa.Table:
    """Rows ``(op, k, v)``."""
    return changelog_of([(op, key, 0, value, None) for op, key, value in rows], Profile.BINLOG)


def _held(state: pa.Table) -> list[tuple[object, ...]]:
    return [(row["k"], row["v"]) for row in state.to_pylist()]


@pytest.mark.parametrize(
    "rows, expected",
    [
        ([(A, "a", b"1"), (A, "b", b"1")], [("a", b"1"), ("b", b"1")]),
        ([(A, "a", b"1"), (C, "a", b"1"), (D, "a", b"2")], [("a", b"2")]),
        ([(A, "a", b"1"), (R, "a", b"1"), (A, "b", b"1")], [("b", b"1")]),
        ([(A, "a", b"1"), (R, "a", b"1"), (A, "a", b"3")], [("a", b"3")]),
        ([], []),
    ],
    ids=["added", "corrected", "taken back", "taken back and added again", "nothing"],
)
def test_the_last_row_of_a_key_is_its_state(rows: list[tuple[object, ...]], expected: list[tuple[object, ...]]) -> None:
    state = project_changelog(_log(*rows), KEY)

    assert expected == _held(state)
    assert ["event_time", *DATA] == state.schema.names
    assert expected == _held(project_changelog(_log(*rows)))


def test_a_state_at_an_offset_is_what_held_behind_that_row() -> None:
    log = _log((A, "a", b"1"), (C, "a", b"1"), (D, "a", b"2"), (R, "a", b"2"))

    assert [[("a", b"1")], [("a", b"2")], []] == [_held(project_changelog(log, KEY, until=at)) for at in (0, 2, 3)]
    with pytest.raises(HistorianError, match="cut between -C and"):
        project_changelog(log, KEY, until=1)


@pytest.mark.parametrize(
    "position, expected",
    [(f"{UUID}:1-7", [b"1"]), (f"{UUID}:1-5:8", [b"1", b"3"]), (f"{UUID}:1-4", []), ("00000000-0000-0000-0000-000000000000:9", [])],
)  # fmt: skip
def test_a_state_at_a_position_has_the_transactions_that_it_covers(position: str, expected: list[bytes]) -> None:
    log = _log((A, "a", b"1"), (A, "b", b"3")).append_column("position", pa.array([f"{UUID}:5", f"{UUID}:8"]))

    typed = log.drop(["offset", "system_time"]).append_column("ordinal", pa.array([2, 2], pa.int32()))
    state = project_changelog(typed, KEY, until=parse_position(position, "mysql"))

    assert expected == [value for _, value in _held(state)]
    assert ["event_time", *DATA] == state.schema.names


def test_positions_of_other_kinds() -> None:
    log = _log((A, "a", b"1"), (A, "b", b"2"))
    files = log.append_column("_position", pa.array(["b.000009:700", "b.000010:4"]))
    domains = log.append_column("_position", pa.array(["0-5-7", "1-5-3"]))

    assert [("a", b"1")] == _held(project_changelog(files, KEY, until=parse_position("b.000010:4", "mysql")))
    assert [("b", b"2")] == _held(project_changelog(domains, KEY, until=parse_position("0-5-6,1-6-3", "mariadb")))
    with pytest.raises(PositionUnknown, match="cannot be compared"):
        project_changelog(files, KEY, until=parse_position(f"{UUID}:1-5", "mysql"))
    with pytest.raises(HistorianError, match="rows without positions"):
        project_changelog(log, KEY, until=parse_position("b.000010:4", "mysql"))


def test_rows_from_before_a_column_read_what_it_was_added_with() -> None:
    log = _log((A, "a", None), (A, "b", None)).set_column(4, "schema_version", pa.array([3, 4], pa.int64()))

    state = project_changelog(log, KEY, added={"v": AddedColumn(since=4, initial=b"new")})

    assert [("a", b"new"), ("b", None)] == _held(state)


def test_whole_rows_are_there_as_often_as_they_were_added() -> None:
    log = _log((A, "a", b"1"), (A, "a", b"1"), (A, "b", b"2"), (R, "b", b"2"))

    assert [("a", b"1")] * 2 == _held(project_changelog(log))
    with pytest.raises(HistorianError, match=r"takes back more rows than it added; found -1 of \{'k': 'x'") as caught:
        project_changelog(_log((R, "x", b"1")))
    assert str(caught.value) == str(pickle.loads(pickle.dumps(caught.value)))


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 2**32), st.integers(0, 25))
def test_by_key_and_by_whole_rows_come_to_the_same(seed: int, steps: int) -> None:
    rows, _ = random_changelog(seed, steps)

    by_key, by_row = project_changelog(rows, KEY).select(list(DATA)), project_changelog(rows)

    assert sorted(map(repr, by_key.to_pylist())) == sorted(map(repr, by_row.to_pylist()))


def test_rows_that_lack_columns_are_no_state() -> None:
    log = _log((A, "a", b"1"), (A, "b", None))
    lacking = log.add_column(5, "absent", pa.array([None, ["v"]], pa.list_(pa.string())))

    assert [("a", b"1")] == _held(project_changelog(lacking, KEY, until=0))
    assert ["event_time", *DATA] == project_changelog(lacking, KEY, until=0).schema.names
    with pytest.raises(HistorianError, match=r"rows lack columns.*\(absent\).*found \['v'\]"):
        project_changelog(lacking, KEY)
