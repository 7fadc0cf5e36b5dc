"""ENUM's numbers and SET's bits as their labels' texts."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa

from connectors.readers.binlog.columns.arrays import Cells, Finish, text_array
from connectors.readers.binlog.columns.lenient import without
from historian.errors import ValueUnrepresentable
from historian.schema.snapshots import set_text

__all__ = ["enum", "flags"]

_ALL_BITS = 0xFFFFFFFFFFFFFFFF
_MOST_FLAGS = 64


def enum(labels: Sequence[str], size_bytes: int, policy: str) -> Finish:
    """ENUM's numbers as texts; number 0, the error value, is the empty text.

    Args:
        size_bytes: of a value in the log.
        policy: for numbers without a label.
    """
    texts = text_array(["", *labels])

    def finish(cells: Cells) -> pa.Array:
        def unrepresentable(row: int) -> ValueUnrepresentable:
            return _unrepresentable("an ENUM number", cells.place(row), f"at most {len(labels)}", int(cells.words[row]))

        kept = _kept(cells, cells.words > len(labels), size_bytes, policy, unrepresentable)
        return texts.take(pa.Array.from_buffers(pa.int64(), kept.rows, [kept.validity, kept.values], kept.nulls))

    return finish


def flags(labels: Sequence[str], size_bytes: int, policy: str) -> Finish:
    """SET's bits as labels in their order, separated by commas; the arguments as of :func:`enum`."""
    # Outside of strict mode servers take more labels where some are the same; a value has no bits of those behind the 64th.
    labels = labels[:_MOST_FLAGS]
    known = np.uint64((1 << len(labels)) - 1)

    def finish(cells: Cells) -> pa.Array:
        def unrepresentable(row: int) -> ValueUnrepresentable:
            found = bin(int(cells.words[row]) & _ALL_BITS)
            return _unrepresentable("a SET bit", cells.place(row), f"{len(labels)} bits", found)

        kept = _kept(cells, (cells.words.view(np.uint64) & ~known) != 0, size_bytes, policy, unrepresentable)
        masks, which = np.unique(kept.words, return_inverse=True)
        texts = [set_text(label for bit, label in enumerate(labels) if mask >> bit & 1) for mask in masks.tolist()]
        indices = pa.Array.from_buffers(
            pa.int64(), kept.rows, [kept.validity, pa.py_buffer(np.ascontiguousarray(which, np.int64))], kept.nulls
        )
        return text_array(texts).take(indices)

    return finish


def _kept(
    cells: Cells,
    wrong: np.ndarray[tuple[int], np.dtype[np.bool_]],
    size_bytes: int,
    policy: str,
    unrepresentable: Callable[[int], ValueUnrepresentable],
) -> Cells:
    def shown(row: int) -> tuple[bytes, str]:
        number = int(cells.words[row]) & _ALL_BITS
        return number.to_bytes(size_bytes, "little"), str(number)

    return without(cells, wrong, reason="invalid_member", policy=policy, shown=shown, unrepresentable=unrepresentable)


def _unrepresentable(what: str, where: str, expected: str, found: object) -> ValueUnrepresentable:
    return ValueUnrepresentable(
        f"{what} without a label",
        where=where,
        expected=expected,
        found=found,
        next_step="`historian heal` captures the table's schema again",
    )
