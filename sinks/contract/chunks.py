"""The rows of one plan as sinks get them: chunks, in this process or on executors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol, TypeVar

from historian.changelog.chunks import Chunk, dead_letters, operations
from historian.changelog.missing_columns import lacking

__all__ = ["SMALL_BYTES", "ChunkHead", "Chunks", "head_of"]

SMALL_BYTES = 32 << 20
"""A plan up to this size is one task's: one file a table."""

_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkHead:
    """What a chunk says of itself, see :class:`historian.changelog.chunks.Chunk` and :data:`historian.changelog.chunks.CHUNK_STREAM`.

    Attributes:
        size_bytes: of its rows as Arrow.
        missing: ids of the columns that are absent in some row.
    """

    table_id: int
    version: int
    segment: int
    sequence: int
    row_count: int
    operations: str
    size_bytes: int
    nulled: str
    stopped: str
    missing: tuple[int, ...]
    dead_letters: str


class Chunks(Protocol):
    """All chunks of one plan. They can be gone through as often as wanted, and are the same each time."""

    @property
    def heads(self) -> tuple[ChunkHead, ...]:
        """A head of each chunk, in order of sequence; those that say why their table stopped are among them."""

    @property
    def is_small(self) -> bool:
        """Whether one task gets all chunks (:data:`SMALL_BYTES`)."""
        return sum(head.size_bytes for head in self.heads) <= SMALL_BYTES

    def map(self, task: Callable[[Iterator[Chunk]], Iterable[_Result]], *, by_table: bool = False) -> list[_Result]:
        """What *task* gives, called for parts of the chunks side by side.

        Chunks that say why a table stopped are left out, and those of messages that cannot be read.

        Args:
            task: gets chunks of any tables; it and what it gives pickle. It may be tried again with the same chunks after
                a failure.
            by_table: a table's chunks go to one task, one table's behind another's, in order of sequence; else they come in any order.
        """


def head_of(chunk: Chunk) -> ChunkHead:
    """The head of *chunk*."""
    return ChunkHead(
        table_id=chunk.table_id,
        version=chunk.version,
        segment=chunk.segment,
        sequence=chunk.sequence,
        row_count=chunk.rows.num_rows,
        operations=operations(chunk),
        size_bytes=chunk.rows.nbytes,
        nulled=(chunk.rows.schema.metadata or {}).get(b"nulled", b"").decode(),
        stopped=chunk.stopped,
        missing=lacking(chunk.rows),
        dead_letters=dead_letters(chunk),
    )
