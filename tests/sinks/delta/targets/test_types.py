"""Values of every type come back from Spark as they were written, found by filters that skip files by statistics."""

from __future__ import annotations

from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from historian.schema.snapshots import ColumnType
from lakes.lake import Lake
from lakes.sink_lab import INT, Lab, decimal, text
from sinks.delta.rewrite import held_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MICROSECOND = timedelta(microseconds=1)

COLUMNS: dict[str, ColumnType] = {
    "id": INT,
    "tiny": ColumnType(name="tinyint"),
    "tiny_u": ColumnType(name="tinyint", unsigned=True),
    "small": ColumnType(name="smallint"),
    "int_u": ColumnType(name="int", unsigned=True),
    "big": ColumnType(name="bigint"),
    "big_u": ColumnType(name="bigint", unsigned=True),
    "money": decimal(9, 2),
    "wide": decimal(18, 4),
    "widest": decimal(38, 10),
    "too_wide": decimal(60, 2),
    "single": ColumnType(name="float"),
    "double": ColumnType(name="double"),
    "flag": ColumnType(name="bit", length=1),
    "bits": ColumnType(name="bit", length=12),
    "day": ColumnType(name="date"),
    "local": ColumnType(name="datetime", fraction=6),
    "instant": ColumnType(name="timestamp", fraction=6),
    "span": ColumnType(name="time", fraction=6),
    "year": ColumnType(name="year"),
    "text": text(400),
    "bytes": ColumnType(name="varbinary", length=100),
    "json": ColumnType(name="json"),
    "odd `name`.x": INT,
}


def _row(at: int, **values: Any) -> dict[str, Any]:
    return {name: values.get(name) for name in COLUMNS} | {"id": at}


LOW = _row(
    1,
    tiny=-128,
    tiny_u=0,
    small=-(2**15),
    int_u=0,
    big=-(2**63),
    big_u=Decimal(0),
    money=Decimal("-9999999.99"),
    wide=Decimal("-99999999999999.9999"),
    widest=Decimal("-9999999999999999999999999999.9999999999"),
    too_wide="-1.00",
    single=-1.5,
    double=-0.1,
    flag=False,
    bits=b"\x00\x01",
    day=date(1000, 1, 1),
    local=datetime(1000, 1, 1) + MICROSECOND,  # noqa: DTZ001 a DATETIME has no zone
    instant=datetime(1970, 1, 1, 0, 0, 1, 1, tzinfo=timezone.utc),
    span=-3_020_399_000_000,
    year=1901,
    text="a" * 31,
    bytes=b"",
    json='{"a": 1.10}',
)
LOW["odd `name`.x"] = -1
HIGH = _row(
    2,
    tiny=127,
    tiny_u=255,
    small=2**15 - 1,
    int_u=2**32 - 1,
    big=2**63 - 1,
    big_u=Decimal(2**64 - 1),
    money=Decimal("9999999.99"),
    wide=Decimal("99999999999999.9999"),
    widest=Decimal("9999999999999999999999999999.9999999999"),
    too_wide="9" * 58 + ".99",
    single=3.4028234663852886e38,
    double=1.7976931348623157e308,
    flag=True,
    bits=b"\x0f\xff",
    day=date(9999, 12, 31),
    local=datetime(9999, 12, 31, 23, 59, 59, 999999),  # noqa: DTZ001 a DATETIME has no zone
    instant=datetime(2038, 1, 19, 3, 14, 7, 999999, tzinfo=timezone.utc),
    span=3_020_399_000_000,
    year=2155,
    text="é\U0001f600" * 150,
    bytes=b"\xff" * 100,
    json="[]",
)
HIGH["odd `name`.x"] = 1
NULLS = _row(3)


@pytest.mark.parametrize("small_bytes", [0, held_rows.SMALL_BYTES], ids=["merged", "rewritten"])
def test_every_type_comes_back(
    spark: SparkSession, tmp_path: Path, small_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(held_rows, "SMALL_BYTES", small_bytes)
    lake = Lake(spark, tmp_path / "a lake é", Lab())
    lake.lab.create("shop.t", COLUMNS)
    lake.lab.insert("shop.t", LOW)
    lake.cut()
    lake.lab.insert("shop.t", HIGH, NULLS)
    lake.lab.update("shop.t", LOW, tiny=-127)
    lake.cut()

    lake.check("shop.t")
    if small_bytes:
        _check_filters(lake)


def _check_filters(lake: Lake) -> None:
    """All values find their row in the changelog, whose two files say in their statistics what they hold.

    One of which statistics say otherwise would have Spark skip the file for all of them.
    """
    from pyspark.sql import functions as F  # noqa: N812 Spark's own custom

    log = lake.spark.read.format("delta").load(str(lake.path / "shop_t_changes"))
    kinds = dict(log.dtypes)
    for row in (LOW, HIGH):
        found = log
        for name in COLUMNS:
            column, value = F.col("`" + name.replace("`", "``") + "`"), row[name]
            if name == "local":
                value = value.isoformat()  # F.lit takes it through java.sql.Timestamp, Julian before 1582
            found = found.where(column == F.lit(value).cast(kinds[name]))
        assert row["id"] in {r["id"] for r in found.select("id").collect()}
    assert [3] == [r["id"] for r in log.where("tiny IS NULL").collect()]


def test_files_that_cannot_match_are_skipped(spark: SparkSession, tmp_path: Path) -> None:
    lake = Lake(spark, tmp_path / "lake", Lab())
    lake.lab.create("shop.t", {"id": INT, "a": text(100), "at": ColumnType(name="datetime", fraction=6)})
    first = datetime(2024, 1, 1, 0, 0, 0, 1999)  # noqa: DTZ001 a DATETIME has no zone
    for i in range(3):
        lake.lab.insert("shop.t", {"id": i, "a": f"{i}" * 60, "at": first + timedelta(days=i)})
        lake.cut()
    log = lake.spark.read.format("delta").load(str(lake.path / "shop_t_changes"))

    filters = ("id = 1", f"a = '{'1' * 60}'", "at = timestamp_ntz'2024-01-02 00:00:00.001999'", "offset = 1")
    found = [log.where(f) for f in filters]
    assert [[1]] * 4 == [[r["id"] for r in rows.collect()] for rows in found]
    assert [1] * 4 == [_files_read(rows) for rows in found]


def _files_read(rows: DataFrame) -> int:
    scan = rows._jdf.queryExecution().executedPlan().collectLeaves().apply(0)
    return int(scan.metrics().apply("numFiles").value())
