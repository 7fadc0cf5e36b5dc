"""Logs that are damaged, and events that are not read yet: an error that says which and where, never wrong rows."""

from __future__ import annotations

import random
from datetime import datetime
from decimal import Decimal

import pytest

from connectors.readers.binlog.rows.decoder import RangeDecoder
from historian.errors import HistorianError, LogCorrupt, SourceError, UnsupportedEvent
from historian.schema.snapshots import Snapshot
from logs.decoder_lab import decode_events, planned
from logs.log_windows import window_of
from logs.row_events import (
    BEGIN,
    WireType,
    commit,
    event,
    gtid,
    partial_rows_event,
    rows_event,
    snapshot_of,
    table_map,
    wire_decimal,
    wire_integer,
    wire_json,
    wire_temporal,
    wire_text,
)

INT = wire_integer("int", 3, 4, unsigned=False)
TEXT = wire_text(300)


def damaged_outcomes(events: list[bytes], snapshot: Snapshot, *, seed: int, begin: int = 0) -> dict[str, int]:
    """How often 2,000 times some bytes from *begin* on of one of the events gave rows, and how often an error of ours."""
    draw = random.Random(seed)
    outcomes = {"rows": 0, "error": 0}
    for _ in range(2000):
        damaged = list(events)
        which = draw.randrange(len(damaged))
        data = bytearray(damaged[which])
        for _ in range(draw.randint(1, 3)):
            data[draw.randrange(begin, len(data))] = draw.randrange(256)
        damaged[which] = bytes(data)
        try:
            for chunk in decode_events(damaged, snapshot):
                chunk.rows.validate(full=True)
            outcomes["rows"] += 1
        except HistorianError:
            outcomes["error"] += 1
    return outcomes


@pytest.mark.parametrize(
    "inside,name",
    [
        ([event(38, bytes(30))], "XA_PREPARE"),
        ([event(199, bytes(30))], "type 199"),
        ([event(26, bytes(30))], "INCIDENT"),
    ],
)
def test_what_is_not_read_yet_is_an_error_that_names_event_and_place(inside: list[bytes], name: str) -> None:
    events = [gtid(1), BEGIN, *inside]
    with pytest.raises(UnsupportedEvent) as caught:
        decode_events(events, snapshot_of([INT]))
    assert caught.value.what == f"an event that this release does not read: {name}"
    assert caught.value.where == f"binlog.000001:{4 + len(events[0]) + len(events[1])}"


def a_log() -> tuple[list[WireType], list[bytes]]:
    types = [
        INT,
        TEXT,
        wire_decimal(12, 2),
        wire_temporal("datetime", 3),
        wire_text(20, None),
        wire_integer("bigint", 8, 8, unsigned=True),
    ]
    stamp = datetime(2024, 1, 2, 3, 4, 5, 6000)  # noqa: DTZ001 - DATETIME has no zone
    rows = [(i, "text" * i, Decimal(i), stamp, b"raw", i) for i in range(6)]
    inside = [
        table_map(5, types),
        rows_event(30, 5, types, rows),
        rows_event(31, 5, types, rows),
        rows_event(25, 5, types, rows),
    ]
    return types, [*commit(1, *inside), *commit(2, *inside)]


def test_cut_events_are_errors_or_rows_that_were_whole() -> None:
    types, events = a_log()
    snapshot = snapshot_of(types)
    whole = [event for event in events if event[4] in {23, 24, 25, 30, 31, 32}]
    for row_event in whole[:3]:
        ends = []
        for end in range(19, len(row_event)):
            try:
                chunks = decode_events(commit(1, events[2], row_event[:end]), snapshot)
            except LogCorrupt:
                continue
            ends.append(sum(chunk.rows.num_rows for chunk in chunks))
        # Rows are not counted in an event: one that is cut behind a row looks whole, which is what checksums are for.
        assert ends == ([0, 2, 4] if row_event[4] == 31 else [0, 1, 2, 3, 4, 5])


