"""JSON columns of real MySQL servers, against the text that the same servers print."""

from __future__ import annotations

import contextlib
import json
import random
import string
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from historian.errors import ValueUnrepresentable
from historian.schema.snapshots import ColumnType
from logs.decoder_lab import capture, changes, decode, decode_events, log_end, planned
from logs.row_events import WireType, commit, rows_event, snapshot_of, table_map, wire_integer

if TYPE_CHECKING:
    from databases.servers import Server

DATABASE = "decoder_json"
SEED = 7159
OPAQUE = [
    "CAST(-0.00010 AS DECIMAL(20,5))",
    "CAST(REPEAT('9', 65) AS DECIMAL(65,0))",
    "CAST(0 AS DECIMAL(65,30))",
    "CAST(CONCAT('-0.', REPEAT('123456789', 3)) AS DECIMAL(30,30))",
    "CAST(5 AS DECIMAL(9,0))",
    "123456789.000000001",
    "TIMESTAMP('2015-01-15 23:24:25')",
    "CAST('2015-01-15 23:24:25.123' AS DATETIME(3))",
    "CAST('9999-12-31' AS DATE)",
    "CAST('-23:24:25.120001' AS TIME(6))",
    "CAST('00:00:00' AS TIME)",
    "X'0102FF'",
    "REPEAT(X'00FF10', 19)",
    "REPEAT(X'00FF10', 20)",
    "REPEAT(X'AB', 1000)",
    "b'101'",
    "CAST('a' AS BINARY)",
    "ST_GeomFromText('POINT(1 2)')",
    "YEAR('2001-01-01')",
    "CAST(18446744073709551615 AS UNSIGNED)",
    "TRUE",
    "NULL",
]


@pytest.fixture(params=["mysql9", "mysql8", "mysql57"])
def source(request: pytest.FixtureRequest) -> Server:
    found: Server = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def cursor(source: Server) -> Iterator[Any]:
    with contextlib.closing(source.connect()) as connection, connection.cursor() as found:
        found.execute(f"DROP DATABASE IF EXISTS {DATABASE}")
        found.execute(f"CREATE DATABASE {DATABASE}")
        found.execute(f"USE {DATABASE}")
        found.execute("CREATE TABLE t (k INT PRIMARY KEY AUTO_INCREMENT, v JSON)")
        yield found
        found.execute(f"DROP DATABASE {DATABASE}")


def text(draw: random.Random, longest: int = 12) -> str:
    letters = [*string.printable, "\0", "\x1f", "\x7f", "é", "\u2028", "\N{GRINNING FACE}", '"', "\\", "/", "\b", "\f"]
    return "".join(draw.choices(letters, k=draw.randint(0, longest)))


def number(draw: random.Random) -> float | int:
    if draw.random() < 0.5:
        low, high = draw.choice(((-(2**15), 2**16), (-(2**31), 2**32), (-(2**63), 2**64 - 1)))
        return draw.randint(low, high)
    return draw.choice(
        (draw.uniform(-1, 1) * 10.0 ** draw.randint(-320, 300), float(draw.randint(-99, 99)), draw.random())
    )


def document(draw: random.Random, depth: int) -> Any:
    kind = draw.random()
    if depth == 0 or kind < 0.4:
        return draw.choice((None, True, False, number(draw), number(draw), text(draw), text(draw, 300)))
    if kind < 0.7:
        return [document(draw, depth - 1) for _ in range(draw.randint(0, 6))]
    return {text(draw): document(draw, depth - 1) for _ in range(draw.randint(0, 6))}


def documents() -> list[Any]:
    draw = random.Random(SEED)
    found = [document(draw, draw.randint(0, 5)) for _ in range(300)]
    found += [[number(draw) for _ in range(2000)]]
    nested: Any = 1
    for level in range(97):
        nested = [nested] if level % 2 else {"k": nested}
    found += [nested, {}, [], "", 0, -1, 1.0, None, {"": ""}]
    # Over 64 KB documents take their large form.
    found += [["x" * 1000] * 80, {f"key {i:05d}": i * 1000003 for i in range(9000)}, {"k" * 65535: "v" * 70000}]
    # More elements and keys than 16 bits count.
    found += [[None] * 70000, {f"{i:x}": i for i in range(66000)}]
    found += [[2**15 - 1, 2**15, 2**16 - 1, 2**16, 2**31 - 1, 2**31, 2**32 - 1, 2**32, *range(20000)]]
    return found


def check(source: Server, cursor: Any, since: tuple[str, int]) -> None:
    cursor.execute("SELECT CAST(v AS CHAR) FROM t ORDER BY k")
    expected = [value for (value,) in cursor.fetchall()]
    snapshot = capture(source, DATABASE, "t")
    found = [value for _, _, value in changes(decode(source, planned(snapshot), since), snapshot)]
    assert found == expected


