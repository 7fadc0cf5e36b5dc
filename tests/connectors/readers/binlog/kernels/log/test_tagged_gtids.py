"""Tagged GTIDs: events, sets, dumps and positions, by hand and on a real server."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.readers.base import Bound, Statement
from connectors.readers.binlog.events.gtid_sources import event_gtid, source_name, source_words
from connectors.readers.binlog.events.layout import FormatDescription, previous_gtids
from connectors.readers.binlog.kernels.log.gtids import GTID_WORDS, NUMBER, TIME, mysql_gtid
from connectors.readers.binlog.rows.decoder import RangeDecoder
from connectors.readers.binlog.scan.scanner import Scanner
from connectors.readers.binlog.transport.dump import encoded_gtids
from connectors.readers.binlog.transport.membership import members
from databases.servers import Server
from historian.changelog.operations import physical_name
from historian.errors import HistorianError, LogCorrupt
from historian.positions import GtidSet, LogPosition
from logs.binlog_lab import (
    bounds_of,
    events,
    files_reader,
    live_reader,
    only_gtids,
    only_place,
    planned_tables,
    range_of,
    run,
    scanned,
)
from logs.decoder_lab import changes, decode_events, planned
from logs.log_windows import window_of
from logs.row_events import BEGIN, XID, event, gtid, rows_event, snapshot_of, table_map, wire_integer
from logs.tagged import tagged_gtid, unsigned

SOURCE = "00010203-0405-0607-0809-0a0b0c0d0e0f"
INT = wire_integer("int", 3, 4, unsigned=False)
MYSQL = FormatDescription(server_version="9.7.4", version=90704, flavor="mysql", checksum=False, in_use=False)
MAP = table_map(1, [INT])
# GTID_TAGGED of MySQL 9.7.4, the second with the longest tag and a large number.
RECORDED = {
    "short": """0274000000 02ed029d02d903dc9503fd0222c5037d02290204f103000000 0204 040606746167081c0a200c7f86bebef7ca60
        06106d041283120b""",
    "long": """02b6000000 02a902a902a902a9020000000000000000000000fd03 04ff0000000000000080 06406162636465666768696a6b6c
        6d6e6f707172737475767778797a5f3132333435 081c0a240c7f71c1bef7ca600610f1041283120b""",
}


def words_of(raw: bytes) -> np.ndarray[Any, np.dtype[np.int64]]:
    words = np.full(GTID_WORDS, -1, np.int64)
    data = np.frombuffer(raw, np.uint8)
    assert mysql_gtid(data.ctypes.data + 19, data.ctypes.data + len(raw), raw[4], words.ctypes.data)
    return words


@pytest.mark.parametrize(
    "recorded, source, number, time_us",
    [
        (RECORDED["short"], "bba7f66e-e5bf-11f1-9f8a-02fc00000001:tag", 1, 0x660CAF7BEBE86),
        (
            RECORDED["long"],
            "aaaaaaaa-0000-0000-0000-0000000000ff:abcdefghijklmnopqrstuvwxyz_12345",
            1 << 62,
            0x660CAF7BEC171,
        ),
    ],
)
def test_events_of_a_server_are_read(recorded: str, source: str, number: int, time_us: int) -> None:
    raw = event(42, bytes.fromhex(recorded))
    assert event_gtid(raw, "here") == (source, number)
    assert words_of(raw)[TIME] == time_us


@given(
    number=st.integers(1, 2**63 - 2),
    tag=st.from_regex(r"[a-z_][a-z0-9_]{0,31}", fullmatch=True),
    uuid=st.binary(min_size=16, max_size=16),
    committed_us=st.integers(0, 2**55 - 1),
    original_us=st.integers(0, 2**55 - 1),
    unknown=st.binary(max_size=9),
)
def test_every_gtid_comes_back(
    number: int, tag: str, uuid: bytes, committed_us: int, original_us: int, unknown: bytes
) -> None:
    raw = tagged_gtid(
        number,
        tag=tag,
        uuid=uuid,
        committed_us=committed_us,
        original_us=original_us,
        more=unsigned(16) + unknown,  # a field of a later server
    )
    words = words_of(raw)
    assert (words[NUMBER], words[TIME]) == (number, original_us or committed_us)
    assert source_words(source_name(words)) == tuple(words[:6].tolist())
    assert event_gtid(raw, "here") == (source_name(words), number)
    assert source_name(words).partition(":")[2] == tag


def test_an_event_cut_anywhere_is_damage() -> None:
    raw = tagged_gtid(5, tag="a_tag", committed_us=1)
    snapshot = snapshot_of([INT])
    for length in range(19, len(raw)):
        short = raw[:length]
        short = short[:9] + len(short).to_bytes(4, "little") + short[13:]
        outcomes = []
        for act in (
            lambda short=short: event_gtid(short, "here")[1],
            lambda short=short: list(Scanner(position("")).feed(window_of([short, BEGIN]), MYSQL)),
            lambda short=short: decode_events([short, BEGIN, MAP, rows_event(30, 1, [INT], [(1,)]), XID], snapshot),
        ):
            try:
                act()
                outcomes.append(True)
            except LogCorrupt:
                outcomes.append(False)
        assert outcomes == [False] * 3


def test_flipped_bytes_end_in_an_error_or_in_a_gtid() -> None:
    random = Random(7)
    for _ in range(2000):
        raw = bytearray(
            tagged_gtid(random.randrange(1, 1 << 40), tag="t" * random.randint(1, 32), committed_us=1 << 50)
        )
        for _ in range(random.randint(1, 3)):
            raw[random.randrange(19, len(raw))] = random.randrange(256)
        with contextlib.suppress(HistorianError):
            decode_events([bytes(raw), BEGIN, MAP, rows_event(30, 1, [INT], [(1,)]), XID], snapshot_of([INT]))


def position(gtids: str) -> LogPosition:
    return LogPosition(flavor="mysql", gtids=gtids, file="binlog.000001", offset=4)


def log(*gtids: bytes) -> list[bytes]:
    return [part for each in gtids for part in (each, BEGIN, MAP, rows_event(30, 1, [INT], [(1,)]), XID)]


MIXED = (
    gtid(1),
    tagged_gtid(1),
    tagged_gtid(1, tag="other"),
    gtid(2),
    tagged_gtid(2),
    tagged_gtid(3, uuid=bytes(16)),
    tagged_gtid(7),
)
ZERO = "00000000-0000-0000-0000-000000000000"


def test_the_scan_counts_each_tag_for_itself() -> None:
    scanner = Scanner(position(f"{SOURCE}:other:5"))
    list(scanner.feed(window_of(log(*MIXED)), MYSQL))
    assert scanner.position.gtids == f"{ZERO}:tag:3,{SOURCE}:1-2:other:1:5:tag:1-2:7"


def test_what_was_read_before_is_passed_over_by_its_tag() -> None:
    scanner = Scanner(position(f"{SOURCE}:2:tag:1-2"), by_gtid=True)
    found = [*scanner.feed(window_of(log(*MIXED)), MYSQL), *scanner.finish()]
    assert [(item.skipped, item.position.gtids) for item in found if isinstance(item, Bound)] == [
        (False, f"{SOURCE}:1-2:tag:1-2"),
        (True, f"{SOURCE}:1-2:tag:1-2"),
        (False, f"{SOURCE}:1-2:other:1:tag:1-2"),
        (True, f"{SOURCE}:1-2:other:1:tag:1-2"),
        (False, f"{ZERO}:tag:3,{SOURCE}:1-2:other:1:tag:1-2:7"),
    ]


def test_a_scan_ends_where_a_tagged_set_is_covered() -> None:
    until = replace(position(f"{SOURCE}:1-2:tag:1"), file="", offset=0)
    scanner = Scanner(position(""), until=until)
    found = list(scanner.feed(window_of(log(*MIXED)), MYSQL))
    assert scanner.is_finished()
    assert [item.position.gtids for item in found if isinstance(item, Bound)][-1] == f"{SOURCE}:1-2:other:1:tag:1"


def test_members_are_told_by_their_tag() -> None:
    windows = [window_of(log(*MIXED))]
    kept = members(windows, after=f"{SOURCE}:1:tag:1", upto=f"{SOURCE}:1:tag:1-2:7:other:1", flavor="mysql")
    found = [
        window.buffer[at:end].tobytes()
        for window in kept
        for at, end in zip(window.starts.tolist(), window.ends.tolist(), strict=True)
    ]
    assert [event_gtid(raw, "here") for raw in found if raw[4] in (33, 42)] == [
        (f"{SOURCE}:other", 1),
        (f"{SOURCE}:tag", 2),
        (f"{SOURCE}:tag", 7),
    ]


def test_rows_know_the_source_with_its_tag() -> None:
    (chunk,) = decode_events(log(*MIXED, *(tagged_gtid(1, tag=f"t{n}") for n in range(20))), snapshot_of([INT]))
    pairs = zip(chunk.rows.column("source").to_pylist(), chunk.rows.column("sequence").to_pylist(), strict=True)
    assert [f"{chunk.sources[source].replace(SOURCE, 'S')}:{number}" for source, number in pairs][:6] == [
        "S:1",
        "S:tag:1",
        "S:other:1",
        "S:2",
        "S:tag:2",
        f"{ZERO}:tag:3",
    ]
    assert chunk.last_position == f"{SOURCE}:t19:1"
    assert RangeDecoder(planned(snapshot_of([INT])), flavor="mysql") is not None


sets = st.dictionaries(
    st.tuples(st.binary(min_size=16, max_size=16).map(bytes.hex), st.sampled_from(["", "a", "b_1", "z" * 32])),
    st.lists(st.tuples(st.integers(1, 99), st.integers(1, 99)).map(sorted).map(tuple), min_size=1),
    max_size=6,
)


@given(sets)
def test_sets_come_back_from_the_form_of_dumps(found: dict[tuple[str, str], list[tuple[int, int]]]) -> None:
    def name(uuid: str, tag: str) -> str:
        text = f"{uuid[:8]}-{uuid[8:12]}-{uuid[12:16]}-{uuid[16:20]}-{uuid[20:]}"
        return f"{text}:{tag}" if tag else text

    gtids = GtidSet.of({name(*key): ranges for key, ranges in found.items()})
    assert previous_gtids(event(35, encoded_gtids(gtids))) == gtids
    assert GtidSet.parse(str(gtids)) == gtids


# ---- a real server -------------------------------------------------------------------------------------------------
OTHER = "aaaaaaaa-0000-0000-0000-0000000000ff"


def test_a_log_with_tags_is_read_from_everywhere(fresh_server: Callable[..., Server]) -> None:
    server = fresh_server("mysql9")
    random = Random(11)
    run(server, "CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY AUTO_INCREMENT, v VARCHAR(20))")
    used = {"": 0, "a_tag": 0, "z" * 32: 0}
    with contextlib.closing(live_reader(server)) as reader:
        start = reader.end()
        ends = [start]
        for number in range(32):
            gtid_next = random.choice(["AUTOMATIC", "AUTOMATIC:backup", "AUTOMATIC:b2", "own"])
            if gtid_next == "own":
                tag = random.choice(list(used))
                used[tag] += random.randint(1, 3)
                gtid_next = f"{OTHER}:{tag}:{used[tag]}".replace("::", ":")
            statement = random.choice(
                [
                    f"INSERT INTO d.t (v) VALUES ('{number}'), ('x')",
                    f"INSERT INTO d.t (v) VALUES ('{number}')",
                    f"UPDATE d.t SET v = '{number}' LIMIT 1",
                    "DELETE FROM d.t ORDER BY id LIMIT 1",
                    f"ALTER TABLE d.t COMMENT '{number}'",
                ]
            )
            compress = f"SET SESSION binlog_transaction_compression = {random.choice(['ON', 'OFF'])}"
            run(server, compress, f"SET gtid_next = '{gtid_next}'", statement)
            if number in (6, 18):
                run(server, "FLUSH BINARY LOGS")
            if number == 12:
                server.restart()
            ends.append(reader.end())
        ((executed,),) = server.sql("SELECT @@GLOBAL.gtid_executed")
        assert ends[-1].gtids == executed.replace("\n", "")
        assert len({source for source, _ in ends[-1].gtid_set}) >= 5
        tables = planned_tables(server, "d.t")
        found = [rows_behind(each, start, tables) for each in (reader, files_reader(server))]
        assert found[0] == found[1]
        left: Counter[Any] = Counter()
        for sign, *values in found[0]:
            left[tuple(values)] += 1 if sign.startswith("+") else -1
        assert Counter({row: count for row, count in left.items() if count}) == Counter(server.sql("SELECT * FROM d.t"))
        for end in ends:
            for each in (reader, files_reader(server)):
                here = replace(end, server=each.start().server)
                assert each.locate(only_gtids(end)).gtids == end.gtids
                assert each.locate(only_place(end)) == here
                assert bounds_of(scanned(each, here))[-1:] == ([] if end == ends[-1] else [each.end()])
        assert {raw[4] for _, _, raw in events(reader, start)} >= {33, 35, 40, 42}
        ddl = [item for item in scanned(reader, start) if isinstance(item, Statement)]
        assert all(reader.end().gtid_set.contains_gtid(item.place.gtid) for item in ddl)


def rows_behind(reader: Any, start: LogPosition, tables: Any) -> list[Any]:
    bounds = [replace(start, server=reader.start().server), *bounds_of(scanned(reader, only_gtids(start)))]
    return [
        row
        for one, two in pairwise(bounds)
        if one.file == two.file and one.offset < two.offset
        for row in changes(reader.read(range_of(one, two), tables), tables[0].versions[-1].snapshot, tables[0].table_id)
    ]


def test_tagged_transactions_of_the_start_that_stand_later_are_skipped(mysql9: Server) -> None:
    run(mysql9, "CREATE DATABASE IF NOT EXISTS tags", "CREATE TABLE IF NOT EXISTS tags.t (id INT)")
    with contextlib.closing(live_reader(mysql9)) as reader:
        start = reader.end()
        for number, source in enumerate((f"{OTHER}:x:2", f"{OTHER}:y:1", f"{OTHER}:x:1", f"{OTHER}:9")):
            run(mysql9, f"SET gtid_next = '{source}'", f"INSERT INTO tags.t VALUES ({number})")
        end = reader.end()
        held = str(GtidSet.parse(f"{start.gtids},{OTHER}:x:1:y:1"))
        for each in (reader, files_reader(mysql9)):
            items = scanned(each, LogPosition(flavor="mysql", gtids=held, file="", offset=0))
            bounds = [item for item in items if isinstance(item, Bound)]
            gained = [
                str(two.position.gtid_set.subtract(one.position.gtid_set))
                for one, two in pairwise(bounds)
                if not two.skipped
            ]
            assert gained == [f"{OTHER}:x:2", f"{OTHER}:9"]
            assert bounds[-1].position.gtids == end.gtids
        # The dump that begins at a set sends what is not in it.
        with contextlib.closing(reader._dump(lambda dump: dump.from_gtids(held))) as dump:
            sent = [
                event_gtid(window.buffer[at:behind].tobytes(), "here")
                for window in dump.windows()
                for at, behind in zip(window.starts.tolist(), window.ends.tolist(), strict=True)
                if window.buffer[at + 4] in (33, 42)
            ]
        assert sent == [(f"{OTHER}:x", 2), (OTHER, 9)]


def test_a_range_with_tags_is_read_by_membership(mysql9: Server) -> None:
    run(mysql9, "CREATE DATABASE IF NOT EXISTS tags", "CREATE TABLE IF NOT EXISTS tags.m (id INT)")
    with contextlib.closing(live_reader(mysql9)) as reader:
        start = reader.end()
        for number, source in enumerate(("AUTOMATIC:u", "AUTOMATIC", "AUTOMATIC:v", "AUTOMATIC:u")):
            run(mysql9, f"SET gtid_next = '{source}'", f"INSERT INTO tags.m VALUES ({number})")
        planned_range, tables = range_of(start, reader.end()), planned_tables(mysql9, "tags.m")
        run(mysql9, "SET gtid_next = 'AUTOMATIC:u'", "INSERT INTO tags.m VALUES (99)")
        here = [chunk.rows.to_pylist() for chunk in reader.read(planned_range, tables)]
        elsewhere = replace(planned_range, server="another", file="other.000001", start=4, end=5)
        there = [chunk.rows.to_pylist() for chunk in reader.read(elsewhere, tables)]
    assert there == here
    snapshot = tables[0].versions[-1].snapshot
    assert snapshot is not None
    assert [row[physical_name(snapshot.columns[0].id)] for row in here[0]] == [0, 1, 2, 3]
