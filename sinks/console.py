"""The console sink: every change as a line of JSON, for a look at a stream while it runs.

A row is ``{"table", "op", "event_time", "schema_version", "data"}``, with lists of names ``absent`` and ``unseen`` where its
images lack columns, which ``data`` then leaves out (:mod:`historian.changelog.missing_columns`); a statement that changes a table
``{"table", "schema_version", "statement"}``. A table that is repaired has a line ``{"table", "repairs"}`` with the reason, and then all
rows that the source holds as +A, since nobody knows here what was there before. Nothing is kept: what a restart writes again is printed again, and the
rows that TRUNCATE or DROP take back are those of the statement, which is printed.
"""

from __future__ import annotations

import base64
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, TextIO

import pyarrow as pa

from historian.changelog.chunks import NO_TABLE, Chunk, dead_letters
from historian.changelog.missing_columns import ABSENT, missing_names
from historian.changelog.operations import CHUNK_COLUMNS, Op
from historian.history.timeline import TimelineEntry
from historian.plans.plans import Plan, PlannedVersion
from sinks.contract.base import Sink
from sinks.contract.chunks import Chunks
from sinks.contract.parts import check_planned, count_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["ConsoleSink"]


class ConsoleSink(Sink):
    """Prints changes to standard output."""

    def __init__(self, spark: SparkSession, settings: object, stream: TextIO | None = None) -> None:  # noqa: ARG002 as every sink is made
        self._stream = stream or sys.stdout

    def open(self, connector: str) -> int | None:  # noqa: ARG002 nothing is kept
        """See :class:`sinks.contract.base.Sink`."""
        return None

    def write(self, plan: Plan, timeline: Callable[[int], Sequence[TimelineEntry]], chunks: Chunks) -> None:  # noqa: ARG002 as the protocol has it
        """See :class:`sinks.contract.base.Sink`."""
        rows, stops, _ = count_rows(chunks)
        check_planned(plan, rows)
        versions = {(table.table_id, v.version): v for table in plan.tables for v in table.versions}
        told = {at for at, version in versions.items() if version.place is None}
        names = _names(plan)
        for table in plan.tables:
            if table.repairs:
                self._print({"table": names[table.table_id, table.versions[-1].version], "repairs": table.repairs})
        for head in (head for head in chunks.heads if head.table_id == NO_TABLE):
            for letter in json.loads(head.dead_letters):
                self._print({"table": "", "dead_letter": letter})
        for chunk in sorted(chunks.map(list), key=lambda chunk: chunk.sequence):
            for at in sorted(versions.keys() - told, key=lambda at: at[1]):
                if at[0] == chunk.table_id and at[1] <= chunk.version:
                    self._print(_statement(names[at], versions[at]))
                    told.add(at)
            for row in _rows(chunk, names[chunk.table_id, chunk.version], versions[chunk.table_id, chunk.version]):
                self._print(row)
            for letter in json.loads(dead_letters(chunk) or "[]"):
                self._print({"table": names[chunk.table_id, chunk.version], "dead_letter": letter})
        for at in sorted(versions.keys() - told, key=lambda at: at[1]):
            self._print(_statement(names[at], versions[at]))
        for table_id, reason in stops.items():
            self._print({"table": next(name for at, name in names.items() if at[0] == table_id), "stopped": reason})
        self._stream.flush()

    def _print(self, line: dict[str, Any]) -> None:
        self._stream.write(json.dumps(line, ensure_ascii=False, default=_text) + "\n")


def _names(plan: Plan) -> dict[tuple[int, int], str]:
    """The name of each version's table; one that ends a table has the name before it."""
    names: dict[tuple[int, int], str] = {}
    for table in plan.tables:
        name = ""
        for version in table.versions:
            name = name if version.snapshot is None else str(version.snapshot.name)
            names[table.table_id, version.version] = name
    return names


def _statement(name: str, version: PlannedVersion) -> dict[str, Any]:
    return {"table": name, "schema_version": version.version, "statement": version.statement}


def _rows(chunk: Chunk, name: str, version: PlannedVersion) -> Iterator[dict[str, Any]]:
    columns = () if version.snapshot is None else version.snapshot.columns
    data = pa.RecordBatch.from_arrays(
        chunk.rows.columns[len(CHUNK_COLUMNS) :][: len(columns)], names=[str(at) for at, _ in enumerate(columns)]
    )
    heads = zip(chunk.rows.column("op").to_pylist(), chunk.rows.column("event_time").to_pylist(), strict=True)
    missing = missing_names(chunk.rows, [column.name for column in columns])
    for (op, event_time), row, lists in zip(heads, data.to_pylist(), missing, strict=True):
        yield {
            "table": name,
            "op": Op(op).sign,
            "event_time": event_time,
            "schema_version": chunk.version,
            **lists,
            "data": {
                column.name: value
                for column, value in zip(columns, row.values(), strict=True)
                if column.name not in lists.get(ABSENT, ())
            },
        }


def _text(value: object) -> str:
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return value.isoformat(sep=" ") if isinstance(value, datetime) else str(value)
