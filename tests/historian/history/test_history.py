"""Lookup by position: each rule by name, and replay of random timelines. Random questions are in test_lookup."""

from __future__ import annotations

import pickle
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from historian.errors import (
    EditConflict,
    PositionAhead,
    PositionExpired,
    PositionUnknown,
    StoreError,
    UnknownTable,
)
from historian.history.history import History
from historian.history.timeline import Gap, TimelineEntry
from historian.names import TableName
from historian.positions import LogPosition
from historian.positions.places import Place
from historian.schema.applying import apply_all
from historian.schema.edits import DropDatabase, DropTable, ForgetTable, RenameTable, SetDatabase, TruncateTable
from historian.schema.gaps import ResumeTable, SkipLog
from historian.schema.snapshots import Catalog, Database
from models.questions import found_at
from models.timelines import A, B, capture, create, position, random_log, snapshot, statement, table

T = table("t")
DROP_T = DropTable(table=T, table_id=1)


def number_at(history: History, where: LogPosition, name: TableName = T, **event: object) -> int:
    return history.at(name, where, **event).number  # type: ignore[arg-type]


def made_of(*entries: TimelineEntry, upto: str = f"{A}:1-99,{B}:1-99") -> History:
    return History.of(entries, resolved=position(upto, 99_000))


def test_version_holds_for_prefixes_that_contain_its_ddl() -> None:
    add = create(1, "t", "a"), TruncateTable(table=T, table_id=1)
    history = made_of(capture(add[0]), statement(2, f"{A}:5", add[1]))

    assert (1, 2, 2) == tuple(
        number_at(history, position(gtids, offset))
        for gtids, offset in ((f"{A}:1-4", 1900), (f"{A}:1-5", 2100), (f"{A}:1-9", 9000))
    )


def test_transaction_of_a_ddl_sees_the_version_before_it_up_to_the_ddl() -> None:
    history = made_of(
        capture(create(1, "t", "a")),
        statement(2, f"{A}:5", TruncateTable(table=T, table_id=1), ordinal=2),
        statement(3, f"{A}:5", TruncateTable(table=T, table_id=1), ordinal=4),
    )
    before = position(f"{A}:1-4", 1900)

    found = [number_at(history, before, gtid=f"{A}:5", ordinal=ordinal) for ordinal in (1, 2, 3, 4, 5)]

    assert [1, 1, 2, 2, 3] == found


def test_own_ordinal_decides_even_where_the_position_holds_the_whole_transaction() -> None:
    history = made_of(
        capture(create(1, "t", "a")), statement(2, f"{A}:5", TruncateTable(table=T, table_id=1), ordinal=2)
    )

    assert 1 == number_at(history, position(f"{A}:1-5", 3000), gtid=f"{A}:5", ordinal=1)


def test_rows_of_create_table_select_see_the_table_that_their_transaction_creates() -> None:
    history = made_of(capture(), statement(2, f"{A}:5", create(1, "t", "a"), ordinal=1))

    assert 2 == number_at(history, position(f"{A}:1-4", 1900), gtid=f"{A}:5", ordinal=3)


def test_without_gtids_file_and_offset_decide() -> None:
    history = History.of(
        [capture(create(1, "t", "a")), statement(2, "", TruncateTable(table=T, table_id=1), offset=500)],
        resolved=position(offset=900),
    )

    found = [number_at(history, position(offset=offset)) for offset in (499, 500, 501, 900)]
    assert [1, 1, 2, 2] == found


def test_without_gtids_a_transaction_is_known_by_its_begin() -> None:
    begin = position(offset=450)
    history = History.of(
        [
            capture(create(1, "t", "a")),
            statement(2, "", TruncateTable(table=T, table_id=1), offset=500, ordinal=3, before=begin),
        ],
        resolved=position(offset=900),
    )

    assert [1, 1, 2] == [number_at(history, begin, ordinal=ordinal) for ordinal in (2, 3, 4)]


