"""MariaDB positions: the last GTID of each domain."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from historian.errors import PositionError
from historian.positions import MariadbGtids

models = st.dictionaries(st.integers(0, 3), st.tuples(st.integers(1, 3), st.integers(1, 20)), max_size=4)


def make(model: dict[int, tuple[int, int]]) -> MariadbGtids:
    return MariadbGtids(tuple((domain, *model[domain]) for domain in sorted(model)))


@settings(deadline=None, max_examples=200)
@given(models, models)
def test_position_stands_for_everything_up_to_it_in_each_domain(
    left: dict[int, tuple[int, int]], right: dict[int, tuple[int, int]]
) -> None:
    a, b = make(left), make(right)

    def upto(model: dict[int, tuple[int, int]]) -> set[tuple[int, int]]:
        return {(domain, n) for domain, (_, last) in model.items() for n in range(1, last + 1)}

    assert (upto(left) >= upto(right)) == a.covers(b)
    union = a.union(b)
    assert upto(left) | upto(right) == upto({domain: (server, last) for domain, server, last in union.last})
    assert union.covers(a)
    assert union.covers(b)
    for domain, n in upto(right):
        assert ((domain, n) in upto(left)) == a.contains_gtid(f"{domain}-9-{n}")
    assert a == MariadbGtids.parse(str(a))


def test_domains_are_sorted_when_read() -> None:
    assert "0-5-812,1-5-3" == str(MariadbGtids.parse(" 1-5-3, 0-5-812 "))


@pytest.mark.parametrize("text", ["0-5", "0-5-x", "0-5-1,0-6-2", "0:5:1"])
def test_text_that_is_no_position_is_refused_by_name(text: str) -> None:
    with pytest.raises(PositionError, match="not a MariaDB GTID position"):
        MariadbGtids.parse(text)
