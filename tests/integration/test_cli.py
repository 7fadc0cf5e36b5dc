"""The command line on real servers: rows exactly as promised, and a whole run with what it recorded."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from command_line import HISTORIAN
from connectors.cli import app
from connectors.cli.terminal.outcome import ExitCode
from databases.servers import Server

WAIT_S = 120

TABLE = """
    CREATE TABLE tail_it.t (
        id BIGINT UNSIGNED PRIMARY KEY, small TINYINT, big BIGINT, price DECIMAL(8,2), f FLOAT, d DOUBLE, flags BIT(10),
        born DATE, at DATETIME(3), seen TIMESTAMP(6) NULL, span TIME(1), y YEAR, e ENUM('a','b'), s SET('x','y'),
        t VARCHAR(20), b VARBINARY(4), j JSON
    ) CHARACTER SET utf8mb4
"""
INSERTS = (
    "SET SESSION sql_mode = '', time_zone = '+02:00'",
    """INSERT INTO tail_it.t VALUES (18446744073709551615, -128, -9223372036854775808, -12.5, 0.1, 1e22, b'1000000001',
        '2024-02-29', '2024-02-29 12:30:00.5', '2024-02-29 12:30:00.000001', '-12:30:00.5', 2024, 'b', 'x,y', 'ä"€', 0x00FF,
        '{"k": [1, 2.5]}')""",
    "INSERT INTO tail_it.t (id, born, at, seen) VALUES (1, '0000-00-00', '2024-00-00 00:00:00', '0000-00-00 00:00:00')",
    "UPDATE tail_it.t SET small = 7 WHERE id = 1",
    "DELETE FROM tail_it.t WHERE id = 1",
)
NOTHING = dict.fromkeys(("small", "big", "price", "f", "d", "flags", "span", "y", "e", "s", "t", "b", "j"))
FIRST = {
    "id": 18446744073709551615,
    "small": -128,
    "big": -9223372036854775808,
    "price": "-12.50",
    "f": 0.1,
    "d": 1e22,
    "flags": 513,
    "born": "2024-02-29",
    "at": "2024-02-29 12:30:00.500",
    "seen": "2024-02-29 10:30:00.000001",
    "span": "-12:30:00.5",
    "y": 2024,
    "e": "b",
    "s": "x,y",
    "t": 'ä"€',
    "b": "AP8=",
    "j": '{"k": [1, 2.5]}',
}
ZEROS = {"id": 1, "born": "0000-00-00", "at": "2024-00-00 00:00:00.000", "seen": "0000-00-00 00:00:00.000000"}
EXPECTED = [
    ("+A", FIRST),
    ("+A", {**NOTHING, **ZEROS}),
    ("-C", {**NOTHING, **ZEROS}),
    ("+C", {**NOTHING, **ZEROS, "small": 7}),
    ("-R", {**NOTHING, **ZEROS, "small": 7}),
]


def _historian(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """A command: a run in a process of its own, which its Spark session ends with; what only reads, in this one."""
    words = list(map(str, arguments))
    if words[0] == "run":
        return subprocess.run([*HISTORIAN, *words], check=False, capture_output=True, text=True, timeout=600)
    done = CliRunner().invoke(app, words, catch_exceptions=False)
    return subprocess.CompletedProcess(words, done.exit_code, done.stdout, done.stderr)


def _config(directory: Path, server: Server, more: str = "", **settings: str) -> Path:
    words = {
        "type": server.flavor,
        "host": server.host,
        "port": str(server.port),
        "user": server.user,
        "password": "${env:TAIL_PASSWORD:-historian}",
        "tables": "['tail_it.*']",
        **settings,
    }
    file = directory / "pipeline.yaml"
    source = "".join(f"  {key}: {value}\n" for key, value in words.items())
    file.write_text(f"name: tail\nsource:\n{source}{more}")
    return file


@pytest.fixture
def place(server: Server) -> Iterator[str]:
    """A server with an empty database, and the place in its log."""
    server.sql("DROP DATABASE IF EXISTS tail_it")
    new = server.flavor == "mysql" and server.version.startswith("9")
    file, offset = server.sql("SHOW BINARY LOG STATUS" if new else "SHOW MASTER STATUS")[0][:2]
    server.sql("CREATE DATABASE tail_it")
    yield f"{file}:{offset}"
    server.sql("DROP DATABASE IF EXISTS tail_it")


def _write(server: Server) -> None:
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute(TABLE)
        for statement in INSERTS:
            cursor.execute(statement)


def test_tail_prints_every_value_as_promised(server: Server, place: str, tmp_path: Path) -> None:
    _write(server)

    shown = _historian("tail", _config(tmp_path, server, start=f"'{place}'"), "--format", "ndjson")

    # The first command on a machine says that it compiles kernels.
    said = [line for line in shown.stderr.splitlines() if not line.startswith("compil")]
    assert (shown.returncode, said) == (0, [])
    rows = [json.loads(line) for line in shown.stdout.splitlines()]
    assert [(row["op"], row["data"]) for row in rows] == EXPECTED
    assert {row["table"] for row in rows} == {"tail_it.t"}
    assert [list(row["data"]) for row in rows] == [list(FIRST)] * len(rows)
    assert len({row["position"] for row in rows}) == 4
    assert not (tmp_path / "state").exists()


def test_the_files_of_a_server_give_the_rows_that_it_gives(server: Server, place: str, tmp_path: Path) -> None:
    _write(server)
    config = _config(tmp_path, server, start=f"'{place}'")

    live = _historian("tail", config, "--format", "ndjson")
    files = _historian(
        "tail", "--binlog", *server.binlog_files(), "--from", place, "--table", "tail_it.*", "--format", "ndjson"
    )

    assert files.returncode == 0
    assert _without_version(files.stdout) == _without_version(live.stdout)


def _without_version(text: str) -> list[dict[str, Any]]:
    """Rows without the number of their schema version: the two histories begin at different places."""
    return [{k: v for k, v in json.loads(line).items() if k != "schema_version"} for line in text.splitlines()]


def test_tail_follows_a_log_until_interrupted(mysql9: Server, tmp_path: Path) -> None:
    mysql9.sql("DROP DATABASE IF EXISTS tail_it")
    mysql9.sql("CREATE DATABASE tail_it")
    mysql9.sql("CREATE TABLE tail_it.n (id INT PRIMARY KEY)")
    config = _config(tmp_path, mysql9, start="latest")
    process = subprocess.Popen(
        [*HISTORIAN, "tail", str(config), "--follow", "--format", "ndjson"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        lines = iter(process.stdout.readline, "")
        number = _first_seen(mysql9, lines)
        mysql9.sql("INSERT INTO tail_it.n VALUES (1000)")
        following = next(line for line in lines if json.loads(line)["data"]["id"] == 1000)
        process.send_signal(signal.SIGINT)
        code = process.wait(WAIT_S)
    finally:
        process.kill()
        process.communicate()
        mysql9.sql("DROP DATABASE tail_it")

    assert number < 1000
    assert json.loads(following)["op"] == "+A"
    assert code == ExitCode.INTERRUPTED


def _first_seen(server: Server, lines: Iterator[str]) -> int:
    """Inserts until the first row is shown: the log's end is fixed some time after the start of the process."""
    stop = threading.Event()

    def insert() -> None:
        for number in range(1, 1000):
            if stop.is_set():
                return
            server.sql(f"INSERT INTO tail_it.n VALUES ({number})")
            time.sleep(0.2)

    thread = threading.Thread(target=insert)
    thread.start()
    try:
        return int(json.loads(next(lines))["data"]["id"])
    finally:
        stop.set()
        thread.join()


