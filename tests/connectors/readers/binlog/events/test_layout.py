"""The events that describe a file and its place in the log."""

from __future__ import annotations

import struct

import pytest

from connectors.readers.binlog.events.layout import (
    event_name,
    format_description,
    gtid_list,
    header,
    packed_integer,
    previous_gtids,
    rotate,
)
from connectors.readers.binlog.transport.dump import encoded_gtids
from historian.errors import LogCorrupt, PositionError, SourceError
from historian.positions import GtidSet
from logs.log_files import format_description as written_format
from logs.log_files import gtid_list as written_list
from logs.log_files import previous_gtids as written_previous
from logs.row_events import event

# The first event of a closed log of MySQL 9.7.4.
RECORDED = bytes.fromhex(
    "727c016b0fefae00007b0000007f00000000000400392e372e342d320000000000000000000000000000000000000000"
    "00000000000000000000000000000000000000000000000000000013000d0008000000000400040000006300041a0800"
    "0000000000020000000a0a0a2a2a001234000a28000001578d528c"
)


def test_format_description_says_who_wrote_the_file_and_how() -> None:
    found = format_description(RECORDED)
    assert (found.server_version, found.version, found.flavor) == ("9.7.4-2", 90704, "mysql")
    assert (found.checksum, found.in_use) == (True, False)


@pytest.mark.parametrize(
    "version, flavor, number",
    [
        ("5.7.22-log", "mysql", 50722),
        ("8.0.31", "mysql", 80031),
        ("10.11.19-MariaDB-0+deb12u1-log", "mariadb", 101119),
        ("11.8.6-MariaDB-0+deb13u1 from Debian-log", "mariadb", 110806),
    ],
)
def test_versions_become_numbers(version: str, flavor: str, number: int) -> None:
    found = format_description(written_format(version, checksum=False, in_use=True) + bytes(4))
    assert (found.version, found.flavor, found.checksum, found.in_use) == (number, flavor, False, True)


@pytest.mark.parametrize("version", ["5.5.62-log", "5.5.68-MariaDB", "nonsense"])
def test_servers_that_are_too_old_are_refused(version: str) -> None:
    with pytest.raises(SourceError, match="server that is too old"):
        format_description(written_format(version) + bytes(4))


def test_an_unknown_checksum_algorithm_is_refused() -> None:
    raw = written_format() + bytes(4)
    with pytest.raises(SourceError, match="unknown checksum algorithm"):
        format_description(raw[:-5] + b"\7" + bytes(4))


def test_a_format_description_that_is_cut_off_is_corrupt() -> None:
    with pytest.raises(LogCorrupt, match="too short"):
        format_description(written_format()[:70])


def test_header_fields_stand_where_the_server_puts_them() -> None:
    found = header(struct.pack("<IBIIIH", 1, 19, 7, 100, 4711, 0x20))
    assert (found.timestamp, found.type, found.server_id) == (1, 19, 7)
    assert (found.size_bytes, found.next_offset, found.flags) == (100, 4711, 0x20)
    assert found.artificial


def test_rotate_names_the_next_file() -> None:
    assert rotate(event(4, struct.pack("<Q", 4) + b"binlog.000007")) == ("binlog.000007", 4)


def test_previous_gtids_are_half_open_intervals() -> None:
    one, other = bytes(range(16)), bytes(range(16, 32))
    found = previous_gtids(written_previous((one, [(1, 5), (7, 7)]), (other, [(3, 3)])))
    assert str(found) == "00010203-0405-0607-0809-0a0b0c0d0e0f:1-5:7,10111213-1415-1617-1819-1a1b1c1d1e1f:3"
    assert not previous_gtids(written_previous())


@pytest.mark.parametrize(
    "text",
    [
        "",
        "00010203-0405-0607-0809-0a0b0c0d0e0f:1-5:7",
        "00010203-0405-0607-0809-0a0b0c0d0e0f:1-5:tag:2-3:other_tag:9,10111213-1415-1617-1819-1a1b1c1d1e1f:3",
    ],
)
def test_a_gtid_set_survives_its_encoding(text: str) -> None:
    gtids = GtidSet.parse(text)
    assert previous_gtids(event(35, encoded_gtids(gtids))) == gtids


def test_a_domains_latest_gtid_stands_last_in_a_list() -> None:
    found = gtid_list(written_list((0, 7, 9), (0, 3, 12), (5, 3, 1), (0, 7, 14)))
    assert str(found) == "0-7-14,5-3-1"


def test_a_number_that_no_kernel_takes_is_refused_where_it_stands_in_a_list() -> None:
    assert str(gtid_list(written_list((0, 7, 2**63 - 1)))) == "0-7-9223372036854775807"
    with pytest.raises(PositionError, match="found 0-7-9223372036854775808"):
        gtid_list(written_list((0, 7, 2**63)))


@pytest.mark.parametrize(
    "data, value, behind",
    [(b"\xfa", 250, 1), (b"\xfc\xfb\0", 251, 3), (b"\xfd\0\0\1", 65536, 4), (b"\xfe" + bytes(7) + b"\1", 1 << 56, 9)],
)
def test_packed_integers_take_as_many_bytes_as_they_need(data: bytes, value: int, behind: int) -> None:
    assert packed_integer(b"??" + data, 2) == (value, 2 + behind)


def test_a_packed_null_is_no_integer() -> None:
    with pytest.raises(LogCorrupt, match="a length-encoded integer begins"):
        packed_integer(b"\xfb", 0)


def test_events_have_names() -> None:
    assert [event_name(number) for number in (40, 162, 99)] == ["TRANSACTION_PAYLOAD", "MARIADB_GTID", "type 99"]
