"""Files are left out only where their statistics say that no key is in them."""

from __future__ import annotations

import json
from datetime import date, datetime, timezone
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sinks.delta.log.commits import HeldFile
from sinks.delta.log.pruning import files_with
from sinks.delta.log.statistics import file_statistics

UTC = timezone.utc
_at = datetime.fromisoformat
LONG = "x" * 32
KINDS: list[tuple[pa.DataType, Any, Any, Any, Any]] = [
    (pa.int64(), -5, 5, -6, 6),
    (pa.decimal128(20, 0), Decimal(2**63 + 1), Decimal(2**64 - 1), Decimal(2**62), None),
    (pa.decimal128(9, 3), Decimal("-0.001"), Decimal("1.234"), Decimal("-0.002"), Decimal("1.235")),
    (pa.float32(), 0.1, 0.7, 0.05, 0.8),
    (pa.float64(), -0.1, 1e300, -0.2, 2e300),
    (pa.string(), "B", "b", "A", "c"),
    (pa.string(), LONG + "a", LONG + "é", "x" * 31, "y"),
    (pa.date32(), date(1, 1, 1), date(9999, 12, 30), None, date(9999, 12, 31)),
    (pa.timestamp("us"), _at("2024-01-01T00:00:00.001001"), _at("2024-01-02T00:00:00.001999"), _at("2024-01-01"), _at("2024-01-03")),
    (pa.timestamp("us", tz="UTC"), datetime(1969, 1, 1, tzinfo=UTC), datetime(2024, 1, 2, 0, 0, 0, 1999, tzinfo=UTC), datetime(1960, 1, 1, tzinfo=UTC), datetime(2024, 1, 3, tzinfo=UTC)),
]  # fmt: skip


def _file(rows: pa.Table, name: str = "f") -> HeldFile:
    sink = pa.BufferOutputStream()
    footers: list[pq.FileMetaData] = []
    with pq.ParquetWriter(sink, rows.schema, metadata_collector=footers, store_decimal_as_integer=True) as writer:
        writer.write_table(rows)
    return HeldFile(path=name, size_bytes=1, statistics=file_statistics(footers[0], rows.schema), has_deletions=False)


@pytest.mark.parametrize("kind, low, high, below, above", KINDS, ids=lambda value: str(value)[:20])
def test_a_key_in_a_files_bounds_takes_the_file(kind: pa.DataType, low: Any, high: Any, below: Any, above: Any) -> None:
    def keys(*values: Any) -> pa.Table:
        return pa.table({"k": pa.array(values, kind)})

    file = _file(keys(high, low))
    outside = [value for value in (below, above) if value is not None]

    assert [file] == files_with([file], keys(low))
    assert [file] == files_with([file], keys(*outside, high))
    assert [] == files_with([file], keys(*outside, None))
    nullable = _file(keys(low, None))
    assert [nullable] == files_with([nullable], keys(None))


def test_every_column_of_a_key_leaves_files_out() -> None:
    files = [_file(pa.table({"a": [1, 9], "b": pa.array(b)}), str(b)) for b in (["k", "m"], [None, "z"], ["x", "y"])]
    keys = pa.table({"a": [5, 50], "b": ["l", "y"]})

    assert files[:1] == files_with(files, keys)
    assert files[1:2] == files_with(files, pa.table({"a": [5], "b": pa.array([None], pa.string())}))
    assert [] == files_with(files, keys.slice(0, 0))


@pytest.mark.parametrize("said", [{}, {"minValues": {"k": "?"}, "maxValues": {"k": "2024-01-01T00:00:00.000"}}])
def test_a_file_that_says_nothing_is_taken(said: dict[str, Any]) -> None:
    file = HeldFile(path="f", size_bytes=1, statistics=json.dumps(said), has_deletions=False)

    assert [file] == files_with([file], pa.table({"k": [_at("2024-01-01")]}))
    assert [file] == files_with([file], pa.table({"k": [b"\xff"]}))
