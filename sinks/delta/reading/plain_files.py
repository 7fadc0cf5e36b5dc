"""A Delta table as its log tells it, without Spark: its version, size, and rows, for those who only look.

Reads what the kernel writes: JSON commits, and checkpoints of one file or several parts. A table that needs more is an error, no guess.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq

from historian.errors import SinkError
from sinks.contract.storage import located, reading
from sinks.delta.log.columns import DeltaSchema
from sinks.delta.log.plain_log import LOG, actions, checkpoint_in, commits_in, whole_log

__all__ = ["PlainTable", "plain_rows", "plain_schema", "plain_table"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainTable:
    """A table at its newest version.

    Attributes:
        size_bytes: of its files; ``rows``: in them, deleted ones of deletion vectors included; None: a file does not say.
        names: of the files, relative to the table.
        mark: of the newest commit or checkpoint; the same as long as nothing changes.
    """

    version: int
    size_bytes: int
    rows: int | None
    names: tuple[str, ...]
    mark: tuple[str, int, int] = field(default=("", 0, 0), compare=False)


@dataclass(slots=True)
class _Files:
    live: dict[str, tuple[int, int | None]] = field(default_factory=dict)

    def add(self, path: str, size: int, stats: str | None) -> None:
        rows = json.loads(stats).get("numRecords") if stats else None
        self.live[path] = (size, rows)

    def remove(self, path: str) -> None:
        self.live.pop(path, None)


def plain_table(path: str, known: PlainTable | None = None) -> PlainTable | None:
    """The Delta table at *path*, which is absolute or a URL; None where there is none. Reads only.

    Args:
        known: what an earlier call gave, which is given again where nothing has changed.

    Raises:
        SinkError: its log cannot be read so.
    """
    with reading(path), whole_log(path):
        system, log, listed = _listed_log(path)
        if not listed:
            return None
        mark = max((info.base_name, info.size, info.mtime_ns or 0) for info in listed)
        if known is not None and known.mark == mark:
            return known
        names = [info.base_name for info in listed]
        commits = commits_in(names)
        files, since = _Files(), -1
        checkpoint = checkpoint_in(names)
        if checkpoint is not None:
            since, parts = checkpoint
            for part in parts:
                _take_checkpoint(system, f"{log}/{part}", files)
        last = since
        for version in sorted(number for number in commits if number > since):
            if version != last + 1:
                raise _unreadable(path, f"commit {last + 1}", f"{version} as the next one")
            last = version
            with system.open_input_stream(f"{log}/{commits[version]}") as stream:
                _take_commit(stream.read(), files)
    if last < 0:
        return None
    counts = [rows for _, rows in files.live.values()]
    return PlainTable(
        version=last,
        size_bytes=sum(size for size, _ in files.live.values()),
        rows=None if None in counts else sum(count for count in counts if count is not None),
        names=tuple(files.live),
        mark=mark,
    )


def plain_rows(path: str, columns: Sequence[str], table: PlainTable | None = None) -> list[dict[str, Any]]:
    """Those *columns* of all rows of the table at *path*, which has no column mapping and no deletion vectors; none where there is none.

    Args:
        path: absolute, or a URL.
        columns: those that the table does not have are left out.
        table: as :func:`plain_table` gave it; None: it is looked at.

    Raises:
        SinkError: it cannot be read so.
    """
    table = plain_table(path) if table is None else table
    if table is None:
        return []
    with reading(path), whole_log(path):
        system, place = located(path)
        read = []
        for name in table.names:
            with pq.ParquetFile(f"{place}/{unquote(name)}", filesystem=system) as file:
                read.append(file.read([column for column in columns if column in file.schema_arrow.names]))
    rows: list[dict[str, Any]] = pa.concat_tables(read, promote_options="default").to_pylist() if read else []
    return rows


def plain_schema(path: str) -> DeltaSchema | None:
    """The columns of the Delta table at *path*, which is absolute or a URL; None where there is none. Reads the newest commits alone.

    Raises:
        SinkError: its log cannot be read so.
    """
    with reading(path), whole_log(path):
        system, log, listed = _listed_log(path)
        names = [info.base_name for info in listed]
        since, parts = checkpoint_in(names) or (-1, [])
        for version, name in sorted(commits_in(names).items(), reverse=True):
            if version <= since:
                break
            with system.open_input_stream(f"{log}/{name}") as stream:
                for action in actions(stream.read()):
                    if "metaData" in action:
                        return DeltaSchema.parse(action["metaData"]["schemaString"])
        for part in parts:
            found = pq.read_table(f"{log}/{part}", columns=["metaData"], filesystem=system).column("metaData")
            for metadata in found.drop_null().to_pylist():
                return DeltaSchema.parse(metadata["schemaString"])
    return None


def _listed_log(path: str) -> tuple[pafs.FileSystem, str, list[pafs.FileInfo]]:
    """The file system, the directory of the table's log, and the files there; none where there is no log."""
    system, place = located(path)
    log = f"{place}/{LOG}"
    if system.get_file_info(log).type == pafs.FileType.NotFound:
        return system, log, []
    return system, log, [info for info in system.get_file_info(pafs.FileSelector(log)) if info.is_file]


def _take_checkpoint(system: pafs.FileSystem, path: str, files: _Files) -> None:
    table = pq.read_table(path, columns=["add"], filesystem=system)
    for add in table.column("add").to_pylist():
        if add is not None:
            files.add(add["path"], add["size"], add.get("stats"))


def _take_commit(body: bytes, files: _Files) -> None:
    taken = list(actions(body))
    # A file whose deleted rows are marked anew is removed and added in one commit, in whatever order.
    for action in taken:
        if "remove" in action:
            files.remove(action["remove"]["path"])
    for action in taken:
        if "add" in action:
            files.add(action["add"]["path"], action["add"]["size"], action["add"].get("stats"))


def _unreadable(path: str, expected: str, found: str) -> SinkError:
    return SinkError(
        "the log of a Delta table has a hole", where=path, expected=expected, found=found,
        next_step="restore the commits that are missing in _delta_log",
    )  # fmt: skip
