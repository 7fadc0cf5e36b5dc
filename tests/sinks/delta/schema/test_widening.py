"""Types that Delta widens: files of before and of after are one table's, and Spark reads in both what was written."""

from __future__ import annotations

import json
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from historian.schema.snapshots import ColumnType
from historian.schema.type_compatibility import is_compatible
from lakes.held_rows import HeldLake, spark_table
from lakes.sink_lab import INT, Lab, decimal
from sinks.delta.rewrite import held_rows

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pyspark.sql import SparkSession

TINY, SMALL, MEDIUM, BIG, FLOAT, DOUBLE, DATE = (
    ColumnType(name=name) for name in ("tinyint", "smallint", "mediumint", "bigint", "float", "double", "date")
)
UNSIGNED = {name: ColumnType(name=name, unsigned=True) for name in ("tinyint", "mediumint", "int", "bigint")}
DATETIME = ColumnType(name="datetime", fraction=6)
NOON = datetime(2024, 2, 29, 12, 0, 0, 1)  # noqa: DTZ001 a DATETIME has no zone
LARGE = Decimal(9999999999)
PAIRS: dict[str, tuple[ColumnType, ColumnType, tuple[Any, Any], Any]] = {
    "tiny_small": (TINY, SMALL, (-128, 127), -(2**15)),
    "tiny_int": (TINY, INT, (-128, 127), 2**31 - 1),
    "tiny_big": (TINY, BIG, (-128, 127), 2**63 - 1),
    "tiny_decimal": (TINY, decimal(10, 0), (-128, 127), LARGE),
    "tiny_double": (TINY, DOUBLE, (-128, 127), 0.1),
    "tiny_u_double": (UNSIGNED["tinyint"], DOUBLE, (0, 255), -0.1),
    "small_int": (SMALL, INT, (-(2**15), 2**15 - 1), -(2**31)),
    "small_big": (SMALL, BIG, (-(2**15), 2**15 - 1), -(2**63)),
    "small_decimal": (SMALL, decimal(10, 0), (-(2**15), 2**15 - 1), -LARGE),
    "small_double": (SMALL, DOUBLE, (-(2**15), 2**15 - 1), 1.5e300),
    "medium_decimal": (MEDIUM, decimal(38, 28), (-(2**23), 2**23 - 1), Decimal("0." + "9" * 28)),
    "medium_u_double": (UNSIGNED["mediumint"], DOUBLE, (0, 2**24 - 1), 0.5),
    "int_big": (INT, BIG, (-(2**31), 2**31 - 1), 2**40),
    "int_decimal": (INT, decimal(10, 0), (-(2**31), 2**31 - 1), LARGE),
    "int_cents": (INT, decimal(12, 2), (-(2**31), 2**31 - 1), Decimal("-9999999999.99")),
    "int_double": (INT, DOUBLE, (-(2**31), 2**31 - 1), 2.0**31 + 0.5),
    "int_u_big": (UNSIGNED["int"], BIG, (0, 2**32 - 1), -1),
    "int_u_decimal": (UNSIGNED["int"], decimal(22, 2), (0, 2**32 - 1), Decimal("-0.01")),
    "big_decimal": (BIG, decimal(20, 0), (-(2**63), 2**63 - 1), Decimal("9" * 20)),
    "big_cents": (BIG, decimal(22, 2), (-(2**63), 2**63 - 1), Decimal("0.01")),
    "big_u_decimal": (UNSIGNED["bigint"], decimal(25, 5), (Decimal(0), Decimal(2**64 - 1)), Decimal("-0.00001")),
    "float_double": (FLOAT, DOUBLE, (0.10000000149011612, 3.4028234663852886e38), 0.1),
    "money": (decimal(5, 2), decimal(7, 2), (Decimal("-999.99"), Decimal("0.01")), Decimal("99999.99")),
    "exact": (decimal(5, 2), decimal(7, 4), (Decimal("-999.99"), Decimal("0.01")), Decimal("0.0001")),
    "day_time": (DATE, DATETIME, (date(1000, 1, 1), date(9999, 12, 31)), NOON),
}
OLD = [{"id": at, **{name: pair[2][at] for name, pair in PAIRS.items()}} for at in range(2)]
NULLS = {"id": 2, **dict.fromkeys(PAIRS)}
NEW = {"id": 3, **{name: pair[3] for name, pair in PAIRS.items()}}