def test_equal_gtids_on_another_server_with_other_files_find_the_same_version() -> None:
    history = made_of(capture(create(1, "t", "a")), statement(2, f"{A}:5", TruncateTable(table=T, table_id=1)))
    elsewhere = position(f"{A}:1-5", 4, file="replica-bin.000001", server=B)

    assert 2 == number_at(history, elsewhere)


def test_a_statement_without_gtid_cannot_be_placed_on_another_server() -> None:
    history = made_of(capture(create(1, "t", "a")), statement(2, "", TruncateTable(table=T, table_id=1)))

    with pytest.raises(PositionUnknown, match="cannot be compared"):
        history.at(T, position(f"{A}:1-5", 4, file="replica-bin.000001", server=B))


def test_a_file_alone_finds_versions_of_a_log_with_gtids() -> None:
    history = made_of(
        capture(create(1, "t", "a"), at=position(f"{A}:1-3", 900)),
        statement(2, f"{A}:5", TruncateTable(table=T, table_id=1)),
    )

    assert [1, 1, 2] == [number_at(history, position(offset=offset)) for offset in (900, 2000, 2001)]
    with pytest.raises(PositionExpired):
        history.at(T, position(offset=899))


def test_a_file_that_names_no_server_says_nothing_where_the_history_is_of_two() -> None:
    elsewhere = replace(statement(2, f"{A}:5", TruncateTable(table=T, table_id=1)), server=B)
    history = made_of(capture(create(1, "t", "a")), elsewhere)

    with pytest.raises(PositionUnknown, match="does not say whose file"):
        history.at(T, position(offset=5000, server=""))
    assert 1 == number_at(made_of(capture(create(1, "t", "a"))), position(offset=5000, server=""))


@pytest.mark.parametrize("where", [{"server": B}, {"file": "renamed-bin.000001"}])
def test_files_of_another_server_or_log_cannot_be_compared(where: dict[str, str]) -> None:
    history = History.of([capture(create(1, "t", "a"))], resolved=position(offset=900))

    with pytest.raises(PositionUnknown, match="cannot be compared"):
        history.at(T, position(offset=500, **where))


def test_before_the_first_version_is_expired() -> None:
    history = made_of(capture(), statement(2, f"{A}:5", create(1, "t", "a")))

    with pytest.raises(PositionExpired, match="before the table's first version") as caught:
        history.at(T, position(f"{A}:1-4", 1900))

    assert f"{A}:5" in str(caught.value)


def test_before_the_origin_is_expired() -> None:
    history = made_of(capture(create(1, "t", "a"), at=position(f"{A}:1-10", 5000)))

    with pytest.raises(PositionExpired, match="before the history's begin"):
        history.at(T, position(f"{A}:1-9", 4000))


def test_beyond_the_resolved_position_is_ahead_and_retryable() -> None:
    history = made_of(capture(create(1, "t", "a")), upto=f"{A}:1-5")

    with pytest.raises(PositionAhead) as caught:
        history.at(T, position(f"{A}:1-6", 99_500))

    assert caught.value.retryable


def test_a_transaction_behind_the_resolved_position_is_ahead() -> None:
    history = made_of(capture(create(1, "t", "a")), upto=f"{A}:1-5")
    end = position(f"{A}:1-5", 99_000)

    assert 1 == number_at(history, end)
    with pytest.raises(PositionAhead):
        history.at(T, end, gtid=f"{A}:6", ordinal=1)
    history.resolve(position(f"{A}:1-6", 99_900))
    assert 1 == number_at(history, end, gtid=f"{A}:6", ordinal=1)


def test_inside_a_gap_is_unknown_and_around_it_is_not() -> None:
    history = made_of(capture(create(1, "t", "a")))
    history.add_gap(Gap(start=position(f"{A}:1-5", 5000), end=position(f"{A}:1-8", 8000), reason="the log was purged"))

    assert 1 == number_at(history, position(f"{A}:1-5", 5000))
    assert 1 == number_at(history, position(f"{A}:1-5", 5000), gtid=f"{A}:5", ordinal=9)
    assert 1 == number_at(history, position(f"{A}:1-8", 8000))
    for inside in ({"where": position(f"{A}:1-6", 6000)}, {"where": position(f"{A}:1-5", 5000), "gtid": f"{A}:6"}):
        with pytest.raises(PositionUnknown, match=r"gap of the history.*purged"):
            number_at(history, **inside)  # type: ignore[arg-type]


