"""Rows that a statement takes back are the same, in the same order, whether the sink reads them or Spark does."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

from historian.schema.snapshots import ColumnType
from lakes.lake import Lake
from lakes.sink_lab import INT, Lab, decimal, text
from sinks.delta.rewrite import few_rows

if TYPE_CHECKING:
    import pytest
    from pyspark.sql import SparkSession

KINDS: dict[str, tuple[ColumnType, Sequence[Any]]] = {
    "number": (INT, (0, -1, 1 << 30)),
    "unsigned": (ColumnType(name="bigint", unsigned=True), (0, 2**64 - 1, 2**63)),
    "money": (decimal(9, 2), (Decimal("-1.50"), Decimal("10.00"), Decimal("9.00"))),
    "wide": (decimal(38, 10), (Decimal("1e-10"), Decimal(2) ** 80, Decimal(-1))),
    "double": (ColumnType(name="double"), (1.5, -1e300, 2.0)),
    "flag": (ColumnType(name="bit", length=1), (False, True)),
    "day": (ColumnType(name="date"), (date(1000, 1, 1), date(9999, 12, 31))),
    "local": (
        ColumnType(name="datetime", fraction=6),
        (datetime.fromisoformat("1969-12-31T23:59:59.000001"), datetime.fromisoformat("2026-01-01")),
    ),
    "instant": (
        ColumnType(name="timestamp", fraction=6),
        tuple(datetime(2026, 1, 1, tzinfo=timezone.utc) + timedelta(microseconds=n) for n in range(2)),
    ),
    "text": (text(), ("", "B", "a", "a ", "é", "\U0001f600", "\uffee")),
    "bytes": (ColumnType(name="varbinary", length=9), (b"", b"\x7f", b"\x80", b"\x00\xff")),
}


def written(spark: SparkSession, path: Path) -> tuple[list[Any], list[Any]]:
    """What a TRUNCATE of a table by whole rows, and one by a key of them, adds to changelog and history."""
    lake, random = Lake(spark, path, Lab(), history="{database}_{table}_history"), Random(5)
    lab = lake.lab
    lab.create("shop.bag", {name: kind for name, (kind, _) in KINDS.items()}, key=())
    lab.create("shop.keyed", {name: kind for name, (kind, _) in KINDS.items()}, key=("text", "bytes", "wide", "local"))
    rows = [{name: random.choice((None, *values)) for name, (_, values) in KINDS.items()} for _ in range(60)]
    lab.insert("shop.bag", *rows)
    keys = {(r["text"], r["bytes"], r["wide"], r["local"]): r for r in rows if None not in r.values()}
    whole = [{name: random.choice(values) for name, (_, values) in KINDS.items()} for _ in range(60)]
    keys |= {(r["text"], r["bytes"], r["wide"], r["local"]): r for r in whole}
    lab.insert("shop.keyed", *keys.values())
    lake.cut()
    for table in ("shop.bag", "shop.keyed"):
        lab.truncate(table)
    lake.cut()
    assert lake.stopped() == {}
    lake.check_history("shop.keyed")
    logs = [
        [
            (one["offset"], *(one[name] for name in KINDS))
            for one in lake.raw_log(f"shop_{name}_changes")
            if one["op"] == 1
        ]
        for name in ("bag", "keyed")
    ]
    assert [len(log) for log in logs] == [60, len(keys)]
    ended = [(one["to_offset"], *(one[name] for name in KINDS)) for one in lake.mirror("shop_keyed_history")]
    return logs, sorted(ended, key=lambda one: one[0])


def test_few_rows_are_taken_back_in_the_order_of_many(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    logs, ended = written(spark, tmp_path / "here")
    assert logs[1] == ended

    monkeypatch.setattr(few_rows, "SMALL_BYTES", 0)
    assert (logs, ended) == written(spark, tmp_path / "spark")
