"""Columns of DataFrames as expressions: by name whatever is in it, operations, and errors that stop a query."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias, TypeVar

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 Spark's own custom

from historian.changelog.operations import Op

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

__all__ = ["Mapper", "at", "image", "in_arrow", "mapped", "numbered", "operation", "refuse"]

Mapper: TypeAlias = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]
"""What an executor does to the batches of a partition."""

_Value = TypeVar("_Value", int, str)
_BUCKET, _START = "__bucket", "__start"


def at(name: str) -> Column:
    """The column of that name, which may hold dots and backticks."""
    return F.col("`" + name.replace("`", "``") + "`")


def image(names: Iterable[str]) -> Column:
    """The columns *names* as one struct."""
    return F.struct(*(at(name).alias(name) for name in names))


def operation(op: Op) -> Column:
    """The code of *op*, as Spark's changelogs have it."""
    return F.lit(int(op)).cast("int")


def refuse(what: str, found: Column) -> Column:
    """An expression that stops the query with an error when a row needs its value."""
    return F.raise_error(F.concat(F.lit(f"{what}; found "), F.coalesce(found.cast("string"), F.lit("NULL"))))


def mapped(column: Column, to: Mapping[_Value, Column], what: str) -> Column:
    """What *to* gives for the value of *column*; any other value stops the query with *what*."""
    chosen = F.when(F.lit(False), next(iter(to.values())))
    for value, wanted in to.items():
        chosen = chosen.when(column == F.lit(value), wanted)
    return chosen.otherwise(refuse(what, column))


def in_arrow(rows: DataFrame, mapper: Mapper, schema: str | StructType) -> DataFrame:
    """``mapInArrow`` for columns of any name; Spark's own takes a dot or a backtick for syntax."""
    names = rows.columns

    def named(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return mapper(batch.rename_columns(names) for batch in batches)

    return rows.toDF(*(f"c{number}" for number in range(len(names)))).mapInArrow(named, schema)


def numbered(rows: DataFrame, bucket: Column, order: Sequence[Column], first_offset: int) -> DataFrame:
    """*rows* with ``offset``, ascending by one in the order of *bucket* and then of *order*; lazy, and no task sees all.

    Rows of a bucket are numbered by one task, behind those of the buckets before it, which are counted first. So *rows*
    are evaluated twice, and must come out the same.

    Args:
        rows: without offset.
        bucket: a number; many rows share one.
        order: of rows in a bucket, each place once.
        first_offset: of the first row.
    """
    from pyspark.sql import Window

    placed = rows.withColumn(_BUCKET, F.coalesce(bucket.cast("long"), F.lit(-1)))
    before = Window.orderBy(_BUCKET).rowsBetween(Window.unboundedPreceding, -1)
    counts = placed.groupBy(_BUCKET).count()
    starts = counts.select(_BUCKET, F.coalesce(F.sum("count").over(before), F.lit(0)).alias(_START))
    inside = F.row_number().over(Window.partitionBy(_BUCKET).orderBy(*order))
    offset = (F.col(_START) + inside + F.lit(first_offset - 1)).cast("long").alias("offset")
    found = placed.join(F.broadcast(starts), _BUCKET)
    return found.select(offset, *(at(name) for name in rows.columns))
