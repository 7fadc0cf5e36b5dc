"""Values that cannot be represented, where a policy lets their rows go on: NULL, counted, and told of as dead letters if wanted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pyarrow as pa

from connectors.readers.binlog.columns.arrays import Cells, Finish
from historian.errors import ValueUnrepresentable
from historian.values.policies import DEAD_LETTER, FAIL

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Lost", "lenient", "lose", "without"]

Lost: TypeAlias = tuple[int, bytes, str, str]
"""A value that becomes NULL: its row, the log's bytes, its text, and the reason of :data:`historian.values.policies.REASONS`."""


def lose(cells: Cells, lost: Iterable[Lost], policy_of: Callable[[str], str]) -> list[int]:
    """Notes in *cells* what becomes NULL, by policies that are no ``fail``; the rows."""
    rows = []
    for row, raw, text, reason in lost:
        rows.append(row)
        if policy_of(reason) == DEAD_LETTER:
            cells.dead_letters += ((row, raw, text, reason),)
    if rows:
        cells.unrepresentable, cells.first_unrepresentable = cells.unrepresentable + len(rows), rows[0]
    return rows


def without(
    cells: Cells,
    wrong: NDArray[np.bool_],
    *,
    reason: str,
    policy: str,
    shown: Callable[[int], tuple[bytes, str]],
    unrepresentable: Callable[[int], ValueUnrepresentable],
) -> Cells:
    """*cells* of a fixed width with NULL where *wrong* is true.

    Args:
        shown: the log's bytes and the text of a row's value.
        unrepresentable: the error for a row, raised for the first one where the policy is ``error``.
    """
    if not wrong.any():
        return cells
    rows = np.flatnonzero(wrong & cells.valid())
    if not len(rows):
        return cells
    if policy == FAIL:
        raise unrepresentable(int(rows[0])).because(reason)
    lose(cells, ((row, *shown(row), reason) for row in rows.tolist()), lambda _: policy)
    valid = cells.valid()
    valid[rows] = False
    values = np.frombuffer(cells.values, np.uint8).reshape(cells.rows, -1).copy()
    values[rows] = 0
    return replace(cells, **_validity(~valid), values=pa.py_buffer(values))


def lenient(finish: Finish, policies: Mapping[str, str]) -> Finish:
    """What *finish* makes of values of varying width; those that it refuses, one by one, become NULL as *policies* let them.

    Args:
        finish: raises :class:`ValueUnrepresentable` for the first value that it cannot make.
        policies: by reason; the table stops at values for another one.
    """

    def policy_of(reason: str) -> str:
        return policies.get(reason, FAIL)

    def finish_some(cells: Cells) -> pa.Array:
        try:
            return finish(cells)
        except ValueUnrepresentable:
            pieces = cells.pieces()
            refused = list(_refused(finish, cells, pieces, 0))
            if not refused:
                raise  # It is not about one value.
        for _, error in refused:
            if policy_of(error.reason) == FAIL:
                raise error
        lost = ((row, pieces[row] or b"", _shown(pieces[row] or b""), error.reason) for row, error in refused)
        for row in lose(cells, lost, policy_of):
            pieces[row] = None
        return finish(_cells(cells, pieces, 0))

    return finish_some


def _refused(
    finish: Finish, cells: Cells, pieces: list[bytes | None], first: int
) -> Iterator[tuple[int, ValueUnrepresentable]]:
    """The rows that *finish* refuses of *pieces*, which begin at row *first*; halved as long as there are some."""
    try:
        finish(_cells(cells, pieces, first))
    except ValueUnrepresentable as error:
        half = len(pieces) // 2
        if half:
            yield from _refused(finish, cells, pieces[:half], first)
            yield from _refused(finish, cells, pieces[half:], first + half)
        else:
            yield first, error


def _cells(cells: Cells, pieces: list[bytes | None], first: int) -> Cells:
    offsets = np.zeros(len(pieces) + 1, np.int32)
    np.cumsum([len(piece or b"") for piece in pieces], out=offsets[1:])
    return replace(
        cells,
        rows=len(pieces),
        **_validity(np.array([piece is None for piece in pieces], np.bool_)),
        values=pa.py_buffer(offsets),
        data=pa.py_buffer(b"".join(piece or b"" for piece in pieces)),
        place=lambda row: cells.place(first + row),
    )


def _validity(missing: NDArray[np.bool_]) -> dict[str, Any]:
    nulls = int(np.count_nonzero(missing))
    return {"validity": pa.py_buffer(np.packbits(~missing, bitorder="little")) if nulls else None, "nulls": nulls}


def _shown(raw: bytes) -> str:
    r"""The value as far as it is ASCII; other bytes as ``\xNN``."""
    return raw.decode("ascii", "backslashreplace")
