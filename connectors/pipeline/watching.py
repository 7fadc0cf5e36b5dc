"""Who is told what a run does."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from connectors.config import KafkaSource
from connectors.monitoring.observer import Observer, Observers

if TYPE_CHECKING:
    from connectors.config import PipelineConfig

__all__ = ["watching"]


@contextmanager
def watching(config: PipelineConfig, observer: Observer | None, *, is_stream: bool) -> Iterator[Observer]:
    """Who is told what a run with *config* does: *observer*, its endpoint, its notifications, a group of the brokers.

    Args:
        is_stream: whether the run goes on until it is ended.
    """
    with ExitStack() as stack:
        observers = [] if observer is None else [observer]
        if config.run.http is not None:
            from connectors.monitoring.endpoint import served

            observers.append(stack.enter_context(served(config)))
        if config.notify is not None or config.run.openlineage is not None:
            from connectors.notifications.notifier import notified

            observers.append(stack.enter_context(notified(config, is_stream=is_stream)))
        if isinstance(config.source, KafkaSource) and config.source.group:
            from connectors.monitoring.group_offsets import noted_offsets

            observers.append(stack.enter_context(noted_offsets(config.source)))
        yield Observers(*observers)
