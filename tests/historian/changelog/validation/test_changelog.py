"""Validation: a sound changelog has no findings, and any single thing that is wrong has one that says so."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from historian.changelog.operations import Op
from historian.changelog.validation import Finding, Profile, Rule, check
from models.changelogs import START_MS, changelog_of, random_changelog, state_of
from models.changes import DATA, KEY

A, R, C, D = Op.APPEND, Op.RETRACT, Op.CORRECT_FROM, Op.CORRECT_TO
BOTH = st.sampled_from(Profile)
SEEDS = st.integers(0, 2**32)

Rows = list[dict[str, Any]]


def _rows(*rows: tuple[Any, ...], profile: Profile = Profile.BINLOG) -> pa.Table:
    return changelog_of([(*row, *[None] * (5 - len(row))) for row in rows], profile)


def _changed(table: pa.Table, change: Callable[[Rows], object]) -> pa.Table:
    rows = table.to_pylist()
    change(rows)
    schema = pa.schema([pa.field(field.name, field.type) for field in table.schema])
    return pa.Table.from_pylist(rows, schema)


def _brief(findings: tuple[Finding, ...]) -> list[tuple[str, int | None]]:
    return [(finding.rule.value, finding.offset) for finding in findings]


@settings(deadline=None, max_examples=30)
@given(SEEDS, st.integers(0, 30), st.integers(0, 6), BOTH)
def test_a_sound_changelog_has_no_findings(seed: int, steps: int, before: int, profile: Profile) -> None:
    rows, former = random_changelog(seed, steps, profile, before=before)

    assert () == check(rows, KEY, profile=profile, former=former, first_offset=0 if rows.num_rows else None)
    assert () == check(rows, profile=profile, former=former)


@settings(deadline=None, max_examples=20)
@given(SEEDS, st.integers(1, 30), st.integers(1, 6))
def test_a_log_that_begins_in_the_middle_is_sound_in_the_binlog_profile_alone(
    seed: int, steps: int, before: int
) -> None:
    rows, former = random_changelog(seed, steps, before=before)
    assert () == check(rows, KEY)
    assert () == check(rows)

    held = {tuple(row[name] for name in KEY) for row in former.to_pylist()}
    first = {tuple(row[name] for name in KEY): row["op"] for row in reversed(rows.to_pylist())}
    odf, empty = random_changelog(seed, steps, Profile.ODF, before=before)[0], former.slice(0, 0)
    unknown = sorted(key for key in held & set(first) if first[key] in (R, C))
    found = [f for f in check(odf, KEY, profile=Profile.ODF) if f.rule is Rule.PRESENCE]
    assert len(unknown) == len(found)
    assert found == list(check(odf, KEY, profile=Profile.ODF, former=empty))


Mutation = Callable[[Rows, Random], object]


def _set(name: str, value: Any, ops: tuple[int, ...] = (A, R, C, D)) -> Mutation:
    """Another value in a row with one of *ops*."""

    def change(rows: Rows, random: Random) -> None:
        fitting = [row for row in rows if row["op"] in ops and row[name] != value]
        if fitting:
            random.choice(fitting)[name] = value

    return change


def _move_time(rows: Rows, random: Random) -> None:
    _set("event_time", rows[0]["system_time"].replace(year=1999), (R, C))(rows, random)


def _leave_out(rows: Rows, random: Random) -> None:
    del rows[random.randrange(len(rows) - 1)]  # the last one's absence cannot be seen


def _repeat(rows: Rows, random: Random) -> None:
    at = random.randrange(len(rows))
    rows.insert(at, rows[at])


def _swap(rows: Rows, random: Random) -> None:
    at = random.randrange(len(rows) - 1)
    rows.insert(at, rows.pop(at + 1))


def _leave_a_gap(rows: Rows, random: Random) -> None:
    for row in rows[random.randrange(1, len(rows)) :]:
        row["offset"] += 1


# Single things that go wrong, each at a random row; a short changelog may have none that fits.
MUTATIONS: dict[str, Mutation] = {
    **{f"op {code}": _set("op", code) for code in (0, 1, 2, 3, 4, 200, None)},
    **{f"no {name}": _set(name, None) for name in ("offset", "system_time", "event_time", *KEY)},
    "a row too few": _leave_out,
    "a row twice": _repeat,
    "two rows changed places": _swap,
    "a gap": _leave_a_gap,
    "another value taken back": _set("v", b"other", (R, C)),
    "another number taken back": _set("w", 99.5, (R, C)),
    "another key taken back": _set("k", "other", (R, C)),
}
IN_PROFILE: dict[Profile, dict[str, Mutation]] = {
    Profile.BINLOG: {**MUTATIONS, "no schema version": _set("schema_version", None)},
    Profile.ODF: {**MUTATIONS, "another time taken back": _move_time},
}


@pytest.mark.parametrize("profile, name", [(profile, name) for profile in Profile for name in IN_PROFILE[profile]])
@settings(deadline=None, max_examples=8)
@given(SEEDS, st.integers(2, 15))
def test_any_single_mutation_is_found(profile: Profile, name: str, seed: int, steps: int) -> None:
    rows, former = random_changelog(seed, steps, profile, before=2)
    mutated = _changed(rows, lambda found: IN_PROFILE[profile][name](found, Random(seed)))
    if mutated.to_pylist() == rows.to_pylist():
        return  # nothing to do it to

    assert () != check(mutated, KEY, profile=profile, former=former, first_offset=0)


def test_mutations_do_happen() -> None:
    rows, _ = random_changelog(7, 12, Profile.ODF)

    for name, mutation in IN_PROFILE[Profile.ODF].items():
        assert rows.to_pylist() != _changed(rows, lambda found, do=mutation: do(found, Random(1))).to_pylist(), name


@pytest.mark.parametrize(
    "rows, expected",
    [
        ([(A, "a"), (A, "a")], [("presence", 1, "a key that is not there", "+A of one that came with offset 0")]),
        ([(A, "a"), (R, "a"), (R, "a")], [("presence", 2, "a row to take back", "one taken back at offset 1")]),
        ([(A, "a", b"x"), (R, "a", b"y")], [("image", 1, "v=b'x'", "v=b'y'")]),
        ([(A, "a"), (C, "a"), (D, "b")], [("pair", 1, "+C of its key directly behind it", "nothing")]),
        ([(A, "a"), (C, "a"), (A, "b"), (D, "a")], [("pair", 1, "+C of its key directly behind it", "+C at offset 3")]),
        ([(D, "a")], [("pair", 0, "-C of its key directly before it", "nothing")]),
        ([(A, None)], [("key", 0, "a value in k", "NULL")]),
    ],
)
def test_a_finding_says_what_was_expected_and_what_was_found(rows: Any, expected: Any) -> None:
    rows = [(op, key, 1, *rest) for op, key, *rest in rows]

    found = [(f.rule.value, f.offset, f.expected, f.found) for f in check(_rows(*rows), KEY)]

    assert expected == found[: len(expected)]


def test_without_a_key_whole_rows_are_counted_and_pairs_are_neighbours() -> None:
    rows = [(A, "a"), (A, "a"), (R, "a"), (R, "a"), (R, "a"), (A, "a"), (R, "a"), (C, "b"), (A, "b")]

    found = check(_rows(*rows, profile=Profile.ODF), profile=Profile.ODF)

    assert [("presence", 4), ("pair", 7), ("presence", 7)] == _brief(found)
    assert ["a row to take back", "+C directly behind it", "a row to take back"] == [f.expected for f in found]


def test_under_another_schema_columns_that_came_or_went_are_no_difference() -> None:
    rows = _rows((A, "a", None, b"x", None), (C, "a", None, None, 1.5), (D, "a", None, b"y", 1.5), (R, "a", None, b"z"))
    later = rows.set_column(4, "schema_version", pa.array([1, 2, 2, 3], pa.int64()))

    assert [("image", 1), ("image", 3)] == _brief(check(rows, ("k",)))
    assert [("image", 3)] == _brief(check(later, ("k",)))


def test_columns_that_are_missing_or_of_another_type_are_said() -> None:
    rows = _rows((A, "a"))

    assert ["first offset, op, system_time, event_time, schema_version", "key id"] == [
        f.expected for f in check(rows.select(["op", "offset", *rows.schema.names[2:]]), ("id",))
    ]
    assert [("columns", None)] == _brief(check(rows.drop(["offset"])))
    finer = check(rows.drop(["schema_version"]), ("k",), profile=Profile.ODF)
    assert {
        "event_time as timestamp[ms, tz=UTC] or date32[day] or date64[ms]",
        "system_time as timestamp[ms, tz=UTC]",
    } == {f.expected for f in finer}
    twice = pa.table([*rows.columns, rows.column("k")], names=[*rows.schema.names, "k"])
    assert "columns: expected each name once, found k again" == str(check(twice, ("l",))[0])


def test_times_finer_than_milliseconds_are_not_odf() -> None:
    rows = _rows((A, "a", 1), profile=Profile.ODF)
    fine = rows.set_column(3, "event_time", pa.array([START_MS * 1000 + 1], pa.timestamp("us", tz="UTC")))

    assert ["columns", "system"] == [f.rule.value for f in check(fine, KEY, profile=Profile.ODF)]


def test_rows_before_are_known_with_their_values() -> None:
    former = state_of([("a", 1, b"x", None)])
    rows = _rows((R, "a", 1, b"y"), (R, "b", 1), profile=Profile.ODF)

    found = check(rows, KEY, profile=Profile.ODF, former=former)

    assert [("image", 0), ("presence", 1)] == _brief(found)
    assert f"event_time={former.column(0)[0].as_py()!r}"[:30] in found[0].expected
    assert ["k", "l", "v", "w"] == [*DATA]


def test_rows_that_lack_columns_are_told() -> None:
    rows = _rows((A, "a", 1, b"x"), (C, "a", 1, b"x"), (D, "a", 1, None), (R, "a", 1, None))
    lists = rows.add_column(5, "absent", pa.array([None, None, ["v", "w"], None], pa.list_(pa.string())))

    assert ["image at offset 2: expected every column of the row, found absent: v, w"] == [
        str(finding) for finding in check(lists, KEY)
    ]
