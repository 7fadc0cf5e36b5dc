"""A plan's chunks with those of repaired tables replaced by what differs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from itertools import count
from typing import TypeVar

import numpy as np
import pyarrow as pa

from historian.changelog.chunks import Chunk
from historian.changelog.operations import CHUNK_COLUMNS, Op, physical_name
from historian.plans.plans import Plan
from historian.schema.snapshots import Snapshot
from historian.values.arrow_types import arrow_type
from sinks.contract.chunks import ChunkHead, Chunks
from sinks.contract.local_chunks import LocalChunks
from sinks.contract.parts import Part
from sinks.delta.repairs.differences import OP
from sinks.delta.schema.decisions import EvolvedPart

__all__ = ["RepairedChunks", "difference_chunks"]

_Result = TypeVar("_Result")
_CHUNK_ROWS = 1 << 18


class RepairedChunks(Chunks):
    """Chunks of other tables, and those with differences.

    Args:
        chunks: of the plan.
        hidden: ids of repaired tables, of which nothing else is to be seen.
        differences: theirs.
    """

    def __init__(self, chunks: Chunks, hidden: Collection[int], differences: LocalChunks) -> None:
        self._chunks = chunks
        self._hidden = frozenset(hidden)
        self._differences = differences

    @property
    def heads(self) -> tuple[ChunkHead, ...]:
        """See :class:`sinks.contract.chunks.Chunks`."""
        others = (head for head in self._chunks.heads if head.table_id not in self._hidden)
        return tuple(sorted((*others, *self._differences.heads), key=lambda head: head.sequence))

    @property
    def is_small(self) -> bool:
        """Rows that are not to be seen count too: tasks share them, and so the others."""
        return self._chunks.is_small and self._differences.is_small

    def map(self, task: Callable[[Iterator[Chunk]], Iterable[_Result]], *, by_table: bool = False) -> list[_Result]:
        """See :class:`sinks.contract.chunks.Chunks`."""
        hidden = self._hidden

        def others(chunks: Iterator[Chunk]) -> Iterable[_Result]:
            return task(chunk for chunk in chunks if chunk.table_id not in hidden)

        found = self._differences.map(task, by_table=by_table)
        return [*self._chunks.map(others, by_table=by_table), *found]


def difference_chunks(tables: Iterable[pa.Table], part: Part, shown: EvolvedPart, plan: Plan) -> Iterator[Chunk]:
    """What differs in the rows of *part*, the last one of its table, as chunks under the last version.

    Args:
        tables: as :func:`sinks.delta.repairs.differences.differences` gives them, under the names that targets' files have.
        part: as planned.
        shown: the same as the targets take it.
        plan: at whose end the rows are so.
    """
    version, snapshot = max(part.written.items())
    labels = shown.labels.get(version, {})
    sequences, ordinal = count(), 0
    for rows in (piece for table in tables for piece in _pieces(table)):
        yield Chunk(
            table_id=part.location.table_id,
            version=version,
            segment=part.segment,
            sequence=next(sequences),
            file=plan.end.file,
            first_position=str(plan.end.at),
            last_position=str(plan.end.at),
            sources=(),
            rows=_batch(rows, snapshot, labels, plan, ordinal),
        )
        ordinal += rows.num_rows


def _batch(rows: pa.Table, snapshot: Snapshot, labels: Mapping[str, str], plan: Plan, ordinal: int) -> pa.RecordBatch:
    """Rows at the end of *plan*; columns that targets leave out are NULL."""
    number = rows.num_rows
    system = (
        rows.column(OP.name).combine_chunks(),
        np.full(number, plan.system_time_us, np.int64),
        np.full(number, -1, np.int16),
        np.full(number, plan.end.offset, np.int64),
        np.arange(ordinal, ordinal + number, dtype=np.int32),
    )
    arrays = [pa.array(values).cast(field.type) for values, field in zip(system, CHUNK_COLUMNS, strict=True)]
    fields = list(CHUNK_COLUMNS)
    for column in snapshot.columns:
        name, kind = physical_name(column.id), arrow_type(column.type)
        held = labels.get(name, name)
        there = held in rows.schema.names
        arrays.append(rows.column(held).combine_chunks().cast(kind) if there else pa.nulls(number, kind))
        fields.append(pa.field(name, kind))
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))


def _pieces(table: pa.Table) -> Iterator[pa.Table]:
    """Pieces of it in order, of which none ends between a -C and its +C."""
    first = 0
    while first < table.num_rows:
        rows = table.slice(first, _CHUNK_ROWS)
        if rows.column(OP.name)[-1].as_py() == Op.CORRECT_FROM:
            rows = table.slice(first, rows.num_rows + 1)
        yield rows
        first += rows.num_rows
