"""Messages that a producer sends again after it began anew, known by their place in the source's log and by all that they say.

A producer goes on from a place that it noted some time ago, and sends what lies between in the same order. Of the last messages of a partition a
hash is kept, of all but when they were sent: transaction, place, time and both rows. What has no such hash is a change. What has one is a
repeat only where it cannot be another change, since in three cases one may look alike. Rows of a compressed transaction share a place. A log
that was reset counts its transactions anew. And servers that tell times by the second repeat them. What may be either is a change, and is counted.

Without GTIDs, a message does not say where its transaction begins or ends. There each event counts as a transaction, numbered by its file and offset.
"""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from connectors.readers.kafka.messages.source_places import (
    FILE_LIMIT,
    INTEGER_LIMIT,
    NOTHING,
    Newest,
    SourcePlace,
    hash_of_names,
    payload_in_json,
    split_number,
)
from historian.plans.source_marks import ServerPass, SourceMark

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from connectors.readers.kafka.messages.batch import Texts

__all__ = ["MOST_SEEN", "Places", "Repeats", "Told", "hash_of"]

MOST_SEEN = 4096
"""So many of the last changes of a partition are known, at most."""

_MOST_WAITING_BYTES = 64 << 20
_SECOND_US = 1_000_000
_OFFSET_BITS = 32
_SENT = re.compile(rb'"op": ?"[a-z]"(, ?"ts_[mun]s": ?(\d+|null))*(, ?"transaction": ?null)?}}?')
"""What stands in a message from its operation on."""


class Places:
    """Where the changes of a batch's messages stand in the source's log.

    Attributes:
        words: of each message whether it is told, the server, number of transaction and file, offset, row; as :func:`.sources.source_places` has them.
        times_us: of the changes; ``ends``: how many bytes of each message end with its operation, 0: that is not told.
    """

    def __init__(self, count: int, payload: Callable[[bytes], Any] = payload_in_json) -> None:
        self._payload = payload
        self.words = np.zeros((count, 6), np.int64)
        self.times_us = np.zeros(count, np.int64)
        self.ends = np.zeros(count, np.int64)

    def note(self, number: int, value: bytes, time_us: int) -> None:
        """Notes the place that a message tells, which no compiled code has read."""
        found = _place_of(self._payload, value)
        if found is not None:
            self.words[number] = found
            self.times_us[number] = time_us

    def newest(self, end: int) -> Newest | None:
        """Of those that are noted before the message of the number *end* the last one; None where there is none."""
        told = np.flatnonzero(self.words[:end, 0])
        if not len(told):
            return None
        _, server, number, file, offset, _ = self.words[told[-1]].tolist()
        return Newest(server, number, (file << _OFFSET_BITS) + offset, int(self.times_us[told].max()))

    def of_statement(self, value: bytes) -> SourcePlace | None:
        """The place of a statement that stands among rows; None where it is not told."""
        try:
            return SourcePlace.of(self._payload(value)["source"])
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return None


class Told(NamedTuple):
    """Of messages, which are repeats for sure, and which may be: these are changes."""

    repeats: NDArray[np.bool_]
    doubtful: NDArray[np.bool_]


@dataclass(slots=True)
class _Pass:
    """As :class:`ServerPass`; ``at`` counts from the first change that this process knows of."""

    highest: int
    number: int
    at: int | None


