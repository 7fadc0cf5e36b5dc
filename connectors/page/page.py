"""Makes the page: one HTML file with all data inside, of what the store, the lake and the run's state tell."""

from __future__ import annotations

import gc
import json
import threading
import zlib
from base64 import b64encode
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from heapq import nlargest
from typing import TYPE_CHECKING, Any

from connectors.page.authors import Authors
from connectors.page.html import written_page
from connectors.page.lake import LakeReader
from connectors.page.overview import HistoryFacts, not_up_to_date, overview
from connectors.page.timelines import timeline

if TYPE_CHECKING:
    from connectors.config import PipelineConfig
    from historian.history.history import History
    from historian.history.versions import Version
    from historian.store import Store

__all__ = ["MOST_LISTED", "Page"]

MOST_LISTED = 2_000
"""Tables on the page of a run: that of all is as large as they are many, and each look would make it anew."""

_LEVEL = 4
"""Of zlib: a higher one costs more time than it saves bytes."""
_KEPT = 4
"""Times as many timelines as are listed stay in memory, about."""
_MANY = 2_000
"""From so many versions on nobody waits for Python to look for garbage among them."""


class Page:
    """The page of the connector of *config*, made again and again: timelines that did not grow are not made anew. For any thread.

    Args:
        live: whether a run serves it, which then says so.
        most: of more captured tables so many are listed: those that are not up to date go first, then those that changed last. None: all are.
    """

    def __init__(self, config: PipelineConfig, *, live: bool = False, most: int | None = None) -> None:
        self._config = config
        self._live = live
        self._most = most
        self._first: frozenset[str] = frozenset()
        self._captured: tuple[tuple[str, int, int], ...] = ()
        self._listed: list[int] = []
        self._lakes = LakeReader(config)
        self._lock = threading.Lock()
        self._generation: object = None
        self._whole: HistoryFacts | None = None
        self._made: dict[int, tuple[int, dict[str, Any], str]] = {}

    def html(self, store: Store | None, state: Mapping[str, Any]) -> str:
        """The page as it is now.

        Args:
            store: the connector's; None: there is none yet.
            state: as :func:`connectors.monitoring.state.connector_state` gives it.

        Raises:
            StoreError: the store cannot be read.
        """
        with self._lock:
            targets = state["targets"] if isinstance(state["targets"], list) else []
            first = frozenset() if self._most is None else frozenset(not_up_to_date(state, targets))
            known = [] if store is None else self._tables(store, first)
            blobs = [blob for _, _, blob in known]
            left_out = len(self._captured) - len(self._listed)
            listed = {facts["name"] for _, facts, _ in known} if left_out else None
            lake = self._lakes.look(targets, listed)
            data = overview(self._config, store, self._whole, state, [(i, facts) for i, facts, _ in known], lake)
        found = [{**row, "system_time": row["system_time"].isoformat(timespec="seconds")} for row in lake.repairs]
        data |= {"live": self._live, "repairs": found, "unread": lake.unread, "left_out": left_out}
        return written_page(data, blobs)

    def _tables(self, store: Store, first: frozenset[str]) -> list[tuple[int, dict[str, Any], str]]:
        """Captured tables, those of the names *first* in any case: id, facts for the list, and the squeezed timeline."""
        last, generation = store.last_number(), (store.generation(), store.horizon())
        is_known = self._whole is not None and generation == self._generation and last == self._whole.last_number
        if is_known and first != self._first and len(self._listed) < len(self._captured):
            self._listed = self._chosen(first)
        self._first = first
        # Of tables that were chosen for a look that failed, nothing was made.
        if not is_known or any(table_id not in self._made for table_id in self._listed):
            if generation != self._generation:
                self._made.clear()
            with _without_garbage(is_large=last > _MANY):
                self._whole = self._read(store)
            self._generation = generation
        return [(table_id, *self._made[table_id][1:]) for table_id in self._listed]

    def _read(self, store: Store) -> HistoryFacts:
        """The history is large once its versions were read, and goes again."""
        history = store.history()
        facts = HistoryFacts.of(history)
        self._captured = tuple(
            (str(names[-1]), number, table_id)
            for table_id, number, names in history.changed()
            if any(map(self._config.source.tables, names))
        )
        self._listed = self._chosen(self._first)
        made = dict(self._timelines(history))
        # Tables are behind now and then: those that are not listed any more will be, and are as they were unless the history grew.
        is_same = self._whole is not None and self._whole.last_number == facts.last_number
        self._made = {**self._made, **made} if is_same and len(self._made) < _KEPT * len(made) else made
        return facts

    def _timelines(self, history: History) -> Iterator[tuple[int, tuple[int, dict[str, Any], str]]]:
        authors = Authors(history.tables)
        origin = history.first_number
        for table_id in self._listed:
            versions = history.read_versions(table_id)
            mark = hash((origin, tuple(version.number for version in versions)))
            held = self._made.get(table_id)
            yield table_id, held if held is not None and held[0] == mark else (mark, *_made(versions, authors))

    def _chosen(self, first: frozenset[str]) -> list[int]:
        """Ids of the captured tables that are listed, ascending; those of the names *first* in any case."""
        most = len(self._captured) if self._most is None else self._most
        captured = ((name in first, number, table_id) for name, number, table_id in self._captured)
        return sorted(table_id for _, _, table_id in nlargest(most, captured))


def _made(versions: tuple[Version, ...], authors: Authors) -> tuple[dict[str, Any], str]:
    made = timeline(versions, authors)
    last = versions[-1]
    names = dict.fromkeys(str(version.name) for version in versions)
    columns = dict.fromkeys(name for lane in made.lanes for _, name, _ in lane.parts if name is not None)
    facts = {
        "name": str(last.name),
        "names": [name for name in names if name != str(last.name)],
        "columns": list(columns),
        "now": 0 if last.snapshot is None else len(last.snapshot.columns),
        "versions": len(versions),
        "last_us": last.entry.event_time_us,
        "schema": made.states[-1],
    }
    text = json.dumps(made.fields(), separators=(",", ":"))
    return facts, b64encode(zlib.compress(text.encode(), _LEVEL)).decode()


@contextmanager
def _without_garbage(*, is_large: bool) -> Iterator[None]:
    """Versions hold each other in no circles, and looking for some among a hundred thousand takes as long as reading them."""
    if not is_large or not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
