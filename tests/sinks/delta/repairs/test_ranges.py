"""Repairs range by range: which rows lie in a range, and targets that change below the frontier meanwhile."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, datetime, timezone
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from historian.errors import TableStopped
from historian.names import TableName
from historian.plans.key_ranges import NOT_BY_RANGES, Key, KeyRange
from historian.plans.plans import PlannedTable, TableCopy
from historian.schema.snapshots import Column, ColumnType, Snapshot
from historian.values.arrow_types import arrow_type
from lakes.crashes import Crashes
from lakes.held_rows import HeldLake
from lakes.repaired import check_repaired
from lakes.sink_lab import INT, Lab, text
from sinks.contract.locations import TableLocation
from sinks.delta.log.commits import HeldFile
from sinks.delta.repairs import narrowing
from sinks.delta.repairs.ranges import RangeOfKeys, range_of
from sinks.delta.rewrite import few_rows, held_rows
from sinks.delta.rewrite.files import FileWriter
from sinks.delta.targets import mirror

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HISTORY = "{database}_{table}_history"
_UNSIGNED = ColumnType(name="bigint", unsigned=True)
_DECIMAL = ColumnType(name="decimal", precision=38, scale=4)
_MOMENT = ColumnType(name="datetime", fraction=6)
_BYTES = ColumnType(name="varbinary", length=9)


def _moment(micros: int, **parts: Any) -> datetime:
    return datetime(**{"year": 2020, "month": 1, "day": 1, "microsecond": micros, **parts})  # noqa: DTZ001 as DATETIME has none


def _decimal(text: str) -> Decimal:
    return Decimal(text) + Decimal("0.0000")


_ORDERED: dict[str, tuple[list[ColumnType], list[tuple[Key, tuple[Any, ...]]]]] = {
    "bigint": (
        [ColumnType(name="bigint")],
        [((number,), (number,)) for number in (-(2**63), -1, 0, 2**31, 2**63 - 1)],
    ),
    "unsigned": ([_UNSIGNED], [((number,), (Decimal(number),)) for number in (0, 2**63 - 1, 2**63, 2**64 - 1)]),
    "decimal": (
        [_DECIMAL],
        [
            ((text,), (_decimal(text),))
            for text in ("-99999999999999999999999.0001", "-1", "0.0001", "1.50", "1.5049", "2.5", "10")
        ],
    ),
    "date": (
        [ColumnType(name="date")],
        [((f"{day}",), (day,)) for day in map(date, (1000, 1969, 2020), (1, 12, 2), (1, 31, 29))],
    ),
    "datetime": (
        [_MOMENT],
        [
            (("1000-01-01 00:00:00.000000",), (_moment(0, year=1000),)),
            (("2020-01-01 00:00:00.000000",), (_moment(0),)),
            (("2020-01-01 00:00:00.000001",), (_moment(1),)),
            (("9999-12-31 23:59:59.999999",), (datetime(9999, 12, 31, 23, 59, 59, 999_999),)),  # noqa: DTZ001
        ],
    ),
    "timestamp": (
        [ColumnType(name="timestamp", fraction=3)],
        [
            ((f"2020-10-25 0{hour}:30:00.125",), (datetime(2020, 10, 25, hour, 30, 0, 125_000, timezone.utc),))
            for hour in (0, 1, 2)
        ],
    ),
    "time": (
        [ColumnType(name="time", fraction=1)],
        [
            ((text,), (micros,))
            for text, micros in (
                ("-838:59:59.0", -3_020_399_000_000),
                ("-00:00:00.1", -100_000),
                ("00:00:00.0", 0),
                ("25:00:00.5", 90_000_500_000),
            )
        ],
    ),
    "year": ([ColumnType(name="year")], [((number,), (number,)) for number in (0, 1901, 2155)]),
    "varbinary": (
        [_BYTES],
        [((value.hex(),), (value,)) for value in (b"", b"\0", b"\0\0", b"a", b"a\0", b"a\0b", b"\x7f", b"\xff")],
    ),
    "composite": (
        [INT, _BYTES, _UNSIGNED],
        [
            ((one, two.hex(), three), (one, two, Decimal(three)))
            for one in (-1, 3)
            for two in (b"", b"\0")
            for three in (0, 2**63)
        ],
    ),
}


@pytest.mark.parametrize("case", _ORDERED)
def test_rows_lie_in_the_ranges_that_the_source_says(spark: SparkSession, tmp_path: Path, case: str) -> None:
    """Every range between two keys that are there, by Arrow and by Spark."""
    kinds, keys = _ORDERED[case]
    table = _table(*kinds)
    schema = pa.schema([(f"h{column.id}", arrow_type(column.type)) for column in table.columns])
    values = zip(*(values for _, values in keys), strict=True)
    rows = pa.table([pa.array(each, field.type) for each, field in zip(values, schema, strict=True)], schema=schema)
    pq.write_table(rows, tmp_path / "rows.parquet")
    frame = spark.read.parquet(str(tmp_path / "rows.parquet"))
    for first in range(-1, len(keys)):
        for last in {first, first + 1, len(keys) - 1, len(keys)} - {-1}:
            if not first <= last or (first, last) == (-1, len(keys)):
                continue
            after, upto = None if first < 0 else keys[first][0], None if last == len(keys) else keys[last][0]
            within = RangeOfKeys(table=table, columns=table.columns, keys=KeyRange(after=after, upto=upto))
            expected = rows.slice(first + 1, last - first)
            assert within.of(rows).equals(expected), within.keys
            found = within.of_frame(frame).toArrow().cast(schema)
            assert sorted(found.to_pylist(), key=repr) == sorted(expected.to_pylist(), key=repr), within.keys
            within.check(expected)
            if expected.num_rows < rows.num_rows:
                with pytest.raises(TableStopped, match=NOT_BY_RANGES):
                    within.check(rows)


@pytest.mark.parametrize("case", _ORDERED)
def test_files_that_cannot_hold_rows_of_a_range_are_passed_over(tmp_path: Path, case: str) -> None:
    """One row a file; a file of such rows is never passed over."""
    kinds, keys = _ORDERED[case]
    table = _table(*kinds)
    schema = pa.schema([(f"h{column.id}", arrow_type(column.type)) for column in table.columns])
    files = []
    for _, values in keys:
        writer = FileWriter(str(tmp_path), schema)
        writer.write_table(
            pa.table([pa.array([v], f.type) for v, f in zip(values, schema, strict=True)], schema=schema)
        )
        (file,) = writer.close()
        files.append(
            HeldFile(path=file.path, size_bytes=file.size_bytes, statistics=file.statistics, has_deletions=False)
        )
    passed = 0
    for first in range(-1, len(keys)):
        for last in range(max(first, 0), len(keys)):
            after = None if first < 0 else keys[first][0]
            within = RangeOfKeys(table=table, columns=table.columns, keys=KeyRange(after=after, upto=keys[last][0]))
            may = [within.may_hold(file) for file in files]
            assert all(may[first + 1 : last + 1]), within.keys
            passed += may.count(False)
    assert passed > 0 or case == "varbinary"


def test_targets_whose_keys_say_nothing_of_the_range_are_compared_as_a_whole() -> None:
    day = ColumnType(name="date")
    table = _table(day, INT)
    planned = PlannedTable(
        table_id=1, versions=(), copy=TableCopy(key=(1, 2), behind=("2020-01-01", 1), repairs="a test")
    )
    location = TableLocation(table_id=1, name="d.t", changelog="c", mirror="m", since=1)
    within = range_of(planned, location, table)
    assert within is not None
    held = pa.table({"h1": pa.array([None, date(2020, 1, 2)], pa.date32()), "h2": pa.array([1, 2], pa.int32())})
    with pytest.raises(TableStopped, match="NULL in c1"):
        within.of(held)
    masked = replace(location, columns='{"2": ["c2", "hash"]}')
    for other, where in (
        (replace(table, primary_key=(2,)), location),
        (table, masked),
        (_table(text(), INT), location),
    ):
        with pytest.raises(TableStopped, match=NOT_BY_RANGES):
            range_of(planned, where, other)
    odd = replace(planned, copy=TableCopy(key=(1, 2), upto=("2020-02-31", 1), repairs="a test"))
    with pytest.raises(TableStopped, match="2020-02-31"):
        range_of(odd, location, table)
    assert range_of(replace(planned, copy=TableCopy(key=(1, 2), is_done=True, repairs="a test")), masked, table) is None


KINDS: dict[str, dict[str, Any]] = {
    "all": {"history": HISTORY},
    "late": {"history": HISTORY, "mirror_every_us": 3},
    "soft": {"history": HISTORY, "mirror_deletes": "soft"},
    "no mirror": {"mirror": None},
}


@pytest.mark.parametrize("kind, by_spark", [("all", True), ("late", False), ("soft", False), ("no mirror", True)])
def test_ranges_lead_to_the_table_though_it_changes_below_the_frontier(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, by_spark: bool
) -> None:
    if by_spark:
        monkeypatch.setattr(held_rows, "SMALL_BYTES", 0)
        monkeypatch.setattr(few_rows, "SMALL_BYTES", 0)
        monkeypatch.setattr(narrowing, "_FEW_ROWS", -1)
        monkeypatch.setattr(mirror, "taken_up", lambda *_: None)
    lab = Lab()
    lake = HeldLake(spark, tmp_path / "lake", lab, **KINDS[kind])
    lab.create("shop.t", {"id": INT, "a": INT})
    lab.insert("shop.t", *({"id": number, "a": number} for number in range(20)))
    lake.cut()
    crashes = Crashes(["repairs_recorded", "changelog_committed", "mirror_committed"])
    for number, (after, upto) in enumerate(pairwise((None, 6, 13, None))):
        # What lies above the frontier changes without a word: its changes are dropped.
        rows = {row["id"]: row for row in lab.rows("shop.t")}
        above = [key for key in rows if after is None or key > after]
        for key in above[::3]:
            del rows[key]
        for key in above[1::3]:
            rows[key] = rows[key] | {"a": 100 * number}
        rows |= {key: {"id": key, "a": 0} for key in (above[0], 30 + number)}
        lab.unlogged("shop.t", *rows.values())
        keys = KeyRange(after=after and (after,), upto=upto and (upto,))
        plan = lab.cut({"shop.t": "a test"}, keys)
        if number == 1:
            crashes.write(lake, plan)
        else:
            lake.write(plan)
        held = sorted(key for key in rows if upto is None or key <= upto)
        lab.delete("shop.t", rows[held[0]])
        lab.update("shop.t", rows[held[1]], a=-1)
        lab.insert("shop.t", {"id": -1 - number, "a": 1})
        if number == 1:
            lab.add("shop.t", "b", INT, initial="7")
        lake.cut()
    check_repaired(lake, "shop.t", only_log=bool(lake.sink.due_us()))
    assert 3 == len(lake.mirror("historian_repairs"))


def _table(*kinds: ColumnType) -> Snapshot:
    columns = tuple(Column(id=number, name=f"c{number}", type=kind) for number, kind in enumerate(kinds, 1))
    return Snapshot(
        table_id=1,
        name=TableName("d", "t"),
        columns=columns,
        primary_key=tuple(c.id for c in columns),
        charset="utf8mb4",
        collation="utf8mb4_bin",
    )
