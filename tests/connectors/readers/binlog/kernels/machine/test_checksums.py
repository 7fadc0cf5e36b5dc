"""Checksums of events in a window."""

from __future__ import annotations

import random
import zlib

import numpy as np
import pytest

from connectors.readers.binlog.kernels.log.finding import find_in_file
from connectors.readers.binlog.kernels.machine.checksums import CRC_TABLES, first_wrong_checksum, first_wrong_folded
from connectors.readers.binlog.kernels.machine.folding import CAN_FOLD, WIDE_FROM_BYTES
from connectors.readers.binlog.transport import read_buffer
from connectors.readers.binlog.transport.read_buffer import ReadBuffer
from historian.errors import LogCorrupt
from logs.log_files import placed
from logs.row_events import event


def first_wrong(parts: list[bytes], *, folded: bool, wide_from: int = 1 << 62) -> int:
    data = np.frombuffer(b"".join(part + zlib.crc32(part).to_bytes(4, "little") for part in parts), np.uint8).copy()
    ends = np.cumsum([len(part) + 4 for part in parts]) - 4
    starts = np.concatenate([[0], ends[:-1] + 4])
    arrays = (CRC_TABLES, data, starts.astype(np.int64), ends.astype(np.int64))
    addresses = [array.ctypes.data for array in arrays]
    if folded:
        scratch = np.zeros(2, np.int64)
        return int(first_wrong_folded(*addresses, len(parts), scratch.ctypes.data, wide_from))
    return int(first_wrong_checksum(*addresses, len(parts), 1 << 30))


# On a processor that cannot fold, the tables alone are tried, and used.
WAYS = [False, True] if CAN_FOLD else [False]


@pytest.mark.parametrize("folded", WAYS)
def test_the_sum_is_zlibs_at_any_length(folded: bool) -> None:
    generator = random.Random(7)
    sizes = [*range(700), 4096, 8191, 100_003]
    parts = [generator.randbytes(size) for size in sizes]
    assert first_wrong(parts, folded=folded) == -1
    # On a processor without wide words that is the same once more.
    assert first_wrong(parts, folded=folded, wide_from=WIDE_FROM_BYTES) == -1


def filled_buffer(events: list[bytes]) -> ReadBuffer:
    filled = ReadBuffer("binlog.000001", 4)
    filled.checksum_bytes = 4
    data, offset = b"", 4
    for raw in events:
        data += placed(raw, offset + len(data), checksum=True)
    filled.room()[: len(data)] = data
    filled.fill = len(data)
    assert find_in_file(*filled.arguments()) == 0
    return filled


@pytest.mark.parametrize("folds", WAYS)
@pytest.mark.parametrize("size", [1, 1000, 5000])
def test_any_flipped_bit_is_found_and_placed(size: int, folds: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read_buffer, "CAN_FOLD", folds)
    events = [event(29, bytes([5]) + bytes(8)), event(29, bytes(size)), event(29, b"end")]
    lengths = [len(raw) + 4 for raw in events]
    begin = lengths[0]
    for at in {begin + 1, begin + 19, begin + 18 + size, begin + lengths[1] - 1}:
        filled = filled_buffer(events)
        filled.buffer[at] ^= 0x10
        with pytest.raises(LogCorrupt, match="the checksum of a ROWS_QUERY event is wrong") as raised:
            filled.window()
        assert raised.value.where == f"binlog.000001:{4 + begin}"
        assert "CRC32" in str(raised.value.expected)
        assert raised.value.found != raised.value.expected


def test_without_checksums_nothing_is_checked() -> None:
    filled = filled_buffer([event(29, bytes(50))])
    filled.checksum_bytes = 0
    filled.buffer[30] ^= 1
    assert filled.window() is not None
