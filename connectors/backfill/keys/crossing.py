"""Updates that move a row over the frontier of a backfill: of the two rows that tell of it one half is kept."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from historian.changelog.filtering import rows_where
from historian.changelog.operations import Op
from historian.changelog.row_images import Mask

__all__ = ["forwarded"]


def forwarded(rows: pa.RecordBatch, covered: Mask) -> pa.RecordBatch:
    """The rows of *rows* that go on while a table is copied: those whose keys are covered.

    Of a -C and its +C both go on, or neither, where both keys lie on one side. A row that leaves what is covered is -R: the chunk that
    reaches its new key brings it again. One that comes in is +A: no chunk to come will. The log tells a change of the primary key as -R and +A.
    So a pair can lie on both sides only where the split key is another one.

    Args:
        rows: a chunk's rows with their ``op``, each +C directly behind its -C.
        covered: for each row whether its key is (:func:`connectors.backfill.keys.coverage.covered`).
    """
    if covered.all():
        return rows
    ops = np.array(rows.column("op"), dtype=np.uint8)
    new = ops.copy()
    first = np.flatnonzero(ops == Op.CORRECT_FROM)
    leaves, enters = first[covered[first] & ~covered[first + 1]], first[~covered[first] & covered[first + 1]] + 1
    new[leaves], new[enters] = Op.RETRACT, Op.APPEND
    if len(leaves) or len(enters):
        at = rows.schema.get_field_index("op")
        rows = rows.set_column(at, rows.schema.field(at), pa.array(new, pa.uint8()))
    return rows_where(rows, covered)
