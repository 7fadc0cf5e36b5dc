"""Scans of flat formats that tell no types, by compiled code: whether values are of the kinds that were met before."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, cast

import numpy as np
import orjson

from connectors.readers.kafka.debezium.doubts import doubts_of
from connectors.readers.kafka.formats.columnar import known_of
from connectors.readers.kafka.formats.decoder import FlatDecoder
from connectors.readers.kafka.kernels import layout as at
from connectors.readers.kafka.located.batches import LocatedRows, Locator, Lone, never
from connectors.readers.kafka.located.programs import Program

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from connectors.readers.kafka.located.forms import JsonForm
    from connectors.readers.kafka.located.programs import Known
    from connectors.readers.kafka.messages.batch import Batch

__all__ = ["InferringLocator"]

_MOST_TURNS = 16
"""Where schemas change so often in a batch, what is left of it is read one by one."""
_SHORT_DIGITS = 18
"""Integers of so many signs are signed ones of 64 bits."""
_LONGEST = 20
_LONG_MAX = 2**63


def _kinds(*kinds: int) -> NDArray[np.bool_]:
    found = np.zeros(16, np.bool_)
    found[[at.MISSING, at.NULL, *kinds]] = True
    return found


_NONE = _kinds()
_OF_TYPES = {
    "bit": _kinds(at.FALSE, at.TRUE),
    "bigint": _kinds(at.INTEGER),
    "double": _kinds(at.NUMBER),
    "longtext": _kinds(at.TEXT, at.ESCAPED),
    "json": _kinds(at.NESTED),
    "mixed": np.ones(16, np.bool_),
}
"""Of a type that was inferred the kinds of values that tell nothing new."""


class InferringLocator(Locator):
    """Finds rows that tell nothing new of their tables; others are read one by one by *decoder*, which learns of them.

    Who takes the runs reads each message that stands among them by *decoder* before he takes the next run. Not for several threads at once.

    Args:
        form: of the decoder's format; *lone*: see :class:`Locator`.
    """

    def __init__(self, decoder: FlatDecoder, form: JsonForm, lone: Lone = never) -> None:
        self._key_path, self._key_prefix = decoder.format.key, decoder.format.key_prefix
        told = (self._key_path,) if self._key_path else ()
        doubts = doubts_of(decoder.modes) if decoder.format.source else None
        super().__init__(replace(form, told=told), self._known, lone, doubts)
        self._decoder = decoder
        self._plain = FlatDecoder(decoder.format, tells=False, modes=decoder.modes)

    def runs(self, batch: Batch) -> Iterator[list[LocatedRows] | int]:
        """See :meth:`Locator.runs`."""
        begin: int = 0
        for _ in range(_MOST_TURNS):
            begin = yield from self._until_news(batch, begin)
            if begin == len(batch):
                return
        yield from range(begin, len(batch))

    def _until_news(self, whole: Batch, begin: int) -> Generator[list[LocatedRows] | int, None, int]:
        """The runs of messages from *begin* on, until one tells something new, by which those behind it are to be looked at; how far that is."""
        batch = whole.part(begin, len(whole))
        known, count = dict(self._decoder.inferred), len(batch)
        self._programs = {
            each: program for each, program in self._programs.items() if known.get(each.table) is program.known.schema
        }
        status, times = np.zeros(count, np.uint8), np.empty(count, np.int64)
        programs = self._located(batch, batch.values, status, times) if self.takes(batch) else []
        for program in cast("Sequence[Program]", programs):
            status[self._misfits(program, batch)] = at.SLOW
        slow, done = np.flatnonzero(status != at.LOCATED), 0
        for end in slow.tolist():
            if end > done:
                yield self._between(programs, batch, times, done, end)
            yield begin + end
            done = end + 1
            if any(known.get(table) is not schema for table, schema in self._decoder.inferred.items()) or (
                len(known) > len(self._decoder.inferred)
            ):
                return int(begin + done)
            if self.is_slow(slow, count):
                yield from range(begin + done, len(whole))
                return len(whole)
        if done < count:
            yield self._between(programs, batch, times, done, count)
        return len(whole)

    def _known(self, key: bytes | None, value: bytes) -> Known | None:
        """What is known of messages of the same table; None where the table is not."""
        known = known_of(self._plain, key, value)
        schema = None if known is None else self._decoder.inferred.get(known.table)
        return None if known is None or schema is None else replace(known, schema=schema)

    def _misfits(self, program: Program, batch: Batch) -> NDArray[np.int64]:
        """The messages of the program's rows that tell something new: of a column, or of the key."""
        schema, texts = program.known.schema, batch.values
        types = {field.column.name: field.column.type for field in schema.fields}
        images, messages = program.row_images[: program.rows], program.row_messages[: program.rows]
        is_new = np.zeros(len(messages), np.bool_)
        for name, column in program.slots.items():
            kind, words = types.get(name), program.words(column)[images].view(np.uint64)
            kinds = (words >> np.uint64(at.KIND_AT)).astype(np.int64)
            is_new |= ~(_NONE if kind is None else _OF_TYPES[kind.name])[kinds]
            if kind is not None and kind.name == "bigint" and not kind.unsigned:
                starts = (words & np.uint64(at.START_MASK)).astype(np.int64)
                sizes = (words >> np.uint64(at.START_BITS) & np.uint64(at.LENGTH_MASK)).astype(np.int64)
                for row in np.flatnonzero((kinds == at.INTEGER) & (sizes > _SHORT_DIGITS)).tolist():
                    digits = texts.between(int(starts[row]), int(starts[row] + sizes[row]))
                    is_new[row] |= len(digits) > _LONGEST or not -_LONG_MAX <= int(digits) < _LONG_MAX
        mine = np.unique(messages)
        of_key = np.fromiter((key != schema.key for key in self._keys(program, batch, mine)), np.bool_, len(mine))
        return np.union1d(messages[is_new], mine[of_key])

    def _keys(self, program: Program, batch: Batch, messages: NDArray[np.int64]) -> Iterator[object]:
        """Of each message what it tells of the key, as :class:`FlatDecoder` has it; False where that is not certain."""
        told = [b""] * len(messages)
        if self._key_path:
            told = program.texts_at(self._key_path, batch.values, self._meta, messages)
        for text, message in zip(told, messages.tolist(), strict=True):
            if text:
                found = orjson.loads(text)
                yield tuple(map(str, found)) if isinstance(found, list) else False
                continue
            key = batch.keys[message]
            if self._key_prefix is None or not key or not key.startswith(b"{"):
                yield None
                continue
            try:
                fields = orjson.loads(key)
            except ValueError:
                yield False
                continue
            prefix = self._key_prefix
            yield tuple(name.removeprefix(prefix) for name in fields if name.startswith(prefix)) or None
