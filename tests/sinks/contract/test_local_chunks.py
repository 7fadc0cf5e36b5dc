"""Chunks in this process: what goes in comes out, whether memory holds it or not, and however many threads go through it."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pytest

from historian.changelog.chunks import Chunk
from historian.errors import SinkError
from sinks.contract import chunks as chunk_sizes
from sinks.contract import local_chunks
from sinks.contract.local_chunks import LocalChunks

ROWS = 100


def _chunk(sequence: int, table_id: int = 1, stopped: str = "") -> Chunk:
    values = pa.array(range(sequence * ROWS, (sequence + 1) * ROWS if not stopped else sequence * ROWS), pa.int64())
    return Chunk(
        table_id=table_id,
        version=1,
        segment=0,
        sequence=sequence,
        file="b.000001",
        first_position="",
        last_position="",
        sources=(),
        rows=pa.RecordBatch.from_arrays([pa.array([0] * len(values), pa.uint8()), values], names=["op", "x"]),
        stopped=stopped,
    )


CHUNKS = [_chunk(sequence, table_id=1 + sequence % 3) for sequence in range(20)]


@pytest.fixture(params=[0, 10 * ROWS * 8, 1 << 20], ids=["in a file", "in both", "in memory"])
def held(request: pytest.FixtureRequest) -> Iterator[LocalChunks]:
    with closing(LocalChunks(threads=3, memory_bytes=request.param)) as chunks:
        chunks.fill([lambda part=CHUNKS[at::4]: part for at in range(4)])  # type: ignore[misc]
        yield chunks


def test_what_sources_gave_side_by_side_comes_in_order_of_sequence(held: LocalChunks) -> None:
    assert [head.sequence for head in held.heads] == list(range(20))
    assert [head.row_count for head in held.heads] == [ROWS] * 20
    assert held.is_small
    for _ in range(2):
        assert held.map(list) == CHUNKS


def test_large_plans_are_gone_through_by_many_threads(held: LocalChunks, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunk_sizes, "SMALL_BYTES", 0)
    assert not held.is_small
    together = threading.Barrier(3)

    def task(chunks: Iterable[Chunk]) -> Iterator[list[Chunk]]:
        found = list(chunks)
        together.wait(10)
        yield found

    parts = held.map(task)

    assert [chunk for part in parts for chunk in part] == CHUNKS
    assert [len(part) for part in parts] == [7, 7, 6]


@pytest.mark.parametrize("small_bytes", [0, 1 << 20])
def test_a_table_is_one_tasks_in_order(held: LocalChunks, small_bytes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunk_sizes, "SMALL_BYTES", small_bytes)

    parts = held.map(lambda chunks: [[(chunk.table_id, chunk.sequence) for chunk in chunks]], by_table=True)

    assert len(parts) == (1 if small_bytes else 3)
    assert [at for part in parts for at in part] == sorted((chunk.table_id, chunk.sequence) for chunk in CHUNKS)


def test_chunks_that_stop_a_table_are_told_of_and_not_given() -> None:
    last = _chunk(1, stopped="no such date")
    with closing(LocalChunks()) as chunks:
        chunks.fill([lambda: [CHUNKS[0], last]])

        assert [head.stopped for head in chunks.heads] == ["", "no such date"]
        assert chunks.map(list) == [CHUNKS[0]]


def test_no_chunks_are_no_results() -> None:
    with closing(LocalChunks(threads=2)) as chunks:
        chunks.fill([])

        assert (chunks.heads, chunks.is_small) == ((), True)
        assert chunks.map(list) == []
        assert chunks.map(list, by_table=True) == []


def test_what_a_source_or_a_task_raises_comes_through() -> None:
    def broken() -> Iterator[Chunk]:
        yield CHUNKS[0]
        raise LookupError("the log is gone")

    with closing(LocalChunks(threads=2)) as chunks, pytest.raises(LookupError, match="the log is gone"):
        chunks.fill([broken, lambda: CHUNKS[1:2]])

    def task(chunks: Iterable[Chunk]) -> Iterator[int]:
        yield from (1 // (chunk.sequence - 1) for chunk in chunks)

    with closing(LocalChunks()) as chunks:
        chunks.fill([lambda: CHUNKS[1:2]])
        with pytest.raises(ZeroDivisionError):
            chunks.map(task)


def test_a_full_disk_is_said_with_the_directory_of_temporary_files(monkeypatch: pytest.MonkeyPatch) -> None:
    full = Path("/dev/full").open("w+b")  # noqa: SIM115 closed with the chunks
    temporary = SimpleNamespace(TemporaryFile=lambda **_: full, gettempdir=lambda: "/the/tmp")
    monkeypatch.setattr(local_chunks, "tempfile", temporary)
    with (
        closing(LocalChunks(memory_bytes=0)) as chunks,
        pytest.raises(SinkError, match=r"a file cannot be written \(/the/tmp\).*No space left.*Next: mend the path"),
    ):
        chunks.fill([lambda: CHUNKS])
