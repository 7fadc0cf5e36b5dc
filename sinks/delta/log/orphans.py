"""Orphaned files: data files in a table's directory that no committed version names, as lost tasks and killed runs leave them.

A file that a version names is none, be it in force no more: that is VACUUM's to remove. The log is read without Spark.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import pyarrow.fs as pafs
import pyarrow.parquet as pq

from historian.errors import SinkError
from sinks.contract.storage import is_local, located, reading, writing
from sinks.delta.log.plain_log import LOG, actions, whole_log

if TYPE_CHECKING:
    from datetime import datetime

__all__ = ["Orphan", "orphaned_files", "remove"]

_COMMIT = re.compile(r"(\d{20})\.json")
_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint(?:\..+)?\.(?:parquet|json)")
_NAMING = ("add", "remove", "cdc")
"""Actions that name a data file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Orphan:
    """A file that no committed version of its table names.

    Attributes:
        table: the table's directory, below the lake's.
        path: of the file, below the lake's.
    """

    table: str
    path: str
    size_bytes: int
    written: datetime


def orphaned_files(lake: str, before: datetime) -> list[Orphan]:
    """The orphans of all tables below *lake* that were written before then, by path.

    Files of a write that is under way are orphans until its commit: *before* has to lie behind the begin of none. Reads only. Retryable.

    Raises:
        SinkError: the lake cannot be read, or a log lacks versions, so that it does not say what they named.
    """
    system, root = located(lake)
    with reading(lake):
        # Listed before a log is read: what is committed meanwhile is named there by then.
        files = {
            PurePosixPath(each.path).relative_to(root): each
            for each in system.get_file_info(pafs.FileSelector(root, recursive=True, allow_not_found=True))
            if each.type == pafs.FileType.File
        }
        if is_local(lake):
            files = _inside(Path(root), files)
        tables = {path.parent.parent for path in files if path.parent.name == LOG and _COMMIT.fullmatch(path.name)}
        old_of: dict[PurePosixPath, list[PurePosixPath]] = {}
        for path, each in files.items():
            if path.suffix == ".parquet" and each.mtime < before and (owner := _table_of(path, tables)) is not None:
                old_of.setdefault(owner, []).append(path)
        found = []
        for table, old in sorted(old_of.items()):
            with whole_log(f"{root}/{table}"):
                named = _named(system, root, table)
            found += [
                Orphan(table=str(table), path=str(path), size_bytes=files[path].size, written=files[path].mtime)
                for path in old
                if str(path.relative_to(table)) not in named
            ]
    return sorted(found, key=lambda each: each.path)


def _inside(root: Path, files: Mapping[PurePosixPath, pafs.FileInfo]) -> dict[PurePosixPath, pafs.FileInfo]:
    """Those of *files* that no link leads to: what a link in a lake leads to is somebody else's."""
    linked: dict[PurePosixPath, bool] = {PurePosixPath(): False}

    def is_linked(path: PurePosixPath) -> bool:
        if path not in linked:
            linked[path] = is_linked(path.parent) or (root / path).is_symlink()
        return linked[path]

    return {path: each for path, each in files.items() if not is_linked(path)}


def remove(lake: str, orphans: Iterable[Orphan]) -> None:
    """Removes files that :func:`orphaned_files` has found. One that has gone meanwhile is passed over. Safe to call again.

    Raises:
        SinkError: a file cannot be removed.
    """
    system, root = located(lake)
    with writing(lake):
        for orphan in orphans:
            path = f"{root}/{orphan.path}"
            if is_local(lake) and not _inside(Path(root), {PurePosixPath(orphan.path): system.get_file_info(path)}):
                continue
            if system.get_file_info(path).type == pafs.FileType.File:
                system.delete_file(path)


def _table_of(path: PurePosixPath, tables: set[PurePosixPath]) -> PurePosixPath | None:
    """The table that a data file lies in, the innermost one; None: in none, or in what is hidden there, such as its log."""
    for parent in path.parents:
        if parent in tables:
            inside = path.relative_to(parent).parts
            return None if any(part.startswith(("_", ".")) for part in inside) else parent
    return None


def _named(system: pafs.FileSystem, root: str, table: PurePosixPath) -> set[str]:
    """Paths that versions of the table name, below its directory."""
    log = f"{root}/{table}/{LOG}"
    entries = [
        each
        for each in system.get_file_info(pafs.FileSelector(log, recursive=True))
        if each.type == pafs.FileType.File and each.base_name.endswith((".json", ".parquet"))
    ]
    _check_whole(str(table), [each.base_name for each in entries])
    named = set()
    for entry in entries:
        for path in _paths_in(system, entry.path):
            plain = unquote(path)
            _, is_absolute, below = plain.rpartition(f"{root}/{table}/")
            named.add(below if is_absolute else plain)
    return named


def _check_whole(table: str, names: list[str]) -> None:
    commits = {int(match[1]) for match in map(_COMMIT.fullmatch, names) if match is not None}
    checkpoints = {int(match[1]) for match in map(_CHECKPOINT.fullmatch, names) if match is not None}
    first = max(checkpoints, default=-1) + 1
    missing = set(range(first, max(commits) + 1)) - commits
    if missing:
        raise SinkError(
            "the log of a table lacks versions, so that nobody can say which files they named",
            where=table,
            found=f"no version {min(missing)}",
        )


def _paths_in(system: pafs.FileSystem, path: str) -> Iterator[str]:
    rows: Iterable[dict[str, Any]]
    if path.endswith(".parquet"):
        with system.open_input_file(path) as file:
            parquet = pq.ParquetFile(file)
            columns = [name for name in _NAMING if name in parquet.schema_arrow.names]
            rows = parquet.read(columns=[f"{name}.path" for name in columns]).to_pylist()
    else:
        with system.open_input_stream(path) as file:
            rows = actions(file.read())
    for row in rows:
        for name in _NAMING:
            if (action := row.get(name)) and action.get("path"):
                yield action["path"]
