"""Runs of a table's columns, whose places in a row image one addition finds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from connectors.readers.binlog.kernels.values import layout as at
from connectors.readers.binlog.rows.program import Step

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["runs"]

_MASK_COLUMNS = 64


def runs(steps: Sequence[Step]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The runs, a row of RUN_WORDS each, and each column's distance from where its run begins, which the rows point into.

    A run ends behind a column of varying width, and where the next 64 columns begin, since one word is their NULL bits.
    """
    distances: NDArray[np.int64] = np.zeros(len(steps) + at.RUN_STEP, np.int64)
    found: list[list[int]] = []
    first, size = 0, 0
    for column, step in enumerate(steps):
        distances[column] = size
        size += step.size
        behind = column + 1
        if step.kind == at.TEXT or behind % _MASK_COLUMNS == 0 or behind == len(steps):
            bits = (1 << (behind - first)) - 1 << first % _MASK_COLUMNS
            prefix = step.size if step.kind == at.TEXT else 0
            mask = bits - (1 << _MASK_COLUMNS) if bits >> _MASK_COLUMNS - 1 else bits
            found.append([first, behind - first, mask, size, prefix, distances.ctypes.data + 8 * first])
            first, size = behind, 0
    return np.array(found, np.int64).reshape(len(found), at.RUN_WORDS), distances
