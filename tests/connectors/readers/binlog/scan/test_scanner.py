"""The light scan over logs that are written by hand."""

from __future__ import annotations

import random
import struct
from collections.abc import Sequence
from typing import Any

import pytest

from connectors.readers.base import Bound, Scanned, Statement, TableMapped, XaCommitted
from connectors.readers.binlog.events.layout import FormatDescription
from connectors.readers.binlog.scan.gtid_counter import GtidCounter
from connectors.readers.binlog.scan.scanner import Scanner
from connectors.readers.binlog.transport.unpacking import unpacked
from connectors.readers.binlog.transport.window import Window
from historian.errors import LogCorrupt, PositionError, SourceError, UnsupportedEvent
from historian.names import TableName
from historian.plans.plans import RolledBack
from historian.positions import LogPosition
from historian.positions.places import Place
from logs.log_files import gtid_list, mariadb_gtid, previous_gtids
from logs.log_windows import window_of
from logs.packing import compressed, payload
from logs.row_events import (
    TIMESTAMP,
    UUID,
    XID,
    begin,
    commit,
    event,
    gtid,
    rows_event,
    table_map,
    wire_integer,
    wire_text,
)
from logs.tagged import tagged_gtid

MYSQL = FormatDescription(server_version="8.0.31", version=80031, flavor="mysql", checksum=False, in_use=False)
MARIADB = FormatDescription(
    server_version="11.8.6-MariaDB", version=110806, flavor="mariadb", checksum=False, in_use=False
)
SOURCE = "00010203-0405-0607-0809-0a0b0c0d0e0f"
OTHER_UUID = bytes(range(16, 32))
OTHER = "10111213-1415-1617-1819-1a1b1c1d1e1f"
FILE = "binlog.000001"
INT, TEXT = wire_integer("int", 3, 4, unsigned=False), wire_text(20)
MAP, OTHER_MAP = table_map(1, [INT]), table_map(2, [TEXT], name=TableName("db", "u"))
ROWS = rows_event(30, 1, [INT], [(1,)])
OTHER_ROWS = rows_event(30, 2, [TEXT], [("x",)])
COMMIT, ROLLBACK = begin(b"COMMIT"), begin(b"ROLLBACK")
DDL = begin(b"CREATE TABLE t (id INT)")


def start(gtids: str = "", flavor: str = "mysql", offset: int = 4) -> LogPosition:
    return LogPosition(flavor=flavor, gtids=gtids, file=FILE, offset=offset)


def scan(
    events: Sequence[bytes],
    *,
    at: LogPosition | None = None,
    windows: int = 1,
    **options: Any,
) -> list[Scanned]:
    """What a scan of these events in one file gives, cut into so many windows."""
    at = at or start()
    scanner = Scanner(at, **options)
    plain = unpacked(cut(events, windows, at.offset), rows=False)
    return [*feed(scanner, plain, at.flavor), *scanner.finish()]


