"""``historian schemas`` and ``historian status`` as people read them, over the recorded shop; without Spark."""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from command_line import HISTORIAN
from connectors.cli import app
from connectors.cli.schemas import watch
from connectors.cli.terminal.outcome import ExitCode
from connectors.config import load_config
from connectors.tracking.sources import make_tracker
from historian.history.timeline import TimelineEntry
from logs.log_files import previous_gtids, write_log
from logs.row_events import begin, gtid
from monitoring.screens import on_a_screen

SHOP = Path(__file__).parents[4] / "examples" / "shop"


def _connector(directory: Path) -> Path:
    file = directory / "shop.yaml"
    source = f"{{type: binlog-files, directory: {SHOP / 'binlog'}, tables: ['shop.*']}}"
    file.write_text(f"name: shop\nsource: {source}\nsinks: [{{type: delta, path: lake}}]\n")
    return file


def _track(file: Path, until: str | None = None) -> tuple[TimelineEntry, ...]:
    """Tracks the recording, up to a position; gives what the store holds then."""
    tracker = make_tracker(load_config(file))
    number = 0
    while (plan := tracker.plan_after(number, until=until)) is not None:
        number = plan.number
    entries = tracker.store.entries()
    tracker.close()
    return entries


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A connector that has tracked the whole recording and written nothing."""
    file = _connector(tmp_path_factory.mktemp("connector"))
    _track(file)
    return file


def _run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture(autouse=True)
def _wide_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables with all of their columns; how wide ones go into a pipe is a test of ``tables``."""
    monkeypatch.setattr("connectors.cli.terminal.tables._WIDE_LINE", 1000)


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


@pytest.mark.parametrize("place", ["binlog.000002:4", "4dcb5179-e59f-11f1-b7a4-02fc00000001:1583"])
def test_columns_are_shown_at_a_place_of_the_log(config: Path, place: str) -> None:
    """A place, or the position of a row, which names its transaction alone."""
    result = _run("schemas", config, "at", "shop.stock", place)

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


def test_a_schema_is_explained_by_its_statement(config: Path) -> None:
    shown = _run("schemas", config, "explain", "shop.stock", "binlog.000002:4")
    plain = _run("schemas", config, "explain", "shop.stock", "binlog.000002:4", "--json")

    found = json.loads(plain.stdout)
    assert (shown.exit_code, plain.exit_code) == (0, 0)
    assert shown.stdout == (
        f"shop.stock  version {found['version']}\n  position  {found['position']}\n  time      {found['time']}\n"
        f"  statement {found['statement']}\n  dropped reserved int\n  added reorder_at int\n"
    )
    assert [c["name"] for c in found["before"]] == ["id", "shelf", "reserved"]
    assert [c["name"] for c in found["after"]] == ["reorder_at", "id", "shelf"]
    assert [(c["change"], c["column"]) for c in found["changes"]] == [("dropped", "reserved"), ("added", "reorder_at")]
    assert found["statement"].startswith("ALTER TABLE stock DROP reserved")


def test_a_column_is_followed_to_its_end(config: Path) -> None:
    shown = _run("schemas", config, "lineage", "shop.stock", "shelf")
    plain = _run("schemas", config, "lineage", "shop.stock", "SHELF", "--at", "binlog.000002:4", "--json")

    rows = _cells(shown.stdout)
    assert [row[3:6] for row in rows] == [["shop.stock", "shelf", "int"], ["shop.stock", "gone", ""]]
    assert "DROP COLUMN shelf" in rows[1][6]
    steps = json.loads(plain.stdout)["steps"]
    assert [str(step["version"]) for step in steps] == [row[0] for row in rows]
    assert [None if step["column"] is None else step["column"]["type"] for step in steps] == ["int", None]


