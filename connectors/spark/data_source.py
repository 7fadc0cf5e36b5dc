"""Spark data source ``format("historian")``: the chunk stream of all captured tables, or one table as typed rows.

Options:
    config: path of the pipeline's YAML. Required.
    table: ``database.table``; typed rows of that table instead of chunks.
    name: of a typed stream; its schema is remembered under it in the store. Required for a typed stream.
    store: URL of the history store instead of the configuration's.
    schema_at: position at which the typed schema is taken; by default the first version in the range.
    from, to: positions a batch read lies between; by default the configured start, and the log's end.
    until: position a stream ends at.
    absent: "true": typed rows have columns ``absent`` and ``unseen``, which name the columns that a row's images lack.
    after_plan: number of the plan a new stream begins behind.

The reader objects travel between processes: what they build is made again in each.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxBytes, SupportsTriggerAvailableNow

from connectors.spark.typed_tables import TypedTable
from connectors.tracking.ranges import SEQUENCE_BITS
from historian.changelog.chunks import CHUNK_STREAM, chunk_row
from historian.errors import ConfigError
from historian.plans.plans import LogRange, Plan, PlannedTable
from historian.positions import LogPosition

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from connectors.readers.base import LogBytes, Reader
    from connectors.tracking.tracker import Tracker

__all__ = ["MARKER_TABLE_ID", "STREAM_SCHEMA", "HistorianSource"]

MARKER_TABLE_ID = 0
"""``table_id`` of the one row by which each plan announces itself, so that a plan of edits alone is seen."""

STREAM_SCHEMA = pa.schema([pa.field("plan", pa.int64(), nullable=False), *CHUNK_STREAM])
"""Rows of the many-table stream: the plan's number, then :data:`historian.changelog.chunks.CHUNK_STREAM`."""

_OFFSET_FORMAT = 1


@dataclass
class _RangePartition(InputPartition):
    """One range of one plan, with all an executor needs to read it; a short one with its part of the log, too."""

    plan: int
    index: int
    planned: LogRange | None
    tables: tuple[PlannedTable, ...]
    log: tuple[LogBytes, ...] | None = None