def test_documents_are_printed_as_the_server_prints_them(source: Server, cursor: Any) -> None:
    since = log_end(source)
    for value in documents():
        cursor.execute("INSERT INTO t (v) VALUES (%s)", (json.dumps(value, ensure_ascii=False),))
    cursor.execute("INSERT INTO t (v) VALUES (NULL)")
    check(source, cursor, since)


def test_doubles_are_printed_as_the_server_prints_them(source: Server, cursor: Any) -> None:
    since = log_end(source)
    draw = random.Random(SEED)
    doubles = [10.0**e for e in range(-323, 309)] + [1.5 * 10.0**e for e in range(-20, 20)]
    doubles += [draw.uniform(-10, 10) * 10.0 ** draw.randint(-25, 25) for _ in range(2000)]
    doubles += [
        float(f"{draw.randint(1, 10**digits)}e{draw.randint(-30, 30)}") for digits in range(1, 18) for _ in range(40)
    ]
    doubles += [5e-324, 2.2250738585072014e-308, 1.7976931348623157e308, 0.0, -0.0, 2.0**53, 2.0**63, 1e15 - 1]
    texts = (f"{value!r}" if "e" in repr(value) else f"{value!r}e0" for value in doubles)
    cursor.execute(f"INSERT INTO t (v) VALUES (JSON_ARRAY({', '.join(texts)}))")
    check(source, cursor, since)


def test_values_that_json_has_no_type_for_are_printed_as_the_server_prints_them(source: Server, cursor: Any) -> None:
    since = log_end(source)
    for value in OPAQUE:
        cursor.execute(f"INSERT INTO t (v) VALUES (JSON_ARRAY({value})), (JSON_OBJECT('a', {value}, 'b', 1))")
        if value != "NULL":
            cursor.execute(f"INSERT INTO t (v) SELECT CAST({value} AS JSON)")
    check(source, cursor, since)


JSON = WireType(
    type=ColumnType(name="json"), code=245, metadata=b"\4", encode=lambda data: len(data).to_bytes(4, "little") + data
)
TYPES = [wire_integer("int", 3, 4, unsigned=False), JSON]


def printed(document: bytes) -> str:
    events = commit(1, table_map(5, TYPES), rows_event(30, 5, TYPES, [(1, document)]))
    ((_, _, found),) = changes(decode_events(events, snapshot_of(TYPES)), snapshot_of(TYPES))
    return str(found)


def test_a_document_of_no_bytes_is_null() -> None:
    # What a NOT NULL column holds that was added without a default.
    assert printed(b"") == "null"


@pytest.mark.parametrize(
    "document",
    [
        b"\x0d",  # no such type
        b"\x0c",  # a string without a length
        b"\x0c\x05abc",  # longer than the document
        b"\x0c\xff\xff\xff\xff\xff\xff",  # a length without an end
        b"\x04\x07",  # no such literal
        b"\x0b\0\0",  # half a double
        b"\x02\x01\0\xff\xff\x05\0\0",  # an array larger than the document
        b"\x02\xff\xff\x08\0\x05\0\0",  # more elements than bytes
        b"\x02\x01\0\x07\0\x0c\x70\0",  # a value behind the array
        b"\x00\x01\0\x0b\0\x70\0\x01\0\x05\0\0",  # a key behind the object
        b"\x02\x01\0\x07\0\x02\0\0",  # an array that holds itself
        b"\x02\x02\0\x0a\0\x02\0\0\x02\0\0",  # twice
        b"\x02\x05\0\x3c\0" + b"\x0c\x13\0" * 5 + b"\x28" + b"long" * 10,  # the same string five times
        b"\x0f\xf6\x02\xff\x01",  # a decimal of 255 digits
        b"\x0f\x0c\x02\0\0",  # half a datetime
    ],
)
def test_damaged_documents_are_errors_that_name_the_column(document: bytes) -> None:
    with pytest.raises(ValueUnrepresentable, match=r"JSON document .*db\.t\.c2, row 0 of its chunk"):
        printed(document)


def test_flipped_bytes_of_documents_are_text_or_errors() -> None:
    draw = random.Random(3)
    array = b"\x02\x05\x00\x22\x00\x05\x07\x00\x0c\x13\x00\x0b\x16\x00\x00\x1e\x00\x04\x01\x00" + b"\x02hi"
    array += bytes(8) + b"\0\0\4\0"
    outcomes = {"text": 0, "error": 0}
    for _ in range(2000):
        damaged = bytearray(array)
        for _ in range(draw.randint(0, 2)):
            damaged[draw.randrange(len(damaged))] = draw.randrange(256)
        try:
            printed(bytes(damaged))
            outcomes["text"] += 1
        except ValueUnrepresentable:
            outcomes["error"] += 1
    assert min(outcomes.values()) > 100
