"""``historian schemas`` and ``historian status`` as people read them, over the recorded shop; without Spark."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from connectors.cli import app
from connectors.cli.outcome import ExitCode
from connectors.config import load_config
from connectors.sources import make_tracker

SHOP = Path(__file__).parents[2] / "examples" / "shop"


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A connector that has tracked the whole recording and written nothing."""
    file = tmp_path_factory.mktemp("connector") / "shop.yaml"
    source = f"{{type: binlog-files, directory: {SHOP / 'binlog'}, tables: ['shop.*']}}"
    file.write_text(f"name: shop\nsource: {source}\nsinks: [{{type: delta, path: lake}}]\n")
    tracker = make_tracker(load_config(file))
    number = 0
    while (plan := tracker.plan_after(number)) is not None:
        number = plan.number
    tracker.close()
    return file


def _run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def _cells(text: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.split("│")] for line in text.splitlines() if "│" in line]


def test_versions_are_listed_with_position_time_and_statement(config: Path) -> None:
    result = _run("schemas", config, "list", "shop.stock")

    recorded = json.loads((SHOP / "expected.json").read_text())["statements"]
    ours = {each["gtid"]: each["sql"] for each in recorded if " stock " in each["sql"]}
    rows = _cells(result.stdout)
    assert (result.exit_code, result.stdout.splitlines()[0]) == (0, "shop.stock")
    assert {row[1]: row[3] for row in rows} == {gtid: " ".join(sql.split()) for gtid, sql in ours.items()}
    assert all(row[2].endswith("Z") for row in rows)


def test_columns_are_shown_at_a_place_of_the_log(config: Path) -> None:
    result = _run("schemas", config, "at", "shop.stock", "binlog.000002:4")

    rows = _cells(result.stdout)
    assert result.exit_code == 0
    assert result.stdout.startswith("shop.stock  version ")
    assert [row[1:] for row in rows] == [
        ["reorder_at", "int", "no", "5", ""],
        ["id", "int", "no", "", "primary"],
        ["shelf", "int", "no", "", ""],
    ]


def test_a_difference_is_told_in_lines(config: Path) -> None:
    first, second, third = [row[0] for row in _cells(_run("schemas", config, "list", "shop.stock").stdout)]

    changed = _run("schemas", config, "diff", "shop.stock", first, second)
    same = _run("schemas", config, "diff", "shop.stock", third, third)

    assert (changed.exit_code, changed.stdout) == (0, "dropped reserved int\nadded reorder_at int\n")
    assert (same.exit_code, same.stdout) == (0, "no difference\n")


def test_status_tells_where_the_connector_stands(config: Path) -> None:
    end = json.loads((SHOP / "expected.json").read_text())["gtid_executed"]

    shown = _run("status", config, "--no-targets")
    plain = _run("status", config, "--no-targets", "--json")

    facts = dict(line.split(maxsplit=1) for line in shown.stdout.splitlines() if line.strip())
    assert (shown.exit_code, plain.exit_code) == (0, 0)
    assert facts["tracked"].startswith(f"to  {end} (binlog.0")
    assert facts["behind"].strip() == "0 transactions"
    found = json.loads(plain.stdout)
    assert (found["name"], found["stopped"], found["targets"], found["lag"]["transactions"]) == ("shop", [], None, 0)
    assert (found["tracked"]["gtids"], found["last_plan"]["end"]["gtids"]) == (end, end)


@pytest.mark.parametrize(
    "words, code, said",
    [
        (("list", "shop.nope"), ExitCode.STORE, "error: no such table in the history\n  where     shop.nope\n"),
        (("at", "shop.stock", "soon"), ExitCode.USAGE, "error: not a GTID set\n  where     soon\n"),
        (("at", "shop.stock", "binlog.000001:4"), ExitCode.STORE, "error: "),
        (("diff", "shop.stock", "1", "2"), ExitCode.STORE, "error: the table has no schema at that version\n"),
        (("diff", "stock", "1", "2"), ExitCode.USAGE, "error: not a table name\n  - expected DATABASE.TABLE"),
    ],
)
def test_what_the_history_does_not_know_is_said(
    config: Path, words: tuple[str, ...], code: ExitCode, said: str
) -> None:
    result = _run("schemas", config, *words)

    assert (result.exit_code, result.stdout) == (code, "")
    assert result.stderr.startswith(said)
