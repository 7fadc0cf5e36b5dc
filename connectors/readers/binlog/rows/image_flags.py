"""What the images of a chunk's rows leave out: diffs become documents, an INSERT's missing values its columns' defaults."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from connectors.readers.binlog.columns.arrays import Cells
from connectors.readers.binlog.kernels.values import layout as at
from connectors.readers.binlog.rows.json_diffs import patched
from historian.changelog.missing_columns import ABSENT, UNSEEN, pack
from historian.changelog.operations import Op
from historian.errors import HistorianError, ValueUnrepresentable
from historian.schema.snapshots import Column
from historian.values.texts import default_scalar

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["ImageFlags", "inserted_rows"]


class ImageFlags:
    """The flags of a chunk's rows, as the kernel set them (see ``FLAG_MAPS`` in the kernels' ``layout``).

    Attributes:
        absent: for each row and column whether no image of the row tells the value.
        unseen: those of *absent* whose value may be another than in the row before the change.
    """

    def __init__(self, maps: NDArray[np.uint8], rows: int, columns: int) -> None:
        bits = np.unpackbits(maps.reshape(rows, at.FLAG_MAPS, -1), axis=2, count=columns, bitorder="little")
        self.absent, self.unseen, self._diffs = (bits[:, map_].astype(np.bool_) for map_ in range(at.FLAG_MAPS))

    def documents(self, cells: Cells, column: int) -> Cells:
        """JSON *cells* with the rows that are diffs as documents; those whose document before is absent are, too.

        Raises:
            ValueUnrepresentable, LogCorrupt: a diff that does not fit.
        """
        rows = np.flatnonzero(self._diffs[:, column])
        if not len(rows):
            return cells
        pieces, valid = cells.pieces(), cells.valid()
        for row in rows.tolist():
            before = pieces[row - 1]
            if self.absent[row - 1, column]:
                self.absent[row, column] = self.unseen[row, column] = True
            if before is None:
                if not self.absent[row, column]:
                    raise _misplaced(cells.place(row))
                pieces[row], valid[row] = None, False
                continue
            try:
                pieces[row] = patched(before, pieces[row] or b"")
            except HistorianError as error:
                error.where = error.where or cells.place(row)
                raise
        offsets = np.zeros(cells.rows + 1, np.int32)
        np.cumsum([len(piece or b"") for piece in pieces], out=offsets[1:])
        return replace(
            cells,
            validity=pa.py_buffer(np.packbits(valid, bitorder="little")),
            nulls=cells.rows - int(np.count_nonzero(valid)),
            values=pa.py_buffer(offsets),
            data=pa.py_buffer(b"".join(piece or b"" for piece in pieces)),
        )

    def with_defaults(self, values: pa.Array, column: Column, index: int, inserted: NDArray[np.bool_]) -> pa.Array:
        """*values* of column number *index* where rows *inserted* without it hold its default, as far as that is known."""
        rows = self.absent[:, index] & inserted
        if not rows.any():
            return values
        try:
            default = default_scalar(column, values.type)
        except ValueUnrepresentable:
            self.unseen[:, index] |= rows
            return values
        self.absent[:, index] &= ~rows
        return pc.if_else(pa.array(rows), default, values)

    def columns(self) -> dict[str, pa.Array]:
        """The columns of a chunk that tell of it."""
        flags = ((ABSENT, self.absent), (UNSEEN, self.unseen))
        return {name: pack(bits) for name, bits in flags if bits.any()}


def inserted_rows(op: NDArray[np.uint8], *place: NDArray[np.generic]) -> NDArray[np.bool_]:
    """The rows of *op* that an INSERT brought; those of an UPDATE of the key stand behind a -R of the same *place*."""
    after = np.zeros(len(op), np.bool_)
    after[1:] = op[:-1] == Op.RETRACT
    for values in place:
        after[1:] &= values[1:] == values[:-1]
    inserted: NDArray[np.bool_] = (op == Op.APPEND) & ~after
    return inserted


def _misplaced(where: str) -> ValueUnrepresentable:
    return ValueUnrepresentable("a JSON diff against NULL", where=where, expected="a document before it")
