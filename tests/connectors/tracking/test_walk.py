"""What a walk over scanned statements records, and what stops a table."""

from __future__ import annotations

from dataclasses import replace

import pytest

from connectors.readers.base import Bound, Statement, TableMapped
from connectors.tracking.topics.met_schemas import MetSchemas
from connectors.tracking.walk import Walk
from historian.ddl import StatementContext
from historian.history.history import History
from historian.history.online_schema_changes import OnlineChanges
from historian.history.timeline import TimelineEntry
from historian.names import TableName
from historian.positions.places import Place
from historian.schema.edits import CreateTable, ForgetTable
from historian.schema.gaps import ResumeTable
from historian.store import Store
from models.timelines import FILE, A, B, capture, create, position

INSERT = "INSERT INTO shop.t VALUES (1, 1)"


def _statement(number: int, sql: str, *, file: str = FILE, offset: int = 0) -> Statement:
    place = Place(gtid=f"{A}:{number}", file=file, offset=offset or 1000 * number, ordinal=2)
    return Statement(place=place, event_time_us=0, sql=sql, context=StatementContext(database="shop", version=80400))


def _walk(store: Store, *entries: TimelineEntry, server: str = A) -> Walk:
    history = History.of(entries, resolved=position(f"{A}:1-99", 99_000))
    reached = replace(position(), server=server)
    return Walk(history, 1, store, lambda _: True, "mysql", reached)


def test_the_first_statement_that_stops_a_table_says_where() -> None:
    store = Store.open("sqlite://")
    walk = _walk(store, capture(create(1, "t", "a", "b", key=(1,))))
    first, second = _statement(2, INSERT), _statement(3, INSERT)
    walk.take(first)
    walk.take(second)

    assert (first.place, first.place) == (walk.quarantines[1].place, store.quarantines()[1].place)
    assert first.place == _walk(store, capture(create(1, "t", "a", "b", key=(1,)))).quarantines[1].place


def test_a_statement_recorded_before_is_known_again_on_another_server() -> None:
    """After a failover the same transaction stands at another place of another file."""
    store = Store.open("sqlite://")
    start = capture(create(1, "t", "a", "b", key=(1,)))
    alter = "ALTER TABLE shop.t ADD c INT"
    walk = _walk(store, start)
    walk.take(_statement(2, alter))
    (recorded,) = walk.new_entries

    again = _walk(store, start, recorded, server=B)
    again.take(_statement(2, alter, file="other.000007", offset=4711))

    assert ([], 2) == (again.new_entries, again.number)
    assert ["a", "b", "c"] == [c.name for c in again.catalog.tables[TableName("shop", "t")].columns]


@pytest.mark.parametrize("sql", ["TRUNCATE TABLE t", "DROP TABLE t", "DROP TABLE u, t"])
@pytest.mark.parametrize("apart", [False, True])
def test_what_takes_rows_away_stops_their_table_only_where_it_stands_apart_from_them(sql: str, apart: bool) -> None:
    store = Store.open("sqlite://")
    history = History.of([capture(create(1, "t", "a", key=(1,)), create(2, "u", "x", first=9))], resolved=position())
    walk = Walk(history, 1, store, lambda _: True, "kafka", position(), topics=MetSchemas(history, {}))
    walk.take(replace(_statement(2, sql), apart=apart))

    stopped = {1, 2} if "u," in sql else {1}
    assert (stopped if apart else set()) == set(walk.quarantines)
    assert all("which of them came before is not known" in each.reason for each in walk.quarantines.values())
    (entry,) = walk.new_entries
    assert apart == any(isinstance(edit, ForgetTable) for edit in entry.edits)


def test_a_table_made_of_a_partition_stops_with_it_and_its_schema_is_recorded() -> None:
    store = Store.open("sqlite://")
    walk = _walk(store, capture(create(1, "t", "a", "b", key=(1,))))
    walk.take(_statement(2, "ALTER TABLE t CONVERT PARTITION p TO TABLE u"))

    assert {1, 2} == set(walk.quarantines)
    assert {"shop.t", "shop.u"} == {str(name) for name in walk.catalog.tables}
    assert "CONVERT PARTITION moves rows without row events" in walk.quarantines[2].reason


def _tables(walk: Walk) -> dict[str, int]:
    return {name.table: snapshot.table_id for name, snapshot in walk.catalog.tables.items()}


def _stops(store: Store) -> list[tuple[int, str]]:
    return [(table_id, name.table) for table_id, name, _ in store.stopped()]


@pytest.mark.parametrize(
    "sql, known, stopped",
    [
        ("RENAME TABLE t TO v, u TO t", {"t": 2}, [(1, "t"), (0, "v")]),
        ("RENAME TABLE t TO tmp, u TO t, tmp TO u", {"t": 2}, [(1, "t"), (0, "u")]),
        ("RENAME TABLE u TO v, t TO u", {"v": 2}, [(1, "t"), (0, "u")]),
        ("DROP TABLE t, u", {}, [(1, "t")]),
    ],
    ids=["in its place", "swapped", "into its place", "dropped"],
)
@pytest.mark.parametrize("flavor", ["mysql", "kafka"])
def test_a_statement_on_a_stopped_table_is_executed_on_the_others(
    sql: str, known: dict[str, int], stopped: list[tuple[int, str]], flavor: str
) -> None:
    store = Store.open("sqlite://")
    history = History.of([capture(create(1, "t", "a", key=(1,)), create(2, "u", "x", first=9))], resolved=position())
    topics = MetSchemas(history, {}) if flavor == "kafka" else None
    walk = Walk(history, 1, store, lambda _: True, flavor, position(), topics=topics)
    for number, each in enumerate(("ALTER TABLE shop.t FROBNICATE", sql), 2):
        walk.take(replace(_statement(number, each), event_time_us=number))

    assert known == _tables(walk)
    # What a server drops under a name that is not known may have been another table.
    doubtful = [(0, "t")] if not known and flavor == "mysql" else []
    assert [*doubtful, *stopped] == _stops(store)
    assert {name.table for table_id, name, _ in store.stopped() if not table_id} <= {
        n.table for n in walk.catalog.unknown
    }
    assert all("a statement was not understood: " in stop.reason for *_, stop in store.stopped())


