"""Files of a log on disk, good and bad."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import pytest

from connectors.readers.binlog.files_reader import BinlogFilesReader
from connectors.readers.binlog.transport.files import list_files, read_head
from historian.errors import HistorianError, LogCorrupt, LogPurged, SourceError
from historian.positions import LogPosition
from logs.binlog_lab import bounds_of, scanned
from logs.log_files import FORMAT_END, gtid_list, log_bytes, mariadb_gtid, previous_gtids, write_log
from logs.row_events import UUID, XID, begin, commit, event, rows_event, table_map, wire_integer

INT = wire_integer("int", 3, 4, unsigned=False)
MAP = table_map(1, [INT])


def rows(*numbers: int) -> bytes:
    return rows_event(30, 1, [INT], [(number,) for number in numbers])


def transactions(first: int, last: int) -> list[bytes]:
    return [part for number in range(first, last + 1) for part in commit(number, MAP, rows(number))]


ROTATE = event(4, (4).to_bytes(8, "little") + b"binlog.000002")


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A directory with two files of three transactions each, and things that are no log."""
    write_log(tmp_path, 1, [previous_gtids(), *transactions(1, 3), ROTATE])
    write_log(tmp_path, 2, [previous_gtids((UUID, [(1, 3)])), *transactions(4, 6)])
    (tmp_path / "binlog.index").write_text("./binlog.000001\n./binlog.000002\n")
    (tmp_path / "data.000009").write_bytes(b"no log at all")
    (tmp_path / "sub").mkdir()
    return tmp_path


def place(file: str, offset: int, gtids: str = "") -> LogPosition:
    return LogPosition(flavor="mysql", gtids=gtids, file=file, offset=offset)


def read_all(*paths: Path) -> list[object]:
    reader = BinlogFilesReader(paths)
    return list(scanned(reader, reader.start()))


SOURCE = "00010203-0405-0607-0809-0a0b0c0d0e0f"


def test_a_directory_is_read_in_the_order_of_its_numbers(log: Path) -> None:
    reader = BinlogFilesReader([log])
    assert (reader.flavor, reader.start()) == ("mysql", place("binlog.000001", 4))
    assert reader.end().gtids == f"{SOURCE}:1-6"
    assert bounds_of(scanned(reader, reader.start()))[-1] == reader.end()


def test_files_are_read_in_the_order_of_their_numbers_however_they_are_given(tmp_path: Path) -> None:
    paths = [write_log(tmp_path, number, [previous_gtids()]) for number in (1_000_000, 999_999)]
    assert [file.name for file in list_files(paths)] == ["binlog.999999", "binlog.1000000"]


def test_a_file_and_its_directory_are_one(log: Path) -> None:
    assert len(list_files([log, log / "binlog.000001"])) == 2


def test_two_logs_in_one_directory_are_refused(log: Path) -> None:
    write_log(log, 1, []).rename(log / "other.000001")
    write_log(log, 1, [])
    with pytest.raises(SourceError, match="two binlog files have the same number"):
        list_files([log])


@pytest.mark.parametrize("paths", [[], ["nothing"], ["sub"]])
def test_no_log_at_all_is_refused(log: Path, paths: list[str]) -> None:
    with pytest.raises(SourceError, match=r"no binlog file is there|cannot be read"):
        BinlogFilesReader([log / path for path in paths]).start()


def test_a_file_that_is_no_binlog_is_refused(log: Path) -> None:
    for name, content in (("data.000009", b"no log at all"), ("empty.000010", b"")):
        (log / name).write_bytes(content)
        with pytest.raises(LogCorrupt, match="not a binlog file") as raised:
            BinlogFilesReader([log / name]).start()
        assert raised.value.where == f"{log / name}, offset 0"
        assert (raised.value.expected, raised.value.found) == ("fe 62 69 6e", content[:4].hex(" ") or "nothing")


