"""The streaming half of the data source: offsets that are plans, and what ends a typed stream when its schema changes."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxBytes, SupportsTriggerAvailableNow

from connectors.spark.finding import next_schema, stream_table
from connectors.spark.partitions import partitions_of, read_partition
from connectors.spark.quiet import plain_errors
from connectors.spark.typed_schemas import Versions, remember, remembered
from historian.errors import HistorianError, TableStopped
from historian.history.prefix import covers
from historian.positions import LogPosition

if TYPE_CHECKING:
    import pyarrow as pa

    from connectors.spark.options import SourceOptions
    from connectors.spark.typed_tables import TypedTable
    from connectors.tracking.tracker import Tracker
    from historian.plans.plans import Plan, PlannedVersion

__all__ = ["StreamReader"]

_OFFSET_FORMAT = 1
_GO_ON = (
    "start the query again, with the same name and checkpoint: it goes on from here under the schema behind the edit"
)


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads plans; a plan is stored before its offset is handed out.

    An offset is ``{"format", "position", "plan", "log_bytes"}``: all up to that plan's end, and how much log that is since
    the stream began. One of a typed stream may have ``version``: of its plan, only what stands before that schema version.

    Args:
        typed: the table as it was loaded; None: it is looked for where it is needed.
    """

    def __init__(self, options: SourceOptions, typed: TypedTable | None = None) -> None:
        self._options = options
        self._tracker: Tracker | None = None
        self._known = typed
        self._is_current = False
        self._last: Mapping[str, Any] | None = None
        self._last_event_us = 0

    @plain_errors()
    def __getstate__(self) -> dict[str, Any]:
        known = self._typed
        return {**self.__dict__, "_tracker": None, "_known": known, "_is_current": False}

    @property
    def tracker(self) -> Tracker:
        """The tracker of this process, made when first asked for."""
        if self._tracker is None:
            self._tracker = self._options.tracker()
        return self._tracker

    @property
    def _typed(self) -> TypedTable | None:
        if self._known is None and self._options.table is not None:
            self._known = stream_table(self._options, self.tracker)
        return self._known

    @plain_errors()
    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 Spark's name
        """The offset a new query begins behind."""
        after = self._options.after_plan
        return _offset(self.tracker.end_of(after), after, 0)

    @plain_errors()
    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 Spark's name
        """How much of the log one plan takes at most: ``run.max_batch_bytes`` of the configuration."""
        return ReadMaxBytes(self._options.batch_bytes())

    @plain_errors()
    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802 Spark's name
        """The offset of the one plan behind *start*; *start* itself where the log holds nothing new.

        Raises:
            TableStopped: the next edit of a typed table does not fit the rows' schema. All rows before it have been read.
        """
        self._check_current()
        limit_bytes = limit.max_bytes if isinstance(limit, ReadMaxBytes) else None
        self._last = start
        self.tracker.event_time_us = 0  # a plan that is stored already does not tell it
        if "version" in start:
            plan: Plan | None = self.tracker.stored(int(start["plan"]))
        else:
            plan = self.tracker.plan_after(int(start["plan"]), limit_bytes=limit_bytes, until=self._options.until)
        if plan is None:
            return start
        whole = _offset(plan.end, plan.number, int(start.get("log_bytes", 0)) + _log_bytes(plan))
        typed = self._typed
        end = whole if typed is None else self._fitting(typed, plan, start, whole)
        self._last, self._last_event_us = end, self.tracker.event_time_us
        return end

    def _fitting(
        self, typed: TypedTable, plan: Plan, start: Mapping[str, Any], whole: dict[str, Any]
    ) -> dict[str, Any]:
        """The end of what fits the schema: *whole*, or the version before which it ends."""
        begin = start.get("version")
        for table in typed.planned(plan.tables):
            for version in table.versions:
                if begin is not None and version.version < begin:
                    continue
                if version.version < typed.schema_of.begin:
                    raise typed.stop(
                        version,
                        f"the stream {self._options.name} has gone on behind it",
                        next_step='start a stream with another "name"',
                    )
                why = typed.rules.misfit(typed.schema_of, version.version, version)
                if why is None:
                    continue
                if version.version == begin:
                    self._change(typed, version, why)
                return _offset(plan.start, plan.number, int(start.get("log_bytes", 0)), version=version.version)
            if table.quarantine is not None:
                raise TableStopped(table.quarantine.reason, where=str(typed.schema_of.snapshot.name))
        return whole

    def _change(self, typed: TypedTable, version: PlannedVersion, why: str) -> None:
        """Ends the stream at *version*, whose rows do not fit; the next start of it finds the schema that they do fit.

        Raises:
            TableStopped: always.
        """
        options, store = self._options, self.tracker.store
        if options.on_schema_change == "fail":
            raise typed.stop(version, why, next_step='start a new stream, with another "name", behind this position')
        schema = next_schema(options, self.tracker, typed.table_id, version.version)
        if schema is None:
            raise typed.stop(version, why, next_step="start the query again when there is a table of that name again")
        remember(store, options.name or "", schema, after=len(remembered(store, options.name or "")))
        raise typed.stop(version, why, next_step=_GO_ON)

    def _check_current(self) -> None:
        """Refuses a stream that was loaded before the schema changed that its name stands for; at its first start the name gets one."""
        typed = self._typed
        if self._is_current or typed is None:
            return
        held = remembered(self.tracker.store, self._options.name or "")
        if not held:
            remember(self.tracker.store, self._options.name or "", typed.schema_of, after=0)
        elif held[-1] != typed.schema_of:
            raise TableStopped(
                "the stream was loaded under an earlier schema than its name stands for",
                where=f"{typed.schema_of.snapshot.name}, stream {self._options.name}",
                next_step="load it again: spark.readStream … load()",
            )
        self._is_current = True

    def reportLatestOffset(self) -> dict[str, Any] | None:  # noqa: N802 Spark's name
        """For a query's progress: the log's end, how many bytes of it are not read yet, and how old the last one read is."""
        try:
            end = self.tracker.reader.end()
            found: dict[str, Any] = {"format": _OFFSET_FORMAT, "position": str(end)}
            if self._last is not None:
                plan = int(self._last["plan"])
                found["plan"] = plan
                place = self.tracker.end_of(plan - 1 if "version" in self._last else plan)
                is_read = covers(place, end)
                found["waiting_bytes"] = 0 if is_read else self.tracker.reader.waiting_bytes(place)
                if is_read:
                    found["lag_seconds"] = 0
                elif self._last_event_us:
                    found["lag_seconds"] = max(0, int(time.time()) - self._last_event_us // 1_000_000)
        except HistorianError:
            return None  # whoever reads next is told
        return found

    @plain_errors()
    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 Spark's name
        """Fixes the log's present end as the last position of this run."""
        self.tracker.stop_at_present_end()

    @plain_errors()
    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """The stored plans behind *start* up to *end*, a partition a range.

        Raises:
            LogReplaced: the log is another one than was read.
        """
        self.tracker.continuity.check()  # a query that goes on asks for its last batch first
        first = int(start["plan"]) + ("version" not in start)
        found: list[InputPartition] = []
        for number in range(first, int(end["plan"]) + 1):
            versions = Versions(
                begin=start.get("version") if number == int(start["plan"]) else None,
                end=end.get("version") if number == int(end["plan"]) else None,
            )
            found += partitions_of(self.tracker.stored(number), self.tracker, self._typed, versions)
        return found

    @plain_errors()
    def commit(self, end: dict[str, Any]) -> None:
        """Notes that Spark will not ask for plans up to *end* again, and forgets those that nobody can read any more."""
        self.tracker.done_with(self._options.name or "", int(end["plan"]) - ("version" in end))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Rows of one range, on an executor."""
        return read_partition(self._options, partition, self._known)

    def stop(self) -> None:
        """Closes the log and the store."""
        if self._tracker is not None:
            self._tracker.close()
            self._tracker = None


def _offset(position: LogPosition, plan: int, log_bytes: int, **more: int) -> dict[str, Any]:
    return {"format": _OFFSET_FORMAT, "position": str(position), "plan": plan, "log_bytes": log_bytes, **more}


def _log_bytes(plan: Plan) -> int:
    return sum(each.end - each.start for each in plan.ranges)
