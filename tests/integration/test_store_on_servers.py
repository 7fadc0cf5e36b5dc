"""The store in a MySQL or MariaDB database instead of a file."""

from __future__ import annotations

import threading
from contextlib import closing

import pytest

from historian.edits import TruncateTable
from historian.errors import LeaseHeld, StoreError
from historian.plans import Place, Plan, PlannedTable, PlannedVersion, Quarantine
from historian.store import Store
from servers import Server
from timelines import FILE, A, capture, create, position, snapshot, statement, table

EDIT = TruncateTable(table=table("t"), table_id=1)
# Longer than MySQL's TEXT, and with characters of four bytes.
ENTRIES = [
    capture(create(1, "t", *(f"{'x' * 50}{i}😀" for i in range(900)))),
    *(statement(number, f"{A}:{number}", EDIT) for number in range(2, 20)),
]
STOP = Quarantine(place=Place(gtid=f"{A}:3", file=FILE, offset=2500, ordinal=2), reason="does not fit")


def url_of(server: Server, database: str) -> str:
    server.sql(f"CREATE DATABASE {database}")
    account = f"{server.user}:{server.password}@{server.host}:{server.port}"
    return f"mysql+pymysql://{account}/{database}?charset=utf8mb4"


def a_plan(number: int) -> Plan:
    version = PlannedVersion(version=1, place=None, edits=(), snapshot=snapshot(1, "t", "ä"), segment=0)
    return Plan(
        number=number,
        previous=number - 1,
        connector="c",
        start=position(),
        end=position(f"{A}:1-{number}", 1000 * number),
        ranges=(),
        tables=(PlannedTable(table_id=1, versions=(version,)),),
        version=1,
        system_time_us=number,
        revision="r",
    )


@pytest.mark.parametrize("name", ["mysql8", "mariadb118"])
def test_store_keeps_everything_as_in_a_file(request: pytest.FixtureRequest, name: str) -> None:
    server: Server = request.getfixturevalue(name)
    with closing(Store.open(url_of(server, "kept"))) as store:
        identity = store.connector("shop")
        store.record(ENTRIES, position(f"{A}:1-19", 19_000))
        store.append_plan(a_plan(1))
        store.append_plan(a_plan(2))
        store.quarantine(1, table("t"), STOP)
        store.quarantine(0, table("T"), STOP)
        store.quarantine(0, table("t"), STOP)
        store.remember_stream("s", "{}")
        store.count_zero_dates(1, {(1, 2): 3})

    with closing(Store.open(url_of(server, "other").replace("/other", "/kept"))) as store:
        assert (identity, tuple(ENTRIES), (a_plan(1), a_plan(2))) == (
            store.connector("shop"),
            store.entries(),
            store.plans(),
        )
        assert [(0, "T"), (0, "t"), (1, "t")] == [(table_id, stopped.table) for table_id, stopped, _ in store.stopped()]
        assert (position(f"{A}:1-19", 19_000), "{}", {(1, 2): 3}) == (
            store.resolved(),
            store.stream("s"),
            store.zero_dates(),
        )
        with pytest.raises(StoreError, match="other content"):
            store.append_plan(
                Plan(**{field: getattr(a_plan(3), field) for field in a_plan(3).__slots__} | {"number": 2})
            )
        with store.lease("shop"), pytest.raises(LeaseHeld), store.lease("shop"):
            pass
    server.sql("DROP DATABASE kept")
    server.sql("DROP DATABASE other")


@pytest.mark.parametrize("name", ["mysql8", "mariadb118"])
def test_writers_that_record_the_same_do_not_disturb_each_other(request: pytest.FixtureRequest, name: str) -> None:
    server: Server = request.getfixturevalue(name)
    url = url_of(server, "shared")
    Store.open(url).close()
    failures: list[StoreError] = []

    def work() -> None:
        try:
            with closing(Store.open(url)) as store:
                store.connector("shop")
                for number, entry in enumerate(ENTRIES, 1):
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
        assert (tuple(ENTRIES), len(ENTRIES)) == (store.entries(), len(store.plans()))
    server.sql("DROP DATABASE shared")
