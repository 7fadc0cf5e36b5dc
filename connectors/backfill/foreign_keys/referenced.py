"""The values that a foreign key references, as rows of its parent lost and got them in a log."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from historian.changelog.missing_columns import lacking
from historian.changelog.operations import Op, physical_name
from historian.plans.key_ranges import Key
from historian.plans.row_values import stored_keys
from historian.schema.snapshots import ColumnType

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["MOST_VALUES", "ReferencedValues"]

MOST_VALUES = 10_000
"""More make a plan, which holds them, large, and a condition for whose ranges MySQL's 8 MB (``range_optimizer_max_mem_size``) do not suffice."""


@dataclass(slots=True)
class ReferencedValues:
    """What rows of a parent had and got in some *columns*, by id and type, in a log.

    Attributes:
        old: of rows that went, and of those that got others; ``new``: which those got.
        has_deletes, has_updates: whether there are rows of either kind. A row that goes directly before one that comes counts as both:
            the log tells a change of the primary key so.
        is_known: whether these are all. They are not where the log lacks values, one becomes NULL, or they are too many.
    """

    columns: Sequence[tuple[int, ColumnType]]
    old: dict[Key, None] = field(default_factory=dict)
    new: dict[Key, None] = field(default_factory=dict)
    has_deletes: bool = False
    has_updates: bool = False
    is_known: bool = True
    _went_last: bool = False

    def take(self, rows: pa.RecordBatch) -> None:
        """Takes a chunk's rows, those that follow on the ones taken before."""
        if not rows.num_rows or not self.is_known:
            return
        ops = rows.column("op").to_numpy()
        went = np.flatnonzero(ops == Op.RETRACT)
        behind = went[went + 1 < len(ops)] + 1
        came = behind[ops[behind] == Op.APPEND]
        if self._went_last and ops[0] == Op.APPEND:
            came = np.concatenate(([0], came))
        self._went_last = ops[-1] == Op.RETRACT
        changed = np.flatnonzero(ops == Op.CORRECT_FROM)
        ids = {column_id for column_id, _ in self.columns}
        if (len(went) or len(changed)) and ids.intersection(lacking(rows)):
            self.is_known = False
            return
        changed = changed[self._differ(rows, changed)]
        self.has_deletes |= bool(len(went))
        self.has_updates |= bool(len(came) or len(changed))
        old = stored_keys(rows.take(pa.array(np.concatenate((went, changed)))), self.columns)
        new = stored_keys(rows.take(pa.array(np.concatenate((came, changed + 1)))), self.columns)
        # A row with NULL there is nobody's parent. One that gets it makes NULL of what referenced it.
        self.old |= dict.fromkeys(key for key in old if key is not None)
        self.new |= dict.fromkeys(key for key in new if key is not None)
        self.is_known = None not in new and len(self.old) + len(self.new) <= MOST_VALUES

    def _differ(self, rows: pa.RecordBatch, before: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Whether the columns of each of those rows have other values in the row behind it."""
        found = np.zeros(len(before), np.bool_)
        for column_id, _ in self.columns:
            cells = rows.column(physical_name(column_id))
            one, other = cells.take(pa.array(before)), cells.take(pa.array(before + 1))
            same = pc.fill_null(pc.equal(one, other), pc.and_(pc.is_null(one), pc.is_null(other)))
            found |= ~np.asarray(same.to_numpy(zero_copy_only=False), np.bool_)
        return found
