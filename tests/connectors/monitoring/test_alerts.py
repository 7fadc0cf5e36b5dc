"""The alerts and the dashboard that are shipped, by Prometheus' own tool and against the metrics that there are."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import typer
import yaml

from connectors.cli import app
from connectors.config import load_config
from connectors.monitoring.memory import HeapUse, MemoryMetrics
from connectors.monitoring.metrics import Metrics
from connectors.monitoring.store_metrics import StoreMetrics
from historian.store import Store
from monitoring.prometheus import promtool

ROOT = Path(__file__).parents[3]
OF_EVERY_PROGRAM = re.compile(r"process_(?!arrow|java|resident)")
DOCKER = ROOT / "docker" / "monitoring"
NAME = re.compile(r"(?:historian|process|jvm)_[a-z_]+")


def _families(directory: Path) -> set[str]:
    """Names of all metrics of ours, as samples have them."""
    file = directory / "shop.yaml"
    store = f"sqlite:///{directory}/store.db"
    file.write_text(f"name: shop\nsource: {{type: mysql, host: h, user: u}}\nhistory: {{store: '{store}'}}\n")
    Store.open(store).close()
    metrics = Metrics("shop", "here", ("delta",), tables=10)
    metrics.registry.register(StoreMetrics(load_config(file), tables=10, kept_s=lambda: 60.0))
    metrics.registry.register(MemoryMetrics(lambda: HeapUse(used=1, limit=2), os.getpid))
    endings = {"counter": ("_total",), "gauge": ("",), "histogram": ("_bucket", "_count", "_sum")}
    return {f"{f.name}{end}" for f in metrics.registry.collect() for end in endings.get(f.type, ("",))}


def test_prometheus_accepts_configuration_and_alerts_and_the_alerts_tell_what_they_should() -> None:
    assert "SUCCESS: 11 rules found" in promtool("check", "config", "prometheus.yaml", directory=DOCKER)
    assert "SUCCESS" in promtool("test", "rules", "alerts.test.yaml", directory=DOCKER)


def test_alerts_and_panels_ask_for_metrics_that_there_are(tmp_path: Path) -> None:
    (group,) = yaml.safe_load((DOCKER / "alerts.yaml").read_text())["groups"]
    dashboard = json.loads((DOCKER / "grafana/dashboards/historian.json").read_text())
    texts = [rule["expr"] for rule in group["rules"]]
    texts += [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]

    assert {name for text in texts for name in NAME.findall(text)} <= _families(tmp_path)


def test_the_page_on_monitoring_names_every_metric(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "how-to" / "monitor.md").read_text()
    ours = {re.sub(r"_(bucket|count|sum)$", "", name) for name in _families(tmp_path) if NAME.match(name)}
    ours = {name for name in ours if not OF_EVERY_PROGRAM.match(name)}

    assert ours <= set(NAME.findall(page))


def test_what_the_alerts_advise_is_in_the_repository() -> None:
    for page in re.findall(r"docs/[a-z/-]+\.md", (DOCKER / "alerts.yaml").read_text()):
        assert (ROOT / page).is_file()
    commands = set(re.findall(r"`historian ([a-z-]+)`", (DOCKER / "alerts.yaml").read_text()))
    assert commands <= set(typer.main.get_command(app).commands)  # type: ignore[attr-defined]
