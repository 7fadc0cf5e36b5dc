"""When the statements of a history were executed, and where their source's log has them, told to readers whose partitions may bring rows from before and from behind one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from connectors.readers.base import PartitionedLog, Reader

if TYPE_CHECKING:
    from historian.history.history import History

__all__ = ["tell_statements"]


def tell_statements(reader: Reader, history: Callable[[], History]) -> None:
    """Has scans of *reader* know the statements of *history*, where its log has partitions."""
    if isinstance(reader, PartitionedLog):
        reader.stated = lambda: _stated(history())


def _stated(history: History) -> Iterator[tuple[int, str]]:
    return ((entry.event_time_us, entry.source) for entry in history.entries if entry.place is not None)
