"""A run as lines: one a plan where they come slowly, one for several where they come fast."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from connectors.cli.live.lines import RunLines
from connectors.cli.terminal.logs import LogFormat, LogLevel, configure_logs
from connectors.config import load_config
from connectors.monitoring.observer import WrittenPlan
from connectors.tracking import recorded
from historian.changelog.operations import Op
from historian.names import TableName
from historian.plans.plans import Plan, PlannedTable, PlannedVersion, TableCopy
from historian.positions import LogPosition
from historian.schema.snapshots import Snapshot


@dataclass
class _Clock:
    now_s: float = 100.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock() -> _Clock:
    return _Clock()


@pytest.fixture
def lines(tmp_path: Path, clock: _Clock) -> Callable[..., RunLines]:
    file = tmp_path / "shop.yaml"
    file.write_text(
        "name: shop\nsource: {type: mysql, host: h, user: u}\nsinks: [{type: console}]\n"
        f"history: {{store: 'sqlite:///{tmp_path}/store.db'}}\n"
    )
    return lambda **options: RunLines(load_config(file), clock_s=clock, **options)


def _written(number: int, *tables: int, copies: int = 0, is_done: bool = False) -> WrittenPlan:
    at = LogPosition(flavor="mysql", gtids="", file="b.1", offset=number * 100)
    copy = TableCopy(key=(1,), rows=copies, is_done=is_done, size_bytes=100 * copies) if copies else None
    planned = []
    for table_id in tables:
        snapshot = Snapshot(
            table_id=table_id, name=TableName("shop", f"t{table_id}"), columns=(), charset="", collation=""
        )
        version = PlannedVersion(version=1, place=None, edits=(), snapshot=snapshot, segment=1)
        planned.append(PlannedTable(table_id=table_id, versions=(version,), copy=copy))
    plan = Plan(
        number=number,
        previous=number - 1,
        connector="c",
        start=at,
        end=at,
        ranges=(),
        tables=tuple(planned),
        version=1,
        system_time_us=0,
        revision="",
    )
    rows = {(table_id, Op.APPEND): 10 for table_id in tables}
    return WrittenPlan(plan=plan, stopped={}, rows=rows, decode_s=0.1, write_s=(0.2,))


def _told(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return [re.sub(r"^\d\d:\d\d:\d\d ", "", line) for line in capsys.readouterr().err.splitlines()]


def test_the_first_plan_and_the_last_are_told_and_in_between_a_line_every_few_seconds(
    lines: Callable[..., RunLines], clock: _Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    told = lines()
    told.written(_written(1, 1, 2))
    told.written(_written(2, 1))
    told.written(_written(3))  # nothing is in it
    clock.now_s += 4.9
    told.written(_written(4, 2, 3))
    told.waits(0)
    first = _told(capsys)
    clock.now_s += 0.1
    told.waits(0)
    second = _told(capsys)
    told.written(_written(5, 1))
    told.closed()

    assert ["plan 1: 20 rows, 2 tables, in 0.3 s, up to b.1:100"] == first
    assert ["plan 4: 30 rows of 2 plans, 3 tables, in 0.6 s, up to b.1:400"] == second
    assert ["plan 5: 10 rows, 1 table, in 0.3 s, up to b.1:500"] == _told(capsys)
    assert "5 plans written, up to b.1:500" == told.summary()


def test_slow_plans_have_a_line_each(
    lines: Callable[..., RunLines], clock: _Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    told = lines()
    for number in (1, 2, 3):
        told.written(_written(number, 1))
        clock.now_s += 5

    assert [f"plan {n}: 10 rows, 1 table, in 0.3 s, up to b.1:{n}00" for n in (1, 2, 3)] == _told(capsys)


def test_a_table_that_several_plans_copy_counts_once(
    lines: Callable[..., RunLines], capsys: pytest.CaptureFixture[str]
) -> None:
    told = lines()
    told.written(_written(1, 1))
    told.written(_written(2, 1, copies=40))
    told.written(_written(3, 1, copies=2, is_done=True))
    told.closed()

    assert (
        "plan 3: 20 rows of 2 plans, 1 table, 42 rows (4.2 KB) copied, 1 of 1 table whole, in 0.6 s, up to b.1:300"
        == (_told(capsys)[1])
    )


def test_as_json_each_plan_has_its_record(lines: Callable[..., RunLines], capsys: pytest.CaptureFixture[str]) -> None:
    undo = configure_logs(LogFormat.JSON, LogLevel.WARNING)
    try:
        told = lines()
        for number in (1, 2, 3):
            told.planned(_written(number, 1).plan)
            told.written(_written(number, 1))
    finally:
        undo()

    records = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert [(number, 10, 1, f"b.1:{number}00") for number in (1, 2, 3)] == [
        (record["plan"], record["rows"], record["tables"], record["end"]) for record in records
    ]


def test_where_a_picture_shows_the_plans_tables_that_stop_are_told_all_the_same(
    lines: Callable[..., RunLines], capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    told = lines(tells_plans=False)
    with caplog.at_level(logging.INFO):
        told.written(_written(1, 1))
        told.look_for_stopped({"shop.t1": "why"})
        told.look_for_stopped({"shop.t1": "why"})
        told.closed()

    assert ["stopped: shop.t1 in its targets", "  why"] == _told(capsys)
    assert "1 plan written, up to b.1:100; stopped: shop.t1" == told.summary()


def test_a_store_is_looked_at_for_stopped_tables_once_a_second_and_at_the_end(
    lines: Callable[..., RunLines], clock: _Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[float] = []
    monkeypatch.setattr(recorded, "recorded_store", lambda _: object())
    monkeypatch.setattr(recorded, "stopped_tables", lambda _: looks.append(clock.now_s) or ())
    told = lines()
    for number in range(1, 6):
        told.written(_written(number, 1))
        clock.now_s += 0.25
    told.written(_written(6, 1))
    clock.now_s += 0.5
    told.waits(0)
    clock.now_s += 0.5
    told.waits(0)
    told.waits(0)
    told.written(_written(7, 1))
    told.closed()
    told.closed()

    assert [100.0, 101.0, 102.25, 102.25] == looks


def test_a_table_that_stopped_in_a_plan_just_behind_another_is_told_when_the_run_waits(
    lines: Callable[..., RunLines], clock: _Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    told = lines(tells_plans=False)
    told.written(_written(1, 1))
    told.written(replace(_written(2, 1), stopped={"shop.t1": "why"}))
    assert [] == _told(capsys)
    clock.now_s += 1
    told.waits(0)

    assert ["stopped: shop.t1 in its targets", "  why"] == _told(capsys)
