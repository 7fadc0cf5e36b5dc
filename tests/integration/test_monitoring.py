"""What the endpoint of a run says is what the lake, the source and the store hold."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from prometheus_client.parser import text_string_to_metric_families
from typer.testing import CliRunner

from connectors.cli import app
from connectors.config import load_config
from connectors.pipeline.run import run
from databases.servers import Server, free_port
from historian.changelog.operations import Op

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LONGEST_S = 120
Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


class _Endpoint:
    """A client of the endpoint at *port*."""

    def __init__(self, port: int) -> None:
        self._port = port

    def get(self, path: str) -> tuple[int, str]:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self._port}{path}", timeout=30) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()

    def samples(self) -> Samples:
        status, text = self.get("/metrics")
        assert status == 200
        families = text_string_to_metric_families(text)
        return {(s.name, tuple(sorted(s.labels.items()))): s.value for family in families for s in family.samples}

    def wait(self, is_there: Callable[[Samples], bool]) -> Samples:
        until = time.monotonic() + LONGEST_S
        while not is_there(samples := self.samples()):
            assert time.monotonic() < until, samples
            time.sleep(0.2)
        return samples

    def is_ready(self) -> bool:
        try:
            return self.get("/ready")[0] == 200
        except OSError:
            return False


def _rows(samples: Samples, table: str) -> Counter[str]:
    found = Counter[str]()
    for (name, labels), value in samples.items():
        if name == "historian_rows_total" and ("table", table) in labels:
            found[dict(labels)["operation"]] += int(value)
    return found


def _config(server: Server, path: Path, port: int) -> Path:
    file = path / "shop.yaml"
    file.write_text(
        f"name: shop\nsource: {{type: {server.flavor}, host: {server.host}, port: {server.port}, user: {server.user}, "
        f"password: '{server.password}', tables: ['shop.*'], start: earliest}}\nhistory: {{store: 'sqlite:///{path}/store.db'}}\n"
        f"sinks: [{{type: delta, path: lake}}, {{type: parquet, path: files}}]\nrun: {{trigger: 200 ms, http: 127.0.0.1:{port}}}\n"
    )
    return file


def test_numbers_of_a_run_agree_with_lake_source_and_store(mysql9: Server, spark: SparkSession, tmp_path: Path) -> None:
    mysql9.clear()
    mysql9.sql("CREATE DATABASE shop")
    mysql9.sql("CREATE TABLE shop.t (id INT PRIMARY KEY, v INT)")
    mysql9.sql("CREATE TABLE shop.s (id INT PRIMARY KEY, v INT)")
    config = _config(mysql9, tmp_path, port := free_port())
    endpoint = _Endpoint(port)
    seen: dict[str, Any] = {}

    def use() -> None:
        try:
            until = time.monotonic() + LONGEST_S
            while not endpoint.is_ready() and time.monotonic() < until:
                time.sleep(0.2)
            mysql9.sql("INSERT INTO shop.t VALUES (1, 1), (2, 2), (3, 3)")
            mysql9.sql("INSERT INTO shop.s VALUES (1, 1)")
            mysql9.sql("ALTER TABLE shop.t ADD COLUMN w INT")
            mysql9.sql("UPDATE shop.t SET w = 5 WHERE id = 2")
            mysql9.sql("DELETE FROM shop.t WHERE id = 3")
            seen["samples"] = endpoint.wait(
                lambda found: (
                    _rows(found, "shop.t")["retract"] == 1
                    and ("historian_lag_seconds", ()) in found
                    and not found["historian_lag_seconds", ()]
                )
            )
            seen["status"] = json.loads(endpoint.get("/status")[1])
            shown = CliRunner().invoke(app, ["status", str(config), "--json", "--no-targets"])
            seen["cli"] = json.loads(shown.stdout)
            seen["pages"] = {path: endpoint.get(path) for path in ("/health", "/ready", "/none")}
        finally:
            os.kill(os.getpid(), signal.SIGTERM)

    thread = threading.Thread(target=use)
    thread.start()
    run(load_config(config), spark=spark)
    thread.join()

    samples = seen["samples"]
    lake = spark.read.format("delta").load(str(tmp_path / "lake" / "shop_t_changes")).collect()
    assert _rows(samples, "shop.t") == Counter(Op(row.op).name.lower() for row in lake)
    assert samples["historian_last_event_timestamp_seconds", ()] >= max(row.event_time for row in lake).timestamp()
    assert samples["historian_lease_held", ()] == 1
    assert samples["historian_store_up", ()] == 1
    assert 0 < samples["historian_schema_versions", ()] <= seen["cli"]["schema_versions"]
    assert samples["historian_schema_changes_total", (("table", "shop.t"),)] == 2  # CREATE and ALTER
    assert samples["historian_plans_total", ()] == samples["historian_last_plan_number", ()]
    counts = {
        dict(labels)["sink"]: n for (name, labels), n in samples.items() if name == "historian_write_seconds_count"
    }
    assert set(counts) == {"0:delta", "1:parquet"}
    assert len(set(counts.values())) == 1
    assert seen["status"] | {"targets": None} == seen["cli"] | {"ready": True}
    assert {path: status for path, (status, _) in seen["pages"].items()} == {
        "/health": 200,
        "/ready": 200,
        "/none": 404,
    }
    with pytest.raises(OSError, match="refused"):
        endpoint.get("/health")
