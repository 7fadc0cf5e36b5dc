"""Where the row of each key is, in memory: sorted arrays, 24 bytes a key."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from historian.normalizing.keys import KeyHashes

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["NOWHERE", "KeyIndex", "lexsorted"]

NOWHERE = -1
_SMALL_KEYS = 1 << 16
_GROWTH = 8
"""New keys stand apart until they are this part of all: to put them among all copies all."""


@dataclass(slots=True)
class _Level:
    """Keys in order, each with its place."""

    keys: KeyHashes
    places: NDArray[np.int64]

    def positions(self, wanted: KeyHashes) -> NDArray[np.int64]:
        """Where each of *wanted*, which ascend, stands; -1: nowhere."""
        at = np.searchsorted(self.keys.high, wanted.high)
        found = np.full(len(wanted), -1, np.int64)
        open_ = np.arange(len(wanted))
        while len(open_):
            inside = at[open_] < len(self.keys)
            open_ = open_[inside]
            here = at[open_]
            open_ = open_[self.keys.high[here] == wanted.high[open_]]
            here = at[open_]
            is_it = self.keys.low[here] == wanted.low[open_]
            found[open_[is_it]] = here[is_it]
            # Another key has the same first number: its second one is compared next.
            open_ = open_[~is_it]
            at[open_] += 1
        return found


def _empty() -> _Level:
    return _Level(KeyHashes(np.empty(0, np.int64), np.empty(0, np.int64)), np.empty(0, np.int64))


class KeyIndex:
    """Places by key. Of a key that is gone :data:`NOWHERE` is the place."""

    def __init__(self, keys: KeyHashes | None = None, places: NDArray[np.int64] | None = None) -> None:
        self._main = _empty() if keys is None or places is None else _Level(keys, places)
        self._new = _empty()

    def __len__(self) -> int:
        return len(self._main.keys) + len(self._new.keys)

    def find(self, keys: KeyHashes) -> NDArray[np.int64]:
        """The place of each of *keys*, which ascend."""
        found = np.full(len(keys), NOWHERE, np.int64)
        for level in (self._main, self._new):
            if len(level.keys):
                at = level.positions(keys)
                found = np.where(at >= 0, level.places[at], found)
        return found

    def put(self, keys: KeyHashes, places: NDArray[np.int64]) -> NDArray[np.int64]:
        """Gives *keys*, which ascend and are all different, these places; the ones that they had."""
        before = np.full(len(keys), NOWHERE, np.int64)
        is_known = np.zeros(len(keys), np.bool_)
        for level in (self._main, self._new):
            if len(level.keys):
                at = level.positions(keys)
                known = at >= 0
                before[known] = level.places[at[known]]
                level.places[at[known]] = places[known]
                is_known |= known
        if not is_known.all():
            self._new = _merged(self._new, _Level(keys.take(~is_known), places[~is_known]))
            if len(self._new.keys) > max(_SMALL_KEYS, len(self._main.keys) // _GROWTH):
                self._main, self._new = _merged(self._main, self._new), _empty()
        return before

    def between(self, first: int, count: int) -> tuple[KeyHashes, NDArray[np.int64], int | None]:
        """About *count* keys whose first number is at least *first*, in order, their places, and the first number behind; None: there is none."""
        main, new = self._main, self._new
        longest = main if len(main.keys) >= len(new.keys) else new
        begin = int(np.searchsorted(longest.keys.high, first))
        end = begin + count
        behind = int(longest.keys.high[end]) if end < len(longest.keys) else None
        parts = []
        for level in (main, new):
            low = int(np.searchsorted(level.keys.high, first))
            high = len(level.keys) if behind is None else int(np.searchsorted(level.keys.high, behind))
            parts.append((level.keys.take(np.arange(low, high)), level.places[low:high]))
        keys = KeyHashes.joined([keys for keys, _ in parts])
        places = np.concatenate([places for _, places in parts])
        order = lexsorted(keys)
        return keys.take(order), places[order], behind

    def places(self) -> Iterator[NDArray[np.int64]]:
        """The places of all keys."""
        yield self._main.places
        yield self._new.places


def lexsorted(keys: KeyHashes) -> NDArray[np.intp]:
    """What puts keys in order; those that are the same stay as they stand."""
    order = np.argsort(keys.high, kind="stable")
    high, low = keys.high[order], keys.low[order]
    if bool(((high[1:] == high[:-1]) & (low[1:] < low[:-1])).any()):
        order = np.lexsort((keys.low, keys.high))
    return order


def _merged(one: _Level, other: _Level) -> _Level:
    """The keys of both, which have none in common."""
    if not len(one.keys):
        return _Level(other.keys, other.places.copy())
    keys = KeyHashes.joined([one.keys, other.keys])
    # Two runs in order: a stable sort merges them.
    order = lexsorted(keys)
    return _Level(keys.take(order), np.concatenate([one.places, other.places])[order])
