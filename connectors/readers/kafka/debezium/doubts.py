"""Messages of Debezium's that compiled code has walked, and that may not be what they look like."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson

from connectors.readers.kafka.debezium.placeholders import placeholders_of
from connectors.readers.kafka.debezium.replaced_nulls import MARK, has_nullable_defaults
from connectors.readers.kafka.kernels import layout as at
from historian.changelog.operations import Op

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from connectors.readers.kafka.located.batches import Doubts
    from connectors.readers.kafka.located.programs import Program
    from connectors.readers.kafka.messages.batch import Texts
    from connectors.readers.kafka.messages.modes import DebeziumModes

__all__ = ["doubts_of"]

_ESCAPED = re.compile(r"[\x00-\x1f\"\\/]")
"""Characters that JSON has other escapes for than their numbers."""


def doubts_of(modes: DebeziumModes) -> Doubts:
    """What finds them, as the connector of these *modes* writes them.

    They are rows with a placeholder for a value, or maybe a default for NULL, and former rows that may not be whole.
    """
    placeholders = _Placeholders(placeholders_of(modes.unavailable).in_json)

    def found(program: Program, texts: Texts, meta: NDArray[np.int64]) -> NDArray[np.int64]:
        messages = program.row_messages[: program.rows]
        marked = messages[:0]
        if not modes.accepts_defaults and has_nullable_defaults(program.known.schema):
            marked = program.marked(texts, meta, MARK.encode())
        if not program.known.by_schema:
            return marked
        is_doubtful = np.zeros(len(messages), np.bool_)
        if not modes.full_identity:
            ops = program.row_ops[: program.rows]
            is_doubtful |= ops == Op.RETRACT
            if program.known.connector == b"postgresql":
                is_doubtful |= ops == Op.CORRECT_FROM
        for column in program.slots.values():
            words = program.words(column)[program.row_images[: program.rows]].view(np.uint64)
            is_doubtful |= placeholders.found(words, texts)
        return np.concatenate([messages[is_doubtful], marked])

    return found


class _Placeholders:
    """Values that are none, but stand for one that did not change."""

    def __init__(self, values: tuple[Any, ...]) -> None:
        self._values = values
        self._texts = frozenset(each.encode() for each in values if isinstance(each, str))
        self._sizes = np.array(sorted({len(each) for each in self._texts}), np.int64)
        self._has_others = any(map(_ESCAPED.search, (each for each in values if isinstance(each, str))))
        # Characters may all be written by their numbers, with blanks.
        self._longest = 6 * int(self._sizes[-1]) + 100

    def found(self, words: NDArray[np.uint64], texts: Texts) -> NDArray[np.bool_]:
        """Which values of a column are such."""
        kinds = _kinds(words)
        sizes = (words >> np.uint64(at.START_BITS) & np.uint64(at.LENGTH_MASK)).astype(np.int64)
        starts = (words & np.uint64(at.START_MASK)).astype(np.int64)
        maybe = (kinds == at.TEXT) & np.isin(sizes, self._sizes)
        maybe |= ((kinds == at.ESCAPED) | (kinds == at.NESTED)) & (sizes <= self._longest)
        found = np.zeros(len(words), np.bool_)
        for row in np.flatnonzero(maybe).tolist():
            text = texts.between(int(starts[row]), int(starts[row] + sizes[row]))
            if kinds[row] == at.TEXT:
                found[row] = text in self._texts
            elif kinds[row] == at.NESTED:
                found[row] = orjson.loads(text) in self._values
            else:
                # Of most only numbers can be escapes.
                is_maybe = self._has_others or b"\\u" in text
                found[row] = is_maybe and orjson.loads(b'"' + text + b'"') in self._values
        return found


def _kinds(words: NDArray[np.uint64]) -> NDArray[np.int64]:
    found: NDArray[np.int64] = (words >> np.uint64(at.KIND_AT)).astype(np.int64)
    return found
