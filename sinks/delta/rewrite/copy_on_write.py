"""The net change of a part applied by the files of a mirror: what a MERGE does, file by file and in Arrow.

A row that changes is replaced in the file that holds it, so that files keep their ranges of keys. Only files that hold
a key of the change are written anew. Rows that no file holds are new, and stand in a file of their own. What files
become is one commit, which the caller makes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from historian.changelog.merging.matching import KeyIndex
from sinks.delta.log.commits import DataFile
from sinks.delta.rewrite.files import MIRROR_FILE_BYTES, FileWriter
from sinks.delta.rewrite.held_rows import groups, read
from sinks.delta.schema.schema_evolution import DELETED

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["CopyOnWrite", "RewrittenFiles", "deleted", "found", "joined", "rewritten"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyOnWrite:
    """What files apply; it travels to executors.

    Attributes:
        directory: of the mirror.
        schema: of its files from now on, physical names.
        key: physical names of the key's columns. Where ``counts``, all columns.
        put: files of rows to put, each key once. Where ``counts``, of rows to add.
        gone: files of rows whose keys go. Where ``counts``, of rows of which one each goes.
        counts: whether a row may be there more than once.
        filled: columns that rows lack, and what they read there.
        deleted_at_us: when all held rows were deleted, in a mirror that keeps them; None: they were not.
        file_bytes: where a file ends.
    """

    directory: str
    schema: pa.Schema
    key: tuple[str, ...]
    put: tuple[str, ...]
    gone: tuple[str, ...]
    counts: bool = False
    filled: Mapping[str, pa.Scalar] = field(default_factory=dict)
    deleted_at_us: int | None = None
    file_bytes: int = MIRROR_FILE_BYTES

    @property
    def everywhere(self) -> bool:
        """Whether every row that is held changes."""
        return bool(self.filled) or self.deleted_at_us is not None

    def keys(self) -> pa.Table:
        """The keys by which held rows change; all are in memory at once."""
        schema = pa.schema([self.schema.field(name) for name in self.key])
        return pa.concat_tables(
            [
                schema.empty_table(),
                *(read(path, schema) for path in ((*self.put, *self.gone) if not self.counts else self.gone)),
            ]
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RewrittenFiles:
    """What became of files: *removed* are replaced by *files*; *met*: which of the rows to put, then of those to go, they held."""

    removed: Sequence[str]
    files: Sequence[DataFile]
    met: NDArray[np.bool_]

    def encoded(self) -> bytes:
        """The same as bytes."""
        head = {"removed": list(self.removed), "files": [asdict(file) for file in self.files], "rows": len(self.met)}
        return json.dumps({**head, "met": np.packbits(self.met).tobytes().hex()}).encode()

    @classmethod
    def decoded(cls, text: bytes) -> RewrittenFiles:
        """What :meth:`encoded` gave."""
        held = json.loads(text)
        bits = np.unpackbits(np.frombuffer(bytes.fromhex(held["met"]), np.uint8), count=held["rows"])
        return cls(removed=held["removed"], files=[DataFile(**file) for file in held["files"]], met=bits.astype(bool))


def rewritten(rewrite: CopyOnWrite, paths: Sequence[str]) -> RewrittenFiles:
    """Writes those of the files *paths* anew that hold a row that changes, each by itself."""
    change = _Change(rewrite)
    removed: list[str] = []
    files: list[DataFile] = []
    for path in paths:
        if rewrite.everywhere or change.touches(path):
            # What grew a little stays one file.
            writer = FileWriter(rewrite.directory, rewrite.schema, 2 * rewrite.file_bytes)
            for rows in groups(path, rewrite.schema, rewrite.filled):
                writer.write_table(change.applied(rows))
            files += writer.close()
            removed.append(path)
    return RewrittenFiles(removed=removed, files=files, met=change.met)


def joined(rewrite: CopyOnWrite, paths: Sequence[str], met: NDArray[np.bool_]) -> RewrittenFiles:
    """Writes all files *paths* as one, with the change applied, and behind them the rows that no file holds.

    Args:
        met: what files other than *paths* held.
    """
    change = _Change(rewrite, met)
    writer = FileWriter(rewrite.directory, rewrite.schema, rewrite.file_bytes)
    for path in paths:
        for rows in groups(path, rewrite.schema, rewrite.filled):
            writer.write_table(change.applied(rows))
    writer.write_table(change.rest())
    return RewrittenFiles(removed=paths, files=writer.close(), met=change.met)


def found(rewrite: CopyOnWrite, paths: Sequence[str], keys: pa.Table) -> pa.Table:
    """The rows of files that have one of *keys*, as they stand before the change."""
    index = KeyIndex(keys, rewrite.key)
    tables = [rewrite.schema.empty_table()]
    for path in paths:
        held = groups(path, rewrite.schema, rewrite.filled)
        tables += [rows.filter(pa.array(index.find(rows) >= 0)) for rows in held]
    return pa.concat_tables(tables)


class _Change:
    """The net change in memory, and which of its rows files held so far."""

    def __init__(self, rewrite: CopyOnWrite, met: NDArray[np.bool_] | None = None) -> None:
        self._rewrite = rewrite
        self._key_schema = pa.schema([rewrite.schema.field(name) for name in rewrite.key])
        self._put = pa.concat_tables([rewrite.schema.empty_table(), *(read(p, rewrite.schema) for p in rewrite.put)])
        gone = (read(path, self._key_schema) for path in rewrite.gone)
        keys = pa.concat_tables([self._put.select(rewrite.key), *gone])
        self.met = np.zeros(keys.num_rows, bool) if met is None else met.copy()
        # Rows that are counted replace none.
        sought = keys.slice(self._put.num_rows) if rewrite.counts else keys
        self._index = KeyIndex(sought, rewrite.key, exact=rewrite.counts)
        self._order = np.argsort(self._index.numbers, kind="stable") + (keys.num_rows - sought.num_rows)
        self._starts = np.searchsorted(np.sort(self._index.numbers), np.arange(self._index.count + 1))

    def touches(self, path: str) -> bool:
        """Whether a file holds a row that changes."""
        return any((self._changed(keys) >= 0).any() for keys in groups(path, self._key_schema, self._rewrite.filled))

    def applied(self, rows: pa.Table) -> pa.Table:
        """*rows* of a file with the change applied."""
        changed = self._changed(rows)
        numbers = changed[changed >= 0]
        self.met[numbers] = True
        stay = rows if not len(numbers) else rows.filter(pa.array(changed < 0))
        if self._rewrite.deleted_at_us is not None:
            stay = deleted(stay, self._rewrite.deleted_at_us)
        put = numbers[numbers < self._put.num_rows]
        return pa.concat_tables([stay, self._put.take(pa.array(put))]) if len(put) else stay

    def rest(self) -> pa.Table:
        """The rows to put that no file held."""
        return self._put.filter(pa.array(~self.met[: self._put.num_rows]))

    def _changed(self, rows: pa.Table) -> NDArray[np.int64]:
        """For each of *rows* the number of the row of the change that it meets; -1 where there is none."""
        keys = self._index.find(rows)
        hits = np.flatnonzero(keys >= 0)
        places = keys[hits]
        if self._rewrite.counts:
            # The n-th row of a kind met here is the n-th of its kind in the change that none was met for yet.
            hits = hits[np.argsort(places, kind="stable")]
            kinds = keys[hits]
            before = np.concatenate([[0], np.cumsum(self.met[self._order])])
            first = self._starts[kinds] + before[self._starts[kinds + 1]] - before[self._starts[kinds]]
            places = first + np.arange(len(kinds)) - np.searchsorted(kinds, kinds)
            fits = places < self._starts[kinds + 1]
            hits, places = hits[fits], places[fits]
        numbers = np.full(len(keys), -1, np.int64)
        numbers[hits] = self._order[places]
        return numbers


def deleted(rows: pa.Table, at_us: int) -> pa.Table:
    """*rows* of a mirror that keeps deleted ones, all deleted: those that were not, at that time."""
    flag, time = (rows.schema.get_field_index(name) for name in DELETED)
    at = pa.scalar(at_us, rows.schema.field(time).type)
    rows = rows.set_column(time, rows.schema.field(time), pc.if_else(rows.column(flag), rows.column(time), at))
    return rows.set_column(flag, rows.schema.field(flag), pa.repeat(True, rows.num_rows))
