"""Rows of changelog files come back as they were, in order of offset; and never others."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from historian.errors import ChainBroken
from sinks.delta.lake.deferred_rows import DeferredRows

TIME = datetime(2026, 1, 1, tzinfo=timezone.utc)
MONEY = pa.decimal128(7, 2)


def _file(path: Path, offsets: list[int], *, version: int = 3, rows_of_a_group: int = 2) -> str:
    rows = pa.table(
        {
            "offset": pa.array(offsets, pa.int64()),
            "op": pa.array([0 if at % 2 else 1 for at in offsets], pa.int32()),
            "event_time": pa.array([TIME] * len(offsets), pa.timestamp("us", tz="UTC")),
            "schema_version": pa.array([version] * len(offsets), pa.int64()),
            "h1": pa.array(offsets, pa.int32()),
            "h2": pa.array([None if at % 3 else Decimal(at) / 100 for at in offsets], MONEY),
            "h3": pa.array(["gone"] * len(offsets)),
        }
    )
    pq.write_table(rows, path, row_group_size=rows_of_a_group, store_decimal_as_integer=True)
    return str(path)


def _rows(*paths: str, first: int, last: int) -> DeferredRows:
    return DeferredRows(
        table_id=1,
        version=3,
        sequence=7,
        first=first,
        last=last,
        paths=paths,
        size_bytes=1,
        columns=(("h1", "h1", pa.int32()), ("h2", "h2", MONEY), ("h9", "", pa.string())),
    )


def _expected(first: int, last: int) -> list[dict[str, Any]]:
    return [
        {
            "op": 0 if at % 2 else 1,
            "event_time": TIME,
            "h1": at,
            "h2": None if at % 3 else Decimal(at) / 100,
            "h9": None,
        }
        for at in range(first, last + 1)
    ]


@pytest.mark.parametrize("files", [[[4, 5, 6, 7, 8]], [[8, 4, 6], [1, 7, 5, 2]], [[1, 2, 3, 4, 5], [6], [7, 8, 9, 10]]])
def test_a_chunk_has_the_rows_of_its_offsets_in_order(tmp_path: Path, files: list[list[int]]) -> None:
    paths = [_file(tmp_path / f"{at}.parquet", offsets) for at, offsets in enumerate(files)]
    rows = _rows(*paths, first=4, last=8)
    chunk = rows.chunk()

    assert _expected(4, 8) == chunk.rows.to_pylist()
    assert [pa.uint8(), pa.timestamp("us", tz="UTC"), pa.int32(), MONEY, pa.string()] == chunk.rows.schema.types
    assert (1, 3, 7) == (chunk.table_id, chunk.version, chunk.sequence)
    assert (5, 7) == (rows.head().row_count, rows.head().sequence)


THEN = {"h1": pa.int32(), "h2": pa.int64(), "h3": pa.float32(), "h4": pa.date32(), "h5": pa.decimal128(5, 2)}
NOW = {
    "h1": pa.decimal128(12, 2),
    "h2": pa.decimal128(20, 0),
    "h3": pa.float64(),
    "h4": pa.timestamp("us"),
    "h5": pa.decimal128(7, 4),
}


def test_files_that_were_written_anew_under_wider_types_give_the_rows_as_they_came(tmp_path: Path) -> None:
    """Other rows of such a file need not fit the types of the chunk."""
    least = dict(zip(THEN, (-(2**31), -(2**63), 0.10000000149011612, date(1000, 1, 1), Decimal("-9.99")), strict=True))
    greatest = dict(zip(THEN, (2**31 - 1, 2**63 - 1, 3.5, date(9999, 12, 31), None), strict=True))
    noon = datetime(2024, 1, 1, 12)  # noqa: DTZ001 a DATETIME has no zone
    later = dict(zip(THEN, (Decimal("0.01"), Decimal(2**64), 0.1, noon, Decimal("0.0001")), strict=True))
    as_now = {**greatest, "h1": Decimal(2**31 - 1), "h2": Decimal(2**63 - 1), "h4": datetime(9999, 12, 31)}  # noqa: DTZ001
    paths = [
        _typed_file(tmp_path / "anew", THEN | NOW, {1: (3, as_now), 2: (4, later)}),
        _typed_file(tmp_path / "old", THEN, {0: (3, least)}),
    ]
    columns = tuple((name, name, kind) for name, kind in THEN.items())
    chunk = replace(_rows(*paths, first=0, last=1), columns=columns).chunk()

    assert [least, greatest] == chunk.rows.select(list(THEN)).to_pylist()
    assert list(THEN.values()) == chunk.rows.schema.types[2:]


def _typed_file(path: Path, kinds: dict[str, pa.DataType], rows: dict[int, tuple[int, dict[str, Any]]]) -> str:
    """A file of rows by offset, each with its version."""
    system = {"offset": pa.int64(), "op": pa.int32(), "event_time": pa.timestamp("us", tz="UTC")}
    schema = pa.schema({**system, "schema_version": pa.int64(), **kinds})
    listed = [
        {"offset": at, "op": 0, "event_time": TIME, "schema_version": version, **row}
        for at, (version, row) in rows.items()
    ]
    pq.write_table(pa.Table.from_pylist(listed, schema), path)
    return str(path)


def test_row_groups_without_such_offsets_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = _file(tmp_path / "one.parquet", list(range(100)), rows_of_a_group=10)
    read: list[int] = []
    real = pq.ParquetFile.read_row_groups

    def noting(self: Any, groups: list[int], *args: Any) -> pa.Table:
        read.extend(groups)
        return real(self, groups, *args)

    monkeypatch.setattr(pq.ParquetFile, "read_row_groups", noting)
    chunk = _rows(path, first=29, last=41).chunk()

    assert [2, 3, 4] == read
    assert np.array_equal(np.arange(29, 42), chunk.rows.column("h1"))


@pytest.mark.parametrize("offsets", [[4, 5, 7, 8], [4, 5, 5, 6, 7, 8], [], [5, 6, 7, 8]])
def test_rows_that_are_missing_or_there_twice_are_an_error(tmp_path: Path, offsets: list[int]) -> None:
    paths = [_file(tmp_path / "one.parquet", offsets)] if offsets else []
    with pytest.raises(ChainBroken, match=r"expected the offsets 4 to 8 of version 3, each once"):
        _rows(*paths, first=4, last=8).chunk()


def test_rows_of_another_version_are_an_error(tmp_path: Path) -> None:
    paths = [_file(tmp_path / "a.parquet", [4, 5]), _file(tmp_path / "b.parquet", [6], version=4)]
    with pytest.raises(ChainBroken, match=r"rows of versions \[3, 4\]"):
        _rows(*paths, first=4, last=6).chunk()
