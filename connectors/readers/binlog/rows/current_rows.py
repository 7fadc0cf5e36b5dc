"""Of the rows that MariaDB logs of a system-versioned table, those that are current.

An UPDATE is logged as the UPDATE of the current row and the INSERT of the row from before. A DELETE as the UPDATE that sets the
row's end, and DELETE HISTORY as a DELETE. A current row ends at the last moment that the server's TIMESTAMP can hold.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from historian.changelog.operations import Op, physical_name
from historian.changelog.row_images import rows_where
from historian.errors import ValueUnrepresentable
from historian.schema.snapshots import Snapshot
from historian.schema.system_versioning import row_end

__all__ = ["current_rows"]

_LAST_MOMENTS_US = (2**31 * 10**6 - 1, 2**32 * 10**6 - 1)
"""Up to MariaDB 11.4, and from 11.5 on where the platform has 64 bits."""
_LAST_MOMENTS = ("2038-01-19 03:14:07.999999", "2106-02-07 06:28:15.999999")


def current_rows(rows: pa.RecordBatch, logged: Snapshot) -> pa.RecordBatch:
    """*rows* of a table without those that are not current; all where the table is not versioned.

    A change to a row that is not current any more is the current one's -R.

    Args:
        rows: of a chunk, with all columns of *logged*, whose temporal columns may be text.
        logged: the table as the log has it (:func:`~historian.schema.system_versioning.with_hidden_columns`).

    Raises:
        ValueUnrepresentable: an image lacks the row's end.
    """
    end = row_end(logged.columns)
    if end is None:
        return rows
    ends = rows.column(physical_name(end.id))
    if ends.null_count:
        raise ValueUnrepresentable(
            "a row of a system-versioned table does not say whether it is current",
            where=f"{logged.name}.{end.name}",
            expected="row images that have the column, as MariaDB logs them",
            found="an image without it",
        )
    text = pa.types.is_string(ends.type)
    last = pa.array(_LAST_MOMENTS) if text else pa.array(_LAST_MOMENTS_US)
    current = pc.is_in(ends if text else ends.cast(pa.int64()), last).to_numpy(zero_copy_only=False)
    operations = rows.column("op").to_numpy().copy()
    before = np.flatnonzero(operations == Op.CORRECT_FROM)
    operations[before[~current[before + 1]]] = Op.RETRACT
    operations[before[~current[before]] + 1] = Op.APPEND
    changed = rows.set_column(0, rows.schema.field("op"), pa.array(operations))
    return rows_where(changed, current)