def test_flipped_bytes_are_errors_or_rows_and_never_a_crash() -> None:
    types, events = a_log()
    snapshot = snapshot_of(types)
    outcomes = damaged_outcomes(events, snapshot, seed=5)
    assert outcomes["rows"] > 100
    assert outcomes["error"] > 100


def test_damaged_images_that_lack_columns_are_errors_or_rows_and_never_a_crash() -> None:
    types = [INT, TEXT, wire_json(), INT, wire_json()]
    document = b"\0\1\0\x0d\0\x0b\0\1\0\5\7\0a\0\0"  # {"a": 7}
    diff = b"\0\3$.a\3\5\x09\0"
    inside = [
        table_map(5, types),
        partial_rows_event(30, 5, types, [(0, 2)], [(1, document), (2, None)]),
        partial_rows_event(31, 5, types, [(0,), (1, 3)], [(1,), ("t", 2), (2,), (None, 3)]),
        partial_rows_event(
            39,
            5,
            types,
            [(0, 2), (2, 4)],
            [(1, document), (diff, document), (2, document), (diff, None)],
            options=b"\1\1",
        ),
        partial_rows_event(32, 5, types, [(0, 1)], [(1, "t"), (2, None)]),
    ]
    events = [*commit(1, *inside), *commit(2, *inside)]
    snapshot = snapshot_of(types)
    assert sum(chunk.rows.num_rows for chunk in decode_events(events, snapshot)) == 24
    outcomes = damaged_outcomes(events, snapshot, seed=6, begin=19)
    assert outcomes["rows"] > 100
    assert outcomes["error"] > 100


@pytest.mark.parametrize(
    "events,message",
    [
        ([gtid(1), BEGIN, rows_event(30, 5, [INT], [(1,)])], "a row event before the TABLE_MAP of its table number"),
        ([gtid(1), table_map(5, [INT]), rows_event(30, 5, [INT], [(1,)])], "a row event outside a transaction"),
        ([gtid(1), BEGIN, gtid(2)], "a GTID inside a transaction"),
        ([gtid(1)[:30]], "an event that ends too early"),
        ([gtid(1), BEGIN[:25]], "an event that ends too early"),
        ([gtid(1), BEGIN, table_map(5, [INT])[:21]], "an event that ends too early"),
        (commit(1, table_map(5, [INT]), rows_event(30, 5, [INT, INT], [(1, 1)])), "another number of columns"),
        (commit(1, table_map(5, [INT]), rows_event(30, 5, [INT], [(1,)])[:-1]), "ends behind its event, at column c1"),
    ],
)
def test_damage_is_named_with_its_place(events: list[bytes], message: str) -> None:
    with pytest.raises(LogCorrupt, match=r"binlog.000001:\d+") as caught:
        decode_events(events, snapshot_of([INT]))
    assert message in caught.value.what


def test_a_table_map_that_is_damaged_is_named_with_its_place() -> None:
    events = commit(1, table_map(5, [INT]))
    place = 4 + len(events[0]) + len(events[1])
    charset = b"\x03\x01\x00"  # of the text columns: a number that is no collation
    damaged = [events[2][:-3], events[2] + b"\x04\x09x", events[2][:29] + b"\xff" + events[2][30:]]
    for raw, types in [*((raw, [INT]) for raw in damaged), (table_map(5, [TEXT]) + charset, [TEXT])]:
        with pytest.raises(SourceError) as caught:
            decode_events([*events[:2], raw, events[3]], snapshot_of(types))
        assert (caught.value.where or "").removeprefix("TABLE_MAP at ") == f"binlog.000001:{place}"
        assert "TABLE_MAP" in str(caught.value)


def test_an_event_outside_its_buffer_is_not_read() -> None:
    window = window_of([gtid(1)])
    window.ends[0] += 1
    decoder = RangeDecoder(planned(snapshot_of([INT])), flavor="mysql")
    with pytest.raises(LogCorrupt, match="an event outside its buffer"):
        list(decoder.feed(window))
