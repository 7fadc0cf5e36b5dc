"""Which changes of a plan's log go on while their tables are copied: those of keys that were copied before the plan."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from connectors.backfill.keys.coverage import Ask, covered
from connectors.backfill.keys.split_key import SplitKey
from historian.changelog.chunks import Chunk
from historian.changelog.missing_columns import ABSENT
from historian.changelog.operations import Op
from historian.changelog.row_images import Mask, rows_where
from historian.errors import ValueUnrepresentable
from historian.plans.key_ranges import NOT_BY_RANGES
from historian.plans.plans import PlannedTable, PlannedVersion, TableCopy

__all__ = ["forwarded", "forwarded_chunks"]


def forwarded_chunks(chunks: Iterable[Chunk], tables: Sequence[PlannedTable], flavor: str, ask: Ask) -> Iterator[Chunk]:
    """*chunks* without the changes that the copies of their tables hold, or will hold.

    Args:
        chunks: of one range of a plan's log.
        tables: of the plan.
        ask: puts a question to the source; the order of some keys is the server's alone.
    """
    copied = {table.table_id: (table, table.copy) for table in tables}
    for chunk in chunks:
        table, copy = copied[chunk.table_id]
        is_cleared = copy is not None and copy.clears is not None and chunk.segment >= copy.clears
        if copy is None or chunk.stopped or is_cleared:
            yield chunk
        elif copy.behind is not None and not copy.only:
            version = next(each for each in table.versions if each.version == chunk.version)
            left = _copied_part(chunk, version, copy, flavor, ask)
            if left.rows.num_rows or left.stopped:
                yield left


def _copied_part(chunk: Chunk, version: PlannedVersion, copy: TableCopy, flavor: str, ask: Ask) -> Chunk:
    key = None if version.snapshot is None else SplitKey.of(version.snapshot, flavor)
    if key is None or tuple(column.id for column in key.columns) != copy.key:
        return replace(
            chunk, rows=chunk.rows.slice(0, 0), stopped=f"{chunk.table_id}: its key changed while it was copied"
        )
    try:
        mask = covered(chunk.rows, key, copy.behind, ask)
    except ValueUnrepresentable as error:
        # The plan is stored: whoever decodes it again finds the same.
        return replace(chunk, rows=chunk.rows.slice(0, 0), stopped=f"{NOT_BY_RANGES}: {error}")
    if ABSENT in chunk.rows.schema.names and _loses_images(chunk.rows, mask):
        reason = (
            f"{key.table}: a row moved to a key that is copied, and its image in the log is not whole; "
            "set binlog_row_image=FULL at the source and copy the table again"
        )
        reason = f"{NOT_BY_RANGES}: {reason}" if copy.repairs else reason
        return replace(chunk, rows=chunk.rows.slice(0, 0), stopped=reason)
    return replace(chunk, rows=forwarded(chunk.rows, mask))


def _loses_images(rows: pa.RecordBatch, mask: Mask) -> bool:
    """Whether a row that goes on lacks columns that it has as the row before it, which does not."""
    ops = rows.column("op").to_numpy()
    absent = rows.column(ABSENT).is_valid().to_numpy(zero_copy_only=False)
    before = np.isin(ops[:-1], (Op.RETRACT, Op.CORRECT_FROM)) & ~mask[:-1]
    after = np.isin(ops[1:], (Op.APPEND, Op.CORRECT_TO)) & mask[1:] & absent[1:]
    return bool((before & after).any())


def forwarded(rows: pa.RecordBatch, covered: Mask) -> pa.RecordBatch:
    """The rows of *rows* that go on while a table is copied: those whose keys are covered.

    Of a -C and its +C both go on, or neither, where both keys lie on one side. A row that leaves what is covered is -R: the chunk that
    reaches its new key brings it again. One that comes in is +A: no chunk to come will. The log tells a change of the primary key as -R and +A.
    So a pair can lie on both sides only where the split key is another one.

    Args:
        rows: a chunk's rows with their ``op``, each +C directly behind its -C.
        covered: for each row whether its key is (:func:`connectors.backfill.keys.coverage.covered`).
    """
    if covered.all():
        return rows
    ops = np.array(rows.column("op"), dtype=np.uint8)
    new = ops.copy()
    first = np.flatnonzero(ops == Op.CORRECT_FROM)
    leaves, enters = first[covered[first] & ~covered[first + 1]], first[~covered[first] & covered[first + 1]] + 1
    new[leaves], new[enters] = Op.RETRACT, Op.APPEND
    if len(leaves) or len(enters):
        at = rows.schema.get_field_index("op")
        rows = rows.set_column(at, rows.schema.field(at), pa.array(new, pa.uint8()))
    return rows_where(rows, covered)
