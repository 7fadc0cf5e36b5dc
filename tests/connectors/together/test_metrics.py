"""The metrics of many connectors of one process."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

from prometheus_client import CollectorRegistry, Gauge
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.exposition import generate_latest
from prometheus_client.registry import Collector

from connectors.together.endpoint import Together


class _Process(Collector):
    """Counts how often the process is looked at."""

    def __init__(self) -> None:
        self.looks = 0

    def collect(self) -> Iterator[Metric]:
        self.looks += 1
        yield GaugeMetricFamily("process_open_fds", "Open files.", self.looks)


def _watched(number: int) -> Any:
    own = CollectorRegistry()
    Gauge("historian_last_plan_number", "Number of the last plan.", registry=own).set(number)
    return SimpleNamespace(pages=None, own=own, observer=None)


def test_series_of_connectors_have_their_names_and_the_process_is_looked_at_once_for_all() -> None:
    process, looked_at = CollectorRegistry(), _Process()
    process.register(looked_at)
    together = Together({f"c{number}": _watched(number) for number in range(3)}, process)

    lines = [line for line in generate_latest(together.registry).decode().splitlines() if not line.startswith("#")]

    assert lines == [
        'historian_last_plan_number{connector="c0"} 0.0',
        'historian_last_plan_number{connector="c1"} 1.0',
        'historian_last_plan_number{connector="c2"} 2.0',
        'historian_connector_failed{connector="c0"} 0.0',
        'historian_connector_failed{connector="c1"} 0.0',
        'historian_connector_failed{connector="c2"} 0.0',
        "process_open_fds 1.0",
    ]
    assert looked_at.looks == 1