def test_behind_a_statement_not_understood_is_unknown_with_its_reason() -> None:
    history = made_of(
        capture(create(1, "t", "a")), statement(2, f"{A}:5", ForgetTable(table=T, reason="ALTER t FROBNICATE"))
    )

    assert 1 == number_at(history, position(f"{A}:1-4", 1900))
    with pytest.raises(PositionUnknown, match="FROBNICATE"):
        history.at(T, position(f"{A}:1-5", 2500))


def test_a_table_created_again_after_it_was_forgotten_is_known() -> None:
    history = made_of(
        capture(create(1, "t", "a")),
        statement(2, f"{A}:5", ForgetTable(table=T, reason="odd")),
        capture(create(1, "t", "a", "b"), at=position(f"{A}:1-7", 7000), number=3),
    )

    assert 3 == number_at(history, position(f"{A}:1-7", 7000))
    assert ["odd", None] == [version.unknown for version in history.versions_of(1)[1:]]


def test_a_name_that_never_was_is_an_unknown_table() -> None:
    with pytest.raises(UnknownTable, match=r"shop\.nothing"):
        made_of(capture()).at(table("nothing"), position(f"{A}:1", 100))


def test_a_dropped_table_is_unknown_from_its_drop_on_and_its_statement_is_named() -> None:
    history = made_of(capture(create(1, "t", "a")), statement(2, f"{A}:5", DROP_T))

    assert 1 == number_at(history, position(f"{A}:1-4", 1900))
    with pytest.raises(UnknownTable, match="statement 2"):
        history.at(T, position(f"{A}:1-5", 2500))


def test_a_table_created_again_has_another_id() -> None:
    history = made_of(
        capture(create(1, "t", "a")), statement(2, f"{A}:5", DROP_T, create(2, "t", "a", first=2)), upto=f"{A}:1-9"
    )

    ids = [history.at(T, position(f"{A}:1-{n}", offset)).table_id for n, offset in ((4, 1900), (5, 2100))]

    assert [1, 2] == ids
    assert (None, (DROP_T,)) == (history.versions_of(1)[-1].snapshot, history.versions_of(1)[-1].edits)


def test_swapped_tables_keep_their_ids_under_the_other_name() -> None:
    spare, other = table("spare"), table("u")
    swap = (
        RenameTable(table=T, table_id=1, new=spare),
        RenameTable(table=other, table_id=2, new=T),
        RenameTable(table=spare, table_id=1, new=other),
    )
    history = made_of(capture(create(1, "t", "a"), create(2, "u", "b", first=2)), statement(2, f"{A}:5", *swap))
    before, after = position(f"{A}:1-4", 1900), position(f"{A}:1-5", 2500)

    assert [(1, 2), (2, 1)] == [(history.at(T, at).table_id, history.at(other, at).table_id) for at in (before, after)]
    assert (swap[0], swap[2]) == history.versions_of(1)[-1].edits
    assert () == history.timeline(spare)


def test_a_renamed_table_is_gone_under_its_old_name() -> None:
    history = made_of(
        capture(create(1, "t", "a")), statement(2, f"{A}:5", RenameTable(table=T, table_id=1, new=table("u")))
    )

    with pytest.raises(UnknownTable, match="gone"):
        history.at(T, position(f"{A}:1-5", 2500))
    with pytest.raises(PositionExpired):
        history.at(table("u"), position(f"{A}:1-4", 1900))
    assert 1 == history.at(table("u"), position(f"{A}:1-5", 2500)).table_id


def test_dropping_a_database_ends_all_of_its_tables() -> None:
    drop = (DROP_T, DropTable(table=table("u"), table_id=2), DropDatabase(name="shop"))
    shop = SetDatabase(database=Database(name="shop", charset="latin1", collation="latin1_swedish_ci"))
    history = made_of(capture(shop, create(1, "t", "a"), create(2, "u", "b", first=2)), statement(2, f"{A}:5", *drop))

    assert ({}, {}) == (history.catalog.tables, history.catalog.databases)
    assert [{"shop"}, {1, 2}] == [
        set(history.catalog_at(1).databases),
        {version.table_id for version in history.versions_by(2)},
    ]


