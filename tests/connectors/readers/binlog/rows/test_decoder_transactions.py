"""Which transaction, at which place, the decoder says that a row is of."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from historian.changelog.chunks import Chunk
from historian.errors import LogCorrupt
from logs.decoder_lab import decode_events
from logs.row_events import BEGIN, begin, event, gtid, rows_event, snapshot_of, table_map, wire_integer, wire_text

INT = wire_integer("int", 3, 4, unsigned=False)
TEXT = wire_text(300)


def system(chunk: Chunk, *names: str) -> list[tuple[Any, ...]]:
    return list(zip(*(chunk.rows.column(name).to_pylist() for name in names), strict=True))


def test_rows_carry_transaction_ordinal_and_commit_time() -> None:
    other = bytes(reversed(range(16)))
    write = [table_map(5, [INT]), rows_event(30, 5, [INT], [(1,), (2,)], timestamp=50)]
    events = [
        *(gtid(7, committed_us=1234), BEGIN, *write, begin(b"SAVEPOINT `a`"), *write, begin(b"ROLLBACK TO `a`")),
        *(*write, event(16, bytes(8))),
        *(gtid(8, committed_us=99, original_us=55, uuid=other), BEGIN, *write, begin(b"COMMIT")),
        *(gtid(0, kind=34), BEGIN, event(29, b"\5query"), *write, event(16, bytes(8))),
    ]
    (chunk,) = decode_events(events, snapshot_of([INT]))
    offset = 4 + sum(map(len, events[:16]))
    us = [time // timedelta(microseconds=1) for time in _since_epoch(chunk)]
    found = [(*row, time) for row, time in zip(system(chunk, "source", "sequence", "ordinal"), us, strict=True)]
    first = [(0, 7, ordinal, 1234) for ordinal in (3, 3, 6, 6, 9, 9)]
    last = [(-1, offset, 4, 50_000_000)] * 2
    assert found == [*first, (1, 8, 3, 55), (1, 8, 3, 55), *last]
    assert chunk.sources == ("00010203-0405-0607-0809-0a0b0c0d0e0f", "0f0e0d0c-0b0a-0908-0706-050403020100")
    assert (chunk.first_position, chunk.last_position) == (f"{chunk.sources[0]}:7", f"binlog.000001:{offset}")


def _since_epoch(chunk: Chunk) -> list[timedelta]:
    return [time - datetime(1970, 1, 1, tzinfo=timezone.utc) for time in chunk.rows.column("event_time").to_pylist()]


@pytest.mark.parametrize("open_events", [[gtid(1)], [gtid(1), BEGIN], [gtid(1), BEGIN, begin(b"ROLLBACK TO `a`")]])
def test_a_range_that_ends_inside_a_transaction_is_corrupt(open_events: list[bytes]) -> None:
    with pytest.raises(LogCorrupt, match=r"ends inside a transaction \(binlog\.\d+:\d+, transaction "):
        decode_events(open_events, snapshot_of([INT]))


@pytest.mark.parametrize(
    "closed",
    [
        [gtid(1), BEGIN, begin(b"COMMIT")],
        [gtid(1), BEGIN, begin(b"ROLLBACK")],
        [gtid(1), begin(b"CREATE TABLE x (a INT)")],
        [BEGIN, event(16, bytes(8))],
        [event(27, b"heartbeat"), event(4, bytes(8) + b"binlog.000002"), event(35, bytes(8)), event(3, b"")],
        [gtid(1), BEGIN, event(199, b"unknown but ignorable", flags=0x80), event(16, bytes(8))],
    ],
)
def test_a_range_may_end_behind(closed: list[bytes]) -> None:
    assert decode_events(closed, snapshot_of([INT])) == []
