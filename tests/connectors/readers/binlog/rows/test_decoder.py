"""The decoder against an encoder in plain Python: values, windows and chunks cut anywhere, tables and bindings."""

from __future__ import annotations

import random
from datetime import date, datetime
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from connectors.readers.binlog.rows import builder
from historian.errors import TableStopped, ValueUnrepresentable
from historian.names import TableName
from historian.schema.snapshots import ColumnType
from logs.decoder_lab import changes, decode_events
from logs.row_events import (
    WireType,
    commit,
    rows_event,
    snapshot_of,
    table_map,
    wire_decimal,
    wire_integer,
    wire_temporal,
    wire_text,
)

INT = wire_integer("int", 3, 4, unsigned=False)
TEXT = wire_text(300)
UTC = ZoneInfo("UTC")


# ---- values ----------------------------------------------------------------------------------------------------------
@st.composite
def columns(draw: st.DrawFn) -> tuple[WireType, st.SearchStrategy[Any]]:
    kind = draw(st.sampled_from(["integer", "decimal", "text", "bytes", "date", "datetime", "timestamp", "time"]))
    digits = draw(st.integers(0, 6))
    us = st.integers(0, 10**digits - 1).map(lambda part: part * 10 ** (6 - digits))
    if kind == "integer":
        name, code, size = draw(
            st.sampled_from(
                [("tinyint", 1, 1), ("smallint", 2, 2), ("mediumint", 9, 3), ("int", 3, 4), ("bigint", 8, 8)]
            )
        )
        unsigned = draw(st.booleans())
        low, high = (0, 256**size - 1) if unsigned else (-(256**size) // 2, 256**size // 2 - 1)
        values: st.SearchStrategy[Any] = st.integers(low, high)
        if unsigned and size == 8:
            values = values.map(Decimal)
        return wire_integer(name, code, size, unsigned=unsigned), values
    if kind == "decimal":
        precision = draw(st.integers(1, 38))
        scale = draw(st.integers(0, min(30, precision)))
        most = 10**precision - 1
        texts = st.integers(-most, most).map(lambda n: Decimal((int(n < 0), tuple(map(int, str(abs(n)))), -scale)))
        return wire_decimal(precision, scale), texts.map(lambda n: n or abs(n))
    if kind in {"text", "bytes"}:
        longest = draw(st.sampled_from([20, 255, 256, 1000]))
        if kind == "bytes":
            return wire_text(longest, None), st.binary(max_size=longest)
        return wire_text(longest), st.text(max_size=longest)
    if kind == "date":
        return wire_temporal("date"), st.dates()
    if kind == "time":
        seconds = st.integers(-(838 * 3600 + 3599), 838 * 3600 + 3599)
        times = st.builds(lambda s, part: s * 10**6 + (part if s >= 0 else -part), seconds, us)
        return wire_temporal("time", digits), times
    stamps = st.datetimes() if kind == "datetime" else st.datetimes(datetime(1970, 1, 2), datetime(2038, 1, 1))  # noqa: DTZ001
    exact = st.builds(lambda stamp, part: stamp.replace(microsecond=part), stamps, us)
    if kind == "timestamp":
        exact = exact.map(lambda stamp: stamp.replace(tzinfo=UTC))
    return wire_temporal(kind, digits), exact


@st.composite
def logs(draw: st.DrawFn) -> tuple[list[WireType], list[bytes], list[tuple[Any, ...]]]:
    """A log of one table: its column types, its events, and the changes that they say."""
    drawn = draw(st.lists(columns(), min_size=1, max_size=20))
    types = [INT, *(each for each, _ in drawn)]
    row = st.tuples(st.integers(0, 3), *(st.none() | values for _, values in drawn))
    events: list[bytes] = []
    expected: list[tuple[Any, ...]] = []
    for number in range(1, draw(st.integers(1, 4))):
        inside = [table_map(number % 2, types)]
        for kind in draw(st.lists(st.sampled_from([23, 24, 25, 30, 31, 32]), max_size=3)):
            rows = draw(st.lists(row, min_size=1, max_size=4))
            if kind in {24, 31}:
                rows = rows[: len(rows) // 2 * 2]
                for before, after in zip(rows[::2], rows[1::2], strict=True):
                    signs = ("-C", "+C") if before[0] == after[0] else ("-R", "+A")
                    expected += [(signs[0], *before), (signs[1], *after)]
            else:
                expected += [("+A" if kind in {23, 30} else "-R", *each) for each in rows]
            inside.append(rows_event(kind, number % 2, types, rows))
        events += commit(number, *inside)
    return types, events, expected


@settings(max_examples=80, deadline=None)
@given(log=logs(), per_window=st.integers(1, 8), max_rows=st.integers(2, 9), max_bytes=st.integers(1, 4000))
def test_rows_are_what_was_written_wherever_windows_and_chunks_end(
    log: tuple[list[WireType], list[bytes], list[tuple[Any, ...]]], per_window: int, max_rows: int, max_bytes: int
) -> None:
    types, events, expected = log
    snapshot = snapshot_of(types)
    limits = {"max_chunk_rows": max_rows, "max_chunk_bytes": max_bytes}
    chunks = decode_events(events, snapshot, per_window=per_window, **limits) if events else []
    assert list(changes(chunks, snapshot)) == expected
    assert chunks == (decode_events(events, snapshot, **limits) if events else [])
    for chunk in chunks:
        assert chunk.rows.validate(full=True) is None
        assert chunk.rows.num_rows <= max_rows
        signs = [row[0] for row in changes([chunk], snapshot)]
        assert all(b == "+C" for a, b in zip(signs, [*signs[1:], ""], strict=True) if a == "-C")


def test_memory_grown_at_every_row_gives_the_same_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(builder, "_FIRST_ROWS", 1)
    monkeypatch.setattr(builder, "_FIRST_BYTES_PER_ROW", 0)
    types = [INT, TEXT, TEXT]
    rows = [(i, "x" * (i % 50), None if i % 3 else "é" * i) for i in range(140)]
    events = commit(1, table_map(9, types), rows_event(30, 9, types, rows[:70]), rows_event(31, 9, types, rows[70:]))
    wanted = [("+A", *row) for row in rows[:70]]
    for before, after in zip(rows[70::2], rows[71::2], strict=True):
        wanted += [("-R", *before), ("+A", *after)]
    assert list(changes(decode_events(events, snapshot_of(types)), snapshot_of(types))) == wanted


@pytest.mark.parametrize("count", [1, 7, 8, 9, 63, 64, 65, 250, 251, 4096])
def test_tables_of_any_width(count: int) -> None:
    types = [INT] * count
    draw = random.Random(count)
    rows = [tuple(None if i and draw.random() < 0.3 else draw.randint(-9, 9) for i in range(count)) for _ in range(5)]
    events = commit(1, table_map(5, types), rows_event(30, 5, types, rows))
    assert list(changes(decode_events(events, snapshot_of(types)), snapshot_of(types))) == [
        ("+A", *row) for row in rows
    ]


def test_dates_without_an_arrow_value_are_null_and_counted() -> None:
    types = [INT, wire_temporal("date"), wire_temporal("datetime"), wire_temporal("timestamp")]
    zero = WireType(type=types[1].type, code=10, metadata=b"", encode=lambda _: bytes(3))
    zeros = [INT, zero, types[2], WireType(type=types[3].type, code=17, metadata=b"\0", encode=lambda _: bytes(4))]
    moment = datetime(2024, 2, 29, 1, 2, 3)  # noqa: DTZ001 - DATETIME has no zone
    rows = [(1, None, None, None), (2, date(2024, 2, 29), moment, moment.replace(tzinfo=UTC))]
    events = commit(
        1,
        table_map(5, types),
        rows_event(30, 5, types, rows),
        rows_event(30, 5, zeros, [(3, 0, moment, 0), (4, 0, None, 0)]),
    )
    (chunk,) = decode_events(events, snapshot_of(types))
    found = [row[1:] for row in changes([chunk], snapshot_of(types))]
    assert found == [*rows, (3, None, moment, None), (4, None, None, None)]
    assert chunk.rows.schema.metadata == {b"nulled": b'{"h2": 2, "h4": 2}'}


def test_text_that_is_no_utf8_is_an_error_that_names_column_and_transaction() -> None:
    types = [INT, TEXT]
    raw = [INT, wire_text(300, None)]
    events = commit(41, table_map(5, types), rows_event(30, 5, raw, [(1, b"fine"), (2, b"\xe9t\xe9")]))
    with pytest.raises(ValueUnrepresentable) as caught:
        decode_events(events, snapshot_of(types))
    assert caught.value.where == ("db.t.c2, row 1 of its chunk, transaction 00010203-0405-0607-0809-0a0b0c0d0e0f:41")
    assert caught.value.found == "bytes e9 at byte 0 of the value"


# ---- tables ----------------------------------------------------------------------------------------------------------
def test_table_numbers_may_be_taken_over_by_other_tables() -> None:
    names = [TableName("db", f"t{i}") for i in range(3)]
    snapshots = [snapshot_of([INT], name=name) for name in names]
    unwanted = TableName("db", "unwanted")
    events: list[bytes] = []
    expected: dict[int, list[tuple[Any, ...]]] = {1: [], 2: [], 3: []}
    for number in range(1, 300):
        chosen = number % 4
        name = unwanted if chosen == 3 else names[chosen]
        events += commit(
            number, table_map(number % 97, [INT], name=name), rows_event(30, number % 97, [INT], [(number,)])
        )
        if chosen < 3:
            expected[chosen + 1].append(("+A", number))
    chunks = decode_events(events, *snapshots)
    assert {i: list(changes(chunks, snapshot, i)) for i, snapshot in enumerate(snapshots, 1)} == expected
    assert [chunk.sequence for chunk in chunks] == [0, 1, 2]


def test_all_chunks_are_given_up_when_together_they_are_too_large() -> None:
    names = [TableName("db", f"t{i}") for i in range(50)]
    snapshots = [snapshot_of([INT, TEXT], name=name) for name in names]
    events: list[bytes] = []
    for number in range(500):
        name = names[number % 50]
        row = rows_event(30, number % 50, [INT, TEXT], [(number, "x" * 250)])
        events += commit(number + 1, table_map(number % 50, [INT, TEXT], name=name), row)
    chunks = decode_events(events, *snapshots, max_chunk_bytes=10_000, sequence=17)
    # Four full chunks are 40,000 bytes, a row is about 300: at most about 140 rows are kept.
    sizes = [chunk.rows.num_rows for chunk in chunks]
    assert (sum(sizes), max(sizes)) == (500, 3)
    assert [chunk.sequence for chunk in chunks] == list(range(17, 17 + len(chunks)))
    for i, snapshot in enumerate(snapshots, 1):
        assert [row[1] for row in changes(chunks, snapshot, i)] == list(range(i - 1, 500, 50))


@pytest.mark.parametrize(
    "logged", [[INT], [INT, INT, INT], [INT, TEXT], [INT, wire_integer("bigint", 8, 8, unsigned=False)]]
)
def test_a_table_map_that_does_not_fit_stops_the_table(logged: list[WireType]) -> None:
    events = commit(1, table_map(5, logged), rows_event(30, 5, logged, []))
    with pytest.raises(TableStopped, match=r"TABLE_MAP does not fit .*db.t at binlog.000001:\d+"):
        decode_events(events, snapshot_of([INT, INT]))


def test_a_column_type_of_another_server_is_no_fit() -> None:
    types = [WireType(type=ColumnType(name="xmltype"), code=252, metadata=b"\4", encode=None)]
    snapshot = snapshot_of(types)
    with pytest.raises(TableStopped, match=r"db\.t"):
        decode_events(commit(1, table_map(5, types)), snapshot)


def test_keys_compare_as_stored_bytes() -> None:
    types = [wire_text(20), INT, wire_text(20)]
    pairs = [(("a", 1, "x"), ("A", 1, "x")), (("a", 1, "x"), ("a", 2, "x")), (("a", 1, "x"), ("a", 1, "y"))]
    rows = [row for pair in pairs for row in pair]
    events = commit(1, table_map(5, types), rows_event(31, 5, types, rows))
    keyed, keyless = snapshot_of(types, key=2), snapshot_of(types, key=0)
    assert [row[0] for row in changes(decode_events(events, keyed), keyed)] == ["-R", "+A", "-R", "+A", "-C", "+C"]
    assert [row[0] for row in changes(decode_events(events, keyless), keyless)] == ["-C", "+C"] * 3