def test_a_prefix_with_a_later_statement_but_not_an_earlier_one_is_unknown() -> None:
    history = made_of(
        capture(create(1, "t", "a")),
        statement(2, f"{A}:1", TruncateTable(table=T, table_id=1)),
        statement(3, f"{B}:1", TruncateTable(table=T, table_id=1)),
    )

    assert 2 == number_at(history, position(f"{A}:1", 2500))
    assert 3 == number_at(history, position(f"{A}:1,{B}:1", 3500))
    with pytest.raises(PositionUnknown, match=f"{A}:1"):
        history.at(T, position(f"{B}:1", 2500))


def test_what_another_server_did_to_another_table_does_not_matter() -> None:
    history = made_of(
        capture(create(1, "t", "a"), create(2, "u", "b", first=2)),
        statement(2, f"{A}:1", TruncateTable(table=table("u"), table_id=2)),
        statement(3, f"{B}:1", TruncateTable(table=T, table_id=1)),
    )

    assert 3 == number_at(history, position(f"{B}:1", 2500))


def test_replayed_ddl_is_ignored_under_whatever_number() -> None:
    first = capture(create(1, "t", "a"))
    ddl = statement(2, f"{A}:5", TruncateTable(table=T, table_id=1))
    history = made_of(first, ddl)

    for again in (first, ddl, statement(3, f"{A}:5", DROP_T), statement(9, f"{A}:5", DROP_T)):
        history.record(again)

    assert (first, ddl) == history.entries
    assert ddl == history.recorded(Place(gtid=f"{A}:5", file="other", offset=1, ordinal=1), "other")


def test_same_number_with_other_content_is_refused() -> None:
    history = made_of(capture(), statement(2, f"{A}:5", create(1, "t", "a")))

    for other in (statement(2, f"{A}:6", create(1, "t", "a")), statement(2, f"{A}:5", create(1, "t", "b"))):
        with pytest.raises(StoreError, match=r"other content \(entry 2\)"):
            history.record(other)


def test_a_hole_in_the_numbers_is_refused() -> None:
    with pytest.raises(StoreError, match=r"hole.*expected 2; found 3"):
        made_of(capture()).record(statement(3, f"{A}:5", create(1, "t", "a")))


def test_an_edit_that_does_not_fit_changes_nothing() -> None:
    history = made_of(capture(create(1, "t", "a")))

    with pytest.raises(EditConflict):
        history.record(statement(2, f"{A}:5", create(2, "u", "b", first=2), DropTable(table=T, table_id=7)))

    assert (1, {T}) == (history.last_number, set(history.catalog.tables))
    assert () == history.versions(table("u"))


def test_resolved_position_only_moves_on() -> None:
    history = made_of(capture(), upto=f"{A}:1-9")

    history.resolve(position(f"{A}:1-5", 100))
    assert f"{A}:1-9" == history.resolved.gtids
    with pytest.raises(StoreError, match="diverge"):
        history.resolve(position(f"{B}:1", 100))


def test_an_empty_history_has_no_origin() -> None:
    with pytest.raises(StoreError, match="no entry yet"):
        _ = History().origin


