"""What every store must do, whatever database it is in: written once, all or nothing, the same from every process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import Connection, create_engine, inspect, make_url, select, update

from databases.servers import Server
from databases.stores import DDL, END, START, STOP, T, a_plan
from historian.errors import EditConflict, HistoryMoved, LeaseHeld, PositionExpired, StoreError
from historian.history.timeline import Gap, TimelineEntry
from historian.plans.plans import CopiedPiece, PartitionRange, Passage, Plan, Quarantine, TableCopy
from historian.plans.row_values import RowValues
from historian.plans.source_marks import ServerPass, SourceMark
from historian.schema.edits import AddColumn, DropTable, RenameTable, TruncateTable
from historian.schema.snapshots import Column
from historian.store import CopyOrders, Store
from historian.store.contents import loosened, squeezed
from historian.store.engine import Transactions, _with_driver
from historian.store.facts import set_fact
from historian.store.tables import edits_of_kind, metadata, open_copies, passages
from models.timelines import BIGINT, INT, A, B, capture, create, position, statement, table

if TYPE_CHECKING:
    from databases.postgres import Postgres

NUMBERS = count()
KINDS = [
    "memory",
    "sqlite",
    *(pytest.param(name, marks=pytest.mark.server) for name in ("postgresql", "mysql8", "mariadb118")),
]
# Longer than MySQL's TEXT, with characters of four bytes, and no two tables in one entry alike.
WIDE = [
    capture(create(1, "t", *(f"{i}😀{'x' * 40}" for i in range(900))), create(2, "T", "ä", first=1000)),
    *(statement(number, f"{A}:{number}", TruncateTable(table=T, table_id=1)) for number in range(2, 20)),
]


def new_store(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of a store that is not there yet."""
    if kind == "memory":
        return "sqlite://"
    if kind == "sqlite":
        return f"sqlite:///{tmp_path}/state/shop.db"
    if kind == "postgresql":
        postgres: Postgres = request.getfixturevalue("postgres")
        return postgres.new_store()
    server: Server = request.getfixturevalue(kind)
    database = f"store_{next(NUMBERS)}"
    server.sql(f"CREATE DATABASE {database}")
    return f"{server.flavor}://{server.user}:{server.password}@{server.host}:{server.port}/{database}"


@pytest.fixture(params=KINDS)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    with closing(Store.open(new_store(request.param, request, tmp_path))) as opened:
        yield opened


