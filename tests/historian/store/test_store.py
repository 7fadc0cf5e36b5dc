"""The store: written once, all or nothing, the same from every process."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from historian.edits import DropTable, TruncateTable
from historian.errors import ConfigError, StoreError
from historian.plans import LogRange, Place, Plan, PlannedTable, PlannedVersion, Quarantine
from historian.store import Store
from historian.timeline import Gap, TimelineEntry
from timelines import FILE, A, B, capture, create, position, random_log, snapshot, statement, table

T = table("t")
START = capture(create(1, "t", "a"))
DDL = statement(2, f"{A}:5", TruncateTable(table=T, table_id=1))
END = position(f"{A}:1-9", 9000)
STOP = Quarantine(place=Place(gtid=f"{A}:3", file=FILE, offset=2500, ordinal=2), reason="does not fit")


@pytest.fixture(params=["file", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    url = f"sqlite:///{tmp_path}/state/shop.db" if request.param == "file" else "sqlite://"
    with closing(Store.open(url)) as opened:
        yield opened


def a_plan(number: int = 1, *, connector: str = "c", end: int = 9, tables: int = 1) -> Plan:
    versions = [
        PlannedVersion(version=1, place=None, edits=(), snapshot=snapshot(1, "t", "a"), segment=0),
        PlannedVersion(version=2, place=STOP.place, edits=DDL.edits, snapshot=snapshot(1, "t", "a"), segment=1),
        PlannedVersion(version=3, place=STOP.place, edits=(), snapshot=None, segment=2, statement="DROP TABLE `ü`"),
    ]
    return Plan(
        number=number,
        previous=number - 1,
        connector=connector,
        start=position(),
        end=position(f"{A}:1-{end}", 1000 * end),
        ranges=(LogRange(file=FILE, start=4, end=1000 * end),),
        tables=tuple(PlannedTable(table_id=i + 1, versions=tuple(versions), quarantine=STOP) for i in range(tables)),
        version=2,
        system_time_us=number,
        revision="r",
    )


def test_a_new_store_is_empty(store: Store) -> None:
    assert ((), None, None, (), {}, (), {}) == (
        store.entries(),
        store.resolved(),
        store.last_plan(),
        store.plans(),
        store.quarantines(),
        store.gaps(),
        store.zero_dates(),
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

    store.record([START, DDL], END, [gap])
    store.record([], END, [gap])

    assert ((START, DDL), (DDL,), END, (gap,)) == (store.entries(), store.entries(1), store.resolved(), store.gaps())
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


def test_a_table_that_stops_in_a_plan_has_stopped_for_the_plans_behind_it(store: Store) -> None:
    """One renamed out of the filter must not go on when it comes back: its changes meanwhile were left out."""
    earlier = Quarantine(place=replace(STOP.place, offset=1), reason="earlier")
    store.quarantine(2, table("other"), earlier)
    store.append_plan(a_plan(tables=2))

    assert {1: STOP, 2: earlier} == store.quarantines()


def test_plans_begin_with_1(store: Store) -> None:
    with pytest.raises(StoreError, match="expected 1; found 2"):
        store.append_plan(a_plan(2))


def test_a_snapshot_that_many_plans_need_is_stored_once(tmp_path: Path) -> None:
    with closing(Store.open(f"sqlite:///{tmp_path}/s.db")) as store:
        for number in (1, 2, 3):
            store.append_plan(a_plan(number, tables=4))

    with closing(sqlite3.connect(tmp_path / "s.db")) as database:
        assert [(1,)] == database.execute("SELECT count(*) FROM historian_snapshots").fetchall()


def test_forgotten_plans_are_gone_with_what_only_they_needed(tmp_path: Path) -> None:
    with closing(Store.open(f"sqlite:///{tmp_path}/s.db")) as store:
        last = replace(a_plan(4), tables=())
        for plan in (a_plan(1), a_plan(2), a_plan(3), last):
            store.append_plan(plan)

        assert (2, [3, 4], 0) == (store.forget_plans(3), [p.number for p in store.plans()], store.forget_plans(3))
        assert (1, (last,), None) == (store.forget_plans(99), store.plans(), store.plan(3))
        store.append_plan(a_plan(5))
        store.forget_plans(5)

    with closing(sqlite3.connect(tmp_path / "s.db")) as database:
        assert [(1,)] == database.execute("SELECT count(*) FROM historian_snapshots").fetchall()


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


def test_zero_dates_of_a_plan_run_again_count_once(store: Store) -> None:
    store.count_zero_dates(1, {(1, 2): 3, (1, 4): 1})
    store.count_zero_dates(2, {(1, 2): 4})
    store.count_zero_dates(1, {(1, 2): 5})

    assert {(1, 2): 9} == store.zero_dates()


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


def test_a_store_of_another_format_is_refused(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/s.db"
    Store.open(url).close()
    with closing(sqlite3.connect(tmp_path / "s.db")) as database:
        database.execute("UPDATE historian_facts SET body = '99' WHERE name = 'schema_format'")
        database.commit()

    with pytest.raises(StoreError, match=r"newer release.*expected format 2 or older; found format 99"):
        Store.open(url)


@pytest.mark.parametrize(
    "url,problem",
    [
        ("shop.db", "Could not parse"),
        ("nosuch://host/db", "nosuch"),
        ("mysql+pymysql://user:secret@host:port/db", "invalid literal"),
        ("sqlite:///{}/s.db?bogus=1", "bogus"),
        ("sqlite:///{}/s.db?timeout=soon", "soon"),
        ("mysql://user:secret@127.0.0.1:1/db?bogus=1", "bogus"),
        ("postgresql://user:secret@127.0.0.1:1/db?bogus=1", "bogus"),
    ],
)
def test_a_url_that_names_no_store_is_a_problem_of_the_configuration(tmp_path: Path, url: str, problem: str) -> None:
    with pytest.raises(ConfigError, match=rf"not a store's URL.*\n.*{problem}.*@ \$\.history\.store") as caught:
        Store.open(url.format(tmp_path))

    assert "secret" not in str(caught.value)


def test_a_store_without_its_driver_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)

    with pytest.raises(ConfigError, match=r"no driver for PostgreSQL.*pip install"):
        Store.open("postgresql://user@127.0.0.1:1/db")


def test_a_file_that_is_no_database_is_refused_by_name_without_secrets(tmp_path: Path) -> None:
    (tmp_path / "s.db").write_text("no database at all, but long enough to be read as one" * 100)

    with pytest.raises(StoreError, match=r"history store failed.*s\.db.*not a database"):
        Store.open(f"sqlite:///{tmp_path}/s.db")


def test_a_directory_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(StoreError, match="directory cannot be made"):
        Store.open(f"sqlite:///{tmp_path}/file/s.db")


def test_a_locked_store_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("historian.store.engine._BUSY_S", 0.05)
    with (
        closing(Store.open(f"sqlite:///{tmp_path}/s.db")) as store,
        closing(sqlite3.connect(tmp_path / "s.db", isolation_level=None)) as other,
    ):
        other.execute("BEGIN IMMEDIATE")

        assert store.resolved() is None  # reading goes on
        with pytest.raises(StoreError, match=r"locked.*try again"):
            store.record([START], END)


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 2**32), st.integers(1, 10))
def test_a_timeline_recorded_in_pieces_again_and_again_reads_back(seed: int, transactions: int) -> None:
    random = Random(seed)
    log = random_log(random, transactions)
    with closing(Store.open("sqlite://")) as store:
        done = 0
        while done < len(log.entries):
            begin, end = random.randint(0, done), random.randint(done + 1, len(log.entries))
            store.record(log.entries[begin:end], log.entries[end - 1].position)
            done = end
        store.record([], log.end)

        assert tuple(log.entries) == store.entries()
        assert log.catalog == store.history().catalog


def test_writers_that_record_the_same_do_not_disturb_each_other(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/s.db"
    entries = [START, *(statement(n, f"{A}:{n}", TruncateTable(table=T, table_id=1)) for n in range(2, 30))]
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
        assert (tuple(entries), 29) == (store.entries(), len(store.plans()))


def test_a_store_made_anew_has_another_generation(tmp_path: Path) -> None:
    def generation(name: str) -> str:
        with closing(Store.open(f"sqlite:///{tmp_path}/{name}.db")) as store:
            return store.generation()

    assert (generation("one"), 2) == (generation("one"), len({generation("one"), generation("other")}))


def test_of_two_writers_with_different_content_one_learns_it(store: Store) -> None:
    store.append_plan(a_plan(1, connector="one"))

    with pytest.raises(StoreError, match="another run made it"):
        store.append_plan(a_plan(1, connector="other"))


WRITER = """
import sys
from timelines import A, capture, create, position, statement, table
from historian.edits import TruncateTable
from historian.store import Store

