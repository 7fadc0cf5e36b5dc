"""Which tables a workload has at the moment, shared by its writers."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from historian.names import TableName

__all__ = ["Tables"]


@dataclass(slots=True)
class Entry:
    name: TableName
    narrow: bool
    hidden: bool = False


class Tables:
    """Names of tables, for any thread. A name may be out of date when it is used: the server then says so."""

    def __init__(self, *, can_rename_column: bool) -> None:
        self.can_rename_column = can_rename_column
        self._lock = threading.Lock()
        self._entries: list[Entry] = []

    def add(self, name: TableName, *, narrow: bool) -> None:
        with self._lock:
            self._entries.append(Entry(name, narrow))

    def remove(self, name: TableName) -> None:
        with self._lock:
            self._entries = [entry for entry in self._entries if entry.name != name]

    def names(self) -> list[TableName]:
        with self._lock:
            return [entry.name for entry in self._entries if not entry.hidden]

    def is_narrow(self, name: TableName) -> bool:
        with self._lock:
            return any(entry.name == name and entry.narrow for entry in self._entries)

    @contextmanager
    def hidden(self, name: TableName) -> Iterator[Entry]:
        """Takes a table out of sight while its name changes."""
        with self._lock:
            entry = next(entry for entry in self._entries if entry.name == name)
            entry.hidden = True
        try:
            yield entry
        finally:
            entry.hidden = False
