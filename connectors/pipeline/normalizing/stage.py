"""Normalisation as a stage between reader and sinks: rows are made whole before any sink sees them, and states go on behind all sinks."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import astuple, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from connectors.config import KafkaSource, PipelineConfig
from connectors.monitoring.normalization import NormalizationNote
from connectors.sink_kinds import lakes
from historian.changelog.chunks import Chunk
from historian.changelog.operations import CHUNK_COLUMNS
from historian.errors import ConfigError, HistorianError, TableStopped, ValueUnrepresentable
from historian.normalizing.changes import normalized
from historian.normalizing.counts import NormalCounts
from historian.normalizing.states import KeyedStates
from historian.plans.plans import Plan, PlannedTable
from historian.store import Store
from sinks.contract.chunks import Chunks
from sinks.contract.local_chunks import LocalChunks

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from connectors.config import TableFilter

__all__ = ["Normalizer", "normalizer_of"]

_STREAM = "normalize"
"""Under this name the store notes the last plan that the states hold."""
_DIRECTORY = "historian_state"
_ANOTHER = "take source.normalize back to what it was, or start another connector with a store and targets of its own"
_log = logging.getLogger(__name__)


def normalizer_of(config: PipelineConfig, spark: SparkSession, store: Store, connector: str) -> Normalizer | None:
    """The stage that the configuration asks for; None where it asks for none.

    Raises:
        ConfigError: there is no place for the states.
    """
    source = config.source
    if not isinstance(source, KafkaSource) or source.normalize is None:
        _end_normalization(store)
        return None
    from sinks.delta.keyed.states import DeltaKeyedStates

    wanted = source.normalize
    return Normalizer(DeltaKeyedStates(spark, _root(config, source), connector, wanted.patterns), wanted, store)


class Normalizer:
    """Makes rows of plans whole, one plan after the other."""

    def __init__(self, states: KeyedStates, wanted: TableFilter, store: Store) -> None:
        self._states, self._wanted, self._store = states, wanted, store
        self._kept: set[int] | None = None
        self._named: set[int] = set()

    def held(self, sinks: int) -> int:
        """The last plan that the states hold, where all sinks hold plan *sinks*; with the next one a run begins.

        Before the first one it is noted that the connector begins with normalisation, and of which tables.

        Raises:
            HistorianError: plans were written while there was no state, or one of other tables, so that it lacks their rows.
        """
        held, note = self._store.progress(_STREAM), NormalizationNote.of(self._store)
        patterns = tuple(self._wanted.patterns)
        if note.patterns is not None:
            self._check_patterns(note.patterns, max(held, sinks))
            return held
        if not held and sinks:
            if self._states.is_vacant():
                raise HistorianError(
                    "source.normalize is only of a connector that begins with it",
                    where=f"plan {sinks}, which targets hold",
                    expected="a state with the rows of all plans",
                    found="none",
                    next_step=_ANOTHER,
                )
            held = sinks - 1  # A store that was rebuilt does not know; a state that holds a plan passes it over.
            kept = [table_id for table_id in self._store.history().table_ids if self._states.has(table_id)]
            for began_with in filter(None, map(self._states.began_with, kept)):
                self._check_patterns(began_with, sinks)
            note = replace(note, tables={table_id: NormalCounts() for table_id in kept})
        self._store.note_progress(_STREAM, held)
        self._store.note_normalization(replace(note, patterns=patterns).text())
        return held

    def _check_patterns(self, began_with: tuple[str, ...], plan: int) -> None:
        patterns = tuple(self._wanted.patterns)
        if began_with != patterns:
            raise HistorianError(
                "source.normalize is another one than the connector began with",
                where=f"plan {plan}",
                expected=", ".join(began_with) or "none, as it was taken back",
                found=", ".join(patterns),
                next_step=_ANOTHER,
            )

    @contextmanager
    def normalized(self, plan: Plan, chunks: Chunks) -> Iterator[tuple[Chunks, Mapping[int, NormalCounts]]]:
        """The chunks of *plan* with whole rows, and what was met in each table, by its id."""
        assert isinstance(chunks, LocalChunks)  # noqa: S101 the driver decodes what is normalised
        counts = dict[int, NormalCounts]()
        stopped = {head.table_id for head in chunks.heads if head.stopped}

        def whole(table: PlannedTable) -> tuple[Chunk, ...]:
            if table.table_id in stopped:
                # What came before the stop is read again with what comes behind it, and is made whole then.
                return tuple(chunk for chunk in chunks.of_table(table.table_id) if chunk.stopped)
            self._check_kept(table)
            before = plan.number if table.behind is None else table.behind + 1
            state = self._states.at(before, table.table_id, table.versions[-1].snapshot)
            try:
                self._check_names(table)
                made, counts[table.table_id] = normalized(table, chunks.of_table(table.table_id), state)
            except (TableStopped, ValueUnrepresentable) as error:
                self._states.forget(table.table_id)
                made = (_stop(table, chunks, str(error)),)
            return made

        wanted = {table.table_id: partial(whole, table) for table in plan.tables if self._is_wanted(table)}
        with closing(chunks.with_tables(wanted)) as others:
            yield others, counts

    def written(self, plan: Plan, counts: Mapping[int, NormalCounts]) -> None:
        """All sinks hold *plan*, in which *counts* were met: the states go on to it. Retryable."""
        self._states.commit(plan.number)
        kept = self._tables_kept()
        is_anew = any(table.behind == 0 for table in plan.tables)
        if is_anew or any(table_id not in kept or any(astuple(each)) for table_id, each in counts.items()):
            kept.update(counts)
            noted = NormalizationNote.of(self._store)
            if noted.plan < plan.number:
                self._store.note_normalization(noted.behind(plan, counts).text())
        self._store.note_progress(_STREAM, plan.number)

    def _tables_kept(self) -> set[int]:
        """Tables that have a state, as the store knows it."""
        if self._kept is None:
            self._kept = set(NormalizationNote.of(self._store).tables)
        return self._kept

    def _check_kept(self, table: PlannedTable) -> None:
        if table.table_id in self._tables_kept() and not self._states.has(table.table_id):
            raise HistorianError(
                "a state of source.normalize is gone",
                where=f"table {table.table_id}, below source.state",
                expected="the last row of each key that the table had",
                found="nothing",
                next_step=f"bring it back from a copy of that time, or: {_ANOTHER}",
            )

    def _check_names(self, table: PlannedTable) -> None:
        names = [version.snapshot.name for version in table.versions if version.snapshot is not None]
        if table.table_id not in self._named:
            # A table that stopped as it was renamed goes on with another name alone once it is healed.
            before = (
                each
                for each in self._store.history().versions_of(table.table_id)
                if each.number <= table.versions[-1].version
            )
            names = [*(each.snapshot.name for each in before if each.snapshot is not None), *names]
        other = next((name for name in names if not self._wanted(name)), None)
        if other is not None:
            raise TableStopped(
                "the table is renamed into or out of source.normalize, and its state lacks rows",
                where=f"{names[0]}, now {names[-1]}",
                expected="a name that the patterns match",
                found=str(other),
                next_step="start another connector whose patterns match both names, or none of them",
            )
        self._named.add(table.table_id)

    def _is_wanted(self, table: PlannedTable) -> bool:
        return any(version.snapshot is not None and self._wanted(version.snapshot.name) for version in table.versions)


def _end_normalization(store: Store) -> None:
    """What a connector noted that is normalised no more keeps no plan; the states that it leaves lack rows from here on."""
    note = NormalizationNote.of(store)
    if note.patterns:
        store.note_normalization(replace(note, patterns=()).text())
    if note.patterns is not None:
        store.forget_progress(_STREAM)


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
