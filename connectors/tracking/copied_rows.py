"""What a tool copied into the shadow of a table, as the log has it: the proof of what the tool is known to copy."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from connectors.readers.base import Bound, TableMapped
from connectors.readers.binlog.events.crosscheck import mismatch
from connectors.tracking.ranges import cut_ranges
from historian.changelog.missing_columns import lacking
from historian.changelog.operations import CHUNK_COLUMNS, Op
from historian.errors import LogPurged, ValueUnrepresentable
from historian.plans.plans import PlannedTable, PlannedVersion
from historian.positions import LogPosition
from historian.schema.edits import AddColumn
from historian.values import initial_scalar

if TYPE_CHECKING:
    import pyarrow as pa

    from connectors.readers.base import Reader
    from historian.history.online_schema_changes import Swap
    from historian.schema.snapshots import Column, Snapshot

__all__ = ["FindCopied", "find_copied", "unlike_default"]

_LIMIT_BYTES = 64 << 20
_ENOUGH_ROWS = 1000

FindCopied = Callable[["Snapshot", LogPosition, LogPosition], "Iterator[pa.RecordBatch]"]
"""Rows that were written into a table of that schema between two positions; none where the log is purged."""


def find_copied(reader: Reader) -> FindCopied:
    """What reads them in *reader*'s log: no more than the first 64 MB, since a copy begins where the shadow is ready."""

    def find(shadow: Snapshot, since: LogPosition, until: LogPosition) -> Iterator[pa.RecordBatch]:
        bounds: list[Bound] = []
        try:
            for item in reader.scan(since, limit_bytes=_LIMIT_BYTES, until=until):
                if isinstance(item, Bound):
                    bounds.append(item)
                elif (
                    isinstance(item, TableMapped)
                    and item.table == shadow.name
                    and mismatch(shadow, item.columns, reader.flavor) is not None
                ):
                    return
        except LogPurged:
            return
        version = PlannedVersion(version=1, place=None, edits=(), snapshot=shadow, segment=0)
        table = PlannedTable(table_id=shadow.table_id, versions=(version,))
        for planned in cut_ranges(since, bounds, _LIMIT_BYTES):
            for chunk in reader.read(planned, (table,), stops=True):
                yield chunk.rows

    return find


def unlike_default(swap: Swap, rows: Iterator[pa.RecordBatch]) -> str:
    """Why a column that *swap* takes for new is none: rows were copied with other values than its default. "": it may be.

    Looks at the first thousand *rows* that were inserted. Columns whose default only the server knows are left out.
    """
    added = [edit.column for edit in swap.edits if isinstance(edit, AddColumn) and edit.table == swap.table]
    wanted = {column.name: column for column in added if column.initial_known and column.generated is None}
    if not wanted:
        return ""
    names = [column.name for column in swap.shadow.columns]
    seen = 0
    for batch in rows:
        inserted = [at for at, op in enumerate(batch.column("op").to_pylist()) if op == Op.APPEND]
        absent = set(lacking(batch))
        for at, name in enumerate(names):
            if name not in wanted or swap.shadow.columns[at].id in absent:
                continue
            found = _unlike(wanted[name], batch.column(len(CHUNK_COLUMNS) + at), inserted)
            if found:
                return (
                    f"the table was replaced by {swap.shadow.name}, where {name} is a new column by what its tool copies, and yet rows were "
                    f"copied into it with {found[0]!r} in {name}, which is not its default; say what the change was: "
                    f"historian ddl-override CONFIG --table {swap.table} --statement 'ALTER TABLE ...'"
                )
        seen += len(inserted)
        if seen >= _ENOUGH_ROWS:
            break
    return ""


def _unlike(column: Column, cells: pa.Array, rows: Sequence[int]) -> list[object]:
    try:
        default = initial_scalar(column).as_py()
    except ValueUnrepresentable:
        return []
    values = cells.to_pylist()
    return [values[at] for at in rows if values[at] != default]
