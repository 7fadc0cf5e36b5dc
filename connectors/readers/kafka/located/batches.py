"""A batch of a partition's messages as runs of located rows, and between them the messages that are read one by one."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from connectors.readers.kafka.kernels import layout as at
from connectors.readers.kafka.kernels.locating import matching
from connectors.readers.kafka.located.programs import Known, Program, RowProgram, meta_words

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from connectors.readers.kafka.located.forms import JsonForm
    from connectors.readers.kafka.messages.batch import Batch, Texts
    from historian.names import TableName

__all__ = ["FEWEST_LOCATED", "Doubts", "Learn", "LocatedRows", "Locator", "Lone", "interleaved", "never", "runs_of"]

FEWEST_LOCATED = 64
"""Fewer messages at once are read one by one: that is sooner done than having compiled code look at them."""

_MOST_BYTES = 2**31 - 1 - at.SLACK
_CUT_BYTES = 2 << 20
_CUT_MESSAGES = 4096
"""So much stays near the processor, and its memory is used again and again."""
_MOST_PROGRAMS = 256
_MOST_LEARNED = 32
_MOST_SLOW = 8
"""Where one of so many messages is read on its own, all are: runs would be too short."""


def _cuts(batch: Batch) -> list[int]:
    """Where to cut messages into batches: behind which of them each one ends."""
    ends = batch.values.starts[1:]
    found, begin = [0], 0
    while found[-1] < len(batch):
        end = int(np.searchsorted(ends, begin + _CUT_BYTES, side="right"))
        found.append(min(max(end, found[-1] + 1), found[-1] + _CUT_MESSAGES))
        begin = int(ends[found[-1] - 1])
    return found[1:]


@dataclass(frozen=True, slots=True, kw_only=True)
class LocatedRows:
    """Rows of one table under one schema, in order; they hold until the next batch.

    Attributes:
        begin, end: which of the program's rows.
        offsets, times: of their messages, a row each; times in UTC microseconds.
        meta: words of all messages of the batch, where the program has some.
    """

    program: RowProgram
    texts: Texts
    begin: int
    end: int
    offsets: NDArray[np.int64]
    times: NDArray[np.int64]
    meta: NDArray[np.int64]

    def places(self) -> NDArray[np.int64]:
        """Where the rows' changes stand in the source's log, see :meth:`.programs.RowProgram.places`."""
        return self.program.places(self.texts, self.meta, self.begin, self.end)

    def ends(self) -> NDArray[np.int64]:
        """Where the operations of the rows' messages end, see :meth:`.programs.RowProgram.ends`."""
        return self.program.ends(self.texts, self.begin, self.end)

    @property
    def known(self) -> Known:
        """What is known of their messages."""
        return self.program.known

    @property
    def ops(self) -> NDArray[np.uint8]:
        """Of each row the code of :class:`historian.changelog.operations.Op`, -C and +C of every update."""
        return self.program.row_ops[self.begin : self.end]

    @property
    def ordinals(self) -> NDArray[np.int64]:
        """Of each row the number of its change in the message, from 0."""
        return self.program.row_ordinals[self.begin : self.end]

    @property
    def rows_address(self) -> int:
        """Where the numbers of their images stand, a word each."""
        return int(self.program.row_images.ctypes.data) + 8 * self.begin

    def part(self, begin: int, end: int) -> LocatedRows:
        """Those from *begin* to *end* among these."""
        return LocatedRows(
            program=self.program,
            texts=self.texts,
            begin=self.begin + begin,
            end=self.begin + end,
            offsets=self.offsets[begin:end],
            times=self.times[begin:end],
            meta=self.meta,
        )

    def __len__(self) -> int:
        return self.end - self.begin


Learn = Callable[[bytes | None, bytes], Known | None]
"""What is known of messages such as the one with that key and value; None where that is nothing."""

Lone = Callable[["TableName"], bool]
"""Whether a table is normalised. Then an update without the former row is a row, whose key alone says which one it changes; else it is not understood."""


Doubts = Callable[[Program, "Texts", "NDArray[np.int64]"], "NDArray[np.int64]"]
"""Which of the messages that a program has walked, by the batch's words, are to be read one by one: values may not mean what they say."""


def never(_: TableName) -> bool:
    """Of no table."""
    return False


