"""A run's numbers, as Prometheus asks for them.

Names and units follow https://prometheus.io/docs/practices/naming/. Counters begin at zero with each process.
"""

from __future__ import annotations

import time
from collections import Counter as Counts
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from importlib.metadata import version

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from connectors.monitoring.observer import Observer, WrittenPlan
from historian.plans.plans import PlannedTable

__all__ = ["OTHER_TABLES", "Metrics", "RunNumbers"]

OTHER_TABLES = "_other"
"""The label of tables beyond those that have series of their own."""

_SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunNumbers:
    """What a run's metrics say at one moment.

    Attributes:
        plans: that all sinks hold, of this process; ``plan``: the last one's number, 0: none.
        lag_s, lag_bytes: how old the sinks are, and how much log waits.
        log_bytes, copied_rows, copied_bytes: that plans have read.
        rows: changelog rows by table.
        is_open: the run holds its lease; ``is_retrying``: its last attempt failed.
    """

    plans: int = 0
    plan: int = 0
    lag_s: float = 0.0
    lag_bytes: int = 0
    log_bytes: int = 0
    copied_rows: int = 0
    copied_bytes: int = 0
    rows: Mapping[str, int] = field(default_factory=dict)
    is_open: bool = False
    is_retrying: bool = False


class Metrics(Observer):
    """Takes notes of a run in metrics of a registry of its own.

    Args:
        connector: its name; ``source``: where its log is.
        sinks: the kind of each.
        tables: how many tables at most have series of their own: those of the first rows.
        clock_s: seconds of UTC's epoch.

    Attributes:
        registry: to be collected, from any thread.
    """

    def __init__(
        self,
        connector: str,
        source: str,
        sinks: tuple[str, ...],
        *,
        tables: int,
        clock_s: Callable[[], float] = time.time,
    ) -> None:
        self.registry = registry = CollectorRegistry()
        self._clock_s = clock_s
        self._tables: set[str] = set()
        self._table_limit = tables
        self._sinks = [f"{at}:{kind}" for at, kind in enumerate(sinks)]
        self._event_time_s = 0.0
        self._behind_since_s = 0.0
        self._is_behind = False

        def gauge(name: str, what: str, *labels: str) -> Gauge:
            return Gauge(f"historian_{name}", what, labels, registry=registry)

        def counter(name: str, what: str, *labels: str) -> Counter:
            return Counter(f"historian_{name}", what, labels, registry=registry)

        def histogram(name: str, what: str, *labels: str) -> Histogram:
            return Histogram(f"historian_{name}", what, labels, registry=registry, buckets=_SECONDS)

        info = gauge("connector_info", "The connector and its release; always 1.", "connector", "source", "version")
        info.labels(connector, source, version("pyspark-historian")).set(1)
        self._is_open = gauge("lease_held", "1 while the run holds its connector's lease and its targets.")
        self._plans = counter("plans", "Plans that all sinks hold.")
        self._plan_number = gauge("last_plan_number", "Number of the last plan that all sinks hold.")
        self._plan_time = gauge("last_plan_timestamp_seconds", "When that plan was made.")
        self._event_time = gauge("last_event_timestamp_seconds", "Time of the last transaction that all sinks hold.")
        lag = gauge("lag_seconds", "How long ago that was; 0 where the sinks hold the whole log.")
        lag.set_function(self.lag_s)
        self._lag_bytes = gauge("lag_bytes", "Log that waits for its plan, as far as the source tells.")
        self._log_bytes = counter("log_bytes", "Log that plans read.")
        self._rows = counter("rows", "Changelog rows.", "table", "operation")
        self._copied = counter("copied_rows", "Rows that were read from the source's tables.", "table")
        self._copied_bytes = counter("copied_bytes", "Bytes of those rows in memory, as Arrow.", "table")
        self._repairs = counter("repairs", "Repairs that came to their end.", "table")
        self._nulled = counter("nulled_values", "Values that became NULL since they cannot be represented.")
        self._dead_letters = counter("dead_letters", "Values that are kept in historian_dead_letters.")
        self._normal = counter(
            "normalized", "Changes that came again or out of order, as normalisation met them.", "table", "what"
        )
        self._schema_changes = counter("schema_changes", "Schema versions of captured tables.", "table")
        self._decoded = histogram("decode_seconds", "Time until a plan's log was decoded.")
        self._written = histogram("write_seconds", "Time that a sink took for a plan, its commits among it.", "sink")
        self._committed = histogram(
            "commit_seconds", "Time of one commit to a target, or to what a sink records.", "sink"
        )
        self._failures = counter("failed_attempts", "Attempts that failed and were made again.")
        self._is_retrying = gauge("retrying", "1 from a failed attempt to the next plan or look at the log.")
        self._stopped = gauge("sink_stopped_tables", "Tables that sinks have stopped.")
        self._deferred = gauge("deferred_tables", "Tables whose mirrors apply rows later than their changelogs.")

    def numbers(self, before: RunNumbers | None = None) -> RunNumbers:
        """What the registry would tell now, for those who show it to people; from any thread. Cheap where no plan came since *before*."""
        plans = _value(self._plans)
        if before is not None and before.plans == plans:
            rows = before.rows
        else:
            rows = counted = Counts[str]()
            for labels, count in _samples(self._rows):
                counted[labels["table"]] += count
        return RunNumbers(
            plans=plans,
            plan=_value(self._plan_number),
            lag_s=self.lag_s(),
            lag_bytes=_value(self._lag_bytes),
            log_bytes=_value(self._log_bytes),
            copied_rows=_value(self._copied),
            copied_bytes=_value(self._copied_bytes),
            rows=rows,
            is_open=bool(_value(self._is_open)),
            is_retrying=bool(_value(self._is_retrying)),
        )

    def lag_s(self) -> float:
        """How long ago the last transaction was that all sinks hold; 0 where the log has no more."""
        since_s = max(self._event_time_s, self._behind_since_s)
        return max(0.0, self._clock_s() - since_s) if self._is_behind and since_s else 0.0

    def opened(self) -> None:
        """As of :class:`Observer`."""
        self._is_open.set(1)

    def closed(self) -> None:
        """As of :class:`Observer`."""
        self._is_open.set(0)

    def failed(self, failure: str) -> None:  # noqa: ARG002 the log tells it
        """As of :class:`Observer`."""
        self._failures.inc()
        self._is_retrying.set(1)
        if not self._is_behind:
            self._is_behind, self._behind_since_s = True, self._clock_s()

    def waits(self, waiting_bytes: int) -> None:
        """As of :class:`Observer`."""
        self._is_retrying.set(0)
        self._lag_bytes.set(waiting_bytes)
        self._is_behind = waiting_bytes > 0

    def _met(self, written: WrittenPlan, names: Mapping[int, str]) -> None:
        for table_id, met in written.normal.items():
            for what, count in asdict(met).items():
                self._normal.labels(self._label(names.get(table_id, "")), what).inc(count)

    def written(self, written: WrittenPlan) -> None:
        """As of :class:`Observer`."""
        plan = written.plan
        self._is_retrying.set(0)
        self._plan_number.set(plan.number)
        self._plan_time.set(plan.system_time_us / 1e6)
        if written.event_time_us:
            self._event_time_s = written.event_time_us / 1e6
            self._event_time.set(self._event_time_s)
        self._is_behind, self._behind_since_s = True, 0.0
        self._log_bytes.inc(sum(planned.size_bytes for planned in plan.ranges))
        self._nulled.inc(sum(written.nulled.values()))
        self._dead_letters.inc(written.dead_letters)
        self._stopped.set(len(written.stopped))
        self._deferred.set(len(written.due_us))
        names = {table.table_id: _name(table) for table in plan.tables}
        self._met(written, names)
        for (table_id, op), count in written.rows.items():
            self._rows.labels(self._label(names.get(table_id, "")), op.name.lower()).inc(count)
        for table in plan.tables:
            name = names.get(table.table_id, "")
            if table.copy is not None and table.copy.rows:
                self._copied.labels(self._label(name)).inc(table.copy.rows)
                self._copied_bytes.labels(self._label(name)).inc(table.copy.size_bytes or 0)
            if table.copy is not None and table.copy.repairs and table.copy.is_done:
                self._repairs.labels(self._label(name)).inc()
            changes = sum(version.place is not None for version in table.versions)
            if changes:
                self._schema_changes.labels(self._label(name)).inc(changes)
        if plan.tables:
            self._decoded.observe(written.decode_s)
            for sink, seconds in zip(self._sinks, written.write_s, strict=False):
                self._written.labels(sink).observe(seconds)
            for sink, commits in zip(self._sinks, written.commit_s, strict=False):
                for seconds in commits:
                    self._committed.labels(sink).observe(seconds)
        self._plans.inc()  # last: who sees it looks at the rest

    def _label(self, table: str) -> str:
        if table not in self._tables:
            if len(self._tables) >= self._table_limit:
                return OTHER_TABLES
            self._tables.add(table)
        return table


def _samples(metric: Counter | Gauge) -> Iterator[tuple[dict[str, str], int]]:
    """Labels and value of each series; a counter's time of creation is none."""
    for family in metric.collect():
        yield from ((s.labels, int(s.value)) for s in family.samples if not s.name.endswith("_created"))


def _value(metric: Counter | Gauge) -> int:
    return sum(value for _, value in _samples(metric))


def _name(table: PlannedTable) -> str:
    """The table's name at the plan's end, or the last one that it had."""
    snapshots = [version.snapshot for version in table.versions if version.snapshot is not None]
    return str(snapshots[-1].name) if snapshots else f"table {table.table_id}"