SWAP = "RENAME /* gh-ost */ TABLE t TO _t_del, _t_gho TO t"
TWO_STEPS = "RENAME /* gh-ost */ TABLE t TO _t_del; RENAME /* gh-ost */ TABLE _t_gho TO t"
NOT_KNOWN = {
    "t": ["ALTER TABLE shop.t FROBNICATE"],
    "rows": ["INSERT INTO shop.t VALUES (1)"],
    "_t_gho": ["ALTER TABLE shop._t_gho FROBNICATE"],
    "both": ["ALTER TABLE shop.t FROBNICATE", "ALTER TABLE shop._t_gho FROBNICATE"],
    "never": [],
}


@pytest.mark.parametrize("sql", [SWAP, TWO_STEPS], ids=["one step", "two steps"])
@pytest.mark.parametrize(
    "not_known, stopped",
    [
        ("t", [(1, "t"), (2, "t")]),
        ("rows", [(1, "t"), (2, "t")]),
        ("_t_gho", [(1, "t")]),
        ("both", [(0, "t"), (1, "t")]),
        ("never", [(1, "t")]),
    ],
)
def test_a_swap_by_a_tool_with_a_table_that_is_not_known_stops_what_comes_of_it(
    sql: str, not_known: str, stopped: list[tuple[int, str]]
) -> None:
    """Nobody knows what a shadow held whose rows are not captured; one that is not known makes a table that is not."""
    store = Store.open("sqlite://")
    made = [create(1, "t", "a", key=(1,)), create(2, "_t_gho", "a", first=9), create(3, "_t_ghc", "y", first=20)]
    if not_known == "never":
        del made[1]
    history = History.of([capture(*made)], resolved=position())

    def is_captured(name: TableName) -> bool:
        return name.table == "t"

    walk = Walk(history, 1, store, is_captured, "mysql", position(), online_changes=OnlineChanges())
    for number, each in enumerate([*NOT_KNOWN[not_known], *sql.split("; ")], 2):
        walk.take(_statement(number, each))

    # In two steps gh-ost shows that its copy is whole: one table changes, which has stopped already.
    assert (stopped if (sql, not_known) != (TWO_STEPS, "rows") else [(1, "t")]) == sorted(_stops(store))
    assert ("t" in _tables(walk)) == (not_known in ("t", "rows"))


def test_what_was_captured_or_said_between_plans_is_taken_before_the_log_goes_on() -> None:
    """A capture stands for no statement; what is said of a statement stands behind it in the timeline."""
    store = Store.open("sqlite://")
    start = capture(create(1, "t", "a", key=(1,)))
    walk = _walk(store, start)
    walk.take(_statement(2, "ALTER TABLE shop.t FROBNICATE"))
    (forgot,) = walk.new_entries
    (held,) = (edit.snapshot for edit in start.edits if isinstance(edit, CreateTable))
    again = ResumeTable(table=held.name, snapshot=held, unknown_since=None, loses_rows=False, reason="said")
    said = replace(forgot, number=3, edits=(again,), corrects=True)
    taken = replace(capture(create(2, "u", "x", first=9), number=4), position=position(f"{A}:1-5", 5000))

    history = History.of((start, forgot, said, taken), resolved=position(f"{A}:1-99", 99_000))
    behind = Walk(history, 2, store, lambda _: True, "mysql", replace(position(f"{A}:1-5", 5000), server=A))
    before = Walk(history, 2, store, lambda _: True, "mysql", replace(position(f"{A}:1-2", 2500), server=A))

    assert (4, {"t", "u"}) == (behind.number, {name.table for name in behind.catalog.tables})
    assert (3, {"t"}) == (before.number, {name.table for name in before.catalog.tables})
    before.take(Bound(position=replace(position(f"{A}:1-6", 6000), server=A), event_time_us=0))
    assert before.number == 4


def test_rows_of_a_sequence_stop_nothing() -> None:
    store = Store.open("sqlite://")
    walk = _walk(store, capture(create(1, "t", "a", "b", key=(1,))))
    mariadb = StatementContext(flavor="mariadb", database="shop", version=110800)
    statements = {
        "CREATE SEQUENCE q": "q",
        "RENAME TABLE q TO r": "r",
        "DROP TABLE r": "",
        "CREATE SEQUENCE s": "s",
        "DROP SEQUENCE s": "",
    }
    for number, (sql, name) in enumerate(statements.items(), 2):
        walk.take(replace(_statement(number, sql), context=mariadb))
        if name:
            place = _statement(number, sql).place
            walk.take(TableMapped(place=place, table=TableName("shop", name), columns=()))

    assert store.stopped() == ()
    assert set(walk.catalog.tables) == {TableName("shop", "t")}
