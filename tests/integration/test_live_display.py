"""What `historian run` shows on a terminal while it copies, follows and stops tables of a real server, against what `status` says."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from command_line import HISTORIAN
from connectors.cli import app
from connectors.cli.terminal.outcome import ExitCode
from connectors.cli.terminal.sizes import bytes_text, copied_text
from databases.servers import Server
from monitoring.screens import on_a_screen

ROWS = 20_000
KEPT_S = 600


def _fill(server: Server) -> None:
    server.clear()
    for database in ("screen", "elsewhere"):
        server.sql(f"CREATE DATABASE {database}")
    for table in ("elsewhere.copied", "screen.late", "screen.streams", "screen.stops"):
        server.sql(f"CREATE TABLE {table} (id INT PRIMARY KEY, v INT)")
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.executemany("INSERT INTO elsewhere.copied VALUES (%s, %s)", [(i, i) for i in range(ROWS)])
        connection.commit()
    server.sql("INSERT INTO screen.streams VALUES (1, 1), (2, 2)")
    for table in ("late", "stops"):
        server.sql(f"INSERT INTO screen.{table} VALUES (1, 1)")
    server.sql("ANALYZE TABLE elsewhere.copied")


def _config(server: Server, directory: Path) -> Path:
    path = directory / "shop.yaml"
    path.write_text(
        f"name: shop\nsource:\n  type: {server.flavor}\n  host: {server.host}\n  port: {server.port}\n  user: {server.user}\n"
        f"  password: '{server.password}'\n  tables: ['screen.*']\n  start: initial\n"
        "  backfill: {chunk_rows: 100, connections: 1, rows_per_second: 50}\n"
        f"history: {{store: 'sqlite:///{directory}/store.db'}}\n"
        f"sinks: [{{type: delta, path: '{directory}/lake', evolution: {{change_type: quarantine}}, tables: {{screen.late: {{mirror_every: 10 minutes}}}}}}]\nrun: {{trigger: 500 ms}}\n"
    )
    return path


@dataclass(frozen=True, kw_only=True)
class _Seen:
    """What stood on the screen: with 120 columns, with 60, and at the end; and what status said at the first moment."""

    wide: list[str]
    narrow: list[str]
    last: list[str]
    status: dict[str, Any]
    status_text: str
    code: int
    has_cursor: bool


def _seen(server: Server, config: Path) -> _Seen:
    with on_a_screen([*HISTORIAN, "run", str(config)], columns=120, lines=32) as screen:
        screen.wait(lambda text: text.count("streaming") == 3)
        # It is copied now, behind the small ones.
        server.sql("RENAME TABLE elsewhere.copied TO screen.copied")
        screen.wait(lambda text: " left" in text)
        # What rests can be compared.
        CliRunner().invoke(app, ["backfill", str(config), "--pause"], catch_exceptions=False)
        screen.wait(lambda text: "note     copies are paused" in text)
        server.sql("ALTER TABLE screen.streams ADD COLUMN note TEXT")
        server.sql("INSERT INTO screen.streams VALUES (3, 3, 'x')")
        server.sql("ALTER TABLE screen.stops MODIFY v SMALLINT")
        server.sql("INSERT INTO screen.late VALUES (2, 2)")
        screen.wait(lambda text: all(map(text.__contains__, ("streaming  3 rows", " stopped ", " deferred "))))
        status = json.loads(CliRunner().invoke(app, ["status", str(config), "--json", "--no-targets"]).stdout)
        status_text = CliRunner().invoke(app, ["status", str(config), "--no-targets"]).stdout
        # The lag is that of the last look at the source's log, which can be older than the plan.
        settled = (f"plan {status['last_plan']['number']}, ", "lag      0:00:00, no log waits")
        wide = screen.wait(lambda text: all(map(text.__contains__, settled)))
        screen.resize(60)
        narrow = screen.wait(lambda text: bool(re.search(r"^position .{50}…$", text, re.MULTILINE)))
        screen.type(b"\x03")
        code = screen.end()
        last = screen.text().rstrip().splitlines()
        return _Seen(
            wide=wide,
            narrow=narrow,
            last=last,
            status=status,
            status_text=status_text,
            code=code,
            has_cursor=screen.has_cursor,
        )


def _unlike(patterns: Sequence[str], lines: Sequence[str]) -> list[tuple[str, str]]:
    return [each for each in zip(patterns, lines, strict=False) if not re.fullmatch(*each)]


def _check_wide(shown: list[str], status: dict[str, Any], numbers: str) -> None:
    plan = status["last_plan"]
    assert f"position plan {plan['number']}, {plan['end']['at']}, {plan['end']['gtids']}" in shown
    assert "lag      0:00:00, no log waits" in shown
    assert 0 == status["lag"]["transactions"]
    assert [f"warning  {text}" for text in status["warnings"]] == [line for line in shown if line.startswith("warning")]
    at = shown.index(next(line for line in shown if line.startswith("screen.stops")))
    expected = (
        r"screen\.stops    stopped    1 rows(, .*/s)?",
        r"  a column's values are rewritten by the server \(screen\.stops\.v: ALTER TABLE .*",
        ".*…",
        rf"screen\.copied   copying +\d+% [█░]+  {numbers}",
        r"screen\.late     deferred   mirror follows in 0:(09:\d\d|10:00), 2 rows(, .*/s)?",
        r"screen\.streams  streaming  3 rows(, .*/s)?",
    )
    assert [] == _unlike(expected, shown[at:])
    changed = shown[shown.index("last schema changes") + 1 :]
    assert [
        "screen.stops: type v int smallint  ALTER TABLE screen.stops MODIFY v SMALLINT",
        "screen.streams: added note text  ALTER TABLE screen.streams ADD COLUMN note TEXT",
        "screen.copied: renamed table elsewhere.copied screen.copied  RENAME TABLE elsewhere.copied TO screen.copied",
    ] == [line.partition(" ")[2] for line in changed if line]


def test_the_screen_shows_what_status_says(mysql9: Server, tmp_path: Path) -> None:
    _fill(mysql9)
    config = _config(mysql9, tmp_path)
    kept = mysql9.sql("SELECT @@GLOBAL.binlog_expire_logs_seconds")[0][0]
    mysql9.sql(f"SET GLOBAL binlog_expire_logs_seconds = {KEPT_S}")
    try:
        seen = _seen(mysql9, config)
    finally:
        mysql9.sql(f"SET GLOBAL binlog_expire_logs_seconds = {kept}")
        for database in ("screen", "elsewhere"):
            mysql9.sql(f"DROP DATABASE {database}")

    status = seen.status
    (copy,) = (each for each in status["copies"] if each["state"] != "done")
    left = timedelta(seconds=copy["left_s"])
    assert ("screen.copied", "copying", KEPT_S) == (copy["table"], copy["state"], status["log_kept_s"])
    assert [f"screen.copied needs about {left} more to be copied; the log from here on is kept for 0:10:00"] == (
        status["warnings"]
    )
    assert "kept by the source for 0:10:00; what is behind the last plan for 0:10:00 more" in seen.status_text
    assert f"warning: {status['warnings'][0]}" in seen.status_text
    size = copied_text(copy["bytes"], copy["estimated_bytes"])
    assert size in seen.status_text
    # Bytes stand there where the terminal has room for them.
    sizes = f"(, {re.escape(size)}, {re.escape(bytes_text(copy['bytes_per_s']))}/s)?"
    rows = f"{copy['rows']:,} of about {copy['estimate']:,} rows, {copy['rows_per_s']:,} rows/s"
    numbers = f"{re.escape(rows)}{sizes}, {left} left"
    _check_wide(seen.wide, status, numbers)
    assert max(map(len, seen.narrow)) <= 60
    assert any(re.fullmatch(rf"screen\.copied   copying +\d+% [█░]+  {left} left", line) for line in seen.narrow)
    assert (ExitCode.FAILED, True) == (seen.code, seen.has_cursor)
    assert "stopped: screen.stops in its targets" in seen.last
    assert f"shop  has ended  mysql {mysql9.host}:{mysql9.port} to delta" in seen.last
    assert 1 == sum(line.startswith("position") for line in seen.last), seen.last
    assert re.fullmatch(r"\d+ plans? written, up to .*; stopped: screen\.stops", "".join(seen.last[-2:]))
