"""TABLE_MAP events, as recorded from servers and with damage."""

from __future__ import annotations

import pytest

from connectors.readers.base import MappedColumn
from connectors.readers.binlog.events.table_maps import ColumnCode, table_map
from historian.errors import LogCorrupt
from historian.names import TableName
from logs.row_events import event


def mapped(types: bytes, metadata: bytes, optional: bytes = b"", nulls: bytes = b"\xff\xff") -> bytes:
    body = (300).to_bytes(6, "little") + b"\1\0" + b"\4shop\0" + b"\6orders\0"
    body += bytes([len(types)]) + types + bytes([len(metadata)]) + metadata + nulls[: (len(types) + 7) // 8]
    return event(19, body + optional)


def field(kind: int, data: bytes) -> bytes:
    return bytes([kind, len(data)]) + data


def columns(types: bytes, metadata: bytes, *optional: bytes, flavor: str = "mysql") -> tuple[MappedColumn, ...]:
    return table_map(mapped(types, metadata, b"".join(optional)), flavor).columns


C = ColumnCode


def test_number_name_and_nullability() -> None:
    found = table_map(mapped(bytes([C.LONG, C.LONG, C.LONG]), b"", nulls=b"\x05"), "mysql")
    assert (found.number, found.table) == (300, TableName("shop", "orders"))
    assert [column.nullable for column in found.columns] == [True, False, True]
    assert found.columns[0] == MappedColumn(type=C.LONG, metadata=0, nullable=True)


def test_metadata_is_read_in_each_types_own_width() -> None:
    types = bytes(
        [C.LONG, C.VARCHAR, C.NEWDECIMAL, C.BIT, C.DATETIME2, C.BLOB, C.STRING, C.STRING, C.STRING, C.JSON, C.VECTOR]
    )
    metadata = b"\x2c\x01" b"\x0a\x02" b"\x01\x02" b"\x06" b"\x03" b"\xce\xfc" b"\xf7\x01" b"\xf8\x02" b"\x04" b"\x04"  # fmt: skip
    assert [(column.type, column.metadata) for column in columns(types, metadata)] == [
        (C.LONG, 0),
        (C.VARCHAR, 300),
        (C.NEWDECIMAL, 0x0A02),
        (C.BIT, 0x0201),
        (C.DATETIME2, 6),
        (C.BLOB, 3),
        (C.STRING, 0xCEFC),
        (C.ENUM, 0xF701),
        (C.SET, 0xF802),
        (C.JSON, 4),
        (C.VECTOR, 4),
    ]


def test_signs_are_of_numeric_columns_years_included() -> None:
    types = bytes([C.TINY, C.VARCHAR, C.YEAR, C.LONG, C.BIT, C.FLOAT])
    found = columns(types, b"\x0a\0\1\0\4", field(1, b"\x50"))
    assert [column.unsigned for column in found] == [False, None, True, False, None, True]


def test_charsets_as_one_default_and_exceptions() -> None:
    types = bytes([C.VARCHAR, C.LONG, C.BLOB, C.VARCHAR, C.STRING])
    metadata = b"\x0a\0\2\x0a\0\xf7\x01"
    found = columns(types, metadata, field(2, b"\xfc\xff\0\1\x3f"), field(10, b"\x08"))
    assert [column.charset for column in found] == [255, None, 63, 255, 8]


@pytest.mark.parametrize("flavor, charsets", [("mysql", [45, None, 63, 8]), ("mariadb", [45, 63, None, 8])])
def test_charsets_one_by_one_are_of_other_columns_on_each_flavor(flavor: str, charsets: list[int | None]) -> None:
    types = bytes([C.VARCHAR, C.GEOMETRY, C.VECTOR, C.VARCHAR])
    found = columns(types, b"\x0a\0\4\4\x0a\0", field(3, b"\x2d\x3f\x08"), flavor=flavor)
    assert [column.charset for column in found] == charsets


def test_names_keys_and_visibility() -> None:
    types = bytes([C.LONG, C.LONG, C.LONG])
    found = columns(types, b"", field(4, b"\1a\2\xc3\xa4\1c"), field(8, b"\2\0"), field(12, b"\xa0"))
    assert [column.name for column in found] == ["a", "\u00e4", "c"]
    assert [column.primary_key for column in found] == [True, False, True]
    assert [column.visible for column in found] == [True, False, True]


def test_a_key_with_prefixes_names_a_length_behind_each_column() -> None:
    found = columns(bytes([C.LONG, C.BLOB, C.LONG]), b"\2", field(9, b"\1\x14\2\0"))
    assert [column.primary_key for column in found] == [False, True, True]


def test_labels_are_in_their_columns_charset() -> None:
    types = bytes([C.STRING, C.STRING, C.STRING])
    labels = field(5, b"\2\1q\1r") + field(6, b"\1\2\xc3\xa4\2\1\xe4\1x")
    found = columns(types, b"\xf7\1\xf8\1\xf7\1", labels, field(11, b"\x2d\x2d\x08"))
    assert [column.labels for column in found] == [("\u00e4",), ("q", "r"), ("\u00e4", "x")]


def test_fields_that_are_not_known_are_left_alone() -> None:
    assert columns(bytes([C.LONG]), b"", field(99, b"x"))[0].metadata == 0


def test_vectors_have_their_dimension() -> None:
    found = columns(bytes([C.VECTOR, C.LONG, C.VECTOR]), b"\4\4", field(13, b"\3\xfc\x2c\1"))
    assert [column.dimension for column in found] == [3, None, 300]


def test_shapes_have_their_kind_as_far_as_it_is_known() -> None:
    found = columns(bytes([C.GEOMETRY, C.LONG, C.GEOMETRY]), b"\4\4", field(7, b"\1\x20"))
    assert [column.geometry for column in found] == [1, None, None]


def test_more_than_250_columns_have_longer_lengths() -> None:
    body = bytes(6) + b"\1\0" + b"\1d\0\1t\0" + b"\xfc\x2c\x01" + bytes([C.LONG]) * 300 + b"\0" + b"\xff" * 38
    assert len(table_map(event(19, body), "mysql").columns) == 300


@pytest.mark.parametrize(
    "kind,metadata",
    [
        (C.BLOB, 0),
        (C.BLOB, 5),
        (C.JSON, 0),
        (C.GEOMETRY, 5),
        (C.DATETIME2, 7),
        (C.TIME2, 200),
        (C.FLOAT, 8),
        (C.DOUBLE, 4),
    ],
)
def test_a_number_that_the_columns_type_cannot_have_is_corrupt(kind: int, metadata: int) -> None:
    with pytest.raises(LogCorrupt, match=f"column 2 .*(?s:.*)for type {kind}"):
        columns(bytes([C.LONG, kind]), bytes([metadata]))


@pytest.mark.parametrize("keep", range(19, 60, 3))
def test_an_event_that_is_cut_off_is_corrupt(keep: int) -> None:
    whole = mapped(bytes([C.VARCHAR] * 4), b"\x0a\0" * 4, field(4, b"\1a\1b\1c\1d"))
    assert len(whole) > 60
    with pytest.raises(LogCorrupt, match="does not fit its length"):
        table_map(whole[:keep], "mysql")
