"""Keys of rows as two numbers of 64 bits, by which states hold them. Who finds a row by them compares the key itself, too."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from historian.changelog.fingerprints.buckets import row_hashes
from historian.changelog.operations import physical_name
from historian.changelog.projection import carried
from historian.schema.snapshots import Snapshot
from historian.values.arrow_types import arrow_type

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["KeyHashes", "key_form", "keys_of", "layout_of"]

_SEEDS = (0x243F6A8885A308D3, 0x13198A2E03707344)
"""Digits of pi: two hashes that have nothing in common."""


@dataclass(frozen=True, slots=True)
class KeyHashes:
    """Of each key two numbers; they order keys, ``high`` first."""

    high: NDArray[np.int64]
    low: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.high)

    def take(self, places: NDArray[np.int64] | NDArray[np.bool_]) -> KeyHashes:
        """Those at *places*, in that order."""
        return KeyHashes(self.high[places], self.low[places])

    @staticmethod
    def joined(parts: Sequence[KeyHashes]) -> KeyHashes:
        """All of *parts*, one behind the other."""
        return KeyHashes(np.concatenate([p.high for p in parts]), np.concatenate([p.low for p in parts]))


def _form(kind: pa.DataType) -> pa.DataType:
    """The type in which values of *kind* are hashed: integers that get wider keep their hash."""
    return pa.int64() if pa.types.is_integer(kind) else kind


def _hashed(values: pa.Array) -> pa.Array:
    """*values* as they are hashed: the same where the source has them for the same number, which 0.0 and -0.0 are."""
    if pa.types.is_floating(values.type):
        return pc.add(values, pa.scalar(0, values.type))
    return pc.cast(values, _form(values.type))


def key_form(snapshot: Snapshot) -> str:
    """How keys of the table are made: columns and types. Where it is another one, keys are to be made anew."""
    by_id = {column.id: column for column in snapshot.columns}
    return ",".join(f"{number}:{_form(arrow_type(by_id[number].type))}" for number in snapshot.primary_key)


def layout_of(snapshot: Snapshot) -> str:
    """With which columns rows of the table are encoded."""
    return ",".join(f"{column.id}:{arrow_type(column.type)}" for column in sorted(snapshot.columns, key=lambda c: c.id))


def keys_of(rows: pa.RecordBatch, written: Snapshot, latest: Snapshot) -> KeyHashes:
    """The keys of *rows*, which were written under *written*, as those of *latest* are made; the table has a primary key there.

    Raises:
        ValueUnrepresentable: a value of a key's column does not fit its later type.
    """
    by_id = {column.id: column for column in latest.columns}
    names = [physical_name(number) for number in latest.primary_key]
    values = [
        carried(rows, written, by_id[number], where=f"{latest.name}.{by_id[number].name}")
        for number in latest.primary_key
    ]
    table = pa.table([_hashed(each) for each in values], names=names)
    high, low = (row_hashes(table, names, seed).view(np.int64) for seed in _SEEDS)
    return KeyHashes(high, low)
