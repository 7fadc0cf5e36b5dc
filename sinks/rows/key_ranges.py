"""Ranges of keys: a large change is folded one range after the other, so that a part of it is in memory at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from historian.changelog.operations import physical_name
from historian.changelog.projection import project
from historian.schema.snapshots import Snapshot

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["KeyRanges", "key_schema", "ranges_of", "sampled_keys"]

_SAMPLE_ROWS = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyRanges:
    """Keys in order, cut before each of *bounds*; range 0 holds keys before the first one, and those with a NULL.

    Attributes:
        key: a schema of the key's columns alone.
        bounds: their values, ascending column by column.
    """

    key: Snapshot
    bounds: tuple[tuple[pa.Scalar, ...], ...]

    @property
    def count(self) -> int:
        """How many ranges there are."""
        return len(self.bounds) + 1

    def numbers(self, rows: pa.RecordBatch, written: Snapshot) -> NDArray[np.int64]:
        """For each of a chunk's *rows*, under the schema *written*, the number of its range; the same for equal keys."""
        columns = _keys(rows, written, self.key).columns
        numbers = np.zeros(rows.num_rows, np.int64)
        for bound in self.bounds:
            behind: Any = pa.repeat(True, rows.num_rows)  # Equal keys stand behind their bound.
            for values, limit in zip(reversed(columns), reversed(bound), strict=True):
                behind = pc.or_kleene(pc.greater(values, limit), pc.and_kleene(pc.equal(values, limit), behind))
            numbers += np.asarray(behind.fill_null(False))
        for values in columns:
            numbers[np.asarray(values.is_null())] = 0
        return numbers


def key_schema(snapshot: Snapshot) -> Snapshot:
    """*snapshot* with its key's columns alone."""
    return replace(snapshot, columns=tuple(c for c in snapshot.columns if c.id in snapshot.primary_key))


def sampled_keys(rows: pa.RecordBatch, written: Snapshot, key: Snapshot) -> pa.RecordBatch:
    """The keys of one of a thousand of a chunk's *rows*."""
    return _keys(rows.take(pa.array(np.arange(0, rows.num_rows, _SAMPLE_ROWS))), written, key)


def ranges_of(samples: Sequence[pa.RecordBatch], key: Snapshot, count: int) -> KeyRanges:
    """About *count* ranges that hold as many of *samples* each; fewer where keys repeat."""
    keys = pa.Table.from_batches(samples).drop_null()
    ordered = keys.sort_by([(name, "ascending") for name in keys.schema.names])
    places = [at * ordered.num_rows // count for at in range(1, count)] if ordered.num_rows else []
    found = (tuple(column[at] for column in ordered.columns) for at in places)
    return KeyRanges(key=key, bounds=tuple(dict.fromkeys(found)))


def _keys(rows: pa.RecordBatch, written: Snapshot, key: Snapshot) -> pa.RecordBatch:
    return project(rows, written, key).select([physical_name(column.id) for column in key.columns])
