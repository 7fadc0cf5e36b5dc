"""The parts of plans that executors read, and how: as chunks of all tables, or as rows of one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.datasource import InputPartition

from connectors.spark.pushdown import Predicate, values_of
from connectors.spark.quiet import plain_errors
from connectors.spark.typed_schemas import ALL_VERSIONS, Versions
from connectors.tracking.ranges import SEQUENCE_BITS
from historian.changelog.chunks import CHUNK_STREAM, NO_TABLE, Chunk, chunk_row
from historian.errors import PositionError
from historian.plans.plans import LogRange, Plan, PlannedRange, PlannedTable
from historian.positions import parse_gtids

if TYPE_CHECKING:
    from connectors.readers.base import CachedLog
    from connectors.spark.options import SourceOptions
    from connectors.spark.typed_tables import TypedTable
    from connectors.tracking.tracker import Tracker

__all__ = ["MARKER_TABLE_ID", "STREAM_SCHEMA", "RangePartition", "partitions_of", "read_partition"]

MARKER_TABLE_ID = 0
"""``table_id`` of the one row by which each plan announces itself, so that a plan of edits alone is seen."""

_MOST_SENT_BYTES = 1 << 20
"""A range of more log is read by its executor."""

_IDS = pa.list_(pa.field("element", pa.int32()))
"""As Spark names what a list holds."""

STREAM_SCHEMA = pa.schema(
    [
        pa.field("plan", pa.int64(), nullable=False),
        *(each.with_type(_IDS) if each.name == "missing" else each for each in CHUNK_STREAM),
    ]
)
"""Rows of the many-table stream: the plan's number, then :data:`historian.changelog.chunks.CHUNK_STREAM`."""


@dataclass
class RangePartition(InputPartition):
    """One range of one plan, with all an executor needs to read it; a short one with its part of the log, too."""

    plan: int
    index: int
    planned: PlannedRange | None
    tables: tuple[PlannedTable, ...]
    log: Sequence[CachedLog] | None = None
    versions: Versions = ALL_VERSIONS


def partitions_of(
    plan: Plan, tracker: Tracker, typed: TypedTable | None, versions: Versions = ALL_VERSIONS
) -> list[RangePartition]:
    """A partition for each of the plan's ranges; of a *typed* table without rows there none.

    Raises:
        TableStopped: an edit in the plan cannot be projected to the typed table's schema.
    """
    tables = plan.tables if typed is None else typed.wanted(plan.tables, versions)
    ranges: tuple[PlannedRange | None, ...] = plan.ranges if tables else ()
    if typed is None and not ranges:
        ranges = (None,)
    return [
        RangePartition(
            plan.number,
            index,
            planned,
            tables,
            None if planned is None else _short(tracker.reader.cached(planned)),
            versions,
        )
        for index, planned in enumerate(ranges)
    ]


def _short(log: Sequence[CachedLog] | None) -> Sequence[CachedLog] | None:
    """*log*, where it costs less to send it along than to read it again."""
    return tuple(log) if log is not None and sum(part.size_bytes for part in log) <= _MOST_SENT_BYTES else None


def read_partition(
    options: SourceOptions,
    partition: InputPartition,
    typed: TypedTable | None,
    predicates: Sequence[Predicate] = (),
) -> Iterator[pa.RecordBatch]:
    """Rows of one range, on an executor."""
    if not isinstance(partition, RangePartition):
        return  # Spark makes one where there are none.
    if partition.index == 0 and typed is None:
        yield _marker(partition.plan)
    if partition.planned is None:
        return
    tables = partition.tables
    wanted = values_of(predicates, "table_id") if typed is None else None
    if wanted is not None:
        tables = tuple(each for each in tables if each.table_id in wanted)
        if not tables:
            return
    with plain_errors(), closing(options.reader()) as reader:
        if typed is not None and not _may_hold(partition.planned, reader.flavor, values_of(predicates, "position")):
            return
        for chunk in reader.read(
            partition.planned,
            tables,
            sequence=partition.index << SEQUENCE_BITS,
            stops=typed is None,
            log=partition.log,
        ):
            if typed is None:
                yield _chunk(partition.plan, chunk)
            elif chunk.table_id != NO_TABLE and partition.versions.hold(chunk.version):
                yield typed.rows(chunk, tables, predicates)


def _may_hold(planned: PlannedRange, flavor: str, positions: frozenset[Any] | None) -> bool:
    """Whether a transaction at one of *positions* may lie in the range; None: at any."""
    if positions is None or not isinstance(planned, LogRange) or not planned.upto:
        return True
    try:
        after, upto = parse_gtids(planned.after, flavor), parse_gtids(planned.upto, flavor)
        return any(upto.contains_gtid(each) and not after.contains_gtid(each) for each in positions)
    except PositionError:
        return True  # a place without a GTID


def _chunk(plan: int, chunk: Chunk) -> pa.RecordBatch:
    row = chunk_row(chunk)
    row = row.set_column(
        row.schema.names.index("missing"), STREAM_SCHEMA.field("missing"), row.column("missing").cast(_IDS)
    )
    return pa.RecordBatch.from_arrays([pa.array([plan], pa.int64()), *row.columns], schema=STREAM_SCHEMA)


def _marker(plan: int) -> pa.RecordBatch:
    values = [plan, MARKER_TABLE_ID, 0, 0, -1, "", "", "", "[]", 0, "", "", "", [], "", b""]
    arrays = [pa.array([value], field.type) for value, field in zip(values, STREAM_SCHEMA, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=STREAM_SCHEMA)