def _as_now(rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    return [
        {
            name: datetime(value.year, value.month, value.day) if type(value) is date else value  # noqa: DTZ001
            for name, value in row.items()
        }
        for row in rows
    ]


def _widened(lab: Lab, table: str, **types: ColumnType) -> None:
    for name, kind in types.items():
        lab.retype(table, name, kind)


def _data(rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Rows of a target without the columns that are the target's own."""
    return [{name: row[name] for name in NEW} for row in rows]


def _actions(lake: HeldLake, directory: str) -> set[str]:
    """What the newest commit of a table says."""
    log = lake.path / directory / "_delta_log" / f"{lake.versions(directory):020}.json"
    return {next(iter(json.loads(line))) for line in log.read_text().splitlines()}


def test_spark_reads_files_of_every_type_that_widened(spark: SparkSession, tmp_path: Path) -> None:
    assert all(is_compatible(old, new) for old, new, _, _ in PAIRS.values())
    lake = HeldLake(spark, tmp_path / "lake", Lab(), history="{database}_{table}_history")
    lab = lake.lab
    for table in ("shop.apart", "shop.at_once"):
        lab.create(table, {"id": INT, **{name: pair[0] for name, pair in PAIRS.items()}})
        if table == "shop.apart":
            lab.insert(table, *OLD, NULLS)
            lake.cut()
        else:
            lab.insert(table, *OLD, NULLS)
        _widened(lab, table, **{name: pair[1] for name, pair in PAIRS.items()})
        if table == "shop.apart":
            lake.cut()
            for directory in ("shop_apart", "shop_apart_changes", "shop_apart_history"):
                assert _actions(lake, directory).isdisjoint({"add", "remove"}), directory
                assert "metaData" in _actions(lake, directory)
        lab.insert(table, NEW)
        lake.cut()

    assert lake.stopped() == {}
    expected = _as_now([*OLD, NULLS, NEW])
    for table in ("shop_apart", "shop_at_once"):
        for directory in (table, f"{table}_changes", f"{table}_history"):
            rows = spark_table(spark, str(lake.path / directory))
            assert sorted(_data(rows.to_pylist()), key=lambda row: row["id"]) == expected, directory
            assert rows.schema.field("int_cents").type == pa.decimal128(12, 2)
    _check_filters(lake, expected)


def test_spark_reads_what_is_packed_as_differences_under_every_type_that_it_widens_to(
    spark: SparkSession, tmp_path: Path
) -> None:
    """As many rows as it takes for a column to be packed; values count up."""
    packed = {name: pair for name, pair in PAIRS.items() if pair[0] not in (FLOAT, UNSIGNED["bigint"])}
    lake = HeldLake(spark, tmp_path / "lake", Lab(), mirror=None)
    lab = lake.lab
    lab.create("shop.t", {"id": INT, **{name: pair[0] for name, pair in packed.items()}})
    old = [{"id": at, **{name: _counted(pair[0], at) for name, pair in packed.items()}} for at in range(400)]
    lab.insert("shop.t", *old)
    lake.cut()
    (path,) = (lake.path / "shop_t_changes").glob("*.parquet")
    group = pq.ParquetFile(path).metadata.row_group(0)
    columns = [group.column(at) for at in range(group.num_columns)]
    names = {c.path_in_schema for c in columns if "DELTA_BINARY_PACKED" in c.encodings}
    assert {"offset", *(f"h{number}" for number in range(1, len(packed) + 2))} == names
    _widened(lab, "shop.t", **{name: pair[1] for name, pair in packed.items()})
    lab.insert("shop.t", {"id": 1000, **{name: pair[3] for name, pair in packed.items()}})
    lake.cut()

    rows = spark.read.format("delta").load(str(lake.path / "shop_t_changes")).orderBy("id")
    expected = _as_now([*old, {"id": 1000, **{name: pair[3] for name, pair in packed.items()}}])
    assert expected == [{name: row[name] for name in ("id", *packed)} for row in rows.toArrow().to_pylist()]
    some = rows.where("id % 7 = 3 AND small_int > 100")
    assert [row for row in expected if row["id"] % 7 == 3 and row["small_int"] > 100] == [
        {name: row[name] for name in ("id", *packed)} for row in some.toArrow().to_pylist()
    ]


def _counted(kind: ColumnType, at: int) -> Any:
    if kind == DATE:
        return date(2024, 1, 1) + timedelta(days=at)
    number = at // 4 if kind.name == "tinyint" else at
    return Decimal(number).scaleb(-2) if kind.name == "decimal" else number


def _check_filters(lake: HeldLake, expected: list[dict[str, Any]]) -> None:
    """Statistics of a file say its values as those of the type that it was written under."""
    log = lake.spark.read.format("delta").load(str(lake.path / "shop_apart_changes"))
    for row in (expected[1], expected[3]):
        filters = [f"{name} = {_sql(row[name])}" for name in ("tiny_double", "int_cents", "float_double", "day_time")]
        assert [(row["id"],)] == log.where(" AND ".join(filters)).select("id").collect()


def _sql(value: Any) -> str:
    if isinstance(value, datetime):
        return f"TIMESTAMP_NTZ'{value.isoformat(' ')}'"
    return f"{value!r}D" if isinstance(value, float) else str(value)


KEY = {"n": INT, "d": DATE, "t": TINY}


def _key(n: int, **more: Any) -> dict[str, Any]:
    return {"n": n, "d": date(2024, 1, n), "t": -n, "v": 0, **more}


@pytest.mark.parametrize(
    "small_bytes",
    [pytest.param(0, id="merged", marks=pytest.mark.soak), pytest.param(held_rows.SMALL_BYTES, id="rewritten")],
)
def test_rows_are_found_by_keys_that_were_written_under_a_narrower_type(
    spark: SparkSession, tmp_path: Path, small_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(held_rows, "SMALL_BYTES", small_bytes)
    lake = HeldLake(spark, tmp_path / "lake", Lab(), history="{database}_{table}_history")
    lab = lake.lab
    lab.create("shop.t", {**KEY, "v": INT}, key=("n", "d", "t"))
    lab.insert("shop.t", *(_key(n) for n in range(1, 6)))
    lake.cut()
    lab.update("shop.t", _key(1), v=1)
    lab.delete("shop.t", _key(2))
    _widened(lab, "shop.t", n=decimal(12, 2), d=DATETIME, t=DOUBLE)
    again = _as_now([_key(n) for n in range(1, 6)])
    lab.update("shop.t", {**again[0], "v": 1}, v=2)
    lab.insert("shop.t", {**again[1], "v": 3})
    lab.delete("shop.t", again[2])
    lake.cut()
    lab.update("shop.t", again[3], v=4)
    lab.insert("shop.t", {"n": Decimal("4.01"), "d": NOON, "t": 0.5, "v": 5})
    lake.cut()

    assert lake.stopped() == {}
    found = sorted((row["n"], row["d"], row["t"], row["v"]) for row in lake.mirror("shop_t"))
    wanted = [
        (*(row[name] for name in KEY), v) for row, v in ((again[0], 2), (again[1], 3), (again[3], 4), (again[4], 0))
    ]
    assert found == sorted([*wanted, (Decimal("4.01"), NOON, 0.5, 5)])
    lake.read_by_spark("shop_t", "shop_t_changes", "shop_t_history")
    opened = [row for row in lake.mirror("shop_t_history") if row["to_offset"] is None]
    assert sorted((row["n"], row["d"], row["t"], row["v"]) for row in opened) == found
