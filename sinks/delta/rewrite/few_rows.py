"""The rows of a small target, read and taken away where the sink runs: a statement on a small table needs no Spark job."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc

from historian.changelog.operations import physical_name
from sinks.delta.log.commits import DataFile, HeldFile
from sinks.delta.log.target import Target
from sinks.delta.rewrite.copy_on_write import deleted
from sinks.delta.rewrite.files import FileWriter
from sinks.delta.rewrite.held_rows import SMALL_BYTES, WantedRows, groups
from sinks.delta.schema.schema_evolution import DELETED
from sinks.rows.variant import VARIANT

__all__ = ["few_rows", "present_tables", "without_shard"]


def few_rows(
    target: Target, column_ids: Sequence[int], order: Sequence[int], shard: Sequence[tuple[int, str]]
) -> pa.Table | None:
    """The rows that a mirror shows, or that are open in a history, by the columns of *order*, NULLs last.

    None where they are not few, or Spark must read them.

    Args:
        column_ids: of the columns wanted, which come under their physical names.
        shard: values that rows have in the columns of those ids.
    """
    schema = target.view.schema().arrow()
    if not order or any(schema.field(physical_name(column_id)).type == VARIANT for column_id in order):
        return None
    tables = present_tables(target, {*column_ids, *(column_id for column_id, _ in shard)}, SMALL_BYTES)
    if tables is None:
        return None
    wanted = [physical_name(column_id) for column_id in column_ids]
    read_as = pa.schema([schema.field(name) for name in wanted])
    parts = (rows.filter(_theirs(rows, shard)) if shard else rows for rows in tables())
    rows = pa.concat_tables([read_as.empty_table(), *(rows.select(wanted) for rows in parts)])
    keys = [(physical_name(column_id), "ascending") for column_id in order]
    return rows.take(pc.sort_indices(rows, keys))


def present_tables(
    target: Target,
    column_ids: Collection[int],
    limit_bytes: int | None,
    wanted_file: Callable[[HeldFile], bool] | None = None,
    wanted_rows: WantedRows | None = None,
) -> Callable[[], Iterator[pa.Table]] | None:
    """The rows that a mirror shows, or that are open in a history, as its files have them, one row group after the other.

    None where the files have more than *limit_bytes*, if that is given, or Spark must read them. Columns come under their physical names.

    Args:
        wanted_file: says of which files rows are wanted, by what the log says of them.
        wanted_rows: others may be left out; its columns are among those of *column_ids*.
    """
    ends = "to_offset" if target.kind == "history" else None
    files = None if target.by_spark else target.view.small_files(limit_bytes, null_in=ends, wanted=wanted_file)
    if files is None:
        return None
    wanted = {*map(physical_name, column_ids)}
    read_as = pa.schema([f for f in target.view.schema().arrow() if f.name in {*wanted, ends, DELETED[0]}])
    marks = DELETED[0] in read_as.names and ends is None
    names = [name for name in read_as.names if name in wanted]

    def tables() -> Iterator[pa.Table]:
        for path in files:
            for rows in groups(path, read_as, {}, wanted_rows):
                if ends is not None:
                    rows = rows.filter(rows.column(ends).is_null())  # noqa: PLW2901
                elif marks:
                    rows = rows.filter(pc.invert(rows.column(DELETED[0])))  # noqa: PLW2901
                yield rows.select(names)

    return tables


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
