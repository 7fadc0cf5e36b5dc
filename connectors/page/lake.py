"""What the page tells of the lake, read without Spark: how big targets are, and what repairs found."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from connectors.sink_kinds import lakes
from historian.errors import HistorianError

if TYPE_CHECKING:
    from connectors.config import PipelineConfig

__all__ = ["RecordedTable", "left_out", "recorded_tables", "repairs", "sizes"]

_THREADS = 8
_REPAIR_COLUMNS = (
    "plan",
    "table",
    "reason",
    "position",
    "system_time",
    "rows_read",
    "appended",
    "retracted",
    "corrected",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedTable:
    """What a lake has recorded of a table's edits.

    Attributes:
        stopped_in: the plan in which it stopped; 0: it goes on.
        upto: the last version whose edits were decided about.
        decisions: version, column id (0: about none), kind of edit, and what was decided; edits that were followed are not there.
    """

    stopped_in: int
    upto: int
    decisions: tuple[tuple[int, int, str, str], ...]


def recorded_tables(config: PipelineConfig) -> dict[str, RecordedTable]:
    """What is recorded of tables, by their present or last names, in lakes on disks of this machine.

    Raises:
        SinkError: a lake's record of them cannot be read.
    """
    from sinks.contract.decisions import Decisions
    from sinks.delta.lake.state_rows import TABLES
    from sinks.delta.reading.plain_files import plain_rows

    found = {}
    for path in _paths(config):
        rows = plain_rows(f"{path}/{TABLES}", ("table_id", "name", "stopped_in", "evolved"))
        # Former tables of the name come first; of one that has other directories by now the id is negative.
        for row in sorted(rows, key=lambda row: row["table_id"]):
            made = Decisions.parse(row["evolved"] or "")
            decisions = tuple((each.version, each.column_id, each.edit, each.action) for each in made.made)
            found[row["name"]] = RecordedTable(stopped_in=row["stopped_in"] or 0, upto=made.upto, decisions=decisions)
    return found


def _paths(config: PipelineConfig) -> list[str]:
    """Of lakes on disks of this machine: how an object store is reached, Spark's settings say, and where a catalog's tables are."""
    from sinks.contract.storage import is_local

    return [lake.path.rstrip("/") for lake in lakes(config.sinks) if lake.path and is_local(lake.path)]


def left_out(config: PipelineConfig) -> list[str]:
    """Lakes of which nothing is read here: paths or catalogs."""
    read = set(_paths(config))
    return [lake.path or lake.catalog for lake in lakes(config.sinks) if lake.path.rstrip("/") not in read]


def sizes(config: PipelineConfig, targets: Iterable[str]) -> Mapping[str, Mapping[str, int | None]]:
    """Version, files, bytes and rows of *targets* by their directories' names; those that cannot be read so, or that several lakes have, are left out.

    Lakes of :func:`left_out` are left out too.
    """
    from sinks.delta.reading.plain_files import plain_table

    paths = _paths(config)
    wanted = list(dict.fromkeys(targets))

    def look(target: str) -> tuple[str, Mapping[str, int | None] | None]:
        tables = []
        for path in paths:
            with suppress(HistorianError):  # a page is for bad days too
                tables.append(plain_table(f"{path}/{target}"))
        found = [table for table in tables if table is not None]
        # Of several lakes with a target of that name a row does not tell which it is of.
        if len(found) != 1:
            return target, None
        (table,) = found
        return target, {
            "version": table.version,
            "files": len(table.names),
            "bytes": table.size_bytes,
            "rows": table.rows,
        }

    with ThreadPoolExecutor(_THREADS) as pool:
        return {target: found for target, found in pool.map(look, wanted) if found is not None}


def repairs(config: PipelineConfig) -> list[dict[str, Any]]:
    """What repairs compared and found, the oldest first, in all lakes on disks of this machine.

    Raises:
        SinkError: a lake's record of them cannot be read.
    """
    from sinks.delta.lake.repair_records import REPAIRS
    from sinks.delta.reading.plain_files import plain_rows

    found = []
    for path in _paths(config):
        rows = plain_rows(f"{path}/{REPAIRS}", _REPAIR_COLUMNS)
        found += sorted(rows, key=lambda row: (row["plan"], row["table"]))
    return found
