"""Changelog rows as the intervals in which each row was there: what a history (SCD 2) holds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from historian.changelog.chunks import Chunk
from historian.changelog.folding import rows_by_key
from historian.changelog.operations import Op, physical_name
from historian.changelog.projection import project
from historian.schema.snapshots import Column, Snapshot
from historian.values.texts import initial_scalar
from sinks.rows.shapes import in_schema, two_rows
from sinks.rows.variant import fitted

__all__ = ["Added", "IntervalRows", "close"]

Added = Sequence[tuple[Column, int]]
"""Columns with the version that adds them, whose rows from before read a value other than NULL from there on."""

_Longs = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rows:
    """Rows of one chunk: in the history's shape, as if each opened a row; with what decides whether it does."""

    sequence: int
    rows: pa.RecordBatch
    ops: npt.NDArray[np.uint8]
    version: int


class IntervalRows:
    """Takes the chunks of one part, and gives the rows that a history gains and the ends that it must note.

    A row of an interval holds the columns of the version that it was opened under. A column added while it was there
    reads what held when it was added, all others are NULL. So what a history says depends on the log alone.

    Args:
        schema: of the history's files.
        key: ids of the key's columns.
        added: by the part.
    """

    def __init__(self, schema: pa.Schema, key: Sequence[int], added: Added) -> None:
        self._schema = schema
        self._key = [physical_name(column_id) for column_id in key]
        self._added = added
        self._chunks: list[_Rows] = []

    def add(
        self,
        chunk: Chunk,
        *,
        written: Snapshot,
        carried: Snapshot,
        first_offset: int,
        wanted: pa.BooleanArray | None = None,
    ) -> None:
        """Adds the *wanted* rows of a chunk, in any order of chunks; other arguments as of :func:`sinks.rows.shapes.changelog_rows`."""
        offsets = pa.array(np.arange(first_offset, first_offset + chunk.rows.num_rows))
        if wanted is not None:
            chunk, offsets = replace(chunk, rows=chunk.rows.filter(wanted)), offsets.filter(wanted)
        rows = project(chunk.rows, written, carried)
        count = rows.num_rows
        system = {"valid_from": rows.column("event_time"), "from_offset": offsets}
        data = {physical_name(c.id): rows.column(physical_name(c.id)) for c in carried.columns}
        shaped = in_schema({**system, **data}, self._schema, count)
        ops = rows.column("op").to_numpy()
        self._chunks.append(_Rows(sequence=chunk.sequence, rows=shaped, ops=ops, version=chunk.version))

    def finish(self) -> tuple[pa.Table, pa.Table]:
        """The rows to add, some of which end within the part already; and for each key where a row from before it ends.

        The latter have the key's columns, ``to_offset`` and ``valid_to``, and in added columns what the row read at its
        end. Both are in the history's schema.
        """
        self._chunks.sort(key=lambda chunk: chunk.sequence)
        rows = pa.Table.from_batches([chunk.rows for chunk in self._chunks], self._schema)
        ops = np.concatenate([chunk.ops for chunk in self._chunks])
        versions = np.concatenate([np.full(len(chunk.ops), chunk.version, np.int64) for chunk in self._chunks])
        order, first = (values.to_numpy(zero_copy_only=False) for values in rows_by_key(rows, self._key))
        after = np.full(len(ops), -1, np.int64)
        after[order[:-1]] = np.where(first[1:], -1, order[1:])
        starts = np.zeros(len(ops), bool)
        starts[order[first]] = True
        opens = np.isin(ops, (int(Op.APPEND), int(Op.CORRECT_TO)))
        return self._opened(rows, opens, after, versions), self._ended(rows.filter(pa.array(starts)), versions[starts])

    def _opened(self, rows: pa.Table, opens: npt.NDArray[np.bool_], after: _Longs, versions: _Longs) -> pa.Table:
        for end, start in (("to_offset", "from_offset"), ("valid_to", "valid_from")):
            ends = rows.column(start).combine_chunks().take(pa.array(after, mask=after < 0))
            rows = _with(rows, end, ends)
        until = np.where(after < 0, np.iinfo(np.int64).max, versions[after])
        for column, since in self._added:
            name = physical_name(column.id)
            fills = pa.array((versions < since) & (since <= until))
            rows = _with(rows, name, pc.if_else(fills, _initial(column, self._schema), rows.column(name)))
        return rows.filter(pa.array(opens))

    def _ended(self, rows: pa.Table, versions: _Longs) -> pa.Table:
        nulls = pa.nulls(rows.num_rows)
        columns = {name: rows.column(name) for name in self._key}
        columns |= {"to_offset": rows.column("from_offset"), "valid_to": rows.column("valid_from")}
        for column, since in self._added:
            initial = _initial(column, self._schema)
            columns.setdefault(
                physical_name(column.id), pc.if_else(pa.array(since <= versions), initial, fitted(nulls, initial.type))
            )
        arrays = [fitted(columns.get(f.name, nulls), f.type, f.name) for f in self._schema]
        return pa.Table.from_arrays(arrays, schema=self._schema)


def close(held: pa.Table, ends: pa.Table, key: Sequence[int], added: Added) -> tuple[pa.Table, pa.Table]:
    """The rows of a history that stay open, and those that are closed, after *ends* as :class:`IntervalRows` gives them.

    Args:
        held: rows of a history, open and closed ones; open ones at most once a key.
        ends: at most one a key, in the same schema.
    """
    was_open = held.column("to_offset").is_null()
    rows, closed = held.filter(was_open), held.filter(pc.invert(was_open))
    for column, _ in added:
        rows = _with(rows, physical_name(column.id), pa.repeat(_initial(column, held.schema), rows.num_rows))
    both = pa.concat_tables([rows, ends])
    order, first = (v.to_numpy(zero_copy_only=False) for v in rows_by_key(both, [physical_name(i) for i in key]))
    after = np.full(both.num_rows, -1, np.int64)
    after[order[:-1]] = np.where(first[1:], -1, order[1:])
    after = after[: rows.num_rows]
    twice = np.flatnonzero((after >= 0) & (after < rows.num_rows))
    if len(twice):
        raise two_rows(rows.select([physical_name(i) for i in key]).slice(int(twice[0]), 1).to_pylist()[0])
    ended = pa.array(after >= 0)
    at = pa.array(after[after >= 0] - rows.num_rows)
    now_closed = rows.filter(ended)
    for name in ("to_offset", "valid_to", *(physical_name(column.id) for column, _ in added)):
        now_closed = _with(now_closed, name, ends.column(name).take(at))
    return rows.filter(pc.invert(ended)), pa.concat_tables([closed, now_closed])


def _initial(column: Column, schema: pa.Schema) -> pa.Scalar:
    name = physical_name(column.id)
    return fitted(pa.repeat(initial_scalar(column), 1), schema.field(name).type, name)[0]


def _with(rows: pa.Table, name: str, values: pa.Array | pa.ChunkedArray) -> pa.Table:
    at = rows.schema.get_field_index(name)
    return rows.set_column(at, rows.schema.field(at), values)