@settings(deadline=None, max_examples=80)
@given(st.integers(0, 2**32), st.integers(1, 14), st.booleans())
def test_every_place_of_the_log_sees_the_catalog_that_replay_gives(seed: int, transactions: int, gtids: bool) -> None:
    log = random_log(Random(seed), transactions, gtids=gtids)
    history = History.of(log.entries, resolved=log.end)
    catalog = apply_all(log.entries[0].edits, Catalog())
    following = 1

    for transaction in log.transactions:
        for ordinal in (*transaction.ordinals, 99):
            for name, expected in catalog.tables.items():
                event = {"gtid": transaction.gtid or None, "ordinal": ordinal}
                assert expected == found_at(history, name, transaction.before, **event)
            if ordinal != 99:
                catalog = apply_all(log.entries[following].edits, catalog)
                following += 1
        for name, expected in catalog.tables.items():
            assert expected == found_at(history, name, transaction.after)
    assert catalog == history.catalog


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 2**32), st.integers(1, 14))
def test_recording_is_idempotent_and_replay_gives_every_catalog(seed: int, transactions: int) -> None:
    random = Random(seed)
    log = random_log(random, transactions)
    history = History.of(log.entries, resolved=log.end)

    for entry in (*random.sample(log.entries, len(log.entries)), *log.entries):
        history.record(entry)

    assert tuple(log.entries) == history.entries
    for number in random.sample(range(len(log.entries) + 1), min(6, len(log.entries) + 1)):
        edits = [edit for entry in log.entries[:number] for edit in entry.edits]
        assert apply_all(tuple(edits), Catalog()) == history.catalog_at(number)
    assert history.catalog == pickle.loads(pickle.dumps(history)).catalog == log.catalog


def test_catalogs_carry_the_servers_defaults() -> None:
    latin = Catalog(charset="latin1", collation="latin1_swedish_ci")
    history = History.of([capture(create(1, "t", "a"))], empty=latin)

    assert ("latin1", "latin1") == (history.catalog.charset, history.catalog_at(0).charset)
    assert {T: snapshot(1, "t", "a")} == history.catalog.tables


def _resumed(number: int, *, since: LogPosition | None, offset: int = 0, corrects: bool = False) -> TimelineEntry:
    edit = ResumeTable(table=T, snapshot=create(1, "t", "a", "z").snapshot, unknown_since=since, reason="")
    return replace(statement(number, f"{A}:{offset or number}", edit), corrects=corrects)


def test_between_where_a_table_was_known_and_where_it_goes_on_nothing_is_known() -> None:
    resume = replace(_resumed(2, since=position(f"{A}:1-4")), place=None, position=position(f"{A}:1-9"))
    history = History.of(
        (capture(create(1, "t", "a", "b"), create(2, "u", "c", first=7)), resume), resolved=position(f"{A}:1-20")
    )

    assert 1 == history.at(T, position(f"{A}:1-4")).number
    assert 2 == history.at(T, position(f"{A}:1-9")).number
    for gtids in (f"{A}:1-5", f"{A}:1-8"):
        with pytest.raises(PositionUnknown, match="not known there"):
            history.at(T, position(gtids))
        assert 1 == history.at(table("u"), position(gtids)).number
    assert 1 == history.at(T, position(f"{A}:1-3"), ordinal=2, gtid=f"{A}:4").number
    with pytest.raises(PositionUnknown, match="not known there"):
        history.at(T, position(f"{A}:1-4"), ordinal=2, gtid=f"{A}:5")


def test_log_that_was_skipped_is_a_gap_of_all_tables() -> None:
    skip = capture(SkipLog(start=position(f"{A}:1-4"), reason="purged"), number=2, at=position(f"{A}:1-9"))
    history = History.of((capture(create(1, "t", "a")), skip), resolved=position(f"{A}:1-20"))

    for name in (T, table("never")):
        with pytest.raises(PositionUnknown, match="purged"):
            history.at(name, position(f"{A}:1-5"))
    assert (1, 1) == tuple(history.at(T, position(f"{A}:1-{n}")).number for n in (4, 9))


def test_what_is_said_later_of_a_statement_holds_from_the_statement_on() -> None:
    forget = statement(2, f"{A}:5", ForgetTable(table=T, reason="odd"))
    said = _resumed(3, since=None, offset=5, corrects=True)
    history = History.of((capture(create(1, "t", "a")), forget), resolved=position(f"{A}:1-20"))
    with pytest.raises(PositionUnknown):
        history.at(T, position(f"{A}:1-6"))

    history.record(said)
    history.record(said)

    assert [1, 3] == [history.at(T, position(f"{A}:1-{n}")).number for n in (4, 6)]
    assert forget == history.recorded(forget.place, forget.server) if forget.place else False
