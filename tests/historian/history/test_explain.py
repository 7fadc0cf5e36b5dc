"""Which statement made a table what it is at a position, and what it changed."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from historian.errors import HistorianError, UnknownTable
from historian.history.explain import explain, explained
from historian.history.history import History
from historian.schema.applying import apply_all
from historian.schema.diff import Difference, diff
from historian.schema.edits import AddColumn, DropTable, ForgetTable, RenameTable, TruncateTable
from historian.schema.snapshots import Catalog, Column
from models.timelines import INT, A, capture, create, position, random_log, statement, table

T = table("t")


def test_statement_time_and_change_are_told_for_each_position() -> None:
    add = AddColumn(table=T, column=Column(id=9, name="n", type=INT), after=0)
    history = History.of(
        [
            capture(create(1, "t", "a")),
            statement(2, f"{A}:5", add),
            statement(3, f"{A}:7", RenameTable(table=T, table_id=1, new=table("u"))),
            statement(4, f"{A}:8", TruncateTable(table=table("u"), table_id=1)),
        ],
        resolved=position(f"{A}:1-9", 9000),
    )

    added = explain(history, T, position(f"{A}:1-6", 2500))
    assert (f"{A}:5", "statement 2", 2_000_000) == (
        added.version.entry.place and added.version.entry.place.gtid,
        added.version.entry.statement,
        added.version.entry.event_time_us,
    )
    assert history.at(T, position(f"{A}:1-4", 1900)).snapshot == added.before
    assert (Difference(change="added", column="n", after="int"),) == added.changes
    assert (Difference(change="captured", after="shop.t"),) == explain(history, T, position(f"{A}:1-4", 1900)).changes
    renamed = explain(history, table("u"), position(f"{A}:1-7", 3500))
    assert (Difference(change="renamed table", before="shop.t", after="shop.u"),) == renamed.changes
    assert () == explain(history, table("u"), position(f"{A}:1-8", 4500)).changes
    with pytest.raises(UnknownTable, match="statement 3"):
        explain(history, T, position(f"{A}:1-8", 4500))


def test_the_row_events_own_place_counts() -> None:
    history = History.of(
        [capture(create(1, "t", "a")), statement(2, f"{A}:5", TruncateTable(table=T, table_id=1), ordinal=3)],
        resolved=position(f"{A}:1-9", 9000),
    )
    before = position(f"{A}:1-4", 1900)

    assert [1, 2] == [explain(history, T, before, ordinal, f"{A}:5").version.number for ordinal in (3, 4)]


def test_what_is_not_known_any_more_and_what_is_gone_have_their_reason() -> None:
    history = History.of(
        [
            capture(create(1, "t", "a"), create(2, "u", "b", first=2)),
            statement(2, f"{A}:5", ForgetTable(table=T, reason="odd ALTER")),
            statement(3, f"{A}:6", DropTable(table=table("u"), table_id=2)),
            replace(capture(create(1, "t", "a"), at=position(f"{A}:1-7", 7000)), number=4),
        ]
    )

    (forgotten,), (dropped,), (again,) = (
        [explained(history, version) for version in history.versions_by(number)] for number in (2, 3, 4)
    )
    assert (Difference(change="unknown", before="shop.t", after="odd ALTER"),) == forgotten.changes
    assert (Difference(change="dropped", before="shop.u"),) == dropped.changes
    assert (None, (Difference(change="captured", after="shop.t"),)) == (again.before, again.changes)


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 2**32), st.integers(1, 14))
def test_each_version_is_explained_by_the_catalogs_around_its_entry(seed: int, transactions: int) -> None:
    log = random_log(Random(seed), transactions)
    history = History.of(log.entries, resolved=log.end)
    catalog = Catalog()

    for entry in log.entries:
        before, catalog = catalog, apply_all(entry.edits, catalog)
        was = {snapshot.table_id: snapshot for snapshot in before.tables.values()}
        now = {snapshot.table_id: snapshot for snapshot in catalog.tables.values()}
        made = {version.table_id: explained(history, version) for version in history.versions_by(entry.number)}
        assert {table_id for table_id in was.keys() | now.keys() if was.get(table_id) != now.get(table_id)} <= set(made)
        for table_id, found in made.items():
            assert (was.get(table_id), now.get(table_id)) == (found.before, found.version.snapshot)
            if found.version.unknown is None and entry.place is not None:
                assert diff(was.get(table_id), now.get(table_id)) == found.changes
    for transaction in log.transactions:
        for name in (table(f"t{i}") for i in range(5)):
            try:
                version = history.at(name, transaction.after)
            except HistorianError as error:
                with pytest.raises(type(error)):
                    explain(history, name, transaction.after)
            else:
                assert explained(history, version) == explain(history, name, transaction.after)
