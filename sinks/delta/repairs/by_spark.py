"""The same differences by Spark, for tables whose rows are not few: files of changelog rows, in order of key."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import reduce
from operator import and_
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from historian.changelog.operations import Op
from sinks.contract.storage import located, reading
from sinks.delta.log.commits import DataFile
from sinks.delta.repairs.differences import OP
from sinks.delta.rewrite.spark_rows import written_by_tasks
from sinks.rows.shapes import two_rows

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["differing_files", "rows_in"]

_COUNT = "count"


def differing_files(
    held: DataFrame, rows: DataFrame, key: Sequence[str], directory: str, schema: pa.Schema
) -> list[DataFile]:
    """Files, which no table knows, with what :func:`sinks.delta.repairs.differences.differences` gives, in its order.

    Args:
        held, rows, key: as of that function.
        directory: where the files are to be.
        schema: of their rows: :data:`~sinks.delta.repairs.differences.OP`, then the columns of both.

    Raises:
        TableStopped: two of the rows have one key.
    """
    from pyspark.sql import functions as F  # noqa: N812 Spark's own custom

    found = _by_key(held, rows, key) if key else _as_bags(held, rows)
    order = [F.col(name).asc_nulls_last() for name in (*(key or rows.columns), OP.name)]
    ordered = found.repartitionByRange(*order[:-1]).sortWithinPartitions(*order)
    return written_by_tasks(ordered, directory, schema)


def rows_in(files: Iterable[DataFile]) -> Iterator[pa.Table]:
    """The rows of *files*, some at a time; a -C and its +C come together."""
    for file in files:
        system, place = located(file.path)
        with reading(file.path):
            stream = system.open_input_file(place)
        with stream:
            parquet = pq.ParquetFile(stream)
            waiting: pa.Table | None = None
            for number in range(parquet.num_row_groups):
                rows = parquet.read_row_group(number)
                rows = rows if waiting is None else pa.concat_tables([waiting, rows])
                waiting = None
                if rows.column(OP.name)[-1].as_py() == Op.CORRECT_FROM:
                    waiting, rows = rows.slice(rows.num_rows - 1), rows.slice(0, rows.num_rows - 1)
                yield rows


def _by_key(held: DataFrame, rows: DataFrame, key: Sequence[str]) -> DataFrame:
    from pyspark.sql import functions as F  # noqa: N812 Spark's own custom

    names = rows.columns
    floats = _floats(rows)

    def exact(side: str, name: str) -> Column:
        value = F.col(f"{side}.{name}")
        return value.cast("string") if name in floats else value

    for frame in (held, rows):
        twice = frame.groupBy(*key).count().where("count > 1").head()
        if twice is not None:
            raise two_rows(dict(zip(key, twice, strict=False)))
    before = held.select(F.struct(*names).alias("b")).alias("before")
    after = rows.select(F.struct(*names).alias("a")).alias("after")
    same = reduce(and_, (F.col(f"b.{name}").eqNullSafe(F.col(f"a.{name}")) for name in key))
    both = before.join(after, same, "full_outer")
    alike = reduce(and_, (exact("b", name).eqNullSafe(exact("a", name)) for name in names))

    def row(op: Op, side: str) -> Column:
        return F.struct(F.lit(int(op)).alias(OP.name), *(F.col(f"{side}.{name}").alias(name) for name in names))

    gone, new = F.col("a").isNull(), F.col("b").isNull()
    told = (
        F.when(gone, F.array(row(Op.RETRACT, "b")))
        .when(new, F.array(row(Op.APPEND, "a")))
        .when(~alike, F.array(row(Op.CORRECT_FROM, "b"), row(Op.CORRECT_TO, "a")))
    )
    return both.select(F.explode(told).alias("told")).select("told.*")


def _as_bags(held: DataFrame, rows: DataFrame) -> DataFrame:
    from pyspark.sql import functions as F  # noqa: N812 Spark's own custom

    names, kinds, floats = rows.columns, dict(rows.dtypes), _floats(rows)
    signed = held.withColumn(_COUNT, F.lit(-1)).unionByName(rows.withColumn(_COUNT, F.lit(1)))
    signed = signed.withColumns({name: F.col(name).cast("string") for name in floats})
    bag = signed.groupBy(*names).agg(F.sum(_COUNT).alias(_COUNT)).where(f"`{_COUNT}` != 0")
    bag = bag.withColumns({name: F.col(name).cast(kinds[name]) for name in floats})
    op = F.when(F.col(_COUNT) < 0, int(Op.RETRACT)).otherwise(int(Op.APPEND))
    repeated = F.explode(F.sequence(F.lit(1), F.abs(_COUNT).cast("int")))
    return bag.withColumn(OP.name, op).withColumn(_COUNT, repeated).select(OP.name, *names)


def _floats(rows: DataFrame) -> frozenset[str]:
    """Columns that are compared as text: so a float keeps the sign of its zero, which Spark's own comparisons lose."""
    return frozenset(name for name, kind in rows.dtypes if kind in ("float", "double"))
