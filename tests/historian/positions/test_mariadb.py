"""MariaDB positions: the last GTID of each domain."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from historian.errors import PositionError
from historian.positions import GtidSet, MariadbGtids, missing_from

Model = dict[int, tuple[int, int]]
models = st.dictionaries(st.integers(0, 3), st.tuples(st.integers(1, 3), st.integers(1, 20)), max_size=4)


def make(model: Model) -> MariadbGtids:
    return MariadbGtids(tuple((domain, *model[domain]) for domain in sorted(model)))


@settings(deadline=None, max_examples=200)
@given(models, models)
def test_position_stands_for_everything_up_to_it_in_each_domain(left: Model, right: Model) -> None:
    a, b = make(left), make(right)

    def upto(model: Model) -> set[tuple[int, int]]:
        return {(domain, n) for domain, (_, last) in model.items() for n in range(1, last + 1)}

    assert (upto(left) >= upto(right)) == a.covers(b)
    union = a.union(b)
    assert upto(left) | upto(right) == upto({domain: (server, last) for domain, server, last in union.last})
    assert union.covers(a)
    assert union.covers(b)
    ahead = {domain for domain, n in upto(left) - upto(right)}
    assert tuple(gtid for gtid in a.last if gtid[0] in ahead) == a.subtract(b).last
    for domain, n in upto(right):
        assert ((domain, n) in upto(left)) == a.contains_gtid(f"{domain}-9-{n}")
    assert a == MariadbGtids.parse(str(a))


@settings(deadline=None, max_examples=200)
@given(models, models, models)
def test_laws_of_positions_hold(left: Model, right: Model, third: Model) -> None:
    a, b, c = make(left), make(right), make(third)

    for one, other in (
        (a.union(b), b.union(a)),
        (a.union(b.union(c)), a.union(b).union(c)),
    ):
        # Which server's GTID stands for a domain does not matter where both have the same number.
        assert one.covers(other)
        assert other.covers(one)
    assert (a, a) == (a.union(a), a.subtract(MariadbGtids()))
    assert a.covers(b) == (not b.subtract(a)) == (missing_from(b, a) is None) == a.covers(a.union(b))
    if a.covers(b) and b.covers(c):
        assert a.covers(c)


def test_kinds_of_servers_do_not_compare() -> None:
    with pytest.raises(PositionError, match="two kinds of server"):
        missing_from(MariadbGtids(), GtidSet())


def test_domains_are_sorted_when_read() -> None:
    assert "0-5-812,1-5-3" == str(MariadbGtids.parse(" 1-5-3, 0-5-812"))


@pytest.mark.parametrize(
    "text",
    [
        "0-5",
        "0-5-x",
        "0-5-1,0-6-2",
        "0:5:1",
        "0-5-1 ",
        "0-5-1,",
        "0 -5-1",
        "0-5-\u0661",
        f"{2**32}-1-1",
        f"0-{2**32}-1",
        f"0-1-{2**64}",
        f"0-1-{'9' * 5000}",
    ],
)
def test_text_that_is_no_position_is_refused_by_name(text: str) -> None:
    with pytest.raises(PositionError, match="not a MariaDB GTID position"):
        MariadbGtids.parse(text)


@pytest.mark.parametrize("gtid", ["0-1", "0-1-x", "0-1-1-1", ""])
def test_what_is_no_gtid_is_refused(gtid: str) -> None:
    with pytest.raises(PositionError, match="not a GTID"):
        MariadbGtids.parse("0-1-5").contains_gtid(gtid)
