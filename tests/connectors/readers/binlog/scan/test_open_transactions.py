"""Rows that count later (prepared XA transactions) or not at all (rolled back), in logs that are written by hand."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from connectors.readers.base import Bound, Scanned, XaCommitted
from connectors.readers.binlog.files_reader import BinlogFilesReader
from connectors.readers.binlog.transport import read_buffer
from connectors.readers.binlog.xa import commit_order
from connectors.tracking.prepared_transactions import Commit, attached
from historian import codec
from historian.changelog.chunks import Chunk
from historian.errors import LogCorrupt, LogPurged
from historian.names import TableName
from historian.plans.plans import LogRange, PreparedRows, PreparedTable, RolledBack
from historian.positions import LogPosition, PreparedXa
from logs.binlog_lab import range_of
from logs.decoder_lab import changes, planned
from logs.log_files import gtid_list, log_bytes, mariadb_gtid, previous_gtids, write_log
from logs.packing import payload
from logs.row_events import XID, begin, commit, event, gtid, rows_event, snapshot_of, table_map, wire_integer

INT = wire_integer("int", 3, 4, unsigned=False)
T = snapshot_of([INT])
MAP = table_map(1, [INT])
OTHER_MAP = table_map(2, [INT], name=TableName("db", "u"))
SOURCE = "00010203-0405-0607-0809-0a0b0c0d0e0f"
XA_X = b"X'78',X'6271',7"


def row(value: int, number: int = 1) -> bytes:
    return rows_event(30, number, [INT], [(value,)])


def xa_prepare(gtrid: bytes = b"x", bqual: bytes = b"bq", kind: int = 7, *, one_phase: bool = False) -> bytes:
    body = bytes([one_phase]) + b"".join(n.to_bytes(4, "little") for n in (kind, len(gtrid), len(bqual)))
    return event(38, body + gtrid + bqual)


def prepared(number: int, *events: bytes, xid: bytes = XA_X, **ended: Any) -> list[bytes]:
    """A transaction that XA PREPARE ends."""
    return [gtid(number), begin(b"XA START " + xid), *events, begin(b"XA END " + xid), xa_prepare(**ended)]


def committed(number: int, xid: bytes = XA_X, *, us: int = 0) -> list[bytes]:
    return [gtid(number, committed_us=us), begin(b"XA COMMIT " + xid)]


def rolled_back(number: int, xid: bytes = XA_X) -> list[bytes]:
    return [gtid(number), begin(b"XA ROLLBACK " + xid)]


def scanned(reader: BinlogFilesReader, start: LogPosition | None = None) -> list[Scanned]:
    return list(reader.scan(start or reader.start()))


def bounds(items: Sequence[Scanned]) -> list[LogPosition]:
    return [item.position for item in items if isinstance(item, Bound)]


def ranges(items: Sequence[Scanned], *cuts: int) -> list[LogRange]:
    """Ranges of what was scanned, a file's each, cut at these offsets too; all rows of ``db.t`` are wanted."""
    table = PreparedTable(table_id=1, name=T.name)
    commits = [
        Commit(place=item.place, rows=PreparedRows(xa=item.xa, tables=(table,)))
        for item in items
        if isinstance(item, XaCommitted) and item.xa is not None
    ]
    last: dict[str, LogPosition] = {}
    for position in bounds(items):
        last[position.file] = position
    found = []
    for position in last.values():
        places = [4, *(cut for cut in cuts if cut < position.offset), position.offset]
        found += [
            range_of(replace(position, offset=begin), replace(position, offset=end)) for begin, end in pairwise(places)
        ]
    return list(attached(found, [item for item in items if isinstance(item, RolledBack)], commits))


def read(reader: BinlogFilesReader, planned_ranges: Sequence[LogRange]) -> Iterator[Chunk]:
    for index, each in enumerate(planned_ranges):
        yield from reader.read(each, planned(T), sequence=index << 32)


def values(directory: Path, *cuts: int) -> list[int]:
    """What the rows of ``db.t`` in the log are, in order."""
    reader = BinlogFilesReader([directory])
    return [value for _, value in changes(read(reader, ranges(scanned(reader), *cuts)), T)]


