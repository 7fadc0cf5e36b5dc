"""The unfinished chunk of one table: the memory that kernels write rows into, grown from what was observed."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from connectors.readers.base import MappedColumn
from connectors.readers.binlog.columns.arrays import Cells
from connectors.readers.binlog.events.table_maps import ColumnCode
from connectors.readers.binlog.kernels.values import layout as at
from connectors.readers.binlog.kernels.values.temporal import MONTHS
from connectors.readers.binlog.rows.image_flags import ImageFlags, inserted_rows
from connectors.readers.binlog.rows.program import Step
from historian.changelog.operations import CHUNK_COLUMNS, physical_name
from historian.plans.plans import PlannedVersion
from historian.schema.snapshots import Snapshot

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["TableBuilder", "runs"]

_FIRST_ROWS = 64
_FOLDED_ROWS = 1024
_FIRST_BYTES_PER_ROW = 16
_MAX_FIRST_BYTES = 32 << 20
_CHANGELOG_WORDS = (at.OP, at.EVENT_TIME, at.ROW_SOURCE, at.ROW_SEQUENCE, at.ROW_ORDINAL)
_CHANGELOG_WIDTHS = tuple(field.type.bit_width // 8 for field in CHUNK_COLUMNS)


class TableBuilder:
    """Rows of one table under one version, in memory whose addresses stand in *words*.

    Its arrays begin empty, are made at the first row and given away with each chunk. The next ones are made in the last
    ones' size: upper bounds would stay resident.

    Args:
        words: the table's entry among those that kernels read, see :mod:`connectors.readers.binlog.kernels.values.layout`.
        written: the table's schema; *snapshot*: the same with the columns that the log has besides.
        wire: the TABLE_MAP's columns that *steps* were made for.
        generated_from: see :func:`connectors.readers.binlog.rows.generated_columns.generated_from`.
        max_rows: of a chunk.
        first_rows: how many the first chunk's arrays are made for; they grow.
    """

    def __init__(  # noqa: PLR0913 each by name, and each is wanted
        self,
        *,
        words: NDArray[np.int64],
        version: PlannedVersion,
        written: Snapshot,
        snapshot: Snapshot,
        wire: tuple[MappedColumn, ...],
        steps: Sequence[Step],
        generated_from: NDArray[np.uint8] | None,
        max_rows: int,
        first_rows: int = _FIRST_ROWS,
    ) -> None:
        self.version = version
        self.written = written
        self.snapshot = snapshot
        self.wire = wire
        self._steps = steps
        self._max_rows = max_rows
        self._words = words
        self._table = np.zeros((len(steps), at.STEP_WORDS), np.int64)
        for row, step in zip(self._table, steps):  # noqa: B905 - one length
            row[: at.STEP_OUT] = (step.kind, step.size, step.meta, step.width)
        self._table[self._table[:, at.STEP_KIND] == at.DATETIME, at.STEP_DATA] = MONTHS.ctypes.data
        self._table[:, at.STEP_JSON] = [column.type == ColumnCode.JSON for column in wire]
        positions = {column.id: index for index, column in enumerate(snapshot.columns)}
        self._keys = np.array([positions[key] for key in snapshot.primary_key], np.int64)
        self._stride = (len(steps) + 7) // 8
        words[:] = 0
        words[at.COLUMNS] = len(steps)
        words[at.STEPS] = self._table.ctypes.data
        self._runs, self._distances = runs(steps)
        words[at.RUNS], words[at.RUN_TOTAL] = self._runs.ctypes.data, len(self._runs)
        words[at.KEYS] = self._keys.ctypes.data
        words[at.KEY_COUNT] = len(self._keys)
        self._generated_from = generated_from
        words[at.GENERATED_FROM] = 0 if generated_from is None else generated_from.ctypes.data
        words[at.FIXED] = sum(_CHANGELOG_WIDTHS) + self._stride + sum(step.width or 4 for step in steps)
        self._wanted_rows = first_rows
        self._wanted_bytes = [float(_FIRST_BYTES_PER_ROW)] * len(steps)
        self.clear()

    def clear(self) -> None:
        """Drops the rows of the unfinished chunk."""
        self._changelog: list[pa.ResizableBuffer] = []
        self._nulls: pa.ResizableBuffer | None = None
        self._flags: pa.ResizableBuffer | None = None
        self._values: list[pa.ResizableBuffer] = []
        self._data: list[pa.ResizableBuffer | None] = []
        self._words[[at.ROWS, at.CAPACITY, at.BYTES, at.FLAGS]] = 0

    @property
    def rows(self) -> int:
        """Rows in the chunk so far."""
        return int(self._words[at.ROWS])

    def grow_rows(self) -> None:
        """Makes room for more rows."""
        capacity = int(self._words[at.CAPACITY])
        if capacity == 0:
            self._allocate(min(self._max_rows, self._wanted_rows))
            return
        capacity = min(self._max_rows, 4 * capacity)
        assert self._nulls is not None  # noqa: S101 - made with the capacity
        for buffer, width in zip(self._changelog, _CHANGELOG_WIDTHS):  # noqa: B905 - one length
            buffer.resize(capacity * width, shrink_to_fit=False)
        self._nulls.resize(capacity * self._stride + at.SLACK, shrink_to_fit=False)
        if self._flags is not None:
            self._flags.resize(capacity * self._stride * at.FLAG_MAPS, shrink_to_fit=False)
        for buffer, step in zip(self._values, self._steps):  # noqa: B905 - one length
            buffer.resize(_values_bytes(step, capacity), shrink_to_fit=False)
        self._publish(capacity)

    def _allocate(self, capacity: int) -> None:
        self._changelog = [_buffer(capacity * width) for width in _CHANGELOG_WIDTHS]
        self._nulls = _buffer(capacity * self._stride + at.SLACK)
        self._values = [_buffer(_values_bytes(step, capacity)) for step in self._steps]
        self._data = [
            None if step.width else _buffer(min(int(capacity * wanted), _MAX_FIRST_BYTES) + at.SLACK)
            for step, wanted in zip(self._steps, self._wanted_bytes)  # noqa: B905 - one length
        ]
        for values, step in zip(self._values, self._steps):  # noqa: B905 - one length
            if not step.width:
                np.frombuffer(values, np.int32, 1)[0] = 0
        self._publish(capacity)

    def _publish(self, capacity: int) -> None:
        """Tells the kernel where everything is now."""
        assert self._nulls is not None  # noqa: S101 - made with the capacity
        words = self._words
        words[at.CAPACITY] = capacity
        words[at.NULLS] = self._nulls.address
        words[at.FLAGS] = 0 if self._flags is None else self._flags.address
        for word, buffer in zip(_CHANGELOG_WORDS, self._changelog):  # noqa: B905 - one length
            words[word] = buffer.address
        for row, values, data in zip(self._table, self._values, self._data):  # noqa: B905 - one length
            row[at.STEP_OUT] = values.address
            if data is not None:
                row[at.STEP_DATA], row[at.STEP_CAPACITY] = data.address, data.size

    def grow_data(self, column: int, needed: int) -> None:
        """Makes room for *needed* bytes in all in a column of varying width."""
        buffer = self._data[column]
        assert buffer is not None  # noqa: S101 - the kernel asks for such columns only
        size = max(2 * buffer.size, needed + at.SLACK)
        if self.rows:
            buffer.resize(size, shrink_to_fit=False)
        else:
            # Nothing is in it that a larger one would have to hold, and memory that nobody touched is not resident.
            self._data[column] = None
            del buffer
            self._data[column] = buffer = _buffer(size)
        self._table[column, at.STEP_DATA], self._table[column, at.STEP_CAPACITY] = buffer.address, buffer.size

    def keep_flags(self) -> None:
        """Makes memory for what images leave out; the rows so far leave out nothing."""
        row_bytes = self._stride * at.FLAG_MAPS
        self._flags = _buffer(int(self._words[at.CAPACITY]) * row_bytes)
        np.frombuffer(self._flags, np.uint8, self.rows * row_bytes)[:] = 0
        self._words[at.FLAGS] = self._flags.address

    def first_and_last(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """Source and sequence of the first and of the last row."""
        sources = np.frombuffer(self._changelog[2], np.int16, self.rows)
        sequences = np.frombuffer(self._changelog[3], np.int64, self.rows)
        return (int(sources[0]), int(sequences[0])), (int(sources[-1]), int(sequences[-1]))

    def take(self, position: Callable[[int, int], str]) -> pa.RecordBatch:
        """The rows as Arrow; the builder is empty afterwards. *position* prints a source and sequence."""
        assert self._nulls is not None  # noqa: S101 - there are rows
        rows = self.rows
        bitmaps = np.frombuffer(self._nulls, np.uint8, rows * self._stride).reshape(rows, self._stride)
        some = _any_bits(bitmaps)
        # Trimmed memory may move, so views come after it.
        changelog = [_trimmed(buffer, rows * width) for buffer, width in zip(self._changelog, _CHANGELOG_WIDTHS)]  # noqa: B905
        sources, sequences = np.frombuffer(changelog[2], np.int16), np.frombuffer(changelog[3], np.int64)
        arrays = [
            pa.Array.from_buffers(field.type, rows, [None, buffer], 0)
            for field, buffer in zip(CHUNK_COLUMNS, changelog)  # noqa: B905 - one length
        ]
        fields = list(CHUNK_COLUMNS)
        nulled: dict[str, int] = {}
        letters: list[tuple[int, str, str, str, str]] = []
        flags, inserted = self._image_flags(changelog)
        for index, (column, step) in enumerate(zip(self.snapshot.columns, self._steps)):  # noqa: B905 - one length

            def place(row: int, name: str = column.name) -> str:
                at_position = position(int(sources[row]), int(sequences[row]))
                return f"{self.snapshot.name}.{name}, row {row} of its chunk, transaction {at_position}"

            validity, nulls = None, 0
            if some[index >> 3] >> (index & 7) & 1:
                valid = (bitmaps[:, index >> 3] & (1 << (index & 7))) == 0
                nulls = rows - int(np.count_nonzero(valid))
                validity = pa.py_buffer(np.packbits(valid, bitorder="little"))
            cells = Cells(
                arrow=step.arrow,
                rows=rows,
                validity=validity,
                nulls=nulls,
                values=_trimmed(self._values[index], _values_bytes(step, rows)),
                data=self._column_data(index, rows),
                place=place,
            )
            name = physical_name(column.id)
            if flags is None:
                arrays.append(step.finish(cells))
            else:
                cells = flags.documents(cells, index)
                arrays.append(flags.with_defaults(step.finish(cells), column, index, inserted))
            fields.append(pa.field(name, step.arrow))
            if cells.unrepresentable:
                nulled[name] = cells.unrepresentable
            letters += [(row, name, raw.hex(), text, reason) for row, raw, text, reason in cells.dead_letters]
        for name, bitmaps in ({} if flags is None else flags.columns()).items():
            arrays.append(bitmaps)
            fields.append(pa.field(name, bitmaps.type))
        self._wanted_rows = max(rows, _FIRST_ROWS)
        self.clear()
        told = (("nulled", nulled), ("dead_letters", letters))
        metadata = {what.encode(): json.dumps(value).encode() for what, value in told if value}
        return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields, metadata or None))

    def _image_flags(self, changelog: Sequence[pa.Buffer]) -> tuple[ImageFlags | None, NDArray[np.bool_]]:
        """What the images leave out, None where nothing is, and which rows an INSERT brought."""
        if self._flags is None:
            return None, np.zeros(0, np.bool_)
        maps = np.frombuffer(self._flags, np.uint8, self.rows * self._stride * at.FLAG_MAPS)
        op, _, source, sequence, ordinal = (
            np.frombuffer(buffer, field.type.to_pandas_dtype() if width < 8 else np.int64, self.rows)
            for buffer, field, width in zip(changelog, CHUNK_COLUMNS, _CHANGELOG_WIDTHS)  # noqa: B905 - one length
        )
        return ImageFlags(maps, self.rows, len(self.snapshot.columns)), inserted_rows(op, source, sequence, ordinal)

    def _column_data(self, index: int, rows: int) -> pa.Buffer | None:
        buffer = self._data[index]
        if buffer is None:
            return None
        used = int(np.frombuffer(self._values[index], np.int32, rows + 1)[rows])
        self._wanted_bytes[index] = 1.05 * used / rows + 1
        return _trimmed(buffer, used)


def _any_bits(bitmaps: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """The bits that stand in any row. Rows are folded first, since numpy is slow at many short ones."""
    whole = len(bitmaps) // _FOLDED_ROWS
    folded_bytes = _FOLDED_ROWS * bitmaps.shape[1]
    folded = np.bitwise_or.reduce(bitmaps[: whole * _FOLDED_ROWS].reshape(whole, folded_bytes), axis=0)
    rest = bitmaps[whole * _FOLDED_ROWS :]
    some: NDArray[np.uint8] = np.bitwise_or.reduce(np.concatenate([folded.reshape(-1, bitmaps.shape[1]), rest]), axis=0)
    return some


def _buffer(size: int) -> pa.ResizableBuffer:
    return pa.allocate_buffer(max(size, 64), resizable=True)


def _values_bytes(step: Step, rows: int) -> int:
    return rows * step.width if step.width else 4 * (rows + 1)


def _trimmed(buffer: pa.ResizableBuffer, size: int) -> pa.Buffer:
    """The buffer's first *size* bytes; memory far above that goes back to the pool."""
    if buffer.size > 2 * size + 4096:
        buffer.resize(size)
    return buffer.slice(0, size)


_MASK_COLUMNS = 64


def runs(steps: Sequence[Step]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The runs, a row of RUN_WORDS each, and each column's distance from where its run begins, which the rows point into.

    A run ends behind a column of varying width, and where the next 64 columns begin, since one word is their NULL bits.
    """
    distances: NDArray[np.int64] = np.zeros(len(steps) + at.RUN_STEP, np.int64)
    found: list[list[int]] = []
    first, size = 0, 0
    for column, step in enumerate(steps):
        distances[column] = size
        size += step.size
        behind = column + 1
        if step.kind == at.TEXT or behind % _MASK_COLUMNS == 0 or behind == len(steps):
            bits = (1 << (behind - first)) - 1 << first % _MASK_COLUMNS
            prefix = step.size if step.kind == at.TEXT else 0
            mask = bits - (1 << _MASK_COLUMNS) if bits >> _MASK_COLUMNS - 1 else bits
            found.append([first, behind - first, mask, size, prefix, distances.ctypes.data + 8 * first])
            first, size = behind, 0
    return np.array(found, np.int64).reshape(len(found), at.RUN_WORDS), distances
