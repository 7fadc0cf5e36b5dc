"""Transactions that meet another writer."""

from __future__ import annotations

import gc
import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, nullcontext, suppress
from pathlib import Path

import pytest
from sqlalchemy import Connection, Engine, delete, event, insert, select
from sqlalchemy.exc import OperationalError

from historian.errors import StoreError
from historian.store import Store
from historian.store.engine import Transactions
from historian.store.tables import facts, metadata


@pytest.fixture
def transactions() -> Iterator[Transactions]:
    with closing(Transactions("sqlite://")) as opened:
        opened.write(metadata.create_all)
        yield opened


def _put(connection: Connection, name: str) -> None:
    connection.execute(insert(facts).values(name=name, body=""))


def _names(transactions: Transactions) -> list[str]:
    return list(transactions.read(lambda connection: connection.execute(select(facts.c.name)).scalars().all()))


def test_work_that_met_another_writers_record_runs_again_on_a_clean_state(transactions: Transactions) -> None:
    runs: list[list[str]] = []

    def work(connection: Connection) -> str:
        runs.append(list(connection.execute(select(facts.c.name)).scalars()))
        _put(connection, "mine")
        if len(runs) == 1:
            _put(connection, "mine")  # as a database without a lock at BEGIN says it when another was faster
        return "done"

    assert ("done", [[], []], ["mine"]) == (transactions.write(work), runs, _names(transactions))


def test_work_that_always_meets_another_record_fails_with_nothing_written(transactions: Transactions) -> None:
    def work(connection: Connection) -> None:
        _put(connection, "mine")
        _put(connection, "mine")

    with pytest.raises(StoreError, match=r"history store failed.*UNIQUE.*try again"):
        transactions.write(work)

    assert [] == _names(transactions)


class _Conflict(Exception):
    """As drivers raise it: MySQL's number first, PostgreSQL's state as an attribute."""

    def __init__(self, *args: object, **attributes: object) -> None:
        super().__init__(*args)
        self.__dict__.update(attributes)


@pytest.mark.parametrize(
    "cause,runs",
    [
        (_Conflict(1213, "Deadlock found", sqlstate="40001"), 2),
        (_Conflict(1020, "Record has changed", sqlstate="HY000"), 2),
        (_Conflict("could not serialize access", sqlstate="40001"), 2),
        (_Conflict("deadlock detected", pgcode="40P01"), 2),
        (_Conflict(1205, "Lock wait timeout exceeded", sqlstate="HY000"), 1),
        (_Conflict("disk I/O error"), 1),
    ],
    ids=str,
)
def test_a_transaction_undone_for_another_one_runs_again(
    transactions: Transactions, cause: _Conflict, runs: int
) -> None:
    done: list[int] = []

    def work(connection: Connection) -> None:
        done.append(1)
        if len(done) == 1:
            raise OperationalError("INSERT", {}, cause)

    if runs == 1:
        with pytest.raises(StoreError, match="history store failed"):
            transactions.write(work)
    else:
        transactions.write(work)
    assert runs == len(done)


def test_an_error_inside_leaves_nothing(transactions: Transactions) -> None:
    def work(connection: Connection) -> None:
        _put(connection, "mine")
        raise StoreError("no")

    with pytest.raises(StoreError, match="no"):
        transactions.write(work)

    assert [] == _names(transactions)


def test_what_is_read_together_is_of_one_moment_through_one_connection(tmp_path: Path) -> None:
    with closing(Transactions(f"sqlite:///{tmp_path}/store.db")) as mine, closing(Transactions(mine.where)) as others:
        mine.write(metadata.create_all)
        with mine.together():
            before = _names(mine)
            others.write(lambda connection: _put(connection, "of another"))
            mine.write(lambda connection: _put(connection, "of mine"))
            with mine.together():
                inside = _names(mine)
            connections = {mine.read(id) for _ in range(3)}

        assert ([], [], 1) == (before, inside, len(connections))
        assert ["of another", "of mine"] == sorted(_names(mine))


