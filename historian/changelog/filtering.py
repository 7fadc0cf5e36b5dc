"""Some rows of a chunk, with what its metadata says of them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["rows_where"]


def rows_where(rows: pa.RecordBatch, kept: NDArray[np.bool_]) -> pa.RecordBatch:
    """The rows of a chunk's batch where *kept*, whose dead letters name them by the places that they have now."""
    metadata = dict(rows.schema.metadata or {})
    if b"dead_letters" in metadata:
        places = np.cumsum(kept) - 1
        letters = [(int(places[row]), *rest) for row, *rest in json.loads(metadata[b"dead_letters"]) if kept[row]]
        metadata[b"dead_letters"] = json.dumps(letters).encode()
    return rows.filter(pa.array(kept)).replace_schema_metadata(metadata or None)
