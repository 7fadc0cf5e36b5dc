"""The endpoint by itself: who is let in, what is refused, and how many series there can be."""

from __future__ import annotations

import json
import socket
import urllib.error
import urllib.request
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from connectors.config import load_config
from connectors.config.settings import HttpConfig
from connectors.monitoring import endpoint
from connectors.monitoring.endpoint import served
from connectors.monitoring.health import Health
from connectors.monitoring.metrics import OTHER_TABLES, Metrics
from connectors.monitoring.observer import Observer, WrittenPlan
from databases.servers import free_port
from historian.changelog.operations import Op
from historian.errors import ConfigError
from historian.names import TableName
from historian.plans.plans import Plan, PlannedTable, PlannedVersion, TableCopy
from historian.positions import LogPosition
from historian.schema.snapshots import Snapshot

NOT_YET = "the run has written no plan yet, nor seen the end of the log"


@contextmanager
def _served(directory: Path, http: str) -> Iterator[Observer]:
    file = directory / "shop.yaml"
    source = "{type: mysql, host: 127.0.0.1, port: 1, user: cdc}"
    file.write_text(f"name: shop\nsource: {source}\nsinks: [{{type: console}}]\nrun: {{http: {http}}}\n")
    with served(load_config(file)) as observer:
        yield observer


def _get(port: int, path: str, method: str = "GET", **headers: str) -> tuple[int, str, str]:
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", headers=headers, method=method)
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, answer.headers["Content-Type"], answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.headers["Content-Type"], error.read().decode()


def _plan(number: int, tables: tuple[PlannedTable, ...] = ()) -> Plan:
    at = LogPosition(flavor="mysql", gtids="", file="b.1", offset=4)
    return Plan(
        number=number,
        previous=0,
        connector="c",
        start=at,
        end=at,
        ranges=(),
        tables=tables,
        version=1,
        system_time_us=5_000_000,
        revision="",
    )


def _table(number: int) -> PlannedTable:
    name = TableName("shop", f"t{number}")
    snapshot = Snapshot(table_id=number, name=name, columns=(), primary_key=(), charset="utf8mb4", collation="")
    version = PlannedVersion(version=1, place=None, edits=(), snapshot=snapshot, segment=1)
    return PlannedTable(table_id=number, versions=(version,))


def test_a_run_is_ready_from_its_first_plan_on_and_not_after_a_failure(tmp_path: Path) -> None:
    with _served(tmp_path, str(port := free_port())) as observer:
        assert _get(port, "/health")[0] == 200
        status, kind, body = _get(port, "/ready")
        assert (status, kind) == (503, "application/json; charset=utf-8")
        assert json.loads(body) == {"ok": False, "reasons": [NOT_YET]}

        observer.opened()
        assert _get(port, "/ready")[0] == 503
        observer.written(WrittenPlan(plan=_plan(1), stopped={}))
        assert _get(port, "/ready")[0] == 200

        observer.closed()
        observer.failed("attempt 1 failed: shop.customers is gone")
        assert json.loads(_get(port, "/ready")[2])["reasons"] == ["the run tries again what failed"]
        assert _get(port, "/health")[0] == 200


def test_a_token_guards_what_has_names_in_it(tmp_path: Path) -> None:
    port = free_port()
    with _served(tmp_path, f"{{listen: {port}, token: s3crét}}"):
        for path in ("/", "/metrics", "/status"):
            assert _get(port, path)[0] == 401
            assert _get(port, path, Authorization="Basic " + b64encode(b"me:wrong").decode())[0] == 401
            assert _get(port, path, Authorization="Basic ???")[0] == 401
            assert _get(port, path, Authorization="Bearer wrong")[0] == 401
            assert _get(port, path, Authorization="Bearer s3cret")[0] == 401
        assert _get(port, "/metrics", Authorization="Bearer s3crét".encode().decode("latin-1"))[0] == 200
        as_password = "Basic " + b64encode("me:s3crét".encode()).decode()
        assert _get(port, "/metrics", Authorization=as_password)[0] == 200
        assert _get(port, "/health")[0] == 200


def test_metrics_are_open_metrics_where_that_is_asked_for(tmp_path: Path) -> None:
    with _served(tmp_path, str(port := free_port())) as observer:
        observer.written(WrittenPlan(plan=_plan(7), stopped={"shop.t": "why"}, event_time_us=9_000_000))
        status, kind, text = _get(port, "/metrics", Accept="application/openmetrics-text; version=1.0.0")

    found = {s.name: s.value for family in text_string_to_metric_families(text) for s in family.samples}
    assert (status, kind.partition(";")[0]) == (200, "application/openmetrics-text")
    assert found["historian_last_plan_number"] == 7
    assert found["historian_last_plan_timestamp_seconds"] == 5
    assert found["historian_last_event_timestamp_seconds"] == 9
    assert found["historian_sink_stopped_tables"] == 1


def test_a_repair_by_ranges_counts_once(tmp_path: Path) -> None:
    with _served(tmp_path, str(port := free_port())) as observer:
        for number, is_done in ((1, False), (2, True)):
            copies = [TableCopy(is_done=is_done, repairs="its values"), TableCopy(is_done=is_done)]
            tables = [replace(_table(at), copy=copy) for at, copy in enumerate(copies)]
            observer.written(WrittenPlan(plan=_plan(number, tuple(tables)), stopped={}))
        text = _get(port, "/metrics")[2]

    assert ['historian_repairs_total{table="shop.t0"} 1.0'] == [
        line for line in text.splitlines() if line.startswith("historian_repairs_total")
    ]