LOGS: dict[str, tuple[list[bytes], list[int]]] = {
    "committed": (
        [*prepared(1, MAP, row(1)), *commit(2, MAP, row(2)), *committed(3), *commit(4, MAP, row(3))],
        [2, 1, 3],
    ),
    "committed at once": ([*prepared(1, MAP, row(1)), *committed(2)], [1]),
    "in one phase": ([*prepared(1, MAP, row(1), one_phase=True), *commit(2, MAP, row(2))], [1, 2]),
    "rolled back": ([*prepared(1, MAP, row(1)), *commit(2, MAP, row(2)), *rolled_back(3)], [2]),
    "still prepared": ([*prepared(1, MAP, row(1)), *commit(2, MAP, row(2))], [2]),
    "interleaved": (
        [
            *prepared(1, MAP, row(1)),
            *prepared(2, MAP, row(2), row(3), xid=b"X'79',X'',1", gtrid=b"y", bqual=b"", kind=1),
            *commit(3, MAP, row(4)),
            *committed(4, b"X'79',X'',1"),
            *commit(5, MAP, row(5)),
            *committed(6),
        ],
        [4, 2, 3, 5, 1],
    ),
    "the xid again": (
        [
            *prepared(1, MAP, row(1)),
            *rolled_back(2),
            *prepared(3, MAP, row(2)),
            *committed(4),
            *prepared(5, MAP, row(3)),
        ],
        [2],
    ),
    "without rows": ([*prepared(1), *committed(2), *commit(3, MAP, row(1))], [1]),
    "compressed": (
        [
            gtid(1),
            payload([begin(b"XA START " + XA_X), MAP, row(1), begin(b"XA END " + XA_X), xa_prepare()]),
            *commit(2, MAP, row(2)),
            *committed(3),
        ],
        [2, 1],
    ),
    "with a savepoint taken back": (
        [
            *prepared(1, MAP, row(1), begin(b"SAVEPOINT `s`"), MAP, row(2), begin(b"ROLLBACK TO `s`"), MAP, row(3)),
            *commit(2, MAP, row(4)),
            *committed(3),
        ],
        [4, 1, 3],
    ),
    "anonymous": (
        [gtid(0, kind=34), *prepared(1, MAP, row(1))[1:], *commit(2, MAP, row(2)), gtid(0, kind=34), *committed(3)[1:]],
        [2, 1],
    ),
}