@pytest.fixture(params=KINDS[1:])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Of a store that several may open."""
    return new_store(request.param, request, tmp_path)


def test_a_new_store_is_empty(store: Store) -> None:
    assert ((), None, None, (), {}, (), {}) == (
        store.entries(),
        store.resolved(),
        store.last_plan(),
        store.plans(),
        store.quarantines(),
        store.gaps(),
        store.nulled(),
    )


def test_identity_is_made_once(store: Store) -> None:
    identity = store.connector("shop")

    assert (identity, 36) == (store.connector("shop"), len(identity))


def test_a_store_is_of_one_connector(store: Store) -> None:
    store.connector("shop")

    with pytest.raises(StoreError, match=r"another connector's.*expected bank; found shop"):
        store.connector("bank")


def test_entries_gaps_and_resolved_position_are_kept(store: Store) -> None:
    gap = Gap(start=position(f"{A}:1-6", 6000), end=position(f"{A}:1-8", 8000), reason="purged")

    told = replace(DDL, transaction=(-(1 << 63), (1 << 63) - 1))

    store.record([START, told], END, [gap])
    store.record([], END, [gap])

    assert ((START, told), (told,), END, (gap,)) == (store.entries(), store.entries(1), store.resolved(), store.gaps())
    history = store.history()
    assert (2, END) == (history.at(T, position(f"{A}:1-5", 2500)).number, history.resolved)


def test_replayed_ddl_is_ignored(store: Store) -> None:
    store.record([START, DDL], END)

    store.record([START, DDL], END)
    store.record([replace(DDL, number=3), replace(DDL, number=8, edits=())], END)

    assert (START, DDL) == store.entries()


@pytest.mark.parametrize(
    "entry,what",
    [
        (replace(DDL, edits=(DropTable(table=T, table_id=1),)), r"other content \(entry 2\)"),
        (statement(2, f"{A}:6"), r"other content \(entry 2\)"),
        (statement(4, f"{A}:6"), "hole.*expected 3; found 4"),
    ],
)
def test_a_contradicting_entry_is_refused_and_nothing_of_its_record_stays(
    store: Store, entry: TimelineEntry, what: str
) -> None:
    store.record([START, DDL], END)

    with pytest.raises(StoreError, match=what):
        store.record([statement(3, f"{A}:7"), entry] if entry.number == 2 else [entry], position(f"{A}:1-20", 20_000))

    assert ((START, DDL), END) == (store.entries(), store.resolved())


def test_resolved_position_only_moves_on(store: Store) -> None:
    store.record([START], END)

    store.record([], position(f"{A}:1-3", 100))
    assert END == store.resolved()
    with pytest.raises(StoreError, match="diverge"):
        store.record([], position(f"{B}:1", 100))
    store.record([], position(f"{A}:1-10", 20_000))
    assert f"{A}:1-10" == (store.resolved() or END).gtids


def test_a_plan_is_stored_once_and_for_all(store: Store) -> None:
    plan = a_plan(tables=3)
    store.append_plan(plan)
    store.append_plan(plan)

    assert [plan, None, plan, (plan,)] == [store.plan(1), store.plan(2), store.last_plan(), store.plans()]
    with pytest.raises(StoreError, match=r"other content \(plan 1\)"):
        store.append_plan(replace(plan, system_time_us=2))
    with pytest.raises(StoreError, match=r"hole.*expected 2; found 3"):
        store.append_plan(a_plan(3))
    assert (plan,) == store.plans()


def test_the_head_of_a_plan_says_what_the_plan_does(store: Store) -> None:
    assert store.plan_head() is None
    store.append_plan(a_plan(1, tables=3))
    store.append_plan(a_plan(2, end=10))

    heads = [store.plan_head(number) for number in (1, 2, 3, None)]

    assert [
        None if plan is None else (plan.number, plan.end, plan.version, plan.system_time_us, len(plan.tables))
        for plan in (store.plan(1), store.plan(2), store.plan(3), store.last_plan())
    ] == [
        None if head is None else (head.number, head.end, head.version, head.system_time_us, head.tables)
        for head in heads
    ]


def test_a_table_that_stops_in_a_plan_has_stopped_for_the_plans_behind_it(store: Store) -> None:
    """One renamed out of the filter must not go on when it comes back: its changes meanwhile were left out."""
    earlier = Quarantine(place=replace(STOP.place, offset=1), reason="earlier")
    store.quarantine(2, table("other"), earlier)
    store.append_plan(a_plan(tables=2))

    assert {1: STOP, 2: earlier} == store.quarantines()


def test_copied_rows_stay_until_their_plan_is_written(store: Store) -> None:
    for number in (1, 2):
        store.append_plan(a_plan(number), [b"rows", bytes([number])])

    assert [b"rows", b"\x01"] == list(store.copied_chunks(1))
    store.note_progress("", 1)
    store.append_plan(a_plan(3))
    assert ([], [b"rows", b"\x02"]) == (list(store.copied_chunks(1)), list(store.copied_chunks(2)))


def _copying(number: int, copy: TableCopy) -> Plan:
    plan = a_plan(number)
    return replace(plan, tables=(replace(plan.tables[0], quarantine=None, copy=copy),))


def test_bytes_of_copied_rows_count_once_a_plan(store: Store) -> None:
    pieces = (CopiedPiece(upto=("4",), rows=4, size_bytes=40), CopiedPiece(upto=("7",), rows=3, size_bytes=31))
    first = _copying(1, TableCopy(key=(1,), upto=("7",), rows=7, estimate=20, size_bytes=70, pieces=pieces))
    for _ in range(2):
        store.append_plan(first)
    begun = store.copies()[1]
    assert (7, 70, 0, 200) == (begun.rows, begun.size_bytes, begun.noted_bytes, begun.estimated_bytes)
    assert (pieces, 1, None) == (begun.pieces, begun.read, begun.behind)

    # A plan in which its rows wait tells nothing of pieces.
    store.append_plan(_copying(2, TableCopy(key=(1,), behind=("7",), upto=("7",))))
    some = (CopiedPiece(upto=("9",), rows=2, size_bytes=22),)
    third = TableCopy(key=(1,), behind=("7",), upto=("9",), rows=2, size_bytes=22, pieces=some)
    assert (70, 70, pieces, 1) == (
        (held := store.copies()[1]).size_bytes,
        held.noted_bytes,
        held.pieces,
        held.read,
    )
    store.append_plan(_copying(3, third))
    assert (92, some, 3, ("7",)) == ((held := store.copies()[1]).size_bytes, held.pieces, held.read, held.behind)
    last = TableCopy(key=(1,), behind=("9",), is_done=True, rows=1, size_bytes=11, pieces=some)
    store.append_plan(_copying(4, last))
    assert (10, 103, ()) == ((held := store.copies()[1]).rows, held.size_bytes, held.pieces)


def test_rows_of_a_repair_in_one_plan_are_not_those_of_the_copy_before_too(store: Store) -> None:
    store.append_plan(_copying(1, TableCopy(key=(1,), is_done=True, rows=2, size_bytes=20)))
    store.append_plan(_copying(2, TableCopy(key=(1,), is_done=True, rows=3, size_bytes=31, repairs="a test")))

    assert (3, 31, True) == ((held := store.copies()[1]).rows, held.size_bytes, held.is_done)


def test_rows_of_a_repair_that_values_tell_are_none_of_a_copys_bytes(store: Store) -> None:
    store.append_plan(_copying(1, TableCopy(key=(1,), is_done=True, rows=2, size_bytes=20)))
    only = (RowValues(columns=(1,), values=((1,),)),)
    some = TableCopy(key=(1,), is_done=True, rows=1, size_bytes=9, only=only, repairs="a test")
    store.append_plan(_copying(2, some))

    assert (2, 20) == ((held := store.copies()[1]).rows, held.size_bytes)


@pytest.mark.parametrize("said", [7, None])
def test_a_copy_of_which_an_older_release_copied_rows_does_not_guess_their_bytes(
    store: Store, said: int | None
) -> None:
    """A later copy of the table, from its first row on, counts them all."""
    store.append_plan(_copying(1, TableCopy(key=(1,), upto=("7",), rows=7, size_bytes=70)))
    _as_older(store, bodies={"plans": {"size_bytes", "pieces"}, "copies": _NEW_OF_COPIES})

    (plan,) = store.plans()
    store.append_plan(plan)
    assert (7, None, None) == ((held := store.copies()[1]).rows, held.size_bytes, held.estimated_bytes)
    store.append_plan(_copying(2, TableCopy(key=(1,), behind=("7",), upto=("9",), rows=2, size_bytes=said)))
    assert (9, None) == ((held := store.copies()[1]).rows, held.size_bytes)
    store.append_plan(_copying(3, TableCopy(key=(1,), upto=("3",), rows=3, size_bytes=30, repairs="a test")))
    assert (3, 30) == ((held := store.copies()[1]).rows, held.size_bytes)


_NEW_OF_COPIES = {"size_bytes", "noted_bytes", "pieces", "read", "behind"}


def _as_older(store: Store, bodies: dict[str, set[str]]) -> None:
    """Leaves of what *store* holds what a release without those fields had stored."""

    def without(value: object, names: set[str]) -> object:
        if isinstance(value, dict):
            return {name: without(each, names) for name, each in value.items() if name not in names}
        return [without(each, names) for each in value] if isinstance(value, list) else value

    def work(connection: Connection) -> None:
        for name, names in bodies.items():
            held = metadata.tables[f"historian_{name}"]
            for number, body in connection.execute(select(next(iter(held.primary_key)), held.c.body)).all():
                text = json.dumps(without(json.loads(loosened(body)), names), ensure_ascii=False, separators=(",", ":"))
                assert text != loosened(body)
                mine = next(iter(held.primary_key)) == number
                connection.execute(update(held).where(mine).values(body=squeezed(text) if name == "plans" else text))

    store._transactions.write(work)


def test_what_is_said_of_copies_holds_until_it_is_carried_out(store: Store) -> None:
    assert CopyOrders() == store.copy_orders()
    first = a_plan()
    (table,) = first.tables
    copying = replace(table, quarantine=None, copy=TableCopy(key=(1,), upto=("7",), rows=7))
    store.append_plan(replace(first, tables=(copying, replace(copying, table_id=2))))

    store.pause_copies(paused=True)
    assert (True, True, False) == tuple(store.cancel_copy(number) for number in (1, 2, 3))
    assert CopyOrders(paused=True, cancelled=(1, 2)) == store.copy_orders()
    done = replace(copying, table_id=2, copy=TableCopy(key=(1,), is_done=True))
    store.append_plan(replace(a_plan(2), tables=(replace(copying, quarantine=STOP), done)))
    store.pause_copies(paused=False)
    assert CopyOrders() == store.copy_orders()
    assert not store.cancel_copy(2)


def test_limits_of_copies_hold_until_the_configuration_has_them_again(store: Store) -> None:
    store.limit_copies({"rows_per_second": 5, "pause_above.threads_running": None})
    store.pause_copies(paused=True)
    store.limit_copies({"connections": 3, "rows_per_second": 7}, as_configured={"pause_above.threads_running"})

    expected = CopyOrders(paused=True, limits=(("connections", 3), ("rows_per_second", 7)))
    assert expected == store.copy_orders()


def test_a_repair_begins_anew_where_its_table_stops_or_is_read_again(store: Store) -> None:
    first = a_plan()
    (table,) = first.tables
    for number, end in enumerate(({"quarantine": STOP}, {"behind": 0, "copy": None}), 1):
        copying = replace(table, quarantine=None, copy=TableCopy(key=(1,), upto=("7",), rows=7, repairs="a test"))
        store.append_plan(replace(a_plan(2 * number - 1), tables=(copying,)))
        assert (("7",), 7, "a test") == (
            (held := store.copies()[table.table_id]).upto,
            held.rows,
            held.repairs,
        )
        store.append_plan(replace(a_plan(2 * number), tables=(replace(copying, **end),)))
        held = store.copies()[table.table_id]
        assert (None, 0, "a test", False) == (held.upto, held.rows, held.repairs, held.is_done)
        store.heal([(table.table_id, T)])
    done = replace(table, quarantine=None, copy=TableCopy(key=(1,), behind=("7",), is_done=True, repairs="a test"))
    store.append_plan(replace(a_plan(5), tables=(done,)))
    assert "" == store.copies()[table.table_id].repairs


def test_plans_begin_with_1(store: Store) -> None:
    with pytest.raises(StoreError, match="expected 1; found 2"):
        store.append_plan(a_plan(2))


def test_the_first_reason_of_a_quarantine_stays_until_it_is_healed(store: Store) -> None:
    later = Quarantine(place=replace(STOP.place, offset=9000), reason="later")
    store.quarantine(1, T, STOP)
    store.quarantine(1, T, later)
    store.quarantine(0, table("x"), STOP)
    store.quarantine(0, table("X"), later)

    assert {1: STOP} == store.quarantines()
    assert ((0, table("X"), later), (1, T, STOP), (0, table("x"), STOP)) == store.stopped()
    store.heal([(1, table("whatever"))])
    store.heal([(0, table("x"))])
    assert ((0, table("X"), later),) == store.stopped()
    store.quarantine(1, T, later)
    assert {1: later} == store.quarantines()


def test_a_table_is_healed_together_with_what_it_goes_on_by(store: Store) -> None:
    store.quarantine(1, T, STOP)
    store.record((START, DDL), DDL.position)
    with pytest.raises(StoreError):
        store.heal([(1, T)], plans=[a_plan(7)])  # leaves a hole
    assert {1: STOP} == store.quarantines()

    said = replace(DDL, number=3, corrects=True)
    flowing = _flowing(a_plan(1))
    store.heal([(1, T)], [said], plans=[flowing])

    assert ({}, (START, DDL, said), flowing) == (store.quarantines(), store.entries(), store.plan(1))


def test_a_table_that_goes_on_in_a_later_plan_is_not_stopped_in_a_store_rebuilt(store: Store) -> None:
    plans = (a_plan(1, end=8), _flowing(a_plan(2)))
    store.restore("shop", "c", (START, DDL), plans[:1])
    assert 1 in store.quarantines()
    store.restore("shop", "c", (START, DDL), plans)
    assert store.quarantines() == {}


def _flowing(plan: Plan) -> Plan:
    return replace(plan, tables=tuple(replace(table, quarantine=None) for table in plan.tables))


def test_the_log_that_was_read_is_remembered(store: Store) -> None:
    assert store.log() is None
    store.remember_log("a")
    store.remember_log("b")
    assert store.log() == "b"


def test_a_stream_keeps_its_schema(store: Store) -> None:
    assert store.stream("orders") is None
    store.remember_stream("orders", "{}")
    store.remember_stream("orders", "{}")
    store.remember_stream("Orders", "[]")

    assert ("{}", "[]") == (store.stream("orders"), store.stream("Orders"))
    with pytest.raises(StoreError, match="another schema"):
        store.remember_stream("orders", "[]")


def test_values_that_became_null_in_a_plan_run_again_count_once(store: Store) -> None:
    store.count_nulled(1, {(1, 2): 3, (1, 4): 1})
    store.count_nulled(2, {(1, 2): 4})
    store.count_nulled(1, {(1, 2): 5})

    assert {(1, 2): 9} == store.nulled()


def test_a_lost_store_is_rebuilt_from_what_a_sink_holds(store: Store) -> None:
    # A sink holds no plan without tables.
    plans = (replace(a_plan(5), connector="id-1"), replace(a_plan(8, end=12), connector="id-1"))

    store.restore("shop", "id-1", [START, DDL], plans)
    store.restore("shop", "id-1", [START, DDL], plans)

    assert ("id-1", (START, DDL), plans, plans[-1].end) == (
        store.connector("shop"),
        store.entries(),
        store.plans(),
        store.resolved(),
    )
    assert {1: STOP} == store.quarantines()
    # A sink may hold plan 5 and only half of plan 8, which follows it.
    assert [4, 7, 8] == [store.begin_behind(held) for held in (0, 5, 8)]
    store.append_plan(a_plan(9, end=13))


def test_a_store_rebuilt_without_plans_reads_the_log_from_its_last_statement(store: Store) -> None:
    store.restore("shop", "id-1", [START, DDL], [])

    assert DDL.position == store.resolved()


@pytest.mark.parametrize(
    "name,connector,entries", [("shop", "id-2", [START]), ("bank", "id-1", [START]), ("shop", "id-1", [capture()])]
)
def test_a_store_that_holds_something_else_is_not_overwritten(
    store: Store, name: str, connector: str, entries: list[TimelineEntry]
) -> None:
    store.restore("shop", "id-1", [START], [])

    with pytest.raises(StoreError):
        store.restore(name, connector, entries, [])

    assert ((START,), "id-1") == (store.entries(), store.connector("shop"))


def test_of_two_writers_with_different_content_one_learns_it(store: Store) -> None:
    store.append_plan(a_plan(1, connector="one"))

    with pytest.raises(StoreError, match="another run made it"):
        store.append_plan(a_plan(1, connector="other"))


def test_a_store_that_is_opened_again_holds_everything(url: str) -> None:
    with closing(Store.open(url)) as store:
        identity, generation = store.connector("shop"), store.generation()
        store.record(WIDE, END, [Gap(start=END, end=position(f"{A}:1-10", 10_000), reason="ä😀")])
        store.append_plan(a_plan(1, tables=3))
        store.quarantine(0, table("x"), STOP)
        store.remember_stream("s", "{}")
        store.count_nulled(1, {(1, 2): 3})
        store.note_progress("", 1)
        history = store.history()

    with closing(Store.open(url)) as store:
        assert (identity, generation, tuple(WIDE)) == (store.connector("shop"), store.generation(), store.entries())
        assert ((a_plan(1, tables=3),), END, "{}") == (store.plans(), store.resolved(), store.stream("s"))
        assert [(1, "t"), (2, "t"), (3, "t"), (0, "x")] == [
            (table_id, name.table) for table_id, name, _ in store.stopped()
        ]
        assert {(1, 2): 3} == store.nulled()
        again = store.history()
        assert (history.catalog, history.gaps) == (again.catalog, again.gaps)
        assert 2 == len(again.catalog.tables)
        with store.lease("shop"), pytest.raises(LeaseHeld), store.lease("shop"):
            pass


def test_a_record_behind_another_version_is_refused_whole(store: Store) -> None:
    store.record([START], END, after=0)

    with pytest.raises(HistoryMoved, match="expected version 0 as the last one; found 1") as caught:
        store.record([DDL], position(f"{A}:1-20", 20_000), after=0)

    assert ((START,), END, True) == (store.entries(), store.resolved(), caught.value.retryable)
    store.record([DDL], END, after=1)
    assert (START, DDL) == store.entries()


def test_a_plan_and_what_its_log_told_are_stored_whole_or_not_at_all(store: Store) -> None:
    store.record([START], START.position, after=0)

    with pytest.raises(StoreError, match="the plans have a hole"):
        store.append_plan(a_plan(2), entries=[DDL], resolved=END, after=1)
    with pytest.raises(HistoryMoved):
        store.append_plan(a_plan(1), entries=[DDL], resolved=END, after=0)

    assert ((START,), START.position, ()) == (store.entries(), store.resolved(), store.plans())
    store.append_plan(a_plan(1), entries=[DDL], resolved=END, after=1)
    assert ((START, DDL), END, (a_plan(1),)) == (store.entries(), store.resolved(), store.plans())


def test_an_edit_of_a_table_that_is_not_there_is_refused_whole(store: Store) -> None:
    with pytest.raises(EditConflict, match=r"not there \(shop\.u\)"):
        store.record([START, statement(2, f"{A}:2", TruncateTable(table=table("u"), table_id=9))], END)

    assert () == store.entries()


def test_names_that_differ_in_case_are_two_tables(store: Store) -> None:
    swap = (
        RenameTable(table=T, table_id=1, new=table("spare")),
        RenameTable(table=table("T"), table_id=2, new=T),
        RenameTable(table=table("spare"), table_id=1, new=table("T")),
    )
    store.record([*WIDE[:1], statement(2, f"{A}:2", *swap)], END)
    store.record([statement(3, f"{A}:3", AddColumn(table=T, column=Column(id=2000, name="n", type=INT), after=0))], END)

    tables = store.history().catalog.tables
    assert (1, 2, ["n", "ä"]) == (tables[table("T")].table_id, tables[T].table_id, [c.name for c in tables[T].columns])


def test_every_so_often_a_full_schema_is_stored_and_versions_between_follow_from_it(store: Store) -> None:
    columns = [AddColumn(table=T, column=Column(id=n, name=f"c{n}", type=INT), after=n - 1) for n in range(2, 80)]
    entries = [START, *(statement(n, f"{A}:{n}", columns[n - 2]) for n in range(2, 80))]
    for begin in range(0, len(entries), 7):
        store.record(entries[begin : begin + 7], END)

    history = store.history()

    wanted = [(n, n) for n in (79, 34, 33, 35, 2)]
    found = [history.versions(T)[n - 1] for n, _ in wanted]
    assert wanted == [(v.number, len(v.snapshot.columns) if v.snapshot else 0) for v in found]


def test_forgetting_keeps_what_is_in_force_and_what_someone_needs(store: Store) -> None:
    later = statement(3, f"{A}:8", TruncateTable(table=T, table_id=1))
    store.record([START, DDL, later], END)
    for number in (1, 2, 3):
        store.append_plan(replace(a_plan(number, end=number + 4), start=position(f"{A}:1-{number + 3}", number)))
    store.note_progress("", 3)
    store.note_progress("", 2)

    kept = store.forget(position(f"{A}:1-9", 9000), held=[1])
    assert (position(f"{A}:1-5", 5000), 1, 1, 0) == (kept.position, kept.needed, kept.entries, kept.plans)
    gone = store.forget(position(f"{A}:1-9", 9000), held=[3])
    assert (position(f"{A}:1-7", 7000), 3, 0, 2) == (gone.position, gone.needed, gone.entries, gone.plans)

    history = store.history()
    assert ([2, 3], [3]) == ([entry.number for entry in store.entries()], [plan.number for plan in store.plans()])
    assert [2, 3] == [history.at(T, position(f"{A}:1-{n}", 1000 * n)).number for n in (7, 8)]
    with pytest.raises(PositionExpired):
        history.at(T, position(f"{A}:1-6", 6000))
    store.record([START, DDL], END)
    store.append_plan(a_plan(4))
    assert 3 == store.last_number()


def test_writers_that_record_the_same_do_not_disturb_each_other(url: str) -> None:
    entries = [START, *(statement(n, f"{A}:{n}", TruncateTable(table=T, table_id=1)) for n in range(2, 16))]
    failures: list[StoreError] = []

    def work() -> None:
        try:
            with closing(Store.open(url)) as store:
                store.connector("shop")
                for number, entry in enumerate(entries, 1):
                    store.record([entry], position(f"{A}:1-{number}", 1000 * number))
                    store.append_plan(a_plan(number))
        except StoreError as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert [] == [str(failure) for failure in failures]
    with closing(Store.open(url)) as store:
        assert (tuple(entries), len(entries)) == (store.entries(), len(store.plans()))


def test_a_new_file_is_opened_by_many_at_once(tmp_path: Path) -> None:
    failures: list[StoreError] = []

    def work(url: str, barrier: threading.Barrier) -> None:
        barrier.wait()
        try:
            Store.open(url).close()
        except StoreError as error:
            failures.append(error)

    for number in range(40):
        url, barrier = f"sqlite:///{tmp_path}/{number}.db", threading.Barrier(8)
        threads = [threading.Thread(target=work, args=(url, barrier)) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    assert [] == [str(failure) for failure in failures]


def make_old(url: str) -> None:
    """A store as release 0.1 made it."""
    engine = create_engine(_with_driver(make_url(url)))
    script = Path(__file__).with_name("store_format_1.sql").read_text(encoding="utf-8")
    with engine.begin() as connection:
        if engine.dialect.name in ("mysql", "mariadb"):
            connection.exec_driver_sql("SET SESSION sql_mode = 'ANSI_QUOTES,NO_BACKSLASH_ESCAPES'")
        for sql in script.split(";\n"):
            if sql.strip():
                connection.exec_driver_sql(sql.replace("%", "%%"))
    engine.dispose()


def test_a_store_of_an_older_release_is_led_to_this_one(url: str) -> None:
    Path(make_url(url).database or "").parent.mkdir(exist_ok=True)
    make_old(url)

    for _ in range(2):
        with closing(Store.open(url)) as store:
            entries, history, (plan,) = store.entries(), store.history(), store.plans()
            store.append_plan(plan)
            store.record(entries, END)
            assert (entries, 5) == (store.entries(), store.last_number())

    statements = [(e.number, e.place.gtid if e.place else None, len(e.edits), e.statement) for e in entries]
    assert statements == [
        (1, None, 3, ""),
        (2, f"{A}:2", 1, "statement 2"),
        (3, f"{A}:3", 2, "statement 3"),
        (4, f"{B}:1", 1, "statement 4"),
        (5, "", 1, "statement 5"),
    ]
    assert entries[1].edits[0] == AddColumn(
        table=T, column=Column(id=4, name="n", type=BIGINT, initial="7", nullable=False), after=1
    )
    assert ({}, {T: "nicht verstanden: ü"}) == (history.catalog.tables, history.catalog.unknown)
    assert (f"{A}:1-9,{B}:1-2", "purged") == (history.resolved.gtids, history.gaps[0].reason)
    assert [1, 2, 3, 5] == [version.number for version in history.versions_of(1)]
    assert ("c", ["a"]) == (
        plan.connector,
        [c.name for v in plan.tables[0].versions if v.snapshot for c in v.snapshot.columns],
    )


def test_a_store_of_before_topics_notes_passages_from_then_on(url: str) -> None:
    Path(make_url(url).database or "").parent.mkdir(exist_ok=True)
    with closing(Store.open(url)) as store:
        store.record((START,), END)
        store.append_plan(a_plan())
        before = store.plans()
    engine = create_engine(_with_driver(make_url(url)))
    with engine.begin() as connection:
        passages.drop(connection)
        set_fact(connection, "schema_format", "3")
    engine.dispose()
    held = Passage(table_id=1, version=1, offset=5)
    part = PartitionRange(topic="T", partition=0, start=5, end=9, bytes_read=1, passages=(held,))

    for _ in range(2):
        with closing(Store.open(url)) as store:
            assert before == store.plans()[:1]
            store.append_plan(replace(a_plan(2), ranges=(part,)))
            assert {("T:0", 1): (held,)} == store.passages()


def test_a_store_that_did_not_note_open_copies_does_from_then_on(url: str) -> None:
    Path(make_url(url).database or "").parent.mkdir(exist_ok=True)
    with closing(Store.open(url)) as store:
        store.append_plan(_copies(1, TableCopy(key=(1,), upto=("3",)), TableCopy(key=(1,), is_done=True)))
    engine = create_engine(_with_driver(make_url(url)))
    with engine.begin() as connection:
        open_copies.drop(connection)
        edits_of_kind.drop(connection)
        set_fact(connection, "schema_format", "4")
    engine.dispose()

    for found in ([1], [2]):
        with closing(Store.open(url)) as store, closing(Transactions(url)) as transactions:
            indexes = transactions.read(lambda connection: inspect(connection).get_indexes("historian_edits"))
            assert (found, True) == (
                list(store.open_copies()),
                str(edits_of_kind.name) in {each["name"] for each in indexes},
            )
            store.append_plan(_copies(2, TableCopy(key=(1,), is_done=True), TableCopy(key=(1,), upto=("1",))))


def _copies(number: int, *copies: TableCopy) -> Plan:
    """A plan that copies some of so many tables."""
    plan = a_plan(number)
    tables = (replace(plan.tables[0], table_id=i, quarantine=None, copy=copy) for i, copy in enumerate(copies, 1))
    return replace(plan, tables=tuple(tables))


def test_copies_that_are_not_done_are_found_without_the_others(store: Store) -> None:
    whole, some = TableCopy(key=(1,), is_done=True), TableCopy(key=(1,), upto=("3",), rows=3)
    assert {} == store.open_copies() == store.open_copies(5)

    store.append_plan(_copies(1, whole, some, whole))
    assert ([2], [1, 2, 3], [2]) == tuple(sorted(store.open_copies(most)) for most in (0, 3, 2))
    assert store.copies()[2] == store.open_copies()[2]
    store.append_plan(_copies(2, some, whole))
    store.append_plan(_copies(2, some, whole))
    assert [1] == list(store.open_copies())
    store.append_plan(_copies(3, whole, replace(some, repairs="a test", upto=None), some))
    assert [2, 3] == sorted(store.open_copies())
    store.quarantine(2, T, STOP)
    assert [2, 3] == sorted(store.open_copies())


def test_the_last_name_of_tables_is_that_of_their_last_version(store: Store) -> None:
    swap = (
        RenameTable(table=T, table_id=1, new=table("spare")),
        RenameTable(table=table("u"), table_id=2, new=T),
        RenameTable(table=table("spare"), table_id=1, new=table("u")),
    )
    gone = statement(3, f"{A}:6", DropTable(table=T, table_id=2))
    start = capture(create(1, "t", "a"), create(2, "u", "b", first=2), create(3, "w", "c", first=3))
    store.record((start, statement(2, f"{A}:5", *swap), gone), END)

    names = store.table_names([3, 2, 1, 99])

    assert {1: table("u"), 2: T, 3: table("w")} == names
    history = store.history()
    assert names == {number: history.versions_of(number)[-1].name for number in (1, 2, 3)}
    assert {} == store.table_names(())


def test_rows_that_were_passed_over_may_be_read_by_a_later_plan_and_not_the_other_way(store: Store) -> None:
    def part(*passages: Passage) -> PartitionRange:
        return PartitionRange(topic="T", partition=0, start=5, end=9, bytes_read=1, passages=passages)

    over, read = Passage(table_id=1, version=0, offset=7), Passage(table_id=1, version=2, offset=7)
    first = Passage(table_id=1, version=1, offset=5)
    store.record((START,), END)
    store.append_plan(replace(a_plan(), ranges=(part(first, over),)))
    assert {("T:0", 1): (first, over)} == store.passages()
    for number, found in enumerate(((first, read), (first, over), (replace(first, version=0),)), 2):
        store.append_plan(replace(a_plan(number), ranges=(part(*found),)))
        assert {("T:0", 1): (first, read)} == store.passages()


def test_marks_of_partitions_and_counts_of_messages_go_on_with_plans(store: Store) -> None:
    def mark(number: int) -> SourceMark:
        servers = (
            ServerPass(server=-5, highest=9, number=number, at=2),
            ServerPass(server=1 << 62, highest=9, number=9),
        )
        return SourceMark(
            passes=servers,
            server=-5,
            number=number,
            file=1,
            offset=2,
            row=3,
            time_us=4,
            is_spread=True,
            seen="A" * 70_000,
        )

    def part(number: int, *counts: tuple[str, int]) -> PartitionRange:
        return PartitionRange(topic="T", partition=number, start=0, end=9, bytes_read=1, passed_over=counts)

    long = "t" * 249 + ":12"
    parts = part(0, ("repeated", 2), ("tombstone", 7)), part(1, ("late", 1), ("repeated", 3))
    store.append_plan(replace(a_plan(1), ranges=parts), marks={"T:0": mark(1), long: mark(2)})
    store.append_plan(replace(a_plan(2), ranges=(part(0, ("doubtful", 4), ("repeated", 1)),)), marks={"T:0": mark(3)})
    store.append_plan(replace(a_plan(2), ranges=(part(0, ("doubtful", 4), ("repeated", 1)),)), marks={"T:0": mark(3)})

    assert {"T:0": mark(3), long: mark(2)} == store.source_marks(["T:0", "T:1", long])
    assert {long: mark(2)} == store.source_marks([long])
    again = tuple(replace(each, behind=0) for each in a_plan(3).tables)
    store.append_plan(replace(a_plan(3), ranges=parts, tables=again))
    assert {"repeated": 6, "late": 1, "doubtful": 4} == store.message_counts()


def test_a_failure_on_the_way_leaves_the_older_store(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    Path(make_url(url).database or "").parent.mkdir(exist_ok=True)
    make_old(url)
    with monkeypatch.context() as patch:
        patch.setattr("historian.store.migration.forget_snapshots", _fails)
        with pytest.raises(StoreError, match="no more room"):
            Store.open(url)

    with closing(Store.open(url)) as store:
        assert 5 == len(store.entries())


def _fails(_: object) -> None:
    raise StoreError("no more room")


def test_a_store_of_a_newer_release_is_refused(url: str) -> None:
    Store.open(url).close()
    with closing(Transactions(url)) as transactions:
        transactions.write(lambda connection: set_fact(connection, "schema_format", "99"))

    with pytest.raises(StoreError, match=r"newer release.*expected format 5 or older; found format 99"):
        Store.open(url)


TRACKER = """
import sys
from models.timelines import A, B, position, statement, table
from historian.schema.edits import TruncateTable
from historian.errors import HistoryMoved
from historian.store import CopyOrders, Store

