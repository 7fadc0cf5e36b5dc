"""A history that was stored and read again, against a model that keeps whole catalogs."""

from __future__ import annotations

from contextlib import closing
from random import Random
from unittest.mock import patch

from hypothesis import given, settings
from hypothesis import strategies as st

from historian.history.timeline import Gap
from historian.positions import GtidSet
from historian.store import Store
from models.questions import answer, model_answer, questions
from models.timelines import Log, position, random_log


def record_in_pieces(store: Store, log: Log, random: Random) -> None:
    """As trackers do that die and begin anew: pieces overlap, and statements are recorded under other numbers too."""
    done = 0
    while done < len(log.entries):
        begin, end = random.randint(0, done), random.randint(done + 1, len(log.entries))
        store.record(log.entries[begin:end], log.entries[end - 1].position)
        done = end


def random_gap(log: Log, random: Random) -> tuple[Gap, ...]:
    if len(log.transactions) < 3 or random.random() < 0.5:
        return ()
    begin = random.randrange(1, len(log.transactions) - 1)
    end = random.randrange(begin + 1, len(log.transactions))
    return (Gap(start=log.transactions[begin].before, end=log.transactions[end].before, reason="purged"),)


@settings(deadline=None, max_examples=40)
@given(seed=st.integers(0, 2**32), transactions=st.integers(1, 16), full_every=st.integers(1, 6))
def test_every_question_has_the_answer_of_the_model(seed: int, transactions: int, full_every: int) -> None:
    random = Random(seed)
    log = random_log(random, transactions)
    gaps = random_gap(log, random)
    resolved = random.choice([log.end, log.transactions[-1].before, log.end])
    with patch("historian.store.timelines.FULL_EVERY", full_every), closing(Store.open("sqlite://")) as store:
        record_in_pieces(store, log, random)
        store.record([], resolved, gaps)
        history, entries = store.history(), store.entries()

    asked = [question for question in questions(random, log) if covers_origin(question.position.gtids)]
    for question in random.sample(asked, min(60, len(asked))):
        found = answer(history, question)
        expected = model_answer(log, resolved, gaps, question)
        assert expected == (found[3] if isinstance(found, tuple) else found), question
    assert tuple(log.entries) == entries == history.entries
    assert log.catalog == history.catalog


def covers_origin(gtids: str) -> bool:
    return bool(GtidSet.parse(gtids))


@settings(deadline=None, max_examples=40)
@given(seed=st.integers(0, 2**32), transactions=st.integers(2, 14))
def test_a_history_read_again_grows_as_if_it_had_never_been_stored(seed: int, transactions: int) -> None:
    random = Random(seed)
    log = random_log(random, transactions)
    known = random.randrange(1, len(log.entries) + 1)
    with closing(Store.open("sqlite://")) as store:
        store.record(log.entries[:known], log.entries[known - 1].position)
        history = store.history()
        for number in random.sample(range(known + 1), min(3, known)):
            history.catalog_at(number)
        for entry in log.entries:
            history.record(entry)
        history.resolve(log.end)
        store.record(log.entries, log.end)
        again = store.history()

    for question in questions(random, log):
        assert answer(again, question) == answer(history, question)
    assert log.catalog == history.catalog == again.catalog
    for number in range(1, len(log.entries) + 1):
        assert again.catalog_at(number) == history.catalog_at(number)
        assert again.versions_by(number) == history.versions_by(number)


@settings(deadline=None, max_examples=40)
@given(seed=st.integers(0, 2**32), transactions=st.integers(1, 14))
def test_forgetting_in_the_store_leaves_the_same_answers_behind_the_position(seed: int, transactions: int) -> None:
    random = Random(seed)
    log = random_log(random, transactions)
    begin = random.choice(log.transactions).before
    with closing(Store.open("sqlite://")) as store:
        record_in_pieces(store, log, random)
        store.record([], log.end)
        before = store.history()
        store.forget(begin)
        store.forget(begin)
        store.record(log.entries, log.end)
        after, entries = store.history(), store.entries()

    asked = [question for question in questions(random, log) if question.position.covers(begin)]
    for question in asked:
        if not question.is_about_the_past_of(begin):
            assert answer(before, question) == answer(after, question)
    assert before.catalog == after.catalog
    assert entries == after.entries
    assert position().gtids != begin.gtids or before.entries == entries
