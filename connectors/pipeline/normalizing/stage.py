"""Normalisation as a stage between reader and sinks: rows are made whole before any sink sees them, and states go on behind all sinks."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import astuple
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from connectors.config import KafkaSource, PipelineConfig
from connectors.monitoring.normalization import NormalizationNote
from connectors.sink_kinds import lakes
from historian.changelog.chunks import Chunk
from historian.changelog.operations import CHUNK_COLUMNS
from historian.errors import ConfigError, HistorianError, TableStopped, ValueUnrepresentable
from historian.normalizing.changes import NormalCounts, normalized
from historian.normalizing.states import KeyedStates
from historian.plans.plans import Plan, PlannedTable
from historian.store import Store
from sinks.contract.chunks import Chunks
from sinks.contract.local_chunks import LocalChunks

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from historian.names import TableName

__all__ = ["Normalizer", "normalizer_of"]

_STREAM = "normalize"
"""Under this name the store notes the last plan that the states hold."""
_DIRECTORY = "historian_state"
_log = logging.getLogger(__name__)


def normalizer_of(config: PipelineConfig, spark: SparkSession, store: Store, connector: str) -> Normalizer | None:
    """The stage that the configuration asks for; None where it asks for none.

    Raises:
        ConfigError: there is no place for the states.
    """
    source = config.source
    if not isinstance(source, KafkaSource) or source.normalize is None:
        return None
    from sinks.delta.keyed.states import DeltaKeyedStates

    return Normalizer(DeltaKeyedStates(spark, _root(config, source), connector), source.normalize, store)


class Normalizer:
    """Makes rows of plans whole, one plan after the other."""

    def __init__(self, states: KeyedStates, wanted: Callable[[TableName], bool], store: Store) -> None:
        self._states, self._wanted, self._store = states, wanted, store

    def held(self, sinks: int) -> int:
        """The last plan that the states hold, where all sinks hold plan *sinks*; with the next one a run begins.

        Raises:
            HistorianError: plans were written before there was a state, so that it lacks their rows.
        """
        noted = self._store.progress(_STREAM)
        if noted or not sinks:
            return noted
        if self._states.is_vacant():
            raise HistorianError(
                "source.normalize is only of a connector that begins with it",
                where=f"plan {sinks}, which targets hold",
                expected="a state with the rows of all plans",
                found="none",
                next_step="take source.normalize back, or start another connector with a store and targets of its own",
            )
        return sinks - 1  # A store that was rebuilt does not know; a state that holds a plan passes it over.

    @contextmanager
    def normalized(self, plan: Plan, chunks: Chunks) -> Iterator[tuple[Chunks, Mapping[int, NormalCounts]]]:
        """The chunks of *plan* with whole rows, and what was met in each table, by its id."""
        assert isinstance(chunks, LocalChunks)  # noqa: S101 the driver decodes what is normalised
        made, counts = dict[int, tuple[Chunk, ...]](), dict[int, NormalCounts]()
        stopped = {head.table_id for head in chunks.heads if head.stopped}
        for table in plan.tables:
            if not self._is_wanted(table) or table.table_id in stopped:
                continue
            before = plan.number if table.behind is None else table.behind + 1
            state = self._states.at(before, table.table_id, table.versions[-1].snapshot)
            try:
                made[table.table_id], counts[table.table_id] = normalized(table, chunks.of_table(table.table_id), state)
            except (TableStopped, ValueUnrepresentable) as error:
                self._states.forget(table.table_id)
                made[table.table_id] = (_stop(table, chunks, str(error)),)
        with closing(chunks.with_tables(made)) as others:
            yield others, counts

    def written(self, plan: Plan, counts: Mapping[int, NormalCounts]) -> None:
        """All sinks hold *plan*, in which *counts* were met: the states go on to it. Retryable."""
        self._states.commit(plan.number)
        if any(any(astuple(each)) for each in counts.values()):
            noted = NormalizationNote.of(self._store)
            if noted.plan < plan.number:
                self._store.note_normalization(noted.behind(plan.number, counts).text())
        self._store.note_progress(_STREAM, plan.number)

    def _is_wanted(self, table: PlannedTable) -> bool:
        return any(version.snapshot is not None and self._wanted(version.snapshot.name) for version in table.versions)


def _stop(table: PlannedTable, chunks: LocalChunks, why: str) -> Chunk:
    first = next(iter(chunks.of_table(table.table_id)), None)
    version = table.versions[-1]
    return Chunk(
        table_id=table.table_id,
        version=version.version,
        segment=version.segment,
        sequence=0 if first is None else first.sequence,
        file="" if first is None else first.file,
        first_position="" if first is None else first.first_position,
        last_position="" if first is None else first.last_position,
        sources=(),
        rows=pa.RecordBatch.from_pylist([], pa.schema(CHUNK_COLUMNS)),
        stopped=why,
    )


def _root(config: PipelineConfig, source: KafkaSource) -> str:
    path = source.state
    if path is None:
        path = next((lake.path for lake in lakes(config.sinks) if lake.path), None)
        path = None if path is None else f"{path}/{_DIRECTORY}"
    if path is None:
        raise ConfigError(
            "source.normalize needs a place for its state",
            problems=("no Delta lake with a path, so say one @ $.source.state",),
        )
    return path if "://" in path else str(Path(path).absolute())