class _Seen:
    """Hashes of the last changes. Where they are found is made when somebody asks: of a log that only goes on, nobody does."""

    def __init__(self, text: str, hashed: Callable[[bytes, int], int]) -> None:
        self._text, self._hashed = text, hashed
        self._hashes: list[int] | None = None
        self._where: dict[int, list[int]] = {}
        self._left_out = 0
        self._waiting: deque[tuple[Texts, NDArray[np.intp], NDArray[np.int64]]] = deque()
        self._waiting_count = self._waiting_bytes = 0

    def wait(self, values: Texts, numbers: NDArray[np.intp], ends: NDArray[np.int64]) -> None:
        """Adds the messages of those *numbers*, of which no hash is made yet."""
        self._waiting.append((values, numbers, ends))
        self._waiting_count += len(numbers)
        self._waiting_bytes += int(values.sizes[numbers].sum())
        if self._waiting_count >= MOST_SEEN:
            # What came before these is known no more.
            self._text, self._hashes, self._where, self._left_out = "", None, {}, 0
            while self._waiting_count - len(self._waiting[0][1]) >= MOST_SEEN:
                left, those, _ = self._waiting.popleft()
                self._waiting_count -= len(those)
                self._waiting_bytes -= int(left.sizes[those].sum())
        if self._waiting_bytes > _MOST_WAITING_BYTES:
            self.index()

    def _waiting_hashes(self) -> Iterator[int]:
        return (
            self._hashed(values[number] or b"", end)
            for values, numbers, ends in self._waiting
            for number, end in zip(numbers.tolist(), ends[numbers].tolist(), strict=True)
        )

    def index(self) -> None:
        """Finds changes by their hashes from now on."""
        if self._hashes is None:
            self._hashes = []
            for found in np.frombuffer(b64decode(self._text), "<u8").tolist():
                self.add(found)
        for found in self._waiting_hashes():
            self.add(found)
        self._waiting.clear()
        self._waiting_count = self._waiting_bytes = 0

    def add(self, found: int) -> None:
        """Adds a change, behind :meth:`index`; 0: it proves nothing."""
        assert self._hashes is not None  # noqa: S101 made by index
        self._hashes.append(found)
        if found:
            self._where.setdefault(found, []).append(self._left_out + len(self._hashes) - 1)
        if len(self._hashes) > 2 * MOST_SEEN:
            self._left_out += MOST_SEEN
            kept, self._hashes, self._where = self._hashes[MOST_SEEN:], [], {}
            for each in kept:
                self.add(each)

    def places(self, found: int) -> list[int]:
        """Where a change with that hash stands."""
        return self._where.get(found, [])

    def text(self) -> tuple[str, int]:
        """The last ones, as a mark has them, and how many that leaves out."""
        if self._hashes is not None:
            self.index()
            held = np.array(self._hashes, "<u8")
        else:
            new = np.fromiter(self._waiting_hashes(), "<u8", self._waiting_count)
            held = np.concatenate([np.frombuffer(b64decode(self._text), "<u8"), new])
        left_out = max(0, len(held) - MOST_SEEN)
        return b64encode(held[left_out:].tobytes()).decode(), self._left_out + left_out


@dataclass(slots=True)
class Repeats:
    """Tells the repeats of a partition, from a mark on; None: nothing was met. *hashed*: of the format, see :func:`hash_of`."""

    begin: SourceMark | None
    hashed: Callable[[bytes, int], int] = field(default_factory=lambda: hash_of)
    _passes: dict[int, _Pass] = field(init=False, default_factory=dict)
    _seen: _Seen = field(init=False)
    _place: tuple[int, ...] = field(init=False, default=())
    """Of the last new change: server, number, file, offset, row."""
    _time_us: int = field(init=False, default=0)
    _is_spread: bool = field(init=False, default=False)

    def __post_init__(self) -> None:
        begin = self.begin
        self._seen = _Seen("" if begin is None else begin.seen, self.hashed)
        if begin is not None:
            self._passes = {
                each.server: _Pass(highest=each.highest, number=each.number, at=each.at) for each in begin.passes
            }
            self._place = (begin.server, begin.number, begin.file, begin.offset, begin.row)
            self._time_us, self._is_spread = begin.time_us, begin.is_spread

    @property
    def mark(self) -> SourceMark | None:
        """How far the partition has come by now."""
        if not self._place:
            return None
        text, left_out = self._seen.text()
        server, number, file, offset, row = self._place
        return SourceMark(
            passes=tuple(
                ServerPass(
                    server=name,
                    highest=each.highest,
                    number=each.number,
                    at=None if each.at is None else max(0, each.at - left_out),
                )
                for name, each in sorted(self._passes.items())
            ),
            server=server,
            number=number,
            file=file,
            offset=offset,
            row=row,
            time_us=self._time_us,
            is_spread=self._is_spread,
            seen=text,
        )

    @property
    def newest(self) -> Newest:
        """How far the partition has come."""
        if not self._place:
            return NOTHING
        server, number, file, offset, _ = self._place
        return Newest(server, number, (file << _OFFSET_BITS) + offset, self._time_us)

    def take(self, places: Places, values: Texts) -> Told:
        """Tells of the next messages."""
        told = Told(np.zeros(len(values), np.bool_), np.zeros(len(values), np.bool_))
        numbers = np.flatnonzero(places.words[:, 0])
        if not len(numbers):
            return told
        words, times_us = places.words[numbers], places.times_us[numbers]
        if self._goes_on(words):
            self._note(words, int(times_us.max()))
            self._seen.wait(values, numbers[-MOST_SEEN:], places.ends)
            return told
        self._seen.index()
        for number, place, time_us in zip(numbers.tolist(), words.tolist(), times_us.tolist(), strict=True):
            found = self.hashed(values[number] or b"", int(places.ends[number]))
            if self._is_repeat(place[1], place[2], time_us, found):
                told.repeats[number] = True
                continue
            if self._is_doubtful(place[1], place[2], time_us, found):
                told.doubtful[number] = True
                self._passes[place[1]] = replace(self._passes[place[1]], number=place[2], at=None)
            else:
                self._note(np.array([place], np.int64), time_us)
            # What may be there twice proves nothing: a third one would be taken for it.
            self._seen.add(0 if self._seen.places(found) else found)
        return told

    def _goes_on(self, words: NDArray[np.int64]) -> bool:
        """Whether all changes are of one server, and follow each other and all before in its log: then none comes again."""
        server, at = words[:, 1], words[:, 2:]
        if not bool((server == server[0]).all()) or not _ascend(at):
            return False
        last = self._passes.get(int(server[0]))
        first = tuple(at[0].tolist())
        if last is None or first[0] > last.highest:
            return True
        is_newest = first[0] == last.highest and (int(server[0]), first[0]) == self._place[:2]
        return is_newest and last.at is None and first[1:] > self._place[2:]

    def _note(self, words: NDArray[np.int64], time_us: int) -> None:
        """Notes changes that are new, of one server."""
        server, number = words[-1, 1:3].tolist()
        offsets = words[words[:, 2] == number, 4]
        was_spread = self._is_spread or (self._place[3:4] != (int(offsets[0]),))
        is_same = self._place[:2] == (server, number) and len(offsets) == len(words)
        self._is_spread = (is_same and was_spread) or bool((offsets != offsets[0]).any())
        last = self._passes.get(server)
        # Lower and a second later: numbers of a log that was reset begin anew. What that costs of proof only keeps changes.
        is_later = time_us >= self._time_us + _SECOND_US
        highest = number if last is None or is_later else max(last.highest, number)
        self._passes[server] = _Pass(highest=highest, number=number, at=None)
        self._place = tuple(words[-1, 1:].tolist())
        self._time_us = max(self._time_us, time_us)

    def _is_repeat(self, server: int, number: int, time_us: int, found: int) -> bool:
        """Whether a change is one that came; then the pass over its transaction goes on behind it."""
        places, last = self._seen.places(found), self._passes.get(server)
        if not places or last is None:
            return False
        at = self._proven(places, last, number, time_us, self._place[:2] == (server, number))
        if at is None:
            return False
        self._passes[server] = _Pass(highest=last.highest, number=number, at=at + 1)
        return True

    def _proven(self, places: list[int], last: _Pass, number: int, time_us: int, is_newest: bool) -> int | None:  # noqa: FBT001
        """Where the change stands that comes again; None: it may be another one."""
        # In a log that was reset, the same number stands for another transaction: its time tells, unless only seconds are told.
        if time_us % _SECOND_US == 0 and time_us + _SECOND_US > self._time_us:
            return None
        if last.number != number < last.highest:
            return places[0]  # a later transaction came, so this one was there whole, and the producer began anew
        if number == last.number and last.at is not None:
            at = next((each for each in places if each >= last.at), None)
            if at is not None:
                return at
        # Rows of a compressed transaction all stand at its own offset. In any other one, each has a place of its own.
        return places[-1] if is_newest and self._is_spread else None

    def _is_doubtful(self, server: int, number: int, time_us: int, found: int) -> bool:
        # A lower number at a later time is one of a log that was reset.
        last = self._passes.get(server)
        is_lower = last is not None and number < last.highest and time_us <= self._time_us
        return bool(self._seen.places(found)) or is_lower