def test_a_damaged_file_among_those_of_a_log_is_not_passed_over(log: Path) -> None:
    (log / "binlog.000003").write_bytes(b"\0\0\0\0 was a binlog")
    with pytest.raises(LogCorrupt, match="not a binlog file") as raised:
        read_all(log)
    assert raised.value.where == f"{log}/binlog.000003, offset 0"


def test_a_file_that_its_server_has_just_begun_is_not_there_yet(log: Path) -> None:
    (log / "binlog.000003").touch()
    assert BinlogFilesReader([log]).end().gtids == f"{SOURCE}:1-6"


def test_files_of_any_name_count_in_the_order_given(tmp_path: Path) -> None:
    shop = Path(__file__).parents[5] / "examples" / "shop" / "binlog"
    originals = [shop / "binlog.000001", shop / "binlog.000002"]
    copies = [tmp_path / "second half", tmp_path / "a copy.bin"]
    for copy, original in zip(copies, originals, strict=True):
        copy.write_bytes(original.read_bytes())

    assert ["second half.000001", "second half.000002"] == [file.name for file in list_files(copies)]
    assert BinlogFilesReader(copies).end().gtids == BinlogFilesReader(originals).end().gtids
    assert ["a copy.bin.000001"] == [file.name for file in list_files(copies[1:])]
    with pytest.raises(SourceError, match="not in the log's order"):
        list_files(copies[::-1])


def test_a_directory_beside_a_file_without_a_number_is_refused(log: Path) -> None:
    (log / "mysql-bin").write_bytes(log_bytes([]))
    with pytest.raises(SourceError, match="has no place in its order"):
        list_files([log / "mysql-bin", log])


def test_an_encrypted_file_is_named_as_such(log: Path) -> None:
    (log / "binlog.000003").write_bytes(b"\xfdbin" + bytes(512))
    with pytest.raises(SourceError, match="encrypted"):
        read_all(log)
    (log / "binlog.000003").unlink()
    path = write_log(log, 3, [event(164, bytes(17)), event(29, b"cipher")], version="11.8.6-MariaDB")
    with pytest.raises(SourceError, match="encrypted"):
        read_head(list_files([path])[0])


def test_a_file_cut_off_inside_its_first_event_is_corrupt(log: Path) -> None:
    path = log / "binlog.000002"
    for size in (4, 20, 50, FORMAT_END - 1):
        path.write_bytes(log_bytes([])[:size])
        with pytest.raises(LogCorrupt, match="without a description of its format"):
            read_all(log)


def test_a_file_cut_off_anywhere_is_corrupt_or_ends_with_a_whole_transaction(tmp_path: Path) -> None:
    whole = log_bytes([previous_gtids(), *transactions(1, 2)])
    path = tmp_path / "binlog.000001"
    ends, errors = {}, set()
    for size in range(FORMAT_END, len(whole)):
        path.write_bytes(whole[:size])
        try:
            ends[size] = str(bounds_of(read_all(path))[-1:])  # type: ignore[arg-type]
        except LogCorrupt as error:
            errors.add((error.what, str(error.where).partition(":")[0]))
    assert errors == {
        ("the binlog file ends inside an event", "binlog.000001"),
        ("the last binlog file ends inside a transaction", "binlog.000001"),
    }
    assert len(ends) == 3  # no event, PREVIOUS_GTIDS alone, one transaction


def test_a_file_that_its_server_still_writes_is_read_to_its_last_whole_transaction(tmp_path: Path) -> None:
    whole = log_bytes([previous_gtids(), *transactions(1, 3)], in_use=True)
    path = tmp_path / "binlog.000001"
    path.write_bytes(whole[:-7])
    reader = BinlogFilesReader([path])
    assert reader.end().gtids == f"{SOURCE}:1-2"
    first = bounds_of(scanned(reader, reader.start()))
    assert first[-1] == reader.end()
    path.write_bytes(whole)
    assert bounds_of(scanned(reader, first[-1]))[-1].gtids == f"{SOURCE}:1-3"


