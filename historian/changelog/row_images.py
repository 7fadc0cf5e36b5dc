"""Row images compared, column by column, and some of them taken; NULL equals NULL and differs from every value."""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["Mask", "differing", "differs", "rows_where", "where"]

Mask = np.ndarray[tuple[int], np.dtype[np.bool_]]
"""One truth value a row."""


def differing(left: pa.Table, right: pa.Table, columns: Sequence[str]) -> dict[str, Mask]:
    """For each of *columns*, in which rows the two tables differ; rows stand side by side."""
    return {name: differs(left.column(name), right.column(name)) for name in columns}


def differs(left: pa.ChunkedArray, right: pa.ChunkedArray) -> Mask:
    """In which rows two columns of one type differ. NaN equals NaN, and 0.0 equals -0.0, as for Spark and for servers."""
    if pa.types.is_nested(left.type):
        pairs = zip(left.to_pylist(), right.to_pylist(), strict=True)
        return np.fromiter((a != b for a, b in pairs), dtype=bool, count=len(left))
    nulls = np.asarray(left.is_null()) != np.asarray(right.is_null())
    unequal = pc.fill_null(pc.not_equal(left, right), fill_value=False)
    if pa.types.is_floating(left.type):
        unequal = pc.and_not(unequal, pc.fill_null(pc.and_(pc.is_nan(left), pc.is_nan(right)), fill_value=False))
    mask: Mask = nulls | np.asarray(unequal)
    return mask


def where(mask: Mask) -> list[int]:
    """The numbers of the rows that *mask* holds for."""
    return [int(at) for at in np.flatnonzero(mask)]


def rows_where(rows: pa.RecordBatch, kept: Mask) -> pa.RecordBatch:
    """The rows of a chunk's batch where *kept*, whose dead letters name them by the places that they have now."""
    metadata = dict(rows.schema.metadata or {})
    if b"dead_letters" in metadata:
        places = np.cumsum(kept) - 1
        letters = [(int(places[row]), *rest) for row, *rest in json.loads(metadata[b"dead_letters"]) if kept[row]]
        metadata[b"dead_letters"] = json.dumps(letters).encode()
    return rows.filter(pa.array(kept)).replace_schema_metadata(metadata or None)
