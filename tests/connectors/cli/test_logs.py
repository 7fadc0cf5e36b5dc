"""Standard error as JSON: one object a line, with what a record is about."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from connectors.cli import app
from connectors.cli.terminal.logs import LogFormat, LogLevel, bind, configure_logs
from connectors.cli.terminal.outcome import tell


@pytest.fixture
def configure() -> Iterator[Callable[[LogFormat, LogLevel], None]]:
    """As :func:`configure_logs`, for one test."""
    undone: list[Callable[[], None]] = []
    yield lambda form, level: undone.append(configure_logs(form, level))
    for undo in undone:
        undo()


Configure = Callable[[LogFormat, LogLevel], None]


def _records(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def test_records_name_connector_plan_and_table_where_there_is_one(
    configure: Configure, capsys: pytest.CaptureFixture[str]
) -> None:
    configure(LogFormat.JSON, LogLevel.WARNING)
    bind(connector="shop", plan=7)
    logging.getLogger("sinks.delta").error("table %s is stopped: %s", "shop.t", "why", extra={"table": "shop.t"})
    logging.getLogger("sinks.delta").info("not shown")
    bind(plan=None)
    tell("a line\nof two", rows=3)

    first, second = _records(capsys.readouterr().err)
    for record in (first, second):
        assert record.pop("time").endswith("Z")
    assert first == {
        "connector": "shop",
        "plan": 7,
        "table": "shop.t",
        "level": "error",
        "logger": "sinks.delta",
        "event": "table shop.t is stopped: why",
    }
    assert second == {
        "connector": "shop",
        "rows": 3,
        "level": "info",
        "logger": "historian.cli",
        "event": "a line\nof two",
    }


def test_an_exception_is_one_record(configure: Configure, capsys: pytest.CaptureFixture[str]) -> None:
    configure(LogFormat.JSON, LogLevel.DEBUG)
    try:
        int("no number")
    except ValueError:
        logging.getLogger("connectors").exception("it failed")

    (record,) = _records(capsys.readouterr().err)
    assert record["event"] == "it failed"
    assert record["exception"].endswith("'no number'")


def test_an_error_of_a_command_is_a_record_of_its_parts(tmp_path: Path) -> None:
    file = tmp_path / "shop.yaml"
    file.write_text("name: shop\nsource: {type: mysql, host: db, user: cdc, password: 'a${b'}\n")

    found = CliRunner().invoke(app, ["--log-format", "json", "check", str(file)])

    (record,) = _records(found.stderr)
    assert (found.exit_code, found.stdout) == (2, "")
    assert (record["event"], record["level"], record["error"]) == (
        "the configuration cannot be used",
        "error",
        "ConfigError",
    )
    assert record["where"] == str(file)
    assert [problem.partition(";")[0] for problem in record["problems"]] == ["not a reference"]
    # A process that goes on behind a command logs as it did.
    assert logging.getLogger("connectors").level == logging.NOTSET
    assert not [each for each in logging.getLogger().handlers if type(each).__module__.startswith("connectors")]


def test_lines_for_people_stay_as_they_are(configure: Configure, capsys: pytest.CaptureFixture[str]) -> None:
    configure(LogFormat.TEXT, LogLevel.ERROR)
    bind(connector="shop")
    tell("a note", rows=3)
    logging.getLogger("connectors").warning("not shown")
    logging.getLogger("connectors").error("shown")

    assert capsys.readouterr().err == "a note\nshown\n"
