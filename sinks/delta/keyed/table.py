"""The state of one table: found by an index in memory, kept in a Delta table, one commit a plan."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from historian.normalizing.keys import KeyHashes
from historian.normalizing.states import KeyedState
from sinks.delta.keyed.cells import parts_in, place_of
from sinks.delta.keyed.index import NOWHERE, lexsorted
from sinks.delta.keyed.stored import LEAST, MOST, Loaded, StoredRange, load, written
from sinks.delta.log.commits import Commit, DataFile
from sinks.delta.log.kernel import CommitConflict

if TYPE_CHECKING:
    import pyarrow as pa

    from sinks.delta.log.kernel import Kernel
    from sinks.delta.log.table_view import TableView

__all__ = ["DOMAIN", "SEVERAL", "StateTable"]

DOMAIN = "historian.state"
SEVERAL = "several"
"""The layout of a state whose rows were encoded with several."""

_RANGE_KEYS = 1 << 18
_CYCLE = 32
"""So many files of changes stand before ranges are written whole; within as many plans all are."""
_MOST_DEAD = 8
"""So many files that hold nothing any more go with one commit."""


@dataclass(slots=True)
class _Staged:
    """What was put and is not kept yet, in order; ``clears``: all that was held went before it."""

    keys: list[KeyHashes] = field(default_factory=list)
    parts: list[int] = field(default_factory=list)
    clears: bool = False


class StateTable(KeyedState):
    """Implements :class:`historian.normalizing.states.KeyedState` in one version of a Delta table, and commits the next one.

    Args:
        view: the version, which the next commit stands on.
    """

    def __init__(self, kernel: Kernel, application: str, view: TableView) -> None:
        self._kernel, self._application, self._view = kernel, application, view
        facts = json.loads(view.domain(DOMAIN) or "{}")
        self._key, self._layout = str(facts.get("key", "")), str(facts.get("layout", ""))
        self._loaded: Loaded | None = None
        self._staged = _Staged()

    @property
    def key(self) -> str:
        """See :class:`historian.normalizing.states.KeyedState`."""
        return self._key

    @property
    def layout(self) -> str:
        """See :class:`historian.normalizing.states.KeyedState`."""
        return self._layout

    @property
    def is_changed(self) -> bool:
        """Whether something was put that is not kept."""
        return bool(self._staged.parts) or self._staged.clears

    def find(self, keys: KeyHashes) -> pa.Array:
        """See :class:`historian.normalizing.states.KeyedState`."""
        held = self._held()
        return held.cells.at(held.index.find(keys))

    def put(self, keys: KeyHashes, rows: pa.Array, *, key: str, layout: str) -> None:
        """See :class:`historian.normalizing.states.KeyedState`."""
        if not len(keys):
            return
        held = self._held()
        part = held.cells.add(rows)
        held.index.put(keys, place_of(part, len(keys)))
        self._staged.keys.append(keys)
        self._staged.parts.append(part)
        self._key = key
        self._layout = layout if self._layout in ("", layout) else SEVERAL

    def clear(self) -> None:
        """See :class:`historian.normalizing.states.KeyedState`."""
        self._loaded = load(())
        self._staged = _Staged(clears=True)
        self._key = self._layout = ""

    def rows(self) -> pa.Array:
        """See :class:`historian.normalizing.states.KeyedState`."""
        held = self._held()
        return held.cells.at(np.concatenate(list(held.index.places()))).drop_null()

    def commit(self, plan: int) -> None:
        """Keeps what was put, with the transaction identifier of *plan*. Whoever is not told that it is kept reads the state anew."""
        held, staged, files = self._held(), self._staged, list[DataFile]()
        before = tuple(held.files)
        if staged.parts:
            part, keys = _joined(held, staged)
            files += self._stored(held, part, keys, plan)
            held.changes.add(part)
        if len(held.changes) >= _CYCLE:
            for _ in range(-(-len(held.index) // (_RANGE_KEYS * _CYCLE))):
                files += self._range(held, plan)
        live = parts_in(list(held.index.places()))
        bounding = held.bounding()
        dead = [part for part in before if (part >= len(live) or not live[part]) and part not in bounding]
        dead = dead if len(dead) >= _MOST_DEAD else []
        commit = Commit(
            files=files,
            clear=staged.clears,
            removed=() if staged.clears else [path for part in dead for path in held.files[part]],
            domains={DOMAIN: json.dumps({"key": self._key, "layout": self._layout})},
        )
        try:
            self._view = self._kernel.commit(self._view, self._application, plan, commit)
        except CommitConflict:
            # OPTIMIZE may have come in between, or our own commit, whose answer was lost.
            newest = self._kernel.view(self._view.path) or self._view
            if newest.transaction(self._application) < plan:
                there = set(newest.files())
                commit = replace(commit, removed=[path for path in commit.removed if path in there])
                newest = self._kernel.commit(newest, self._application, plan, commit)
            self._view = newest
        for part in dead:
            held.cells.drop(part)
            held.changes.discard(part)
            held.ranges.pop(part, None)
            del held.files[part]
        self._staged = _Staged()

    def take_whole(self, newest: TableView) -> None:
        """What is held takes the place of all that *newest* holds, with the next commit: this was an earlier version of the state."""
        held = self._held()
        keys, places, _ = held.index.between(LEAST, len(held.index))
        rows = held.cells.at(places)
        is_there = np.asarray(rows.is_valid())
        key, layout = self._key, self._layout
        self.clear()
        self._view = newest
        self.put(keys.take(is_there), rows.drop_null(), key=key, layout=layout)
        self._layout = layout

    def _held(self) -> Loaded:
        if self._loaded is None:
            self._loaded = load(self._view.files())
        return self._loaded

    def _stored(
        self, held: Loaded, part: int, keys: KeyHashes, plan: int, bounds: tuple[int, int] | None = None
    ) -> Sequence[DataFile]:
        rows = held.cells.at(place_of(part, len(keys)))
        files = written(self._view.path, keys, rows, plan, bounds)
        held.files[part] = tuple(file.path for file in files)
        return files

    def _range(self, held: Loaded, plan: int) -> Sequence[DataFile]:
        """Writes the next range whole, so that what files before hold of its keys is past; keys that are gone leave the index."""
        first = held.cursor
        keys, places, behind = held.index.between(first, _RANGE_KEYS)
        last = MOST if behind is None else behind - 1
        held.cursor = LEAST if behind is None else behind
        rows = held.cells.at(places)
        is_there = np.asarray(rows.is_valid())
        if not is_there.any():
            return ()  # Without a row there is no file, and so nothing that is past.
        part = held.cells.add(rows.drop_null())
        moved = np.full(len(keys), NOWHERE, np.int64)
        moved[is_there] = place_of(part, int(np.count_nonzero(is_there)))
        held.index.put(keys, moved)
        held.ranges[part] = (StoredRange(plan, first, last),)
        return self._stored(held, part, keys.take(is_there), plan, (first, last))


def _joined(held: Loaded, staged: _Staged) -> tuple[int, KeyHashes]:
    """All that was put as one part, of each key the last row, and its keys."""
    if len(staged.parts) == 1:
        return staged.parts[0], staged.keys[0]
    keys = KeyHashes.joined(staged.keys)
    places = [place_of(part, len(each)) for part, each in zip(staged.parts, staged.keys, strict=True)]
    order = lexsorted(keys)
    keys, at = keys.take(order), np.concatenate(places)[order]
    is_last = np.ones(len(at), np.bool_)
    is_last[:-1] = (keys.high[1:] != keys.high[:-1]) | (keys.low[1:] != keys.low[:-1])
    keys = keys.take(is_last)
    part = held.cells.add(held.cells.at(at[is_last]))
    held.index.put(keys, place_of(part, len(keys)))
    for each in staged.parts:
        held.cells.drop(each)
    return part, keys
