"""What a store tells of copies to those who look at it."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace

from connectors.monitoring.copies import copies_left_s, copies_reading
from databases.stores import STOP, T, a_plan
from historian.plans.plans import Plan, TableCopy
from historian.store import Store

_MINUTE_US = 60_000_000


def _plan(number: int, *copies: TableCopy) -> Plan:
    plan = a_plan(number)
    (table,) = plan.tables
    tables = tuple(replace(table, table_id=i, quarantine=None, copy=copy) for i, copy in enumerate(copies, 1))
    return replace(plan, tables=tables, system_time_us=number * _MINUTE_US)


def test_what_a_killed_run_was_reading_is_not_told() -> None:
    with closing(Store.open("sqlite://")) as store:
        store.note_copies_reading('{"plan": 3, "chunks": []}')
        assert copies_reading(store, "c") is None
        with store.lease("c"):
            assert {"plan": 3, "chunks": []} == copies_reading(store, "c")
            store.note_copies_reading("")
            assert copies_reading(store, "c") is None


def test_all_copies_take_as_long_as_those_that_go_on() -> None:
    """The second table waits for its turn, the third has stopped."""
    waits = TableCopy(estimate=200)
    with closing(Store.open("sqlite://")) as store:
        store.append_plan(_plan(1, TableCopy(key=(1,), upto=("1",), rows=100, estimate=400), waits, waits))
        assert copies_left_s(store) is None
        store.append_plan(_plan(2, TableCopy(key=(1,), behind=("1",), upto=("2",), rows=100)))
        assert 60 * (200 + 200 + 200) // 100 == copies_left_s(store)
        store.quarantine(3, T, STOP)
        assert 60 * (200 + 200) // 100 == copies_left_s(store)
        whole = TableCopy(key=(1,), is_done=True)
        store.append_plan(_plan(3, whole, whole))
        assert copies_left_s(store) is None
