"""Chunks that executors read are the same as those in this process, and are read once."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import Mock
from uuid import uuid4

import pytest
from py4j.protocol import Py4JJavaError

from connectors.pipeline.failures import error_behind
from historian.changelog.chunks import Chunk
from historian.errors import LogCutOtherwise, SinkUnreachable
from lakes.sink_lab import INT, Lab
from sinks.contract.local_chunks import LocalChunks
from sinks.contract.read_chunks import ReadChunks, _collected, _groups

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
SIZES = (3, 1, 2)
PARTS = len(SIZES)


@pytest.fixture
def chunks() -> list[Chunk]:
    """Of two tables, and of one that stops."""
    lab = Lab()
    for name in ("shop.a", "shop.b", "shop.c"):
        lab.create(name, {"id": INT})
    for number in range(4):
        lab.insert("shop.a", {"id": number})
        lab.cut()
        lab.insert("shop.b", {"id": number})
    found = [chunk for plan in (*lab.plans, lab.cut()) for chunk in lab.chunks[plan.number]]
    found = [replace(chunk, sequence=number) for number, chunk in enumerate(found)]
    return [*found, replace(found[-1], table_id=lab.table_id("shop.c"), sequence=len(found), stopped="no more")]


@pytest.mark.parametrize("is_small", [True, False], ids=["one task's", "many tasks'"])
def test_executors_see_all_chunks_in_each_look_and_a_table_s_in_order_where_that_is_asked(
    spark: SparkSession, chunks: list[Chunk], is_small: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not is_small:
        monkeypatch.setattr("sinks.contract.chunks.SMALL_BYTES", 0)

    # Workers do not know this module: what is here goes to them by value.
    def part(number: int) -> list[Chunk]:
        return [chunk for chunk in chunks if chunk.sequence % PARTS == number]

    def seen(some: Iterator[Chunk]) -> Iterable[tuple[int, int, int]]:
        yield from [(chunk.table_id, chunk.sequence, chunk.rows.num_rows) for chunk in some]

    with closing(LocalChunks()) as local, closing(ReadChunks(spark, SIZES, part)) as read:
        local.fill([lambda: chunks])

        assert local.heads == read.heads
        assert sorted(local.map(seen)) == sorted(read.map(seen))
        assert read._kept is None, "rows went through Java"
        found = read.map(seen, by_table=True)
        assert sorted(local.map(seen, by_table=True)) == sorted(found)
        for table in {each[0] for each in found}:
            mine = [each for each in found if each[0] == table]
            assert mine == sorted(mine)
        assert sorted(local.map(seen)) == sorted(read.map(seen))


def test_what_a_worker_has_loaded_is_not_collected_again_behind_each_task(
    spark: SparkSession, chunks: list[Chunk], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sinks.contract.chunks.SMALL_BYTES", 0)  # several tasks, which take all workers

    def part(number: int) -> list[Chunk]:
        return chunks[number::PARTS]

    def left_out(some: Iterator[Chunk]) -> Iterable[tuple[int, int]]:
        list(some)
        yield os.getpid(), gc.get_freeze_count()

    with closing(ReadChunks(spark, SIZES, part)) as read:
        first = dict(read.map(left_out))
        again = [count for worker, count in read.map(left_out) if worker in first]
        assert again, "no worker took a second task"
        assert all(again)


@pytest.mark.parametrize("keep", [True, False], ids=["kept", "not kept"])
def test_executors_read_a_part_once_however_often_its_rows_are_looked_at(
    spark: SparkSession, chunks: list[Chunk], tmp_path: Path, keep: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sinks.contract.chunks.SMALL_BYTES", 0)

    def part(number: int) -> list[Chunk]:
        (tmp_path / str(uuid4())).touch()
        return chunks[number::PARTS]

    def rows(some: Iterator[Chunk]) -> list[list[dict[str, object]]]:
        return [chunk.rows.to_pylist() for chunk in some]

    with closing(LocalChunks()) as local, closing(ReadChunks(spark, SIZES, part, keep=keep)) as read:
        local.fill([lambda: chunks])
        expected = sorted(map(str, local.map(rows)))
        for by_table in (False, False, True):
            assert expected == sorted(map(str, read.map(rows, by_table=by_table)))

    assert (PARTS if keep else 4 * PARTS) == len(list(tmp_path.iterdir()))


def test_a_task_reads_parts_that_follow_one_another_and_each_once() -> None:
    for sizes in ([1] * 9, [100, 1, 1, 1], [1, 1, 1, 100], [0, 0, 0], [7], [1 << 27] * 5):
        for slots in (1, 2, 3, 40):
            groups = _groups(sizes, slots)
            assert list(range(len(sizes))) == [number for group in groups for number in group]
            assert all(groups)
    assert [[0, 1, 2], [3, 4, 5]] == _groups([1] * 6, 2)
    assert [[number] for number in range(4)] == _groups([1 << 26] * 4, 2)


def _split(chunks: list[Chunk]) -> list[Chunk]:
    """The same rows in more chunks, as another server's files cut them."""
    first = chunks[0]
    return [replace(first, rows=first.rows.slice(0, 0)), *chunks[1:], replace(first, sequence=len(chunks))]


@pytest.mark.parametrize("cut", [_split, lambda chunks: chunks[:-1]], ids=["other borders", "less of it"])
@pytest.mark.parametrize("kept", [False, True], ids=["read anew", "kept"])
def test_a_second_look_that_meets_other_chunks_than_were_counted_is_tried_again_and_gives_no_rows(
    spark: SparkSession, chunks: list[Chunk], tmp_path: Path, cut: Callable[[list[Chunk]], list[Chunk]], kept: bool
) -> None:
    looked, other = tmp_path / "looked", cut(chunks)

    def part(number: int) -> list[Chunk]:
        found = other if looked.exists() else chunks
        return found if number == 0 else []

    with closing(ReadChunks(spark, [1, 1], part, keep=False)) as read:
        assert [chunk.sequence for chunk in chunks] == [head.sequence for head in read.heads]
        looked.touch()

        with pytest.raises(Exception, match="LogCutOtherwise") as failure:
            read.frame.collect() if kept else read.map(lambda some: [chunk.sequence for chunk in some])

    assert isinstance(error_behind(failure.value), LogCutOtherwise)
    assert error_behind(failure.value).retryable


def test_why_a_task_failed_is_told_with_all_that_lies_behind_it(spark: SparkSession) -> None:
    """Whether the plan is tried again is seen in that text."""
    java: Any = spark._jvm
    lost = java.java.io.IOException("lost", java.java.net.ConnectException("refused"))
    failure = Py4JJavaError("a job failed", java.java.lang.RuntimeException("aborted", lost))
    rows = Mock(collect=Mock(side_effect=failure))

    with pytest.raises(Py4JJavaError) as raised:
        _collected(rows)

    assert raised.value is failure
    assert isinstance(error_behind(raised.value), SinkUnreachable)
