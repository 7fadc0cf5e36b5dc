"""Where located rows stand in the source's log, rows of snapshots among them. Messages mostly tell the same as the one before, so few are looked at."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from connectors.readers.kafka.kernels import layout as at
from connectors.readers.kafka.messages.source_places import FILE_LIMIT, NO_PLACE, place_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from connectors.readers.kafka.located.batches import LocatedRows
    from connectors.readers.kafka.messages.batch import Texts

__all__ = ["row_words"]

_LONGEST = 128
"""Longer texts are taken for others than those before them."""
_LOG = 3


def row_words(rows: LocatedRows, payload_of: Callable[[bytes], Any]) -> NDArray[np.int64]:
    """Of each row the numbers that :func:`place_of` has of its message.

    Args:
        payload_of: as of :func:`place_of`.
    """
    program, texts = rows.program, rows.texts
    held, messages = rows.places(), program.row_messages[rows.begin : rows.end]
    found = np.column_stack((held[:, 0], held[:, 3], held[:, 4], np.zeros(len(held), np.int64), held[:, 1], held[:, 2]))
    words = program.source_words(texts, rows.meta, rows.begin, rows.end)
    servers = words[-1]
    # What no server has is no place among statements.
    is_told = (held[:, 0] != 0) & (held[:, 3] < FILE_LIMIT) & (held[:, 4] >= 0)
    alone = np.zeros(len(held), np.bool_)
    follows = _same(texts, [servers]) & (held[1:, 1] == held[:-1, 1]) & is_told[:-1]
    begins = is_told & np.concatenate(([True], ~follows))
    logs: dict[tuple[int, int, bytes], int | None] = {}
    for number in np.flatnonzero(begins).tolist():
        word = int(servers[number])
        start, length = word & at.START_MASK, word >> at.START_BITS & at.LENGTH_MASK
        key = int(held[number, 1]), word >> at.KIND_AT, texts.between(start, start + length)
        if key not in logs:
            place = place_of(texts[messages[number]] or b"", payload_of)
            logs[key] = None if place is None else place[_LOG]
        log = logs[key]
        alone[number] = log is None
        found[number, _LOG] = log or 0
    _fill(found[:, _LOG : _LOG + 1], begins, is_told)
    _fill(alone[:, None], begins, is_told)
    if not is_told.all():
        # Snapshots have no place that tells repeats, but one that tells their order.
        begins = ~is_told & np.concatenate(([True], is_told[:-1] | ~_same(texts, words)))
        alone |= begins
    for number in np.flatnonzero(alone).tolist():
        found[number] = place_of(texts[messages[number]] or b"", payload_of) or NO_PLACE
    if not is_told.all():
        _fill(found, begins, ~is_told)
    return found


def _same(texts: Texts, fields: Sequence[NDArray[np.uint64]]) -> NDArray[np.bool_]:
    """Of each row but the first whether *fields* have the texts that they have in the row before."""
    found = np.ones(max(0, len(fields[0]) - 1), np.bool_)
    for words in fields:
        starts = (words & np.uint64(at.START_MASK)).astype(np.int64)
        shapes = (words >> np.uint64(at.START_BITS)).astype(np.int64)
        sizes = shapes & at.LENGTH_MASK
        columns = np.arange(min(int(sizes.max(initial=0)), _LONGEST))
        letters = texts.body[np.minimum(starts[:, None] + columns, len(texts.body) - 1)]
        is_same = (letters[1:] == letters[:-1]) | (columns >= sizes[1:, None])
        found &= (shapes[1:] == shapes[:-1]) & (sizes[1:] <= _LONGEST) & is_same.all(axis=1)
    return found


def _fill(values: NDArray[np.generic], begins: NDArray[np.bool_], chosen: NDArray[np.bool_]) -> None:
    """Gives each of the *chosen* rows the values of the last one before it that *begins*."""
    last = np.maximum.accumulate(np.where(begins, np.arange(len(begins)), 0))
    values[chosen] = values[last[chosen]]
