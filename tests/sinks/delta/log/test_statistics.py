"""File statistics hold for every value, and are cut as Delta's readers expect."""

from __future__ import annotations

import json
from datetime import date, datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from sinks.delta.log.statistics import file_statistics
from sinks.delta.rewrite.files import FileWriter
from sinks.rows.variant import VARIANT, fitted


def _statistics(tmp_path: Path, **columns: pa.Array) -> dict[str, Any]:
    schema = pa.schema([pa.field(name, values.type) for name, values in columns.items()])
    writer = FileWriter(str(tmp_path), schema)
    writer.write(pa.RecordBatch.from_arrays(list(columns.values()), schema=schema))
    (file,) = writer.close()
    assert Path(file.path).stat().st_size == file.size_bytes
    return json.loads(file.statistics, parse_float=Decimal)


def test_bounds_and_nulls_by_column(tmp_path: Path) -> None:
    found = _statistics(
        tmp_path,
        i=pa.array([3, None, -5], pa.int16()),
        d=pa.array([Decimal("1.50"), None, Decimal("-0.25")], pa.decimal128(7, 2)),
        u=pa.array([Decimal(2**64 - 1), None, Decimal(1)], pa.decimal128(20, 0)),
        t=pa.array([date(1969, 12, 31), None, date(2024, 2, 29)]),
        s=pa.array(["b", None, "a"]),
        x=pa.array([b"a", None, b"b"]),
        b=pa.array([True, None, False]),
        n=pa.nulls(3, pa.int32()),
    )

    assert 3 == found["numRecords"]
    assert {"i": 1, "d": 1, "u": 1, "t": 1, "s": 1, "x": 1, "b": 1, "n": 3} == found["nullCount"]
    low = {"i": -5, "d": Decimal("-0.25"), "u": 1, "t": "1969-12-31", "s": "a"}
    high = {"i": 3, "d": Decimal("1.50"), "u": 18446744073709600000, "t": "2024-02-29", "s": "b"}
    assert (low, high) == (found["minValues"], found["maxValues"])


def test_columns_with_parts_have_no_statistics_and_shift_no_others(tmp_path: Path) -> None:
    found = _statistics(
        tmp_path,
        a=pa.array([1, 2]),
        v=fitted(pa.array(["7", None]), VARIANT),
        names=pa.array([["x"], None]),
        w=fitted(pa.array([None, "8"]), VARIANT),
        b=pa.array([None, 3]),
    )

    assert ({"a": 0, "b": 1}, {"a": 1, "b": 3}) == (found["nullCount"], found["minValues"])


def test_decimals_are_widened_to_what_a_double_keeps(tmp_path: Path) -> None:
    edge = [Decimal("-99999999999999.9999"), Decimal("99999999999999.9999")]
    found = _statistics(
        tmp_path,
        a=pa.array([Decimal("-1234567890123.4567"), Decimal("1234567890123.4567")], pa.decimal128(18, 4)),
        b=pa.array(edge, pa.decimal128(18, 4)),
    )

    assert {"a": Decimal("-1234567890123.46")} == found["minValues"]
    assert {"a": Decimal("1234567890123.46")} == found["maxValues"]


def test_times_are_cut_to_milliseconds(tmp_path: Path) -> None:
    times = [datetime(1969, 12, 31, 23, 59, 59, 999999), datetime(2024, 2, 29, 1, 2, 3, 4567)]  # noqa: DTZ001 both kinds are wanted
    found = _statistics(
        tmp_path,
        z=pa.array([t.replace(tzinfo=timezone.utc) for t in times], pa.timestamp("us", tz="UTC")),
        n=pa.array(times, pa.timestamp("us")),
    )

    assert {"z": "1969-12-31T23:59:59.999Z", "n": "1969-12-31T23:59:59.999"} == found["minValues"]
    assert {"z": "2024-02-29T01:02:03.004Z", "n": "2024-02-29T01:02:03.004"} == found["maxValues"]


def test_long_texts_bound_from_above_and_below(tmp_path: Path) -> None:
    highest = "\U0010ffff"
    found = _statistics(
        tmp_path,
        a=pa.array(["é" * 40, "z" * 32]),
        b=pa.array(["x" * 32 + highest + "y", ""]),
        c=pa.array(["q" * 32, "q" * 31]),
    )

    assert {"a": "z" * 32, "c": "q" * 31} == found["minValues"]
    assert {"a": "é" * 32 + highest, "c": "q" * 32} == found["maxValues"]


def test_columns_behind_the_indexed_ones_have_none(tmp_path: Path) -> None:
    found = _statistics(tmp_path, **{f"c{i}": pa.array([i]) for i in range(40)})

    assert [f"c{i}" for i in range(32)] == list(found["nullCount"])


def test_many_row_groups_are_one_file(tmp_path: Path) -> None:
    table = pa.table({"i": pa.array([1, 9, 4, None], pa.int64())})
    pq.write_table(table, tmp_path / "f.parquet", row_group_size=1)

    text = file_statistics(pq.read_metadata(tmp_path / "f.parquet"), table.schema)

    assert {"i": 1} == json.loads(text)["minValues"]
    assert {"i": 9} == json.loads(text)["maxValues"]
    assert {"i": 1} == json.loads(text)["nullCount"]
