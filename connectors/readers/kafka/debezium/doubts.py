"""Messages of PostgreSQL and Oracle that compiled code has walked, and that are not what they look like."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import orjson

from connectors.readers.kafka.debezium.changes import PLACEHOLDERS
from connectors.readers.kafka.kernels import layout as at
from historian.changelog.operations import Op

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from connectors.readers.kafka.located.batches import Doubts
    from connectors.readers.kafka.located.programs import Program
    from connectors.readers.kafka.messages.batch import Texts

__all__ = ["doubts_of"]

_TEXTS = frozenset(each.encode() for each in PLACEHOLDERS if isinstance(each, str))
_SIZES = np.array(sorted({len(each) for each in _TEXTS}), np.int64)
_LONGEST = 6 * int(_SIZES[-1]) + 100
"""Of a placeholder whose characters are all written by their numbers, with blanks."""


def doubts_of(*, full_identity: bool) -> Doubts:
    """What finds them: rows with a placeholder for a value, and deletes, unless all of those have whole rows (*full_identity*)."""

    def found(program: Program, texts: Texts) -> NDArray[np.int64]:
        messages = program.row_messages[: program.rows]
        if not program.known.by_schema:
            return messages[:0]
        is_doubtful = np.zeros(len(messages), np.bool_)
        if not full_identity:
            is_doubtful |= program.row_ops[: program.rows] == Op.RETRACT
        for column in program.slots.values():
            words = program.words(column)[program.row_images[: program.rows]].view(np.uint64)
            is_doubtful |= _placeholders(words, texts)
        return messages[is_doubtful]

    return found


def _placeholders(words: NDArray[np.uint64], texts: Texts) -> NDArray[np.bool_]:
    """Which values are none, but stand for one that did not change."""
    kinds = _kinds(words)
    sizes = (words >> np.uint64(at.START_BITS) & np.uint64(at.LENGTH_MASK)).astype(np.int64)
    starts = (words & np.uint64(at.START_MASK)).astype(np.int64)
    maybe = (kinds == at.TEXT) & np.isin(sizes, _SIZES)
    maybe |= ((kinds == at.ESCAPED) | (kinds == at.NESTED)) & (sizes <= _LONGEST)
    found = np.zeros(len(words), np.bool_)
    for row in np.flatnonzero(maybe).tolist():
        text = texts.between(int(starts[row]), int(starts[row] + sizes[row]))
        if kinds[row] == at.TEXT:
            found[row] = text in _TEXTS
        elif kinds[row] == at.NESTED:
            found[row] = orjson.loads(text) in PLACEHOLDERS
        else:
            # Of its characters only numbers can be escapes.
            found[row] = b"\\u" in text and orjson.loads(b'"' + text + b'"') in PLACEHOLDERS
    return found


def _kinds(words: NDArray[np.uint64]) -> NDArray[np.int64]:
    found: NDArray[np.int64] = (words >> np.uint64(at.KIND_AT)).astype(np.int64)
    return found
