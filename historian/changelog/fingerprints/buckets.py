"""Sums of the hashes of rows, by buckets that a hash of their keys says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from historian.changelog.fingerprints.kernels import add_to_buckets, mix_bytes, mix_words

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Fingerprints", "row_hashes"]

_BUCKETS = 1 << 20
_PLACE_BYTES = 4
_EVERY: NDArray[np.bool_] = np.empty(0, np.bool_)


class Fingerprints:
    """Of some rows, added in any order and in pieces.

    Two sets of rows with equal sums are equal, each row as often as it is there, but for one chance in 2^64 a bucket. Values
    are hashed as Arrow has them: rows in other buckets than the differing ones are equal byte by byte.

    Args:
        seed: the same for what is compared; chosen by chance, so that nobody can make rows that collide.
        key: names of the columns by whose values rows come into buckets; (): all of them.
    """

    def __init__(self, seed: int, key: Sequence[str] = ()) -> None:
        self._seed = seed
        self._key = tuple(key)
        self._sums = np.zeros(_BUCKETS, np.uint64)
        self._counts = np.zeros(_BUCKETS, np.int64)
        self._sizes = np.zeros(_BUCKETS, np.int64)

    def add(self, rows: pa.Table) -> None:
        """Counts *rows* in. Their columns come in the same order each time."""
        keys = self._keys(rows)
        others = [name for name in rows.schema.names if name not in self._key] if self._key else []
        hashes = _hashed(rows, others, keys.copy())
        add_to_buckets(self._sums, self._counts, self._sizes, keys, hashes, _lengths(rows))

    def merge(self, other: Fingerprints) -> None:
        """Counts the rows of another one in, of the same seed and key."""
        self._sums += other._sums
        self._counts += other._counts
        self._sizes += other._sizes

    def differing(self, other: Fingerprints) -> NDArray[np.bool_]:
        """Which buckets are not as *other* has them."""
        found: NDArray[np.bool_] = (self._sums != other._sums) | (self._counts != other._counts)
        return found

    def count_in(self, buckets: NDArray[np.bool_]) -> int:
        """How many rows lie in *buckets*."""
        return int(self._counts[buckets].sum())

    def bytes_in(self, buckets: NDArray[np.bool_]) -> int:
        """How many bytes the rows in *buckets* take in Arrow."""
        return int(self._sizes[buckets].sum())

    def among(self, rows: pa.Table, buckets: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Which of *rows* lie in *buckets*."""
        found: NDArray[np.bool_] = buckets[self._keys(rows) & np.uint64(_BUCKETS - 1)]
        return found

    def _keys(self, rows: pa.Table) -> NDArray[np.uint64]:
        return _hashed(rows, self._key or rows.schema.names, np.full(rows.num_rows, self._seed, np.uint64))


def row_hashes(rows: pa.Table, names: Sequence[str], seed: int = 0) -> NDArray[np.uint64]:
    """A hash of each row's values in the columns *names*, of types that rows of changelogs have; of another *seed* another one."""
    return _hashed(rows, names, np.full(rows.num_rows, seed, np.uint64))


def _lengths(rows: pa.Table) -> NDArray[np.int64]:
    """How many bytes each row takes in Arrow, but for the bits that say what is NULL."""
    found = np.zeros(rows.num_rows, np.int64)
    for column in rows.columns:
        if column.type in (pa.string(), pa.binary()):
            at = 0
            for values in column.chunks:
                found[at : at + len(values)] += np.diff(_places(values))
                at += len(values)
            found += _PLACE_BYTES
        else:
            found += -(-column.type.bit_width // 8)
    return found


def _hashed(rows: pa.Table, names: Sequence[str], hashes: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """*hashes* with the values of those columns taken in."""
    for name in names:
        at = 0
        for values in rows.column(name).chunks:
            _take(values, hashes[at : at + len(values)])
            at += len(values)
    return hashes


def _take(values: pa.Array, hashes: NDArray[np.uint64]) -> None:
    valid = _EVERY if not values.null_count else np.array(values.is_valid())
    if values.type in (pa.string(), pa.binary()):
        mix_bytes(hashes, _places(values), _read(values.buffers()[2] or b"", np.uint8), valid)
    else:
        for words in _words(values):
            mix_words(hashes, words, valid)


def _places(values: pa.Array) -> NDArray[np.int32]:
    """Where each text begins, and where the last one ends."""
    return _read(values.buffers()[1], np.int32)[values.offset : values.offset + len(values) + 1]


def _words(values: pa.Array) -> Sequence[NDArray[np.uint64]]:
    """The values as words of 64 bits, whatever NULL has."""
    if pa.types.is_boolean(values.type):
        values = pc.cast(values, pa.uint8())
    width = values.type.bit_width // 8
    _, body = values.buffers()
    if width == 16:
        both = _read(body, np.uint64)[2 * values.offset : 2 * (values.offset + len(values))]
        return both[::2].copy(), both[1::2].copy()
    found = _read(body, f"u{width}")[values.offset : values.offset + len(values)]
    return (found.astype(np.uint64),)


def _read(buffer: Any, kind: Any) -> NDArray[Any]:
    """What is there, not to be written to, whoever else may: so a kernel is compiled once."""
    found = np.frombuffer(buffer, kind)
    found.flags.writeable = False
    return found
