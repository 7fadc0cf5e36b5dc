"""Columns that a server leaves out of an image though they changed: MariaDB's virtual ones, of MINIMAL and FULL_NODUP."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from historian.schema import Column, Snapshot

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["generated_from"]


def generated_from(snapshot: Snapshot, flavor: str, *, hidden: int) -> NDArray[np.uint8] | None:
    """A bitmap a column: those that a virtual column which images may lack is computed from. None: there is no such column.

    MySQL logs a virtual column wherever a column that it comes from is logged; MariaDB only with whole images. A name in
    the expression's text counts as a use of it, so that the bitmap may have too many columns, never too few. *hidden* columns
    that images have behind those of *snapshot* are computed from none.
    """
    columns = snapshot.columns
    virtual = [index for index, column in enumerate(columns) if column.generated == "virtual"]
    if flavor != "mariadb" or not virtual:
        return None
    uses = np.zeros((len(columns) + hidden, len(columns) + hidden), np.bool_)
    for index in virtual:
        uses[index, : len(columns)] = [_mentions(columns[index], other) for other in columns]
    for _ in virtual:  # what a virtual column comes from by way of others
        uses |= (uses.astype(np.int64) @ uses.astype(np.int64)).astype(np.bool_)
    return np.packbits(uses, axis=1, bitorder="little")


def _mentions(column: Column, other: Column) -> bool:
    expression = column.generation_expression
    return expression is None or other.name.lower() in expression.lower()
