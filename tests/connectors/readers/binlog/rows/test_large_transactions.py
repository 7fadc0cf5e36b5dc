"""Transactions far larger than a window are streamed: what they take does not grow with them."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from connectors.readers.base import Bound, Scanned
from connectors.readers.binlog.files_reader import BinlogFilesReader
from connectors.readers.binlog.rows.decoder import RangeDecoder
from connectors.readers.binlog.transport import read_buffer, unpacking
from logs.binlog_lab import range_of
from logs.decoder_lab import planned
from logs.log_files import previous_gtids, write_log
from logs.packing import payload
from logs.row_events import XID, begin, event, gtid, rows_event, snapshot_of, table_map, wire_integer, wire_text

WINDOW_BYTES = 256 << 10
EVENTS, ROWS_AN_EVENT, TEXT_BYTES = 1500, 4, 8000
TRANSACTION_BYTES = EVENTS * ROWS_AN_EVENT * TEXT_BYTES
MOST_BYTES = 8 << 20
TYPES = [wire_integer("int", 3, 4, unsigned=False), wire_text(16000)]

XA = b"X'78',X'',1"
XA_PREPARE = event(38, bytes([0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0]) + b"x")


def rows() -> list[bytes]:
    write = rows_event(30, 1, TYPES, [(number, "x" * TEXT_BYTES) for number in range(ROWS_AN_EVENT)])
    return [table_map(1, TYPES), *[write] * EVENTS]


FORMS: dict[str, Callable[[], list[bytes]]] = {
    "plain": lambda: [gtid(1), begin(), *rows(), XID],
    "compressed": lambda: [gtid(1), payload([begin(), *rows(), XID])],
    "prepared": lambda: [
        *[gtid(1), begin(b"XA START " + XA), *rows(), begin(b"XA END " + XA), XA_PREPARE],
        *[gtid(2), begin(b"XA COMMIT " + XA)],
    ],
}


@pytest.mark.parametrize("form", FORMS)
def test_memory_does_not_grow_with_a_transaction(form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert TRANSACTION_BYTES > 100 * WINDOW_BYTES
    assert TRANSACTION_BYTES > 5 * MOST_BYTES
    write_log(tmp_path, 1, [previous_gtids(), *FORMS[form]()])
    monkeypatch.setattr(read_buffer, "WINDOW_BYTES", WINDOW_BYTES)
    monkeypatch.setattr(read_buffer, "FRAME_BYTES", WINDOW_BYTES + (WINDOW_BYTES >> 1))
    monkeypatch.setattr(read_buffer, "_EVENTS", 1 << 12)
    monkeypatch.setattr(unpacking, "_PIECE_BYTES", WINDOW_BYTES)
    monkeypatch.setitem(RangeDecoder.__init__.__kwdefaults__, "max_chunk_bytes", 1 << 20)
    reader = BinlogFilesReader([tmp_path])
    scan(reader)  # compiles what it needs
    gc.collect()
    arrow_before, most_arrow, count, chunks = pa.total_allocated_bytes(), 0, 0, 0
    tracemalloc.start()
    try:
        end = scan(reader)[-1]
        assert isinstance(end, Bound)
        for chunk in reader.read(range_of(reader.start(), end.position), planned(snapshot_of(TYPES))):
            count, chunks = count + chunk.rows.num_rows, chunks + 1
            most_arrow = max(most_arrow, pa.total_allocated_bytes() - arrow_before)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (count, chunks > 10) == (EVENTS * ROWS_AN_EVENT, True)
    assert most < MOST_BYTES
    assert most_arrow < MOST_BYTES


def scan(reader: BinlogFilesReader) -> list[Scanned]:
    return list(reader.scan(reader.start()))
