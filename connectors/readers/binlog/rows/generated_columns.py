"""Columns that a server leaves out of an image though they changed: MariaDB's generated ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from historian.schema.snapshots import Snapshot
from historian.schema.system_versioning import ROW_END, ROW_START

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["generated_from"]


def generated_from(snapshot: Snapshot, flavor: str, *, hidden: int) -> NDArray[np.uint8] | None:
    """A bitmap a column: those that a generated column which images may lack is computed from. None: there is no such column.

    MySQL logs a generated column wherever a column that it comes from is logged. MariaDB up to 11.8.6 logs a virtual one only
    with whole images. 11.8.9 leaves stored ones out as well, and both out of whole images too, of UPDATE, DELETE and REPLACE.
    A column with unknown sources may come from all. *hidden* columns that images have behind those of *snapshot* are computed
    from none, nor are those that say when a row was current.
    """
    columns = snapshot.columns
    generated = [
        index
        for index, column in enumerate(columns)
        if column.generated is not None and column.generation_expression not in (ROW_START, ROW_END)
    ]
    if flavor != "mariadb" or not generated:
        return None
    places = {column.id: index for index, column in enumerate(columns)}
    uses = np.zeros((len(columns) + hidden, len(columns) + hidden), np.bool_)
    for index in generated:
        sources = columns[index].sources
        if sources and places.keys() >= set(sources):
            uses[index, [places[source] for source in sources]] = True
        else:
            uses[index, : len(columns)] = True
    for _ in generated:  # what one comes from by way of others
        uses |= (uses.astype(np.int64) @ uses.astype(np.int64)).astype(np.bool_)
    return np.packbits(uses, axis=1, bitorder="little")
