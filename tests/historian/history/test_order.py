"""How many entries a prefix holds, against asking each."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from historian.history.order import Order
from historian.history.prefix import Prefix
from historian.history.timeline import TimelineEntry
from historian.positions import LogPosition
from historian.positions.places import Place
from models.timelines import FILE, A, B, capture, position, statement

ORIGIN = position()


def mariadb(gtids: str, offset: int = 4) -> LogPosition:
    return LogPosition(flavor="mariadb", gtids=gtids, file=FILE, offset=offset, server="1")


def entry(number: int, gtid: str, ordinal: int, flavor: str) -> TimelineEntry:
    made = statement(number, gtid, ordinal=ordinal)
    if flavor == "mysql":
        return made
    at = mariadb("", 1000 * number - 100)
    place = Place(gtid=gtid, file=FILE, offset=1000 * number, ordinal=ordinal)
    return TimelineEntry.later(
        tuple, number=number, place=place, position=at, statement="", database="", event_time_us=0, server="1"
    )


def random_entries(random: Random, flavor: str) -> list[TimelineEntry]:
    """Some transactions of two sources, in order but for a few, some with two statements, and captures between."""
    reached = dict.fromkeys((A, B, f"{A}:blue") if flavor == "mysql" else ("0-1", "1-1", "0-2"), 0)
    entries: list[TimelineEntry] = [capture()] if flavor == "mysql" else []
    for _ in range(random.randrange(1, 12)):
        source = random.choice(list(reached))
        reached[source] += random.randint(1, 3)
        separator = ":" if flavor == "mysql" else "-"
        for ordinal in random.choice(((1,), (1, 3))):
            entries.append(entry(len(entries) + 1, f"{source}{separator}{reached[source]}", ordinal, flavor))
    if random.random() < 0.3:
        random.shuffle(entries)
    return entries


def random_prefix(random: Random, entries: list[TimelineEntry], flavor: str) -> Prefix:
    held = [each.place.gtid for each in random.sample(entries, random.randint(1, len(entries))) if each.place]
    if flavor == "mariadb":
        held = list({gtid.split("-")[0]: gtid for gtid in held}.values())
        where = mariadb(",".join(held) or "9-9-9")
    elif random.random() < 0.5:
        where = position(",".join(held) or f"{A}:99", 0, file="")
    else:
        where = position(
            f"{A}:1-{random.randint(1, 30)},{B}:1-{random.randint(1, 30)},{A}:blue:1-{random.randint(1, 30)}"
        )
    own = random.choice([None, *(each.place.gtid for each in entries if each.place)])
    return Prefix(where, own, None if own is None else random.choice((None, 0, 1, 2, 3, 4)))


@settings(deadline=None, max_examples=200)
@given(st.integers(0, 2**32), st.sampled_from(("mysql", "mariadb")))
@example(4695, "mariadb")  # one number of a domain, given by two servers
def test_a_cut_is_what_asking_each_entry_gives(seed: int, flavor: str) -> None:
    random = Random(seed)
    entries = random_entries(random, flavor)
    order = Order(entries)
    for _ in range(10):
        prefix = random_prefix(random, entries, flavor)
        held = [prefix.holds(each) for each in entries]
        cut = order.cut(prefix, ORIGIN)
        if cut is not None:
            assert [True] * cut + [False] * (len(entries) - cut) == held


@pytest.mark.parametrize("upto,expected", [(0, 1), (4, 1), (5, 2), (8, 2), (9, 4), (20, 4)])
def test_entries_of_one_source_are_counted_without_asking_each(upto: int, expected: int) -> None:
    order = Order([capture(), statement(2, f"{A}:5"), statement(3, f"{A}:9", ordinal=1)])
    order.append(statement(4, f"{A}:9", ordinal=4))

    assert expected == order.cut(Prefix(position(f"{B}:1{f',{A}:1-{upto}' if upto else ''}")), ORIGIN)


def test_events_of_a_transaction_see_its_earlier_statements() -> None:
    order = Order([statement(1, f"{A}:5", ordinal=1), statement(2, f"{A}:5", ordinal=4)])
    before = position(f"{A}:1-4")

    assert [0, 1, 1, 2] == [order.cut(Prefix(before, f"{A}:5", ordinal), ORIGIN) for ordinal in (1, 2, 4, 5)]


def test_sets_with_holes_and_positions_without_gtids_are_left_to_asking_each() -> None:
    order = Order([statement(1, f"{A}:5"), statement(2, f"{A}:9")])

    assert order.cut(Prefix(position(f"{A}:1-4:6-9")), ORIGIN) is None
    assert order.cut(Prefix(position("", 5000)), ORIGIN) is None
    assert Order([statement(1, "")]).cut(Prefix(position(f"{A}:1")), ORIGIN) is None
