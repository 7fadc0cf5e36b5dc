"""Values in the forms that users choose instead of the default ones (:mod:`historian.choices`). None rounds or replaces."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from connectors.readers.binlog.rows_arrow import Cells, Finish, bits, plain
from historian.errors import ValueUnrepresentable

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["no_missing_dates", "signed", "truth", "unsigned_text"]


def signed(cells: Cells) -> pa.Array:
    """BIGINT UNSIGNED as int64. Raises :class:`ValueUnrepresentable` for one above 2**63 - 1."""
    row = _first(cells, cells.words < 0)
    if row is not None:
        raise ValueUnrepresentable(
            "a number that int64 cannot hold",
            where=cells.place(row),
            expected=f"at most {2**63 - 1}, as types.bigint_unsigned says",
            found=int(cells.words[row]) + 2**64,
            next_step="choose decimal or text for the column, for new targets",
        )
    return plain(cells)


def unsigned_text(cells: Cells) -> pa.Array:
    """BIGINT UNSIGNED as its digits."""
    numbers = pa.Array.from_buffers(pa.uint64(), cells.rows, [cells.validity, cells.values], cells.nulls)
    return numbers.cast(pa.string())


def truth(cells: Cells) -> pa.Array:
    """TINYINT(1) as a boolean. Raises :class:`ValueUnrepresentable` for a number other than 0 and 1."""
    numbers = np.frombuffer(cells.values, np.int8, cells.rows)
    row = _first(cells, (numbers < 0) | (numbers > 1))
    if row is not None:
        raise ValueUnrepresentable(
            "a number that is no boolean",
            where=cells.place(row),
            expected="0 or 1, as types.tinyint1 says",
            found=int(numbers[row]),
            next_step="choose int8 for the column, for new targets",
        )
    return bits(cells)


def no_missing_dates(finish: Finish, why: str, next_step: str) -> Finish:
    """What *finish* makes, where it finds no date that the calendar lacks; *why* there must be none."""

    def strict(cells: Cells) -> pa.Array:
        array = finish(cells)
        if cells.unrepresentable:
            raise ValueUnrepresentable(
                "a date that the calendar does not have",
                where=cells.place(cells.first_unrepresentable),
                expected=why,
                found=f"{cells.unrepresentable} in {cells.rows} rows",
                next_step=next_step,
            )
        return array

    return strict


def _first(cells: Cells, wrong: NDArray[np.bool_]) -> int | None:
    found = np.flatnonzero(wrong & cells.valid())
    return int(found[0]) if len(found) else None