def cut(events: Sequence[bytes], windows: int, offset: int = 4) -> list[Window]:
    size = max(1, -(-len(events) // windows))
    found = []
    for first in range(0, len(events), size):
        part = [sized(raw) for raw in events[first : first + size]]
        found.append(window_of(part, file=FILE, offset=offset))
        offset += sum(map(len, part))
    return found


def sized(raw: bytes) -> bytes:
    return raw[:9] + struct.pack("<I", len(raw)) + raw[13:]


def feed(scanner: Scanner, windows: Sequence[Window], flavor: str = "mysql") -> list[Scanned]:
    found: list[Scanned] = []
    for window in windows:
        found += scanner.feed(window, MARIADB if flavor == "mariadb" else MYSQL)
        if scanner.is_finished():
            break
    return found


def offsets(events: Sequence[bytes], at: int = 4) -> list[int]:
    """Offset of each event, and behind the last."""
    found = [at]
    for raw in events:
        found.append(found[-1] + len(raw))
    return found


def said(items: Sequence[Scanned]) -> list[str]:
    """The items in short."""
    words = []
    for item in items:
        if isinstance(item, Bound):
            words.append(
                f"{'skipped ' if item.skipped else ''}{item.position.gtids.replace(SOURCE, 'S').replace(OTHER, 'O')}"
            )
        elif isinstance(item, Statement):
            words.append(f"sql {item.sql}")
        elif isinstance(item, RolledBack):
            words.append(f"without {item.first}-{item.last}")
        elif isinstance(item, XaCommitted):
            words.append(f"xa {item.xid} of {'nobody' if item.xa is None else item.xa.gtid.replace(SOURCE, 'S')}")
        else:
            words.append(f"map {item.table}")
    return words


# ---- transactions -------------------------------------------------------------------------------------------------------
def test_transactions_alone_give_one_bound() -> None:
    events = commit(1, MAP, ROWS) + commit(2, MAP, ROWS) + commit(3, MAP, ROWS)
    items = scan(events)
    assert said(items) == ["map db.t", "S:1-3"]
    assert items[-1] == Bound(
        position=LogPosition(flavor="mysql", gtids=f"{SOURCE}:1-3", file=FILE, offset=offsets(events)[-1]),
        event_time_us=TIMESTAMP * 1_000_000,
    )


def test_a_map_says_its_place_and_columns() -> None:
    events = [*commit(1, MAP, ROWS), *commit(2, MAP, OTHER_MAP, ROWS, OTHER_ROWS)]
    items = [item for item in scan(events) if isinstance(item, TableMapped)]
    places = [offsets(events)[2], offsets(events)[8]]
    assert [item.place for item in items] == [
        Place(gtid=f"{SOURCE}:1", file=FILE, offset=places[0], ordinal=2),
        Place(gtid=f"{SOURCE}:2", file=FILE, offset=places[1], ordinal=3),
    ]
    assert [(item.table, len(item.columns)) for item in items] == [(("db", "t"), 1), (("db", "u"), 1)]


def test_a_statement_ends_its_transaction_and_forgets_the_maps() -> None:
    events = [*commit(1, MAP, ROWS), gtid(2), DDL, *commit(3, MAP, ROWS), *commit(4, MAP, ROWS)]
    assert said(scan(events)) == ["map db.t", "S:1", "sql CREATE TABLE t (id INT)", "S:1-2", "map db.t", "S:1-4"]


def test_statements_in_a_row_each_have_their_bound() -> None:
    events = [gtid(1), DDL, gtid(2), begin(b"DROP TABLE t"), gtid(3), begin(b"CREATE DATABASE x")]
    assert said(scan(events)) == [
        "sql CREATE TABLE t (id INT)",
        "S:1",
        "sql DROP TABLE t",
        "S:1-2",
        "sql CREATE DATABASE x",
        "S:1-3",
    ]


def test_rows_behind_a_statement_belong_to_its_transaction() -> None:
    events = [gtid(1), begin(), begin(b"CREATE TABLE t (id INT) START TRANSACTION"), MAP, ROWS, XID]
    items = scan(events)
    assert said(items) == ["sql CREATE TABLE t (id INT) START TRANSACTION", "map db.t", "S:1"]
    assert [item.place.ordinal for item in items if not isinstance(item, Bound)] == [2, 3]


def test_a_changed_map_of_the_same_number_is_new() -> None:
    changed = table_map(1, [INT, INT])
    rows = rows_event(30, 1, [INT, INT], [(1, 2)])
    items = scan([*commit(1, MAP, ROWS), *commit(2, changed, rows), *commit(3, changed, rows), *commit(4, MAP, ROWS)])
    assert said(items) == ["map db.t", "S:1", "map db.t", "S:1-3", "map db.t", "S:1-4"]


def test_many_tables_at_once() -> None:
    maps = [table_map(number << 7, [INT], name=TableName("db", f"t{number}")) for number in range(1, 900)]
    rows = [rows_event(30, number << 7, [INT], [(1,)]) for number in range(1, 900)]
    items = scan([*commit(1, *maps, *rows), *commit(2, *maps, *rows)])
    assert len([item for item in items if isinstance(item, TableMapped)]) == 899


@pytest.mark.parametrize(
    "inside",
    [
        [begin(b"SAVEPOINT `one`"), MAP, ROWS, begin(b"RELEASE SAVEPOINT `one`")],
        [event(29, b"\3abc"), MAP, ROWS, event(160, b"abc"), event(99, b"", flags=0x80)],
        [event(5, bytes(9)), event(13, bytes(16)), event(14, bytes(9)), MAP, ROWS],
        [MAP, ROWS, rows_event(30, 0xFFFFFF, [], [])],
    ],
)
@pytest.mark.parametrize("end", [XID, COMMIT])
def test_events_that_say_nothing_are_passed(inside: list[bytes], end: bytes) -> None:
    assert said(scan([gtid(1), begin(), *inside, end, *commit(2, MAP, ROWS)])) == ["map db.t", "S:1-2"]


def test_statements_inside_a_transaction_are_given_without_ending_it() -> None:
    events = [gtid(1), begin(), begin(b"INSERT INTO t VALUES (UUID())"), begin(b"UPDATE t SET a = 1"), XID]
    assert said(scan(events)) == ["sql INSERT INTO t VALUES (UUID())", "sql UPDATE t SET a = 1", "S:1"]


def test_a_loaded_file_is_a_statement() -> None:
    body = struct.pack("<IIBHH", 1, 0, 2, 0, 0) + bytes(13) + b"db\0LOAD DATA INFILE 'x' INTO TABLE t"
    events = [gtid(1), begin(), event(17, bytes(8)), event(18, body), XID]
    assert said(scan(events)) == ["sql LOAD DATA INFILE 'x' INTO TABLE t", "S:1"]


def test_commit_times_are_of_the_original_commit() -> None:
    events = [
        gtid(1, committed_us=1_700_000_000_000_001),
        DDL,
        gtid(2, committed_us=1_800_000_000_000_000, original_us=1_700_000_000_000_002),
        DDL,
        gtid(3),
        DDL,
    ]
    items = scan(events)
    times = [1_700_000_000_000_001, 1_700_000_000_000_002, TIMESTAMP * 1_000_000]
    assert [item.event_time_us for item in items if isinstance(item, Statement)] == times
    assert [item.event_time_us for item in items if isinstance(item, Bound)] == times


# ---- windows --------------------------------------------------------------------------------------------------------------
def test_windows_and_their_number_make_no_difference() -> None:
    generator = random.Random(11)
    events: list[bytes] = []
    for number in range(1, 300):
        kind = generator.randrange(6)
        if kind == 0:
            events += [gtid(number), DDL]
        elif kind == 1:
            events += [gtid(number, uuid=OTHER_UUID), begin(), OTHER_MAP, OTHER_ROWS, COMMIT]
        else:
            events += commit(number, MAP, ROWS)
    whole = scan(events)
    assert len(whole) > 50
    for windows in (2, 7, len(events)):
        assert scan(events, windows=windows) == whole


def test_bounds_come_about_every_so_many_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("connectors.readers.binlog.scan.scanner.BOUND_EVERY_BYTES", 500)
    events = [part for number in range(1, 40) for part in commit(number, MAP, ROWS)]
    bounds = [item.position.offset for item in scan(events) if isinstance(item, Bound)]
    size = offsets(commit(1, MAP, ROWS))[-1] - 4
    steps = [after - before for before, after in zip([4, *bounds], bounds, strict=False)]
    assert set(steps[:-1]) == {-(-500 // size) * size}
    for windows in (3, len(events)):
        assert [i.position.offset for i in scan(events, windows=windows) if isinstance(i, Bound)] == bounds


def test_more_transactions_than_are_kept_at_once() -> None:
    one = [gtid(0), begin(), XID]
    size = sum(map(len, one))
    count = 70_000
    data = b"".join(gtid(number) + begin() + XID for number in range(1, count + 1))
    raw = [data[at : at + size] for at in range(0, len(data), size)]
    parts = [part for each in raw for part in (each[: len(one[0])], each[len(one[0]) : -len(XID)], each[-len(XID) :])]
    assert said(scan(parts))[-1] == f"S:1-{count}"


def test_numbers_of_several_sources_in_any_order_become_sets() -> None:
    generator = random.Random(3)
    numbers = [(uuid, number) for uuid in (UUID, OTHER_UUID) for number in (*range(1, 60), 70, 80, *range(90, 95))]
    generator.shuffle(numbers)
    events = [part for uuid, number in numbers for part in (gtid(number, uuid=uuid), begin(), XID)]
    assert said(scan(events, windows=9))[-1] == "S:1-59:70:80:90-94,O:1-59:70:80:90-94"


# ---- files ----------------------------------------------------------------------------------------------------------------
def test_a_file_ends_with_a_bound_and_the_next_begins_with_one() -> None:
    one = [previous_gtids(), *commit(1, MAP, ROWS), event(4, bytes(8) + b"binlog.000002")]
    two = [previous_gtids((UUID, [(1, 1)])), *commit(2, MAP, ROWS)]
    scanner = Scanner(start())
    items = feed(scanner, cut(one, 1))
    items += scanner.feed(window_of([sized(raw) for raw in two], file="binlog.000002", offset=4), MYSQL)
    items += scanner.finish()
    bounds = [
        (item.position.file, item.position.offset, item.position.gtids) for item in items if isinstance(item, Bound)
    ]
    assert bounds == [
        (FILE, offsets(one)[-1], f"{SOURCE}:1"),
        ("binlog.000002", 4, f"{SOURCE}:1"),
        ("binlog.000002", offsets(two)[-1], f"{SOURCE}:1-2"),
    ]
    assert said(items).count("map db.t") == 2


def test_what_a_file_says_of_the_log_before_it_is_adopted() -> None:
    assert said(scan([previous_gtids((UUID, [(1, 9)])), *commit(10, MAP, ROWS)]))[-1] == "S:1-10"
    events = [gtid_list((4, 7, 9)), mariadb_gtid(3), MAP, rows_event(23, 1, [INT], [(1,)]), XID]
    assert said(scan(events, at=start(flavor="mariadb")))[-1] == "0-7-3,4-7-9"


def test_a_position_with_a_number_that_no_kernel_takes_is_refused() -> None:
    beyond = f"0-1-{2**63}"
    with pytest.raises(PositionError, match="found 9223372036854775808"):
        GtidCounter(beyond, "mariadb", pass_over=False)
    with pytest.raises(PositionError, match="found 9223372036854775808"):
        GtidCounter("0-1-5", "mariadb", pass_over=False).stop_before_covering(beyond)


# ---- limits ---------------------------------------------------------------------------------------------------------------
def test_a_limit_ends_at_the_first_bound_behind_it() -> None:
    events = [part for number in range(1, 20) for part in commit(number, MAP, ROWS)]
    size = offsets(commit(1, MAP, ROWS))[-1] - 4
    assert said(scan(events, limit_bytes=3 * size)) == ["map db.t", "S:1-3"]
    assert said(scan(events, limit_bytes=3 * size + 1, windows=7)) == ["map db.t", "S:1-4"]
    assert said(scan(events, limit_bytes=1)) == ["map db.t", "S:1"]


def test_until_ends_at_the_transaction_that_covers_it() -> None:
    numbers = [(UUID, 1), (OTHER_UUID, 1), (UUID, 3), (OTHER_UUID, 2), (UUID, 2), (UUID, 4)]
    events = [part for uuid, number in numbers for part in (gtid(number, uuid=uuid), begin(), XID)]
    for until, last in (
        (f"{SOURCE}:1", "S:1"),
        (f"{SOURCE}:1-3,{OTHER}:1", "S:1-3,O:1-2"),
        (f"{OTHER}:2", "S:1:3,O:1-2"),
    ):
        assert said(scan(events, until=anywhere(until)))[-1] == last
    assert said(scan(events, until=anywhere(f"{SOURCE}:9")))[-1] == "S:1-4,O:1-2"
    assert scan(events, at=start(f"{SOURCE}:1-9"), until=anywhere(f"{SOURCE}:3")) == []


def anywhere(gtids: str) -> LogPosition:
    """A position that does not say where in the log it is."""
    return LogPosition(flavor="mysql", gtids=gtids, file="", offset=0)


def test_until_a_place_ends_at_the_transaction_there() -> None:
    events = [part for number in range(1, 9) for part in commit(number, MAP, ROWS)]
    behind = offsets(events)[10]
    until = LogPosition(flavor="mysql", gtids="", file=FILE, offset=behind)
    assert said(scan(events, until=until))[-1] == "S:1-2"


# ---- transactions that were read before -----------------------------------------------------------------------------------
def test_transactions_of_the_start_are_passed_over_and_marked() -> None:
    events = [part for number in range(1, 8) for part in commit(number, MAP, ROWS)]
    places = offsets(events)
    items = scan(events, at=start(f"{SOURCE}:1-2:5"), by_gtid=True)
    assert said(items) == ["skipped S:1-2:5", "map db.t", "S:1-5", "skipped S:1-5", "map db.t", "S:1-7"]
    bounds = [item.position.offset for item in items if isinstance(item, Bound)]
    assert bounds == [places[10], places[20], places[25], places[35]]


def test_transactions_at_the_end_that_were_read_before_move_the_position() -> None:
    events = [part for number in range(1, 4) for part in commit(number, MAP, ROWS)]
    items = scan(events, at=start(f"{SOURCE}:2-3"), by_gtid=True)
    assert said(items) == ["map db.t", "S:1-3", "skipped S:1-3"]
    assert items[-1].position.offset == offsets(events)[-1]  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "skipped",
    [
        [gtid(1), DDL],
        [gtid(1), begin(), begin(b"CREATE TABLE t (id INT) START TRANSACTION"), MAP, ROWS, XID],
        [gtid(1), begin(b"XA START X'71',X'',1"), MAP, ROWS, begin(b"XA END X'71',X'',1"), event(38, bytes(13))],
        [gtid(1), begin(b"XA COMMIT X'71',X'',1")],
        [gtid(1), payload([begin(), MAP, event(39, bytes(30)), XID])],
        [gtid(1), begin(), MAP, event(39, bytes(30)), COMMIT],
        [gtid(1), event(26, bytes(3))],
    ],
)
def test_whatever_was_read_before_is_passed_over(skipped: list[bytes]) -> None:
    items = scan([*skipped, *commit(2, MAP, ROWS)], at=start(f"{SOURCE}:1"), by_gtid=True)
    assert said(items) == ["skipped S:1", "map db.t", "S:1-2"]
    counted = Scanner(start(), count_only=True)
    assert feed(counted, cut([*skipped, *commit(2, MAP, ROWS)], 1)) == []
    assert counted.position.gtids == f"{SOURCE}:1-2"


def test_a_search_ends_before_the_first_transaction_that_was_not_read() -> None:
    events = [part for number in range(1, 6) for part in commit(number, MAP, ROWS)]
    for held, index in (("", 0), (f"{SOURCE}:1-2", 10), (f"{SOURCE}:1-2:4", 10), (f"{SOURCE}:1-9", 25)):
        scanner = Scanner(start(held), by_gtid=True, find_only=True)
        feed(scanner, cut(events, 3))
        assert scanner.position.offset == offsets(events)[index]
        assert scanner.position.gtids == held


def test_a_row_event_that_is_passed_over_is_long_enough_to_be_one() -> None:
    short = event(30, b"\1\0\0\0\0\0\1")
    with pytest.raises(LogCorrupt, match="shorter than its own fields"):
        scan([mariadb_gtid(1, flags=1), short], at=start("0-7-1", "mariadb"), by_gtid=True)


def test_a_transaction_without_gtid_cannot_be_placed_by_gtids() -> None:
    events = [*commit(1, MAP, ROWS), gtid(0, kind=34), begin(), MAP, ROWS, XID]
    with pytest.raises(SourceError, match="without GTID cannot be placed"):
        scan(events, at=start(f"{SOURCE}:1"), by_gtid=True)
    items = scan(events)
    assert said(items) == ["map db.t", "S:1"]
    assert [item.place.gtid for item in scan(events[5:]) if isinstance(item, TableMapped)] == [""]


# ---- MariaDB --------------------------------------------------------------------------------------------------------------
V1_ROWS = rows_event(23, 1, [INT], [(1,)])
STANDALONE = 1


def test_mariadb_transactions_begin_with_their_gtid() -> None:
    events = [
        *[mariadb_gtid(1, flags=STANDALONE), DDL],
        *[mariadb_gtid(2), event(160, b"insert"), MAP, V1_ROWS, XID],
        *[mariadb_gtid(3), begin(b"CREATE TABLE t (id INT)"), MAP, V1_ROWS, XID],
        *[mariadb_gtid(4), MAP, V1_ROWS, COMMIT],
        *[mariadb_gtid(5, flags=STANDALONE), MAP, V1_ROWS],
        *[mariadb_gtid(1, domain=9, flags=2, more=bytes(8)), MAP, V1_ROWS, XID],
    ]
    items = scan(events, at=start(flavor="mariadb"))
    assert said(items) == [
        *["sql CREATE TABLE t (id INT)", "0-7-1", "map db.t", "0-7-2", "sql CREATE TABLE t (id INT)", "map db.t"],
        "0-7-5,9-7-1",
    ]
    places = [item.place for item in items if not isinstance(item, Bound)]
    assert [(place.gtid, place.ordinal) for place in places] == [("0-7-1", 1), ("0-7-2", 2), ("0-7-3", 1), ("0-7-3", 2)]


def test_mariadb_domains_are_passed_over_each_on_its_own() -> None:
    order = [(0, 1), (5, 1), (0, 2), (5, 2), (5, 3), (0, 3)]
    events = [part for domain, number in order for part in (mariadb_gtid(number, domain=domain), MAP, V1_ROWS, XID)]
    items = scan(events, at=start("0-7-1,5-7-2", "mariadb"), by_gtid=True)
    assert said(items) == [
        *["skipped 0-7-1,5-7-2", "map db.t", "0-7-2,5-7-2", "skipped 0-7-2,5-7-2", "map db.t", "0-7-3,5-7-3"]
    ]


def test_mariadb_numbers_must_ascend() -> None:
    events = [mariadb_gtid(5), MAP, V1_ROWS, XID, mariadb_gtid(4), MAP, V1_ROWS, XID]
    with pytest.raises(SourceError, match="do not ascend") as raised:
        scan(events, at=start(flavor="mariadb"))
    assert "gtid_strict_mode" in str(raised.value)
    with pytest.raises(SourceError, match="do not ascend"):
        scan(events[4:], at=start("0-7-4", "mariadb"))


# ---- what is not read -----------------------------------------------------------------------------------------------------
def partial(kind: int) -> bytes:
    whole = rows_event(kind, 1, [INT, INT], [(1, 2)] * (2 if kind in (24, 31) else 1))
    at = 19 + 8 + (2 if kind >= 30 else 0) + 1
    return whole[: at + (1 if kind in (24, 31) else 0)] + b"\1" + whole[at + (2 if kind in (24, 31) else 1) :]


WIDE = table_map(1, [INT, INT])


@pytest.mark.parametrize(
    "events, what",
    [
        ([gtid(1), begin(), event(77, b"")], "type 77 event"),
        ([event(200, b"")], "type 200 event"),
    ],
)
def test_what_is_not_read_yet_is_named_with_its_place(events: list[bytes], what: str) -> None:
    before = commit(9, OTHER_MAP, OTHER_ROWS)
    scanner = Scanner(start())
    found: list[Scanned] = []
    with pytest.raises(UnsupportedEvent, match=what) as raised:
        found.extend(item for window in cut([*before, *events], 1) for item in scanner.feed(window, MYSQL))
    place = offsets([*before, *events])[-2]
    assert str(raised.value.where).startswith(f"{FILE}:{place}")
    assert (f"{SOURCE}:1" in str(raised.value.where)) == (len(events) > 1)
    assert raised.value.next_step is not None
    assert "S:9" in said(found)


DDL_TEXT = "ALTER TABLE t COMMENT 'a comment that is long enough'"


def test_compressed_transactions_are_scanned_like_plain_ones() -> None:
    ddl = begin(DDL_TEXT.encode())
    plain = [*commit(1, MAP, ROWS, OTHER_MAP, OTHER_ROWS), gtid(2), ddl, *commit(3, MAP, ROWS)]
    inside = [begin(), MAP, ROWS, OTHER_MAP, OTHER_ROWS, XID]
    packed = [gtid(1), payload(inside), gtid(2), compressed(ddl), gtid(3), begin(), MAP, compressed(ROWS), XID]
    expected = ["map db.t", "map db.u", "S:1", f"sql {DDL_TEXT}", "S:1-2", "map db.t", "S:1-3"]
    assert said(scan(plain)) == expected
    for windows in (1, 3, len(packed)):
        assert said(scan(packed, windows=windows)) == expected
    places = [item.place for item in scan(packed) if not isinstance(item, Bound)]
    assert [place.ordinal for place in places] == [2, 4, 1, 2]
    behind = 4 + len(packed[0])
    assert [place.offset for place in places[:2]] == [behind, behind]
    counted = [item.position.offset for item in scan(packed) if isinstance(item, Bound)]
    assert counted[0] == behind + len(packed[1])


def test_packed_transactions_are_counted_without_unpacking() -> None:
    packed = [
        gtid(1),
        payload([begin(), XID]),
        gtid(2),
        event(40, b"nobody looks inside"),
        gtid(3),
        event(165, bytes(30)),
    ]
    scanner = Scanner(start(), count_only=True)
    assert said([*feed(scanner, cut(packed, 1), "mysql"), *scanner.finish()]) == ["S:1-3"]


def test_images_of_any_kind_are_passed_over() -> None:
    inside = [WIDE, *(partial(kind) for kind in (23, 24, 25, 30, 31, 32))]
    inside += [*map(compressed, inside[1:]), event(39, MAP[19:27] + bytes(20))]
    assert said(scan(commit(1, *inside))) == ["map db.t", "S:1"]


@pytest.mark.parametrize("grouped", [b"", bytes(8)])
def test_an_alter_in_two_phases_counts_at_its_commit(grouped: bytes) -> None:
    def phase(number: int, flag: int) -> bytes:
        more = grouped + bytes([flag]) + bytes(8)
        return mariadb_gtid(number, flags=3 if grouped else 1, more=more)

    rows = [mariadb_gtid(2), MAP, ROWS, XID]
    begun = [phase(1, 2), DDL, *rows]
    at = start(flavor="mariadb")
    committed = scan([*begun, phase(3, 4), DDL], at=at)
    assert said(committed) == ["0-7-1", "map db.t", "0-7-2", "sql CREATE TABLE t (id INT)", "0-7-3"]
    assert [item.place for item in committed if isinstance(item, Statement)] == [
        Place(gtid="0-7-3", file=FILE, offset=offsets([*begun, phase(3, 4)])[-1], ordinal=1)
    ]
    assert said(scan([*begun, phase(3, 8), DDL], at=at)) == ["0-7-1", "map db.t", "0-7-3"]
    assert said(scan(begun[:2], at=at)) == ["0-7-1"]
    assert (
        said(scan([mariadb_gtid(1, flags=1, more=b"\x10" + bytes(5)), DDL], at=start(flavor="mariadb")))[-1] == "0-7-1"
    )


@pytest.mark.parametrize(
    "events, what",
    [
        ([gtid(1), begin(), gtid(2)], "a transaction begins inside another"),
        ([begin()], "outside every transaction"),
        ([MAP], "outside every transaction"),
        ([gtid(1), begin(), ROWS], "no TABLE_MAP explains"),
        ([gtid(1)[:30]], "shorter than its own fields"),
        ([gtid(1), begin()[:30]], "shorter than its own fields"),
        ([gtid(1), begin(), MAP, ROWS[:24]], "shorter than its own fields"),
        ([gtid(1), begin(), MAP[:24]], "does not fit its length"),
        ([gtid(0)], "number is none of a transaction"),
        ([gtid(-4)], "number is none of a transaction"),
        ([tagged_gtid(1, tag="a tag")], "GTID_TAGGED event cannot be read"),
        ([gtid(1), begin(), XID, mariadb_gtid(2)], "another kind of server"),
        ([*commit(1, MAP, ROWS), gtid_list((0, 7, 4))], "a GTID_LIST event in a log of mysql"),
        (
            [*commit(1, MAP, ROWS), previous_gtids((UUID, [(1, 9)]))[:-3]],
            "PREVIOUS_GTIDS event does not fit its length",
        ),
        ([previous_gtids((UUID, [(-3, 9)]))], "PREVIOUS_GTIDS event cannot be read"),
    ],
)
def test_logs_that_contradict_themselves_are_corrupt(events: list[bytes], what: str) -> None:
    with pytest.raises(LogCorrupt, match=what) as raised:
        scan(events)
    assert str(raised.value.where).startswith(f"{FILE}:{offsets(events)[-2]}")


@pytest.mark.parametrize("raw, what", [(gtid(1), "another kind of server"), (previous_gtids(), "PREVIOUS_GTIDS event")])
def test_events_of_mysql_in_a_log_of_mariadb_are_corrupt(raw: bytes, what: str) -> None:
    rest = [mariadb_gtid(1), MAP, V1_ROWS, XID]
    with pytest.raises(LogCorrupt, match=what) as raised:
        scan([*rest, raw], at=start(flavor="mariadb"))
    assert str(raised.value.where).startswith(f"{FILE}:{offsets(rest)[-1]}")


def test_a_statement_that_cannot_be_read_says_where() -> None:
    broken = event(2, struct.pack("<IIBHH", 1, 0, 2, 0, 1) + b"\4" + b"db\0CREATE TABLE t (id INT)")
    with pytest.raises(LogCorrupt, match="status variables") as raised:
        scan([gtid(1), broken])
    assert str(raised.value.where) == f"{FILE}:{4 + len(gtid(1))}, transaction {SOURCE}:1"