class HistorianSource(DataSource):
    """Entry point that Spark makes from ``format("historian")``."""

    @classmethod
    def name(cls) -> str:
        """The format's name."""
        return "historian"

    def schema(self) -> StructType:
        """Columns of the chunk stream, or of the typed table."""
        settings = _settings(self.options)
        if settings.table is None:
            return _spark_schema(STREAM_SCHEMA)
        return _spark_schema(settings.typed().schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802, ARG002 Spark's name and signature
        """A reader for ``spark.readStream``."""
        return _StreamReader(_settings(self.options, streaming=True))

    def reader(self, schema: StructType) -> DataSourceReader:  # noqa: ARG002 Spark's signature
        """A reader for ``spark.read``."""
        return _BatchReader(_settings(self.options))


@dataclass(frozen=True, slots=True, kw_only=True)
class _SourceSettings:
    """The source's options, checked."""

    config: str
    table: str | None
    name: str | None
    store: str | None
    schema_at: str | None
    begin: str | None
    end: str | None
    until: str | None
    after_plan: int
    missing: bool

    def reader(self) -> Reader:
        """A reader of the configured log."""
        from connectors.config import load_config
        from connectors.tracking.sources import make_reader

        return make_reader(load_config(self.config).source)

    def tracker(self, *, ephemeral: bool = False) -> Tracker:
        """A tracker on the configured store, or on one in memory for a batch read."""
        from connectors.config import load_config
        from connectors.tracking.first_schema import begins_with_copies
        from connectors.tracking.sources import make_tracker
        from historian.store import Store

        url = self.store if self.store is not None else "sqlite://" if ephemeral else None
        config = load_config(self.config)
        begin = config.source.log_start if self.begin is None else self.begin
        if begins_with_copies(begin):
            raise ConfigError(
                "this source reads the log alone, and copies no rows that tables hold already",
                problems=(
                    f"expected the option from, or changes_only, earliest or a position @ $.source.start (got {begin})",
                ),
                where=str(self.config),
            )
        store = Store.open(config.history.store if url is None else url)
        if any(not progress.is_done for progress in store.copies().values()):
            store.close()
            raise ConfigError(
                "the store is a connector's that copies tables: this source would read their changes before their rows",
                problems=("expected the option store with another one @ $.store",),
                where=str(self.config),
            )
        return make_tracker(config, store=store, start=begin)

    def batch_bytes(self) -> int:
        """How much of the log one plan takes at most."""
        from connectors.config import load_config

        return load_config(self.config).run.max_batch_bytes

    def typed(self) -> TypedTable:
        """The typed table's schema: the remembered one of a named stream, else taken from the log."""
        if self.table is None:
            raise ConfigError("no table is named", where='option "table"')
        with closing(self.tracker(ephemeral=self.name is None)) as tracker:
            return TypedTable.find(
                tracker,
                self.table,
                schema_at=self.schema_at,
                name=self.name,
                limit_bytes=self.batch_bytes(),
                missing=self.missing,
            )


def _settings(options: Mapping[str, str], *, streaming: bool = False) -> _SourceSettings:
    given = {key.lower(): value for key, value in options.items()}
    problems = []
    if not given.get("config"):
        problems.append('missing @ $.config (say .option("config", "pipeline.yaml"))')
    known = ("config", "table", "name", "store", "schema_at", "from", "to", "until", "after_plan", "absent", "path")
    problems += [f"unknown option @ $.{key} (known: {', '.join(known)})" for key in sorted(set(given) - set(known))]
    if streaming and given.get("table") and not given.get("name"):
        problems.append("missing @ $.name (a typed stream remembers its schema under a name)")
    after_plan = given.get("after_plan", "0")
    if not after_plan.isdigit():
        problems.append(f"not a number @ $.after_plan (got {after_plan!r})")
    absent = given.get("absent", "false").lower()
    if absent not in ("true", "false"):
        problems.append(f"neither true nor false @ $.absent (got {absent!r})")
    if problems:
        raise ConfigError('options of format("historian") cannot be used', problems=tuple(problems))
    return _SourceSettings(
        config=given["config"],
        table=given.get("table"),
        name=given.get("name"),
        store=given.get("store"),
        schema_at=given.get("schema_at"),
        begin=given.get("from"),
        end=given.get("to"),
        until=given.get("until"),
        after_plan=int(after_plan),
        missing=absent == "true",
    )


class _StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Offsets are plans: ``{"format", "position", "plan"}``; a plan is stored before its offset is handed out."""

    def __init__(self, settings: _SourceSettings) -> None:
        self._settings = settings
        self._tracker: Tracker | None = None
        self._typed: TypedTable | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {"_settings": self._settings, "_tracker": None, "_typed": self._typed_bytes()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        typed = state["_typed"]
        self._typed = None if typed is None else pickle.loads(typed)  # noqa: S301 made by this class

    def _typed_bytes(self) -> bytes | None:
        if self._settings.table is None:
            return None
        if self._typed is None:
            self._typed = self._settings.typed()
        return pickle.dumps(self._typed)

    @property
    def tracker(self) -> Tracker:
        """The tracker of this process, made when first asked for."""
        if self._tracker is None:
            self._tracker = self._settings.tracker()
        return self._tracker

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 Spark's name
        """The offset a new query begins behind."""
        after = self._settings.after_plan
        return _offset(self.tracker.end_of(after), after)

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 Spark's name
        """How much of the log one plan takes at most: ``run.max_batch_bytes`` of the configuration."""
        return ReadMaxBytes(self._settings.batch_bytes())

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802 Spark's name
        """The offset of the one plan behind *start*; *start* itself where the log holds nothing new."""
        limit_bytes = limit.max_bytes if isinstance(limit, ReadMaxBytes) else None
        plan = self.tracker.plan_after(int(start["plan"]), limit_bytes=limit_bytes, until=self._settings.until)
        return start if plan is None else _offset(plan.end, plan.number)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 Spark's name
        """Fixes the log's present end as the last position of this run."""
        self.tracker.stop_at_present_end()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """The stored plans behind *start* up to *end*, a partition a range."""
        numbers = range(int(start["plan"]) + 1, int(end["plan"]) + 1)
        return [part for number in numbers for part in _partitions(self.tracker.stored(number), self.tracker)]

    def commit(self, end: dict[str, Any]) -> None:
        """Notes that Spark will not ask for plans up to *end* again, and forgets those that nobody can read any more."""
        self.tracker.done_with(self._settings.name or "", int(end["plan"]))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Rows of one range, on an executor."""
        return _read(self._settings, partition, self._typed)


class _BatchReader(DataSourceReader):
    """Everything between two positions. Plans are made in memory and thrown away."""

    def __init__(self, settings: _SourceSettings) -> None:
        self._settings = settings
        self._typed = None if settings.table is None else settings.typed()

    def partitions(self) -> Sequence[InputPartition]:
        """A partition a range, over as many plans as the range takes."""
        with closing(self._settings.tracker(ephemeral=True)) as tracker:
            return [part for plan in tracker.plans_until(self._settings.end) for part in _partitions(plan, tracker)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Rows of one range, on an executor."""
        return _read(self._settings, partition, self._typed)


def _offset(position: LogPosition, plan: int) -> dict[str, Any]:
    return {"format": _OFFSET_FORMAT, "position": str(position), "plan": plan}


def _partitions(plan: Plan, tracker: Tracker) -> list[InputPartition]:
    ranges: tuple[LogRange | None, ...] = plan.ranges if plan.tables else ()
    return [
        _RangePartition(
            plan.number, index, planned, plan.tables, None if planned is None else tracker.reader.cached(planned)
        )
        for index, planned in enumerate(ranges or (None,))
    ]


def _read(settings: _SourceSettings, partition: InputPartition, typed: TypedTable | None) -> Iterator[pa.RecordBatch]:
    if not isinstance(partition, _RangePartition):
        raise TypeError(f"not a partition of this source: {type(partition).__name__}")
    if partition.index == 0 and typed is None:
        yield _marker(partition.plan)
    if partition.planned is None:
        return
    tables = partition.tables if typed is None else typed.wanted(partition.tables)
    with closing(settings.reader()) as reader:
        for chunk in reader.read(
            partition.planned,
            tables,
            sequence=partition.index << SEQUENCE_BITS,
            stops=typed is None,
            log=partition.log,
        ):
            if typed is None:
                row = chunk_row(chunk)
                yield pa.RecordBatch.from_arrays(
                    [pa.array([partition.plan], pa.int64()), *row.columns], schema=STREAM_SCHEMA
                )
            else:
                yield typed.rows(chunk, tables)


def _marker(plan: int) -> pa.RecordBatch:
    values = [plan, MARKER_TABLE_ID, 0, 0, -1, "", "", "", "[]", 0, "", "", False, "", b""]
    arrays = [pa.array([value], field.type) for value, field in zip(values, STREAM_SCHEMA, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=STREAM_SCHEMA)


def _spark_schema(schema: pa.Schema) -> StructType:
    return from_arrow_schema(schema, prefer_timestamp_ntz=True)
