"""The command line: help and documentation, errors and exit codes, and rows of binlog files."""

from __future__ import annotations

import ast
import importlib.metadata
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import typer.main
from pyspark import SparkContext
from typer.testing import CliRunner, Result

from command_line import HISTORIAN
from connectors.cli import app
from connectors.cli.terminal.outcome import ExitCode, exit_code
from connectors.config import load_config
from connectors.pipeline.lakes import check_made_here
from connectors.readers.binlog.files_reader import BinlogFilesReader
from connectors.tracking.sources import make_tracker
from historian import errors
from historian.errors import HistorianError
from historian.store import Store
from sinks.contract.base import TargetStatus

ROOT = Path(__file__).parents[3]
DOCS = (ROOT / "docs" / "how-to" / "watch-changes.md").read_text()
BINLOG = ROOT / "examples" / "shop" / "binlog"


def _run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def _commands(command: Any = None, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    command = typer.main.get_command(app) if command is None else command
    yield path, command
    for name, inner in getattr(command, "commands", {}).items():
        yield from _commands(inner, (*path, name))


COMMANDS = {" ".join(path): command for path, command in _commands()}


def test_the_commands_are_those_that_are_promised() -> None:
    shown = {
        f"schemas {name}" for name in ("list", "at", "diff", "explain", "lineage", "watch", "export", "import", "gc")
    }

    shown |= {f"changelog {name}" for name in ("check", "convert", "merge", "project")}
    plain = {
        "orphans",
        "run",
        "apply",
        "backfill",
        "check",
        "cut",
        "ddl",
        "ddl-override",
        "heal",
        "init",
        "page",
        "plan",
        "replay",
        "bundle",
        "replay-dead-letters",
        "schemas",
        "status",
        "tail",
        "verify",
        "changelog",
    }

    assert plain | shown == {*COMMANDS} - {""}


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_and_option_has_help(name: str) -> None:
    command = COMMANDS[name]

    assert command.help
    assert [] == [p.name for p in command.params if not p.help and p.name not in ("help", "table", "context")]


@pytest.mark.parametrize("name", COMMANDS)
def test_help_is_printed_without_a_configuration(name: str) -> None:
    words = name.replace("schemas ", "schemas none.yaml ").split()

    result = _run(*words, "--help")

    assert (result.exit_code, result.stderr) == (0, "")
    assert COMMANDS[name].help.splitlines()[0] in " ".join(result.stdout.split())


def test_the_version_is_printed() -> None:
    result = _run("--version")

    assert (result.exit_code, result.stdout.strip()) == (0, importlib.metadata.version("pyspark-historian"))


def test_every_error_has_an_exit_code() -> None:
    tree = ast.parse((ROOT / "historian" / "errors.py").read_text())
    kinds = [getattr(errors, node.name) for node in tree.body if isinstance(node, ast.ClassDef)]

    codes = {kind.__name__: exit_code(kind("x")) for kind in kinds if kind is not HistorianError}

    assert [] == sorted(name for name, code in codes.items() if code in (ExitCode.OK, ExitCode.BUG))
    assert (codes["LogPurged"], codes["ChainBroken"], codes["LeaseHeld"]) == (
        ExitCode.SOURCE,
        ExitCode.SINK,
        ExitCode.STORE,
    )


def test_the_example_of_a_row_in_the_docs_has_the_keys_of_a_row(small: list[dict[str, Any]]) -> None:
    (example,) = re.findall(r'```json\n({"table": .*?)\n```', DOCS, re.DOTALL)

    assert list(json.loads(example)) == list(small[0])


def test_an_error_is_one_block_without_traceback(tmp_path: Path) -> None:
    result = _run("check", tmp_path / "none.yaml")

    assert (result.exit_code, result.stdout) == (ExitCode.USAGE, "")
    assert result.stderr == (
        f"error: the configuration cannot be read\n  where     {tmp_path}/none.yaml\n  - No such file or directory\n"
    )


def test_debug_adds_the_traceback(tmp_path: Path) -> None:
    result = _run("--debug", "check", tmp_path / "none.yaml")

    assert result.stderr.startswith("Traceback (most recent call last):")
    assert "error: the configuration cannot be read" in result.stderr


@pytest.mark.parametrize(
    "arguments, message",
    [
        (("tail",), "give one CONFIG, or --binlog FILE..."),
        (("tail", "--binlog", BINLOG, "--table", "orders"), "--table: expected DATABASE.TABLE"),
        (
            ("run", ROOT / "examples" / "shop" / "demo.yaml", "--once", "--until", "x"),
            "give --once or --until, not both",
        ),
        (("check",), "Missing argument 'CONFIG'"),
        (("tail", "--format", "xml", "a.yaml"), "'xml' is not one of 'table', 'ndjson'"),
        (("tail", "--binlog", BINLOG, "--to", "soon"), "error: not a GTID set\n  where     soon"),
    ],
)
def test_a_wrong_command_line_is_said(arguments: tuple[str | Path, ...], message: str) -> None:
    result = _run(*arguments)

    assert result.exit_code == ExitCode.USAGE
    assert message in result.stderr


def test_a_run_without_a_sink_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "shop.yaml"
    file.write_text(f"name: shop\nsource: {{type: binlog-files, directory: {BINLOG}}}\n")

    result = _run("run", file)

    assert (result.exit_code, result.stderr.splitlines()[-1]) == (ExitCode.USAGE, "  - missing @ $.sinks")


def test_configurations_that_do_not_fit_together_are_refused_before_any_begins(tmp_path: Path) -> None:
    for name, port in (("one", 9464), ("two", 9465)):
        (tmp_path / f"{name}.yaml").write_text(
            f"name: {name}\nsource: {{type: binlog-files, directory: {BINLOG}}}\n"
            f"sinks: [{{type: delta, path: {tmp_path / name}}}]\nrun: {{http: '127.0.0.1:{port}'}}\n"
        )

    result = _run("run", tmp_path / "one.yaml", tmp_path / "two.yaml", tmp_path / "one.yaml", "--once")

    assert ExitCode.USAGE == result.exit_code
    assert "error: the configurations cannot run in one process" == result.stderr.splitlines()[0]
    said = " ".join(result.stderr.split())
    assert "@ $.run.http of" in said
    assert "@ $.name (got 'one')" in said


def test_of_several_configurations_all_that_cannot_be_used_are_told_of(tmp_path: Path) -> None:
    for name, text in (("one", "name: one\n"), ("two", "name: [\n"), ("three", "name: three\nsinks: 7\n")):
        (tmp_path / f"{name}.yaml").write_text(text)

    result = _run("run", tmp_path, "--once")

    assert (ExitCode.USAGE, []) == (result.exit_code, [*tmp_path.glob("*.db")])
    for name in ("one", "two", "three"):
        assert f"{name}.yaml" in result.stderr


@pytest.mark.parametrize("command", [("status",), ("schemas", "list")])
def test_a_connector_that_has_not_run_has_no_history(tmp_path: Path, command: tuple[str, ...]) -> None:
    file = tmp_path / "shop.yaml"
    file.write_text(f"name: shop\nsource: {{type: binlog-files, directory: {BINLOG}}}\n")

    result = _run(command[0], file, *command[1:])

    assert result.exit_code == ExitCode.STORE
    assert "next      `historian run`" in result.stderr
    assert not (tmp_path / "state").exists()


def test_status_without_a_store_is_what_the_lake_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "shop.yaml"
    file.write_text(f"name: shop\nsource: {{type: binlog-files, directory: {BINLOG}}}\nsinks: [{{type: console}}]\n")
    reader = BinlogFilesReader(load_config(file).source.paths())
    end = reader.end()
    reader.close()
    target = TargetStatus(
        table="shop.t",
        target="shop_t",
        kind="mirror",
        plan=4,
        position="",
        made_us=1_700_000_000_000_000,
        writer="spark (row tracking)",
        ended="dropped in plan 4",
    )
    positions = [str(end), "", str(end.gtid_set)[: len(str(end)) - 1]]
    targets = [replace(target, position=position) for position in positions]
    # The package has the command under the module's name.
    module = sys.modules["connectors.cli.status"]
    monkeypatch.setattr(module, "_targets", lambda _: targets)

    result = _run("status", file, "--json")

    assert result.exit_code == ExitCode.OK
    found = json.loads(result.stdout)
    assert (found["connector"], found["last_plan"], found["lag"]["log_end"]["gtids"]) == (None, None, end.gtids)
    assert [row["behind"] for row in found["targets"]][:2] == [0, None]
    assert found["targets"][2]["behind"] > 0
    assert {row["made"] for row in found["targets"]} == {"2023-11-14T22:13:20Z"}
    shown = _run("status", file)
    assert shown.exit_code == ExitCode.OK, shown.stderr
    assert "its store is not there" in shown.stdout
    assert "spark (row tracking)" in shown.stdout
    assert "dropped in plan" in shown.stdout


def test_a_store_that_has_not_made_what_targets_hold_is_refused(tmp_path: Path) -> None:
    with closing(Store.open(f"sqlite:///{tmp_path}/store.db")) as store:
        check_made_here(store, 0)
        with pytest.raises(
            errors.StoreError, match=r"plans that this store has not made.*another connector of this name"
        ):
            check_made_here(store, 1)


def test_a_failed_check_ends_with_one_and_says_what_mends_it(tmp_path: Path) -> None:
    file = tmp_path / "shop.yaml"
    file.write_text(f"name: shop\nsource: {{type: binlog-files, directory: {BINLOG}, flavor: mariadb}}\n")

    shown, plain = _run("check", file), _run("check", file, "--json")

    assert (shown.exit_code, plain.exit_code) == (ExitCode.FAILED, ExitCode.FAILED)
    assert "flavor: source.flavor: mysql" in shown.stdout
    found = {result["name"]: result for result in json.loads(plain.stdout)}
    assert found["flavor"].keys() == {"name", "status", "found", "expected", "mend"}
    assert (found["flavor"]["status"], found["flavor"]["mend"]) == ("failed", "source.flavor: mysql")


def _tail(*arguments: str) -> list[dict[str, Any]]:
    result = _run("tail", "--format", "ndjson", "--binlog", BINLOG, *arguments)
    # On a new machine the first one says that it compiles kernels.
    told = [line for line in result.stderr.splitlines() if not line.startswith(("compiling kernels, ", "compiled "))]
    assert (result.exit_code, told) == (0, [])
    return [json.loads(line) for line in result.stdout.splitlines()]


@pytest.fixture(scope="module")
def uuid() -> str:
    return BinlogFilesReader([BINLOG]).end().gtids.partition(":")[0]


@pytest.fixture(scope="module")
def small(uuid: str) -> list[dict[str, Any]]:
    return _tail("--to", f"{uuid}:1-800")


def test_rows_stand_in_the_order_of_the_log(small: list[dict[str, Any]]) -> None:
    numbers = [int(row["position"].partition(":")[2]) for row in small]

    assert len({row["table"] for row in small}) > 3
    assert numbers == sorted(numbers)
    assert all(b["op"] == "+C" and a["table"] == b["table"] for a, b in pairwise(small) if a["op"] == "-C")


def test_the_log_can_be_shown_in_two_parts(small: list[dict[str, Any]], uuid: str) -> None:
    first = _tail("--to", f"{uuid}:1-400")
    second = _tail("--from", f"{uuid}:1-400", "--to", f"{uuid}:1-800")

    assert 0 < len(first) < len(small)
    assert first + second == small


def test_tables_can_be_picked(small: list[dict[str, Any]], uuid: str) -> None:
    picked = _tail("--to", f"{uuid}:1-800", "--table", "shop.o*", "--table", "!shop.order_*")

    assert picked == [row for row in small if row["table"] == "shop.orders"]
    assert picked


def test_a_configuration_shows_the_same_rows_as_its_files(
    small: list[dict[str, Any]], uuid: str, tmp_path: Path
) -> None:
    file = tmp_path / "shop.yaml"
    file.write_text(f"name: shop\nsource: {{type: binlog-files, directory: {BINLOG}, tables: [shop.*]}}\n")

    result = _run("tail", file, "--format", "ndjson", "--to", f"{uuid}:1-800")

    assert [json.loads(line) for line in result.stdout.splitlines()] == small
    assert not (tmp_path / "state").exists()


def test_a_file_in_the_middle_needs_the_schema_and_stops_without(uuid: str, tmp_path: Path) -> None:
    files = sorted(BINLOG.glob("*.0*"))[1:2]
    schema = tmp_path / "schema.sql"
    schema.write_text("CREATE DATABASE shop; USE shop; CREATE TABLE nothing (id INT PRIMARY KEY)")

    without = _run("tail", "--format", "ndjson", "--binlog", *files)
    beside = _run("tail", "--format", "ndjson", "--binlog", *files, "--schema", schema)

    assert without.exit_code == beside.exit_code == ExitCode.FAILED
    assert "stopped: shop.customers at" in without.stderr
    assert "its CREATE TABLE is not in the log that was read" in without.stderr


def test_the_table_format_shows_statements_and_rows(uuid: str) -> None:
    result = _run("tail", "--binlog", BINLOG, "--to", f"{uuid}:1-40", "--table", "shop.customers")

    assert result.exit_code == 0
    assert re.search(rf"^schema version \d+ at {uuid}:\d+: CREATE TABLE customers", result.stdout, re.MULTILINE)
    assert re.search(rf"^shop.customers  schema version \d+  {uuid}:\d+$", result.stdout, re.MULTILINE)


def test_a_reader_that_has_enough_ends_it_quietly() -> None:
    process = subprocess.Popen(
        [*HISTORIAN, "tail", "--binlog", str(BINLOG), "--format", "ndjson"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    line = process.stdout.readline()
    process.stdout.close()

    assert json.loads(line)["op"] == "+A"
    assert (process.wait(60), process.stderr.read()) == (0, "")
    process.stderr.close()


@pytest.fixture
def fixed(tmp_path: Path) -> Path:
    """A connector on the example's files that has begun."""
    file = tmp_path / "shop.yaml"
    file.write_text(f"name: shop\nsource: {{type: binlog-files, directory: {BINLOG}}}\n")
    with closing(make_tracker(load_config(file))) as tracker:
        assert tracker.history.entries
    return file


@pytest.mark.parametrize(
    "words,code,said",
    [
        (("heal",), 2, "--table TABLE or --lost-log"),
        (("heal", "--table", "shop.t", "--lost-log"), 2, "--table TABLE or --lost-log"),
        (("heal", "--table", "orders"), 2, "not a table name"),
        (("heal", "--table", "shop.orders"), 4, "has not stopped that table"),
        (("heal", "--lost-log"), 3, "no log is lost"),
        (("ddl-override", "--table", "shop.orders", "--statement", ""), 4, "has not stopped that table"),
    ],
)
def test_what_cannot_be_healed_is_refused(fixed: Path, words: tuple[str, ...], code: int, said: str) -> None:
    result = _run(words[0], fixed, *words[1:])

    assert (result.exit_code, said in " ".join(result.output.split())) == (code, True), result.output


def test_a_connector_that_runs_or_never_did_is_not_healed(fixed: Path, tmp_path: Path) -> None:
    never = tmp_path / "never.yaml"
    never.write_text(f"name: never\nsource: {{type: binlog-files, directory: {BINLOG}}}\n")
    store = Store.open(load_config(fixed).history.store)
    with closing(store), store.lease("shop"):
        running = _run("heal", fixed, "--table", "shop.orders")

    assert (running.exit_code, _run("heal", never, "--table", "shop.orders").exit_code) == (4, 4)


@pytest.mark.parametrize(
    "words",
    [
        ("run", "--once"),
        ("verify",),
        ("verify", "--continuous"),
        ("replay", "--table", "shop.orders"),
        ("plan",),
        ("apply",),
        ("cut",),
        ("replay-dead-letters",),
    ],
)
def test_every_command_that_starts_spark_takes_its_settings_from_the_configuration(
    fixed: Path, words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Told by a setting with which no session starts."""
    monkeypatch.setattr(SparkContext, "_active_spark_context", None)
    sinks = "sinks: [{type: delta, path: lake}]\nrun: {spark: {conf: {spark.api.mode: connect}}}\n"
    source = "source: {type: mysql, host: 127.0.0.1, port: 1, user: u, password: p, start: earliest}"
    if words[0] == "verify":  # of files nothing is verified
        fixed.write_text(f"name: shop\n{source}\n{sinks}")
    else:
        fixed.write_text(f"{fixed.read_text()}{sinks}")

    done = _run(words[0], fixed, *words[1:])

    assert (ExitCode.USAGE, True) == (done.exit_code, "Spark Connect cannot run" in done.stderr), done.stderr


def test_orphaned_files_are_shown_and_removed_where_that_is_said_young_ones_where_no_run_is_alive(
    tmp_path: Path,
) -> None:
    config, table = tmp_path / "shop.yaml", tmp_path / "lake" / "t"
    config.write_text(
        f"name: shop\nsource: {{type: binlog-files, directory: {BINLOG}}}\nsinks: [{{type: delta, path: lake}}]\n"
    )
    (table / "_delta_log").mkdir(parents=True)
    (table / "_delta_log" / f"{0:020}.json").write_text('{"add": {"path": "held.parquet"}}\n')
    for name in ("held.parquet", "left.parquet"):
        (table / name).write_bytes(b"1234")
        os.utime(table / name, (0, 0))

    shown = _run("orphans", config)
    assert shown.stdout.startswith("t/left.parquet: 4 B, written 1970-01-01 00:00 UTC\n"), shown.stdout
    assert "1 orphaned files, 4 B; would be removed by --remove" in shown.stdout
    assert (table / "left.parquet").exists()
    with closing(Store.open(load_config(config).history.store)) as store, store.lease("shop"):
        refused = _run("orphans", config, "--remove", "--older-than", "2 hours")
        assert (ExitCode.STORE, True) == (refused.exit_code, (table / "left.parquet").exists()), refused.stderr
        assert "t/left.parquet" == json.loads(_run("orphans", config, "--remove", "--json").stdout)["path"]

    assert ["held.parquet"] == [path.name for path in table.glob("*.parquet")]
    assert (ExitCode.USAGE, True) == (
        (done := _run("orphans", config, "--older-than", "59 minutes")).exit_code,
        "at least 1 hour" in done.stderr,
    )


def test_a_command_that_has_ended_looks_through_no_garbage() -> None:
    """That takes longer than to end Spark, where a run has imported all that it needs."""
    script = (
        "import sys\n"
        "from connectors.cli import main\n"
        "class Knot:\n"
        "    def __del__(self):\n"
        "        print('collected', flush=True)\n"
        "knot = Knot()\n"
        "knot.itself = knot\n"
        "sys.argv = ['historian', '--version']\n"
        "main()\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == importlib.metadata.version("pyspark-historian")
