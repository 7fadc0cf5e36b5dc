"""Rows that a TRUNCATE or DROP takes back: a -R for each that the mirror holds, or that the changelog folds to.

In a history each row that is open ends; both go by key, so that they count the same offsets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa

from historian.changelog.missing_columns import ABSENT, WHOLE_IMAGES
from historian.changelog.operations import POSITION_COLUMNS, Op, physical_name
from historian.errors import TableStopped
from historian.plans.plans import PlannedVersion
from historian.schema.snapshots import Snapshot
from sinks.contract.decisions import Decisions
from sinks.contract.late_java import made
from sinks.contract.parts import Part
from sinks.delta import faults
from sinks.delta.log.columns import DeltaSchema
from sinks.delta.log.commits import DataFile
from sinks.delta.log.target import Target
from sinks.delta.rewrite.few_rows import few_rows
from sinks.delta.rewrite.files import FILES, FileWriter, file_rows, files_of
from sinks.delta.rewrite.spark_rows import columns_by_id, known_version, present_rows
from sinks.delta.targets.changelog import ChangelogPart
from sinks.delta.targets.literals import initial_literal
from sinks.rows.shapes import in_schema
from sinks.rows.variant import fitted, is_variant

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["folded", "write_ends", "write_retractions"]


def write_retractions(
    spark: SparkSession, work: ChangelogPart, mirror: Target | None, system_time_us: int
) -> list[DataFile]:
    """Writes the changelog files of the rows that the part's statement takes back, ordered by key; none were there: [].

    Their schema version is the one in force before the statement, their time the statement's.
    """
    part, statement = work.part, work.part.clears
    if statement is None or part.base is None:
        return []
    order = part.base.primary_key or tuple(column.id for column in part.base.columns)
    shape = _Shape(
        directory=work.target.path,
        schema=work.schema.arrow(),
        number="offset",
        first_number=work.first_offset,
        constants={
            "op": pa.scalar(int(Op.RETRACT), pa.int32()),
            "system_time": pa.scalar(system_time_us, _UTC_US),
            "event_time": pa.scalar(statement.event_time_us, _UTC_US),
            "schema_version": pa.scalar(part.base_version, pa.int64()),
            **_place_of(statement, work.schema),
        },
    )
    if mirror is not None and mirror.exists:
        ids = _ids(part.base, part.set_aside, mirror.view.schema())
        few = few_rows(mirror, ids, order, part.cleared)
        if few is not None:
            return _written_here(few, shape)
        rows = present_rows(spark, mirror, ids)
    else:
        rows = folded(spark, work, part.base)
    return _written(_of_shard(rows, part), order, shape)


def _place_of(statement: PlannedVersion, schema: DeltaSchema) -> dict[str, pa.Scalar]:
    """What the columns of positions among those of *schema* say of the statement's rows."""
    place = statement.place
    assert place is not None  # noqa: S101 a statement of the plan
    position_values = {
        "position": pa.scalar(str(place), pa.string()),
        "ordinal": pa.scalar(place.ordinal, pa.int32()),
        "transaction": pa.scalar(place.gtid or None, pa.string()),
    }
    names = {f.physical for f in schema.fields}
    return {name: position_values[word] for word, name in POSITION_COLUMNS.items() if name in names}


def write_ends(
    spark: SparkSession, part: Part, history: Target, schema: DeltaSchema, first_offset: int
) -> list[DataFile]:
    """Writes where each open row of a history ends that the part's statement takes back: the files hold keys and ends."""
    statement = part.clears
    if statement is None or part.base is None or history.view.is_empty():
        return []
    shape = _Shape(
        directory=history.path,
        schema=schema.arrow(),
        number="to_offset",
        first_number=first_offset,
        constants={"valid_to": pa.scalar(statement.event_time_us, _UTC_US)},
    )
    key = part.base.primary_key
    few = few_rows(history, key, key, part.cleared)
    if few is not None:
        return _written_here(few, shape)
    return _written(_of_shard(present_rows(spark, history, key), part), key, shape)


_UTC_US = pa.timestamp("us", tz="UTC")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shape:
    """Files of *schema* in *directory*, whose column *number* counts; *constants* are the same in all rows."""

    directory: str
    schema: pa.Schema
    number: str
    first_number: int
    constants: dict[str, pa.Scalar] = field(default_factory=dict)


def _written(rows: DataFrame, order: Sequence[int], shape: _Shape) -> list[DataFile]:
    from pyspark.sql import functions as F  # noqa: N812 Spark's own custom

    kinds = dict(rows.dtypes)
    # VARIANT has no order.
    terms = [F.to_json(name) if kinds[name] == "variant" else F.col(name) for name in map(physical_name, order)]
    ordered = rows.coalesce(1).sortWithinPartitions(*(term.asc_nulls_last() for term in terms))
    files = [row.file for row in files_of(ordered.mapInArrow(_writer(shape), FILES).collect())]
    faults.reached("retractions_written", shape.directory)
    return files


def _written_here(rows: pa.Table, shape: _Shape) -> list[DataFile]:
    files = _files(shape, rows.to_batches())
    faults.reached("retractions_written", shape.directory)
    return files