def test_the_documented_questions_can_be_asked_in_python(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    document = (SHOP.parents[1] / "docs" / "reference" / "history-format.md").read_text(encoding="utf-8")
    (block,) = (
        text for text in re.findall(r"^```python\n(.*?)^```", document, re.DOTALL | re.MULTILINE) if "Store" in text
    )
    monkeypatch.chdir(config.parent)
    asked: dict[str, Any] = {}
    exec(block, asked)

    assert [asked["version"].number, asked["last"].number] == [asked["why"].version.number] * 2
    assert [(c.change, c.column) for c in asked["changes"]] == [
        ("dropped", "shelf"),
        ("dropped", "reserved"),
        ("added", "depot"),
        ("added", "reorder_at"),
    ]
    assert [step.column is None for step in asked["steps"]] == [False, True]


def test_what_is_recorded_is_watched_once(config: Path) -> None:
    versions = [row[0] for row in _cells(_run("schemas", config, "list", "shop.stock").stdout)]

    everything = [json.loads(line) for line in _run("schemas", config, "watch", "--once", "--json").stdout.splitlines()]
    rest = _run("schemas", config, "watch", "--once", "--after", versions[1]).stdout

    assert [str(c["version"]) for c in everything if c["tables"][0]["table"] == "shop.stock"] == versions
    last = next(change for change in everything if str(change["version"]) == versions[2])
    assert [column["name"] for column in last["tables"][0]["columns"]] == ["depot", "reorder_at", "id"]
    assert "shop.stock: dropped shelf int; added depot int" in rest
    assert f"version {versions[1]} " not in rest


def test_changes_are_watched_as_they_are_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = _connector(tmp_path)
    looks = 0

    def wait(_: float) -> None:
        nonlocal looks
        looks += 1
        if looks == 1:
            _track(file, "binlog.000002:4")
        elif looks == 2:
            _track(file)
        else:
            raise KeyboardInterrupt

    # Other threads sleep too.
    monkeypatch.setattr(watch, "time", SimpleNamespace(sleep=wait))
    result = _run("schemas", file, "watch", "--json")

    changes = [json.loads(line) for line in result.stdout.splitlines()]
    monkeypatch.undo()
    again = _run("schemas", file, "watch", "--once", "--json")
    assert (result.exit_code, looks) == (ExitCode.INTERRUPTED, 3)
    assert changes == [json.loads(line) for line in again.stdout.splitlines()]


def test_an_imported_history_lets_a_connector_go_on(config: Path, tmp_path: Path) -> None:
    first, second = _connector(tmp_path), tmp_path / "second"
    second.mkdir()
    half = _track(first, "binlog.000002:4")
    assert _run("schemas", first, "export", tmp_path / "history.jsonl").exit_code == 0

    imported = _run("schemas", _connector(second), "import", tmp_path / "history.jsonl")
    assert (imported.exit_code, imported.stderr.split(" and")[0]) == (0, f"{len(half)} entries")
    exported = [_run("schemas", file, "export").stdout for file in (first, second / "shop.yaml")]
    assert exported[0] == exported[1] == (tmp_path / "history.jsonl").read_text(encoding="utf-8")

    entries = _track(second / "shop.yaml")
    assert entries == _track(config)
    assert entries[: len(half)] == half


def test_an_export_shows_how_far_it_is(config: Path, tmp_path: Path) -> None:
    command = ["schemas", str(config), "export", str(tmp_path / "history.jsonl")]
    with on_a_screen([*HISTORIAN, *command]) as screen:
        assert 0 == screen.end()
        assert f"writing {tmp_path}"[:20].encode() in screen.raw
        assert "writing" not in screen.text()
    assert (tmp_path / "history.jsonl").read_text() == _run("schemas", config, "export").stdout


def test_what_does_not_fit_is_not_imported(config: Path, tmp_path: Path) -> None:
    file, broken = _connector(tmp_path), tmp_path / "broken.jsonl"
    lines = _run("schemas", config, "export").stdout.splitlines(keepends=True)
    broken.write_text("".join([*lines[:5], "{}\n", *lines[6:]]), encoding="utf-8")

    refused = _run("schemas", file, "import", broken)
    assert (refused.exit_code, refused.stdout) == (ExitCode.USAGE, "")
    assert "  - expected an object with one key of history, entry, gap, end @ line 6\n" in refused.stderr
    _track(file)
    other = _run("schemas", file, "import", "-")
    assert other.exit_code == ExitCode.USAGE
    whole = tmp_path / "whole.jsonl"
    whole.write_text("".join(lines), encoding="utf-8")
    assert _run("schemas", file, "import", whole).exit_code == ExitCode.STORE


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


def test_status_tells_of_defaults_that_columns_were_added_with_and_cannot_have(tmp_path: Path) -> None:
    zero, strict = b"DATETIME(3) NOT NULL DEFAULT '0000-00-00 00:00:00'", b"DATE NOT NULL DEFAULT '2024-01-01'"
    statements = [
        *(b"CREATE TABLE db.%s (id INT PRIMARY KEY, at %s)" % (name, zero) for name in (b"t", b"u", b"v")),
        b"ALTER TABLE db.t ADD COLUMN day DATE NOT NULL, ADD COLUMN due %s" % strict,
        b"ALTER TABLE db.t ADD COLUMN made %s, ADD COLUMN kept %s" % (zero, zero),
        b"ALTER TABLE db.u ADD COLUMN made %s" % zero,
        b"ALTER TABLE db.v ADD COLUMN made %s" % zero,
        b"ALTER TABLE db.t ADD COLUMN flag TINYINT(1) NOT NULL DEFAULT 2, ADD COLUMN ok TINYINT(1) NOT NULL DEFAULT 1",
    ]
    (tmp_path / "binlog").mkdir()
    events = [part for number, sql in enumerate(statements, 1) for part in (gtid(number), begin(sql))]
    write_log(tmp_path / "binlog", 1, [previous_gtids(), *events])
    file = tmp_path / "zero.yaml"
    file.write_text(
        "name: zero\n"
        f"source: {{type: binlog-files, directory: {tmp_path / 'binlog'}, tables: ['db.t', 'db.v']}}\n"
        "sinks: [{type: delta, path: lake}]\n"
        "types: {tinyint1: boolean, invalid_boolean: null_and_count, columns: {db.v: {zero_dates: text}, db.t.kept: {zero_dates: text}}}\n"
    )
    _track(file)

    shown = _run("status", file, "--no-targets")
    plain = _run("status", file, "--no-targets", "--json")

    at = [statement.decode() for statement in statements]
    assert json.loads(plain.stdout)["nulled_defaults"] == [
        {"table": "db.t", "column": "day", "default": "0000-00-00", "statement": at[3]},
        {"table": "db.t", "column": "made", "default": "0000-00-00 00:00:00.000", "statement": at[4]},
        {"table": "db.t", "column": "flag", "default": "2", "statement": at[7]},
    ]
    told = " ".join(shown.stdout.split())
    assert f"db.t.day: default 0000-00-00 stands as NULL in all rows from before {at[3]}" in told


@pytest.mark.parametrize(
    "words, code, said",
    [
        (("list", "shop.nope"), ExitCode.STORE, "error: no such table in the history\n  where     shop.nope\n"),
        (("at", "shop.stock", "soon"), ExitCode.USAGE, "error: not a GTID set\n  where     soon\n"),
        (("at", "shop.stock", "binlog.000001:4"), ExitCode.STORE, "error: "),
        (("diff", "shop.stock", "1", "2"), ExitCode.STORE, "error: the table has no schema at that version\n"),
        (("explain", "shop.stock", "binlog.000001:4"), ExitCode.STORE, "error: "),
        (("lineage", "shop.stock", "price"), ExitCode.STORE, "error: no such column in the table\n"),
        (("import", "/nowhere"), ExitCode.USAGE, "error: the file cannot be read"),
        (("export", "/nowhere/file"), ExitCode.USAGE, "error: the file cannot be written"),
        (("diff", "stock", "1", "2"), ExitCode.USAGE, "error: not a table name\n  - expected DATABASE.TABLE"),
    ],
)
def test_what_the_history_does_not_know_is_said(
    config: Path, words: tuple[str, ...], code: ExitCode, said: str
) -> None:
    result = _run("schemas", config, *words)

    assert (result.exit_code, result.stdout) == (code, "")
    assert result.stderr.startswith(said)
