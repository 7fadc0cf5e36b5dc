"""The few rows in which two large sets of rows can differ, found by fingerprints: what is equal is never sorted, joined or kept."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa

from historian.changelog.chunks import Chunk
from historian.changelog.fingerprints import Fingerprints
from sinks.contract.chunks import Chunks

__all__ = ["may_differ"]

_FEW_ROWS, _FEW_BYTES = 1 << 18, 1 << 28
"""Rows that can differ are worked on where the sink runs up to this number and size, of each side. They are taken and sorted there, so
they stand in memory several times."""

_Typed = Callable[[Chunk], pa.Table | None]


def may_differ(
    held: Callable[[], Iterable[pa.Table]], chunks: Chunks, typed: _Typed, schema: pa.Schema, key: Sequence[str]
) -> tuple[pa.Table, pa.Table] | None:
    """Rows of *held* and rows of *chunks*; those that are left out are the same on both sides. None where they are not few.

    Args:
        held: the rows that are there, some at a time, as often as it is called.
        chunks: of a plan; they are gone through twice.
        typed: the rows of a chunk in *schema*; None where they are of another table. It pickles.
        schema: of both.
        key: names of the columns that tell rows apart; (): rows count as whole ones.
    """
    seed = secrets.randbits(64)

    def fingerprints(tables: Iterable[pa.Table]) -> Fingerprints:
        found = Fingerprints(seed, key)
        for rows in tables:
            found.add(rows)
        return found

    def counted(chunks: Iterator[Chunk]) -> Iterable[Fingerprints]:
        return [fingerprints(filter(None, map(typed, chunks)))]

    wanted = Fingerprints(seed, key)
    with ThreadPoolExecutor(1, "fingerprints") as pool:
        counting = pool.submit(lambda: fingerprints(held()))
        for part in chunks.map(counted):
            wanted.merge(part)
        there = counting.result()
    buckets = wanted.differing(there)
    for side in (there, wanted):
        if side.count_in(buckets) > _FEW_ROWS or side.bytes_in(buckets) > _FEW_BYTES:
            return None

    def among(chunks: Iterator[Chunk]) -> Iterable[pa.Table]:
        empty = Fingerprints(seed, key)
        for rows in filter(None, map(typed, chunks)):
            yield rows.filter(pa.array(empty.among(rows, buckets)))

    if not buckets.any():
        return schema.empty_table(), schema.empty_table()
    few = (rows.filter(pa.array(there.among(rows, buckets))) for rows in held())
    return pa.concat_tables([schema.empty_table(), *few]), pa.concat_tables([schema.empty_table(), *chunks.map(among)])
