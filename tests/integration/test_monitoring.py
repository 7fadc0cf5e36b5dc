"""What the endpoint of a run says is what the lake, the source and the store hold, and what a real Prometheus makes of it."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

from connectors.cli import app
from connectors.config import load_config
from connectors.pipeline.run import run
from databases.servers import Server, free_port
from historian.changelog.operations import Op
from monitoring.endpoints import Endpoint, Samples
from monitoring.prometheus import Prometheus, started_prometheus

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DOCKER = Path(__file__).parents[2] / "docker" / "monitoring"
LONGEST_S = 120


def _rows(samples: Samples, table: str) -> Counter[str]:
    found = Counter[str]()
    for (name, labels), value in samples.items():
        if name == "historian_rows_total" and ("table", table) in labels:
            found[dict(labels)["operation"]] += int(value)
    return found


def _seen_by(prometheus: Prometheus) -> dict[str, Any]:
    """What Prometheus holds of two connectors, one of which is not there."""
    until = time.monotonic() + LONGEST_S
    while not (prometheus.ask("alerts")["alerts"] and prometheus.samples("historian_lease_held")):
        assert time.monotonic() < until
        time.sleep(0.2)
    dashboard = json.loads((DOCKER / "grafana/dashboards/historian.json").read_text())
    expressions = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    return {
        "rows": prometheus.samples('historian_rows_total{table="shop.t", operation="append"}'),
        "panels": {
            text: prometheus.samples(text.replace("$instance", ".*").replace("$__rate_interval", "1m"))
            for text in expressions
        },
        "alerts": {each["labels"]["alertname"]: each["state"] for each in prometheus.ask("alerts")["alerts"]},
    }


def _config(server: Server, path: Path, port: int) -> Path:
    file = path / "shop.yaml"
    file.write_text(
        f"name: shop\nsource: {{type: {server.flavor}, host: {server.host}, port: {server.port}, user: {server.user}, "
        f"password: '{server.password}', tables: ['shop.*'], start: earliest}}\nhistory: {{store: 'sqlite:///{path}/store.db'}}\n"
        f"sinks: [{{type: delta, path: lake}}, {{type: parquet, path: files}}]\nrun: {{trigger: 200 ms, http: 127.0.0.1:{port}}}\n"
    )
    return file


def _write(server: Server) -> None:
    server.sql("INSERT INTO shop.t VALUES (1, 1), (2, 2), (3, 3)")
    server.sql("INSERT INTO shop.s VALUES (1, 1)")
    server.sql("ALTER TABLE shop.t ADD COLUMN w INT")
    server.sql("UPDATE shop.t SET w = 5 WHERE id = 2")
    server.sql("DELETE FROM shop.t WHERE id = 3")


def _looked(endpoint: Endpoint, config: Path, targets: list[str]) -> dict[str, Any]:
    """What the endpoint, the terminal and Prometheus say where the sinks hold the whole log."""
    samples = endpoint.wait(
        lambda found: _rows(found, "shop.t")["retract"] == 1 and not found["historian_lag_seconds", ()]
    )
    state = json.loads(endpoint.get("/status")[1])
    shown = CliRunner().invoke(app, ["status", str(config), "--json"])
    with started_prometheus(config.parent, targets, DOCKER / "alerts.yaml") as prometheus:
        seen = _seen_by(prometheus)
    pages = {path: endpoint.get(path)[0] for path in ("/health", "/ready", "/none")}
    return {"samples": samples, "status": state, "cli": json.loads(shown.stdout), "prometheus": seen, "pages": pages}


def test_numbers_of_a_run_agree_with_lake_source_and_store(mysql9: Server, spark: SparkSession, tmp_path: Path) -> None:
    mysql9.clear()
    mysql9.sql("CREATE DATABASE shop")
    for table in ("t", "s"):
        mysql9.sql(f"CREATE TABLE shop.{table} (id INT PRIMARY KEY, v INT)")
    config = _config(mysql9, tmp_path, port := free_port())
    endpoint = Endpoint(port)
    seen: dict[str, Any] = {}

    def use() -> None:
        try:
            until = time.monotonic() + LONGEST_S
            while not endpoint.is_ready() and time.monotonic() < until:
                time.sleep(0.2)
            _write(mysql9)
            seen.update(_looked(endpoint, config, [f"127.0.0.1:{port}", f"127.0.0.1:{free_port()}"]))
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
    commits = {
        dict(labels)["sink"]: n for (name, labels), n in samples.items() if name == "historian_commit_seconds_count"
    }
    assert commits["1:parquet"] == counts["1:parquet"] < commits["0:delta"]
    assert samples["process_java_resident_memory_bytes", ()] > samples["process_arrow_memory_bytes", ()] >= 0
    assert seen["status"] | {"targets_noted": True} == seen["cli"] | {"ready": True}
    assert {"shop.t"} <= {row["table"] for row in seen["cli"]["targets"]}
    assert seen["pages"] == {"/health": 200, "/ready": 200, "/none": 404}
    assert [value for _, value in seen["prometheus"]["rows"]] == [3]
    assert "HistorianDown" in seen["prometheus"]["alerts"]
    assert "HistorianNotReplicating" not in seen["prometheus"]["alerts"]
    shown = {text.partition("{")[0] for text, samples in seen["prometheus"]["panels"].items() if samples}
    assert {"sum(historian_lease_held", "max(historian_lag_seconds", "process_resident_memory_bytes"} <= shown
    with pytest.raises(OSError, match="refused"):
        endpoint.get("/health")
