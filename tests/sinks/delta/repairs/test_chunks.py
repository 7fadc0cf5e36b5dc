"""Tables beside a repair: rows of repaired ones are not to be seen, and all the same decide how the others are written."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from lakes.held_rows import HeldLake
from lakes.sink_lab import INT, Lab, text
from sinks.contract import chunks
from sinks.contract.local_chunks import LocalChunks
from sinks.delta.repairs.chunks import RepairedChunks

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.usefixtures("quiet")


def test_no_row_is_lost_of_small_tables_beside_a_large_one_that_is_repaired(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tasks share the chunks, of which no task sees all of a table's."""
    lab = Lab()
    lake = HeldLake(spark, tmp_path / "lake", lab)
    small = ["shop.t0", "shop.t1"]
    for name in ["shop.big", *small]:
        lab.create(name, {"id": INT, "a": text(4000)})
        lab.insert(name, {"id": 1, "a": "x"})
    lab.insert("shop.big", *({"id": number, "a": "z" * 3000} for number in range(2, 100)))
    lake.cut()
    for first in (2, 102):
        for name in small:
            lab.insert(name, *({"id": first + number, "a": "y" * 3000} for number in range(25)))
        lab.flush()
    plan = lab.cut({"shop.big": "a test"})
    monkeypatch.setattr(chunks, "SMALL_BYTES", 400_000)
    lake.write(plan)
    lake.check(*small)


def test_what_is_not_to_be_seen_counts_where_it_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    lab = Lab()
    lab.create("shop.t", {"id": INT, "a": text(4000)})
    lab.insert("shop.t", *({"id": number, "a": "z" * 3000} for number in range(10)))
    plan = lab.cut()
    with lab.delivered(plan) as whole:
        seen = RepairedChunks(whole, {plan.tables[0].table_id}, LocalChunks())
        assert ((), True) == (seen.heads, seen.is_small)
        monkeypatch.setattr(chunks, "SMALL_BYTES", 1000)
        assert not seen.is_small