@pytest.mark.parametrize("command", [("tail",), ("check",), ("run", "--once")])
def test_a_wrong_password_is_said_and_not_printed(mysql9: Server, tmp_path: Path, command: tuple[str, ...]) -> None:
    sink = "sinks: [{type: delta, path: lake}]\n"
    config = _config(tmp_path, mysql9, sink, password="guessed-wrong")

    found = _historian(command[0], config, *command[1:])

    assert found.returncode == (ExitCode.FAILED if command == ("check",) else ExitCode.SOURCE)
    text = found.stdout + found.stderr
    assert "the server refuses the user or its password" in " ".join(text.split())
    assert "Traceback" not in text
    assert "guessed-wrong" not in text


def test_a_run_is_refused_by_a_failed_check(mysql9: Server, tmp_path: Path) -> None:
    config = _config(tmp_path, mysql9, "sinks: [{type: delta, path: lake}]\n", server_id=str(mysql9.port))

    found = _historian("run", config, "--once")

    assert found.returncode == ExitCode.SOURCE
    assert "error: the source does not meet what a right copy needs" in found.stderr
    assert "mend: choose another range for source.server_id" in found.stderr


def test_what_a_run_recorded_can_be_asked(mysql9: Server, tmp_path: Path) -> None:
    mysql9.sql("DROP DATABASE IF EXISTS tail_it")
    file, offset = mysql9.sql("SHOW BINARY LOG STATUS")[0][:2]
    mysql9.sql("CREATE DATABASE tail_it")
    mysql9.sql("CREATE TABLE tail_it.o (id INT PRIMARY KEY, a INT, b DATE)")
    mysql9.sql("INSERT INTO tail_it.o VALUES (1, 10, '2024-01-01')")
    with mysql9.connect(sql_mode="") as connection, connection.cursor() as cursor:
        cursor.execute("INSERT INTO tail_it.o VALUES (2, 20, '0000-00-00')")
    before = mysql9.sql("SELECT @@GLOBAL.gtid_executed")[0][0].replace("\n", "")
    mysql9.sql("ALTER TABLE tail_it.o RENAME COLUMN a TO total, ADD COLUMN note TEXT")
    mysql9.sql("INSERT INTO tail_it.o VALUES (3, 30, NULL, 'x')")
    mysql9.sql("CREATE TABLE tail_it.p (id INT PRIMARY KEY) PARTITION BY HASH (id) PARTITIONS 2")
    mysql9.sql("ALTER TABLE tail_it.p TRUNCATE PARTITION p0")
    mysql9.sql("CREATE TABLE tail_it.q (id INT PRIMARY KEY, v INT)")
    mysql9.sql("INSERT INTO tail_it.q VALUES (1, 1)")
    mysql9.sql("ALTER TABLE tail_it.q MODIFY v SMALLINT")
    end = ":".join(map(str, mysql9.sql("SHOW BINARY LOG STATUS")[0][:2]))
    mysql9.sql("INSERT INTO tail_it.o VALUES (4, 40, NULL, 'behind the end')")
    config = _config(tmp_path, mysql9, "sinks: [{type: delta, path: lake}]\n", start=f"'{file}:{offset}'")

    ran = _historian("run", config, "--until", end)
    listed = json.loads(_historian("schemas", config, "list", "tail_it.o", "--json").stdout)
    then = json.loads(_historian("schemas", config, "at", "tail_it.o", before, "--json").stdout)
    versions = [version["version"] for version in listed[0]["versions"]]
    changes = json.loads(_historian("schemas", config, "diff", "tail_it.o", *map(str, versions), "--json").stdout)
    status = _historian("status", config, "--json")
    tailed = _historian("tail", config, "--to", end, "--format", "ndjson")
    mysql9.sql("DROP DATABASE tail_it")

    assert (ran.returncode, ran.stdout) == (ExitCode.FAILED, "")
    assert re.search(
        r"^stopped: tail_it\.p at [0-9a-f-]+:\d+\n  its rows are not known any more", ran.stderr, re.MULTILINE
    )
    assert re.search(r"^stopped: tail_it\.q in its targets\n  .*smallint", ran.stderr, re.MULTILINE)
    assert ran.stderr.endswith("; stopped: tail_it.p, tail_it.q\n")
    assert [table["table"] for table in listed] == ["tail_it.o"]
    assert [column["name"] for column in then["columns"]] == ["id", "a", "b"]
    assert [column["name"] for column in then["tables"]["tail_it.o"]["columns"]] == ["id", "a", "b"]
    assert changes["tables"]["tail_it.o"]["primary_key"] == ["id"]
    assert [edit["kind"] for edit in changes["edits"]] == ["rename_column", "add_column"]
    assert changes["changes"] == [
        {"change": "renamed", "column": "total", "before": "a", "after": "total"},
        {"change": "added", "column": "note", "after": "text"},
    ]
    assert (status.returncode, tailed.returncode) == (ExitCode.FAILED, ExitCode.OK)
    assert "warning: rows of tail_it.p changed without row events" in tailed.stderr
    _check_status(json.loads(status.stdout), end)
    rows = [json.loads(line) for line in tailed.stdout.splitlines()]
    ours = [row["schema_version"] for row in rows if row["table"] == "tail_it.o"]
    assert ours == [versions[0], versions[0], versions[1]]


