"""Repairs the tables of a plan: finds what differs, table by table, and gives the plan's parts and chunks with that alone."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from historian.changelog.chunks import Chunk
from historian.changelog.operations import Op, physical_name
from historian.errors import ChainBroken, SinkError, TableStopped
from historian.plans.plans import Plan, PlannedTable
from historian.schema.snapshots import Snapshot
from historian.values.arrow_types import arrow_type
from sinks.contract.chunks import ChunkHead, Chunks
from sinks.contract.local_chunks import LocalChunks
from sinks.contract.parts import Part, Step
from sinks.contract.storage import located
from sinks.delta.lake.repair_records import RepairRecord
from sinks.delta.lake.state import LakeState
from sinks.delta.log.columns import DeltaSchema, delta_type, mapped_field
from sinks.delta.log.commits import DataFile
from sinks.delta.log.target import Target
from sinks.delta.repairs.by_spark import differing_files, rows_in
from sinks.delta.repairs.chunks import RepairedChunks, difference_chunks
from sinks.delta.repairs.compared import ComparedRows
from sinks.delta.repairs.differences import OP, differences
from sinks.delta.repairs.held import as_before, held_frame, held_tables, telling
from sinks.delta.repairs.narrowing import may_differ
from sinks.delta.repairs.ranges import range_of
from sinks.delta.repairs.returning import LeftBehind, brought_back, left_behind
from sinks.delta.repairs.values import rows_of_values
from sinks.delta.rewrite.files import FileWriter
from sinks.delta.rewrite.staged import staged
from sinks.delta.schema.decisions import evolved
from sinks.delta.settings import DeltaSettings
from sinks.rows.variant import is_variant

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["RepairedPlan", "Repairing"]

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class RepairedPlan:
    """A plan's parts and chunks, of repaired tables with what differs alone.

    Attributes:
        records: what the repairs found.
        stopped: ids of tables that cannot be repaired, and are stopped.
    """

    parts: Sequence[Part]
    chunks: Chunks
    records: Sequence[RepairRecord] = ()
    stopped: frozenset[int] = frozenset()


class Repairing:
    """Repairs the tables of one plan. Close it when the plan is written.

    Args:
        state: of the lake, with the plan's locations.
        plan: as the lake sees it.
        stop: is told of tables that cannot be repaired: id, reason, plan.
        brings_back: whether targets that were left behind are brought back first, by a commit of their own.
    """

    def __init__(
        self,
        spark: SparkSession,
        state: LakeState,
        settings: DeltaSettings,
        plan: Plan,
        stop: Callable[[int, str, int], None],
        *,
        brings_back: bool = True,
    ) -> None:
        self._spark = spark
        self._state = state
        self._settings = settings
        self._plan = plan
        self._stop = stop
        self._brings_back = brings_back
        self._found = LocalChunks()

    def repaired(self, parts: Sequence[Part], chunks: Chunks) -> RepairedPlan:
        """The same with what differs in place of the rows that tables are compared with.

        Args:
            parts: of the plan, as they are to be written.
            chunks: of the plan.
        """
        reasons = {table.table_id: table.repairs for table in self._plan.tables if table.repairs}
        mine = {table_id: [p for p in parts if p.location.table_id == table_id] for table_id in reasons}
        records: list[RepairRecord] = []
        stopped: set[int] = set()
        counts: dict[int, Mapping[int, int]] = {}
        for table in self._plan.tables:
            if not mine.get(table.table_id):
                continue
            try:
                repair = _TableRepair(
                    self._spark,
                    self._state,
                    self._settings,
                    self._plan,
                    table,
                    mine[table.table_id],
                    pins=not self._brings_back,
                )
                counts[table.table_id] = {}
                if repair.is_held:
                    continue
                repair.bring_back(writes=self._brings_back)
                found = repair.found(chunks, self._found)
                counts[table.table_id] = found.counts
                records.append(
                    RepairRecord(
                        table_id=table.table_id,
                        table=repair.part.location.name,
                        reason=reasons[table.table_id],
                        rows_read=found.rows_read,
                        operations=found.operations,
                    )
                )
            except (TableStopped, ChainBroken) as error:
                if self._brings_back:  # else it is a comparison, which stops nothing
                    name = mine[table.table_id][0].location.name
                    _log.error("table %s is stopped: %s", name, error, extra={"table": str(name)})
                self._stop(table.table_id, str(error), self._plan.number)
                stopped.add(table.table_id)
        ends = {table_id: of_table[-1].segment for table_id, of_table in mine.items() if of_table}
        own = [
            replace(part, chunks=counts[part.location.table_id] if part.segment == ends[part.location.table_id] else {})
            if part.location.table_id in counts
            else part
            for part in parts
            if part.location.table_id not in stopped
        ]
        return RepairedPlan(
            parts=own,
            chunks=RepairedChunks(chunks, frozenset(mine), self._found) if reasons else chunks,
            records=records,
            stopped=frozenset(stopped),
        )

    def close(self) -> None:
        """Frees what the differences take."""
        self._found.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """What differs: rows of each chunk by its sequence, and of each operation; *rows_read*: with how many rows was compared."""

    counts: Mapping[int, int]
    operations: Mapping[Op, int]
    rows_read: int


class _TableRepair:
    """The repair of one *table* of a plan.

    Args:
        parts: that the plan has of it.
        pins: whether targets are seen as they were before the plan, whatever they have taken since.
    """

    def __init__(
        self,
        spark: SparkSession,
        state: LakeState,
        settings: DeltaSettings,
        plan: Plan,
        table: PlannedTable,
        parts: Sequence[Part],
        *,
        pins: bool,
    ) -> None:
        self._spark = spark
        self._state = state
        self._plan = plan
        self._table = table
        self._settings = settings.for_table(parts[0].location.came_as)
        self._shown = [evolved(part, soft=self._settings.mirror_deletes == "soft") for part in parts]
        self._first = parts[0].transaction(Step.SCHEMA)
        self.part = parts[-1]
        self._targets = [state.target(self.part.location, directory) for directory in self.part.location.directories]
        for target in self._targets:
            target.refresh()
        if pins:
            self._targets = [as_before(target, self._first) or target for target in self._targets]

    @property
    def is_held(self) -> bool:
        """Whether all targets have what differed."""
        return all(target.held >= self.part.transaction(Step.ROWS) for target in self._targets)

    def bring_back(self, *, writes: bool) -> None:
        """Brings back what was left behind; unless it *writes*, it raises LeftBehind where there is some."""
        if writes:
            brought_back(self._spark, self._state, self._settings, self._targets, self._shown[0])
        for target, _ in left_behind(self._state, self._targets, self._shown[0]):
            raise LeftBehind(
                "a target was left behind its changelog, and does not tell the rows of now",
                where=target.path,
                next_step="`historian verify --repair`: the next run brings it back and compares it",
            )

    def found(self, chunks: Chunks, into: LocalChunks) -> _Found:
        """Puts what differs *into* chunks; *chunks*: of the plan."""
        shown = self._shown[-1]
        last = shown.part.last
        if last is None:
            return _Found(counts={}, operations={}, rows_read=0)
        _refuse_variants(last)
        only = self._table.copy is not None and self._table.copy.only
        keys: ComparedRows | None = (rows_of_values if only else range_of)(self._table, self.part.location, last)
        mine = [head for head in chunks.heads if head.table_id == self.part.location.table_id and head.row_count]
        self._check(mine)
        target = self._telling()
        key = [physical_name(column_id) for column_id in last.primary_key]
        few = self._few(target, chunks, last, key, keys)
        if few is not None:
            tables: Iterator[pa.Table] = iter([differences(*few, key)])
        else:
            tables = self._by_spark(target, chunks, last, key, keys)
        operations = np.zeros(len(Op), np.int64)

        def made() -> Iterator[Chunk]:
            nonlocal operations
            for chunk in difference_chunks(tables, self.part, shown, self._plan):
                operations += np.bincount(chunk.rows.column("op").to_numpy(), minlength=len(Op))
                yield chunk

        into.fill([made])
        return _Found(
            counts={h.sequence: h.row_count for h in into.heads if h.table_id == self.part.location.table_id},
            operations={op: int(operations[op]) for op in Op},
            rows_read=sum(head.row_count for head in mine),
        )

    @property
    def _filled(self) -> frozenset[int]:
        return frozenset(column.id for shown in self._shown for column in shown.part.filled)

    def _telling(self) -> Target | None:
        """The target that tells which rows are there when the last part's come; None where none are."""
        first = self._shown[0]
        if first.part.base is None or any(shown.part.clears is not None for shown in self._shown):
            return None
        target = telling(self._targets, first)
        return None if target is None else as_before(target, self._first)

    def _check(self, heads: Sequence[ChunkHead]) -> None:
        version, segment = max(self.part.written), self.part.segment
        if any((head.version, head.segment) != (version, segment) for head in heads):
            raise SinkError(
                "rows of a table that is repaired are not all of its last version",
                where=f"plan {self._plan.number}, {self.part.location.name}",
                expected=f"rows of version {version} in segment {segment}",
                found=sorted({(head.version, head.segment) for head in heads}),
            )

    def _few(
        self, target: Target | None, chunks: Chunks, last: Snapshot, key: Sequence[str], keys: ComparedRows | None
    ) -> tuple[pa.Table, pa.Table] | None:
        """The rows that are there and those of the source, without many that both have; None where they are not few."""
        schema = _schema(last)
        held = tuple if target is None else held_tables(target, last, self._filled, keys)
        if held is None:
            return None
        typed = partial(_typed, self.part.location.table_id, self._labels, schema)
        if keys is not None:
            told = chunks.map(partial(_selected, typed, keys.names))
            keys.check(pa.concat_tables([schema.empty_table().select(keys.names), *told]))
        return may_differ(held, chunks, typed, schema, key)

    def _by_spark(
        self, target: Target | None, chunks: Chunks, last: Snapshot, key: Sequence[str], keys: ComparedRows | None
    ) -> Iterator[pa.Table]:
        """What differs, by way of files that no table knows."""
        fields = tuple(mapped_field(c.name, delta_type(c), c.id, physical_name(c.id)) for c in last.columns)
        directory = self._targets[0].path
        if target is None:
            system, place = located(directory)
            system.create_dir(place)
        files = self._staged(chunks, last, directory)
        rows = staged(self._spark, DeltaSchema(fields), files)
        held = (
            rows.limit(0)
            if target is None
            else held_frame(self._spark, target, self._shown[0].part, last, self._filled)
        )
        if keys is not None:
            keys.check_frame(rows)
            held = keys.of_frame(held)
        schema = pa.schema([pa.field(OP.name, pa.int32()), *_schema(last)])
        differing = differing_files(held, rows, key, directory, schema)
        for table in rows_in(differing):
            yield table.set_column(0, OP, table.column(0).cast(OP.type))
        self._state.kernel.delete_files([file.path for file in (*files, *differing)])

    def _staged(self, chunks: Chunks, last: Snapshot, directory: str) -> list[DataFile]:
        schema = _schema(last)
        typed = partial(_typed, self.part.location.table_id, self._labels, schema)

        def staged_rows(chunks: Iterator[Chunk]) -> Iterable[DataFile]:
            writer = FileWriter(directory, schema)
            for rows in filter(None, map(typed, chunks)):
                writer.write_table(rows)
            return writer.close()

        return chunks.map(staged_rows)

    @property
    def _labels(self) -> Mapping[str, str]:
        return self._shown[-1].labels.get(max(self.part.written), {})


def _schema(last: Snapshot) -> pa.Schema:
    return pa.schema([(physical_name(column.id), arrow_type(column.type)) for column in last.columns])


def _typed(table_id: int, labels: Mapping[str, str], schema: pa.Schema, chunk: Chunk) -> pa.Table | None:
    """The rows of a chunk in *schema*; None where it is of another table."""
    if chunk.table_id != table_id:
        return None
    names = {labels.get(name, name): at for at, name in enumerate(chunk.rows.schema.names)}
    return pa.table([chunk.rows.column(names[field.name]).cast(field.type) for field in schema], schema=schema)


def _selected(
    typed: Callable[[Chunk], pa.Table | None], names: Sequence[str], chunks: Iterator[Chunk]
) -> Iterator[pa.Table]:
    yield from (rows.select(names) for rows in filter(None, map(typed, chunks)))


def _refuse_variants(last: Snapshot) -> None:
    found = [column.name for column in last.columns if is_variant(column.type)]
    if found:
        raise TableStopped(
            "VARIANT values do not compare, and a repair compares rows",
            where=f"{last.name}.{found[0]}",
            expected="types.json: text",
            next_step="say so in the configuration, then replicate the table into another lake",
        )
