"""What a history knows, told to readers whose partitions may bring rows from before and from behind a statement, or of tables that they do not name."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import TYPE_CHECKING

from connectors.readers.base import PartitionedLog, Reader

if TYPE_CHECKING:
    from historian.history.history import History
    from historian.names import TableName
    from historian.store import Store

__all__ = ["tell_delivered", "tell_statements"]


def tell_statements(reader: Reader, history: Callable[[], History]) -> None:
    """Has scans of *reader* know the statements of *history* and what columns they left, where its log has partitions."""
    if isinstance(reader, PartitionedLog):
        reader.stated = lambda: _stated(history())
        reader.holds = lambda table, columns: _holds(history(), table, columns)


def tell_delivered(reader: Reader, history: Callable[[], History], store: Store) -> None:
    """Has scans of *reader* know of which tables partitions had rows, as far as plans in *store* have them."""
    if isinstance(reader, PartitionedLog):
        reader.delivered = lambda: _delivered(history(), store)


def _delivered(history: History, store: Store) -> Iterator[tuple[str, TableName]]:
    return ((file, versions[-1].name) for file, table in store.passages() if (versions := history.versions_of(table)))


def _holds(history: History, table: TableName, columns: Collection[str]) -> bool:
    snapshot = history.catalog.tables.get(table)
    return snapshot is not None and {column.name for column in snapshot.columns}.issuperset(columns)


def _stated(history: History) -> Iterator[tuple[int, str]]:
    return ((entry.event_time_us, entry.source) for entry in history.entries if entry.place is not None)
