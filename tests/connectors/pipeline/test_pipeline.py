"""The loop of a run, over recorded files: where it begins, when it ends, and when it waits."""

from __future__ import annotations

import io
import json
import shutil
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from connectors.config import PipelineConfig, load_config
from connectors.monitoring.observer import on_written
from connectors.pipeline import pipeline
from connectors.pipeline.pacing import PlansAhead, Silence
from connectors.pipeline.pipeline import Pipeline
from connectors.readers.binlog.files_reader import BinlogFilesReader
from connectors.tracking.tracker import Tracker
from historian.plans.plans import Plan
from sinks.console import ConsoleSink

SHOP = Path(__file__).parents[3] / "examples" / "shop"
ENDS_S = 60
SPARK: Any = SimpleNamespace(sparkContext=SimpleNamespace(master="local[2]", defaultParallelism=2))
"""All that the loop asks of a session; the console asks for nothing."""


def _config(tmp_path: Path, *files: str, run: str = "{}") -> PipelineConfig:
    log = tmp_path / "log"
    log.mkdir(exist_ok=True)
    for file in files:
        shutil.copy(SHOP / "binlog" / file, log)
    path = tmp_path / "shop.yaml"
    path.write_text(
        f"name: shop\nsource: {{type: binlog-files, directory: {log}, tables: ['shop.coupons']}}\n"
        f"history: {{store: 'sqlite:///{tmp_path}/store.db'}}\nsinks: [{{type: console}}]\nrun: {run}\n"
    )
    return load_config(path)


def _run(
    config: PipelineConfig,
    *,
    stop_behind: int | None = None,
    until: str | None = None,
    behind_first: Callable[[], object] = lambda: None,
) -> list[Plan]:
    """A run's plans: up to the log's end, or live until the plan of that number is written."""
    plans: list[Plan] = []
    stopping = threading.Event()

    def report(plan: Plan, _: Mapping[str, str]) -> None:
        plans.append(plan)
        if plan.number == 1:
            behind_first()
        if plan.number == stop_behind:
            stopping.set()

    with Pipeline.opened(config, SPARK, on_written(report)) as running:
        running.run(once=stop_behind is None, until=until, stopping=stopping)
    return plans


def test_a_run_goes_on_where_the_last_one_ended(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = sorted(path.name for path in (SHOP / "binlog").iterdir())
    plans = _run(_config(tmp_path, *names[:1]))
    first = capsys.readouterr().out.splitlines()
    plans += _run(_config(tmp_path, *names))
    second = capsys.readouterr().out.splitlines()

    assert [plan.number for plan in plans] == [1, 2]
    assert plans[1].start == plans[0].end
    assert _run(_config(tmp_path)) == []
    (tmp_path / "store.db").unlink()
    _run(_config(tmp_path))
    assert sorted(first + second) == sorted(capsys.readouterr().out.splitlines())
    assert sum("op" in json.loads(line) for line in first + second) > 100


def test_a_log_that_is_ahead_is_followed_without_a_pause(tmp_path: Path) -> None:
    names = sorted(path.name for path in (SHOP / "binlog").iterdir())
    config = _config(tmp_path, *names[:1], run=f"{{trigger: {10 * ENDS_S} seconds, max_batch_bytes: 100 KB}}")
    done: list[Plan] = []

    thread = threading.Thread(target=lambda: done.extend(_run(config, stop_behind=3)), daemon=True)
    thread.start()
    thread.join(ENDS_S)

    assert [plan.number for plan in done] == [1, 2, 3]


def test_a_plan_is_made_before_its_time_where_enough_of_the_log_waits(tmp_path: Path) -> None:
    first, second = sorted(path.name for path in (SHOP / "binlog").iterdir())[:2]
    config = _config(tmp_path, first, run=f"{{trigger: {10 * ENDS_S} seconds, batch_bytes: 1 KB}}")
    done: list[Plan] = []

    thread = threading.Thread(
        target=lambda: done.extend(_run(config, stop_behind=2, behind_first=lambda: _config(tmp_path, second))),
        daemon=True,
    )
    thread.start()
    thread.join(ENDS_S)

    assert [(plan.number, plan.end.file) for plan in done] == [(1, first), (2, second)]


def test_a_run_that_is_stopped_before_it_begins_writes_nothing(tmp_path: Path) -> None:
    stopping = threading.Event()
    stopping.set()
    plans: list[Plan] = []

    with Pipeline.opened(_config(tmp_path), SPARK, on_written(lambda plan, _: plans.append(plan))) as running:
        running.run(once=True, until=None, stopping=stopping)

    assert plans == []


class _Late(ConsoleSink):
    """Leaves the rows of its plans to one without log, which is due at *due_us*."""

    def __init__(self, due_us: int) -> None:
        super().__init__(None, None, io.StringIO())  # type: ignore[arg-type] asks for nothing
        self._due_us = due_us
        self._waits: tuple[int, ...] = ()

    def write(self, plan: Plan, timeline: Any, chunks: Any) -> None:
        super().write(plan, timeline, chunks)
        self._waits = () if plan.start == plan.end else tuple(table.table_id for table in plan.tables)

    def due_us(self) -> Mapping[int, int]:
        return dict.fromkeys(self._waits, self._due_us)


_YEAR_3000_US = 32_503_680_000_000_000


def test_the_end_of_a_run_takes_up_what_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline, "make_sinks", lambda *_: (_Late(_YEAR_3000_US),))
    names = sorted(path.name for path in (SHOP / "binlog").iterdir())
    plans = _run(_config(tmp_path, *names))

    assert [False, True] == [plan.start == plan.end for plan in plans]
    assert (2, 1, plans[0].end, ()) == (plans[1].number, plans[1].previous, plans[1].end, plans[1].ranges)
    assert [table.table_id for table in plans[0].tables] == [table.table_id for table in plans[1].tables]
    assert [[None]] == [[version.place for version in table.versions] for table in plans[1].tables]


