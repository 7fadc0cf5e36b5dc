"""The kernels against a decoder in plain Python, on tables of any columns and values, stopped and resumed anywhere."""

from __future__ import annotations

import io
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from connectors.readers.binlog.kernels.log.finding import COUNT
from connectors.readers.binlog.kernels.values import layout
from connectors.readers.binlog.rows import builder
from connectors.readers.binlog.rows.decoder import RangeDecoder
from connectors.readers.binlog.transport.files import FileStream, LogFile
from connectors.readers.binlog.transport.read_buffer import ReadBuffer
from databases.servers import Server
from historian.changelog.chunks import Chunk
from historian.names import TableName
from historian.schema.snapshots import Snapshot
from logs import damage
from logs.decoder_lab import decode_events, planned
from logs.log_files import FORMAT_END, events_of, log_bytes
from logs.log_windows import window_of
from logs.recordings import recorded
from logs.row_events import WireType, commit, rows_event, snapshot_of, table_map, wire_integer, wire_text
from logs.wire_values import wire_columns
from models.plain_decoder import decoded_rows, plain_rows_of

KEY = WireType(type=wire_integer("int", 3, 4, unsigned=False).type, code=3, metadata=b"", encode=bytes)
NAMES = [TableName("db", "t"), TableName("db", "u")]


def plain_rows(events: Sequence[bytes], snapshot: Snapshot) -> list[str]:
    return [repr(row) for row in plain_rows_of(events, snapshot)]


