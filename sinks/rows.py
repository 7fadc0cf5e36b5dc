"""Rows of chunks in the shape of a target: a changelog's as written, a mirror's as the net change."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from historian.changelog import SYSTEM_COLUMNS, Op, physical_name
from historian.chunks import Chunk
from historian.errors import TableStopped
from historian.fold import net_changes
from historian.projection import project
from historian.schema import Snapshot

__all__ = ["NetRows", "changelog_rows", "in_schema", "refuse_system_names"]

_UTC_US = pa.timestamp("us", tz="UTC")


def changelog_rows(
    chunk: Chunk,
    *,
    written: Snapshot,
    carried: Snapshot,
    schema: pa.Schema,
    first_offset: int,
    system_time_us: int,
) -> pa.RecordBatch:
    """*chunk* as changelog rows: each holds the columns of the version it was written under, all others are NULL.

    So what the changelog says of a row depends on the log alone, never on where a batch ended.

    Args:
        chunk: with columns of *written*.
        written: the snapshot in force for its rows.
        carried: the columns of *written* with the types that the changelog has.
        schema: of the changelog's files.
        first_offset: of the chunk's first row; the others follow without a gap.
        system_time_us: of every row.
    """
    rows = project(chunk.rows, written, carried)
    count = rows.num_rows
    system = {
        "offset": pa.array(np.arange(first_offset, first_offset + count)),
        "op": rows.column("op").cast(pa.int32()),
        "system_time": pa.repeat(pa.scalar(system_time_us, _UTC_US), count),
        "event_time": rows.column("event_time"),
        "schema_version": pa.repeat(pa.scalar(chunk.version, pa.int64()), count),
    }
    data = {physical_name(c.id): rows.column(physical_name(c.id)) for c in carried.columns}
    return in_schema({**system, **data}, schema, count)


def in_schema(columns: dict[str, pa.Array], schema: pa.Schema, count: int) -> pa.RecordBatch:
    """A batch of *schema* from *columns* by name; those that are missing are NULL."""
    arrays = [columns[f.name] if f.name in columns else pa.nulls(count, f.type) for f in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def refuse_system_names(snapshot: Snapshot) -> None:
    """Raises :class:`TableStopped` where a column is named like one of the changelog's own."""
    clash = [column.name for column in snapshot.columns if column.name.lower() in SYSTEM_COLUMNS]
    if clash:
        raise TableStopped(
            "a data column is named like a column of the changelog",
            where=str(snapshot.name),
            expected=f"no column named {', '.join(SYSTEM_COLUMNS)}",
            found=clash,
            next_step="rename the column, or leave the table out of the changelog",
        )


class NetRows:
    """Folds the chunks of one part to the last image of each key, seen under *target*."""

    def __init__(self, target: Snapshot) -> None:
        self._target = target
        self._key = [physical_name(column_id) for column_id in target.primary_key]
        self._folded: list[tuple[int, pa.RecordBatch]] = []

    def add(self, chunk: Chunk, written: Snapshot) -> None:
        """Adds the rows of a chunk, in any order of chunks."""
        rows = project(chunk.rows, written, self._target)
        self._folded.append((chunk.sequence, net_changes(rows, self._key)))

    def finish(self) -> tuple[pa.Table, pa.Table]:
        """The rows to put, and the rows whose keys are to go; each key once, in one of them."""
        self._folded.sort(key=lambda folded: folded[0])
        merged = pa.Table.from_batches([batch for _, batch in self._folded])
        last = net_changes(merged, self._key) if len(self._folded) > 1 else merged
        gone = pc.equal(last.column("op"), pa.scalar(int(Op.RETRACT), last.column("op").type))
        data = last.select([physical_name(column.id) for column in self._target.columns])
        return data.filter(pc.invert(gone)), data.filter(gone)
