"""A changelog DataFrame projected to the state that it leads to; see :mod:`historian.changelog.state`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 Spark's own custom
from pyspark.sql.pandas.types import to_arrow_schema

from historian.changelog.missing_columns import missing_lists
from historian.changelog.operations import Op, data_columns, position_column
from historian.changelog.state import AddedColumn, state_columns, up_to, without_positions
from historian.positions import LogPosition
from pyspark_historian.columns import Mapper, at, image, in_arrow, refuse

__all__ = ["project_changelog"]


def project_changelog(
    rows: DataFrame,
    key: Sequence[str] = (),
    *,
    until: int | LogPosition | None = None,
    added: Mapping[str, AddedColumn] | None = None,
    order: Sequence[str] = ("offset",),
) -> DataFrame:
    """The state that a changelog leads to: ``event_time``, where it has one, and the data columns, one row a key.

    One shuffle, by key, of rows that are folded before it. A changelog that ends between -C and +C, or lacks columns
    (:mod:`historian.changelog.missing_columns`), stops the query.

    Args:
        rows: the changelog.
        key: names of the key's columns; without them whole rows are counted, and have no ``event_time``.
        until: the offset of the last row that counts; or a position of the source's log, for rows with a column of
            :func:`historian.changelog.operations.position_column`; None: all count.
        added: by name the columns that rows of earlier schema versions do not have.
        order: columns that say which row of a key is the later one.
    """
    if isinstance(until, int):
        rows = rows.where(F.col("offset") <= until)
    elif until is not None:
        rows = _up_to(rows, until)
    for name in missing_lists(to_arrow_schema(rows.schema, timezone="UTC")):
        lacks = refuse("rows lack columns, which only the rows before tell", at(name))
        rows = rows.where(F.when(at(name).isNull(), F.lit(True)).otherwise(lacks)).drop(name)
    for name, column in (added or {}).items():
        initial = F.lit(column.initial).cast(rows.schema[name].dataType)
        known = F.when(F.col("schema_version") < column.since, initial).otherwise(at(name))
        rows = rows.withColumn(name, known)
    return _by_key(rows, key, order) if key else _by_row(rows)


def _by_key(rows: DataFrame, key: Sequence[str], order: Sequence[str]) -> DataFrame:
    names = state_columns(rows.columns)
    last = F.max_by(F.struct(F.col("op").alias("op"), image(names).alias("image")), F.struct(*map(at, order)))
    folded = rows.groupBy(*map(at, key)).agg(last.alias("__last")).select("__last.*")
    op = F.col("op")
    stays = F.when(op.isin(int(Op.APPEND), int(Op.CORRECT_TO)), F.lit(True)).when(op == int(Op.RETRACT), F.lit(False))
    return folded.where(stays.otherwise(refuse("a changelog is cut between -C and +C", op))).select("image.*")


def _by_row(rows: DataFrame) -> DataFrame:
    names = data_columns(rows.columns)
    # As text a float keeps the sign of its zero, which a grouping would lose.
    floats = {n: rows.schema[n].dataType for n in names if rows.schema[n].dataType.typeName() in ("float", "double")}
    texts = rows.withColumns({name: at(name).cast("string") for name in floats})
    sign = F.when(F.col("op").isin(int(Op.APPEND), int(Op.CORRECT_TO)), 1).otherwise(-1)
    counted = texts.groupBy(*map(at, names)).agg(F.sum(sign).alias("__count"))
    count = F.col("__count")
    short = refuse("a changelog takes back more rows than it added", count)
    there = counted.where(F.when(count >= 0, count > 0).otherwise(short))
    repeated = there.withColumn("__count", F.explode(F.sequence(F.lit(1), count.cast("int"))))
    return repeated.select(*(at(n).cast(floats[n]).alias(n) if n in floats else at(n) for n in names))


def _up_to(rows: DataFrame, until: LogPosition) -> DataFrame:
    if position_column(rows.columns) is None:
        raise without_positions(rows.columns)
    return in_arrow(rows, _cut(until), rows.schema)


def _cut(until: LogPosition) -> Mapper:
    def cut(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield from up_to(pa.Table.from_batches([batch]), until).to_batches()

    return cut
