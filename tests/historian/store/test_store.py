"""The store in an SQLite file, and what it refuses to open. What all stores must do: tests/contract/test_store.py."""

from __future__ import annotations

import signal
import sqlite3
import stat
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import Engine, event

from databases.stores import END, START, a_plan
from historian.errors import ConfigError, StoreError
from historian.store import Store
from models.timelines import A, capture, create, position, random_log


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


def test_only_its_owner_reads_a_new_file(tmp_path: Path) -> None:
    with closing(Store.open(f"sqlite:///{tmp_path}/s.db")):
        assert {0o600} == {stat.S_IMODE(each.stat().st_mode) for each in tmp_path.iterdir()}


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


def test_a_store_made_anew_has_another_generation(tmp_path: Path) -> None:
    def generation(name: str) -> str:
        with closing(Store.open(f"sqlite:///{tmp_path}/{name}.db")) as store:
            return store.generation()

    assert (generation("one"), 2) == (generation("one"), len({generation("one"), generation("other")}))


WRITER = """
import sys
from models.timelines import A, capture, create, position, statement, table
from historian.schema.edits import TruncateTable
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


def test_the_names_of_tables_that_one_entry_made_take_steps_that_grow_with_their_number(tmp_path: Path) -> None:
    steps: list[int] = []

    def counted(connection: sqlite3.Connection, _: object) -> None:
        connection.set_progress_handler(lambda: steps.append(100) or 0, 100)

    taken = []
    event.listen(Engine, "connect", counted)
    try:
        for tables in (200, 800):
            with closing(Store.open(f"sqlite:///{tmp_path}/{tables}.db")) as store:
                store.record((capture(*(create(i, f"t{i}", "a", first=i) for i in range(1, tables + 1))),), END)
                steps.clear()
                assert tables == len(store.table_names(range(1, tables + 1)))
                taken.append(sum(steps))
    finally:
        event.remove(Engine, "connect", counted)
    few, many = taken
    assert 0 < many < 6 * few
