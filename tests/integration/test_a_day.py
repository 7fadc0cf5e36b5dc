"""A day of someone on call: a connector is begun, watched, stops a table, is mended, gets a table more, and ends."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import threading
from collections import Counter
from collections.abc import Callable
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any

from typer.testing import CliRunner

from browser.chromium import browsed
from command_line import HISTORIAN
from connectors.cli import app
from databases.servers import Server, free_port
from historian.changelog.operations import Op
from monitoring.endpoints import Endpoint, Samples
from monitoring.prometheus import started_prometheus
from monitoring.webhooks import Receiver, receiving
from workload.beside import beside
from workload.waiting import wait_until

if TYPE_CHECKING:
    import pytest
    from pyspark.sql import SparkSession

_RULES = Path(__file__).parents[2] / "docker" / "monitoring" / "alerts.yaml"
_LONGEST_S = 300.0
"""Kernels may be cold and the machine busy: whoever is well needs a small part of it."""
_STOPPED = ("historian_sink_stopped_tables", ())
_TABLES = ("orders", "customers", "later")


def test_from_the_first_file_to_the_last_signal(
    mysql9: Server, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _fill(mysql9)
    monkeypatch.setenv("SHOP_PASSWORD", mysql9.password)
    file, port = tmp_path / "shop.yaml", free_port()
    endpoint = Endpoint(port)
    with receiving() as receiver:
        _begin(mysql9, file, port, receiver.url)
        output = tmp_path / "run.log"
        with (
            output.open("wb") as log,
            subprocess.Popen([*HISTORIAN, "run", str(file)], stdout=log, stderr=subprocess.STDOUT) as process,
        ):
            try:
                with beside(lambda ended: _write(mysql9, ended)):
                    _until(endpoint.is_ready)
                    mysql9.sql("ALTER TABLE shop.customers ADD COLUMN city VARCHAR(20) DEFAULT 'Ulm'")
                    mysql9.sql("ALTER TABLE shop.orders MODIFY amount SMALLINT")
                    _sees_the_stop(endpoint, receiver, file, port)
                    _mends_it(endpoint, receiver, file)
                    file.write_text(file.read_text().replace('    - "!shop.later"\n', ""))
                    process.send_signal(signal.SIGHUP)
                    _until(lambda: {"shop.later"} <= _targets(endpoint))
                _until(lambda: _is_all_there(mysql9, spark, tmp_path))
                # Counters begin again where a run takes another configuration.
                before = _rows_by_metrics(endpoint.wait(_has_no_lag)), _rows_in_lake(spark, tmp_path)
                for table in _TABLES:
                    mysql9.sql(f"INSERT INTO shop.{table} (amount) VALUES (7), (8)")
                    mysql9.sql(f"UPDATE shop.{table} SET amount = 9 WHERE amount = 8")
                _until(lambda: _is_all_there(mysql9, spark, tmp_path))
                seen = _looked(endpoint, file, tmp_path, port)
            finally:
                process.send_signal(signal.SIGTERM)
                process.wait(_LONGEST_S)
    assert process.returncode == 0, output.read_text()
    by_metrics, in_lake = _rows_by_metrics(seen["samples"]), _rows_in_lake(spark, tmp_path)
    assert {table: by_metrics[table] - before[0][table] for table in _TABLES} == {
        table: in_lake[table] - before[1][table] for table in _TABLES
    }
    assert all(in_lake[table]["append"] > before[1][table]["append"] for table in _TABLES)
    _check_numbers(seen)
    assert _is_all_there(mysql9, spark, tmp_path)


def _fill(server: Server) -> None:
    server.clear()
    server.sql("CREATE DATABASE shop")
    for table in _TABLES:
        server.sql(f"CREATE TABLE shop.{table} (id INT PRIMARY KEY AUTO_INCREMENT, amount INT)")
        server.sql(f"INSERT INTO shop.{table} (amount) VALUES (1), (2), (3)")


def _begin(server: Server, file: Path, port: int, url: str) -> None:
    """The file as ``init`` writes it, and what a person adds."""
    done = _said(
        "init",
        f"{server.host}:{server.port}",
        str(file),
        "--user",
        server.user,
        "--password-env",
        "SHOP_PASSWORD",
        "--database",
        "shop",
    )
    assert 0 == done.exit_code, done.output
    text = file.read_text()
    assert re.search(r"orders: about \d+ rows", text), text  # the server itself counts them about
    for written, meant in (
        ('    - "shop.*"\n', '    - "shop.*"\n    - "!shop.later"\n'),
        ("    path: lake\n", "    path: lake\n    evolution: {change_type: quarantine}\n"),
        ("  trigger: 2 seconds\n", f"  trigger: 200 ms\n  http: {port}\nnotify:\n  to: [{{webhook: '{url}'}}]\n"),
    ):
        assert 1 == text.count(written), text
        text = text.replace(written, meant)
    file.write_text(text)
    done = _said("check", str(file))
    assert 0 == done.exit_code, done.output


def _sees_the_stop(endpoint: Endpoint, receiver: Receiver, file: Path, port: int) -> None:
    """The webhook, the metrics, the status and the page say which table stopped, and why."""
    _until(lambda: "table_stopped" in {message["event"] for message in receiver.taken})
    (told,) = (message for message in receiver.taken if message["event"] == "table_stopped")
    assert "shop.orders stopped: " in told["text"]
    assert {"shop.customers", "shop.orders"} == {
        message["table"] for message in receiver.taken if message["event"] == "schema_change"
    }
    endpoint.wait(lambda samples: samples[_STOPPED] == 1)
    shown = _said("status", str(file), "--json")
    assert 1 == shown.exit_code
    reasons = {each["stopped"] for each in json.loads(shown.stdout)["targets"] if each["table"] == "shop.orders"}
    with browsed() as tab:
        tab.show(1280)
        tab.open(f"http://127.0.0.1:{port}/#table=shop.orders")
        tab.until("document.querySelector('#detail pre')?.textContent.includes('MODIFY amount SMALLINT')")
        assert all(reason[:60] in tab.text("main") for reason in reasons), (reasons, tab.text("main"))
        assert [] == tab.complaints()


def _mends_it(endpoint: Endpoint, receiver: Receiver, file: Path) -> None:
    """``plan`` says what the default of ``evolution`` would do, ``apply`` has the run do it."""
    file.write_text(file.read_text().replace("    evolution: {change_type: quarantine}\n", ""))
    planned = _said("plan", str(file), "--json")
    assert 0 == planned.exit_code, planned.output
    effects = {each["table"]: each["action"] for each in json.loads(planned.stdout)["tables"]}
    assert "repaired" == effects["shop.orders"], planned.stdout
    applied = _said("apply", str(file))
    assert 0 == applied.exit_code, applied.output
    endpoint.wait(lambda samples: samples[_STOPPED] == 0)
    _until(lambda: any(message["event"] == "table_stopped" and message["is_over"] for message in receiver.taken))


def _targets(endpoint: Endpoint) -> set[str]:
    try:
        code, text = endpoint.get("/status")
    except OSError:  # while the run takes its new configuration
        return set()
    targets = json.loads(text)["targets"] if code == HTTPStatus.OK else None
    return {each["table"] for each in targets or ()}


def _is_all_there(server: Server, spark: SparkSession, directory: Path) -> bool:
    return all(
        sorted(server.sql(f"SELECT id, amount FROM shop.{table}"))
        == sorted((row.id, row.amount) for row in _read(spark, directory, f"shop_{table}"))
        for table in _TABLES
    )


def _read(spark: SparkSession, directory: Path, name: str) -> list[Any]:
    return spark.read.format("delta").load(str(directory / "lake" / name)).collect()


def _looked(endpoint: Endpoint, file: Path, directory: Path, port: int) -> dict[str, Any]:
    """What all who can be asked say of a run that has nothing left to do."""
    samples = endpoint.wait(_has_no_lag)
    with started_prometheus(directory, [f"127.0.0.1:{port}"], _RULES) as prometheus:
        _until(lambda: bool(prometheus.samples("historian_last_plan_number")))
        scraped = prometheus.samples("historian_last_plan_number")
    with browsed() as tab:
        tab.show(1280)
        tab.open(f"http://127.0.0.1:{port}/")
        tab.until("document.querySelectorAll('#tables .row').length === 3")
        page = tab.text("main dl")
    return {
        "samples": samples,
        "status": json.loads(endpoint.get("/status")[1]),
        "cli": json.loads(_said("status", str(file), "--json").stdout),
        "lines": _said("status", str(file)).stdout,
        "scraped": [value for _, value in scraped],
        "page": page,
    }


def _has_no_lag(samples: Samples) -> bool:
    return not samples["historian_lag_seconds", ()]


def _rows_by_metrics(samples: Samples) -> dict[str, Counter[str]]:
    found: dict[str, Counter[str]] = {table: Counter() for table in _TABLES}
    for (name, labels), value in samples.items():
        if name == "historian_rows_total":
            told = dict(labels)
            found[told["table"].removeprefix("shop.")][told["operation"]] += int(value)
    return found


def _rows_in_lake(spark: SparkSession, directory: Path) -> dict[str, Counter[str]]:
    return {
        table: Counter(Op(row.op).name.lower() for row in _read(spark, directory, f"shop_{table}_changes"))
        for table in _TABLES
    }


def _check_numbers(seen: dict[str, Any]) -> None:
    samples, status = seen["samples"], seen["status"]
    number = status["last_plan"]["number"]
    assert [number] == seen["scraped"] == [samples["historian_last_plan_number", ()]]
    assert number == seen["cli"]["last_plan"]["number"]
    assert {f"shop.{table}" for table in _TABLES} == {each["table"] for each in status["targets"]}
    assert "6 targets: 6 up to date" in seen["lines"]
    assert "3 up to date" in seen["page"]
    assert status["last_plan"]["end"]["gtids"] in seen["page"].replace("\n", "")


def _until(is_so: Callable[[], object]) -> None:
    wait_until(is_so, _LONGEST_S)


def _said(*arguments: str) -> Any:
    return CliRunner().invoke(app, arguments, catch_exceptions=False)


def _write(server: Server, ended: threading.Event) -> None:
    with server.connect() as connection, connection.cursor() as cursor:
        number = 0
        while not ended.wait(0.02):
            number += 1
            for table in _TABLES:
                cursor.execute(f"INSERT INTO shop.{table} (amount) VALUES ({number % 100})")
                cursor.execute(f"UPDATE shop.{table} SET amount = amount + 1 WHERE id = {1 + number % 7}")
                cursor.execute(f"DELETE FROM shop.{table} WHERE id = {10 + number % 90}")
            connection.commit()