def _ascend(at: NDArray[np.int64]) -> bool:
    """Whether rows of numbers are each greater than the one before, by their first number that differs; the first number never goes back."""
    steps = np.diff(at, axis=0)
    if not len(steps):
        return True
    first = (steps != 0).argmax(axis=1)
    return bool((steps[np.arange(len(steps)), first] > 0).all())


def hash_of(value: bytes, _end: int = 0) -> int:
    """Of a message in JSON all but when it was sent, which stands behind its operation; 0 where that is not all that stands there."""
    is_with_schema = value.startswith(b'{"schema":')
    end = value.rfind(b'"op":')
    if not all(0 <= value.rfind(name) < end for name in (b'"before":', b'"after":', b'"source":')):
        return 0
    if _SENT.fullmatch(value, end) is None or value.endswith(b"}}") != is_with_schema:
        return 0
    begin = value.find(b'"payload":') if is_with_schema else 0
    return int.from_bytes(blake2b(value[begin:end], digest_size=8).digest(), "little") or 1


def _place_of(payload_of: Callable[[bytes], Any], value: bytes) -> list[int] | None:
    """As compiled code reads it."""
    try:
        payload = payload_of(value)
        source, op = payload["source"], payload["op"]
        gtid, file, offset, row = source.get("gtid"), source["file"], int(source["pos"]), source.get("row") or 0
        if op == "r" or not isinstance(file, str) or not all(abs(each) < INTEGER_LIMIT for each in (offset, int(row))):
            return None
        base, digits = split_number(file)
        count = int(digits)
        if gtid is None:
            if count >= FILE_LIMIT or not 0 <= offset < 1 << _OFFSET_BITS:
                return None
            server, number = "", (count << _OFFSET_BITS) + offset
        else:
            server, digits = split_number(gtid)
            number = int(digits)
        return [1, hash_of_names(server, base), number, count, offset, int(row)]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
