"""The check at the log's head: what the history says now against what the database says now."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from connectors.tracking.capture import UNTOLD_LABEL
from historian.names import TableName
from historian.plans.plans import Quarantine
from historian.positions.places import Place
from historian.schema.comparison import differences
from historian.schema.snapshots import Snapshot

if TYPE_CHECKING:
    from connectors.readers.base import Reader
    from connectors.tracking.capture import Capture
    from historian.history.history import History
    from historian.store import Store

__all__ = ["HeadCheck"]

_PAUSE_S = 60.0
_LOOKS = 3
_LOOK_PAUSE_S = 0.2
"""Longer than a server shows a DDL before it is in the log."""


class HeadCheck:
    """Compares the schemas of captured tables with the server's, at the end of the log.

    A difference counts when it is seen twice with the log standing still: a server may show a DDL before it has
    logged it.
    """

    def __init__(
        self,
        capture: Capture,
        store: Store,
        captured: Callable[[TableName], bool],
        clock_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._capture = capture
        self._store = store
        self._captured = captured
        self._clock_s = clock_s
        self._next_s = 0.0
        self._suspects: dict[TableName, str] = {}

    def confirm(self, history: History, reader: Reader) -> None:
        """Compares now, and again at once what differs, since the run ends and has no later look."""
        self._next_s = 0.0
        for _ in range(_LOOKS):
            self.look(history, reader)
            if not self._suspects:
                return
            time.sleep(_LOOK_PAUSE_S)

    @property
    def doubts(self) -> bool:
        """Whether something differed when it was compared last, and is not confirmed yet."""
        return bool(self._suspects)

    def look(self, history: History, reader: Reader) -> None:
        """Compares once a minute, and again at once where something was suspect. Quarantines what differs twice."""
        if self._clock_s() < self._next_s and not self._suspects:
            return
        resolved = history.resolved
        before = reader.end()
        present = self._capture(1, 1, exact=False)
        if not (resolved.covers(before) and before.covers(reader.end())):
            return
        self._next_s = self._clock_s() + _PAUSE_S
        catalog = history.catalog
        stopped = self._store.quarantines()
        found: dict[TableName, str] = {}
        for name in sorted({*catalog.tables, *present.tables}):
            known, seen = catalog.tables.get(name), present.tables.get(name)
            if not self._captured(name) or name in catalog.unknown or (known is not None and known.table_id in stopped):
                continue
            lines = _difference(known, seen, present.unknown.get(name))
            if lines:
                found[name] = "\n".join(lines)
        confirmed = {name: text for name, text in found.items() if self._suspects.get(name) == text}
        self._suspects = {name: text for name, text in found.items() if name not in confirmed}
        place = Place(gtid="", file=resolved.file, offset=resolved.offset, ordinal=0)
        for name, text in confirmed.items():
            known = catalog.tables.get(name)
            reason = f"the database's schema at the log's head is not the one that the log led to\n{text}"
            self._store.quarantine(known.table_id if known else 0, name, Quarantine(place=place, reason=reason))


def _difference(known: Snapshot | None, seen: Snapshot | None, unknown: str | None) -> tuple[str, ...]:
    if known is None:
        return ("expected no such table, found one",)
    if seen is None and unknown is not None and unknown.startswith(UNTOLD_LABEL):
        return ()  # what the server does not print it cannot contradict
    if seen is None:
        return (f"expected the table, found {unknown or 'none'}",)
    return differences(known, seen)