def _check_status(found: dict[str, Any], end: str) -> None:
    assert (found["name"], found["last_plan"]["end"]["at"], found["lag"]["transactions"]) == ("tail", end, 1)
    assert [(each["table"], "TRUNCATE PARTITION" in each["reason"]) for each in found["stopped"]] == [
        ("tail_it.p", True)
    ]
    assert found["nulled"] == [{"table": "tail_it.o", "column": "b", "values": 1}]
    assert sorted((t["target"], t["kind"], t["plan"]) for t in found["targets"] if t["table"] == "tail_it.o") == [
        ("tail_it_o", "mirror", found["last_plan"]["number"]),
        ("tail_it_o_changes", "changelog", found["last_plan"]["number"]),
    ]
    assert {t["position"] for t in found["targets"]} == {found["last_plan"]["end"]["gtids"]}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_run_ends_after_the_running_batch_when_interrupted(
    mysql9: Server, tmp_path: Path, number: signal.Signals
) -> None:
    mysql9.sql("DROP DATABASE IF EXISTS tail_it")
    file, offset = mysql9.sql("SHOW BINARY LOG STATUS")[0][:2]
    mysql9.sql("CREATE DATABASE tail_it")
    mysql9.sql("CREATE TABLE tail_it.o (id INT PRIMARY KEY)")
    mysql9.sql("INSERT INTO tail_it.o VALUES (1)")
    config = _config(tmp_path, mysql9, "sinks: [{type: delta, path: lake}]\n", start=f"'{file}:{offset}'")
    process = subprocess.Popen(
        [*HISTORIAN, "run", str(config)], stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        _wait_for_a_batch(process, tmp_path / "lake")
        # A terminal sends Ctrl-C to the whole group: the JVM and Spark's Python processes get it too.
        os.killpg(process.pid, number) if number is signal.SIGINT else process.send_signal(number)
        _, said = process.communicate(timeout=WAIT_S)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        mysql9.sql("DROP DATABASE tail_it")

    assert (process.returncode, "Traceback" in said) == (0, False), said
    assert re.search(
        r"^\d\d:\d\d:\d\d plan 1: \d+ rows?, 1 table, 1 schema change, in \d+\.\d s, .+ behind, up to ",
        said,
        re.MULTILINE,
    )
    assert re.search(r"^\d plans? written, up to ", said, re.MULTILINE)
    assert all(_has_files(tmp_path / "lake" / target) for target in ("tail_it_o", "tail_it_o_changes"))


@pytest.mark.parametrize("moment", ["spark starts", "a batch runs"])
def test_sigterm_to_the_whole_group_ends_a_run_quietly(mysql9: Server, tmp_path: Path, moment: str) -> None:
    """As an init system sends it: Spark's process is gone before the run can end its batch."""
    mysql9.sql("DROP DATABASE IF EXISTS tail_it")
    file, offset = mysql9.sql("SHOW BINARY LOG STATUS")[0][:2]
    mysql9.sql("CREATE DATABASE tail_it")
    mysql9.sql("CREATE TABLE tail_it.o (id INT PRIMARY KEY)")
    mysql9.sql("INSERT INTO tail_it.o VALUES (1)")
    config = _config(tmp_path, mysql9, "sinks: [{type: delta, path: lake}]\n", start=f"'{file}:{offset}'")
    process = subprocess.Popen(
        [*HISTORIAN, "run", str(config)], stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        if moment == "spark starts":
            _wait(process, lambda: _has_java(process.pid))
        else:
            _wait_for_a_batch(process, tmp_path / "lake")
        os.killpg(process.pid, signal.SIGTERM)
        _, said = process.communicate(timeout=WAIT_S)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        mysql9.sql("DROP DATABASE tail_it")

    assert (process.returncode, "Traceback" in said, "a mistake in historian" in said) == (0, False, False), said


def _has_java(pid: int) -> bool:
    """Whether a process has started Java, through whatever others; those come and go."""
    parents, java = {}, set()
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            head, _, tail = stat.read_text().rpartition(")")
            child = int(stat.parent.name)
            parents[child] = int(tail.split()[1])
            if head.endswith("(java"):
                java.add(child)
    while java and pid not in java:
        java = {parents[child] for child in java if child in parents}
    return bool(java)


def _wait_for_a_batch(process: subprocess.Popen[str], lake: Path) -> None:
    """Until the first plan is in the lake, which is before its batch writes a target, unless the machine is too busy to see that in time."""
    _wait(process, lambda: _has_files(lake / "historian_plans"))


def _has_files(table: Path) -> bool:
    return any('"add"' in commit.read_text() for commit in (table / "_delta_log").glob("*.json"))


def _wait(process: subprocess.Popen[str], reached: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + WAIT_S
    while not reached():
        assert process.poll() is None
        assert time.monotonic() < deadline_s
        time.sleep(0.005)


def test_a_run_that_is_interrupted_before_its_first_batch_ends_quietly(mysql9: Server, tmp_path: Path) -> None:
    config = _config(tmp_path, mysql9, "sinks: [{type: delta, path: lake}]\n", start="latest")
    process = subprocess.Popen(
        [*HISTORIAN, "run", str(config)], stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        _wait(process, (tmp_path / "lake" / "historian_plans").exists)
        os.killpg(process.pid, signal.SIGINT)
        _, said = process.communicate(timeout=WAIT_S)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    assert (process.returncode, said.splitlines()[-1]) == (0, "nothing new in the log"), said
    assert "Traceback" not in said
