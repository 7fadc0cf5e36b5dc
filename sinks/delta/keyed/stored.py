"""Files of a state: what each plan changed in one, and now and then the whole of a range of keys in another.

A row of a later plan counts. Of the same plan a range counts, whose rows are those behind the plan, and all that rows before
it hold of keys in its range is past. Each row tells its plan and range, so a file may have rows of several, as OPTIMIZE makes it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from historian.normalizing.keys import KeyHashes
from sinks.delta.keyed.cells import Cells, place_of
from sinks.delta.keyed.index import KeyIndex, lexsorted
from sinks.delta.log.columns import plain_schema
from sinks.delta.rewrite.files import FileWriter
from sinks.delta.rewrite.held_rows import whole

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sinks.delta.log.commits import DataFile

__all__ = ["LEAST", "MOST", "STATE_SCHEMA", "Loaded", "StoredRange", "load", "written"]

STATE_SCHEMA = plain_schema(
    hash_high="long", hash_low="long", row="binary", plan="long", range_first="long", range_last="long"
)
"""``row`` is a cell of the row encoding, NULL where the key's row is gone. ``range_first`` to ``range_last`` are the first numbers of keys of
which all were written behind ``plan``; NULL in a row that ``plan`` changed."""

LEAST, MOST = int(np.iinfo(np.int64).min), int(np.iinfo(np.int64).max)


@dataclass(frozen=True, slots=True)
class StoredRange:
    """A range of keys, and the plan behind which all of it was written."""

    plan: int
    first: int
    last: int

    @property
    def rank(self) -> int:
        """From which rank on rows in it count."""
        return 2 * self.plan + 1


@dataclass(slots=True)
class Loaded:
    """What files hold.

    Attributes:
        files: part of the cells to its files.
        changes: the parts that hold what a plan changed.
        ranges: the parts that hold the whole of ranges, and which.
        cursor: from which first number on a range is written next.
    """

    index: KeyIndex
    cells: Cells
    files: dict[int, tuple[str, ...]]
    changes: set[int]
    ranges: dict[int, tuple[StoredRange, ...]]
    cursor: int = LEAST

    def bounding(self) -> set[int]:
        """The parts with a range that no later one covers: by it rows of earlier files are past, whether it has a live row or not."""
        every = [each for ranges in self.ranges.values() for each in ranges]
        starts, covered = _covered(every)
        return {
            part
            for part, ranges in self.ranges.items()
            if any(bool((covered[_inside(starts, each)] == each.rank).any()) for each in ranges)
        }


def written(
    directory: str, keys: KeyHashes, rows: pa.Array, plan: int, bounds: tuple[int, int] | None = None
) -> Sequence[DataFile]:
    """Writes *rows* of *keys* to a file of a state, or more where they are many; *bounds*: they are all in that range."""
    count = len(keys)
    first, last = (pa.scalar(each, pa.int64()) for each in bounds or (None, None))
    columns = [
        pa.array(keys.high),
        pa.array(keys.low),
        rows,
        pa.repeat(pa.scalar(plan, pa.int64()), count),
        pa.repeat(first, count),
        pa.repeat(last, count),
    ]
    writer = FileWriter(directory, STATE_SCHEMA.arrow())
    writer.write_table(pa.table(columns, schema=STATE_SCHEMA.arrow()))
    return writer.close()


def load(paths: Sequence[str]) -> Loaded:
    """Reads the files of a state."""
    loaded = Loaded(KeyIndex(), Cells(), {}, set(), {})
    keys, places, ranks = list[KeyHashes](), list["NDArray[np.int64]"](), list["NDArray[np.int64]"]()
    for path in paths:
        table = whole(path)
        if not table.num_rows:
            continue
        high, low, plan = (
            np.asarray(table.column(name).combine_chunks()) for name in ("hash_high", "hash_low", "plan")
        )
        part = loaded.cells.add(_whole(table.column("row")))
        loaded.files[part] = (path,)
        is_range = np.asarray(table.column("range_first").combine_chunks().is_valid())
        keys.append(KeyHashes(high, low))
        places.append(place_of(part, table.num_rows))
        ranks.append(2 * plan + is_range)
        if not is_range.all():
            loaded.changes.add(part)
        if is_range.any():
            loaded.ranges[part] = _ranges(table)
    ranges = [each for found in loaded.ranges.values() for each in found]
    if keys:
        loaded.index = _index(KeyHashes.joined(keys), np.concatenate(places), np.concatenate(ranks), ranges)
    if ranges:
        last = max((each.plan, each.last) for each in ranges)[1]
        loaded.cursor = LEAST if last == MOST else last + 1
    return loaded


def _ranges(table: pa.Table) -> tuple[StoredRange, ...]:
    names = ["plan", "range_first", "range_last"]
    found = table.select(names).drop_null().group_by(names).aggregate([]).select(names)
    return tuple(sorted((StoredRange(*each.values()) for each in found.to_pylist()), key=lambda each: each.rank))


def _whole(column: pa.ChunkedArray) -> pa.Array:
    found = column.combine_chunks()
    return found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found


def _index(every: KeyHashes, at: NDArray[np.int64], rank: NDArray[np.int64], ranges: Sequence[StoredRange]) -> KeyIndex:
    """The index of rows: of each key the one of the highest rank, unless a range says that it is past."""
    if bool((rank[1:] < rank[:-1]).any()):
        order = np.argsort(rank, kind="stable")
        every, at, rank = every.take(order), at[order], rank[order]
    order = lexsorted(every)
    every, at, rank = every.take(order), at[order], rank[order]
    is_last = np.ones(len(at), np.bool_)
    is_last[:-1] = (every.high[1:] != every.high[:-1]) | (every.low[1:] != every.low[:-1])
    if ranges:
        starts, covered = _covered(ranges)
        is_last &= rank >= covered[np.searchsorted(starts, every.high, side="right") - 1]
    return KeyIndex(every.take(is_last), at[is_last])


def _covered(ranges: Sequence[StoredRange]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Where stretches of first numbers begin, and of each the rank from which on rows in it count."""
    begins = {LEAST, *(each.first for each in ranges), *(each.last + 1 for each in ranges if each.last < MOST)}
    starts = np.array(sorted(begins), np.int64)
    covered = np.zeros(len(starts), np.int64)
    for each in ranges:
        inside = _inside(starts, each)
        covered[inside] = np.maximum(covered[inside], each.rank)
    return starts, covered


def _inside(starts: NDArray[np.int64], each: StoredRange) -> NDArray[np.bool_]:
    return (starts >= each.first) & (starts <= each.last)
