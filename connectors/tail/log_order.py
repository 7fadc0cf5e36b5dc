"""Rows of several tables in the order of the log. A chunk is one table's, and transactions' numbers and times tell no order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from connectors.tail.follow import TailedRange
from connectors.tail.json_lines import ndjson_rows
from historian.changelog.chunks import Chunk, positions
from historian.schema.snapshots import Snapshot

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["TailedRows", "in_log_order", "runs_in_log_order"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TailedRows:
    """Rows of one chunk between which the log has none of another one.

    Attributes:
        chunk: with these rows alone.
        place: of the transaction of the first one, as :attr:`connectors.tail.follow.TailedRange.begun` has them.
    """

    chunk: Chunk
    snapshot: Snapshot
    place: int


def in_log_order(shown: TailedRange) -> Iterator[str]:
    """The rows as ndjson, in the order of the log."""
    texts = [row for chunk, snapshot in shown.chunks for row in ndjson_rows(chunk, snapshot)]
    if len(shown.chunks) < 2:
        yield from texts
        return
    order, _ = _order(shown)
    for row in order.tolist():
        yield texts[row]


def runs_in_log_order(shown: TailedRange) -> Iterator[TailedRows]:
    """The rows of the chunks in the order of the log, as long as they are of one."""
    if not shown.chunks:
        return
    order, places = _order(shown)
    sizes = [chunk.rows.num_rows for chunk, _ in shown.chunks]
    of_chunk = np.repeat(np.arange(len(sizes)), sizes)[order]
    first_rows = np.cumsum([0, *sizes])
    bounds = [0, *(np.flatnonzero(np.diff(of_chunk)) + 1).tolist(), len(order)]
    for begin, behind in pairwise(bounds):
        chunk, snapshot = shown.chunks[of_chunk[begin]]
        # A chunk's own rows are in order, so that those between two rows of others lie side by side.
        rows = chunk.rows.slice(int(order[begin] - first_rows[of_chunk[begin]]), behind - begin)
        first = str(positions(replace(chunk, rows=rows.slice(0, 1)))[0])
        yield TailedRows(
            chunk=replace(chunk, rows=rows, first_position=first), snapshot=snapshot, place=int(places[order[begin]])
        )


def _order(shown: TailedRange) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The rows' indices over all chunks in the log's order, and of each row, by its index, where its transaction begins."""
    places = np.concatenate([_places(chunk, shown) for chunk, _ in shown.chunks])
    ordinals = np.concatenate([chunk.rows.column("ordinal").to_numpy() for chunk, _ in shown.chunks])
    return np.lexsort((ordinals, places)), places


def _places(chunk: Chunk, shown: TailedRange) -> NDArray[np.int64]:
    texts = positions(chunk).dictionary_encode()
    # Without a GTID a transaction's number is its offset.
    by_offset = f"{chunk.file}:"
    found = [
        int(text.removeprefix(by_offset)) if text.startswith(by_offset) else shown.begun[text]
        for text in texts.dictionary.to_pylist()
    ]
    places: NDArray[np.int64] = np.array(found, np.int64)[texts.indices.to_numpy()]
    return places
