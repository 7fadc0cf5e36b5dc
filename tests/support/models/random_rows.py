"""Hypothesis strategies of Arrow schemas with column ids, and of rows for them, as plain Python values."""

from __future__ import annotations

from datetime import date, datetime, timezone
from decimal import Decimal
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from historian.encoding import with_id

BEGIN, END = datetime(1, 1, 2), datetime(9999, 12, 30)  # noqa: DTZ001 a naive type


def _decimals(precision: int, scale: int) -> st.SearchStrategy[Decimal]:
    limit = 10**precision - 1
    return st.integers(-limit, limit).map(lambda n: Decimal((n < 0, tuple(map(int, str(abs(n)))), -scale)))


def _integers(bits: int) -> st.SearchStrategy[int]:
    return st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


SCALARS: list[tuple[pa.DataType, st.SearchStrategy[Any]]] = [
    (pa.int16(), _integers(16)),
    (pa.int32(), _integers(32)),
    (pa.int64(), _integers(64)),
    (pa.float32(), st.floats(width=32, allow_nan=False)),
    (pa.float64(), st.floats(allow_nan=False)),
    (pa.decimal128(5, 2), _decimals(5, 2)),
    (pa.decimal128(20, 0), _decimals(20, 0)),
    (pa.bool_(), st.booleans()),
    (pa.string(), st.text(max_size=20)),
    (pa.binary(), st.binary(max_size=300)),
    (pa.date32(), st.dates(date(1, 1, 1), date(9999, 12, 31))),
    (pa.timestamp("us"), st.datetimes(BEGIN, END)),
    (pa.timestamp("us", tz="UTC"), st.datetimes(BEGIN, END, timezones=st.just(timezone.utc))),
]
NARROW_AND_WIDE = [(pa.int8(), _integers(8)), (pa.decimal128(38, 10), _decimals(38, 10))]


class Schemas:
    """Makes fields with ids that are used once, as far as they go nested."""

    def __init__(self, draw: st.DrawFn, scalars: list[tuple[pa.DataType, st.SearchStrategy[Any]]]) -> None:
        self.draw, self.scalars = draw, scalars
        self.used: set[int] = set()

    def field(self, depth: int) -> tuple[pa.Field, st.SearchStrategy[Any]]:
        number = self.draw(
            st.one_of(st.integers(0, 30), st.integers(0, 70_000), st.integers(0, 2**31 - 1)).filter(
                lambda n: n not in self.used
            )
        )
        self.used.add(number)
        type_, values = self.type(depth)
        return with_id(number, pa.field(f"f{number}", type_)), values

    def type(self, depth: int) -> tuple[pa.DataType, st.SearchStrategy[Any]]:
        form = self.draw(st.sampled_from(["scalar"] * 3 + ["struct", "list", "map"])) if depth else "scalar"
        if form == "scalar":
            return self.draw(st.sampled_from(self.scalars))
        if form == "struct":
            fields = [self.field(depth - 1) for _ in range(self.draw(st.integers(1, 3)))]
            parts = {field.name: st.none() | values for field, values in fields}
            return pa.struct([field for field, _ in fields]), st.fixed_dictionaries(parts)
        inner, values = self.type(depth - 1)
        if form == "list":
            return pa.list_(inner), st.lists(st.none() | values, max_size=3)
        entries = st.dictionaries(st.text(max_size=3), st.none() | values, max_size=3)
        return pa.map_(pa.string(), inner), entries.map(lambda made: list(made.items()))


@st.composite
def tables(draw: st.DrawFn, *, depth: int = 2, more: bool = True, max_rows: int = 5) -> pa.RecordBatch:
    """Up to four columns, nested up to *depth*, of up to *max_rows* rows; NULLs anywhere."""
    made = Schemas(draw, SCALARS + NARROW_AND_WIDE if more else SCALARS)
    columns = [made.field(depth) for _ in range(draw(st.integers(1, 4)))]
    count = draw(st.integers(0, max_rows))
    arrays = [
        pa.array(draw(st.lists(st.none() | values, min_size=count, max_size=count)), field.type)
        for field, values in columns
    ]
    # A slice of more rows, so that offsets are not 0.
    batch = pa.RecordBatch.from_arrays(arrays, schema=pa.schema([field for field, _ in columns]))
    return batch.slice(draw(st.integers(0, count)))
