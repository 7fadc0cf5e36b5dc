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
from connectors.monitoring.process import joined, process_registry
from connectors.monitoring.store_metrics import StoreMetrics
from historian.store import Store
from monitoring.prometheus import promtool

ROOT = Path(__file__).parents[3]
OF_EVERY_PROGRAM = re.compile(r"process_(?!arrow|java|resident)")
GRAFANA_COLUMNS = 24
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
    process = process_registry(MemoryMetrics(lambda: HeapUse(used=1, limit=2), os.getpid))
    endings = {"counter": ("_total",), "gauge": ("",), "histogram": ("_bucket", "_count", "_sum")}
    return {f"{f.name}{end}" for f in joined(metrics.registry, process).collect() for end in endings.get(f.type, ("",))}


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


def test_compose_starts_what_is_in_the_repository_and_prometheus_finds_its_connector() -> None:
    services = yaml.safe_load((DOCKER / "compose.yaml").read_text())["services"]
    mounted = [volume.split(":") for service in services.values() for volume in service.get("volumes", ())]
    (job,) = yaml.safe_load((DOCKER / "prometheus.yaml").read_text())["scrape_configs"]
    (provider,) = yaml.safe_load((DOCKER / "grafana/provisioning/dashboards/historian.yaml").read_text())["providers"]
    (source,) = yaml.safe_load((DOCKER / "grafana/provisioning/datasources/prometheus.yaml").read_text())["datasources"]
    files = [(name, to) for name, to, *_ in mounted if name.startswith("./")]

    assert {"prometheus", "grafana", "historian"} == set(services)
    assert [] == [name for name, _ in files if not (DOCKER / name).exists()]
    assert provider["options"]["path"] in {to for _, to in files}
    assert source["url"] == "http://prometheus:9090"
    assert [{"names": ["historian"], "type": "A", "port": 9464}] == job["dns_sd_configs"]
    image = services["historian"]["build"]
    assert (DOCKER / image["context"] / image["dockerfile"]).is_file()
    assert all(":" in services[name]["image"] for name in ("prometheus", "grafana")), "a release is named"


def test_panels_stand_side_by_side_and_ask_with_what_the_dashboard_has() -> None:
    dashboard = json.loads((DOCKER / "grafana/dashboards/historian.json").read_text())
    panels, variables = dashboard["panels"], {each["name"] for each in dashboard["templating"]["list"]}
    taken: set[tuple[int, int]] = set()
    for panel in panels:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken, panel["title"]
        assert max(x for x, _ in cells) < GRAFANA_COLUMNS
        taken |= cells
        assert {"type": "prometheus", "uid": "${source}"} == panel["datasource"]
        assert len({target["refId"] for target in panel["targets"]}) == len(panel["targets"]) > 0
        used = {name for target in panel["targets"] for name in re.findall(r"\$(\w+)", target["expr"])}
        assert used <= variables | {"__rate_interval"}
    assert len({panel["id"] for panel in panels}) == len(panels)