store = Store.open(sys.argv[1])
server = {"one": A, "other": B}[sys.argv[2]]
for line in sys.stdin:
    number = int(line)
    entry = statement(number + 1, f"{server}:{number + 1}", TruncateTable(table=table("t"), table_id=1))
    try:
        store.record([entry], position(), after=number)
        print("won", flush=True)
    except HistoryMoved:
        print("lost", flush=True)
"""


def test_of_two_trackers_that_record_the_next_version_one_wins_and_the_other_learns_it(url: str) -> None:
    with closing(Store.open(url)) as store:
        store.record([START], position())
        support = Path(__file__).parents[1] / "support"
        trackers = [
            subprocess.Popen(
                [sys.executable, "-c", TRACKER, url, which],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                env={**os.environ, "PYTHONPATH": f"{support}:{support.parents[1]}"},
            )
            for which in ("one", "other")
        ]
        outcomes = [_said(trackers, number) for number in range(1, 13)]
        for tracker in trackers:
            tracker.communicate(timeout=60)

        assert [["lost", "won"]] * 12 == [sorted(said) for said in outcomes]
        servers = [A if said[0] == "won" else B for said in outcomes]
        recorded = [entry.place.gtid for entry in store.entries() if entry.place]
    assert [f"{server}:{number}" for number, server in enumerate(servers, 2)] == recorded


def _said(trackers: list[subprocess.Popen[str]], number: int) -> list[str]:
    """What each says who was told to record behind *number*, both at once."""
    for tracker in trackers:
        assert tracker.stdin is not None
        tracker.stdin.write(f"{number}\n")
        tracker.stdin.flush()
    return [tracker.stdout.readline().strip() for tracker in trackers if tracker.stdout is not None]
