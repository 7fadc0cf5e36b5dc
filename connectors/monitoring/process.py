"""Numbers of the whole process, the same for all connectors in it, which are read once for all of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry
from prometheus_client.platform_collector import PlatformCollector
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector

from connectors.monitoring.memory import MemoryMetrics

if TYPE_CHECKING:
    from prometheus_client.core import Metric

__all__ = ["joined", "process_registry"]


def process_registry(memory: MemoryMetrics | None = None) -> CollectorRegistry:
    """What the system, Python, Arrow and Java tell of this process. *memory*: by default as it is."""
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    PlatformCollector(registry=registry)
    registry.register(MemoryMetrics() if memory is None else memory)
    return registry


def joined(*registries: CollectorRegistry) -> CollectorRegistry:
    """The series of all *registries*, which have different names, in order."""
    registry = CollectorRegistry()
    registry.register(_All(registries))
    return registry


class _All(Collector):
    def __init__(self, registries: tuple[CollectorRegistry, ...]) -> None:
        self._registries = registries

    def collect(self) -> Iterator[Metric]:
        """The families of one after the other."""
        for registry in self._registries:
            yield from registry.collect()
