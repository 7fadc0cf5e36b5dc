"""Chunks travel as rows and say where each of their rows stood in the log."""

from __future__ import annotations

from datetime import datetime, timezone

import pyarrow as pa
import pytest

from historian.changelog.chunks import CHUNK_STREAM, Chunk, chunk_row, chunks_of, positions
from historian.changelog.operations import CHUNK_COLUMNS
from models.timelines import A, B

WHEN = datetime(2024, 1, 1, tzinfo=timezone.utc)


def a_chunk(
    sources: tuple[str, ...], transactions: list[tuple[int, int]], *, table_id: int = 1, nulled: str = ""
) -> Chunk:
    """Rows of *transactions*, each (index of its source, number)."""
    count = len(transactions)
    values = [
        [0] * count,
        [WHEN] * count,
        [source for source, _ in transactions],
        [number for _, number in transactions],
        list(range(count)),
        list(range(count)),
    ]
    fields = [*CHUNK_COLUMNS, pa.field("h1", pa.int32())]
    arrays = [pa.array(column, field.type) for column, field in zip(values, fields, strict=True)]
    metadata = {"nulled": nulled} if nulled else None
    return Chunk(
        table_id=table_id,
        version=2**40,
        segment=1,
        sequence=2**33,
        file="binlog.000001",
        first_position="first",
        last_position="last",
        sources=sources,
        rows=pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields, metadata=metadata)),
    )


def test_a_chunk_travels_as_a_row() -> None:
    chunks = [a_chunk((A,), [(0, 1), (0, 2)]), a_chunk((), [], table_id=7, nulled='{"h1":3}')]

    row = pa.Table.from_batches([chunk_row(chunk) for chunk in chunks]).combine_chunks().to_batches()[0]

    assert CHUNK_STREAM == row.schema
    assert [(2, ""), (0, '{"h1":3}')] == list(
        zip(row.column("row_count").to_pylist(), row.column("nulled").to_pylist(), strict=True)
    )
    assert chunks == list(chunks_of(row))
    assert [None, {b"nulled": b'{"h1":3}'}] == [chunk.rows.schema.metadata for chunk in chunks_of(row)]


@pytest.mark.parametrize(
    "sources,transactions,expected",
    [
        ((A, f"{B}:backup"), [(0, 5), (1, 7), (0, 2**62)], [f"{A}:5", f"{B}:backup:7", f"{A}:{2**62}"]),
        (("0-1", "1-5"), [(1, 9), (0, 4)], ["1-5-9", "0-1-4"]),
        ((A,), [(-1, 4711), (0, 1)], ["binlog.000001:4711", f"{A}:1"]),
        ((), [(-1, 4)], ["binlog.000001:4"]),
        ((), [], []),
    ],
    ids=["mysql", "mariadb", "some without GTID", "none with GTID", "no rows"],
)
def test_each_row_says_the_position_of_its_transaction(
    sources: tuple[str, ...], transactions: list[tuple[int, int]], expected: list[str]
) -> None:
    assert expected == positions(a_chunk(sources, transactions)).to_pylist()