@pytest.mark.parametrize("due_us, expected", [(0, [False, True]), (_YEAR_3000_US, [False])])
def test_a_log_that_brings_nothing_is_waited_for_until_rows_are_due(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, due_us: int, expected: list[bool]
) -> None:
    monkeypatch.setattr(pipeline, "make_sinks", lambda *_: (_Late(due_us),))
    names = sorted(path.name for path in (SHOP / "binlog").iterdir())
    config, stopping = _config(tmp_path, *names, run="{trigger: 1 ms}"), threading.Event()
    plans: list[Plan] = []
    with Pipeline.opened(config, SPARK, on_written(lambda plan, _: plans.append(plan))) as running:
        # The log has ended: what waits for it is the end of the test.
        monkeypatch.setattr(running._tracker.reader, "wait", lambda *_: stopping.set())
        running.run(once=False, until=None, stopping=stopping)

    assert expected == [plan.start == plan.end for plan in plans]


def test_a_source_that_is_silent_is_believed_for_a_while_and_the_run_hears_that_it_is_to_stop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits, asked, stopping = iter([False] * 40 + [True, False, False]), [0, 0], threading.Event()

    def wait(*_: object) -> bool:
        came = next(waits, None)
        if came is None:
            stopping.set()
        asked[0] += 1
        return bool(came)

    def plan_after(tracker: Tracker, number: int, **options: Any) -> Plan | None:
        asked[1] += 1
        return made(tracker, number, **options)

    made = Tracker.plan_after
    monkeypatch.setattr(BinlogFilesReader, "wait", wait)
    monkeypatch.setattr(Tracker, "plan_after", plan_after)
    monkeypatch.setattr(Silence, "look_in_s", lambda _: 10 * ENDS_S)

    config = _config(tmp_path, "binlog.000001", run="{trigger: 1 ms}")
    with Pipeline.opened(config, SPARK, on_written(lambda *_: None)) as running:
        running.run(once=False, until=None, stopping=stopping)

    # The plan; what is behind it, before the 40 and behind the one that something ended.
    assert [44, 3] == asked


def test_plans_that_are_made_ahead_are_those_that_are_made_one_after_the_other(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    names = sorted(path.name for path in (SHOP / "binlog").iterdir())
    makers: list[bool] = []
    plan_after = Tracker.plan_after

    def noted(tracker: Tracker, number: int, **limits: Any) -> Plan | None:
        makers.append(threading.current_thread() is threading.main_thread())
        return plan_after(tracker, number, **limits)

    monkeypatch.setattr(Tracker, "plan_after", noted)
    found = []
    for way in ("ahead", "asked"):
        if way == "asked":
            monkeypatch.setattr(PlansAhead, "wanted_behind", lambda *_: None)
        (tmp_path / way).mkdir()
        makers.clear()
        plans = _run(_config(tmp_path / way, *names, run="{max_batch_bytes: 50 kB}"))
        assert (way == "asked") == all(makers)
        if way == "ahead":  # Down to the last, which is short. Nothing is written of a plan without tables.
            assert makers[: len(plans)] == [True, *(not plan.tables for plan in plans[:-1])]
        found.append(([(plan.start, plan.end, plan.ranges) for plan in plans], capsys.readouterr().out.splitlines()))

    assert len(found[0][0]) > 2
    assert found[0] == found[1]
