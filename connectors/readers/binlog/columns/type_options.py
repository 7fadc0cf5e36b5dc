"""Values in the forms that users choose instead of the default ones (:mod:`historian.plans.type_options`). None rounds or replaces."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from connectors.readers.binlog.columns.arrays import Cells, Finish, bits, plain
from connectors.readers.binlog.columns.lenient import without
from historian.errors import ValueUnrepresentable

__all__ = ["no_missing_dates", "signed", "truth", "unsigned_text"]

_OTHERS = "null or dead_letter as"


def signed(policy: str) -> Finish:
    """BIGINT UNSIGNED as int64; *policy* is for numbers above 2**63 - 1."""

    def finish(cells: Cells) -> pa.Array:
        def shown(row: int) -> tuple[bytes, str]:
            number = int(cells.words[row]) + 2**64
            return number.to_bytes(8, "little"), str(number)

        def unrepresentable(row: int) -> ValueUnrepresentable:
            return ValueUnrepresentable(
                "a number that int64 cannot hold",
                where=cells.place(row),
                expected=f"at most {2**63 - 1}, as types.bigint_unsigned says",
                found=shown(row)[1],
                next_step=f"choose {_OTHERS} types.int64_overflow, or decimal or text for the column, for new targets",
            )

        wrong = cells.words < 0
        return plain(
            without(cells, wrong, reason="int64_overflow", policy=policy, shown=shown, unrepresentable=unrepresentable)
        )

    return finish


def unsigned_text(cells: Cells) -> pa.Array:
    """BIGINT UNSIGNED as its digits."""
    numbers = pa.Array.from_buffers(pa.uint64(), cells.rows, [cells.validity, cells.values], cells.nulls)
    return numbers.cast(pa.string())


def truth(policy: str) -> Finish:
    """TINYINT(1) as a boolean; *policy* is for numbers other than 0 and 1."""

    def finish(cells: Cells) -> pa.Array:
        numbers = np.frombuffer(cells.values, np.int8, cells.rows)

        def shown(row: int) -> tuple[bytes, str]:
            return numbers[row].tobytes(), str(numbers[row])

        def unrepresentable(row: int) -> ValueUnrepresentable:
            return ValueUnrepresentable(
                "a number that is no boolean",
                where=cells.place(row),
                expected="0 or 1, as types.tinyint1 says",
                found=shown(row)[1],
                next_step=f"choose {_OTHERS} types.invalid_boolean, or int8 for the column, for new targets",
            )

        wrong = (numbers < 0) | (numbers > 1)
        return bits(
            without(cells, wrong, reason="invalid_boolean", policy=policy, shown=shown, unrepresentable=unrepresentable)
        )

    return finish


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
            ).because("zero_dates")
        return array

    return strict
