"""Messages that a producer sends again after it began anew, known by where their changes stand in the source's log.

A producer goes on from a place that it noted some time ago, and sends what lies between in the same order. So a repeat begins with a
transaction that was met, and ends behind the last one that was met. A change is never taken for a repeat by its offset alone: inside of a
compressed transaction offsets tell nothing, and a server that took another one's place counts anew. Of a transaction the first 32 messages
are known one by one, those behind them are counted.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import numpy as np

from historian.plans.source_marks import SourceMark

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from connectors.readers.kafka.messages.batch import Texts

__all__ = ["Places", "Repeats"]

_MOST_DIGESTS = 32
_MASK = (1 << 64) - 1
_FIRST, _PRIME = 14695981039346656037, 1099511628211


class Places:
    """Where the changes of a batch's messages stand in the source's log.

    Attributes:
        words: of each message whether it is told, the server, number of GTID and file, offset, row; as :func:`.sources.source_places` has them.
        times_us: of the changes.
    """

    def __init__(self, count: int) -> None:
        self.words = np.zeros((count, 6), np.int64)
        self.times_us = np.zeros(count, np.int64)

    def note(self, number: int, value: bytes, time_us: int) -> None:
        """Notes the place that a message tells, which no compiled code has read."""
        found = _place_of(value)
        if found is not None:
            self.words[number] = found
            self.times_us[number] = time_us


@dataclass(slots=True)
class Repeats:
    """Tells the repeats of a partition, from a mark on; None: nothing was met."""

    mark: SourceMark | None
    _highest: dict[int, int] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        if self.mark is not None:
            self._highest = dict(self.mark.highest)

    def take(self, places: Places, values: Texts) -> NDArray[np.bool_]:
        """Which of the next messages are repeats."""
        repeats = np.zeros(len(values), np.bool_)
        told = np.flatnonzero(places.words[:, 0])
        if not len(told):
            return repeats
        words, times_us = places.words[told], places.times_us[told]
        if self._goes_on(words):
            self._note_all(words, times_us, [values[number] or b"" for number in self._last(told, words)])
            return repeats
        for number, place, time_us in zip(told.tolist(), words.tolist(), times_us.tolist(), strict=True):
            repeats[number] = self._is_repeat(place[1:], time_us, values[number] or b"")
        return repeats

    def _goes_on(self, words: NDArray[np.int64]) -> bool:
        """Whether all changes are of one server, and follow each other and the mark in its log."""
        server, at = words[:, 1], words[:, 2:]
        if not bool((server == server[0]).all()) or not _ascend(at):
            return False
        mark = self.mark
        if mark is None:
            return True
        if mark.left is not None:
            return False
        highest = self._highest.get(int(server[0]), -1)
        first = at[0].tolist()
        is_same = (int(server[0]), first[0]) == (mark.server, mark.number)
        return first[0] > highest or (is_same and first[1:] > [mark.file, mark.offset, mark.row])

    def _last(self, told: NDArray[np.intp], words: NDArray[np.int64]) -> list[int]:
        """Numbers of the messages of the last transaction."""
        begin = int(np.searchsorted(words[:, 2], words[-1, 2]))
        found: list[int] = told[begin:].tolist()
        return found

    def _note_all(self, words: NDArray[np.int64], times_us: NDArray[np.int64], last: Sequence[bytes]) -> None:
        place = words[-1, 1:].tolist()
        mark = self.mark
        is_same = mark is not None and (mark.server, mark.number) == tuple(place[:2]) and len(last) == len(words)
        count, digests = (mark.count, mark.digests) if mark is not None and is_same else (0, ())
        room = max(0, _MOST_DIGESTS - len(digests))
        self._highest[place[0]] = max(place[1], self._highest.get(place[0], -1))
        self.mark = self._marked(
            place,
            int(times_us[-1]),
            count + len(last),
            (*digests, *map(_digest, last[:room])),
        )

    def _is_repeat(self, place: Sequence[int], time_us: int, value: bytes) -> bool:
        # A change that is written twice does less harm than one that is lost: whatever is not sure is a change.
        mark = self.mark
        if mark is not None:
            server, number, file = place[:3]
            is_past = time_us <= mark.time_us
            if (server, number) == (mark.server, mark.number):
                digest = _digest(value)
                if digest and digest in mark.digests:
                    self.mark = _with_left(mark, mark.count - mark.digests.index(digest) - 1)
                    return True
                if mark.left is not None and is_past and mark.left <= mark.count - len(mark.digests):
                    self.mark = _with_left(mark, mark.left - 1)
                    return True
            elif (
                server == mark.server
                and number <= self._highest.get(server, -1)
                and tuple(place[2:]) < (mark.file, mark.offset, mark.row)
            ):
                if not is_past or file < mark.file - 1:
                    return False  # The mark stays: what follows may be repeats for sure.
                self.mark = _with_left(mark, mark.count)  # the producer may have begun anew once more
                return True
        words = np.array([[1, *place]], np.int64)
        self._note_all(words, np.array([time_us], np.int64), [value])
        return False

    def _marked(self, place: Sequence[int], time_us: int, count: int, digests: tuple[str, ...]) -> SourceMark:
        server, number, file, offset, row = place
        return SourceMark(
            highest=tuple(sorted(self._highest.items())),
            server=server,
            number=number,
            file=file,
            offset=offset,
            row=row,
            time_us=time_us,
            count=count,
            digests=digests,
        )


def _with_left(mark: SourceMark, left: int) -> SourceMark:
    # Behind the last one that was met nothing comes again, whatever its number is.
    return replace(mark, left=left or None)


def _ascend(at: NDArray[np.int64]) -> bool:
    """Whether rows of numbers are each greater than the one before, by their first number that differs; the first number never goes back."""
    steps = np.diff(at, axis=0)
    if not len(steps):
        return True
    first = (steps != 0).argmax(axis=1)
    return bool((steps[np.arange(len(steps)), first] > 0).all())


def _digest(value: bytes) -> str:
    """Of a message all but when it was sent, which stands behind its operation; "" where something else stands there, too."""
    end = value.rfind(b'"op":')
    if not all(0 <= value.rfind(name) < end for name in (b'"before":', b'"after":', b'"source":')):
        return ""
    return blake2b(value[:end], digest_size=8).hexdigest()


def _place_of(value: bytes) -> list[int] | None:
    """As compiled code reads it."""
    try:
        message: Any = json.loads(value)
        payload = message["payload"] if isinstance(message.get("payload"), dict) else message
        source, op = payload["source"], payload["op"]
        gtid, file, offset, row = source["gtid"], source["file"], source["pos"], source.get("row") or 0
        if op == "r" or not isinstance(gtid, str) or not isinstance(file, str):
            return None
        (server, number), (base, count) = _split(gtid), _split(file)
        found = _FIRST
        for byte in (server + base).encode():
            found = (found ^ byte) * _PRIME & _MASK
        signed = found - (1 << 64) if found >> 63 else found
        return [1, signed, int(number), int(count), int(offset), int(row)]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def _split(text: str) -> tuple[str, str]:
    """A text and the digits with which it ends. Raises ValueError where there are none, or too many."""
    base = text.rstrip("0123456789")
    digits = text[len(base) :]
    if not 0 < len(digits) <= 18:
        raise ValueError(text)
    return base, digits