def test_a_store_is_opened_and_looked_at_while_another_writes(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/store.db"
    with closing(Store.open(url)) as made, closing(Transactions(url)) as writer:
        identity = made.connector("shop")

        def look(_: Connection) -> str:
            with closing(Store.open(f"{url}?timeout=0")) as opened:
                return opened.connector("shop")

        assert identity == writer.write(look)


def test_a_file_stays_open_between_transactions_and_its_log_goes_when_the_store_is_closed(tmp_path: Path) -> None:
    opened: list[object] = []

    def noted(connection: sqlite3.Connection, _: object) -> None:
        opened.append(connection)

    event.listen(Engine, "connect", noted)
    try:
        with (
            closing(Transactions(f"sqlite:///{tmp_path}/store.db")) as mine,
            closing(Transactions(mine.where)) as others,
        ):
            mine.write(metadata.create_all)
            for count in range(1, 4):
                mine.write(lambda connection, count=count: _put(connection, f"{count}"))
                assert count == len(_names(others))
    finally:
        event.remove(Engine, "connect", noted)

    assert 2 == len(opened)
    assert ["store.db"] == [path.name for path in tmp_path.iterdir()]


@pytest.mark.parametrize("is_shared", [False, True])
def test_a_connection_that_is_taken_while_the_store_is_closed_closes_with_its_transaction(
    tmp_path: Path, is_shared: bool
) -> None:
    mine = Transactions(f"sqlite:///{tmp_path}/store.db")
    mine.write(metadata.create_all)
    gc.disable()
    try:
        with mine.together() if is_shared else nullcontext():
            mine.read(lambda _: mine.close())

        assert [] == _open_files(tmp_path)
        assert [] == _names(mine)
        assert [tmp_path / "store.db"] == [path for path in _open_files(tmp_path) if path.suffix == ".db"]
    finally:
        gc.enable()
        mine.close()
    assert ["store.db"] == [path.name for path in tmp_path.iterdir()]


def _open_files(directory: Path) -> list[Path]:
    """Files of *directory* that this process has open."""
    found = []
    for each in Path("/proc/self/fd").iterdir():
        with suppress(OSError):  # what listed them
            found.append(each.readlink())
    return sorted(path for path in found if path.parent == directory)


def test_a_copy_of_the_file_alone_has_all_and_may_take_its_place_while_it_is_open(tmp_path: Path) -> None:
    file, copy = tmp_path / "store.db", tmp_path / "copy.db"
    with closing(Transactions(f"sqlite:///{file}")) as mine:
        mine.write(metadata.create_all)
        for count in range(300):
            mine.write(lambda connection, count=count: _put(connection, f"{count:03} {'x' * 1000}"))
        shutil.copy(file, copy)
        mine.write(lambda connection: connection.execute(delete(facts)))
        copy.replace(file)

        assert 300 == len(_names(mine))
        mine.write(lambda connection: _put(connection, "behind it"))
        assert [("ok",)] == mine.read(lambda c: [tuple(row) for row in c.exec_driver_sql("PRAGMA integrity_check")])
        assert 301 == len(_names(mine))


@pytest.mark.parametrize("is_replaced", [False, True])
def test_a_file_that_was_put_away_is_not_written_any_more(tmp_path: Path, is_replaced: bool) -> None:
    file = tmp_path / "store.db"
    with closing(Transactions(f"sqlite:///{file}")) as mine, closing(Transactions(mine.where)) as others:
        for each in (mine, others):
            each.write(metadata.create_all)
        mine.write(lambda connection: _put(connection, "first"))
        file.rename(tmp_path / "away.db")
        if is_replaced:
            with closing(Transactions(mine.where)) as new:
                new.write(metadata.create_all)
                new.write(lambda connection: _put(connection, "of the new one"))
                assert ["of the new one"] == _names(mine) == _names(others)
        else:
            with pytest.raises(StoreError, match="no such table"):
                _names(mine)
            mine.write(metadata.create_all)
        mine.write(lambda connection: _put(connection, "second"))
        others.write(lambda connection: _put(connection, "third"))
        expected = [*["of the new one"] * is_replaced, "second", "third"]
        assert expected == _names(mine)
    with closing(Transactions(f"sqlite:///{file}")) as again:
        assert expected == _names(again)


def test_a_forked_process_opens_a_connection_of_its_own(tmp_path: Path) -> None:
    with closing(Transactions(f"sqlite:///{tmp_path}/store.db")) as mine:
        mine.write(metadata.create_all)
        before = mine.read(lambda connection: id(connection.connection.driver_connection))
        process = os.fork()
        if process == 0:
            try:
                other = mine.read(lambda connection: id(connection.connection.driver_connection))
                mine.write(lambda connection: _put(connection, "of the child"))
                os._exit(int(other == before))
            finally:
                os._exit(2)
        assert 0 == os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
        mine.write(lambda connection: _put(connection, "of the parent"))

        assert before == mine.read(lambda connection: id(connection.connection.driver_connection))
        assert ["of the child", "of the parent"] == sorted(_names(mine))


def test_what_is_shrunk_is_smaller_while_others_hold_it_open(tmp_path: Path) -> None:
    file = tmp_path / "store.db"
    with closing(Transactions(f"sqlite:///{file}")) as mine, closing(Transactions(mine.where)) as others:
        mine.write(metadata.create_all)
        mine.write(lambda connection: connection.execute(insert(facts).values(name="long", body="x" * 8_000_000)))
        assert ["long"] == _names(others)
        mine.write(lambda connection: connection.execute(delete(facts)))
        mine.shrink()

        assert file.stat().st_size < 1_000_000
        assert [] == _names(others)


def test_a_damaged_file_that_is_to_be_shrunk_is_an_error_of_the_store(tmp_path: Path) -> None:
    file = tmp_path / "store.db"
    with closing(Transactions(f"sqlite:///{file}")) as mine:
        mine.write(metadata.create_all)
        mine.close()
        file.write_bytes(b"x" * 4096)

        with pytest.raises(StoreError, match=r"history store failed .*store\.db.*found file is not a database"):
            mine.shrink()
