"""Compressed events become the plain ones that they stand for, or an error that names their place."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.readers.binlog.rows.decoder import RangeDecoder
from connectors.readers.binlog.transport import unpacking
from connectors.readers.binlog.transport.unpacking import unpacked
from connectors.readers.binlog.transport.window import Window
from historian.changelog.chunks import Chunk
from historian.errors import HistorianError, LogCorrupt, UnsupportedEvent
from historian.plans.plans import PlannedTable, PlannedVersion
from historian.positions.places import Place
from logs.decoder_lab import planned
from logs.log_windows import window_of
from logs.packing import compressed, payload
from logs.row_events import (
    BEGIN,
    XID,
    begin,
    commit,
    event,
    gtid,
    rows_event,
    snapshot_of,
    table_map,
    wire_integer,
    wire_text,
)

INT, TEXT = wire_integer("int", 3, 4, unsigned=False), wire_text(300)
TYPES = [INT, TEXT]
MAP = table_map(5, TYPES)
ROWS = rows_event(30, 5, TYPES, [(1, "a" * 200), (2, None)])
UPDATE = rows_event(31, 5, TYPES, [(1, "a"), (1, "b")])
INSIDE = [BEGIN, MAP, ROWS, UPDATE, XID]
Found = list[tuple[int, bytes]]


def found(windows: list[Window], **options: bool) -> Found:
    """Offset and bytes of each event, the size in its header being the bytes that it has."""
    out: Found = []
    for window in unpacked(windows, **options):
        for begins, ends, offset in zip(window.starts, window.ends, window.offsets, strict=True):
            data = window.buffer[begins:ends].tobytes()
            out.append((int(offset), data[:9] + len(data).to_bytes(4, "little") + data[13:]))
    return out


def rows(events: list[bytes], tables: tuple[PlannedTable, ...] | None = None) -> list[Chunk]:
    decoder = RangeDecoder(tables or planned(snapshot_of(TYPES)), flavor="mysql")
    chunks: list[Chunk] = []
    for window in unpacked([window_of(events)]):
        chunks += decoder.feed(window)
    return [*chunks, *decoder.finish()]


def test_windows_without_packed_events_are_the_same_windows() -> None:
    windows = [window_of(commit(1, MAP, ROWS)), window_of([gtid(2)])]
    assert [one is other for one, other in zip(unpacked(windows), windows, strict=True)] == [True, True]


@pytest.mark.parametrize("how", [0, 255])
def test_a_payload_becomes_its_events_at_its_offset(how: int) -> None:
    first, second = payload(INSIDE, how=how), payload([BEGIN, XID], how=how)
    events = [gtid(1), first, gtid(2), second, *commit(3, MAP)]
    at = np.cumsum([4, *map(len, events)]).tolist()
    expected = [(at[0], events[0]), *((at[1], each) for each in INSIDE), (at[2], events[2])]
    expected += [(at[3], BEGIN), (at[3], XID), *zip(at[4:], events[4:], strict=False)]
    assert found([window_of(events)]) == expected


def test_offset_and_size_of_what_was_packed_lead_behind_its_container() -> None:
    event_of = payload(INSIDE)
    (window,) = unpacked([replace(window_of([gtid(1), event_of], offset=1000), server_version=80031)])
    sizes = [int.from_bytes(window.buffer[at + 9 : at + 13].tobytes(), "little") for at in window.starts.tolist()]
    assert sizes == [len(gtid(1)), *[len(event_of)] * 5]
    assert (window.file, window.server_version) == ("binlog.000001", 80031)


def test_payloads_of_both_kinds_stand_beside_each_other() -> None:
    events = [payload([BEGIN, ROWS]), payload([MAP], how=255), payload([XID]), gtid(1), payload([UPDATE], how=255)]
    assert [data for _, data in found([window_of(events)])] == [BEGIN, ROWS, MAP, XID, gtid(1), UPDATE]


@given(st.data())
def test_any_cut_into_windows_and_pieces_gives_the_same_events(data: st.DataObject) -> None:
    random = Random(data.draw(st.integers()))
    events: list[bytes] = []
    expected: list[bytes] = []
    for number in range(random.randrange(1, 12)):
        inside = [
            rows_event(30, 5, TYPES, [(number, "x" * random.randrange(300))]) for _ in range(random.randrange(1, 9))
        ]
        if random.random() < 0.3:
            events += inside
        else:
            events.append(payload(inside, how=random.choice([0, 255])))
        expected += inside
    step = data.draw(st.integers(1, len(events)))
    windows = [window_of(events[first : first + step]) for first in range(0, len(events), step)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(unpacking, "_PIECE_BYTES", data.draw(st.integers(1, 3000)))
        assert [event for _, event in found(windows)] == expected


@pytest.mark.parametrize("how", [0, 255])
def test_a_large_payload_comes_in_windows_of_bounded_size(how: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unpacking, "_PIECE_BYTES", 4096)
    inside = [rows_event(30, 5, TYPES, [(number, "y" * (number % 250))]) for number in range(500)]
    inside[250] = rows_event(30, 5, TYPES, [(number, "z" * 300) for number in range(60)])
    windows = [window_of([gtid(1), payload(inside, how=how), gtid(2)])]
    sizes = [int((window.ends - window.starts).sum()) for window in unpacked(windows)]
    assert len(sizes) > 10
    assert sorted(sizes)[-2] <= 2 * 4096 < len(inside[250]) <= max(sizes) < len(inside[250]) + 2 * 4096
    assert [event for _, event in found(windows)] == [gtid(1), *inside, gtid(2)]


@pytest.mark.parametrize(
    "plain",
    [
        begin(b"ALTER TABLE t COMMENT 'c'" * 20),
        begin(b"x"),
        *(rows_event(kind, 5, TYPES, [(1, "a" * 250), (2, None)]) for kind in (23, 24, 25, 30, 31, 32)),
        rows_event(30, 5, [INT] * 300, [[number] * 300 for number in range(9)]),
    ],
)
@pytest.mark.parametrize("length_bytes", [0, 4])
def test_compressed_events_of_mariadb_become_plain_ones(plain: bytes, length_bytes: int) -> None:
    events = [gtid(1), compressed(plain, length_bytes=length_bytes), XID]
    at = [4, 4 + len(events[0]), 4 + len(events[0]) + len(events[1])]
    assert found([window_of(events)]) == list(zip(at, [gtid(1), plain, XID], strict=True))


def test_images_stay_compressed_where_nobody_looks_at_them() -> None:
    query = begin(b"DROP TABLE u" * 9)
    events = [compressed(query), compressed(ROWS), compressed(UPDATE)]
    assert [data for _, data in found([window_of(events)], rows=False)] == [query, *events[1:]]
    (window,) = unpacked([window_of(events[1:])], rows=False)
    assert len(window.starts) == 2


def test_rows_of_a_payload_are_decoded_like_plain_ones() -> None:
    plain = rows([gtid(1), *INSIDE, gtid(2), *INSIDE])
    packed = rows([gtid(1), payload(INSIDE), gtid(2), payload(INSIDE, how=255)])
    assert [chunk.rows.to_pylist() for chunk in packed] == [chunk.rows.to_pylist() for chunk in plain]
    assert plain[0].rows.num_rows == 8


def test_a_version_that_begins_inside_a_payload_holds_for_the_events_behind_it() -> None:
    """No server compresses DDL yet; a place inside a payload is exact all the same."""
    old, new = snapshot_of([INT, TEXT]), snapshot_of([INT])
    inside = [
        BEGIN,
        MAP,
        ROWS,
        begin(b"ALTER TABLE t DROP c2"),
        table_map(6, [INT]),
        rows_event(30, 6, [INT], [(7,)]),
        XID,
    ]
    at = 4 + len(gtid(1))
    versions = (
        PlannedVersion(version=1, place=None, edits=(), snapshot=old, segment=0),
        PlannedVersion(
            version=2,
            place=Place(gtid="", file="binlog.000001", offset=at, ordinal=4),
            edits=(),
            snapshot=new,
            segment=0,
        ),
    )
    chunks = rows([gtid(1), payload(inside)], (PlannedTable(table_id=1, versions=versions),))
    assert [(chunk.version, chunk.rows.num_rows) for chunk in chunks] == [(1, 2), (2, 1)]


# ---- damage --------------------------------------------------------------------------------------------------------
WHOLE = payload(INSIDE)
FIELDS = b"\2\1\0\3\3\xfc\xe8\3\1\1\7\0"


@pytest.mark.parametrize(
    "bad",
    [
        event(40, b""),
        event(40, bytes(9)),
        event(40, b"\2"),
        event(40, b"\2\1"),
        event(40, b"\2\xff\0\0"),
        event(40, b"\2\1\xfc\0"),
        event(40, b"\3\x09\xfe\xff\xff\xff\xff\xff\xff\xff\xff\0" + bytes(40)),
        event(40, FIELDS + bytes(7)),
        event(40, FIELDS + bytes(8)),
        event(40, b"\2\1\xff" + FIELDS[3:] + bytes(7)),
        event(40, WHOLE[19:-1]),
        event(40, WHOLE[19:] + b"x"),
        payload(INSIDE, unpacked=len(b"".join(INSIDE)) - 1),
        payload(INSIDE, unpacked=len(b"".join(INSIDE)) + 1),
        payload(INSIDE, unpacked=1 << 40),
        payload(INSIDE, unpacked=1 << 62),
        payload([BEGIN[:-1]]),
        payload([BEGIN, b"\0" * 30]),
        payload([BEGIN[:9] + bytes([18, 0, 0, 0]) + BEGIN[13:]], how=255),
        event(166, bytes(8)),
        event(166, bytes(40)),
        event(169, bytes(8) + b"\xff\xff" + bytes(40)),
        event(169, bytes(8) + b"\2\0\xfe" + b"\xff" * 40),
        event(165, bytes(11) + b"\xff\xff" + bytes(40)),
        compressed(ROWS)[:-1],
        event(169, compressed(ROWS)[19:] + b"x")[:-9],
        event(30 + 139, compressed(ROWS, length_bytes=4)[19:].replace(b"\x84\0\0\0", b"\x84\xff\0\0")),
        event(30 + 139, compressed(ROWS, length_bytes=4)[19:].replace(b"\x84\0\0\0", b"\x84\xff\xff\xff")),
    ],
)
def test_what_does_not_unpack_is_damage_at_its_place(bad: bytes) -> None:
    good = [payload(INSIDE)] if bad[4] == 40 else [compressed(ROWS)]
    bad = bad[:9] + len(bad).to_bytes(4, "little") + bad[13:]
    with pytest.raises(LogCorrupt, match="event cannot be unpacked") as raised:
        found([window_of([*good, bad, *good])])
    assert raised.value.where == f"binlog.000001:{4 + len(good[0])}"
    assert raised.value.found


def test_a_large_payload_that_is_cut_off_or_goes_on_is_damage(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unpacking, "_PIECE_BYTES", 500)
    inside = [rows_event(30, 5, TYPES, [(number, "y" * 200)]) for number in range(50)]
    size = sum(map(len, inside))
    frames = pa.Codec("zstd").compress(b"".join(inside), asbytes=True)
    for bad in (
        payload(inside, unpacked=size + 1),
        payload(inside, unpacked=size - 1),
        payload(inside[:-1], unpacked=size - len(inside[-1]), data=frames),
        payload(inside, data=frames[:-5]),
        payload(inside, data=frames[:8] + b"\xff" * 8 + frames[16:]),
        payload([*inside, bytes(19)]),
    ):
        with pytest.raises(LogCorrupt, match="event cannot be unpacked") as raised:
            found([window_of([gtid(1), bad])])
        assert raised.value.where == f"binlog.000001:{4 + len(gtid(1))}"


def test_an_unknown_algorithm_is_named() -> None:
    for bad in (payload(INSIDE, how=3, data=b"x"), compressed(ROWS, algorithm=2)):
        with pytest.raises(UnsupportedEvent, match="algorithm that this release does not know") as raised:
            found([window_of([gtid(1), bad])])
        assert raised.value.where == f"binlog.000001:{4 + len(gtid(1))}"


def test_flipped_bytes_end_in_an_error_or_in_rows() -> None:
    """Without checksums, which would see them first: never a look outside the buffer, never another kind of error."""
    random = Random(5)
    plain = [gtid(1), payload(INSIDE), gtid(2), BEGIN, MAP, compressed(ROWS), XID]
    raw = b"".join(plain)
    sizes = list(map(len, plain))
    outcomes = {True: 0, False: 0}
    for _ in range(2000):
        damaged = bytearray(raw)
        for _ in range(random.randint(1, 3)):
            damaged[random.randrange(len(raw))] = random.randrange(256)
        events, at = [], 0
        for size in sizes:
            events.append(bytes(damaged[at : at + size]))
            at += size
        try:
            rows(events)
            outcomes[True] += 1
        except HistorianError:
            outcomes[False] += 1
    assert min(outcomes.values()) > 50
