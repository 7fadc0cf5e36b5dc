"""The composition: one Spark query that carries a log's plans into sinks.

The lease of the connector is held while the query runs. Every step may fail and be run again: plans are stored before
they are handed out, and sinks skip what they hold.
"""

from __future__ import annotations

import json
import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from connectors.check import require
from connectors.config import ConsoleSinkConfig, DeltaSinkConfig, ParquetSinkConfig, PipelineConfig
from connectors.failures import error_behind
from connectors.lakes import check_made_here
from connectors.spark import MARKER_TABLE_ID, HistorianSource
from historian.changelog import column_id
from historian.errors import HistorianError, StoreError
from historian.plans import Plan
from historian.store import Lease, Store
from historian.timeline import TimelineEntry

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from sinks.base import Sink

__all__ = ["Pipeline", "idle_sinks", "make_sinks", "open_store", "run"]

_Report = Callable[[Plan, Mapping[str, str]], None]
_POLL_S = 1


def run(
    config: PipelineConfig,
    *,
    once: bool = False,
    until: str | None = None,
    report: _Report = lambda plan, stopped: None,  # noqa: ARG005 a report that says nothing
    spark: SparkSession | None = None,
) -> Mapping[str, str]:
    """Replicates the log into the configured sinks until stopped, or with *once* or *until* up to a position.

    SIGINT and SIGTERM end it after the running batch, or before the first one.

    Args:
        config: of the pipeline.
        once: stop at what the log holds now.
        until: stop at this position.
        report: is called with each plan that all sinks hold, and the tables that sinks have stopped so far, with reasons.
        spark: session to run in; by default one of its own, stopped at the end.

    Returns:
        The tables that sinks have stopped, in this run or before, and why.

    Raises:
        LeaseHeld: another run of this connector is alive.
        HistorianError: what stopped the query, as the part that failed said it.
    """
    require(config)
    stopping = threading.Event()
    with ExitStack() as stack:
        stack.enter_context(_signals(stopping.set))
        if spark is None:
            spark = _session(config.name)
            stack.callback(spark.stop)
            # A Spark context takes SIGINT for itself.
            stack.enter_context(_signals(stopping.set))
        pipeline = stack.enter_context(Pipeline.opened(config, spark, report))
        pipeline.run(once=once, until=until, stopping=stopping)
        return pipeline.stopped()


def open_store(config: PipelineConfig, sinks: Sequence[Sink]) -> tuple[Store, str]:
    """The store and the connector's identity; a lost store is rebuilt from the first sink that holds one.

    One with an imported history takes the plans from there.
    """
    store = Store.open(config.history.store)
    if store.last_plan() is None:
        recovered = next(filter(None, (sink.recover() for sink in sinks)), None)
        if recovered is not None:
            store.restore(config.name, recovered.connector, recovered.timeline, recovered.plans)
    return store, store.connector(config.name)


@contextmanager
def idle_sinks(config: PipelineConfig, purpose: str) -> Iterator[tuple[Sink, ...]]:
    """The configured sinks, not opened, to be asked what they hold; in a session of their own, named for *purpose*."""
    spark = _session(f"{purpose} {config.name}")
    try:
        yield make_sinks(config, spark)
    finally:
        spark.stop()


def make_sinks(config: PipelineConfig, spark: SparkSession) -> tuple[Sink, ...]:
    """The configured sinks, in order."""
    return tuple(_SINKS[type(settings)](spark, settings) for settings in config.sinks)


def _delta(spark: SparkSession, settings: Any) -> Sink:
    from sinks.delta import DeltaSettings, DeltaSink

    return DeltaSink(spark, DeltaSettings(**asdict(settings)))


def _parquet(spark: SparkSession, settings: Any) -> Sink:
    from sinks.parquet import ParquetSettings, ParquetSink

    return ParquetSink(spark, ParquetSettings(**asdict(settings)))


def _console(spark: SparkSession, settings: Any) -> Sink:
    from sinks.console import ConsoleSink

    return ConsoleSink(spark, settings)


_SINKS: dict[type, Callable[[SparkSession, Any], Sink]] = {
    DeltaSinkConfig: _delta,
    ParquetSinkConfig: _parquet,
    ConsoleSinkConfig: _console,
}


