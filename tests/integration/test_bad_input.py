"""What goes wrong with a source, at the command line, on real servers and their files: the whole message, and its place."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from connectors.cli import app
from connectors.cli.terminal.outcome import ExitCode
from connectors.config import load_config
from connectors.tracking.sources import make_tracker
from databases.servers import Server, global_setting

SINK = "sinks: [{type: delta, path: lake}]\n"
KINDS = ["mysql9", "mysql8", "mysql57", "mariadb105", "mariadb1011", "mariadb118"]


def _run(*arguments: str | Path) -> Result:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert "Traceback" not in result.output
    return result


def _config(directory: Path, server: Server, **settings: str) -> Path:
    words = {
        "type": server.flavor,
        "host": server.host,
        "port": str(server.port),
        "user": server.user,
        "password": server.password,
        "tables": "['bad_it.*']",
        "start": "latest",
        **settings,
    }
    file = directory / "bad.yaml"
    file.write_text("name: bad\nsource:\n" + "".join(f"  {key}: {value}\n" for key, value in words.items()) + SINK)
    return file


@pytest.fixture
def database(server: Server) -> Iterator[Server]:
    server.sql("DROP DATABASE IF EXISTS bad_it")
    server.sql("CREATE DATABASE bad_it")
    yield server
    server.sql("DROP DATABASE bad_it")


def _end(server: Server) -> tuple[str, int]:
    new = server.flavor == "mysql" and server.version.startswith("9")
    file, offset = server.sql("SHOW BINARY LOG STATUS" if new else "SHOW MASTER STATUS")[0][:2]
    return file, int(offset)


def _begin(server: Server) -> str:
    """The place where a new file of the log begins."""
    server.sql("FLUSH BINARY LOGS")
    return f"{_end(server)[0]}:4"


def _events(server: Server, file: str) -> list[tuple[str, int, str]]:
    """Kind, offset and text of each event, as the server lists them."""
    rows = server.sql(f"SHOW BINLOG EVENTS IN '{file}'")
    return [(str(kind), int(offset), str(text)) for _, offset, kind, _, _, text in rows]


def _session(server: Server, *statements: str) -> None:
    with server.connect() as connection, connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


def _rows(result: Result) -> list[tuple[str, str, int]]:
    """Table, operation and id of each row that ``tail`` printed."""
    rows: list[dict[str, Any]] = [json.loads(line) for line in result.stdout.splitlines()]
    return [(row["table"], row["op"], row["data"]["id"]) for row in rows]


# ---- a run that would not be right is refused before Spark starts ---------------------------------------------------
def test_a_run_without_replication_slave_is_refused_with_the_grant(database: Server, tmp_path: Path) -> None:
    monitor = "BINLOG MONITOR" if database.flavor == "mariadb" else "REPLICATION CLIENT"
    start = _begin(database)
    _session(
        database,
        "DROP USER IF EXISTS bad_reader",
        "CREATE USER bad_reader IDENTIFIED BY 'pw'",
        f"GRANT SELECT, {monitor} ON *.* TO bad_reader",
    )
    database.sql("CREATE TABLE bad_it.t (id INT PRIMARY KEY)")
    config = _config(tmp_path, database, user="bad_reader", password="pw", start=f"'{start}'")
    try:
        ran, tailed = _run("run", config, "--once"), _run("tail", config)
    finally:
        database.sql("DROP USER bad_reader")

    assert (ran.exit_code, tailed.exit_code) == (ExitCode.SOURCE, ExitCode.SOURCE)
    assert "replication privileges: 'bad_reader'@'%' has no REPLICATION SLAVE\n" in ran.stderr
    assert "mend: GRANT REPLICATION SLAVE ON *.* TO 'bad_reader'@'%'" in ran.stderr
    assert "GRANT REPLICATION SLAVE" in tailed.stderr
    assert not (tmp_path / "lake").exists()


def test_a_run_on_a_server_that_logs_statements_is_refused(database: Server, tmp_path: Path) -> None:
    with global_setting(database, "binlog_format", "'STATEMENT'"):
        result = _run("run", _config(tmp_path, database), "--once")

    assert result.exit_code == ExitCode.SOURCE
    assert "  binlog_format: STATEMENT\n" in result.stderr
    assert "expected ROW: other formats log statements, which say nothing of rows\n" in result.stderr
    assert re.search(r"mend: SET (GLOBAL|PERSIST) binlog_format = ROW;", result.stderr)


def test_a_text_outside_its_charset_stops_its_table_alone(database: Server, tmp_path: Path) -> None:
    place = _begin(database)
    _session(
        database,
        "CREATE TABLE bad_it.bad (id INT PRIMARY KEY, v VARCHAR(9) CHARACTER SET hebrew)",
        "CREATE TABLE bad_it.good (id INT PRIMARY KEY)",
        "INSERT INTO bad_it.good VALUES (1)",
        "INSERT INTO bad_it.bad VALUES (1, _hebrew X'61A1')",
        "FLUSH BINARY LOGS",
        "INSERT INTO bad_it.bad VALUES (2, 'a')",
        "INSERT INTO bad_it.good VALUES (2)",
    )

    result = _run("tail", _config(tmp_path, database, start=f"'{place}'"), "--format", "ndjson")

    rows = [json.loads(line) for line in result.stdout.splitlines()]
    assert [("bad_it.good", 1), ("bad_it.good", 2)] == [(row["table"], row["data"]["id"]) for row in rows]
    assert result.exit_code == ExitCode.FAILED
    assert re.fullmatch(r"(?s)stopped: bad_it.bad at \S+\n.*hebrew.*\n", result.stderr), result.stderr
    assert result.stderr.count("stopped:") == 1


@pytest.mark.parametrize("name", ["mysql8", "mysql57", "mariadb105", "mariadb1011", "mariadb118"])
def test_a_run_with_a_captured_child_of_a_cascade_is_refused(
    name: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    server: Server = request.getfixturevalue(name)
    _session(
        server,
        "DROP DATABASE IF EXISTS bad_it",
        "CREATE DATABASE bad_it",
        "CREATE TABLE bad_it.orders (id INT PRIMARY KEY)",
        "CREATE TABLE bad_it.items (id INT PRIMARY KEY, o INT, CONSTRAINT of_order FOREIGN KEY (o)"
        " REFERENCES bad_it.orders (id) ON DELETE CASCADE)",
    )
    try:
        result = _run("run", _config(tmp_path, server), "--once")
    finally:
        server.sql("DROP DATABASE bad_it")

    assert result.exit_code == ExitCode.SOURCE
    assert "  cascades into bad_it.items: of_order to bad_it.orders ON DELETE CASCADE\n" in result.stderr
    assert "the rows that it changes are not in the log\n" in result.stderr
    assert 'source.accept_cascades: ["bad_it.items"]' in result.stderr


@pytest.mark.parametrize("name", KINDS)
def test_a_log_purged_before_the_start_is_named(name: str, fresh_server: Callable[..., Server], tmp_path: Path) -> None:
    server = fresh_server(name)
    server.sql("CREATE DATABASE bad_it")
    first = _end(server)[0]
    # A server keeps a file for as long as its storage engine may need it for recovery.
    while server.sql("SHOW BINARY LOGS")[0][0] == first:
        last = _begin(server).split(":")[0]
        server.sql("CREATE OR REPLACE VIEW bad_it.v AS SELECT 1")
        server.sql(f"PURGE BINARY LOGS TO '{last}'")
    config = _config(tmp_path, server, start=f"'{first}:4'")

    for command in (("run", config, "--once"), ("tail", config)):
        result = _run(*command)

        assert result.exit_code == ExitCode.SOURCE
        assert re.search("purged|not in the log", result.stderr), result.stderr
        assert f"{first}" in result.stderr


@pytest.mark.parametrize("name", ["mysql9", "mariadb118"])
def test_a_log_purged_behind_a_connector_that_stood_still_is_named(
    name: str, fresh_server: Callable[..., Server], tmp_path: Path
) -> None:
    server = fresh_server(name)
    _session(server, "CREATE DATABASE bad_it", "CREATE TABLE bad_it.t (id INT PRIMARY KEY)")
    config = _config(tmp_path, server, start="earliest")
    with closing(make_tracker(load_config(config))) as tracker:
        assert tracker.plan_after(0) is not None
    file, _ = _end(server)
    server.sql("INSERT INTO bad_it.t VALUES (1)")
    while server.sql("SHOW BINARY LOGS")[0][0] == file:
        last = _begin(server).split(":")[0]
        server.sql("CREATE OR REPLACE VIEW bad_it.v AS SELECT 1")
        server.sql(f"PURGE BINARY LOGS TO '{last}'")

    ran, tailed = _run("run", config, "--once"), _run("tail", config)

    assert (ran.exit_code, tailed.exit_code) == (ExitCode.SOURCE, ExitCode.SOURCE)
    assert re.search(r"  start position: .*(purged|not in the log)", ran.stderr)
    assert "mend: restore the missing binlogs" in ran.stderr
    assert re.search("purged|not in the log", tailed.stderr)


# ---- a table that stops, while others go on ------------------------------------------------------------------------
def test_tail_warns_of_a_change_logged_as_a_statement_in_one_session(database: Server, tmp_path: Path) -> None:
    start = _begin(database)
    _session(database, "CREATE TABLE bad_it.t (id INT PRIMARY KEY)", "CREATE TABLE bad_it.u (id INT PRIMARY KEY)")
    _session(
        database,
        "SET SESSION transaction_isolation = 'REPEATABLE-READ'" if database.flavor == "mysql" else "DO 0",
        "SET SESSION binlog_format = 'STATEMENT'",
        "INSERT INTO bad_it.t VALUES (1)",
    )
    _session(database, "INSERT INTO bad_it.t VALUES (2)", "INSERT INTO bad_it.u VALUES (3)")

    result = _run("tail", _config(tmp_path, database, start=f"'{start}'"), "--format", "ndjson")

    assert (result.exit_code, _rows(result)) == (ExitCode.OK, [("bad_it.t", "+A", 2), ("bad_it.u", "+A", 3)])
    assert re.search(r"^warning: rows of bad_it\.t changed without row events at [0-9a-f-]+(:\d+)?\n", result.stderr)
    assert "changed by a statement, expected binlog_format=ROW in every session" in result.stderr
    assert "'INSERT INTO bad_it.t VALUES (1)'" in result.stderr


def test_tail_warns_of_a_statement_that_takes_rows_away_unseen(database: Server, tmp_path: Path) -> None:
    start = _begin(database)
    _session(
        database,
        "CREATE TABLE bad_it.p (id INT PRIMARY KEY) PARTITION BY HASH (id) PARTITIONS 2",
        "CREATE TABLE bad_it.u (id INT PRIMARY KEY)",
        "INSERT INTO bad_it.p VALUES (1), (2)",
        "ALTER TABLE bad_it.p TRUNCATE PARTITION p0",
        "INSERT INTO bad_it.p VALUES (4)",
        "INSERT INTO bad_it.u VALUES (3)",
    )

    result = _run("tail", _config(tmp_path, database, start=f"'{start}'"), "--format", "ndjson")

    shown = [("bad_it.p", "+A", 1), ("bad_it.p", "+A", 2), ("bad_it.p", "+A", 4), ("bad_it.u", "+A", 3)]
    assert (result.exit_code, sorted(_rows(result))) == (ExitCode.OK, shown)
    assert re.search(r"^warning: rows of bad_it\.p changed without row events at [0-9a-f-]+(:\d+)?\n", result.stderr)
    assert "its rows are not known any more, its schema is" in result.stderr
    assert "TRUNCATE PARTITION takes rows away without row events" in result.stderr
    assert "in: ALTER TABLE bad_it.p TRUNCATE PARTITION p0" in result.stderr


def test_a_table_map_that_does_not_fit_stops_its_table_and_prints_both_sides(database: Server, tmp_path: Path) -> None:
    start = _begin(database)
    _session(
        database, "CREATE TABLE bad_it.t (id INT PRIMARY KEY, a VARCHAR(10))", "INSERT INTO bad_it.t VALUES (1, 'x')"
    )
    _session(database, "SET SESSION sql_log_bin = 0", "ALTER TABLE bad_it.t ADD COLUMN hidden INT AFTER id")
    _session(database, "INSERT INTO bad_it.t VALUES (2, 7, 'y')")

    result = _run("tail", _config(tmp_path, database, start=f"'{start}'"), "--format", "ndjson")

    assert (result.exit_code, _rows(result)) == (ExitCode.FAILED, [("bad_it.t", "+A", 1)])
    assert re.search(r"^stopped: bad_it\.t at [0-9a-f-]+(:\d+)?\n", result.stderr)
    assert "2 columns in the history, 3 in the log" in result.stderr
    assert re.search(r"a varchar\(10\).*\|.*LONG", result.stderr, re.IGNORECASE)


# ---- files ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("made_before", [True, False])
def test_numbers_of_a_sequence_are_no_rows(mariadb118: Server, tmp_path: Path, *, made_before: bool) -> None:
    mariadb118.sql("DROP DATABASE IF EXISTS bad_it")
    mariadb118.sql("CREATE DATABASE bad_it")
    mariadb118.sql("CREATE TABLE bad_it.t (id BIGINT PRIMARY KEY)")
    make = "CREATE SEQUENCE bad_it.q START WITH 7"
    if made_before:
        mariadb118.sql(make)
    start = _begin(mariadb118)
    try:
        _session(mariadb118, *([] if made_before else [make]), "INSERT INTO bad_it.t VALUES (NEXT VALUE FOR bad_it.q)")
        result = _run("tail", _config(tmp_path, mariadb118, start=f"'{start}'"), "--format", "ndjson")
    finally:
        mariadb118.sql("DROP DATABASE bad_it")

    assert (result.exit_code, result.stderr, _rows(result)) == (0, "", [("bad_it.t", "+A", 7)])


@pytest.fixture
def copied(database: Server, tmp_path: Path) -> Path:
    """A whole file of a server's log, copied, with two rows in it."""
    file = _begin(database).partition(":")[0]
    _session(
        database,
        "CREATE TABLE bad_it.t (id INT PRIMARY KEY)",
        "INSERT INTO bad_it.t VALUES (1)",
        "INSERT INTO bad_it.t VALUES (2)",
        "FLUSH BINARY LOGS",
    )
    (source,) = [path for path in database.binlog_files() if path.name == file]
    return Path(shutil.copy(source, tmp_path))


