"""What a column of typed rows cannot hold, kept as JSON in another one."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from historian.errors import ValueUnrepresentable

__all__ = ["RESCUED", "Rescued"]

RESCUED = pa.field("rescued", pa.string())
"""The column: a JSON object of what did not fit, by the column's name in the row's own schema; NULL where all fits."""


class Rescued:
    """What did not fit of one chunk's rows.

    Values stand as text, as the types of the typed rows print; bytes as hexadecimal digits. NULL fits everywhere.
    """

    def __init__(self, rows: int) -> None:
        self._values: list[dict[str, str] | None] = [None] * rows

    def whole(self, name: str, values: pa.Array) -> None:
        """Keeps all *values* of the column *name*."""
        for at, value in enumerate(values.to_pylist()):
            self.keep(at, name, value)

    def keep(self, row: int, name: str, value: Any) -> None:
        """Keeps one value."""
        if value is not None:
            held = self._values[row]
            text = value.hex() if isinstance(value, bytes) else str(value)
            if held is None:
                self._values[row] = {name: text}
            else:
                held[name] = text

    def fitting(
        self, name: str, values: pa.Array, carry: Callable[[pa.Array], pa.Array], kind: pa.DataType
    ) -> pa.Array:
        """*values* as *carry* makes them values of *kind*; those that it refuses are kept, and are NULL.

        Where it refuses, it is asked again for each half, so that a few values that do not fit cost little.
        """

        def parts(at: int, some: pa.Array) -> list[pa.Array]:
            try:
                return [carry(some)]
            except ValueUnrepresentable:
                if len(some) == 1:
                    self.keep(at, name, some[0].as_py())
                    return [pa.nulls(1, kind)]
                half = len(some) // 2
                return [*parts(at, some[:half]), *parts(at + half, some[half:])]

        found = parts(0, values)
        return found[0] if len(found) == 1 else pa.concat_arrays(found)

    @property
    def column(self) -> pa.Array:
        """A text for each row."""
        texts = [None if held is None else json.dumps(held, ensure_ascii=False) for held in self._values]
        return pa.array(texts, RESCUED.type)
