"""What a look at a run puts together: of its numbers, its last plan and its store."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from connectors.config import load_config
from connectors.monitoring.metrics import Metrics, RunNumbers
from connectors.monitoring.observer import WrittenPlan
from connectors.monitoring.picture import CopyPicture, RunPicture, TablePicture, TableState
from connectors.monitoring.retention import KeptLog, log_warnings
from connectors.monitoring.stored import Stored, StoredTables
from connectors.monitoring.watching import Rates, run_picture, watched
from historian.changelog.operations import Op
from historian.errors import SourceError
from historian.names import TableName
from historian.plans.plans import LogRange, Plan, PlannedTable, PlannedVersion, TableCopy
from historian.positions import LogPosition
from historian.schema.snapshots import Snapshot
from historian.store import Store
from models.timelines import A, capture, create, position
from workload.waiting import wait_until

BEFORE = RunPicture(taken_us=5, connector="shop", source="mysql here", sinks=("delta",))


def _copy(table: str, state: str, **more: object) -> dict[str, object]:
    size = {"bytes": 50, "estimated_bytes": 1000, "bytes_per_s": 20}
    return {"table": table, "state": state, "rows": 5, "estimate": 100, "rows_per_s": 2, "left_s": 48, **size, **more}


def _written(number: int, *tables: PlannedTable, **more: object) -> WrittenPlan:
    at = LogPosition(flavor="mysql", gtids="", file="b.1", offset=100 * number)
    plan = Plan(
        number=number,
        previous=number - 1,
        connector="c",
        start=at,
        end=at,
        ranges=(LogRange(file="b.1", start=4, end=104),),
        tables=tables,
        version=1,
        system_time_us=0,
        revision="",
    )
    return WrittenPlan(plan=plan, **{"stopped": {}, **more})  # type: ignore[arg-type]


def test_each_table_has_the_state_that_needs_a_person_most() -> None:
    stored = Stored(
        position="b.1:4",
        tables={
            1: "s.streams",
            2: "s.deferred",
            3: "s.copies",
            4: "s.stops",
            5: "s.sinks_stop",
            6: "s.ends",
            7: "s.begins",
        },
        copies=tuple(
            _copy(table, state)
            for table, state in (
                ("s.copies", "copying"),
                ("s.stops", "stopped"),
                ("s.ends", "ends with the next plan"),
                ("s.begins", "waiting"),
            )
        ),
        stopped={"s.stops": "why", "s.never_known": "not understood"},
    )
    last = _written(7, stopped={"s.sinks_stop": "its values"}, due_us={2: 9, 3: 9})
    rates = Rates(0.0)
    numbers = RunNumbers(
        plan=7, plans=3, rows={"s.streams": 60}, copied_rows=30, copied_bytes=300, log_bytes=600, is_open=True
    )
    rates.note(10.0, numbers)

    picture = run_picture(BEFORE, numbers, stored, last, rates, 80.0)

    copy = CopyPicture(
        rows=5, estimate=100, rows_per_s=2, left_s=48, size_bytes=50, estimated_bytes=1000, bytes_per_s=20
    )
    assert {
        TablePicture(name="s.streams", rows=60, rows_per_s=6.0),
        TablePicture(name="s.deferred", state=TableState.DEFERRED, due_us=9),
        TablePicture(name="s.copies", state=TableState.COPYING, copy=copy, due_us=9),
        TablePicture(name="s.stops", state=TableState.STOPPED, copy=copy, reason="why"),
        TablePicture(name="s.sinks_stop", state=TableState.STOPPED, reason="its values"),
        TablePicture(name="s.ends", state=TableState.CANCELLED, copy=copy),
        TablePicture(name="s.begins", state=TableState.WAITING, copy=copy),
        TablePicture(name="s.never_known", state=TableState.STOPPED, reason="not understood"),
    } == set(picture.tables)
    assert ("runs", 7, "b.1:700", 6.0, 3.0, 30.0, 60.0) == (
        picture.stage,
        picture.plan,
        picture.position,
        picture.rows_per_s,
        picture.copied_rows_per_s,
        picture.copied_bytes_per_s,
        picture.log_bytes_per_s,
    )
    assert 3 == len(picture.warnings)  # what is stopped ends at no time


def test_before_the_first_plan_the_store_says_the_position() -> None:
    picture = run_picture(BEFORE, RunNumbers(is_retrying=True), Stored(position="b.1:4"), None, Rates(0.0), None)

    assert ("tries again", 0, "b.1:4", ()) == (picture.stage, picture.plan, picture.position, picture.warnings)


def test_rates_are_those_of_the_last_half_minute() -> None:
    rates = Rates(0.0)
    for second in range(1, 101):
        rates.note(second, RunNumbers(log_bytes=1000 * min(second, 80)))

    assert 1000 * 10 / 30 == pytest.approx(rates.of(lambda numbers: numbers.log_bytes))


def test_numbers_are_those_of_the_registry() -> None:
    metrics = Metrics("shop", "here", ("delta",), tables=10, clock_s=lambda: 30.0)
    snapshot = Snapshot(table_id=1, name=TableName("s", "t"), columns=(), charset="", collation="")
    version = PlannedVersion(version=1, place=None, edits=(), snapshot=snapshot, segment=1)
    table = PlannedTable(table_id=1, versions=(version,), copy=TableCopy(rows=4, size_bytes=36))
    metrics.opened()
    metrics.written(
        _written(2, table, rows={(1, Op.APPEND): 4, (1, Op.RETRACT): 1}, due_us={1: 5}, event_time_us=20_000_000)
    )
    metrics.waits(77)

    samples = {s.name: s.value for family in metrics.registry.collect() for s in family.samples}
    assert (
        RunNumbers(
            plans=1,
            plan=2,
            lag_s=10.0,
            lag_bytes=77,
            log_bytes=100,
            copied_rows=4,
            copied_bytes=36,
            rows={"s.t": 5},
            is_open=True,
        )
        == metrics.numbers()
    )
    assert (1, 10.0) == (samples["historian_deferred_tables"], samples["historian_lag_seconds"])


@pytest.mark.parametrize(
    "kept_s, lag_s, left_s, warned",
    [
        (None, 1e9, 10**9, 0),
        (14_400, 0, 7_200, 0),
        (14_400, 0, 7_201, 1),
        (14_400, 7_200, 3_601, 1),
        (14_400, 7_201, None, 1),
        (14_400, 20_000, 60, 2),
    ],
)
def test_warnings_come_long_before_the_log_is_purged(
    kept_s: float | None, lag_s: float, left_s: int | None, warned: int
) -> None:
    assert warned == len(list(log_warnings(kept_s, lag_s, [("s.t", left_s)])))


def test_a_warning_says_both_times() -> None:
    assert [
        "the log that was not read yet is kept for only 1:00:00 more, of 4:00:00",
        "s.t needs about 9:00:00 more to be copied; the log from here on is kept for 1:00:00",
    ] == list(log_warnings(14_400, 10_800, [("s.t", 32_400)]))


def test_copies_that_are_short_each_and_long_together_are_told_before_their_turn_comes() -> None:
    """A table that waits has no rate of its own."""
    together = ["all copies together need about 2:30:00 more; the log from here on is kept for 4:00:00"]
    waits = [("s.t", 60), ("s.waits", None)]

    assert together == list(log_warnings(14_400, 0, waits, 9_000))
    assert [] == list(log_warnings(14_400, 0, waits, 7_000))
    assert [] == list(log_warnings(14_400, 0, waits, None))
    assert 1 == len(list(log_warnings(14_400, 0, [("s.t", 9_000)], 9_100)))


def test_nobody_waits_for_a_server_that_is_asked_how_long_it_keeps_its_log() -> None:
    answers: Iterator[float | SourceError] = iter([60.0, SourceError("away"), 90.0])
    asked = threading.Semaphore(0)
    now_s = [0.0]

    def ask() -> float:
        try:
            answer = next(answers)
            if isinstance(answer, SourceError):
                raise answer
            return answer
        finally:
            asked.release()

    kept = KeptLog(ask, clock_s=lambda: now_s[0])
    found = []
    for now_s[0] in (0.0, 1.0, 301.0, 302.0, 700.0):
        kept()
        if now_s[0] in (0.0, 301.0, 700.0):
            assert asked.acquire(timeout=10)
        deadline_s = time.monotonic() + 10
        while kept() != {0.0: 60.0, 1.0: 60.0, 301.0: 60.0, 302.0: 60.0, 700.0: 90.0}[now_s[0]]:
            assert time.monotonic() < deadline_s
        found.append(kept())

    assert [60.0, 60.0, 60.0, 60.0, 90.0] == found
    assert next(answers, None) is None


def test_who_can_wait_learns_at_once_how_long_a_log_is_kept_and_it_is_asked_seldom() -> None:
    asked: list[float] = []
    kept = KeptLog(lambda: float(len(asked.append(1.0) or asked)), clock_s=lambda: 7.0)  # type: ignore[func-returns-value]

    assert [1.0, 1.0, 1.0] == [kept.known(), kept.known(), kept()]


def test_who_ends_waits_for_an_answer_on_its_way() -> None:
    may_answer = threading.Event()

    def ask() -> float:
        assert may_answer.wait(10)
        return 60.0

    kept = KeptLog(ask)
    assert kept() is None
    may_answer.set()
    kept.close()

    assert kept() == 60.0


def test_a_connector_that_never_ran_has_nothing_to_tell(tmp_path: Path) -> None:
    file = tmp_path / "shop.yaml"
    file.write_text(
        "name: shop\nsource: {type: mysql, host: h, user: u}\nsinks: [{type: console}]\n"
        f"history: {{store: 'sqlite:///{tmp_path}/store.db'}}\n"
    )
    tables = StoredTables(load_config(file))

    assert Stored() == tables.read()
    assert not (tmp_path / "store.db").exists()
    tables.close()


def test_tables_are_those_of_the_configuration_that_the_run_has_by_now(tmp_path: Path) -> None:
    text = "{{name: c, source: {{type: binlog-files, directory: ., tables: ['{}']}}, history: {{store: 'sqlite:///s.db'}}}}"
    path = tmp_path / "c.yaml"
    path.write_text(text.format("shop.t"))
    config = load_config(path)
    with closing(Store.open(config.history.store)) as store:
        store.record([capture(create(1, "t", "a"), create(2, "u", "a", first=2))], position(f"{A}:1"))

    with watched(config) as watch:
        wait_until(lambda: [table.name for table in watch.picture.tables] == ["shop.t"], 60)
        path.write_text(text.format("shop.u"))
        watch.configured(load_config(path))
        wait_until(lambda: [table.name for table in watch.picture.tables] == ["shop.u"], 60)