def test_a_file_that_its_server_died_over_is_corrupt_where_another_follows(log: Path) -> None:
    path = log / "binlog.000001"
    path.write_bytes(log_bytes([previous_gtids(), *transactions(1, 3)], in_use=True)[:-7])
    with pytest.raises(LogCorrupt, match="ends inside an event"):
        read_all(log)


def test_a_transaction_without_end_before_the_next_file_is_corrupt(log: Path) -> None:
    write_log(log, 1, [previous_gtids(), *transactions(1, 3)[:-1]])
    with pytest.raises(LogCorrupt, match="ends inside a transaction") as raised:
        read_all(log)
    assert f"{SOURCE}:3" in str(raised.value)


def test_every_flipped_byte_is_found(tmp_path: Path) -> None:
    whole = log_bytes([previous_gtids(), *transactions(1, 1)])
    path = tmp_path / "binlog.000001"
    for at in range(len(whole)):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0x40]) + whole[at + 1 :])
        with pytest.raises(SourceError) as raised:
            read_all(path)
        # What is wrong with the server's version comes before the sum of the event that says it.
        assert isinstance(raised.value, LogCorrupt) or at < FORMAT_END


def test_a_file_that_seems_to_have_no_checksums_is_found_by_that_of_its_first_event(tmp_path: Path) -> None:
    whole = log_bytes([previous_gtids(), *transactions(1, 1)])
    algorithm = FORMAT_END - 5
    assert whole[algorithm] == 1
    path = tmp_path / "binlog.000001"
    path.write_bytes(whole[:algorithm] + b"\0" + whole[algorithm + 1 :])
    with pytest.raises(LogCorrupt, match=r"checksum of a FORMAT_DESCRIPTION event is wrong \(binlog.000001:4\)"):
        read_all(path)


@pytest.mark.parametrize(
    "first, version",
    [
        (previous_gtids((UUID, [(1, 3)]))[:-3], "8.0.31"),
        (gtid_list((0, 7, 4), (3, 9, 2))[:-3], "11.8.6-MariaDB"),
        (previous_gtids((UUID, [(1, 3)]))[:23], "8.0.31"),
    ],
)
def test_gtids_that_do_not_fit_their_event_are_corrupt(tmp_path: Path, first: bytes, version: str) -> None:
    path = write_log(tmp_path, 1, [first], version=version, checksum=False)
    with pytest.raises(
        LogCorrupt, match=rf"a (PREVIOUS_GTIDS|GTID_LIST) event does not fit its length \({path.name}:{FORMAT_END}\)"
    ):
        read_all(path)


@pytest.mark.parametrize(
    "first, version, wrong",
    [
        (gtid_list((0, 7, 4)), "8.0.31", "a GTID_LIST event in a log of mysql"),
        (previous_gtids((UUID, [(1, 3)])), "11.8.6-MariaDB", "a PREVIOUS_GTIDS event in a log of mariadb"),
        (previous_gtids((UUID, [(0, 3)])), "8.0.31", "a PREVIOUS_GTIDS event cannot be read"),
        (previous_gtids((UUID, [(1, 3), (5, 2**63 - 2), (-9, -7)])), "8.0.31", "a PREVIOUS_GTIDS event cannot be read"),
    ],
)
def test_gtids_that_no_server_of_that_kind_writes_are_corrupt(
    tmp_path: Path, first: bytes, version: str, wrong: str
) -> None:
    path = write_log(tmp_path, 1, [first, *transactions(1, 1)], version=version, checksum=False)
    with pytest.raises(LogCorrupt, match=rf"{wrong} \({path.name}:{FORMAT_END}\)"):
        read_all(path)