@pytest.fixture(params=["whole windows", "windows of few events"])
def _windows(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "windows of few events":
        monkeypatch.setattr(read_buffer, "WINDOW_BYTES", 64)
        monkeypatch.setattr(read_buffer, "FRAME_BYTES", 96)


@pytest.mark.usefixtures("_windows")
@pytest.mark.parametrize("name", LOGS)
def test_rows_of_an_xa_transaction_count_where_it_is_committed(name: str, tmp_path: Path) -> None:
    events, expected = LOGS[name]
    write_log(tmp_path, 1, [previous_gtids(), *events])
    assert values(tmp_path) == expected


@pytest.mark.parametrize("name", LOGS)
def test_ranges_cut_anywhere_give_the_same_rows(name: str, tmp_path: Path) -> None:
    events, expected = LOGS[name]
    write_log(tmp_path, 1, [previous_gtids(), *events])
    whole = (tmp_path / "binlog.000001").read_bytes()
    places = [at for at in event_places(whole) if whole[at + 4] in (33, 34)]
    assert len(places) > 1
    assert values(tmp_path, *places) == expected
    for place in places:
        assert values(tmp_path, place) == expected


def event_places(raw: bytes) -> list[int]:
    at, found = 4, []
    while at < len(raw):
        found.append(at)
        at += int.from_bytes(raw[at + 9 : at + 13], "little")
    return found


@pytest.mark.parametrize("name", LOGS)
def test_transactions_too_large_to_be_held_are_read_again(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    events, expected = LOGS[name]
    write_log(tmp_path, 1, [previous_gtids(), *events])
    monkeypatch.setattr(commit_order, "HELD_BYTES", 0)
    assert values(tmp_path) == expected


def test_rows_take_place_and_time_of_the_commit(tmp_path: Path) -> None:
    write_log(tmp_path, 1, [previous_gtids(), *prepared(1, MAP, row(1)), *commit(2, MAP, row(2)), *committed(3, us=77)])
    reader = BinlogFilesReader([tmp_path])
    (chunk,) = read(reader, ranges(scanned(reader)))
    assert chunk.rows.column("sequence").to_pylist() == [2, 3]
    assert chunk.rows.column("ordinal").to_pylist() == [3, 3]
    assert [time.timestamp() for time in chunk.rows.column("event_time").to_pylist()][1] == 77e-6
    assert chunk.last_position == f"{SOURCE}:3"


@pytest.mark.parametrize("first", [1, 2])
def test_a_position_names_what_is_pending_and_another_scan_goes_on_from_it(first: int, tmp_path: Path) -> None:
    write_log(tmp_path, 1, [previous_gtids(), *commit(1, MAP, row(1)), *prepared(2, MAP, row(2), OTHER_MAP)])
    begun = BinlogFilesReader([tmp_path])
    end = bounds(scanned(begun))[-1]
    (xa,) = end.pending
    assert (xa.xid, xa.gtid, xa.file, xa.tables) == (
        XA_X.decode(),
        f"{SOURCE}:2",
        "binlog.000001",
        (T.name, TableName("db", "u")),
    )
    assert (xa.server, xa.version, xa.rolled_back) == ("", 0, ())

    uuid = bytes(range(16))
    write_log(
        tmp_path, 2, [previous_gtids((uuid, [(1, 2)])), *commit(3, MAP, row(3)), *committed(4), *commit(5, MAP, row(4))]
    )
    reader = BinlogFilesReader([tmp_path])
    items = scanned(reader, end if first == 1 else reader.start())
    assert [item.xa for item in items if isinstance(item, XaCommitted)] == [xa]
    assert bounds(items)[-1].pending == ()
    if first == 1:
        (later,) = ranges(
            [item for item in items if not isinstance(item, Bound) or item.position.file == "binlog.000002"]
        )
        assert [value for _, value in changes(read(reader, [later]), T)] == [3, 2, 4]


def test_a_prepare_that_nobody_knows_of_is_looked_up(tmp_path: Path) -> None:
    uuid = bytes(range(16))
    write_log(tmp_path, 1, [previous_gtids(), *prepared(1, MAP, row(1)), *rolled_back(2), *prepared(3, MAP, row(2))])
    write_log(tmp_path, 2, [previous_gtids((uuid, [(1, 3)])), *commit(4, MAP, row(3)), *committed(5)])
    reader = BinlogFilesReader([tmp_path])
    start = replace(reader.start(), file="binlog.000002", gtids=f"{SOURCE}:1-3")
    (unknown,) = [item for item in scanned(reader, start) if isinstance(item, XaCommitted)]
    assert unknown.xa is None
    xa, maps = reader.look_back(unknown.xid, unknown.place)
    assert (xa.gtid, [each.table for each in maps]) == (f"{SOURCE}:3", [T.name])

    (tmp_path / "binlog.000001").unlink()
    with pytest.raises(LogPurged) as raised:
        reader.look_back(unknown.xid, unknown.place)
    assert XA_X.decode() in str(raised.value)
    assert f"binlog.000002:{unknown.place.offset}, transaction {SOURCE}:5" in str(raised.value.where)
    assert "heal" in str(raised.value.next_step)


def test_a_commit_whose_rows_were_purged_is_named(tmp_path: Path) -> None:
    uuid = bytes(range(16))
    write_log(tmp_path, 1, [previous_gtids(), *prepared(1, MAP, row(1))])
    end = bounds(scanned(BinlogFilesReader([tmp_path])))[-1]
    write_log(tmp_path, 2, [previous_gtids((uuid, [(1, 1)])), *commit(2, MAP, row(3))])
    middle = bounds(scanned(BinlogFilesReader([tmp_path]), end))[-1]
    assert middle.pending == end.pending
    write_log(tmp_path, 2, [previous_gtids((uuid, [(1, 1)])), *commit(2, MAP, row(3)), *committed(3)])
    reader = BinlogFilesReader([tmp_path])
    (planned_range,) = ranges(scanned(reader, middle)[-2:])
    (tmp_path / "binlog.000001").unlink()
    with pytest.raises(LogPurged, match="rows of a committed XA transaction") as raised:
        scanned(reader, middle)
    assert "prepared at" in str(raised.value.expected)
    with pytest.raises(LogPurged, match="rows of a committed XA transaction") as raised:
        list(read(reader, [planned_range]))
    assert f"{XA_X.decode()}, prepared at {SOURCE}:1" in str(raised.value.where)


def test_a_range_that_does_not_know_of_a_prepare_is_an_error(tmp_path: Path) -> None:
    write_log(tmp_path, 1, [previous_gtids(), *prepared(1, MAP, row(1)), *committed(2)])
    reader = BinlogFilesReader([tmp_path])
    (whole,) = ranges(scanned(reader))
    raw = (tmp_path / "binlog.000001").read_bytes()
    second = [at for at in event_places(raw) if raw[at + 4] == 33][1]
    with pytest.raises(LogCorrupt, match="XA COMMIT of a transaction that was not prepared in the range"):
        list(read(reader, [replace(whole, start=second)]))


# ---- rolled back ----------------------------------------------------------------------------------------------------
SAVEPOINTS: dict[str, tuple[list[bytes], list[int]]] = {
    "kept": ([MAP, row(1), begin(b"SAVEPOINT `s`"), MAP, row(2), XID], [1, 2]),
    "taken back": ([MAP, row(1), begin(b"SAVEPOINT `s`"), MAP, row(2), begin(b"ROLLBACK TO `s`"), XID], [1]),
    "taken back twice": (
        [
            MAP,
            row(1),
            begin(b"SAVEPOINT s"),
            row(2),
            begin(b'ROLLBACK TO "S"'),
            row(3),
            begin(b"ROLLBACK TO `s`"),
            row(4),
            XID,
        ],
        [1, 4],
    ),
    "set again": (
        [begin(b"SAVEPOINT s"), MAP, row(1), begin(b"SAVEPOINT s"), row(2), begin(b"ROLLBACK TO s"), row(3), XID],
        [1, 3],
    ),
    "the outer one": (
        [
            MAP,
            row(1),
            begin(b"SAVEPOINT a"),
            row(2),
            begin(b"SAVEPOINT b"),
            row(3),
            begin(b"ROLLBACK TO a"),
            row(4),
            XID,
        ],
        [1, 4],
    ),
    "all": ([MAP, row(1), row(2), begin(b"ROLLBACK")], []),
}


@pytest.mark.usefixtures("_windows")
@pytest.mark.parametrize("name", SAVEPOINTS)
@pytest.mark.parametrize("packed", [False, True])
def test_rows_that_were_rolled_back_do_not_come(name: str, packed: bool, tmp_path: Path) -> None:
    inside, expected = SAVEPOINTS[name]
    transaction = [begin(), *inside]
    events = [gtid(1), *([payload(transaction)] if packed else transaction), *commit(2, MAP, row(9))]
    write_log(tmp_path, 1, [previous_gtids(), *events])
    assert values(tmp_path) == [*expected, 9]


def test_a_savepoint_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    write_log(tmp_path, 1, [previous_gtids(), *commit(1, MAP, row(1), begin(b"ROLLBACK TO `gone`"))])
    with pytest.raises(LogCorrupt, match="savepoint that its transaction has not set") as raised:
        scanned(BinlogFilesReader([tmp_path]))
    assert "ROLLBACK TO `gone`" in str(raised.value)


# ---- MariaDB --------------------------------------------------------------------------------------------------------
def test_mariadb_says_in_its_gtid_event_what_is_prepared(tmp_path: Path) -> None:
    xid = (7).to_bytes(4, "little") + b"\1\2" + b"xbq"
    v1 = rows_event(23, 1, [INT], [(1,)])
    events = [
        gtid_list(),
        *[mariadb_gtid(1, flags=64, more=xid), MAP, v1, begin(b"XA END " + XA_X), xa_prepare()],
        *[mariadb_gtid(2), MAP, rows_event(23, 1, [INT], [(2,)]), XID],
        *[mariadb_gtid(3, flags=128 | 1, more=xid), begin(b"XA COMMIT " + XA_X)],
        *[mariadb_gtid(4, flags=64, more=xid), MAP, v1, begin(b"XA END " + XA_X), xa_prepare()],
        *[mariadb_gtid(5, flags=128 | 1, more=xid), begin(b"XA ROLLBACK " + XA_X)],
    ]
    (tmp_path / "binlog.000001").write_bytes(log_bytes(events, version="11.8.6-MariaDB"))
    assert values(tmp_path) == [2, 1]
    raw = (tmp_path / "binlog.000001").read_bytes()
    places = [at for at in event_places(raw) if raw[at + 4] == 162]
    assert values(tmp_path, *places) == [2, 1]


def test_pending_transactions_travel_with_positions_as_json() -> None:
    xa = PreparedXa(
        xid="X'78',X'',1", gtid="0-1-7", file="b.000001", offset=77, tables=(T.name,), rolled_back=((2, 3),)
    )
    here = LogPosition(flavor="mariadb", gtids="0-1-9", file="b.000002", offset=4, pending=(xa,))
    assert codec.load(LogPosition, codec.dump(LogPosition, here)).pending == (xa,)
    assert here == replace(here, pending=())
    assert here.covers(replace(here, pending=()))
