"""Chunks on their way: the same in order, whether they are held in memory or in a file."""

from __future__ import annotations

from contextlib import closing

import pyarrow as pa
import pytest

from connectors.backfill.spool import Spool, chunk_of
from historian.changelog.chunks import Chunk
from historian.changelog.operations import CHUNK_COLUMNS, Op


def _chunk(sequence: int) -> Chunk:
    system = [pa.array([int(Op.APPEND) if field.name == "op" else 0] * 9).cast(field.type) for field in CHUNK_COLUMNS]
    rows = pa.RecordBatch.from_arrays(
        [*system, pa.array([sequence] * 9)], schema=pa.schema([*CHUNK_COLUMNS, ("c1", pa.int64())])
    )
    return Chunk(
        table_id=sequence % 2,
        version=1,
        segment=0,
        sequence=sequence,
        file="b.000001",
        first_position="b.000001:4",
        last_position="b.000001:4",
        sources=("u",),
        rows=rows,
    )


@pytest.mark.parametrize("memory_bytes", [0, 800, 1 << 20], ids=["in a file", "in both", "in memory"])
def test_chunks_come_in_order_from_memory_and_file(memory_bytes: int) -> None:
    made = [_chunk(sequence) for sequence in (3, 1, 2, 0)]
    in_order = sorted(made, key=lambda chunk: chunk.sequence)
    with closing(Spool(memory_bytes)) as spool:
        for chunk in made:
            spool.add(chunk)
        assert len(spool) == 4
        assert list(spool.chunks()) == in_order
        assert [chunk_of(body) for body in spool] == in_order
        assert list(spool.chunks(1)) == [chunk for chunk in in_order if chunk.table_id == 1]
