"""Files that executors wrote for a merge, as DataFrames."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import reduce
from operator import and_
from typing import TYPE_CHECKING

import pyarrow as pa

from historian.changelog.operations import physical_name
from historian.names import quoted
from sinks.delta.log.columns import DeltaSchema
from sinks.delta.log.commits import DataFile
from sinks.delta.log.pruning import bounds_in

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

__all__ = ["BROADCAST_ROWS", "NetFiles", "same_key", "staged"]

BROADCAST_ROWS = 200_000
"""Up to this many rows every task of a merge gets them all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NetFiles:
    """The net change of a part as files, see :class:`historian.changelog.partial_folding.PartialNet`.

    *fresh_rows*: of the last rows of *whole*, how many have a configured key that no held row may have.
    """

    whole: Sequence[DataFile]
    partial: Sequence[DataFile] = ()
    unseen: Sequence[DataFile] = ()
    gone: Sequence[DataFile] = ()
    fresh_rows: int = 0

    def __bool__(self) -> bool:
        return bool(self.whole or self.partial or self.gone)

    @property
    def files(self) -> Sequence[DataFile]:
        """All of them."""
        return (*self.whole, *self.partial, *self.unseen, *self.gone)

    @property
    def rows(self) -> int:
        """How many rows they have."""
        return sum(file.rows for file in (*self.whole, *self.partial, *self.gone))


def staged(spark: SparkSession, schema: DeltaSchema, files: Sequence[DataFile]) -> DataFrame:
    """The rows of *files*, columns under the names that they have in files."""
    from pyspark.sql.types import StructType

    struct = StructType.fromJson(schema.physical())
    if not files:
        return spark.createDataFrame([], struct)
    return spark.read.schema(struct).parquet(*(file.path for file in files))


def same_key(schema: DeltaSchema, key: Sequence[int], files: Sequence[DataFile]) -> Column:
    """The condition of a MERGE that a target's row ``t`` has the key, columns of those ids, of a row ``s`` of *files*.

    It says between which values all keys are, too: Delta then passes over the target's files that hold none of them.
    """
    from pyspark.sql import functions as F  # noqa: N812 Spark's own custom

    names = {f.column_id: quoted(f.name) for f in schema.fields}
    conditions = [F.col(f"t.{names[i]}").eqNullSafe(F.col(f"s.{physical_name(i)}")) for i in key]
    return reduce(and_, [*conditions, *_ranges(schema, key, files)], F.lit(True))


def _ranges(schema: DeltaSchema, key: Sequence[int], files: Sequence[DataFile]) -> Iterator[Column]:
    from pyspark.sql import functions as F  # noqa: N812 Spark's own custom

    statistics = [json.loads(file.statistics, parse_float=Decimal) for file in files]
    arrow = schema.arrow()
    for field in (f for f in schema.fields if f.column_id in key):
        kind = arrow.field(field.physical).type
        if pa.types.is_timestamp(kind) or pa.types.is_floating(kind):
            continue  # What Spark compares with a literal by way of another type, statistics do not answer.
        bounds = [bounds_in(of_file, field.physical, kind) for of_file in statistics]
        nulls = any(of_file.get("nullCount", {}).get(field.physical, 1) for of_file in statistics)
        found = [bound for bound in bounds if bound is not None]
        if found and len(found) == len(statistics) and not nulls:
            yield F.col(f"t.{quoted(field.name)}").between(min(b[0] for b in found), max(b[1] for b in found))
