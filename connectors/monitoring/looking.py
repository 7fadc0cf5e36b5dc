"""Looks at a connector's state again and again: its store stays open, its history grows, and the source is asked seldom for what does not change."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from connectors.config import ServerSource
from connectors.monitoring.retention import KeptLog
from connectors.monitoring.state import connector_state
from connectors.tracking.recorded import recorded_store
from historian.errors import HistorianError, SourceError, StoreError
from historian.history.history import History

if TYPE_CHECKING:
    from connectors.config import PipelineConfig
    from connectors.readers.base import Reader
    from historian.store import Store

__all__ = ["GrownHistory", "HeldStore", "Looks"]

_ENDS = "nothing is looked at any more: the run ends"


class HeldStore:
    """The store of *config* for who looks at it now and then: opened once, and anew behind an error, until it is closed. From any thread."""

    def __init__(self, config: PipelineConfig) -> None:
        self._config = config
        self._lock = threading.Lock()
        self._store: Store | None = None
        self._closed = threading.Event()

    @contextmanager
    def looked_at(self) -> Iterator[Store | None]:
        """The store as it is at one moment, inside of the ``with``; None where there is none yet.

        Raises:
            StoreError: it cannot be opened, or was closed.
        """
        with self._lock:
            if self._closed.is_set():
                raise StoreError(_ENDS)
            if self._store is None:
                self._store = recorded_store(self._config)
            store = self._store
        if store is None:
            yield None
            return
        try:
            with store.together():
                yield store
        except HistorianError:
            self._drop()
            raise
        finally:
            if self._closed.is_set():  # What was read since has opened it again.
                store.close()

    def close(self) -> None:
        """Closes it for good, be somebody looking at it still or not."""
        self._closed.set()
        self._drop()

    def _drop(self) -> None:
        with self._lock:
            store, self._store = self._store, None
        if store is not None:
            store.close()


class GrownHistory:
    """The history of a store, read whole once and then what is new of it. For one thread at a time."""

    def __init__(self) -> None:
        self._generation = ""
        self._history = History()

    @property
    def history(self) -> History:
        """As of the last look."""
        return self._history

    def look(self, store: Store) -> bool:
        """Takes up new versions; whether there are any. A store that was made anew or rebuilt has another history, and one whose begin was forgotten too.

        Raises:
            StoreError: the store cannot be read.
        """
        last, generation = store.last_number(), store.generation()
        if generation == self._generation and last == self._history.last_number:
            return False
        if generation != self._generation or not self._history.last_number or not self._follows(store):
            self._history = store.history()
        self._generation = generation
        return True

    def _follows(self, store: Store) -> bool:
        """Whether what was recorded since follows what is known, which it then is too."""
        try:
            for entry in store.entries(self._history.last_number):
                self._history.record(entry)
        except HistorianError:
            return False
        return True


class Looks:
    """What :func:`connectors.monitoring.state.connector_state` tells of a connector, asked for often. For one thread at a time, and one that closes it.

    Args:
        store: of *config*.
        kept_s: for how long the source keeps its log.
    """

    def __init__(self, config: PipelineConfig, store: HeldStore, kept_s: KeptLog) -> None:
        self._config = config
        self._store = store
        self._kept_s = kept_s
        self._grown = GrownHistory()
        self._lock = threading.Lock()
        self._reader: Reader | None = None
        self._closed = threading.Event()

    def state(self, *, lists_all: bool = False) -> dict[str, Any]:
        """As it is now. The history is read where that needs it, and is kept from then on.

        Raises:
            StoreError: the store cannot be read; a later look may.
            SourceError: this was closed.
        """
        with self._store.looked_at() as store:
            reader = self._source()
            try:
                found = connector_state(
                    self._config,
                    store,
                    history=partial(self._history, store),
                    reader=reader,
                    kept_s=self._kept_s.known,
                    lists_all=lists_all,
                )
            finally:
                if self._closed.is_set() and reader is not None:  # What was asked since has connected again.
                    reader.close()
        if "unknown" in found["lag"]:
            self._drop()
        return found

    def close(self) -> None:
        """Closes the connection to the source for good, be it asked still or not."""
        self._closed.set()
        self._drop()

    def _drop(self) -> None:
        with self._lock:
            reader, self._reader = self._reader, None
        if reader is not None:
            reader.close()

    def _history(self, store: Store | None) -> History:
        if store is not None:
            self._grown.look(store)
        return self._grown.history

    def _source(self) -> Reader | None:
        """What is asked where the log ends, with a connection that stays; None: one is made for each look."""
        from connectors.tracking.sources import make_reader

        with self._lock:
            if self._closed.is_set():
                raise SourceError(_ENDS)
            if self._reader is None and isinstance(self._config.source, ServerSource):
                self._reader = make_reader(self._config.source)
            return self._reader
