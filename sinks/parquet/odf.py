"""A strict Open Data Fabric changelog as Parquet files with that specification's types, written by Spark's executors.

Spark's own writer has one unit for all times and dictionaries for all columns. Here the system columns' times are in
milliseconds, ``offset`` is delta-packed and ``op`` a dictionary, whatever the data hold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.fs as pafs
import pyarrow.parquet as pq

from historian.errors import SinkError
from sinks.contract.storage import located, writing
from sinks.parquet.files import changelog_writer

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["write_odf"]

_MS = pa.timestamp("ms", tz="UTC")
_TIMES = ("system_time", "event_time")
_GROUP_ROWS = 131_072

_Mapper = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def write_odf(rows: DataFrame, out: str, *, file_bits: int = 20) -> None:
    """Writes *rows* of the strict profile to the directory *out*, in files named after their first offset, in its order.

    Files have their names when all are written, so that *out* is there whole or empty.

    Args:
        rows: with ``offset``, in any order.
        out: path or URL.
        file_bits: so many low bits of offsets differ in a file, which has at most two to the power of that many rows.

    Raises:
        SinkError: something is at *out*, or it cannot be written.
    """
    from pyspark.sql import functions as F  # noqa: N812 Spark's own custom
    from pyspark.sql.pandas.types import to_arrow_schema

    schema = _types(to_arrow_schema(rows.schema, timezone="UTC"))
    out = out if "://" in out else str(Path(out).absolute())
    system, root = located(out)
    with writing(out):
        if system.get_file_info(root).type is not pafs.FileType.NotFound:
            raise SinkError(
                "the result cannot be written",
                where=out,
                expected="nothing there",
                found="something",
                next_step="name a directory that does not exist yet",
            )
        system.create_dir(root, recursive=True)
    numbers = [f"c{at}" for at in range(len(schema))]
    offset = F.col(numbers[schema.get_field_index("offset")])
    ordered = rows.toDF(*numbers).repartition(F.shiftright(offset, file_bits)).sortWithinPartitions(offset)
    try:
        drafts = [row.draft for row in ordered.mapInArrow(_writer(out, schema, file_bits), "draft string").collect()]
        with writing(out):
            if not drafts:  # the types, for who reads no rows
                with _open(out, f"{0:016d}.parquet", schema) as file:
                    file.write_table(schema.empty_table())
            for draft in drafts:
                system.move(f"{root}/{draft}", f"{root}/{draft.removeprefix('_').partition('-')[0]}.parquet")
            # Those of tasks that failed, and were done again.
            for left in system.get_file_info(pafs.FileSelector(root)):
                if left.base_name.startswith("_"):
                    system.delete_file(left.path)
    except BaseException:
        system.delete_dir(root)
        raise


def _types(schema: pa.Schema) -> pa.Schema:
    """*schema* with the system columns' times in milliseconds; an event time may be a date."""
    fields = [
        field.with_type(_MS) if field.name in _TIMES and pa.types.is_timestamp(field.type) else field
        for field in schema
    ]
    return pa.schema(fields)


def _writer(out: str, schema: pa.Schema, file_bits: int) -> _Mapper:
    def file_of(rows: pa.Table) -> int:
        return int(rows.column("offset")[0].as_py()) >> file_bits

    def write(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _, found in groupby(_groups(batches, schema, file_bits), key=file_of):
            groups = iter(found)
            first = next(groups)
            draft = f"_{first.column('offset')[0].as_py():016d}-{uuid4().hex}"
            with writing(out), _open(out, draft, schema) as file:
                file.write_table(first)
                for group in groups:
                    file.write_table(group)
            yield pa.RecordBatch.from_pydict({"draft": [draft]})

    return write


@contextmanager
def _open(out: str, name: str, schema: pa.Schema) -> Iterator[pq.ParquetWriter]:
    system, root = located(out)
    with system.open_output_stream(f"{root}/{name}") as stream, changelog_writer(stream, schema) as file:
        yield file


def _groups(batches: Iterable[pa.RecordBatch], schema: pa.Schema, file_bits: int) -> Iterator[pa.Table]:
    """Rows as *schema* has them, in row groups that are worth one, each of one file."""
    held = schema.empty_table()
    for batch in batches:
        held = pa.concat_tables([held, pa.Table.from_batches([batch]).rename_columns(schema.names).cast(schema)])
        while held.num_rows and (count := _whole(held, file_bits)):
            yield held.slice(0, count)
            held = held.slice(count)
    if held.num_rows:
        yield held


def _whole(rows: pa.Table, file_bits: int) -> int:
    """How many rows at the front make a row group; 0 where more may come to them."""
    files = pc.shift_right(rows.column("offset"), file_bits)
    same = pc.sum(pc.equal(files, files[0])).as_py()
    return min(same, _GROUP_ROWS) if same < rows.num_rows or same >= _GROUP_ROWS else 0
