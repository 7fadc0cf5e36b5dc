"""Values of the core as Spark literals."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from historian.schema.snapshots import Column
from historian.values.texts import initial_scalar
from sinks.rows.variant import is_variant

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn

__all__ = ["initial_literal"]


def initial_literal(column: Column) -> SparkColumn:
    """What rows from before *column* was added read in it, as a Spark literal of its type."""
    from pyspark.sql import functions as F  # noqa: N812 Spark's own custom
    from pyspark.sql.pandas.types import from_arrow_type

    value = initial_scalar(column)
    kind = value.type
    if is_variant(column.type):
        return F.parse_json(F.lit(value.as_py()).cast("string"))
    if pa.types.is_timestamp(kind) and value.is_valid:
        # A Python datetime would pass by the session's time zone, and so would one kind of timestamp cast to the other.
        return F.timestamp_micros(F.lit(value.value)) if kind.tz else F.lit(str(value.as_py())).cast("timestamp_ntz")
    return F.lit(value.as_py()).cast(from_arrow_type(kind, prefer_timestamp_ntz=True))
