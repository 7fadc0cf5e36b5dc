"""Lookup over partially ordered logs against a model of plain sets: servers, tags, domains, errant transactions, failovers."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from historian.errors import HistorianError, PositionAhead, PositionExpired, PositionUnknown, UnknownTable
from historian.history.history import History
from historian.history.timeline import TimelineEntry
from historian.names import TableName
from historian.positions import LogPosition
from models.lookup_model import KINDS, Question, World, random_world
from models.timelines import A, random_log, table

NAMES = tuple(table(name) for name in ("t0", "t1", "t2", "t3", "t4", "never"))


def found(history: History, name: TableName, where: LogPosition, gtid: str | None, ordinal: int | None) -> object:
    try:
        return history.at(name, where, ordinal, gtid).snapshot
    except HistorianError as error:
        return type(error)


def history_of(world: World) -> History:
    return History.of(world.entries, resolved=world.position(world.executed[-1]), gaps=world.recorded_gaps())


def random_question(random: Random, world: World) -> Question:
    """A prefix that a log could have, or only a replica of several sources, or none; with a row's own event or not."""
    everything = sorted(world.executed[-1])
    prefix = set(random.choice(world.executed))
    style = random.random()
    if world.mariadb:
        if style < 0.5:
            cuts = {domain: random.randint(0, 9) for domain in ("0", "1", "7")}
            prefix = {(d, n) for d, n in everything if n <= cuts[d]} | (world.executed[0] if style < 0.45 else set())
        if style > 0.95:
            prefix |= {("3", 1)}
    else:
        if style < 0.3:
            prefix = set(random.sample(everything, random.randint(0, len(everything))))
        elif style < 0.5:
            prefix -= set(random.sample(everything, min(2, len(everything))))
        elif style < 0.6:
            prefix |= set(random.sample(everything, min(2, len(everything))))
        if style < 0.55:
            prefix |= world.executed[0]
        if style > 0.95:
            prefix |= {random.choice(((A, 99), ("dddddddd-71ca-11e1-9e33-c80aa9429562", 1)))}
    if random.random() < 0.4 or not everything:
        return Question(prefix=frozenset(prefix))
    own = random.choice(everything) if random.random() < 0.95 else (everything[0][0], 99)
    return Question(prefix=frozenset(prefix), own=own, ordinal=random.choice((None, *range(9))))


@pytest.mark.parametrize("kind", KINDS)
@settings(deadline=None, max_examples=40)
@given(st.integers(0, 2**32), st.integers(1, 14))
def test_at_gives_the_last_statement_that_the_prefix_contains_or_says_why_not(
    kind: str, seed: int, transactions: int
) -> None:
    random = Random(seed)
    world = random_world(random, kind, transactions)
    history = history_of(world)

    for _ in range(12):
        question = random_question(random, world)
        server = random.choice(("", "server 1", "server 2", "elsewhere"))
        file = random.choice(("", "s1-bin.000001", "s2-bin.000001", "other.000007"))
        where = world.position(question.prefix, server=server, file=file, offset=random.randint(4, 2000))
        gtid = None if question.own is None else world.gtid(question.own)
        if not where.gtids:
            where = LogPosition(flavor=where.flavor, gtids="", file="", offset=0)
        for name in NAMES:
            expected = world.answer(name, question)
            assert expected == found(history, name, where, gtid, question.ordinal), (name, question)


@pytest.mark.parametrize("kind", KINDS)
def test_the_random_questions_meet_every_answer(kind: str) -> None:
    """Else the test above would prove less than it says."""
    random = Random(1)
    met: set[object] = set()
    for _ in range(25):
        world = random_world(random, kind, 10)
        for _ in range(12):
            question = random_question(random, world)
            answers = [world.answer(name, question) for name in NAMES]
            met |= {answer if isinstance(answer, type) else "a snapshot" for answer in answers}

    assert met == {"a snapshot", PositionAhead, PositionExpired, PositionUnknown, UnknownTable}


def rolled_at(where: LogPosition, first: int, each: int) -> LogPosition:
    """The same place in a log whose files hold *each* bytes."""
    return replace(where, file=f"binlog.{first + where.offset // each:06}", offset=4 + where.offset % each)


def rolled(entry: TimelineEntry, first: int, each: int) -> TimelineEntry:
    place = entry.place
    if place is not None:
        there = rolled_at(replace(entry.position, offset=place.offset), first, each)
        place = replace(place, file=there.file, offset=there.offset)
    return replace(entry, place=place, position=rolled_at(entry.position, first, each))


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 2**32), st.integers(1, 14))
def test_files_decide_on_their_own_server_and_nowhere_else(seed: int, transactions: int) -> None:
    """A log without GTIDs whose files roll over, from 999999 to 1000000 too."""
    random = Random(seed)
    log = random_log(random, transactions, gtids=False)
    first, each = random.choice((1, 9, 999_998)), random.choice((100, 150, 400))
    history = History.of(
        [rolled(entry, first, each) for entry in log.entries], resolved=rolled_at(log.end, first, each)
    )
    whole = History.of(log.entries, resolved=log.end)

    for transaction in log.transactions:
        for ordinal in (None, *range(8)):
            for name in NAMES:
                where = transaction.before if ordinal is not None else transaction.after
                expected = found(whole, name, where, None, ordinal)
                there = rolled_at(where, first, each)
                assert expected == found(history, name, there, None, ordinal)
                person = LogPosition(flavor="mysql", gtids="", file=there.file, offset=there.offset)
                assert expected == found(history, name, person, None, ordinal)
                elsewhere = LogPosition(
                    flavor="mysql", gtids="", file=there.file, offset=there.offset, server="another server"
                )
                assert found(history, name, elsewhere, None, ordinal) is PositionUnknown
