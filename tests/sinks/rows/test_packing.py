"""Columns are packed as differences where that takes least, and files hold the same values either way."""

from __future__ import annotations

import io
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from sinks.rows.packing import PAGES, column_encodings, packed_columns
from sinks.rows.variant import VARIANT

COUNT = 3000
NUMBERS = np.arange(COUNT)
RANDOM = np.random.default_rng(6)
TIMES = pa.array(NUMBERS * 1_000_000)


def _packed(**columns: pa.Array) -> list[str]:
    return packed_columns(pa.RecordBatch.from_pydict(columns))


def test_what_counts_up_is_packed() -> None:
    columns = {
        "long": pa.array(NUMBERS),
        "int": pa.array(NUMBERS.astype(np.int32)),
        "often": pa.array(NUMBERS % 500),
        "twice": pa.array(NUMBERS // 2),
        "time": TIMES.cast(pa.timestamp("us")),
        "instant": TIMES.cast(pa.timestamp("us", tz="UTC")),
        "day": pa.array(NUMBERS.astype(np.int32)).cast(pa.date32()),
        "cents": pa.array([Decimal(number).scaleb(-2) for number in range(COUNT)], pa.decimal128(18, 2)),
        "down": pa.array(-NUMBERS * 7),
    }

    assert list(columns) == _packed(**columns)


def test_a_dictionary_stays_where_few_values_come_again() -> None:
    columns = {
        "one": pa.repeat(7, COUNT),
        "few": pa.array(RANDOM.choice([1, 5_000_000, -8_000_000_000], COUNT)),
        "seldom": pa.array(NUMBERS // 1000),
    }

    assert [] == _packed(**columns)


def test_what_has_no_order_is_not_packed() -> None:
    limits = np.iinfo(np.int64)
    columns = {
        "random": pa.array(RANDOM.integers(limits.min, limits.max, COUNT)),
        "extremes": pa.array(np.where(RANDOM.integers(0, 2, COUNT) == 0, limits.min, limits.max) + NUMBERS % 2),
    }

    assert [] == _packed(**columns)


def test_other_types_and_few_rows_are_left_alone() -> None:
    columns = {
        "text": pa.array(map(str, NUMBERS)),
        "double": pa.array(NUMBERS / 3),
        "flag": pa.array(NUMBERS % 2 == 0),
        "long_decimal": pa.array([Decimal(number) for number in range(COUNT)], pa.decimal128(19, 0)),
        "nothing": pa.nulls(COUNT, pa.int64()),
    }

    assert [] == _packed(**columns)
    assert [] == _packed(few=pa.array(NUMBERS[:100]))


def test_a_slice_with_nulls_is_looked_at_by_its_values() -> None:
    with_nulls = pa.array([None if number % 3 == 0 else int(number) for number in NUMBERS])
    cents = pa.array([Decimal(0)] * 10 + [Decimal(number) for number in range(COUNT)], pa.decimal128(12, 0))

    assert ["a"] == _packed(a=with_nulls)
    assert ["b"] == _packed(b=cents.slice(10))


def test_a_file_with_packed_columns_has_every_value_and_dictionaries_for_the_rest() -> None:
    shapes = {"metadata": b"\x01", "value": b"\x00"}
    rows = pa.RecordBatch.from_pydict(
        {
            "n": pa.array(NUMBERS),
            "status": pa.array(["new", "paid", None] * (COUNT // 3)),
            "shape": pa.array([shapes] * COUNT, VARIANT),
            "names": pa.array([["a"], None, []] * (COUNT // 3)),
        }
    )
    stream = io.BytesIO()
    with pq.ParquetWriter(stream, rows.schema, **column_encodings(rows)) as writer:
        writer.write_batch(rows)
    file = pq.ParquetFile(stream)
    group = file.metadata.row_group(0)
    encodings = {
        column.path_in_schema: set(column.encodings) for column in (group.column(at) for at in range(group.num_columns))
    }

    assert rows == file.read().combine_chunks().to_batches()[0]
    assert "DELTA_BINARY_PACKED" in encodings.pop("n")
    assert {"status", "shape.metadata", "shape.value", "names.list.element"} == encodings.keys()
    assert all("RLE_DICTIONARY" in each for each in encodings.values())


def test_packed_columns_are_few_pages() -> None:
    rows = pa.table({"n": np.arange(1 << 17)})
    stream = io.BytesIO()
    with pq.ParquetWriter(
        stream, rows.schema, use_dictionary=False, column_encoding={"n": "DELTA_BINARY_PACKED"}, **PAGES
    ) as writer:
        writer.write_table(rows)

    # Each page begins with a header of its own.
    assert 1 == stream.getvalue().count(_page_header(rows.num_rows))


def _page_header(rows: int) -> bytes:
    """How the header of a page of so many values says that, in Thrift's compact protocol."""
    number, said = 2 * rows, b""
    while number > 127:
        number, said = number >> 7, said + bytes([number & 127 | 128])
    return b"\x15" + said + bytes([number])
