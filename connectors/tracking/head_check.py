"""The check at the log's head: what the history says now against what the database says now."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from connectors.tracking.capture.catalog import UNTOLD_LABEL
from historian.names import TableName
from historian.plans.plans import Quarantine
from historian.positions.places import Place
from historian.schema.comparison import differences
from historian.schema.snapshots import Catalog, Snapshot

if TYPE_CHECKING:
    from connectors.readers.base import Reader
    from connectors.tracking.capture.shared import HeadCaptures
    from historian.history.history import History
    from historian.positions import LogPosition
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
        captures: HeadCaptures,
        store: Store,
        captured: Callable[[TableName], bool],
        clock_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._captures = captures
        self._store = store
        self._captured = captured
        self._clock_s = clock_s
        self._next_s = 0.0
        self._suspects: dict[TableName, str] = {}

    def close(self) -> None:
        """Ends looks at the server: what others capture need not serve them any more."""
        self._captures.close()

    def confirm(self, history: History, reader: Reader) -> None:
        """Compares now, and again at once what differs, since the run ends and has no later look."""
        self._next_s = 0.0
        for _ in range(_LOOKS):
            self._look(history, reader, anew=True)
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
        # What was suspect must differ in a capture of its own too.
        self._look(history, reader, anew=bool(self._suspects))

    def _look(self, history: History, reader: Reader, *, anew: bool) -> None:
        resolved = history.resolved
        present = self._at_head(resolved, reader, anew=anew)
        if present is None:
            return
        self._next_s = self._clock_s() + _PAUSE_S
        catalog = history.catalog
        found = self._differing(catalog, present)
        if found:
            stopped = self._store.quarantines()
            known_ids = {name: known.table_id for name in found if (known := catalog.tables.get(name)) is not None}
            found = {name: text for name, text in found.items() if known_ids.get(name) not in stopped}
        confirmed = {name: text for name, text in found.items() if self._suspects.get(name) == text}
        self._suspects = {name: text for name, text in found.items() if name not in confirmed}
        place = Place(gtid="", file=resolved.file, offset=resolved.offset, ordinal=0)
        for name, text in confirmed.items():
            known = catalog.tables.get(name)
            reason = f"the database's schema at the log's head is not the one that the log led to\n{text}"
            self._store.quarantine(known.table_id if known else 0, name, Quarantine(place=place, reason=reason))

    def _at_head(self, resolved: LogPosition, reader: Reader, *, anew: bool) -> Catalog | None:
        """What the server held at a moment at which the log led up to *resolved*; None where the log goes on."""
        if not anew and (standing := self._captures.standing_at(resolved, reader)) is not None:
            return standing
        before = reader.end()
        present = self._captures.now()
        return present if resolved.covers(before) and before.covers(reader.end()) else None

    def _differing(self, catalog: Catalog, present: Catalog) -> dict[TableName, str]:
        """How captured tables of the one differ from those of the other."""
        databases = self._captures.databases
        found: dict[TableName, str] = {}
        for name in sorted({*catalog.tables, *present.tables}):
            if databases is not None and name.database not in databases:
                continue
            if not self._captured(name) or name in catalog.unknown:
                continue
            lines = _difference(catalog.tables.get(name), present.tables.get(name), present.unknown.get(name))
            if lines:
                found[name] = "\n".join(lines)
        return found


def _difference(known: Snapshot | None, seen: Snapshot | None, unknown: str | None) -> tuple[str, ...]:
    if known is None:
        return ("expected no such table, found one",)
    if seen is None and unknown is not None and unknown.startswith(UNTOLD_LABEL):
        return ()  # what the server does not print it cannot contradict
    if seen is None:
        return (f"expected the table, found {unknown or 'none'}",)
    return differences(known, seen)
