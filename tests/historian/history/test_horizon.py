"""Forgetting: what a history answers behind its horizon stays the same, what it answered before it is gone."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from historian.errors import PositionAhead, PositionExpired, PositionUnknown, StoreError, UnknownTable
from historian.history.history import History
from historian.history.prefix import covers
from historian.schema.edits import DropTable, ForgetTable, RenameTable, SetDatabase, TruncateTable
from historian.schema.snapshots import Catalog, Database
from models.questions import answer, questions
from models.timelines import A, capture, create, position, random_log, statement, table

T, U, V = table("t"), table("u"), table("v")
SHOP = Database(name="shop", charset="latin1", collation="latin1_swedish_ci")


def forgotten(history: History, where: str) -> History:
    horizon, left = history.cut_at(position(where, 0, file=""))
    behind = [entry for entry in history.entries if entry.number > horizon.number]
    return History.of([*left, *behind], resolved=history.resolved, gaps=history.gaps, horizon=horizon)


@pytest.fixture
def history() -> History:
    return History.of(
        [
            capture(SetDatabase(database=SHOP), create(1, "t", "a"), create(2, "u", "b", first=2)),
            statement(2, f"{A}:2", TruncateTable(table=T, table_id=1)),
            statement(3, f"{A}:3", DropTable(table=U, table_id=2)),
            statement(4, f"{A}:4", create(3, "v", "c", first=3)),
            statement(5, f"{A}:5", ForgetTable(table=V, reason="not understood")),
            statement(6, f"{A}:8", TruncateTable(table=T, table_id=1)),
        ],
        resolved=position(f"{A}:1-9", 9000),
    )


def test_versions_keep_their_numbers_and_statements(history: History) -> None:
    left = forgotten(history, f"{A}:1-6")

    first = left.at(T, position(f"{A}:1-6", 6000))

    assert (2, "statement 2", [2, 6]) == (first.number, first.entry.statement, [v.number for v in left.versions(T)])
    assert [1, 2, 5, 6] == [entry.number for entry in left.entries]
    assert {"shop": SHOP} == left.catalog.databases


def test_a_position_before_the_horizon_is_expired(history: History) -> None:
    left = forgotten(history, f"{A}:1-6")

    with pytest.raises(PositionExpired):
        left.at(T, position(f"{A}:1-5", 5000))
    with pytest.raises(PositionExpired):
        left.at(T, position(f"{A}:1-6", 6000), gtid=f"{A}:2", ordinal=1)


def test_what_was_gone_or_not_known_at_the_horizon_is_so_behind_it(history: History) -> None:
    left = forgotten(history, f"{A}:1-6")
    left.record(statement(7, f"{A}:9", create(9, "u", "x", first=90)))

    with pytest.raises(UnknownTable):
        left.at(U, position(f"{A}:1-8", 8000))
    with pytest.raises(PositionUnknown, match="not understood"):
        left.at(V, position(f"{A}:1-8", 8000))
    assert 7 == left.at(U, position(f"{A}:1-9", 9000)).number


def test_ids_that_were_given_away_are_not_given_again(history: History) -> None:
    assert (4, 4) == (forgotten(history, f"{A}:1-9").catalog.next_table_id,) * 2
    assert history.catalog.next_column_id == forgotten(history, f"{A}:1-9").catalog.next_column_id


def test_a_renamed_table_is_known_by_its_last_name_alone() -> None:
    history = History.of(
        [capture(create(1, "t", "a")), statement(2, f"{A}:2", RenameTable(table=T, table_id=1, new=U))],
        resolved=position(f"{A}:1-9", 9000),
    )
    left = forgotten(history, f"{A}:1-3")
    left.record(statement(3, f"{A}:9", create(2, "t", "x", first=9)))

    assert 2 == left.at(U, position(f"{A}:1-4", 4000)).number
    with pytest.raises(UnknownTable):
        left.at(T, position(f"{A}:1-4", 4000))


def test_what_lies_before_the_horizon_is_recorded_already(history: History) -> None:
    left = forgotten(history, f"{A}:1-6")

    for entry in history.entries:
        left.record(entry)

    assert [1, 2, 5, 6] == [entry.number for entry in left.entries]
    with pytest.raises(StoreError, match="other content"):
        left.record(statement(2, f"{A}:77"))


def test_the_catalog_before_the_horizon_is_not_known(history: History) -> None:
    left = forgotten(history, f"{A}:1-6")

    assert history.catalog_at(5) == left.catalog_at(5) == left.catalog_at(left.first_number)
    with pytest.raises(StoreError, match="no such timeline entry"):
        left.catalog_at(4)


def test_a_history_is_not_cut_where_it_was_not_read(history: History) -> None:
    with pytest.raises(PositionAhead):
        history.cut_at(position(f"{A}:1-10", 10_000))
    with pytest.raises(PositionExpired):
        forgotten(history, f"{A}:1-6").cut_at(position(f"{A}:1-5", 5000))


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 2**32), st.integers(1, 14), st.booleans())
def test_a_history_answers_the_same_behind_every_horizon(seed: int, transactions: int, gtids: bool) -> None:
    random = Random(seed)
    log = random_log(random, transactions, gtids=gtids)
    history = History.of(log.entries, resolved=log.end)
    left = history
    cuts = sorted(random.sample(range(len(log.transactions)), min(2, len(log.transactions))))
    for cut in cuts:
        begin = log.transactions[cut].before
        horizon, entries = left.cut_at(begin)
        behind = [entry for entry in left.entries if entry.number > horizon.number]
        left = History.of([*entries, *behind], resolved=log.end, horizon=horizon, empty=Catalog())
        for question in questions(random, log):
            found = answer(left, question)
            if not covers(question.position, begin) or question.is_about_the_past_of(begin):
                assert PositionExpired is found
            else:
                assert answer(history, question) == found
        assert history.catalog == left.catalog
        assert all(history.catalog_at(n) == left.catalog_at(n) for n in range(horizon.number, history.last_number + 1))
