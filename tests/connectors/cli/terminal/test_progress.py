"""The bar of a long command on an emulated terminal, of work that a script plays; and elsewhere."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from connectors.cli.terminal.outcome import ExitCode
from monitoring.screens import on_a_screen

SCRIPT = """
import sys, time
from pathlib import Path
import typer
from connectors.cli.terminal.logs import LogFormat, LogLevel, configure_logs
from connectors.cli.terminal.outcome import ending, say, tell
from connectors.cli.terminal.progress import progress

directory = Path(sys.argv[1])
configure_logs(LogFormat(sys.argv[2]), LogLevel.WARNING)

def wait_for(name):
    while not (directory / name).exists():
        time.sleep(0.05)

@ending
def work():
    with progress("reading shop.\\x1b[2Jorders [bold]", 200) as told:
        told.reach(50)
        wait_for("half")
        for number in range(40):
            say(f"found {number}")
        tell("a note")
        told.what, told.total = "comparing", 400
        wait_for("hidden")
        told.is_hidden = True
        wait_for("end")
    say("the end")

app = typer.Typer()
app.command()(work)
app(args=[])
"""


def _command(directory: Path, form: str = "text") -> list[str]:
    return [sys.executable, "-c", SCRIPT, str(directory), form]


def test_a_bar_stands_below_what_is_written_and_nothing_is_left_of_it(tmp_path: Path) -> None:
    with on_a_screen(_command(tmp_path)) as screen:
        lines = screen.wait(lambda text: " 25%" in text)
        # What a terminal would obey, and rich, is shown.
        assert lines[0].startswith("reading shop.\\x1b[2Jorders [bold] ━━━━━")
        assert " left " in lines[0]
        (tmp_path / "half").touch()
        lines = screen.wait(lambda text: "comparing" in text and " 12%" in text)
        written = [line for line in lines if line]
        assert ["found 38", "found 39", "a note"] == written[-4:-1]
        assert written[-1].startswith("comparing ")
        assert screen.has_cursor
        (tmp_path / "hidden").touch()
        screen.wait(lambda text: "comparing" not in text)
        (tmp_path / "end").touch()
        assert 0 == screen.end()
        assert [*(f"found {number}" for number in range(40)), "a note", "the end"] == screen.text().split("\n")[:42]
        assert "" == screen.text().split("\n", 42)[42].strip()


def test_an_interrupted_command_leaves_the_terminal_as_it_was(tmp_path: Path) -> None:
    with on_a_screen(_command(tmp_path)) as screen:
        screen.wait(lambda text: " 25%" in text)
        screen.type(b"\x03")
        assert ExitCode.INTERRUPTED == screen.end()
        assert "%" not in screen.text()
        assert screen.has_cursor


@pytest.mark.parametrize("form", ["text", "json"])
def test_nothing_is_drawn_without_a_terminal_or_where_records_are_json(tmp_path: Path, form: str) -> None:
    for name in ("half", "hidden", "end"):
        (tmp_path / name).touch()
    done = subprocess.run(_command(tmp_path, form), capture_output=True, text=True, check=True)
    assert 41 == len(done.stdout.splitlines())
    assert 1 == len(done.stderr.splitlines())
    assert "\x1b" not in done.stderr

    with on_a_screen(_command(tmp_path, "json")) as screen:
        assert 0 == screen.end()
        assert b"comparing" not in screen.raw
        assert b"reading" not in screen.raw


def test_work_that_can_no_longer_be_looked_at_ends_neither_bar_nor_command(tmp_path: Path) -> None:
    script = """
import sys, time
from pathlib import Path
from connectors.cli.terminal.progress import progress

def look():
    told.done = min(80, told.done + 40)
    if told.done == 80:
        raise RuntimeError("Spark is gone")

with progress("asking", 100) as told:
    told.look = look
    while not Path(sys.argv[1], "end").exists():
        time.sleep(0.05)
"""
    with on_a_screen([sys.executable, "-c", script, str(tmp_path)]) as screen:
        screen.wait(lambda text: " 80%" in text)
        (tmp_path / "end").touch()
        assert 0 == screen.end()
        assert b"Traceback" not in screen.raw