class Pipeline:
    """One connector at work in one Spark session. Make it with :meth:`opened`."""

    def __init__(
        self,
        config: PipelineConfig,
        spark: SparkSession,
        store: Store,
        sinks: Sequence[Sink],
        held: int,
        lease: Lease,
        report: _Report,
    ) -> None:
        self._config = config
        self._spark = spark
        self._store = store
        self._sinks = sinks
        self._held = held
        self._lease = lease
        self._report = report
        self._writing = threading.Lock()
        self._error: HistorianError | None = None

    @classmethod
    @contextmanager
    def opened(cls, config: PipelineConfig, spark: SparkSession, report: _Report) -> Iterator[Pipeline]:
        """A pipeline that holds the connector's lease and its targets."""
        sinks = make_sinks(config, spark)
        store, connector = open_store(config, sinks)
        try:
            with store.lease(config.name) as lease:
                opened = [held for sink in sinks if (held := sink.open(connector)) is not None]
                check_made_here(store, max(opened, default=0))
                held = store.begin_behind(min(opened, default=0))
                yield cls(config, spark, store, sinks, held, lease, report)
        finally:
            store.close()

    def run(self, *, once: bool, until: str | None, stopping: threading.Event) -> None:
        """Runs the query to its end, or until *stopping* is set and no batch is being written. Raises what stopped it."""
        if stopping.is_set():
            return
        query = self._start(once=once or until is not None, until=until)
        try:
            while not query.awaitTermination(_POLL_S):
                if stopping.is_set() and self._writing.acquire(blocking=False):
                    try:
                        query.stop()
                    finally:
                        self._writing.release()
                    return
        except Exception as failure:
            if self._error is not None:
                raise self._error from failure
            raise error_behind(failure) from failure

    def _start(self, *, once: bool, until: str | None) -> StreamingQuery:
        self._spark.dataSource.register(HistorianSource)
        options = {"config": str(self._config.path), "after_plan": str(self._held)}
        if until is not None:
            options["until"] = until
        stream = self._spark.readStream.format("historian").options(**options).load()
        run = self._config.run
        trigger: dict[str, Any] = (
            {"availableNow": True} if once or run.once else {"processingTime": f"{run.trigger_s} seconds"}
        )
        return (
            stream.writeStream.queryName(self._config.name)
            .option("checkpointLocation", self._checkpoint())
            .foreachBatch(self._write)
            .trigger(**trigger)
            .start()
        )

    def _checkpoint(self) -> str:
        """A directory of the store's own: offsets are plan numbers, which mean something only in the store that gave them."""
        return f"{self._config.run.checkpoint}/{self._store.generation()}"

    def _write(self, rows: DataFrame, batch_id: int) -> None:  # noqa: ARG002 Spark's signature; plans have numbers of their own
        with self._writing:
            rows = rows.persist()
            try:
                self._lease.check()
                seen = (
                    rows.where(f"{_IS_MARKER} or zero_dates <> ''").select("plan", "table_id", "zero_dates").collect()
                )
                for number in sorted({row.plan for row in seen if row.table_id == MARKER_TABLE_ID}):
                    self._write_plan(number, rows)
                    self._store.count_zero_dates(number, _zero_dates(row for row in seen if row.plan == number))
            except HistorianError as error:
                self._error = error
                raise
            finally:
                rows.unpersist()

    def _write_plan(self, number: int, rows: DataFrame) -> None:
        plan = self._store.plan(number)
        if plan is None:
            raise StoreError("a plan of the stream is missing from the store", where=f"plan {number}")
        if plan.tables:
            chunks = rows.where(f"plan = {number} and not ({_IS_MARKER})").drop("plan")
            for sink in self._sinks:
                sink.write(plan, self._timeline(plan), chunks)
        self._report(plan, self.stopped())

    def stopped(self) -> Mapping[str, str]:
        """Tables that sinks have stopped, and why."""
        return {table: reason for sink in self._sinks for table, reason in sink.stopped().items()}

    def _timeline(self, plan: Plan) -> Callable[[int], Sequence[TimelineEntry]]:
        return lambda after: tuple(entry for entry in self._store.entries(after) if entry.number <= plan.version)


def _zero_dates(rows: Iterable[Any]) -> dict[tuple[int, int], int]:
    """How many zero dates became NULL, by table id and column id."""
    amounts: dict[tuple[int, int], int] = {}
    for row in rows:
        for name, count in json.loads(row.zero_dates or "{}").items():
            key = (row.table_id, column_id(name))
            amounts[key] = amounts.get(key, 0) + count
    return amounts


_IS_MARKER = f"table_id = {MARKER_TABLE_ID}"


def _session(name: str) -> SparkSession:
    from connectors.jvm import delta_jars
    from sinks.session import spark_session

    return spark_session(name=f"historian {name}", jars=delta_jars())


@contextmanager
def _signals(stop: Callable[[], None]) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, lambda *_: stop()) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