store = Store.open(sys.argv[1])
store.record([capture(create(1, "t", "a"))], position(f"{A}:1", 1000))
for n in range(2, 100_000):
    edit = TruncateTable(table=table("t"), table_id=1)
    pair = [statement(2 * n - 2 + i, f"{A}:{n}", edit, ordinal=i) for i in (0, 1)]
    store.record(pair, position(f"{A}:1-{n}", 1000 * n))
    print(n, flush=True)
"""


@pytest.mark.parametrize("after", [1, 40])
def test_a_killed_writer_leaves_whole_records(tmp_path: Path, after: int) -> None:
    url = f"sqlite:///{tmp_path}/s.db"
    support = Path(__file__).parents[2] / "support"
    root = support.parents[1]
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, url],
        stdout=subprocess.PIPE,
        text=True,
        env={"PYTHONPATH": f"{support}:{root}", "PATH": ""},
    )
    assert writer.stdout is not None
    with writer:
        said = [int(writer.stdout.readline()) for _ in range(after)][-1]
        writer.send_signal(signal.SIGKILL)
        said = max([said, *(int(line) for line in writer.stdout if line.endswith("\n"))])

    with closing(Store.open(url)) as store:
        entries, resolved = store.entries(), store.resolved()

    last = (len(entries) + 1) // 2
    assert list(range(1, 2 * last)) == [entry.number for entry in entries]
    assert position(f"{A}:1-{last}", 1000 * last) == resolved
    assert last - said in {0, 1}
