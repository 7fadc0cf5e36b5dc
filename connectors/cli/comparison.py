"""Tables compared with the source for ``historian verify``, and what is printed of it."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING

import typer

from connectors.cli.terminal.aside import aside
from connectors.cli.terminal.outcome import say
from historian.errors import SourceError

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

    from connectors.backfill.spool import Spool
    from connectors.pipeline.comparing import ComparedRows
    from connectors.readers.binlog.transport.connection import ServerAddress
    from connectors.tracking.tracker import Tracker
    from historian.changelog.chunks import Chunk
    from historian.plans.key_ranges import KeyRange
    from historian.plans.plans import Plan
    from historian.schema.snapshots import Snapshot
    from sinks.delta import DeltaSettings

__all__ = ["Comparison", "last_plan", "print_rows"]


def last_plan(tracker: Tracker) -> Plan:
    """The newest plan of the connector. Raises :class:`SourceError` where there is none."""
    last = tracker.store.last_plan()
    if last is None:
        raise SourceError("the connector has not run yet", where="plans", next_step="`historian run` starts it")
    return last


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """What tables are compared with, and how.

    Attributes:
        tracker: of the connector, whose lease the caller holds.
        connections: that read side by side.
        percent: of a table's rows, about, that are compared; None: all are.
        on_read: is called when all rows of a table were read, before they are compared.
    """

    spark: SparkSession
    lake: DeltaSettings
    tracker: Tracker
    address: ServerAddress
    connections: int
    percent: float | None
    on_read: Callable[[], None]

    def differs(self, snapshot: Snapshot) -> str | None:
        """Why the table's targets are to be repaired, "" where they cannot be, None where they do not differ; prints what does."""
        from sinks.delta.repairs.returning import LeftBehind
        from sinks.delta.writing.comparing import NotByRanges, NotComparable

        try:
            if self.percent is not None:
                try:
                    return self._sampled(snapshot, self.percent)
                except NotByRanges:
                    self._tell_whole(snapshot)
            return self._whole(snapshot)
        except (NotComparable, LeftBehind) as error:
            say(f"{snapshot.name}: not compared: {error}")
            return "verify could not compare its targets" if isinstance(error, LeftBehind) else ""

    def _whole(self, snapshot: Snapshot) -> str | None:
        from connectors.recovery.repairing import read_whole

        def read(copied: Spool) -> Plan | None:
            table_id, connections = snapshot.table_id, self.connections
            plan = read_whole(self.tracker, self.address, table_id, "verify", copied, connections=connections)
            self.on_read()
            return plan

        found = self._compared(snapshot, read)
        say(f"{snapshot.name}: {found.rows_read} rows at {found.end}, {_mending(found.rows_differing)}")
        return _reason(found.rows_differing)

    def _sampled(self, snapshot: Snapshot, percent: float) -> str | None:
        """As :meth:`differs`, of random ranges of its key. Raises NotByRanges where there are none that targets tell too."""
        from connectors.backfill.keys.split_key import SplitKey
        from connectors.backfill.samples import random_ranges
        from connectors.backfill.splits import repaired_by_ranges
        from connectors.recovery.repairing import read_range, table_behind

        tracker, last = self.tracker, last_plan(self.tracker)
        table = table_behind(tracker, snapshot.table_id, last)
        flavor, now = tracker.reader.flavor, table.versions[-1]
        key = None if now.snapshot is None else SplitKey.of(now.snapshot, flavor)
        if key is None or not repaired_by_ranges(now.snapshot, flavor):
            self._tell_whole(snapshot)
            return self._whole(snapshot)
        sample = random_ranges(self.address, key, percent, random.SystemRandom())
        rows = differing = 0
        for keys in sample.ranges:

            def read(copied: Spool, keys: KeyRange = keys) -> Plan | None:
                return read_range(tracker, self.address, table, last, keys, copied, tracker.history.last_number)

            found = self._compared(snapshot, read)
            rows, differing = rows + found.rows_read, differing + found.rows_differing
        say(
            f"{snapshot.name}: {rows} of about {max(rows, sample.table_rows)} rows at {last.end}, in {len(sample.ranges)}"
            f" ranges of its key, {_mending(differing)}"
        )
        return _reason(differing)

    def _compared(self, snapshot: Snapshot, read: Callable[[Spool], Plan | None]) -> ComparedRows:
        from connectors.pipeline.comparing import compare

        found = compare(self.spark, self.lake, read, print_rows, threads=self.connections)
        if found is None:
            raise SourceError(
                "a statement is on the table behind what the lake holds",
                where=str(snapshot.name),
                next_step="`historian run --once`, then verify again",
            )
        return found

    def _tell_whole(self, snapshot: Snapshot) -> None:
        say(f"{snapshot.name}: compared as a whole, since targets do not tell which rows lie in a range of its key")


def print_rows(chunk: Chunk, snapshot: Snapshot) -> None:
    """Prints changelog rows, a line each."""
    from connectors.tail.json_lines import ndjson_rows

    with aside():
        for line in ndjson_rows(chunk, snapshot):
            typer.echo(line)


def _mending(rows: int) -> str:
    return f"{rows} changelog rows would mend its targets"


def _reason(rows: int) -> str | None:
    return f"verify found {rows} changelog rows to mend" if rows else None
