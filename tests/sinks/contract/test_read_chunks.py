"""Chunks that executors read anew for each look at them are the same as those in this process."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from historian.changelog.chunks import Chunk
from lakes.sink_lab import INT, Lab
from sinks.contract.local_chunks import LocalChunks
from sinks.contract.spark_chunks import ReadChunks

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
PARTS = 3


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

    with closing(LocalChunks()) as local, closing(ReadChunks(spark, PARTS, part)) as read:
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
