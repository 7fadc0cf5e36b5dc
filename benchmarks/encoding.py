"""Rows to cells and back, many at a time, against plain Python that goes row by row, in turn in one process.

``write``: our form, against ``tests/support/models/plain_rows.py``, whose bytes are the same (compared first). ``write_nested``: a
struct, a list and a map. ``write_risingwave``: RisingWave's form, against its values written one by one. ``read`` and
``read_two_columns``: cells to Arrow, against a plain reader of the same columns. The other side begins with Python values
and ends with them, and is measured on fewer rows. All rates are rows per second of the processor, since both sides use one
thread and a busy machine would measure its other work.
Run: ``python benchmarks/encoding.py [--rounds 5] [--rows 200000] [--other 20000]``.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).parent.parent), str(Path(__file__).parent.parent / "tests" / "support")]

import pyarrow as pa

from historian.encoding import decode_rows, encode_risingwave, encode_rows, field_id, with_id
from historian.encoding.risingwave_values import write_row, write_value
from models.plain_rows import row_reader, row_writer

START = datetime(2024, 1, 1, tzinfo=timezone.utc)


def orders(count: int) -> pa.RecordBatch:
    """Ten columns as of an ordinary table."""
    columns: list[tuple[pa.DataType, Callable[[int], Any]]] = [
        (pa.int64(), lambda n: n),
        (pa.int32(), lambda n: n % 1000),
        (pa.string(), lambda n: ("new", "paid", "shipped")[n % 3]),
        (pa.decimal128(12, 2), lambda n: Decimal(n * 7).scaleb(-2)),
        (pa.timestamp("us"), lambda n: START.replace(tzinfo=None) + timedelta(seconds=n)),
        (pa.timestamp("us", tz="UTC"), lambda n: START + timedelta(microseconds=n)),
        (pa.string(), lambda n: None if n % 5 == 0 else f"note for order number {n}"),
        (pa.int16(), lambda n: n % 100),
        (pa.float64(), lambda n: n / 3),
        (pa.bool_(), lambda n: n % 2 == 1),
    ]
    return _batch(columns, count)


def nested(count: int) -> pa.RecordBatch:
    """A key, a struct, a list and a map."""
    point = pa.struct([with_id(11, pa.field("x", pa.int32())), with_id(12, pa.field("name", pa.string()))])
    columns: list[tuple[pa.DataType, Callable[[int], Any]]] = [
        (pa.int64(), lambda n: n),
        (point, lambda n: {"x": n, "name": f"point {n}"}),
        (pa.list_(pa.int64()), lambda n: list(range(n % 5))),
        (pa.map_(pa.string(), pa.int32()), lambda n: [("a", n), ("b", None)]),
    ]
    return _batch(columns, count)


def _batch(columns: list[tuple[pa.DataType, Callable[[int], Any]]], count: int) -> pa.RecordBatch:
    fields = [with_id(i, pa.field(f"h{i}", kind)) for i, (kind, _) in enumerate(columns, 1)]
    arrays = [pa.array([make(n) for n in range(count)], kind) for kind, make in columns]
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))


def python_rows(rows: pa.RecordBatch) -> list[tuple[Any, ...]]:
    return list(zip(*(column.to_pylist() for column in rows.columns), strict=True))


def risingwave_writer(fields: list[pa.Field]) -> Callable[[tuple[Any, ...]], bytes]:
    ids, types = [field_id(field) for field in fields], [field.type for field in fields]

    def write(row: tuple[Any, ...]) -> bytes:
        values = [b"" if v is None else write_value(t, v, "") for t, v in zip(types, row, strict=True)]
        return write_row(ids, values)

    return write


def measure(
    name: str, ours: Callable[[], Any], other: Callable[[], Any], options: argparse.Namespace
) -> dict[str, Any]:
    """Medians of the rates of both sides in turn, after one run of each that is not counted."""
    ours(), other()
    rates: tuple[list[float], list[float]] = ([], [])
    for _ in range(options.rounds):
        for side, count, run in ((0, options.rows, ours), (1, options.other, other)):
            begin = time.process_time()
            run()
            rates[side].append(count / (time.process_time() - begin))
    mine, their = (round(statistics.median(each)) for each in rates)
    return {"name": name, "ours": mine, "other": their, "ratio": round(mine / their, 1)}


def require(expected: object, found: object, what: str) -> None:
    if expected != found:
        raise SystemExit(f"{what}: both sides differ")


def writing(name: str, rows: pa.RecordBatch, ours: Any, write: Any, options: argparse.Namespace) -> dict[str, Any]:
    plain = python_rows(rows.slice(0, options.other))
    require([write(row) for row in plain], ours(rows).slice(0, options.other).to_pylist(), name)
    return measure(name, lambda: ours(rows), lambda: [write(row) for row in plain], options)


def reading(name: str, rows: pa.RecordBatch, wanted: list[int], options: argparse.Namespace) -> dict[str, Any]:
    cells, schema = encode_rows(rows), pa.schema([rows.schema.field(i) for i in wanted])
    some, read = cells.slice(0, options.other).to_pylist(), row_reader(list(schema))
    require(python_rows(rows.select(wanted).slice(0, options.other)), [read(cell) for cell in some], name)
    require(rows.select(wanted).to_pylist(), decode_rows(cells, schema).to_pylist(), name)
    return measure(name, lambda: decode_rows(cells, schema), lambda: [read(cell) for cell in some], options)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--other", type=int, default=20_000, help="rows that plain Python writes and reads")
    options = parser.parse_args()
    flat, deep = orders(options.rows), nested(options.rows)
    fields = list(flat.schema)
    results = [
        writing("write", flat, encode_rows, row_writer(fields), options),
        writing("write_nested", deep, encode_rows, row_writer(list(deep.schema)), options),
        writing("write_risingwave", flat, encode_risingwave, risingwave_writer(fields), options),
        reading("read", flat, list(range(10)), options),
        reading("read_two_columns", flat, [0, 6], options),
    ]
    for result in results:
        print("{name}: {ours:,} rows/s against {other:,}, {ratio} times".format(**result))
    print(json.dumps({"results": results}))


if __name__ == "__main__":
    main()
