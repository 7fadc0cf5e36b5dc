"""Several connectors in one process: what fails of one leaves the others alone, and one endpoint tells of all."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
from contextlib import suppress
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.error import HTTPError, URLError
from urllib.request import urlopen

import pytest

from connectors.cli.terminal.outcome import ExitCode
from databases.servers import Server, free_port
from sinks.delta.log.orphans import orphaned_files
from workload.waiting import wait_until

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.slow
HISTORIAN = [sys.executable, "-c", "from connectors.cli import main; main()"]
BACKLOG_MB = 150
DIES_WITH_US = ("setpriv", "--pdeathsig", "KILL")


def _config(server: Server, directory: Path, name: str, *, password: str, port: int, more: str = "") -> None:
    (directory / f"{name}.yaml").write_text(
        f"name: {name}\nsource: {{type: {server.flavor}, host: {server.host}, port: {server.port}, user: {server.user}, "
        f"password: '{password}', tables: ['{name}.*'], start: earliest}}\n"
        f"sinks: [{{type: delta, path: lake_{name}}}]\nrun: {{http: '127.0.0.1:{port}', trigger: 100 ms{more}}}\n"
    )


def _asked(port: int, path: str) -> Any:
    try:
        with urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as answer:
            body = answer.read().decode()
    except HTTPError as error:
        body = error.read().decode()
    return body if path == "/metrics" else json.loads(body)


def test_a_connector_that_is_not_let_in_ends_alone_and_the_others_go_on(
    mysql9: Server, spark: SparkSession, tmp_path: Path
) -> None:
    mysql9.clear()
    port = free_port()
    for name in ("one", "two", "shut"):
        mysql9.sql(f"CREATE DATABASE {name}")
        mysql9.sql(f"CREATE TABLE {name}.t (id INT PRIMARY KEY)")
        mysql9.sql(f"INSERT INTO {name}.t VALUES (1)")
        _config(mysql9, tmp_path, name, password="wrong" if name == "shut" else mysql9.password, port=port)

    def plans() -> dict[str, float]:
        with suppress(URLError):
            return {
                name: float(value)
                for name, value in re.findall(
                    r'^historian_last_plan_number{connector="(\w+)"} (\S+)$', _asked(port, "/metrics"), re.MULTILINE
                )
            }
        return {}

    command = [*DIES_WITH_US, *HISTORIAN, "run", str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        try:
            wait_until(lambda: running.poll() is not None or _both_begun(plans()), 300)
            wait_until(lambda: running.poll() is not None or _states(port)["shut"] == "failed", 60)
            before = plans()
            for name in ("one", "two"):
                mysql9.sql(f"INSERT INTO {name}.t VALUES (2)")
            wait_until(
                lambda: running.poll() is not None or all(plans()[name] > before[name] for name in ("one", "two")), 120
            )
            metrics, status = _asked(port, "/metrics"), _asked(port, "/status")["connectors"]
            health, ready, of_one = (_asked(port, path) for path in ("/health", "/ready", "/one/status"))
        finally:
            running.send_signal(signal.SIGTERM)
            _, said = running.communicate(timeout=120)

    assert running.returncode == ExitCode.FAILED, said[-3000:]
    for name in ("one", "two"):
        held = spark.read.format("delta").load(f"{tmp_path}/lake_{name}/{name}_t").collect()
        assert [(1,), (2,)] == sorted(map(tuple, held))
        assert [] == orphaned_files(f"{tmp_path}/lake_{name}", datetime.now(timezone.utc) + timedelta(seconds=1))
    assert {"one": "runs", "two": "runs", "shut": "failed"} == {name: each["state"] for name, each in status.items()}
    assert "Access denied" in status["shut"]["failure"]
    assert re.search(r"^two: [\d:]+ plan 1: 1 rows?", said, re.MULTILINE), said
    assert "shut: has failed, and ends; the others go on" in said
    assert "2 of 3 connectors came to their end" in said
    assert 'historian_connector_failed{connector="shut"} 1.0' in metrics
    assert 1 == len(re.findall(r"^# TYPE historian_last_plan_number ", metrics, re.MULTILINE))
    assert (True, ["1 of 3 connectors have failed"]) == (health["ok"], ready["reasons"])
    assert "one" == of_one["name"]


@pytest.mark.soak
def test_a_great_backlog_of_one_keeps_no_other_waiting(mysql9: Server, tmp_path: Path) -> None:
    """Rows of the quiet one arrive, time after time, while the other one is still far behind."""
    mysql9.clear()
    port = free_port()
    for name in ("great", "quiet"):
        mysql9.sql(f"CREATE DATABASE {name}")
        mysql9.sql(f"CREATE TABLE {name}.t (id INT PRIMARY KEY AUTO_INCREMENT, note VARCHAR(200))")
        _config(mysql9, tmp_path, name, password=mysql9.password, port=port, more=", max_batch_bytes: 1 MB")
    rows = ", ".join(["(REPEAT('x', 200))"] * 5_000)
    for _ in range(BACKLOG_MB):
        mysql9.sql(f"INSERT INTO great.t (note) VALUES {rows}")
    mysql9.sql("INSERT INTO quiet.t (note) VALUES ('first')")

    def rows_of(name: str) -> float:
        with suppress(URLError):
            found = re.findall(
                rf'^historian_rows_total{{connector="{name}".*}} (\S+)$', _asked(port, "/metrics"), re.MULTILINE
            )
            return sum(map(float, found))
        return 0.0

    with subprocess.Popen(
        [*DIES_WITH_US, *HISTORIAN, "run", str(tmp_path)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as running:
        try:
            wait_until(lambda: running.poll() is not None or rows_of("quiet") == 1, 300)
            waited_s, great = [], []
            for number in range(2, 7):
                mysql9.sql("INSERT INTO quiet.t (note) VALUES ('another')")
                begun_s = time.monotonic()
                wait_until(lambda wanted=number: running.poll() is not None or rows_of("quiet") == wanted, 120)
                waited_s.append(time.monotonic() - begun_s)
                great.append(rows_of("great"))
        finally:
            running.send_signal(signal.SIGTERM)
            _, said = running.communicate(timeout=120)

    assert running.returncode == ExitCode.OK, said[-3000:]
    assert great == sorted(great)
    assert 0 < great[0] < great[-1] < BACKLOG_MB * 5_000, (waited_s, great)


def _states(port: int) -> dict[str, str]:
    return {name: each["state"] for name, each in _asked(port, "/status")["connectors"].items()}


def _both_begun(plans: dict[str, float]) -> bool:
    return all(plans.get(name, 0) > 0 for name in ("one", "two"))