def _files_config(directory: Path, flavor: str) -> Path:
    file = directory / "bad.yaml"
    file.write_text(f"name: bad\nsource: {{type: binlog-files, flavor: {flavor}, directory: .}}\n{SINK}")
    return file


def test_a_truncated_file_is_named_with_the_place_of_the_cut(database: Server, copied: Path) -> None:
    events = _events(database, copied.name)
    (_, second, _) = [event for event in events if event[0].startswith("Write_rows")][1]
    os.truncate(copied, second + 30)

    result = _run("tail", "--binlog", copied, "--table", "bad_it.*", "--format", "ndjson")

    assert result.exit_code == ExitCode.SOURCE
    assert "error: the binlog file ends inside an event\n" in result.stderr
    assert f"where     {copied.name}:{second}\n" in result.stderr
    assert "next " in result.stderr


def test_a_file_that_is_no_binlog_is_named_with_what_stands_in_it(database: Server, copied: Path) -> None:
    text = copied.with_name("binlog.999999")
    text.write_text("-- a dump, not a binlog\n")

    tailed = _run("tail", "--binlog", copied, text)
    checked = _run("check", _files_config(copied.parent, database.flavor), "--json")
    ran = _run("run", _files_config(copied.parent, database.flavor), "--once")

    assert (tailed.exit_code, checked.exit_code, ran.exit_code) == (ExitCode.SOURCE, ExitCode.FAILED, ExitCode.SOURCE)
    assert "error: not a binlog file\n" in tailed.stderr
    assert f"where     {text}, offset 0\n" in tailed.stderr
    assert "expected  fe 62 69 6e\n  found     2d 2d 20 61\n" in tailed.stderr
    (found,) = json.loads(checked.stdout)
    assert found["found"].startswith(f"not a binlog file ({text}, offset 0)")
    assert f"not a binlog file ({text}, offset 0)" in ran.stderr