@st.composite
def logs(draw: st.DrawFn) -> tuple[list[Snapshot], list[bytes]]:
    """Two tables of any columns, and a log of both."""
    tables = []
    for name in NAMES:
        drawn = draw(st.lists(wire_columns(), min_size=0, max_size=10))
        types = [KEY, *(each for each, _ in drawn)]
        keys = st.integers(0, 2).map(lambda number: number.to_bytes(4, "little"))
        tables.append((name, types, st.tuples(keys, *(st.none() | values for _, values in drawn))))
    events: list[bytes] = []
    for number in range(1, draw(st.integers(2, 4))):
        inside = [table_map(index, types, name=name) for index, (name, types, _) in enumerate(tables)]
        for kind in draw(st.lists(st.sampled_from([23, 24, 25, 30, 31, 32]), max_size=3)):
            index = draw(st.integers(0, 1))
            _, types, row = tables[index]
            rows = draw(st.lists(row, min_size=2, max_size=4))
            inside.append(rows_event(kind, index, types, rows[: len(rows) // 2 * 2], timestamp=number))
        events += commit(number, *inside)
    return [snapshot_of(types, name=name) for name, types, _ in tables], events


@settings(max_examples=80, deadline=None)
@given(log=logs(), cuts=st.sets(st.integers(1, 20)), max_rows=st.integers(2, 9), max_bytes=st.integers(1, 4000))
def test_rows_are_those_of_the_plain_decoder_wherever_windows_and_chunks_end(
    log: tuple[list[Snapshot], list[bytes]], cuts: set[int], max_rows: int, max_bytes: int
) -> None:
    snapshots, events = log
    whole = decode_events(events, *snapshots)
    pieces = _decode_cut(events, sorted(cuts), snapshots, max_chunk_rows=max_rows, max_chunk_bytes=max_bytes)
    for table_id, snapshot in enumerate(snapshots, 1):
        expected = plain_rows(events, snapshot)
        assert decoded_rows(whole, snapshot, table_id) == expected
        assert decoded_rows(pieces, snapshot, table_id) == expected
    for chunk in [*whole, *pieces]:
        chunk.rows.validate(full=True)


def _decode_cut(events: list[bytes], cuts: list[int], snapshots: list[Snapshot], **options: Any) -> list[Chunk]:
    """What is decoded of windows that end behind these numbers of events."""
    bounds = [0, *(cut for cut in cuts if cut < len(events)), len(events)]
    decoder = RangeDecoder(planned(*snapshots), flavor="mysql", **options)
    chunks: list[Chunk] = []
    offset = 4
    for first, behind in pairwise(bounds):
        chunks += decoder.feed(window_of(events[first:behind], offset=offset))
        offset += sum(map(len, events[first:behind]))
    return [*chunks, *decoder.finish()]


@settings(max_examples=40, deadline=None)
@given(log=logs())
def test_memory_that_is_full_at_every_row_and_value_gives_the_same_rows(
    log: tuple[list[Snapshot], list[bytes]],
) -> None:
    """Each row and each value of varying width makes the kernel stop, ask for room, and go on."""
    snapshots, events = log
    with pytest.MonkeyPatch.context() as patch:
        grown = _just_enough(patch)
        found = decode_events(events, *snapshots)
    assert not found or grown
    for table_id, snapshot in enumerate(snapshots, 1):
        assert decoded_rows(found, snapshot, table_id) == plain_rows(events, snapshot)


def _just_enough(patch: pytest.MonkeyPatch) -> list[str]:
    """Has builders give no more room than is asked for; notes what was asked for."""
    grown: list[str] = []
    grow_rows, grow_data = builder.TableBuilder.grow_rows, builder.TableBuilder.grow_data

    def rows(builder: Any) -> None:
        grow_rows(builder)
        builder._words[layout.CAPACITY] = builder.rows + 2  # an UPDATE's two images
        grown.append("rows")

    def data(builder: Any, column: int, needed: int) -> None:
        grow_data(builder, column, needed)
        builder._table[column, layout.STEP_CAPACITY] = needed + layout.SLACK
        grown.append("data")

    patch.setattr(builder, "_FIRST_ROWS", 2)
    patch.setattr(builder, "_FIRST_BYTES_PER_ROW", 0)
    patch.setattr(builder.TableBuilder, "grow_rows", rows)
    patch.setattr(builder.TableBuilder, "grow_data", data)
    return grown


# ---- bytes that arrive in any pieces ---------------------------------------------------------------------------------
class Pieces(io.BytesIO):
    """A file whose reads end at these offsets."""

    def __init__(self, data: bytes, ends: Sequence[int]) -> None:
        super().__init__(data)
        self.ends = [*ends, len(data)]

    def readinto(self, room: Any) -> int:
        at = self.tell()
        end = next((end for end in self.ends if end > at), at)
        data = self.read(min(end - at, len(room)))
        room[: len(data)] = data
        return len(data)


class Cut:
    """In the place of a file's path."""

    def __init__(self, data: bytes, ends: Sequence[int]) -> None:
        self.data, self.ends = data, ends

    def open(self, *_: Any, **__: Any) -> Pieces:
        return Pieces(self.data, self.ends)


def _decode_pieces(data: bytes, ends: Sequence[int], snapshot: Snapshot) -> tuple[list[Chunk], int]:
    """The chunks, and of how many windows."""
    file = LogFile(name="binlog.000001", path=cast("Path", Cut(data, ends)), number=1)
    decoder = RangeDecoder(planned(snapshot), flavor="mysql")
    chunks: list[Chunk] = []
    count = 0
    for window in FileStream([file], FORMAT_END).windows():
        chunks += decoder.feed(window)
        count += 1
    return [*chunks, *decoder.finish()], count


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """A window is made after each read, of the whole events that it brought."""
    monkeypatch.setattr(ReadBuffer, "is_full", lambda read_buffer: bool(read_buffer.state[COUNT]))


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("checksum", [True, False])
def test_windows_that_end_at_any_byte_give_the_same_rows(*, checksum: bool) -> None:
    types = [wire_integer("int", 3, 4, unsigned=False), wire_text(300)]
    rows = [(number, "x" * number) for number in range(4)]
    inside = [table_map(5, types), rows_event(30, 5, types, rows), rows_event(31, 5, types, rows)]
    events = [*commit(1, *inside), *commit(2, *inside)]
    snapshot = snapshot_of(types)
    expected = plain_rows(events, snapshot)
    assert len(expected) == 16
    data = log_bytes(events, checksum=checksum)
    windows = set()
    for end in range(FORMAT_END, len(data)):
        chunks, count = _decode_pieces(data, [end], snapshot)
        assert decoded_rows(chunks, snapshot) == expected, end
        windows.add(count)
    assert windows == {1, 2}
    chunks, count = _decode_pieces(data, range(len(data)), snapshot)
    assert (decoded_rows(chunks, snapshot), count) == (expected, len(events))


# ---- real logs -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("checksum", [True, False], ids=["crc32", "none"])
def test_rows_of_a_servers_file_are_those_of_the_plain_decoder(
    server: Server, tmp_path: Path, *, checksum: bool
) -> None:
    recording = recorded(server, checksum=checksum)
    (table,) = recording.tables
    snapshot = table.versions[-1].snapshot
    assert snapshot is not None
    path = tmp_path / recording.file
    path.write_bytes(recording.data)

    found = damage.chunks(path, recording)

    events = [event[: len(event) - 4 * checksum] for event in events_of(recording.data)]
    expected = plain_rows(events, snapshot)
    assert decoded_rows(found, snapshot, table.table_id) == expected
    assert len(expected) > 20
