"""Files that executors wrote for a merge, as DataFrames."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sinks.delta.kernel import DataFile
from sinks.delta.schema import DeltaSchema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["BROADCAST_ROWS", "NetFiles", "quoted", "staged"]

BROADCAST_ROWS = 200_000
"""Up to this many rows every task of a merge gets them all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NetFiles:
    """The net change of a part as files, see :class:`historian.partial_fold.PartialNet`.

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


def quoted(name: str) -> str:
    """A column's name as it stands in SQL."""
    return "`" + name.replace("`", "``") + "`"
