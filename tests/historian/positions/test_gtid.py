"""GTID algebra against plain sets of numbers."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from historian.errors import PositionError
from historian.positions import GtidSet, missing_from

U = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
V = "4e11fa47-71ca-11e1-9e33-c80aa9429562"
SOURCES = (U, f"{U}:backup", f"{U}:a_1", V)

Numbers = dict[str, set[int]]

models = st.dictionaries(st.sampled_from(SOURCES), st.sets(st.integers(1, 25), min_size=1), max_size=4)


def make(model: Numbers) -> GtidSet:
    return GtidSet.of({source: [(n, n) for n in numbers] for source, numbers in model.items()})


def pairs(model: Numbers) -> set[tuple[str, int]]:
    return {(source, n) for source, numbers in model.items() for n in numbers}


def expand(gtids: GtidSet) -> set[tuple[str, int]]:
    return {(source, n) for source, intervals in gtids for first, last in intervals for n in range(first, last + 1)}


@settings(deadline=None, max_examples=300)
@given(models, models)
def test_algebra_is_that_of_sets(left: Numbers, right: Numbers) -> None:
    a, b = make(left), make(right)

    assert pairs(left) | pairs(right) == expand(a.union(b))
    assert pairs(left) - pairs(right) == expand(a.subtract(b))
    assert (pairs(left) >= pairs(right)) == a.covers(b)
    assert (pairs(left) == pairs(right)) == (a == b)
    assert len(pairs(left)) == len(a)
    assert bool(pairs(left)) == bool(a)


BIG = 2**63 - 2
intervals = st.tuples(st.integers(1, BIG), st.integers(1, BIG)).map(sorted).map(tuple)
near = st.integers(1, 6).flatmap(lambda n: st.tuples(st.just(n), st.integers(n, 9)))
sets = st.dictionaries(st.sampled_from(SOURCES), st.lists(st.one_of(near, intervals), max_size=4), max_size=4).map(
    GtidSet.of
)


@settings(deadline=None, max_examples=200)
@given(sets, sets, sets)
def test_laws_of_sets_hold(a: GtidSet, b: GtidSet, c: GtidSet) -> None:
    empty = GtidSet()

    assert a.union(b) == b.union(a)
    assert a.union(b.union(c)) == a.union(b).union(c)
    assert (a, a, empty) == (a.union(a), a.subtract(empty), a.subtract(a))
    assert a.subtract(b.union(c)) == a.subtract(b).subtract(c)
    assert a.union(b) == a.subtract(b).union(b)
    assert a.subtract(b) == a.subtract(b).subtract(b)


@settings(deadline=None, max_examples=200)
@given(sets, sets, sets)
def test_covers_is_a_partial_order(a: GtidSet, b: GtidSet, c: GtidSet) -> None:
    assert a.covers(a)
    assert a.covers(GtidSet())
    assert (a == b) == (a.covers(b) and b.covers(a))
    assert a.covers(b) == (a.union(b) == a) == (missing_from(b, a) is None)
    assert a.union(b).covers(a)
    assert a.covers(a.subtract(b))
    if a.covers(b) and b.covers(c):
        assert a.covers(c)
    assert a.union(b).union(c).covers(a.union(c))


@settings(deadline=None, max_examples=200)
@given(models)
def test_text_form_reads_back_as_the_same_value(model: Numbers) -> None:
    gtids = make(model)

    again = GtidSet.parse(str(gtids))

    assert (again, hash(again)) == (gtids, hash(gtids))
    assert pickle.loads(pickle.dumps(gtids)) == gtids


@settings(deadline=None, max_examples=200)
@given(models, st.sampled_from(SOURCES), st.integers(1, 26))
def test_contains_is_membership(model: Numbers, source: str, number: int) -> None:
    expected = (source, number) in pairs(model)

    assert expected == make(model).contains(source, number)
    assert expected == make(model).contains_gtid(f"{source}:{number}")
    assert expected == pickle.loads(pickle.dumps(make(model))).contains(source, number)


@settings(deadline=None, max_examples=100)
@given(st.lists(st.tuples(st.sampled_from(SOURCES), st.integers(1, 30), st.integers(0, 6)), max_size=12))
def test_intervals_may_come_in_any_order_and_overlap(parts: list[tuple[str, int, int]]) -> None:
    text = ", ".join(
        f"{source.upper()} : {first} - {first + more}".replace(" - ", "-") for source, first, more in parts
    )

    expected = {(source, n) for source, first, more in parts for n in range(first, first + more + 1)}
    assert expected == expand(GtidSet.parse(text))


def test_adjacent_intervals_are_one() -> None:
    assert f"{U}:1-3:7" == str(GtidSet.parse(f"{U}:3:1-2,{U}:7"))


def test_tags_of_a_server_print_behind_its_untagged_part() -> None:
    gtids = GtidSet.parse(f"{U}:Backup:4,{U}:1-2,{V}:9")

    assert f"{U}:1-2:backup:4,{V}:9" == str(gtids)
    assert (True, False) == (gtids.contains(f"{U}:backup", 4), gtids.contains(U, 4))


def test_an_interval_that_ends_before_it_begins_is_empty_as_on_the_server() -> None:
    assert GtidSet() == GtidSet.parse(f"{U}:5-4")


def test_empty_text_is_the_empty_set() -> None:
    assert (GtidSet(), "") == (GtidSet.parse(" \n"), str(GtidSet()))


@pytest.mark.parametrize(
    "text",
    [
        f"{U}:",
        f"{U}:0",
        f"{U}:1-",
        f"{U}:-1",
        f"{U}:1:Tag-x:2",
        f"{U}:{'t' * 33}:1",
        f"{U[:-1]}:1",
        f"{U}:{2**63 - 1}",
        f"{U}:{'9' * 5000}",
        f"{U}:\u0661",
        f"{U}:\u212a:1",
        f"{U}:1\u00a0",
        f"{{{U}:1",
        f"{U[:8]}{U[9:]}:1",
    ],
)
def test_text_that_is_no_set_is_refused_by_name(text: str) -> None:
    with pytest.raises(PositionError, match="not a GTID set") as caught:
        GtidSet.parse(text)

    assert text in str(caught.value)


@pytest.mark.parametrize(
    "text,same",
    [
        (U.replace("-", "") + ":1", f"{U}:1"),
        (f"{{{U.upper()}}}:1", f"{U}:1"),
        (f"\v{U} :\t010 -\n12 ,\r", f"{U}:10-12"),
        (f"{U}, ,,{V}:1,{U}:Tag", f"{V}:1"),
        (f"{U}:{'0' * 5000}1", f"{U}:1"),
    ],
)
def test_odd_spellings_read_as_the_server_reads_them(text: str, same: str) -> None:
    assert same == str(GtidSet.parse(text))


@pytest.mark.parametrize("gtid", [U, f"{U}:", f"{U}:x", f"{U}:-1", f"{U}:1-2", f"{U}:\u00b2"])
def test_what_is_no_gtid_is_refused(gtid: str) -> None:
    with pytest.raises(PositionError, match="not a GTID"):
        GtidSet.parse(f"{U}:1").contains_gtid(gtid)


def test_the_largest_number_is_read() -> None:
    assert GtidSet.parse(f"{U}:{2**63 - 2}").contains(U, 2**63 - 2)
