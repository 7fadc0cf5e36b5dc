"""One connector at work: carries a log's plans into sinks, one after the other.

The lease of the connector is held meanwhile. Every step may fail and be run again: plans are stored before they are
handed out, and sinks skip what they hold. So there is no other progress to keep: a pipeline begins behind the last plan
that all sinks hold.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING

from connectors.backfill.copying import Copier
from connectors.backfill.replica import replica_of
from connectors.backfill.selecting import ByThreads, Selects
from connectors.check.rules import check_expressions
from connectors.config import KafkaSource, PipelineConfig, ServerSource
from connectors.monitoring.observer import Observer, WrittenPlan
from connectors.monitoring.targets import TargetNotes
from connectors.pipeline.counting import written_plan
from connectors.pipeline.decoding import PlannedLog, decoded, decoded_ahead, is_local
from connectors.pipeline.failures import error_behind
from connectors.pipeline.idle import idle_plan
from connectors.pipeline.lakes import check_made_here
from connectors.pipeline.normalizing.stage import Normalizer, normalizer_of
from connectors.pipeline.opening import make_sinks, open_store
from connectors.pipeline.pacing import FIRST_BYTES, PlansAhead, Silence, pause, rest
from connectors.pipeline.reloading import Reloads
from connectors.pipeline.selecting import OnExecutors
from connectors.pipeline.signals import Stopping
from connectors.pipeline.source_rows import SourceRows
from connectors.reconfiguration.noted import NotedConfig
from connectors.sink_kinds import compares_ranges, tells_rows
from connectors.spark.executors import check_executors
from connectors.tracking.copier import copies_rows
from connectors.tracking.recorded import STREAM
from connectors.tracking.sources import make_tracker, server_address
from historian.errors import HistorianError
from historian.history.timeline import TimelineEntry
from historian.plans.plans import Plan, has_unread
from historian.positions import LogPosition
from historian.schema.snapshots import Snapshot
from historian.store import Lease, Store
from sinks.late_session import begin_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from connectors.tracking.tracker import Tracker
    from historian.normalizing.counts import NormalCounts
    from sinks.contract.base import Sink
    from sinks.contract.chunks import Chunks

__all__ = ["Pipeline"]

_log = logging.getLogger(__name__)
_POLL_S = 1.0
_LONGEST_WAIT_S, _LONGEST_SLEEP_S = 2.0, 20.0
"""How late at most a wish is heard of, and those who watch hear that the run goes on, where nothing else wakes it up.

