"""Captures that connectors of one server share within a process: many that begin or look at once ask it little more than one."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable, Iterable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from connectors.readers.base import Reader
    from historian.positions import LogPosition
    from historian.schema.snapshots import Catalog

__all__ = ["Databases", "HeadCaptures", "SharedCaptures", "shared_captures"]

Databases = frozenset[str] | None

_FRESH_S = 60.0


@dataclass(frozen=True, slots=True)
class _Standing:
    """What was captured of *databases* (None: of all), in the course of which the log ended at *end*."""

    catalog: Catalog
    databases: Databases
    end: LogPosition
    begun_s: float


class SharedCaptures:
    """Captures of one server as one user sees it. From any thread. What fails for one is asked again by each that waited for it."""

    def __init__(self, clock_s: Callable[[], float] = time.monotonic) -> None:
        self._clock_s = clock_s
        self._lock = threading.Lock()
        self._running: dict[Hashable, Future[Catalog]] = {}
        self._waiting: dict[Hashable, Future[Catalog]] = {}
        self._looking: dict[object, Databases] = {}
        self._standing: _Standing | None = None
        self._kept: dict[Hashable, _Standing] = {}

    def want(self, databases: Databases) -> object:
        """Notes that somebody will look at these too, so that what others capture serves them. Gives what :meth:`leave` is told."""
        who = object()
        with self._lock:
            self._looking[who] = databases
        return who

    def leave(self, who: object) -> None:
        """Who wanted databases looks no more: from now on nobody captures them for him."""
        with self._lock:
            self._looking.pop(who, None)
            if not self._looking:
                self._standing = None
                self._kept.clear()

    def begun_from_now(self, what: Hashable, ask: Callable[[], Catalog]) -> Catalog:
        """What *ask* gives, or gave another one who asked for *what*: a capture that begins after this call. Raises what *ask* does."""
        with self._lock:
            flight, ahead = self._waiting.get(what), self._running.get(what)
            is_first = flight is None
            if flight is None:
                flight = self._waiting[what] = Future()
        if not is_first:
            return flight.result() if flight.exception() is None else ask()
        try:
            if ahead is not None:
                ahead.exception()  # Whoever comes meanwhile waits for the same next one.
            with self._lock:
                del self._waiting[what]
                self._running[what] = flight
            catalog = ask()
        except BaseException as error:
            flight.set_exception(error)
            raise
        else:
            flight.set_result(catalog)
            return catalog
        finally:
            with self._lock:
                for flights in (self._waiting, self._running):
                    if flights.get(what) is flight:
                        del flights[what]

    def unchanged(self, what: Hashable, end: Callable[[], LogPosition], ask: Callable[[], Catalog]) -> Catalog:
        """What *ask* gives, or gave another one who asked for *what* in the last minute, since when nothing was logged.

        Args:
            end: gives where the log ends.
        """
        place = end()
        with self._lock:
            known, now_s = self._kept.get(what), self._clock_s()
        if known is not None and now_s - known.begun_s < _FRESH_S and _is_same(known.end, place):
            return known.catalog
        catalog = self.begun_from_now(what, ask)
        if _is_same(end(), place):
            with self._lock:
                self._kept[what] = _Standing(catalog, None, place, now_s)
        return catalog

    def standing_at(
        self, place: LogPosition, reader: Reader, databases: Databases, ask: Callable[[Databases], Catalog]
    ) -> Catalog | None:
        """What the server held at a moment of the last minute or now, while its log ended at *place*; None: the log ends elsewhere.

        Args:
            databases: that are wanted; what is given may have those of others too. None: all.
            ask: gives what the server holds of them now.
        """
        with self._lock:
            wanted, known, now_s = _all((databases, *self._looking.values())), self._standing, self._clock_s()
        stands = known is not None and now_s - known.begun_s < _FRESH_S and _is_same(known.end, place)
        if known is not None and stands:
            if _all((known.databases, databases)) == known.databases:
                return known.catalog
            # Who came behind it asks for his own, and with the others when it is renewed: many who begin ask for all but once.
            wanted = databases
        if not _is_same(reader.near_end(), place):
            return None
        catalog = self.begun_from_now(("standing", wanted), lambda: ask(wanted))
        if not _is_same(reader.near_end(), place):
            return None
        if not stands:
            with self._lock:
                self._standing = _Standing(catalog, wanted, place, now_s)
        return catalog


@dataclass(frozen=True, slots=True)
class HeadCaptures:
    """What a server holds now, for who compares it with a history.

    Attributes:
        ask: gives the schemas of databases as they are now, texts as printed.
        databases: that one history is compared in; None: all.
        shared: by all who look at the same server.
    """

    ask: Callable[[Databases], Catalog]
    databases: Databases = None
    shared: SharedCaptures = field(default_factory=SharedCaptures)
    _who: object = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_who", self.shared.want(self.databases))

    def close(self) -> None:
        """Nobody captures for this one any more; it may go on, and then captures what it needs itself."""
        self.shared.leave(self._who)

    def now(self) -> Catalog:
        """As it is after this call."""
        return self.ask(self.databases)

    def standing_at(self, place: LogPosition, reader: Reader) -> Catalog | None:
        """See :meth:`SharedCaptures.standing_at`."""
        return self.shared.standing_at(place, reader, self.databases, self.ask)


def shared_captures(server: Hashable) -> SharedCaptures:
    """Those of *server* that all of this process share."""
    with _lock:
        return _of_servers.setdefault(server, SharedCaptures())


_lock = threading.Lock()
_of_servers: dict[Hashable, SharedCaptures] = {}


def _all(each: Iterable[Databases]) -> Databases:
    named = list(each)
    return None if None in named else frozenset[str]().union(*filter(None, named))


def _is_same(one: LogPosition, other: LogPosition) -> bool:
    """Whether these are one place in a file of one server. Files only grow, so nothing was logged between."""
    return bool(one.file) and (one.server, one.file, one.offset) == (other.server, other.file, other.offset)
