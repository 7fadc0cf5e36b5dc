"""Numbers that a connector's store tells: stopped tables, copies, schema versions. They are read when they are asked for."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from connectors.config import PipelineConfig
from connectors.monitoring.copies import copies_left_s, copies_reading
from connectors.monitoring.looking import HeldStore
from connectors.monitoring.metrics import OTHER_TABLES
from connectors.monitoring.retention import KeptLog
from connectors.tracking.recorded import stopped_tables
from historian.errors import HistorianError
from historian.store import Store

__all__ = ["StoreMetrics"]

_MAX_AGE_S = 5.0


class StoreMetrics(Collector):
    """What the store holds, at most :data:`_MAX_AGE_S` old. Without a store there is nothing to tell.

    Args:
        tables: how many tables at most have series of their own.
        kept_s: for how long the source keeps its log; by default as it says itself.
        store: of *config*, where others look at it too.
    """

    def __init__(
        self,
        config: PipelineConfig,
        *,
        tables: int,
        kept_s: Callable[[], float | None] | None = None,
        store: HeldStore | None = None,
        clock_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._config = config
        self._kept_s = KeptLog.of(config) if kept_s is None else kept_s
        self._store = HeldStore(config) if store is None else store
        self._tables = tables
        self._clock_s = clock_s
        self._lock = threading.Lock()
        self._read_s: float | None = None
        self._found: tuple[Metric, ...] = ()

    def describe(self) -> Iterable[Metric]:
        """Nothing: the names are asked for without a look at the store."""
        return ()

    def collect(self) -> Iterable[Metric]:
        """The families, read anew where the last look is too long ago."""
        with self._lock:
            if self._read_s is None or self._clock_s() - self._read_s > _MAX_AGE_S:
                self._found = tuple(self._read())
                self._read_s = self._clock_s()
            return self._found

    def _read(self) -> Iterable[Metric]:
        reachable = GaugeMetricFamily("historian_store_up", "1 where the history's store could be read.")
        found: list[Metric] = []
        try:
            with self._store.looked_at() as store:
                if store is not None:
                    found = [self._stopped(store), *self._copies(store), _versions(store), _messages(store)]
            reachable.add_metric([], 1)
        except HistorianError:
            reachable.add_metric([], 0)
        return [reachable, self._kept(), *found]

    def _kept(self) -> Metric:
        family = GaugeMetricFamily("historian_log_kept_seconds", "For how long the source keeps its log.")
        kept_s = self._kept_s()
        if kept_s is not None:
            family.add_metric([], kept_s)
        return family

    def _stopped(self, store: Store) -> Metric:
        family = GaugeMetricFamily(
            "historian_table_stopped", "1 for each captured table that stopped.", labels=["table"]
        )
        names = sorted({str(each.table) for each in stopped_tables(store) if self._config.source.tables(each.table)})
        for name in names[: self._tables]:
            family.add_metric([name], 1)
        if len(names) > self._tables:
            family.add_metric([OTHER_TABLES], len(names) - self._tables)
        return family

    def _copies(self, store: Store) -> Iterable[Metric]:
        going = store.open_copies()
        shown = sorted(going.items())[: self._tables]
        names = store.table_names(table_id for table_id, _ in shown)
        count = GaugeMetricFamily("historian_copies", "Tables that are not copied whole, or are being repaired.")
        count.add_metric([], len(going))
        rows = GaugeMetricFamily("historian_copy_rows", "Rows that a copy under way has so far.", labels=["table"])
        of = GaugeMetricFamily("historian_copy_estimated_rows", "Rows that it has in the end, about.", labels=["table"])
        speed = GaugeMetricFamily("historian_copy_rows_per_second", "How fast it is so far.", labels=["table"])
        size = GaugeMetricFamily("historian_copy_bytes", "Bytes of those rows in memory.", labels=["table"])
        of_size = GaugeMetricFamily("historian_copy_estimated_bytes", "Bytes in the end, about.", labels=["table"])
        bytes_per_s = GaugeMetricFamily("historian_copy_bytes_per_second", "How fast they come.", labels=["table"])
        left = GaugeMetricFamily("historian_copy_left_seconds", "In how long it ends, about.", labels=["table"])
        for table_id, copy in shown:
            name = str(names.get(table_id, f"table {table_id}"))
            rows.add_metric([name], copy.rows)
            if copy.estimate:
                of.add_metric([name], copy.estimate)
            if copy.rows_per_s:
                speed.add_metric([name], copy.rows_per_s)
            if copy.size_bytes is not None:
                size.add_metric([name], copy.size_bytes)
            if copy.estimated_bytes is not None:
                of_size.add_metric([name], copy.estimated_bytes)
            if copy.bytes_per_s:
                bytes_per_s.add_metric([name], copy.bytes_per_s)
            if copy.left_s is not None:
                left.add_metric([name], copy.left_s)
        together = GaugeMetricFamily(
            "historian_copies_left_seconds", "In how long all copies end, at the rate of all, about."
        )
        all_s = copies_left_s(store)
        if all_s is not None:
            together.add_metric([], all_s)
        return count, together, rows, of, speed, left, size, of_size, bytes_per_s, *self._chunks(store)

    def _chunks(self, store: Store) -> Iterable[Metric]:
        """Of what SELECTs read just now; a chunk's label is its number among those of the plan, and so bounded by the connections."""
        rows = GaugeMetricFamily(
            "historian_copy_chunk_rows", "Rows that a SELECT under way gave so far.", labels=["table", "chunk"]
        )
        size = GaugeMetricFamily(
            "historian_copy_chunk_bytes", "Bytes of those rows in memory.", labels=["table", "chunk"]
        )
        reading = copies_reading(store, self._config.name)
        for number, chunk in enumerate(() if reading is None else reading["chunks"][: self._tables]):
            rows.add_metric([chunk["table"], str(number)], chunk["rows"])
            size.add_metric([chunk["table"], str(number)], chunk["bytes"])
        return rows, size


def _versions(store: Store) -> Metric:
    family = GaugeMetricFamily("historian_schema_versions", "Entries of the schema history.")
    family.add_metric([], store.last_number())
    return family


def _messages(store: Store) -> Metric:
    family = CounterMetricFamily(
        "historian_messages", "Messages of topics that came again, may have done so, or came late.", labels=["what"]
    )
    for what, count in store.message_counts().items():
        family.add_metric([what], count)
    return family
