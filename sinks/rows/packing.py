"""How columns are encoded in Parquet files: by their content, as differences of neighbours or in dictionaries."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

__all__ = ["PAGES", "column_encodings", "packed_columns"]

_PACKED = "DELTA_BINARY_PACKED"
_RUNS = 8
_BLOCK, _MINIBLOCK, _GROUP = 128, 32, 8
"""Of the format: values that share a least difference, that share a width, and that a dictionary's indices repeat or not."""
_RUN_ROWS = 2 * _BLOCK + 1
_DIGITS = 18
"""Decimals up to these are integers in files. Larger ones are bytes, and would be smaller as DELTA_BYTE_ARRAY, which Polars 2.1 does not read of them."""

PAGES: dict[str, Any] = (
    {"max_rows_per_page": 1 << 17} if "max_rows_per_page" in inspect.signature(pq.ParquetWriter).parameters else {}
)
"""How large pages are, as arguments of :class:`pyarrow.parquet.ParquetWriter`.

Each page is compressed alone, which takes time and room of its own. Of 20,000 rows, as newer Arrow ends them, packed columns have a few hundred bytes; older
Arrow ends pages by their size alone.
"""

_Longs = npt.NDArray[np.int64]


def column_encodings(rows: pa.RecordBatch) -> dict[str, Any]:
    """How a file that begins with *rows* is encoded, as arguments of :class:`pyarrow.parquet.ParquetWriter`."""
    packed = packed_columns(rows)
    if not packed:
        return {"use_dictionary": True}
    others = [leaf for field in rows.schema if field.name not in packed for leaf in _leaves(field.name, field.type)]
    return {"use_dictionary": others, "column_encoding": dict.fromkeys(packed, _PACKED)}


def packed_columns(rows: pa.RecordBatch) -> list[str]:
    """The columns whose values take least as differences: keys that count up, times that go on, offsets.

    All are of integers in files; those readers unpack fast that read Parquet of the last ten years. A dictionary stays where it
    takes as little: few values that come again and again.
    """
    if len(rows) <= _BLOCK:
        return []
    return [
        field.name
        for field in rows.schema
        if _is_integer(field.type) and _is_packed(rows.column(field.name), field.type)
    ]


def _is_packed(column: pa.Array, kind: pa.DataType) -> bool:
    starts = sorted({int(start) for start in np.linspace(0, max(0, len(column) - _RUN_ROWS), _RUNS)})
    parts = [column.slice(start, _RUN_ROWS) for start in starts]
    runs = [_longs(pc.drop_null(part) if part.null_count else part) for part in parts]
    runs = [run for run in runs if len(run) > _BLOCK]
    if not runs:
        return False
    values = np.concatenate(runs)
    distinct = len(np.unique(values))
    width = 8 * (kind.bit_width // 8 if not pa.types.is_decimal(kind) else 8)
    if distinct > len(values) // 2:
        return _difference_bits(runs) < width * 3 / 4
    return _difference_bits(runs) < max(1, (distinct - 1).bit_length()) * _unlike(runs)


def _difference_bits(runs: Sequence[_Longs]) -> float:
    """Bits a value takes as the difference from the one before it."""
    blocks = _whole([run[1:] - run[:-1] for run in runs], _BLOCK)
    above = (blocks - blocks.min(axis=1, keepdims=True)).view(np.uint64)
    greatest = above.reshape(-1, _MINIBLOCK).max(axis=1)
    return float(np.ceil(np.log2(greatest.astype(np.float64) + 1)).mean())


def _unlike(runs: Sequence[_Longs]) -> float:
    """The share of groups that are not one value."""
    groups = _whole(runs, _GROUP)
    return float((groups != groups[:, :1]).any(axis=1).mean())


def _whole(runs: Sequence[_Longs], size: int) -> _Longs:
    """All whole groups of so many values, a row each. Of many runs at once, since a call of numpy takes longer than a run."""
    return np.concatenate([run[: len(run) // size * size] for run in runs]).reshape(-1, size)


def _is_integer(kind: pa.DataType) -> bool:
    if pa.types.is_decimal128(kind):
        return bool(kind.precision <= _DIGITS)
    return bool(pa.types.is_integer(kind) or pa.types.is_timestamp(kind) or pa.types.is_date32(kind))


def _longs(values: pa.Array) -> _Longs:
    """Values without NULLs as Parquet has them."""
    if not pa.types.is_decimal(values.type):
        return np.asarray(values.view(f"int{values.type.bit_width}")).astype(np.int64)
    pairs = np.frombuffer(values.buffers()[1], np.int64)
    return pairs[2 * values.offset : 2 * (values.offset + len(values)) : 2]


def _leaves(name: str, kind: pa.DataType) -> Iterator[str]:
    """A column's paths in a file."""
    if pa.types.is_struct(kind):
        for field in kind:
            yield from _leaves(f"{name}.{field.name}", field.type)
    elif pa.types.is_list(kind):
        yield from _leaves(f"{name}.list.element", kind.value_type)
    else:
        yield name
