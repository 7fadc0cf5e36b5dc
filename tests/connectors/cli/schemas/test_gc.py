"""``historian schemas CONFIG gc`` over the recorded shop; without sinks, so without Spark."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from connectors.cli import app
from connectors.cli.terminal.outcome import ExitCode
from connectors.config import load_config
from connectors.tracking.sources import make_tracker
from historian.errors import PositionExpired, StoreError
from historian.names import TableName
from historian.plans.plans import Plan
from historian.store import Store

SHOP = Path(__file__).parents[4] / "examples" / "shop"
STOCK = TableName("shop", "stock")


@pytest.fixture
def config(tmp_path: Path) -> Path:
    file = tmp_path / "shop.yaml"
    source = f"{{type: binlog-files, directory: {SHOP / 'binlog'}, tables: ['shop.*']}}"
    file.write_text(f"name: shop\nsource: {source}\n")
    return file


@pytest.fixture
def plans(config: Path) -> tuple[Plan, ...]:
    """Of a connector that has tracked the whole recording; a stream has all but the last two behind it."""
    with closing(make_tracker(load_config(config))) as tracker:
        number = 0
        while (plan := tracker.plan_after(number, limit_bytes=300_000)) is not None:
            number = plan.number
        tracker.done_with("", number - 2)
        return tracker.store.plans()


def _run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_what_was_in_force_before_is_forgotten_and_the_rest_reads_the_same(
    config: Path, plans: tuple[Plan, ...]
) -> None:
    begin = plans[-3].end
    url = load_config(config).history.store
    with closing(Store.open(url)) as store:
        before = store.history()

    result = _run("schemas", config, "gc", "--before", begin, "--json")

    told = json.loads(result.stdout)
    assert (result.exit_code, told["position"], told["needed"]) == (ExitCode.OK, str(begin), plans[-3].number)
    with closing(Store.open(url)) as store:
        after = store.history()
        assert plans[-3:] == store.plans()
        assert told["plans"] == len(plans) - 3
        assert len(before.entries) - len(after.entries) == told["entries"] > 0
    assert before.catalog == after.catalog
    assert before.at(STOCK, begin).snapshot == after.at(STOCK, begin).snapshot
    with pytest.raises(PositionExpired):
        after.at(STOCK, plans[-4].end)
    listed = _run("schemas", config, "list", "shop.stock")
    assert (listed.exit_code, listed.stdout.splitlines()[0]) == (0, "shop.stock")


def test_what_a_stream_still_needs_stays_and_the_command_says_so(config: Path, plans: tuple[Plan, ...]) -> None:
    result = _run("schemas", config, "gc", "--before", plans[-1].end)

    assert ExitCode.OK == result.exit_code
    needed = f"plan {plans[-3].number} is the last one that all have behind them"
    assert [f"the history begins at {plans[-3].end}", f"not at {plans[-1].end}: {needed}"] == [
        result.stdout.splitlines()[0],
        result.stdout.splitlines()[2],
    ]


def test_the_tracker_goes_on_behind_what_was_forgotten(config: Path, plans: tuple[Plan, ...]) -> None:
    _run("schemas", config, "gc", "--before", plans[-3].end)

    with closing(make_tracker(load_config(config))) as tracker:
        assert plans[-2:] == (tracker.plan_after(plans[-3].number), tracker.plan_after(plans[-2].number))
        assert tracker.plan_after(plans[-1].number) is None
        assert plans[-3].end.gtids == tracker.history.origin.gtids
        with pytest.raises(StoreError, match=rf"forgotten.*begins behind plan {plans[-4].number}"):
            tracker.plan_after(0)


@pytest.mark.parametrize("begin", ["first start", "middle"])
def test_tail_reads_on_with_a_history_whose_begin_was_forgotten(
    config: Path, plans: tuple[Plan, ...], begin: str
) -> None:
    middle = plans[-3].end
    before = _run("tail", config, "--format", "ndjson", "--from", middle).stdout
    _run("schemas", config, "gc", "--before", middle if begin == "middle" else plans[0].start)

    result = _run("tail", config, "--format", "ndjson", "--from", middle)

    assert ExitCode.OK == result.exit_code, result.output
    assert before == result.stdout != ""


@pytest.mark.parametrize(
    "position,code,told",
    [
        ("nowhere", ExitCode.USAGE, "not a"),
        ("3e11fa47-71ca-11e1-9e33-c80aa9429562:1-9", ExitCode.STORE, "not been read"),
    ],
)
def test_a_position_that_is_none_of_the_history_is_refused(
    config: Path, plans: tuple[Plan, ...], position: str, code: ExitCode, told: str
) -> None:
    result = _run("schemas", config, "gc", "--before", position)

    assert (code, True) == (result.exit_code, told in result.output)


def test_without_a_store_there_is_nothing_to_forget(config: Path) -> None:
    result = _run("schemas", config, "gc", "--before", "binlog.000001:4")

    assert (ExitCode.STORE, True) == (result.exit_code, "no history yet" in result.output)


def test_plans_that_all_have_behind_them_go_when_their_log_is_purged(config: Path, plans: tuple[Plan, ...]) -> None:
    with closing(Store.open(load_config(config).history.store)) as store:
        assert 0 == store.forget_purged_plans(plans[0].start)
        assert 1 == store.forget_purged_plans(plans[0].end)
        assert 1 == store.forget_purged_plans(plans[1].end)
        assert len(plans) - 5 == store.forget_purged_plans(plans[-1].end)
        assert plans[-3:] == store.plans()


def test_a_running_stream_forgets_now_and_then_what_nobody_can_read(
    config: Path, plans: tuple[Plan, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    number = plans[-1].number
    monkeypatch.setattr("connectors.tracking.tracker._TIDY_EVERY", number)
    with closing(make_tracker(load_config(config))) as tracker:
        monkeypatch.setattr(tracker.reader, "start", lambda: plans[2].end)
        tracker.done_with("", number - 1)
        assert plans == tracker.store.plans()

        tracker.done_with("", number)

        assert plans[3:] == tracker.store.plans()
        tracker.done_with("slow", 5)
        monkeypatch.setattr(tracker.reader, "start", tracker.reader.end)
        tracker.done_with("", number)
        assert plans[4:] == tracker.store.plans()