def _of_shard(rows: DataFrame, part: Part) -> DataFrame:
    """Those of *rows*, under physical names, that the part's statement is about."""
    from pyspark.sql import functions as F  # noqa: N812 Spark's own custom

    for column_id, value in part.cleared:
        rows = rows.where(F.col(physical_name(column_id)) == value)
    return rows


def _ids(base: Snapshot, set_aside: Sequence[int], schema: DeltaSchema) -> list[int]:
    """Ids of the columns that a -R carries: a row of before a column's replacement is that one which has the old values."""
    return [*(column.id for column in base.columns), *(i for i in set_aside if schema.by_id(i) is not None)]


def folded(spark: SparkSession, work: ChangelogPart, base: Snapshot) -> DataFrame:
    """The rows, under physical names, of the folded changelog of *work* before its part; columns added later hold their default in rows from before.

    By key they are right too where the log has changes of rows from before it began. But rows that were written under
    another key can meet in one of the present key.
    """
    from pyspark.sql import functions as F  # noqa: N812 Spark's own custom

    spark = made(spark)
    changelog = work.target
    schema = changelog.view.schema()
    lacks = F.col(ABSENT).isNotNull() if ABSENT in schema.names() else F.lit(False)
    ids = _ids(base, work.part.set_aside, schema)
    columns = columns_by_id(schema, ids)
    rows = known_version(spark, changelog).where(F.col("offset") >= work.live_from)
    rows = rows.select("offset", "op", "schema_version", lacks.alias(ABSENT), *columns)
    for column in base.columns:
        field = schema.by_id(column.id)
        if field is not None and field.since and column.initial is not None:
            name = physical_name(column.id)
            known = F.when(F.col("schema_version") < field.since, initial_literal(column)).otherwise(F.col(name))
            rows = rows.withColumn(name, known)
    names = [physical_name(column_id) for column_id in ids]
    if base.primary_key and work.keys == {base.primary_key}:
        last = F.max_by(F.struct("op", ABSENT, *names), "offset").alias("last")
        folded = rows.groupBy(*map(physical_name, base.primary_key)).agg(last).select("last.*")
        live = folded.where(~F.col("op").isin(int(Op.RETRACT), int(Op.CORRECT_FROM)))
        _refuse_absent(live, schema, base)
        return live.select(*names)
    _refuse_absent(rows, schema, base)
    _refuse_rewritten(work.part, base)
    # As text a float keeps the sign of its zero, which a grouping would lose.
    floats = {f.physical: f.type for f in schema.fields if f.physical in names and f.type in ("float", "double")}
    rows = rows.withColumns({name: F.col(name).cast("string") for name in floats})
    sign = F.when(F.col("op").isin(int(Op.APPEND), int(Op.CORRECT_TO)), 1).otherwise(-1)
    # VARIANT does not group; rows of the same JSON value are the same.
    variants = [physical_name(column.id) for column in base.columns if is_variant(column.type)]
    same = [F.to_json(name).alias(f"{name} json") if name in variants else F.col(name) for name in names]
    values = [F.any_value(name).alias(name) for name in variants]
    counted = rows.groupBy(*same).agg(F.sum(sign).alias("count"), *values).where("count > 0")
    repeated = counted.withColumn("count", F.explode(F.sequence(F.lit(1), F.col("count").cast("int"))))
    return repeated.withColumns({name: F.col(name).cast(kind) for name, kind in floats.items()}).select(*names)


def _refuse_absent(rows: DataFrame, schema: DeltaSchema, base: Snapshot) -> None:
    if ABSENT in schema.names() and not rows.where(ABSENT).isEmpty():
        raise TableStopped(
            "a statement takes back rows that the changelog does not tell whole: columns of theirs are absent",
            where=str(base.name),
            expected=f"a mirror, or {WHOLE_IMAGES}",
            next_step="replicate the table into another lake, from the start and with a mirror",
        )


def _refuse_rewritten(part: Part, base: Snapshot) -> None:
    """A row that was written before a column was replaced is not found again by its values.

    Without a key all rows are written anew by the repair that comes with a column in the place of another one.
    """
    unknown = ("new_column", "repair") if base.primary_key else ("new_column",)
    made = Decisions.parse(part.location.evolved).made
    if any(d.action in unknown and (d.edit == "add_column" or d.version <= part.base_version) for d in made):
        raise TableStopped(
            "a statement takes back rows of which the server changed values that the log does not tell",
            where=str(base.name),
            expected="a mirror, or a primary key that has not changed",
            next_step="replicate the table into another lake, from the start and with a mirror",
        )


def _writer(shape: _Shape) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def write(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from file_rows((0, 0), "changelog", _files(shape, batches))

    return write


def _files(shape: _Shape, batches: Iterable[pa.RecordBatch]) -> list[DataFile]:
    writer = FileWriter(shape.directory, shape.schema)
    number = shape.first_number
    for batch in batches:
        count = batch.num_rows
        system = {name: pa.repeat(value, count) for name, value in shape.constants.items()}
        system[shape.number] = pa.array(range(number, number + count), pa.int64())
        data = {name: fitted(batch.column(name), shape.schema.field(name).type) for name in batch.schema.names}
        writer.write(in_schema({**system, **data}, shape.schema, count))
        number += count
    return writer.close()
