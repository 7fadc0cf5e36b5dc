"""The live display on an emulated terminal, of a run that a script plays: no server, no Spark."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from monitoring.screens import Screen, on_a_screen

RED = b"\x1b[1;31mstopped"
SCRIPT = """
import logging, os, subprocess, sys, time
from pathlib import Path
from connectors.cli.live.display import live_display
from connectors.cli.terminal.progress import can_be_live
from connectors.cli.terminal.logs import LogFormat, LogLevel, configure_logs
from connectors.config import load_config
from connectors.monitoring.observer import WrittenPlan
from historian.changelog.operations import Op
from historian.names import TableName
from historian.plans.plans import Plan, PlannedTable, PlannedVersion
from historian.positions import LogPosition
from historian.schema.snapshots import Snapshot

directory = Path(sys.argv[1])
undo = configure_logs(LogFormat.JSON, LogLevel.WARNING)
assert not can_be_live()
undo()
configure_logs(LogFormat.TEXT, LogLevel.WARNING)
assert can_be_live()

def plan(number):
    at = LogPosition(flavor="mysql", gtids="", file="b.1", offset=100 * number)
    snapshot = Snapshot(table_id=1, name=TableName("s", "t"), columns=(), charset="", collation="")
    version = PlannedVersion(version=1, place=None, edits=(), snapshot=snapshot, segment=1)
    return Plan(
        number=number, previous=0, connector="c", start=at, end=at, ranges=(),
        tables=(PlannedTable(table_id=1, versions=(version,)),), version=1, system_time_us=0, revision="",
    )

def wait_for(name):
    while not (directory / name).exists():
        time.sleep(0.05)

try:
    with live_display(load_config(directory / "shop.yaml")) as watch:
        if "never-opens" in sys.argv:
            raise SystemExit("it cannot begin")
        watch.opened()
        watch.written(WrittenPlan(plan=plan(1), stopped={"s.gone": "the reason"}, rows={(1, Op.APPEND): 7}))
        wait_for("one")
        for number in range(40):
            logging.getLogger("sinks").warning("warning %s", number)
        print("printed \\x1b[2Jbadly")
        subprocess.run(["sh", "-c", "echo from a child; echo from a child, told >&2"])
        wait_for("two")
        if "fails" in sys.argv:
            raise SystemExit("it failed")
finally:
    assert sys.stderr.isatty()
print("the summary", file=sys.stderr)
"""


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    (tmp_path / "shop.yaml").write_text(
        "name: shop\nsource: {type: mysql, host: 127.0.0.1, port: 1, user: u}\nsinks: [{type: console}]\n"
        f"history: {{store: 'sqlite:///{tmp_path}/store.db'}}\n"
    )
    return tmp_path


def _shows_a_plan(screen: Screen) -> list[str]:
    return screen.wait(lambda text: "out " in text and "7 rows so far" in text and "the reason" in text)


def test_what_is_written_stands_above_the_picture_and_the_last_picture_stays(directory: Path) -> None:
    command = [sys.executable, "-c", SCRIPT, str(directory)]
    with on_a_screen(command, columns=80, lines=24, environment={"NO_COLOR": "1"}) as screen:
        shown = _shows_a_plan(screen)
        assert not screen.has_cursor
        (directory / "one").touch()
        moved = screen.wait(lambda text: "from a child, told" in text)
        screen.resize(60)
        narrow = screen.wait(lambda text: text.rstrip().endswith("  the reason"))
        (directory / "two").touch()
        code = screen.end()
        text = screen.text().rstrip().splitlines()

    assert ["shop  runs  mysql 127.0.0.1:1 to console", "position plan 1, b.1:100"] == shown[:2]
    at = moved.index("from a child, told")
    assert [
        r"printed \x1b[2Jbadly",
        "from a child",
        "from a child, told",
        "shop  runs  mysql 127.0.0.1:1 to console",
    ] == (moved[at - 2 : at + 2])
    assert max(map(len, narrow)) <= 60
    assert (0, True) == (code, screen.has_cursor), text
    assert [f"warning {number}" for number in range(40)] == [line for line in text if line.startswith("warning")]
    assert "shop  has ended  mysql 127.0.0.1:1 to console" in text
    assert 1 == sum(line.startswith("position") for line in text), text
    assert ["s.gone  stopped  0 rows", "  the reason", "the summary"] == text[-3:]
    assert RED not in screen.raw


@pytest.mark.parametrize("way", ["fails", "never-opens"])
def test_an_error_leaves_the_terminal_clean(directory: Path, way: str) -> None:
    (directory / "one").touch()
    (directory / "two").touch()
    with on_a_screen([sys.executable, "-c", SCRIPT, str(directory), way], environment={"NO_COLOR": ""}) as screen:
        code = screen.end()
        text = screen.text().rstrip().splitlines()

    assert (way == "fails") == (RED in screen.raw)
    assert (1, True) == (code, screen.has_cursor), text
    if way == "never-opens":
        assert ["it cannot begin"] == text
    else:
        assert ["  the reason", "it failed"] == text[-2:]


def test_a_job_in_the_background_draws_nothing(directory: Path) -> None:
    code = "from connectors.cli.terminal.progress import can_be_live; print('live', can_be_live())"
    shell = f"set -m; '{sys.executable}' -c \"{code}\"; '{sys.executable}' -c \"{code}\" & wait"
    with on_a_screen(["bash", "-c", shell]) as screen:
        assert 0 == screen.end()
        assert ["live True", "live False"] == [line for line in screen.lines() if line.startswith("live")]
