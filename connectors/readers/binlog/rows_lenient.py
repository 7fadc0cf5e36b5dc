"""Text that no character set explains, where a choice lets its row go on: NULL, counted, and told of as a dead letter if wanted."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa

from connectors.readers.binlog.rows_arrow import Cells, Finish
from historian.errors import ValueUnrepresentable

__all__ = ["lenient"]


def lenient(finish: Finish, *, letters: bool) -> Finish:
    """What *finish* makes of values of varying width; those that it refuses, one by one, become NULL.

    Args:
        finish: raises :class:`ValueUnrepresentable` for the first value that it cannot make.
        letters: whether each is told of with the log's bytes.
    """

    def finish_some(cells: Cells) -> pa.Array:
        try:
            return finish(cells)
        except ValueUnrepresentable:
            pieces = cells.pieces()
            refused = [
                row for row, piece in enumerate(pieces) if piece is not None and not _is_made(finish, cells, piece)
            ]
            if not refused:
                raise  # It is not about one value.
        if letters:
            cells.letters = tuple((row, raw, _shown(raw)) for row in refused if (raw := pieces[row]) is not None)
        cells.unrepresentable, cells.first_unrepresentable = len(refused), refused[0]
        for row in refused:
            pieces[row] = None
        return finish(_cells(cells, pieces))

    return finish_some


def _is_made(finish: Finish, cells: Cells, piece: bytes) -> bool:
    try:
        finish(_cells(cells, [piece]))
    except ValueUnrepresentable:
        return False
    return True


def _cells(cells: Cells, pieces: list[bytes | None]) -> Cells:
    offsets = np.zeros(len(pieces) + 1, np.int32)
    np.cumsum([len(piece or b"") for piece in pieces], out=offsets[1:])
    missing = np.array([piece is None for piece in pieces], np.bool_)
    nulls = int(np.count_nonzero(missing))
    return replace(
        cells,
        rows=len(pieces),
        validity=pa.py_buffer(np.packbits(~missing, bitorder="little")) if nulls else None,
        nulls=nulls,
        values=pa.py_buffer(offsets),
        data=pa.py_buffer(b"".join(piece or b"" for piece in pieces)),
    )


def _shown(raw: bytes) -> str:
    r"""The value as far as it is ASCII; other bytes as ``\xNN``."""
    return raw.decode("ascii", "backslashreplace")