def test_files_of_two_kinds_of_servers_are_no_log(tmp_path: Path) -> None:
    of_mariadb = [mariadb_gtid(5), MAP, rows_event(23, 1, [INT], [(1,)]), XID]
    write_log(tmp_path, 1, [gtid_list((0, 7, 4)), *of_mariadb], version="11.8.6-MariaDB")
    write_log(tmp_path, 2, [previous_gtids((UUID, [(1, 3)])), *transactions(4, 4)])
    with pytest.raises(LogCorrupt, match=r"FORMAT_DESCRIPTION at binlog.000001:4\); expected mysql; found mariadb"):
        read_all(tmp_path)
    with pytest.raises(LogCorrupt, match=r"FORMAT_DESCRIPTION at binlog.000001:4\); expected mysql; found mariadb"):
        scanned(BinlogFilesReader([tmp_path]), place("binlog.000001", 4, f"{SOURCE}:1-3"))


def test_no_memory_is_made_for_an_event_that_its_file_cannot_hold(tmp_path: Path) -> None:
    whole = log_bytes([previous_gtids(), *transactions(1, 1)], checksum=False)
    sizes = FORMAT_END + len(previous_gtids()) + 9
    path = tmp_path / "binlog.000001"
    path.write_bytes(whole[:sizes] + b"\xff\xff\xff\xf0" + bytes(4) + whole[sizes + 8 :])
    reader = BinlogFilesReader([path])
    tracemalloc.start()
    try:
        with pytest.raises(LogCorrupt, match="ends inside an event"):
            scanned(reader, place(path.name, 4))
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak_bytes < 100 << 20


def test_a_missing_file_in_the_middle_is_named(log: Path) -> None:
    write_log(log, 4, [previous_gtids((UUID, [(1, 9)])), *transactions(10, 11)])
    with pytest.raises(LogPurged, match="a binlog file is missing") as raised:
        read_all(log)
    assert (raised.value.expected, raised.value.found) == ("number 3 after binlog.000002", "binlog.000004")


def test_a_position_behind_the_files_end_is_refused(log: Path) -> None:
    reader = BinlogFilesReader([log])
    with pytest.raises(LogPurged, match="ends before the position"):
        scanned(reader, place("binlog.000001", 100_000, f"{SOURCE}:1-3"))
    with pytest.raises(LogPurged, match="ends before the position"):
        scanned(reader, place("binlog.000001", 100_000))


def test_a_position_that_is_no_event_is_refused(log: Path) -> None:
    with pytest.raises(HistorianError, match=r"does not say its own place|impossible size|ends inside"):
        scanned(BinlogFilesReader([log]), place("binlog.000001", FORMAT_END + 3, f"{SOURCE}:1-3"))


def test_gtids_purged_on_the_server_are_taken_from_the_next_file(log: Path) -> None:
    write_log(log, 3, [previous_gtids((UUID, [(1, 50)])), *transactions(51, 51)])
    assert bounds_of(read_all(log))[-1].gtids == f"{SOURCE}:1-51"  # type: ignore[arg-type]


def test_mariadb_files_know_their_domains(tmp_path: Path) -> None:
    rest = [MAP, rows_event(23, 1, [INT], [(1,)]), XID]
    events = [gtid_list((0, 7, 4), (3, 9, 2)), mariadb_gtid(5), *rest, mariadb_gtid(6), *rest]
    path = write_log(tmp_path, 1, events, version="11.8.6-MariaDB")
    reader = BinlogFilesReader([path])
    assert (reader.flavor, reader.start().gtids, reader.end().gtids) == ("mariadb", "0-7-4,3-9-2", "0-7-6,3-9-2")


def test_servers_before_gtids_are_refused(tmp_path: Path) -> None:
    path = write_log(tmp_path, 1, [begin(), XID], version="5.5.62")
    with pytest.raises(SourceError, match="too old"):
        read_all(path)


def test_a_relay_log_is_refused(tmp_path: Path) -> None:
    whole = log_bytes([previous_gtids(), *transactions(1, 1)], checksum=False)
    at = FORMAT_END + 13
    path = tmp_path / "relay.000001"
    path.write_bytes(whole[:at] + (9999).to_bytes(4, "little") + whole[at + 4 :])
    with pytest.raises(LogCorrupt, match="does not say its own place") as raised:
        read_all(path)
    assert "relay log" in str(raised.value.next_step)
