"""Decodes windows of binlog events into Arrow chunks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from connectors.readers.binlog.events.crosscheck import mismatch
from connectors.readers.binlog.events.error_location import error_location
from connectors.readers.binlog.events.gtid_sources import source_name
from connectors.readers.binlog.events.layout import event_name
from connectors.readers.binlog.events.table_maps import TableMap, table_map
from connectors.readers.binlog.kernels.log.gtids import SOURCE_KEY_WORDS
from connectors.readers.binlog.kernels.rows.walk import walk
from connectors.readers.binlog.kernels.values import layout as at
from connectors.readers.binlog.rows.bindings import Binding, Bindings
from connectors.readers.binlog.rows.builder import TableBuilder
from connectors.readers.binlog.rows.current_rows import current_rows
from connectors.readers.binlog.rows.generated_columns import generated_from
from connectors.readers.binlog.rows.program import Style, program
from connectors.readers.binlog.transport.window import Committed, Window
from historian.changelog.chunks import Chunk
from historian.changelog.operations import CHUNK_COLUMNS
from historian.changelog.projection import project
from historian.errors import LogCorrupt, SourceError, TableStopped, UnsupportedEvent, ValueUnrepresentable
from historian.plans.plans import PlannedTable, PlannedVersion
from historian.schema.system_versioning import with_hidden_columns

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["NO_ROWS", "RangeDecoder"]

_MAX_SOURCES = 2**15 - 1
_NEVER = 2**63 - 1
_FIRST_IMAGE_BYTES = 4096
_WORD_BYTES = 8
# Of lists, arrow would make arrays with pandas, whose import takes longer than all others.
NO_ROWS = pa.RecordBatch.from_arrays(
    [pa.nulls(0, field.type) for field in CHUNK_COLUMNS], schema=pa.schema(CHUNK_COLUMNS)
)
"""Of a chunk that says why its table stops."""
_JSON_WITH_POINT = 80000  # the first version that prints whole doubles as such


class RangeDecoder:
    """Turns the windows of one range of a log into chunks of the tables asked for.

    A chunk ends where it is full, where its table's version or segment changes. It ends too where all unfinished chunks together
    exceed four full ones, where the file changes, and at the end. None of that depends on how the range is cut into
    windows, so reading a range again gives the same chunks.

    Args:
        tables: with the versions whose rows may occur; rows of other tables are skipped.
        flavor: "mysql" or "mariadb".
        sequence: number of the first chunk.
        as_text: temporal columns are text as the server prints it, zero dates included.
        stops: a value that cannot be represented ends its table's rows with a chunk that says so; else it is raised.
        max_chunk_rows: at least 2.
        max_chunk_bytes: measured as the rows' bytes in the log and what Arrow needs besides.
    """

    def __init__(
        self,
        tables: Sequence[PlannedTable],
        *,
        flavor: str,
        sequence: int = 0,
        as_text: bool = False,
        stops: bool = False,
        max_chunk_rows: int = 128 * 1024,
        max_chunk_bytes: int = 24 * 1024 * 1024,
    ) -> None:
        self._flavor = flavor
        self._style = Style(as_text=as_text)
        self._stops = stops
        self._stopped: set[int] = set()
        self._next = sequence
        self._max_rows = max(2, max_chunk_rows)
        self._file: str | None = None
        self._last_event = ""
        self._written_in: str | None = None
        self._committed: Committed | None = None
        self._bindings = Bindings(tables)
        self._builders: list[TableBuilder | None] = [None] * len(tables)
        self._sources: list[str] = []
        self._source_words = np.zeros((8, SOURCE_KEY_WORDS), np.int64)
        self._tables = np.zeros((max(1, len(tables)), at.TABLE_WORDS), np.int64)
        self._scratch = np.zeros(at.SCRATCH_WORDS + at.RUN_STEP, np.int64)
        self._state = state = np.zeros(at.STATE_WORDS, np.int64)
        state[at.SOURCE] = -1
        state[at.REBIND] = _NEVER
        state[at.MAX_ROWS], state[at.MAX_BYTES], state[at.MAX_OPEN_BYTES] = (
            self._max_rows,
            max_chunk_bytes,
            4 * max_chunk_bytes,
        )
        state[at.TABLES], state[at.SCRATCH] = self._tables.ctypes.data, self._scratch.ctypes.data
        state[at.SOURCES] = self._source_words.ctypes.data
        self._images = np.zeros(0, np.uint8)
        self._publish_maps()

    def feed(self, window: Window) -> Iterator[Chunk]:
        """Decodes a window; yields the chunks that it completes. The window's memory is free when the iterator ends.

        Raises:
            LogCorrupt: lengths that do not fit, with file and offset; nothing outside the window is read.
            UnsupportedEvent: an event that this release does not read.
            TableStopped: a TABLE_MAP that does not fit the schema in force.
            ValueUnrepresentable: a value, or a column type, that Arrow or this release cannot hold.
        """
        yield from self._enter(window)
        if len(window.offsets):
            self._last_event = f"{window.file}:{window.offsets[-1]}"
        state = self._state
        state[at.EVENT] = state[at.AT] = 0
        index = [np.ascontiguousarray(part, np.int64) for part in (window.starts, window.ends, window.offsets)]
        arguments = (
            state.ctypes.data,
            window.buffer.ctypes.data,
            len(window.buffer),
            *(part.ctypes.data for part in index),
            len(window.starts),
        )
        while code := walk(*arguments):
            yield from self._answer(code, window)

    def _enter(self, window: Window) -> Iterator[Chunk]:
        """Takes note of what a window is of: its file, and the XA COMMIT that its events count by."""
        committed, style = (
            window.committed,
            replace(self._style, bare_json=0 < window.server_version < _JSON_WITH_POINT),
        )
        if style != self._style or (committed is None and window.file != self._file):
            yield from self._flush_all()
        if window.file == self._written_in and committed == self._committed:
            return
        self._style, self._committed, self._written_in = style, committed, window.file
        if committed is None:
            self._file = window.file
        else:
            # MariaDB's GTID event of an XA COMMIT opens nothing, and neither it nor MySQL 5.7's says when.
            self._state[at.TRANSACTION] = at.OPEN
            self._state[at.COMMIT_TIME] = self._state[at.COMMIT_TIME] or committed.time_us
        self._rebind(0, 0)

    def finish(self) -> Iterator[Chunk]:
        """Yields the unfinished chunks.

        Raises:
            LogCorrupt: the range ends inside a transaction.
        """
        if self._state[at.TRANSACTION] != at.OUTSIDE:
            raise LogCorrupt(
                "a range that ends inside a transaction",
                where=f"{self._last_event}, transaction {self._position(*self._state[[at.SOURCE, at.SEQUENCE]].tolist())}",
            )
        yield from self._flush_all()

    # ---- what the kernel asks for -----------------------------------------------------------------------------------
    def _answer(self, code: int, window: Window) -> Iterator[Chunk]:
        state = self._state
        slot, column, detail = state[[at.SLOT, at.COLUMN, at.DETAIL]].tolist()
        index = int(state[at.EVENT])
        offset = int(window.offsets[index])
        where = f"{window.file}:{offset}"
        if code == at.NEW_MAP:
            with error_location(lambda: ("TABLE_MAP", where)):
                yield from self._bind(window.event(index), offset, detail)
        elif code == at.NEW_SOURCE:
            self._add_source(state[at.GTID : at.GTID + SOURCE_KEY_WORDS])
        elif code == at.REBOUND:
            self._rebind(offset, detail)
        elif code == at.FLUSH:
            yield from self._flush(slot)
        elif code == at.FLUSH_ALL:
            yield from self._flush_all()
        elif code == at.GROW_ROWS:
            self._builder(slot).grow_rows()
        elif code == at.GROW_DATA:
            self._builder(slot).grow_data(column, detail)
        elif code == at.PARTIAL:
            self._builder(slot).keep_flags()
        elif code == at.GROW_IMAGES:
            size = 2 * max(detail, _FIRST_IMAGE_BYTES)
            # Kernels read words that end with a value, so something stands before the first image.
            self._images = np.zeros(_WORD_BYTES + 2 * size, np.uint8)
            state[at.IMAGES], state[at.IMAGE_BYTES] = self._images.ctypes.data + _WORD_BYTES, size
        else:
            raise self._failure(code, window, where)

    def _failure(self, code: int, window: Window, where: str) -> SourceError:
        state = self._state
        slot, column, detail = state[[at.SLOT, at.COLUMN, at.DETAIL]].tolist()
        if code == at.UNSUPPORTED:
            return UnsupportedEvent(f"an event that this release does not read: {event_name(detail)}", where=where)
        start = window.starts[int(state[at.EVENT])]
        name = event_name(int(window.buffer[start + 4])) if 0 <= start < len(window.buffer) - 4 else "event"
        what = at.WRONG[detail]
        if detail in (at.IMAGE_SHORT, at.VALUE):
            snapshot = self._builder(slot).snapshot
            what += f", at column {snapshot.columns[column].name} of {snapshot.name}"
        return LogCorrupt(f"the log is damaged: {what}", where=f"{name} at {where}")

    def _builder(self, slot: int) -> TableBuilder:
        builder = self._builders[slot]
        assert builder is not None  # noqa: S101 - the kernel knows bound tables only
        return builder

    def _bind(self, event: bytes, offset: int, ordinal: int) -> Iterator[Chunk]:
        """Resolves a TABLE_MAP's table and tells the kernel."""
        described = table_map(event, self._flavor)
        found = self._bindings.resolve(described.table, self._written_in or "", offset, ordinal, self._committed)
        slot = -1
        if found is not None and found.slot not in self._stopped:
            slot = found.slot
            builder = self._builders[slot]
            if (
                builder is None
                or builder.version is not found.version
                or builder.written is not found.written
                or builder.wire != described.columns
            ):
                yield from self._flush(slot)
                try:
                    self._builders[slot] = self._make(found, described, offset)
                except ValueUnrepresentable as error:
                    place = f"{self._file}:{offset}"
                    yield self._stop(slot, found.version, error, place, place)
            slot = -1 if slot in self._stopped else slot
        self._bindings.bind(described.number, event, slot=slot)
        self._publish_maps()

    def _make(self, found: Binding, described: TableMap, offset: int) -> TableBuilder:
        problem = mismatch(found.written, described.columns, self._flavor)
        if problem is not None:
            raise TableStopped(
                "the log's TABLE_MAP does not fit the schema in force",
                where=f"{described.table} at {self._written_in}:{offset}",
                found=problem,
                next_step="`historian heal` captures the table's schema again",
            )
        logged = with_hidden_columns(found.written)
        steps = program(logged, described.columns, style=self._style)
        return TableBuilder(
            words=self._tables[found.slot],
            version=found.version,
            written=found.written,
            snapshot=logged,
            wire=described.columns,
            steps=steps,
            generated_from=generated_from(logged, self._flavor, hidden=len(described.columns) - len(logged.columns)),
            max_rows=self._max_rows,
        )

    def _rebind(self, offset: int, ordinal: int) -> None:
        """Forgets all table numbers, since another version may hold from that event on."""
        self._state[[at.REBIND, at.REBIND_ORDINAL]] = self._bindings.forget(self._written_in or "", offset, ordinal)
        self._publish_maps()

    def _publish_maps(self) -> None:
        self._state[at.MAPS] = self._bindings.entries.ctypes.data
        self._state[at.MAPS_MASK] = len(self._bindings.entries) - 1

    def _add_source(self, words: NDArray[np.int64]) -> None:
        count = len(self._sources)
        if count == _MAX_SOURCES:
            raise SourceError("a range with transactions of too many servers", expected=f"at most {_MAX_SOURCES}")
        if self._flavor == "mariadb":
            self._sources.append(f"{words[0]}-{words[1]}")
        else:
            self._sources.append(source_name(words))
        if count == len(self._source_words):
            self._source_words = np.concatenate([self._source_words, np.zeros_like(self._source_words)])
            self._state[at.SOURCES] = self._source_words.ctypes.data
        self._source_words[count] = words
        self._state[at.SOURCE_COUNT] = count + 1

    # ---- chunks -----------------------------------------------------------------------------------------------------
    def _flush_all(self) -> Iterator[Chunk]:
        for slot in range(len(self._builders)):
            yield from self._flush(slot)

    def _flush(self, slot: int) -> Iterator[Chunk]:
        builder = self._builders[slot]
        if builder is None or builder.rows == 0:
            return
        self._state[at.OPEN_BYTES] -= self._tables[slot, at.BYTES]
        if slot in self._stopped:
            builder.clear()
            return
        first, last = (self._position(*each) for each in builder.first_and_last())
        try:
            rows = current_rows(builder.take(self._position), builder.snapshot)
            if rows.num_rows == 0:
                return
            rows = _delivered(rows, builder, builder.version)
        except ValueUnrepresentable as error:
            builder.clear()
            yield self._stop(slot, builder.version, error, first, last)
        else:
            yield self._chunk(slot, builder.version, rows, first, last)

    def _stop(self, slot: int, version: PlannedVersion, error: ValueUnrepresentable, first: str, last: str) -> Chunk:
        """The chunk that ends a table's rows; raises *error* where it is not to end them."""
        if not self._stops:
            raise error
        self._stopped.add(slot)
        return replace(self._chunk(slot, version, NO_ROWS, first, last), stopped=str(error))

    def _chunk(self, slot: int, version: PlannedVersion, rows: pa.RecordBatch, first: str, last: str) -> Chunk:
        self._next += 1
        return Chunk(
            table_id=self._bindings.table_id(slot),
            version=version.version,
            segment=version.segment,
            sequence=self._next - 1,
            file=self._file or "",
            first_position=first,
            last_position=last,
            sources=tuple(self._sources),
            rows=rows,
        )

    def _position(self, source: int, sequence: int) -> str:
        """A transaction's GTID, or file and offset where it has none."""
        if source < 0:
            return f"{self._file}:{sequence}"
        return f"{self._sources[source]}{'-' if self._flavor == 'mariadb' else ':'}{sequence}"


def _delivered(rows: pa.RecordBatch, builder: TableBuilder, version: PlannedVersion) -> pa.RecordBatch:
    """Rows under the version that they count under."""
    target = builder.written if version.snapshot is None else version.snapshot
    if target is builder.snapshot:
        return rows
    return project(rows, builder.snapshot, target).replace_schema_metadata(rows.schema.metadata)
