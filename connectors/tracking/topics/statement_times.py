"""What a history knows, told to readers whose partitions may bring rows from before and from behind a statement."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import TYPE_CHECKING

from connectors.readers.base import PartitionedLog, Reader

if TYPE_CHECKING:
    from historian.history.history import History
    from historian.names import TableName

__all__ = ["tell_statements"]


def tell_statements(reader: Reader, history: Callable[[], History]) -> None:
    """Has scans of *reader* know the statements of *history* and what columns they left, where its log has partitions."""
    if isinstance(reader, PartitionedLog):
        reader.stated = lambda: _stated(history())
        reader.holds = lambda table, columns: _holds(history(), table, columns)


def _holds(history: History, table: TableName, columns: Collection[str]) -> bool:
    snapshot = history.catalog.tables.get(table)
    return snapshot is not None and {column.name for column in snapshot.columns}.issuperset(columns)


def _stated(history: History) -> Iterator[tuple[int, str]]:
    return ((entry.event_time_us, entry.source) for entry in history.entries if entry.place is not None)