class Locator:
    """Finds the rows of batches. What it learns of one message serves for others like it. Not for several threads at once.

    Args:
        form: of the format.
        learn: see :data:`Learn`; *lone*: see :data:`Lone`; *doubts*: see :data:`Doubts`.

    Attributes:
        tombstones: a message without a value changes nothing.
    """

    def __init__(self, form: JsonForm, learn: Learn, lone: Lone = never, doubts: Doubts | None = None) -> None:
        self._form, self._learn, self._doubts = form, learn, doubts
        ops = {name: "w" if code == "u" else code for name, code in form.ops.items()}
        self._lone, self._lone_form = lone, replace(form, ops=ops)
        self.tombstones = form.tombstones
        self._programs: dict[Known, Program] = {}
        self._meta_words = meta_words(form)

    def runs(self, batch: Batch) -> Iterator[list[LocatedRows] | int]:
        """The batch's rows, and the numbers of messages that are not understood, where they stand.

        Rows that stand between the same two such messages come together, each list element in order: see :func:`interleaved`.
        """
        count = len(batch)
        texts = batch.values
        if not self.takes(batch):
            yield from range(count)
            return
        status = np.zeros(count, np.uint8)
        times = np.empty(count, np.int64)
        self._meta = np.zeros(0, np.int64)
        programs = self._located(batch, texts, status, times)
        slow = np.flatnonzero(status != at.LOCATED)
        if self.is_slow(slow, count):
            yield from range(count)
            return
        begin = 0
        for end in [*slow.tolist(), count]:
            if end > begin:
                yield self._between(programs, batch, times, begin, end)
            if end < count:
                yield end
            begin = end + 1

    @staticmethod
    def takes(batch: Batch) -> bool:
        """Whether words have room for where things stand in a batch."""
        return int(batch.values.starts[-1]) <= _MOST_BYTES

    @staticmethod
    def is_slow(slow: NDArray[np.intp], count: int) -> bool:
        """Whether so many of *count* messages are not understood that all are read one by one."""
        return len(slow) * _MOST_SLOW > count

    def _between(
        self, programs: Sequence[RowProgram], batch: Batch, times: NDArray[np.int64], begin: int, end: int
    ) -> list[LocatedRows]:
        """The rows of the messages from *begin* to *end*, which are located."""
        return [
            LocatedRows(
                program=program,
                texts=batch.values,
                begin=first,
                end=behind,
                offsets=batch.offsets[messages],
                times=times[messages],
                meta=self._meta,
            )
            for program, first, behind in _within(programs, begin, end)
            for messages in [program.row_messages[first:behind]]
        ]

    def _located(
        self, batch: Batch, texts: Texts, status: NDArray[np.uint8], times: NDArray[np.int64]
    ) -> Sequence[RowProgram]:
        """The programs that have rows of the batch; *status* says which messages are located."""
        meta = self._meta = np.zeros(len(batch) * self._meta_words, np.int64)
        status[texts.absent] = at.LOCATED if self._form.tombstones else at.SLOW
        used: list[Program] = []
        waiting = list(self._programs.values())
        learned = 0
        while True:
            for program in waiting:
                todo = np.flatnonzero((status == at.OPEN) | (status == at.STRANGE))
                if not len(todo):
                    return used
                if program.known.key is not None:
                    todo = todo[_of_key(batch.keys, program.known.key)[todo]]
                program.locate(texts, todo, status, meta, times)
                if program.rows:
                    used.append(program)
                    status[program.strangers(texts, meta)] = at.SLOW
                    if self._doubts is not None:
                        status[self._doubts(program, texts, meta)] = at.SLOW
            todo = np.flatnonzero((status == at.OPEN) | (status == at.STRANGE))
            if not len(todo) or learned >= _MOST_LEARNED:
                return used
            learned += 1
            found = self._found(batch, int(todo[0]))
            if found is None:
                status[todo[0]] = at.SLOW
            waiting = [] if found is None else [found]

    def _found(self, batch: Batch, number: int) -> Program | None:
        """A program for messages such as that one; None where there is none, or none that is new."""
        known = self._learn(batch.keys[number], batch.values[number] or b"")
        if known is None or known in self._programs:
            return None
        if not (self._form.prefixed or known.in_order):
            # Rows that lack fields are understood too: one program for all names is enough.
            for other in [each for each in self._programs if each.table == known.table]:
                del self._programs[other]
                known = replace(known, names=tuple(dict.fromkeys((*known.names, *other.names))))
        if len(self._programs) >= _MOST_PROGRAMS:
            self._programs.clear()
        form = self._lone_form if self._lone(known.table) else self._form
        if known.by_schema:
            form = replace(form, database=form.schema)
        found = self._programs[known] = Program(form, known)
        return found


def _of_key(keys: Texts, key: bytes) -> NDArray[np.bool_]:
    """Of each message whether it has such a key."""
    if not key:
        return keys.absent
    matches = np.zeros(len(keys), np.uint8)
    prefix = np.frombuffer(key, np.uint8)
    matching(
        keys.address,
        keys.starts.ctypes.data,
        len(keys),
        prefix.ctypes.data,
        len(key),
        ord("}"),
        matches.ctypes.data,
    )
    return matches.astype(np.bool_)


def runs_of(locator: Locator | None, batch: Batch) -> Iterator[list[LocatedRows] | int]:
    """As :meth:`Locator.runs`, of a batch of any size; without a locator all messages are read one by one."""
    if locator is None or len(batch) < FEWEST_LOCATED:
        yield from range(len(batch))
        return
    begin = 0
    for end in _cuts(batch):
        for run in locator.runs(batch.part(begin, end)):
            yield run + begin if isinstance(run, int) else run
        begin = end


def interleaved(found: Sequence[LocatedRows]) -> Iterator[LocatedRows]:
    """Rows of all of *found* in the order of their messages, cut where those of one and those of another take turns."""
    if len(found) == 1:
        yield found[0]
        return
    whose = np.repeat(np.arange(len(found)), [len(rows) for rows in found])
    whose = whose[np.argsort(np.concatenate([rows.offsets for rows in found]), kind="stable")]
    turns = [0, *(np.flatnonzero(np.diff(whose)) + 1).tolist(), len(whose)]
    places = [0] * len(found)
    for begin, end in itertools.pairwise(turns):
        number = int(whose[begin])
        place = places[number]
        places[number] = place + end - begin
        yield found[number].part(place, places[number])


def _within(programs: Sequence[RowProgram], begin: int, end: int) -> Iterator[tuple[RowProgram, int, int]]:
    """Which rows of which program the messages from *begin* to *end* have."""
    for program in programs:
        first, behind = np.searchsorted(program.row_messages[: program.rows], [begin, end]).tolist()
        if behind > first:
            yield program, first, behind
