"""How far a run is, noted as the offsets of a consumer group: for monitors of brokers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from connectors.monitoring.observer import Observer
from connectors.readers.kafka.group import Group
from connectors.tracking.sources import kafka_settings

if TYPE_CHECKING:
    from connectors.config import KafkaSource
    from connectors.monitoring.observer import WrittenPlan

__all__ = ["noted_offsets"]


class _Noted(Observer):
    def __init__(self, group: Group) -> None:
        self._group = group

    def written(self, written: WrittenPlan) -> None:
        self._group.note(dict(written.plan.end.offsets))


@contextmanager
def noted_offsets(source: KafkaSource) -> Iterator[Observer]:
    """An observer that notes the end of each plan that all sinks hold as the offsets of the source's group."""
    group = Group(kafka_settings(source), source.group)
    try:
        yield _Noted(group)
    finally:
        group.close()
