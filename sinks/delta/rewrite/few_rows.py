"""The rows of a small target, read and taken away where the sink runs: a statement on a small table needs no Spark job."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc

from historian.changelog.operations import physical_name
from sinks.delta.log.commits import DataFile
from sinks.delta.log.target import Target
from sinks.delta.rewrite.copy_on_write import deleted
from sinks.delta.rewrite.files import FileWriter
from sinks.delta.rewrite.held_rows import SMALL_BYTES, groups, read
from sinks.delta.schema.schema_evolution import DELETED
from sinks.rows.variant import VARIANT

__all__ = ["few_rows", "without_shard"]


def few_rows(
    target: Target, column_ids: Sequence[int], order: Sequence[int], shard: Sequence[tuple[int, str]]
) -> pa.Table | None:
    """The rows that a mirror shows, or that are open in a history, by the columns of *order*, NULLs last.

    None where they are not few, or Spark must read them.

    Args:
        column_ids: of the columns wanted, which come under their physical names.
        shard: values that rows have in the columns of those ids.
    """
    ends = "to_offset" if target.kind == "history" else None
    files = None if target.by_spark else target.view.small_files(SMALL_BYTES, null_in=ends)
    wanted = [physical_name(column_id) for column_id in column_ids]
    schema = target.view.schema().arrow()
    if files is None or not order or any(schema.field(physical_name(column_id)).type == VARIANT for column_id in order):
        return None
    names = {*wanted, *(physical_name(column_id) for column_id, _ in shard), ends, DELETED[0]}
    read_as = pa.schema([field for field in schema if field.name in names])
    rows = pa.concat_tables([read_as.empty_table(), *(read(path, read_as) for path in files)])
    if ends is not None:
        rows = rows.filter(rows.column(ends).is_null())
    elif DELETED[0] in rows.schema.names:
        rows = rows.filter(pc.invert(rows.column(DELETED[0])))
    if shard:
        rows = rows.filter(_theirs(rows, shard))
    rows = rows.select(wanted)
    keys = [(physical_name(column_id), "ascending") for column_id in order]
    return rows.take(pc.sort_indices(rows, keys))


def without_shard(
    target: Target, schema: pa.Schema, shard: Sequence[tuple[int, str]], deleted_at_us: int | None
) -> tuple[list[str], list[DataFile]] | None:
    """The files of a mirror that hold rows of a shard, and files without these; None where they are not small.

    Args:
        schema: of the new files.
        shard: values that its rows have in the columns of those ids.
        deleted_at_us: when the rows were deleted, where the mirror keeps them.
    """
    files = None if target.by_spark else target.view.small_files(SMALL_BYTES)
    if files is None:
        return None
    removed: list[str] = []
    writer = FileWriter(target.path, schema)
    for path in files:
        tables = list(groups(path, schema, {}))
        theirs = [_theirs(rows, shard) for rows in tables]
        if not any(pc.any(flags).as_py() for flags in theirs):
            continue
        removed.append(path)
        for rows, flags in zip(tables, theirs, strict=True):
            writer.write_table(rows.filter(pc.invert(flags)))
            if deleted_at_us is not None:
                writer.write_table(deleted(rows.filter(flags), deleted_at_us))
    return removed, writer.close()


def _theirs(rows: pa.Table, shard: Sequence[tuple[int, str]]) -> pa.ChunkedArray:
    return reduce(pc.and_, (pc.fill_null(pc.equal(rows.column(physical_name(i)), value), False) for i, value in shard))
