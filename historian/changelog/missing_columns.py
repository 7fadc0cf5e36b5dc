"""Columns that a row's log images leave out: in a chunk as bitmaps, for readers as lists of names.

A chunk with such rows has :data:`ABSENT` and, where it needs it, :data:`UNSEEN` behind its data columns. For each row a
bitmap over the columns of its schema version, in their order, low bits first. NULL where no bit is set. An absent
column's value is NULL in the row and means nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import repeat
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from historian.changelog.operations import CHUNK_COLUMNS, column_id

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = [
    "ABSENT",
    "MISSING_COLUMNS",
    "MOVED",
    "NAMES_TYPE",
    "UNSEEN",
    "WHOLE_IMAGES",
    "carry_missing",
    "lacking",
    "marked",
    "missing_lists",
    "missing_names",
    "name_lists",
    "pack",
]

ABSENT = "absent"
"""Columns whose value the log does not tell. In +C, and in a +A that follows its -R, they are as in the row before."""

UNSEEN = "unseen"
"""Absent columns of which not even that is known: what became of them only the server knows."""

MISSING_COLUMNS = (ABSENT, UNSEEN)

MOVED = "moved"
"""A text that the -R and the +A of a change of the key have in common, where they are told one by one; NULL of others. What the +A leaves out is
as in the row that the -R takes back. No changelog has it: it goes as far as :mod:`historian.normalizing`."""

WHOLE_IMAGES = (
    "binlog_row_image=FULL, and no generated columns where MariaDB leaves those out (docs/reference/row-images.md)"
)
"""For errors: what a table needs whose rows must be told whole."""

NAMES_TYPE = pa.list_(pa.field("element", pa.string(), nullable=False))


def missing_lists(schema: pa.Schema) -> tuple[str, ...]:
    """Which of :data:`MISSING_COLUMNS` a changelog has, as lists of names; a data column of such a name is no list."""
    return tuple(name for name in MISSING_COLUMNS if name in schema.names and pa.types.is_list(schema.field(name).type))


def pack(bits: NDArray[np.bool_]) -> pa.Array:
    """Rows of flags, a column of the schema each, as bitmaps."""
    packed = np.packbits(bits, axis=1, bitorder="little")
    some = bits.any(axis=1)
    offsets = np.arange(len(bits) + 1, dtype=np.int32) * packed.shape[1]
    buffers = [
        pa.py_buffer(np.packbits(some, bitorder="little")),
        pa.py_buffer(offsets),
        pa.py_buffer(np.ascontiguousarray(packed)),
    ]
    return pa.Array.from_buffers(pa.binary(), len(bits), buffers, len(bits) - int(np.count_nonzero(some)))


def marked(rows: pa.RecordBatch | pa.Table, name: str, columns: int) -> NDArray[np.bool_]:
    """The flags of :func:`pack`, rows x *columns*; none are set where *rows* have no column of that name."""
    bits = np.zeros((rows.num_rows, columns), np.bool_)
    if name in rows.schema.names and rows.num_rows:
        bitmaps = rows.column(name)
        bitmaps = bitmaps.combine_chunks() if isinstance(bitmaps, pa.ChunkedArray) else bitmaps
        present = bitmaps.drop_null()
        # Whatever stands under a NULL is cut out, so that the rest has one width.
        data = np.frombuffer(b"".join(present.to_pylist()), np.uint8).reshape(-1, (columns + 7) // 8)
        valid = bitmaps.is_valid().to_numpy(zero_copy_only=False)
        bits[valid] = np.unpackbits(data, axis=1, count=columns, bitorder="little")
    return bits


def lacking(rows: pa.RecordBatch) -> tuple[int, ...]:
    """Ids of the columns that some row of a chunk's *rows* lacks."""
    if ABSENT not in rows.schema.names:
        return ()
    columns = [
        column_id(name) for name in rows.schema.names[len(CHUNK_COLUMNS) :] if name not in (*MISSING_COLUMNS, MOVED)
    ]
    bitmaps = pa.RecordBatch.from_pydict({ABSENT: rows.column(ABSENT).unique()})
    return tuple(columns[at] for at in np.flatnonzero(marked(bitmaps, ABSENT, len(columns)).any(axis=0)))


def carry_missing(rows: pa.RecordBatch, places: Sequence[int | None], columns: int) -> dict[str, pa.Array]:
    """The bitmaps of *rows* with *columns* for a schema whose columns were at *places* of theirs, None: nowhere.

    Those that mark nothing there are left out.
    """
    carried = {}
    for name in MISSING_COLUMNS:
        if name in rows.schema.names:
            bits = marked(rows, name, columns)
            moved = np.zeros((rows.num_rows, len(places)), np.bool_)
            for new, old in enumerate(places):
                if old is not None:
                    moved[:, new] = bits[:, old]
            if moved.any():
                carried[name] = pack(moved)
    return carried


def name_lists(bitmaps: pa.Array, names: Sequence[str]) -> pa.Array:
    """For each bitmap the list of *names* that it marks; NULL where it is."""
    encoded = bitmaps.dictionary_encode()
    lists = [
        [name for bit, name in enumerate(names) if bitmap[bit >> 3] >> (bit & 7) & 1]
        for bitmap in encoded.dictionary.to_pylist()
    ]
    return pa.array(lists, NAMES_TYPE).take(encoded.indices)


def missing_names(rows: pa.RecordBatch, names: Sequence[str]) -> Iterator[dict[str, list[str]]]:
    """For each row of a chunk its lists of :func:`name_lists` by :data:`MISSING_COLUMNS`; those without names are left out."""
    there = [name for name in MISSING_COLUMNS if name in rows.schema.names]
    lists = [name_lists(rows.column(name), names).to_pylist() for name in there]
    if not there:
        yield from repeat({}, rows.num_rows)
    for row in zip(*lists, strict=True):
        yield {name: found for name, found in zip(there, row, strict=True) if found}
