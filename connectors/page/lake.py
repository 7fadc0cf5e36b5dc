"""What the page tells of lakes, read without Spark: how big targets are, what was decided about tables, and what repairs found.

Lakes are found where the run noted its targets, so those of a catalog too. Object stores are asked as a run's Spark is told to, and in a process
without one as AWS's own tools do: by environment, profile or the machine's role.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from connectors.sink_kinds import lakes
from historian.errors import HistorianError

if TYPE_CHECKING:
    from connectors.config import PipelineConfig
    from sinks.delta.reading.plain_files import PlainTable

__all__ = ["LakeFacts", "LakeReader", "RecordedTable"]

_THREADS = 8
_AGAIN_S = 60.0
"""A lake that could not be read is asked again after that time: one that is out of reach takes long to say so."""
_TABLE_COLUMNS = (
    "table_id",
    "name",
    "dropped",
    "stopped_in",
    "evolved",
    "changelog",
    "mirror",
    "history",
    "former_mirror",
    "former_history",
)
_DIRECTORIES = _TABLE_COLUMNS[5:]
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
        table_id: of the history.
        stopped_in: the plan in which it stopped; 0: it goes on.
        upto: the last version whose edits were decided about.
        decisions: version, column id (0: about none), kind of edit, and what was decided; edits that were followed are not there.
    """

    table_id: int
    stopped_in: int
    upto: int
    decisions: tuple[tuple[int, int, str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LakeFacts:
    """What lakes tell.

    Attributes:
        sizes: version, files, bytes and rows of targets by their paths; those that cannot be read so are left out.
        tables: by id.
        by_path: the table whose target stands at a path.
        repairs: what repairs compared and found, the oldest first in each lake.
        unread: which lakes cannot be read, and why; "": all can.
        roots: directories of the configuration's lakes, where targets are whose paths earlier releases did not note.
    """

    sizes: Mapping[str, Mapping[str, int | None]] = field(default_factory=dict)
    tables: Mapping[int, RecordedTable] = field(default_factory=dict)
    by_path: Mapping[str, RecordedTable] = field(default_factory=dict)
    repairs: Sequence[Mapping[str, Any]] = ()
    unread: str = ""
    roots: tuple[str, ...] = ()

    def size(self, target: Mapping[str, Any]) -> Mapping[str, int | None]:
        """Of a target, as a row of the connector's state; nothing where it is not known, or not in which of several lakes it is."""
        found = [self.sizes[path] for path in self.paths(target) if path in self.sizes]
        return found[0] if len(found) == 1 else {}

    def table(self, target: Mapping[str, Any]) -> RecordedTable | None:
        """Whose a target is."""
        found = [self.by_path[path] for path in self.paths(target) if path in self.by_path]
        return found[0] if len(found) == 1 else None

    def paths(self, target: Mapping[str, Any]) -> list[str]:
        """Where a target may be."""
        return [target["path"]] if target.get("path") else [f"{root}/{target['target']}" for root in self.roots]


class LakeReader:
    """Reads the lakes of a connector, again and again: what did not change is not read anew. For one thread at a time."""

    def __init__(self, config: PipelineConfig) -> None:
        self._config = config
        self._known: dict[str, PlainTable] = {}
        self._rows: dict[str, tuple[PlainTable, list[dict[str, Any]]]] = {}
        self._failed: dict[str, tuple[float, str]] = {}

    def look(self, targets: Iterable[Mapping[str, Any]], tables: Collection[str] | None = None) -> LakeFacts:
        """What lakes tell now, and of *targets*, which are rows of the connector's state; sizes of these *tables* alone, None: of all."""
        rows = [target for target in targets if target["target"]]
        roots = self._roots(rows)
        recorded: dict[int, RecordedTable] = {}
        by_path: dict[str, RecordedTable] = {}
        repairs: list[dict[str, Any]] = []
        unread = [f"where {lake} is was not noted yet; the next run does" for lake in self._unplaced(rows)]
        for root in roots:
            try:
                self._read(root, recorded, by_path, repairs)
            except HistorianError as error:
                unread.append(str(error))
        facts = LakeFacts(
            tables=recorded,
            by_path=by_path,
            repairs=repairs,
            unread="; ".join(unread),
            roots=tuple(self._configured()),
        )
        sized = rows if tables is None else [row for row in rows if row["table"] in tables]
        paths = dict.fromkeys(path for row in sized for path in facts.paths(row) if path.rpartition("/")[0] in roots)
        readable = [path for path in paths if path.rpartition("/")[0] not in self._failed]
        with ThreadPoolExecutor(_THREADS) as pool:
            found = dict(zip(readable, pool.map(self._size, readable), strict=True))
        self._known = {path: table for path, table in self._known.items() if path in paths or path in self._rows}
        return replace(facts, sizes={path: size for path, size in found.items() if size is not None})

    def _configured(self) -> list[str]:
        return [_absolute(lake.path) for lake in lakes(self._config.sinks) if lake.path]

    def _roots(self, targets: Sequence[Mapping[str, Any]]) -> list[str]:
        if not lakes(self._config.sinks):
            return []
        noted = (target["path"].rpartition("/")[0] for target in targets if target.get("path"))
        return list(dict.fromkeys((*self._configured(), *noted)))

    def _unplaced(self, targets: Sequence[Mapping[str, Any]]) -> list[str]:
        if any(target.get("path") for target in targets):
            return []
        return [f"the lake of catalog {lake.catalog}" for lake in lakes(self._config.sinks) if lake.catalog]

    def _read(
        self,
        root: str,
        tables: dict[int, RecordedTable],
        by_path: dict[str, RecordedTable],
        repairs: list[dict[str, Any]],
    ) -> None:
        """Adds what the lake in *root* has recorded; raises :class:`SinkError` where that cannot be read."""
        from sinks.contract.decisions import Decisions
        from sinks.delta.lake.repair_records import REPAIRS
        from sinks.delta.lake.state_rows import TABLES

        held = self._failed.get(root)
        if held is not None and time.monotonic() - held[0] < _AGAIN_S:
            raise HistorianError(held[1])
        try:
            recorded = self._rows_of(f"{root}/{TABLES}", _TABLE_COLUMNS)
            found = self._rows_of(f"{root}/{REPAIRS}", _REPAIR_COLUMNS)
        except HistorianError as error:
            self._failed[root] = time.monotonic(), str(error)
            raise
        self._failed.pop(root, None)
        # Directories of a table that is gone may be another one's by now.
        for row in sorted(recorded, key=lambda row: (not row.get("dropped"), row["table_id"])):
            made = Decisions.parse(row["evolved"] or "")
            table = RecordedTable(
                table_id=abs(row["table_id"]),  # of one that has other directories by now it is negative
                stopped_in=row["stopped_in"] or 0,
                upto=made.upto,
                decisions=tuple((each.version, each.column_id, each.edit, each.action) for each in made.made),
            )
            if row["table_id"] > 0:
                tables[table.table_id] = table
            by_path |= {f"{root}/{row[name]}": table for name in _DIRECTORIES if row.get(name)}
        repairs += sorted(found, key=lambda row: (row["plan"], row["table"]))

    def _rows_of(self, path: str, columns: Sequence[str]) -> list[dict[str, Any]]:
        from sinks.delta.reading.plain_files import plain_rows

        table = self._table(path)
        if table is None:
            return []
        held = self._rows.get(path)
        if held is None or held[0] is not table:
            held = self._rows[path] = table, plain_rows(path, columns, table)
        return held[1]

    def _size(self, path: str) -> Mapping[str, int | None] | None:
        table = None
        with suppress(HistorianError):  # a page is for bad days too
            table = self._table(path)
        if table is None:
            return None
        return {"version": table.version, "files": len(table.names), "bytes": table.size_bytes, "rows": table.rows}

    def _table(self, path: str) -> PlainTable | None:
        from sinks.delta.reading.plain_files import plain_table

        table = plain_table(path, self._known.get(path))
        if table is not None:
            self._known[path] = table
        return table


def _absolute(path: str) -> str:
    return (path if "://" in path else str(Path(path).absolute())).rstrip("/")