def test_the_page_is_there_before_the_connector_has_anything(tmp_path: Path) -> None:
    port = free_port()
    with _served(tmp_path, f"{{listen: {port}}}"):
        status, kind, text = _get(port, "/")
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/") as answer:
            policy = answer.headers["Content-Security-Policy"]

    assert (status, kind) == (200, "text/html; charset=utf-8")
    assert policy.removesuffix("; frame-ancestors 'none'") in text
    assert '"live":true' in text


def test_it_listens_on_ipv6_too(tmp_path: Path) -> None:
    port = free_port()
    with _served(tmp_path, f"'[::1]:{port}'"), urllib.request.urlopen(f"http://[::1]:{port}/health") as answer:
        assert answer.status == 200


def test_a_token_that_is_empty_is_no_token(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught, _served(tmp_path, "{listen: 1, token: ''}"):
        pass

    (problem,) = caught.value.problems
    assert problem.startswith("expected a token that is not empty, or none @ $.run.http, line 4")


def test_other_paths_and_methods_are_refused(tmp_path: Path) -> None:
    with _served(tmp_path, str(port := free_port())):
        assert _get(port, "/../etc/passwd")[0] == 404
        assert _get(port, "/health", method="POST")[0] == 501
        assert _get(port, "/health", method="HEAD")[::2] == (200, "")


@pytest.mark.parametrize(
    "host,status", [("localhost:1", 200), ("[::1]:1", 200), ("10.0.0.1", 200), ("evil.example:1", 421), ("[::", 421)]
)
def test_a_name_of_others_that_leads_here_is_shown_nothing_without_a_token(
    tmp_path: Path, host: str, status: int
) -> None:
    with _served(tmp_path, str(port := free_port())):
        assert [status, status] == [_get(port, path, Host=host)[0] for path in ("/", "/status")]
        assert _get(port, "/metrics", Host=host)[0] == 200
    with _served(tmp_path, f"{{listen: {(port := free_port())}, token: s3cret}}"):
        assert _get(port, "/status", Host=host, Authorization="Bearer s3cret")[0] == 200


def test_a_port_alone_listens_on_loopback(tmp_path: Path) -> None:
    with _served(tmp_path, str(port := free_port())), socket.socket() as other:
        other.bind(("127.0.0.2", port))  # all addresses would take it
        assert _get(port, "/health")[0] in (200, 503)


def test_a_client_that_sends_nothing_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoint._Handler, "timeout", 0.2)
    with (
        _served(tmp_path, str(port := free_port())),
        socket.create_connection(("127.0.0.1", port), timeout=30) as silent,
    ):
        silent.sendall(b"GET /health HTTP/1.1\r\n")
        assert silent.recv(1) == b""


def test_a_port_that_is_taken_is_a_problem_of_the_configuration(tmp_path: Path) -> None:
    port = free_port()
    with _served(tmp_path, str(port)), pytest.raises(ConfigError) as caught, _served(tmp_path, str(port)):
        pass

    assert caught.value.problems == (f"Address already in use @ $.run.http (got 127.0.0.1:{port})",)


def test_tables_beyond_the_limit_are_counted_together() -> None:
    metrics = Metrics("shop", "here", (), tables=2)
    tables = tuple(_table(number) for number in range(1, 5))
    rows = {(number, Op.APPEND): 10 * number for number in range(1, 5)}

    for _ in range(2):
        metrics.written(WrittenPlan(plan=_plan(1, tables), stopped={}, rows=rows))

    found = {
        sample.labels["table"]: sample.value
        for family in metrics.registry.collect()
        for sample in family.samples
        if sample.name == "historian_rows_total"
    }
    assert found == {"shop.t1": 20, "shop.t2": 40, OTHER_TABLES: 140}


def test_lag_counts_from_the_last_transaction_or_failure_until_the_log_has_no_more() -> None:
    now_s = 100.0
    metrics = Metrics("shop", "here", (), tables=2, clock_s=lambda: now_s)
    assert metrics.lag_s() == 0

    metrics.written(WrittenPlan(plan=_plan(1), stopped={}, event_time_us=90_000_000))
    assert metrics.lag_s() == 10
    metrics.waits(0)
    assert metrics.lag_s() == 0
    metrics.failed("gone")
    assert metrics.lag_s() == 0
    now_s = 103.0
    assert metrics.lag_s() == 3


def test_a_silent_run_is_not_healthy_and_one_that_is_far_behind_is_not_ready() -> None:
    now_s, lag_s = 0.0, 0.0
    limits = HttpConfig(host="", port=0, max_lag_s=60, max_silence_s=30)
    health = Health(limits, lambda: lag_s, clock_s=lambda: now_s)
    health.opened()
    assert health.not_ready() == (NOT_YET,)
    health.waits(0)
    assert health.not_ready() == ()

    lag_s = 61.0
    assert health.not_ready() == ("the targets are 61 s behind; the limit is 60 s",)
    assert health.dead() == ()

    lag_s, now_s = 0.0, 31.0
    assert health.dead() == ("nothing was heard of the run for 31 s; the limit is 30 s",)
    health.waits(0)
    assert health.dead() == health.not_ready() == ()