Many quiet connectors that wake up more often keep a core busy.
"""
_COPIES_S = 5.0
"""How often the store is asked what people order of copies."""


class Pipeline:
    """One connector at work in one Spark session. Make it with :meth:`opened`."""

    def __init__(
        self,
        config: PipelineConfig,
        spark: SparkSession,
        tracker: Tracker,
        sinks: Sequence[Sink],
        held: int,
        lease: Lease,
        observer: Observer,
        normalizer: Normalizer | None = None,
    ) -> None:
        self._config = config
        self._spark = spark
        self._tracker = tracker
        self._store = tracker.store
        self._sinks = sinks
        self._held = held
        self._lease = lease
        self._observer = observer
        self._normalizer = normalizer
        self._notes = TargetNotes(self._store, sinks)
        self._is_config_noted = False
        self._silence = Silence()
        self._reloads: Reloads | None = None
        self._ahead = self._plans_ahead(None, threading.Event())
        by_ranges = compares_ranges(config.sinks)
        self._rows = SourceRows(config.source, tracker, _stopped_by_sink(sinks), by_ranges=by_ranges)

    @classmethod
    @contextmanager
    def opened(
        cls,
        config: PipelineConfig,
        spark: SparkSession,
        observer: Observer,
        leased: Callable[[Store], AbstractContextManager[Lease]] | None = None,
    ) -> Iterator[Pipeline]:
        """A pipeline that holds the connector's lease, as *leased* gives it of the store, and its targets."""
        sinks = make_sinks(config, spark)
        store, connector = open_store(config, sinks)
        with closing(store), store.lease(config.name) if leased is None else leased(store) as lease:
            if not is_local(spark):  # Behind the lease: where another run has it, that one may have all executors too.
                check_executors(spark)
            opened = [held for sink in sinks if (held := sink.open(connector)) is not None]
            check_made_here(store, max(opened, default=0))
            # Sinks that keep nothing go on where the last run ended.
            held = store.begin_behind(min(opened) if opened else store.progress(STREAM))
            normalizer = normalizer_of(config, spark, store, connector)
            if normalizer is not None:
                held = store.begin_behind(min(held, normalizer.held(held)))
            tracker = make_tracker(config, store=store)
            tracker.reader.keeps_scans = is_local(spark)
            with ExitStack() as stack:
                stack.callback(tracker.close_log)
                tracker.reader.take_over(connector)
                if isinstance(config.source, ServerSource) and copies_rows(config.source, store):
                    source, stopped = config.source, _stopped_by_sink(sinks)
                    replica, limits = replica_of(source), source.backfill
                    tracker.copier = Copier(
                        tracker,
                        server_address(source),
                        limits,
                        replica=replica,
                        stopped=stopped,
                        tells_rows=partial(tells_rows, config.sinks),
                        selects=partial(_selects, spark),
                    )
                observer.opened()
                pipeline = cls(config, spark, tracker, sinks, held, lease, observer, normalizer)
                try:
                    yield pipeline
                finally:
                    pipeline.note_end()
                    observer.closed()

    def run(self, *, once: bool, until: str | None, stopping: threading.Event, reloads: Reloads | None = None) -> None:
        """Carries plans to the sinks up to the end, or until *stopping* is set and no plan is being written.

        Ends between two plans too where *reloads* brings another configuration.
        """
        self._reloads = reloads
        try:
            if not self._held and not stopping.is_set():
                check_expressions(self._config.sinks, self._first_tables(), self._spark)
            with closing(self._plans(once=once, until=until, stopping=stopping)) as plans:
                for planned in plans:
                    self._write(planned)
                    del planned  # which may hold its log in memory
                    self._note_configuration()
            if not (stopping.is_set() or self._is_replaced()):
                self._note_configuration()
            if once:
                self._tracker.confirm_head()
                if self._tracker.copier is not None and self._tracker.copier.waits:
                    _log.warning("some rows are not copied yet; the next run goes on with them")
        except HistorianError:
            raise
        except Exception as failure:
            raise error_behind(failure) from failure
        finally:
            self._ahead.close()

    def _plans(self, *, once: bool, until: str | None, stopping: threading.Event) -> Generator[PlannedLog, None, None]:
        """The plans behind what the sinks hold; between two of them the trigger's time, unless enough waits for one."""
        tracker, settings, number = self._tracker, self._config.run, self._held
        ahead = self._ahead = self._plans_ahead(until, stopping, ends=once or until is not None)
        if once and not stopping.is_set():
            tracker.stop_at_present_end()
        while not (stopping.is_set() or self._is_replaced()):
            begun_s = time.monotonic()
            planned = ahead.plan_after(number)
            if planned is not None:
                plan, is_full = planned.plan, ahead.is_full(planned.plan)
                # A source that is written to all the time has no end of the log to wait for.
                near_end = until is None and not is_full
                with closing(planned):
                    if plan.tables and not near_end:
                        ahead.wanted_behind(plan)
                    yield planned
                del planned  # which may hold its log or its rows in memory
                number = plan.number
                # Sinks hear nothing of a plan without tables, so none of them applies rows with it.
                late = None if plan.tables else self._late_plan(number)
                if late is not None:
                    yield PlannedLog.of(late, tracker.reader)
                    number = late.number
                if not near_end:
                    self._tell_waiting(plan.end)
                if near_end and (repaired := self._repaired(number)) is not None:
                    yield repaired
                    number = repaired.plan.number
                if not (once or until is not None or is_full):
                    pause(begun_s + settings.trigger_s, wait=stopping.wait, is_enough=partial(self._is_enough, plan))
            elif until is None and (repaired := self._repaired(number)) is not None:
                yield repaired
                number = repaired.plan.number
            elif (late := self._late_plan(number, at_end=once or until is not None)) is not None:
                yield PlannedLog.of(late, tracker.reader)
                number = late.number
            elif (once or until is not None) and not self._ends_later(until):
                return
            else:
                end = tracker.end_of(number)
                waiting_bytes = self._tell_waiting(end)
                self._notes.look()
                self._note_configuration()
                self._rest(end, waiting_bytes, stopping)

    def _plans_ahead(self, until: str | None, stopping: threading.Event, *, ends: bool = False) -> PlansAhead:
        """*ends*: at a place that stands now, so that a plan near it takes no more when it is made later."""
        run = self._config.run
        return PlansAhead(
            self._tracker,
            self._lease.check,
            log_of=self._log_of,
            decode=lambda planned, gives_up: decoded_ahead(planned, self._tracker.reader, self._spark, gives_up),
            stopping=stopping,
            limit_bytes=run.max_batch_bytes,
            # Statements of topics that come late are looked for among the rows of one plan.
            first_bytes=run.max_batch_bytes if isinstance(self._config.source, KafkaSource) else FIRST_BYTES,
            enough_bytes=1 if ends else run.batch_bytes,
            until=until,
        )

    def _rest(self, end: LogPosition, waiting_bytes: int, stopping: threading.Event) -> None:
        """Waits until the log may go on behind *end*, the run is wanted, or it is time to ask store and source again.

        Of many quiet connectors in one process each asks seldom; a source that can says at once that its log goes on.
        """
        copier = self._tracker.copier
        is_due = self._tracker.doubts or (copier is not None and copier.waits)
        silent_s = self._silence.look_in_s()
        rest_s = _POLL_S if is_due else silent_s if copier is None else _COPIES_S
        if due := self._due_us():
            rest_s = min(rest_s, (min(time_us for _, time_us in due) - self._tracker.clock_us()) / 1e6)
        wake = stopping if isinstance(stopping, Stopping) else None
        is_woken = wake is not None and not (self._reloads is not None and self._reloads.listens)
        longest_s, http = _LONGEST_SLEEP_S if is_woken else _LONGEST_WAIT_S, self._config.run.http
        if http is not None:  # Who is silent for longer than it lets him is told to be dead.
            longest_s = min(longest_s, http.max_silence_s / 3)

        def wait(for_s: float) -> bool:
            self._observer.waits(waiting_bytes)
            return self._tracker.reader.wait(end, for_s, wake)

        rest(rest_s, longest_s=longest_s, wait=wait, is_wanted=lambda: stopping.is_set() or self._is_wished())

    def _repaired(self, number: int) -> PlannedLog | None:
        """A plan behind plan *number* with which a stopped table is compared with the source, where there is one."""
        plan = self._rows.repaired(number)
        return None if plan is None else self._log_of(plan)

    def _log_of(self, plan: Plan) -> PlannedLog:
        return PlannedLog.of(plan, self._tracker.reader, partial(self._rows.copied, plan))

    def _ends_later(self, until: str | None) -> bool:
        """Whether a run that ends with its copies has some left, which have to wait."""
        copier, start = self._tracker.copier, self._config.source.start
        return until is None and start == "initial_only" and copier is not None and copier.waits

    def _first_tables(self) -> Sequence[Snapshot]:
        """The captured tables with which the connector begins."""
        tracker, history = self._tracker, self._tracker.history
        tables = history.catalog_at(history.first_number).tables
        return [
            tracker.type_options.with_type_options(snapshot, history.versions_of(snapshot.table_id))
            for name, snapshot in sorted(tables.items())
            if tracker.captured(name)
        ]

    def _is_enough(self, plan: Plan) -> bool:
        """Whether as much log stands behind *plan* as a plan is made of before its time, or rows can be copied, or a wish waits."""
        if self._is_wished():
            return True
        copier = self._tracker.copier
        if copier is not None and copier.waits and copier.is_free:
            return True
        return self._tell_waiting(plan.end) >= self._config.run.batch_bytes

    def _is_wished(self) -> bool:
        """Whether the configuration is to be read again."""
        return self._reloads is not None and self._reloads.is_wished

    def _tell_waiting(self, position: LogPosition) -> int:
        """How much log stands behind a position, told to who watches."""
        waiting_bytes = self._tracker.reader.waiting_bytes(position)
        self._observer.waits(waiting_bytes)
        return waiting_bytes

    def _late_plan(self, number: int, *, at_end: bool = False) -> Plan | None:
        """A plan behind that one with which sinks apply what they left to later ones, where it is time, or *at_end*."""
        due = self._due_us()
        if not due or not (at_end or min(time_us for _, time_us in due) <= self._tracker.clock_us()):
            return None
        return idle_plan(self._tracker, number, {table_id for table_id, _ in due})

    def _due_us(self) -> list[tuple[int, int]]:
        """Tables that sinks have put off, and until when; one may stand there for several of them."""
        return [item for sink in self._sinks for item in sink.due_us().items()]

    def _write(self, planned: PlannedLog) -> None:
        plan = planned.plan
        self._silence.broken()
        self._lease.check()
        self._observer.planned(plan)
        written = WrittenPlan(plan=plan, stopped={})
        event_time_us = self._tracker.event_time_us
        if plan.tables or has_unread(plan):
            begun_s = time.monotonic()
            begin_java(self._spark)
            with self._ahead.making(plan.number), self._whole(planned) as (chunks, normal):
                times_s = [time.monotonic()]
                for sink in self._sinks:
                    sink.write(plan, self._timeline(plan), chunks)
                    times_s.append(time.monotonic())
                written = replace(
                    written_plan(plan, chunks.heads),
                    decode_s=planned.decode_s + times_s[0] - begun_s,
                    write_s=tuple(after - before for before, after in pairwise(times_s)),
                    commit_s=tuple(tuple(sink.commit_s()) for sink in self._sinks),
                    normal=normal,
                )
            if written.nulled:
                self._store.count_nulled(plan.number, written.nulled)
        if self._normalizer is not None:
            self._normalizer.written(plan, written.normal)
        self._tracker.done_with(STREAM, plan.number)
        self._notes.written()
        told = replace(written, stopped=self.stopped(), due_us=dict(self._due_us()), event_time_us=event_time_us)
        self._observer.written(told)

    @contextmanager
    def _whole(self, planned: PlannedLog) -> Iterator[tuple[Chunks, Mapping[int, NormalCounts]]]:
        """The chunks of a plan with whole rows, and what their normalisation met."""
        normalizer = self._normalizer
        with decoded(
            planned, self._tracker.reader, self._spark, executors=None if normalizer is None else False
        ) as chunks:
            if normalizer is None:
                yield chunks, {}
            else:
                with normalizer.normalized(planned.plan, chunks) as found:
                    yield found

    def _is_replaced(self) -> bool:
        """Whether another configuration is to take the place of the pipeline's; looks, where that is wished."""
        reloads = self._reloads
        return reloads is not None and (reloads.config is not self._config or reloads.look(self._spark))

    def _note_configuration(self) -> None:
        """Notes in the store what the targets are held with, once it has been seen that they can be."""
        if not self._is_config_noted:
            self._store.note_configuration(NotedConfig.of(self._config).text())
            self._is_config_noted = True
            if self._reloads is not None:
                self._reloads.is_held()

    def note_end(self) -> None:
        """Notes in the store where the targets stand, for those who look while nothing runs."""
        self._notes.look(at_once=True)

    @property
    def store(self) -> Store:
        """The connector's store, open as long as the pipeline is."""
        return self._store

    def position(self) -> str:
        """Up to where the sinks hold the log; "" where they hold nothing."""
        return str(self._tracker.end_of(self._held)) if self._held else ""

    def stopped(self) -> Mapping[str, str]:
        """Tables that sinks have stopped, and why."""
        return {table: reason for sink in self._sinks for table, reason in sink.stopped().items()}

    def _timeline(self, plan: Plan) -> Callable[[int], Sequence[TimelineEntry]]:
        return lambda after: tuple(entry for entry in self._store.entries(after) if entry.number <= plan.version)


def _selects(spark: SparkSession, connections: int) -> Selects:
    return ByThreads(connections) if is_local(spark) else OnExecutors(spark, connections)


def _stopped_by_sink(sinks: Sequence[Sink]) -> Callable[[], Mapping[int, int]]:
    """As :meth:`sinks.contract.base.Sink.repairable`. What one of several sinks has stopped goes on in the others."""
    return sinks[0].repairable if len(sinks) == 1 else dict
