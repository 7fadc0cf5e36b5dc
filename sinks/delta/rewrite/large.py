"""Net changes of large tables, written range by range of their keys, so that memory holds one range of each at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from historian.changelog.chunks import Chunk
from historian.schema.snapshots import Snapshot
from sinks.contract.chunks import Chunks
from sinks.delta.rewrite.files import Work, WrittenFile, labelled, write_files
from sinks.rows.key_ranges import KeyRanges, key_schema, ranges_of, sampled_keys

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["write_by_key"]

_RANGE_BYTES = 128 << 20
"""Rows of about this size, as Arrow, are folded at once."""

_Part = tuple[int, int]


def write_by_key(chunks: Chunks, works: Sequence[Work]) -> list[WrittenFile]:
    """The files of *works*, of which none is of a changelog; files of one kind of a part come in the order of their keys' ranges."""
    sizes: dict[_Part, int] = {}
    for head in chunks.heads:
        part = head.table_id, head.segment
        sizes[part] = sizes.get(part, 0) + head.size_bytes
    counts = {_part(work): -(-sizes[_part(work)] // _RANGE_BYTES) for work in works if _is_ranged(work)}
    ranges = _ranges(chunks, [work for work in works if counts.get(_part(work), 0) > 1], counts)
    files: list[WrittenFile] = []
    for number in range(max((one.count for one in ranges.values()), default=1)):
        now = [_ranged(work, ranges.get(_part(work)), number) for work in works]
        files += write_files(chunks, [work for work in now if work is not None], by_table=True)
    return files


def _part(work: Work) -> _Part:
    return work.table_id, work.segment


def _is_ranged(work: Work) -> bool:
    """Whether what becomes of a row depends on the rows of its key alone."""
    return not work.partial and bool(_schema(work).primary_key)


def _schema(work: Work) -> Snapshot:
    """The schema with the key by which rows fold."""
    if work.target is not None or work.history is None:
        return work.target or next(iter(work.carried.values()))
    return replace(work.carried[max(work.carried)], primary_key=work.history.key)


def _ranged(work: Work, ranges: KeyRanges | None, number: int) -> Work | None:
    if ranges is None:
        return work if number == 0 else None
    return replace(work, ranges=(ranges, number)) if number < ranges.count else None


def _ranges(chunks: Chunks, works: Sequence[Work], counts: Mapping[_Part, int]) -> dict[_Part, KeyRanges]:
    if not works:
        return {}
    keys = {_part(work): key_schema(_schema(work)) for work in works}
    samples: dict[_Part, list[pa.RecordBatch]] = {}
    for part, keys_of_chunk in chunks.map(_sampler({_part(work): work for work in works}, keys)):
        samples.setdefault(part, []).append(keys_of_chunk)
    return {part: ranges_of(found, keys[part], counts[part]) for part, found in samples.items()}


def _sampler(
    works: Mapping[_Part, Work], keys: Mapping[_Part, Snapshot]
) -> Callable[[Iterator[Chunk]], Iterator[tuple[_Part, pa.RecordBatch]]]:
    def sample(chunks: Iterable[Chunk]) -> Iterator[tuple[_Part, pa.RecordBatch]]:
        for chunk in chunks:
            part = chunk.table_id, chunk.segment
            if part in works:
                rows = labelled(chunk, works[part]).rows
                yield part, sampled_keys(rows, works[part].written[chunk.version], keys[part])

    return sample
