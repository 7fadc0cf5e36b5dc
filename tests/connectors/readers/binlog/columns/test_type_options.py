"""Values in the forms that users choose, and tables that stop at a value that their form cannot hold."""

from __future__ import annotations

import contextlib
import json
import struct
from dataclasses import replace
from datetime import date, datetime
from typing import TYPE_CHECKING, Any

import pytest

from historian.changelog.chunks import dead_letters
from historian.errors import ValueUnrepresentable
from historian.names import TableName
from historian.schema.snapshots import ColumnType, Snapshot
from historian.values.policies import POLICIES
from logs.decoder_lab import capture, changes, decode, decode_events, log_end, planned
from logs.row_events import (
    WireType,
    commit,
    rows_event,
    snapshot_of,
    table_map,
    wire_integer,
    wire_json,
    wire_temporal,
    wire_text,
)

if TYPE_CHECKING:
    from databases.servers import Server

INT = wire_integer("int", 3, 4, unsigned=False)
BIG = wire_integer("bigint", 8, 8, unsigned=True)
FLAG = WireType(
    type=ColumnType(name="tinyint", length=1), code=1, metadata=b"", encode=lambda value: value.to_bytes(1, "little")
)
DATE = wire_temporal("date")
ZERO = WireType(type=DATE.type, code=10, metadata=b"", encode=lambda _: bytes(3))
DATABASE = "forms"


def formed(types: list[WireType], *forms: str, name: str = "t") -> Snapshot:
    """A table of an INT key and these columns, in these forms."""
    snapshot = snapshot_of([INT, *types], name=TableName("db", name))
    columns = zip(snapshot.columns[1:], forms, strict=True)
    kept = tuple(replace(column, type=replace(column.type, options=form)) for column, form in columns)
    return replace(snapshot, columns=(snapshot.columns[0], *kept))


COLUMNS = {
    "BIGINT UNSIGNED": ("text", ["0", "9223372036854775808", "18446744073709551615", None]),
    "BIGINT(20) UNSIGNED ZEROFILL": ("int64", ["0", "5", "9223372036854775807", None]),
    "TINYINT(1)": ("boolean", ["0", "1", None, "1"]),
    "BIT(1)": ("binary", ["0", "1", None, "1"]),
    "TIME(3)": ("text", ["'-838:59:59'", "'00:00:00.001'", "'25:00:00'", None]),
    "TIME": ("text", ["'-00:00:01'", "'838:59:59'", None, "'0:0:1'"]),
    "DATE": ("text", ["'0000-00-00'", "'2024-02-31'", "'2024-00-01'", "'9999-12-31'"]),
    "DATETIME(6)": ("text", ["'0000-00-00'", "'2024-02-29 01:02:03.000004'", None, "'2024-04-31 00:00:00.5'"]),
    "DATETIME": ("error", ["'2024-01-01'", "'2024-02-29 01:02:03'", None, "'1000-01-01'"]),
    "TIMESTAMP(2) NULL": ("text", ["0", "'2038-01-19 03:14:07.99'", None, "'1970-01-01 00:00:01'"]),
}
VALUES: dict[str, Any] = {
    "int64": int,
    "boolean": lambda text: text == "1",
    "binary": lambda text: bytes([int(text)]),
    "error": lambda text: datetime.strptime(text, "%Y-%m-%d %H:%M:%S"),  # noqa: DTZ007 a DATETIME has no zone
}


def test_values_have_the_chosen_form(server: Server) -> None:
    with contextlib.closing(server.connect()) as connection, connection.cursor() as cursor:
        cursor.execute(f"CREATE DATABASE {DATABASE}")
        cursor.execute(f"USE {DATABASE}")
        cursor.execute("SET SESSION sql_mode = 'ALLOW_INVALID_DATES', time_zone = '+00:00'")
        since = log_end(server)
        kinds = ", ".join(f"c{at} {kind}" for at, kind in enumerate(COLUMNS))
        cursor.execute(f"CREATE TABLE t (k INT PRIMARY KEY, {kinds})")
        for k in range(4):
            values = ", ".join(values[k] or "NULL" for _, values in COLUMNS.values())
            cursor.execute(f"INSERT INTO t VALUES ({k}, {values})")
        reads = ", ".join(
            f"CAST(c{at}{' + 0' * kind.startswith(('BIG', 'BIT'))} AS CHAR)" for at, kind in enumerate(COLUMNS)
        )
        cursor.execute(f"SELECT {reads} FROM t ORDER BY k")
        rows = cursor.fetchall()
        snapshot = capture(server, DATABASE, "t")
        cursor.execute(f"DROP DATABASE {DATABASE}")
    forms = [form for form, _ in COLUMNS.values()]
    columns = zip(snapshot.columns[1:], forms, strict=True)
    kept = (replace(column, type=replace(column.type, options=form)) for column, form in columns)
    snapshot = replace(snapshot, columns=(snapshot.columns[0], *kept))

    found = [row[2:] for row in changes(decode(server, planned(snapshot), since), snapshot)]

    makes = [VALUES.get(form, str) for form in forms]
    assert found == [
        tuple(None if text is None else make(text) for make, text in zip(makes, row, strict=True)) for row in rows
    ]


@pytest.mark.parametrize(
    "kind,form,good,bad,written,why",
    [
        (BIG, "int64", 2**63 - 1, 2**63, None, "a number that int64 cannot hold .*found 9223372036854775808"),
        (FLAG, "boolean", 1, 2, None, "a number that is no boolean .*expected 0 or 1.*found 2"),
        (DATE, "error", date(2024, 2, 29), 0, ZERO, "a date that the calendar does not have .*types.zero_dates"),
    ],
    ids=["int64", "boolean", "date"],
)
def test_what_the_form_cannot_hold_is_an_error_that_names_column_and_transaction(
    kind: WireType, form: str, good: Any, bad: Any, written: WireType | None, why: str
) -> None:
    events = commit(41, table_map(5, [INT, kind]), rows_event(30, 5, [INT, kind], [(1, good), (2, None)]))
    events += commit(42, rows_event(30, 5, [INT, written or kind], [(3, bad)]))
    with pytest.raises(ValueUnrepresentable, match=why) as caught:
        decode_events(events, formed([kind], form))
    assert caught.value.where is not None
    assert caught.value.where.startswith("db.t.c2, row 2 of its chunk, transaction ")
    assert caught.value.where.endswith(":42")


ENUM = WireType(
    type=ColumnType(name="enum", labels=("a", "b"), charset="utf8mb4"),
    code=254,
    metadata=b"\xf7\x01",
    encode=lambda value: value.to_bytes(1, "little"),
)
SET = WireType(
    type=ColumnType(name="set", labels=tuple(f"m{at}" for at in range(9)), charset="utf8mb4"),
    code=254,
    metadata=b"\xf8\x02",
    encode=lambda value: value.to_bytes(2, "little"),
)
FULL_SET = WireType(
    type=ColumnType(name="set", labels=tuple(f"m{at}" for at in range(64)), charset="utf8mb4"),
    code=254,
    metadata=b"\xf8\x08",
    encode=lambda value: value.to_bytes(8, "little"),
)
COMPRESSED = WireType(
    type=wire_text(9).type, code=141, metadata=b"\x25\0", encode=lambda value: bytes([len(value)]) + value
)
TWICE = b"\0" + struct.pack("<6H", 2, 19, 18, 1, 18, 1) + 2 * b"\4\0\0" + b"k"
"""A JSON object that has the key k twice."""
UNFIT: dict[str, tuple[WireType, str, str, dict[Any, Any], dict[Any, tuple[str, str]]]] = {
    "int64": (
        BIG,
        "int64",
        "int64_overflow",
        {0: 0, 2**63 - 1: 2**63 - 1},
        {2**63: ("0000000000000080", str(2**63)), 2**64 - 1: ("ff" * 8, str(2**64 - 1))},
    ),
    "boolean": (FLAG, "boolean", "invalid_boolean", {0: False, 1: True}, {2: ("02", "2"), 255: ("ff", "-1")}),
    "enum": (ENUM, "", "invalid_member", {0: "", 1: "a", 2: "b"}, {3: ("03", "3"), 255: ("ff", "255")}),
    "set": (SET, "", "invalid_member", {0: "", 257: "m0,m8"}, {512: ("0002", "512"), 0xFFFF: ("ffff", "65535")}),
    "full set": (FULL_SET, "", "invalid_member", {1 << 63: "m63"}, {}),
    "json": (
        wire_json(),
        "",
        "invalid_json",
        {b"\x0c\x01a": '"a"', b"\x04\x00": "null"},
        {b"\xc8\x01": ("c801", "\\xc8\x01"), b"\x0c\x01\xff": ("0c01ff", "\x0c\x01\\xff")},
    ),
    "variant": (
        wire_json(),
        "variant",
        "invalid_variant",
        {b"\x0c\x01a": '"a"', b"\x04\x00": "null"},
        {TWICE: (TWICE.hex(), '{"k": null, "k": null}')},
    ),
    "compressed": (
        COMPRESSED,
        "",
        "invalid_compressed",
        {b"": "", b"\0ab": "ab"},
        {b"\x81\x05xx": ("81057878", "\\x81\x05xx"), b"\x10a": ("1061", "\x10a")},
    ),
}


@pytest.mark.parametrize("policy", ["fail", "null_and_count", "dead_letter"])
@pytest.mark.parametrize("per_window", [1, 100])
@pytest.mark.parametrize("unfit", UNFIT)
def test_what_cannot_be_represented_goes_by_its_policy(unfit: str, policy: str, per_window: int) -> None:
    kind, shape, reason, good, bad = UNFIT[unfit]
    table = formed([kind], f"{shape} {POLICIES[reason][policy]}".strip())
    values = [*good, None, *bad, *good, *bad]
    events = table_map(5, [INT, kind])
    logged = commit(41, events, *(rows_event(30, 5, [INT, kind], [(k, value)]) for k, value in enumerate(values)))

    chunks = decode_events(logged, table, per_window=per_window, stops=True)

    (chunk,) = chunks
    if policy == "fail" and unfit == "variant":
        assert chunk.stopped == "", "the sink that makes VARIANT stops the table"
        return
    if policy == "fail" and bad:
        assert f"(db.t.c2, row {len(good) + 1} of its chunk" in chunk.stopped
        return
    assert [row[2] for row in changes(chunks, table)] == [good.get(value) for value in values]
    nulled = json.loads((chunk.rows.schema.metadata or {}).get(b"nulled", b"{}"))
    assert nulled == ({"h2": 2 * len(bad)} if bad else {})
    told = json.loads(dead_letters(chunk) or "[]")
    assert [(each["column"], each["reason"], each["raw"], each["text"]) for each in told] == (
        [(2, reason, *each) for each in bad.values()] * 2 if policy == "dead_letter" else []
    )
    assert [each["ordinal"] for each in told] == sorted(each["ordinal"] for each in told)


@pytest.mark.parametrize("unfit", [name for name in UNFIT if name not in ("full set", "variant")])
def test_what_cannot_be_represented_stops_a_table_whose_key_it_is_in(unfit: str) -> None:
    kind, shape, reason, _, bad = UNFIT[unfit]
    table = replace(formed([kind], f"{shape} {POLICIES[reason]['null_and_count']}".strip()), primary_key=(2,))
    events = commit(41, table_map(5, [INT, kind]), rows_event(30, 5, [INT, kind], [(1, next(iter(bad)))]))

    (chunk,) = decode_events(events, table, stops=True)

    assert "(db.t.c2, row 0 of its chunk" in chunk.stopped


def test_each_reason_of_a_column_has_its_own_policy() -> None:
    kind = COMPRESSED
    values = [(1, b"\0ab"), (2, b"\0\xff"), (3, b"\x10a"), (4, None)]
    events = commit(41, table_map(5, [INT, kind]), rows_event(30, 5, [INT, kind], values))

    (chunk,) = decode_events(events, formed([kind], "dead_letter"), stops=True)
    assert "a compressed value that cannot be unpacked (db.t.c2, row 2 of its chunk" in chunk.stopped

    table = formed([kind], "dead_letter invalid_compressed=null")
    (chunk,) = decode_events(events, table, stops=True)
    assert [row[2] for row in changes([chunk], table)] == ["ab", None, None, None]
    assert [(each["raw"], each["reason"]) for each in json.loads(dead_letters(chunk))] == [("00ff", "invalid_text")]
    assert json.loads(chunk.rows.schema.metadata[b"nulled"]) == {"h2": 2}


def test_a_zero_date_in_a_primary_key_is_an_error_unless_it_is_text() -> None:
    types = [DATE, INT]
    events = commit(1, table_map(5, types), rows_event(30, 5, [ZERO, INT], [(0, 1)]))
    with pytest.raises(ValueUnrepresentable, match=r"a date that the calendar does not have .*db\.t\.c1.*primary key"):
        decode_events(events, snapshot_of(types))
    (row,) = changes(decode_events(events, snapshot_of(types, key=0)), snapshot_of(types))
    assert row == ("+A", None, 1)
    text = snapshot_of(types)
    text = replace(text, columns=(replace(text.columns[0], type=replace(DATE.type, options="text")), text.columns[1]))
    (row,) = changes(decode_events(events, text), text)
    assert row == ("+A", "0000-00-00", 1)


@pytest.mark.parametrize("per_window", [1, 3, 100])
@pytest.mark.parametrize("rows", [2, 100])
def test_a_value_that_cannot_be_represented_ends_its_table_and_no_other(per_window: int, rows: int) -> None:
    text, raw = [INT, wire_text(300)], [INT, wire_text(300, None)]
    names = [TableName("db", name) for name in ("bad", "good")]
    bad, good = (snapshot_of(text, name=name) for name in names)
    events: list[bytes] = []
    for number in range(1, 9):
        maps = [table_map(at, text, name=name) for at, name in enumerate(names, 5)]
        value = b"\xff" if number == 5 else b"fine"
        own = [rows_event(30, 5, raw, [(number, value)]), rows_event(30, 6, text, [(number, "fine")])]
        events += commit(number, *maps, *own)

    chunks = decode_events(events, bad, good, per_window=per_window, stops=True, max_chunk_rows=rows)

    assert [row[1] for row in changes(chunks, good, 2)] == list(range(1, 9))
    mine = [chunk for chunk in chunks if chunk.table_id == 1]
    assert [chunk.stopped == "" for chunk in mine] == [True] * (len(mine) - 1) + [False]
    assert [row[1] for row in changes(mine[:-1], bad)] == ([1, 2, 3, 4] if rows == 2 else [])
    assert "bytes ff at byte 0" in mine[-1].stopped
    assert mine[-1].rows.num_rows == 0
    assert [chunk.sequence for chunk in chunks] == list(range(len(chunks)))


def test_a_character_set_that_is_not_read_ends_its_table() -> None:
    raw = [wire_text(5, None)]
    kind = ColumnType(name="varchar", length=5, charset="klingon")
    snapshot = snapshot_of([replace(raw[0], type=kind)])
    events = commit(1, table_map(5, raw), rows_event(30, 5, raw, [(b"x",)]))

    (chunk,) = decode_events(events, snapshot, stops=True)

    assert "a character set that is not read yet" in chunk.stopped


def test_dates_that_the_calendar_lacks_become_letters_with_the_logs_bytes() -> None:
    table = formed([DATE], "dead_letter")
    events = commit(41, table_map(5, [INT, DATE]), rows_event(30, 5, [INT, DATE], [(1, date(2024, 2, 29)), (2, None)]))
    events += commit(42, rows_event(30, 5, [INT, ZERO], [(3, 0)]))

    chunks = decode_events(events, table)

    assert list(changes(chunks, table)) == [("+A", 1, date(2024, 2, 29)), ("+A", 2, None), ("+A", 3, None)]
    (told,) = [json.loads(text) for text in map(dead_letters, chunks) if text]
    (letter,) = told
    assert {name: letter[name] for name in ("column", "raw", "text", "op")} == {
        "column": 2,
        "raw": "000000",
        "text": "0000-00-00",
        "op": 0,
    }
    assert letter["position"].endswith(":42")


@pytest.mark.parametrize("form", ["null", "dead_letter"])
def test_bytes_that_are_no_text_become_null_and_are_counted(form: str) -> None:
    kind = wire_text(9, "utf8mb4")
    table = formed([kind], form)
    written = [b"\xc3\xa4", b"a\xffb", None, b"", b"\xc3"]
    values = [(number, value) for number, value in enumerate(written)]
    events = commit(41, table_map(5, [INT, kind]), rows_event(30, 5, [INT, kind], values))

    chunks = decode_events(events, table)

    assert list(changes(chunks, table)) == [
        ("+A", 0, "\xe4"),
        ("+A", 1, None),
        ("+A", 2, None),
        ("+A", 3, ""),
        ("+A", 4, None),
    ]
    (chunk,) = chunks
    assert json.loads(chunk.rows.schema.metadata[b"nulled"]) == {"h2": 2}
    told = json.loads(dead_letters(chunk) or "[]")
    assert [(letter["raw"], letter["text"]) for letter in told] == (
        [("61ff62", "a\\xffb"), ("c3", "\\xc3")] if form == "dead_letter" else []
    )


def test_bytes_that_are_no_text_stop_a_table_whose_key_they_are_in() -> None:
    kind = wire_text(9, "utf8mb4")
    table = formed([kind], "null")
    table = replace(table, primary_key=(2,))
    events = commit(41, table_map(5, [INT, kind]), rows_event(30, 5, [INT, kind], [(1, b"\xff")]))

    (chunk,) = decode_events(events, table, stops=True)

    assert "text that is not valid UTF-8" in chunk.stopped


@pytest.mark.parametrize("server", ["mysql57", "mysql9", "mariadb118"], indirect=True)
def test_letters_are_the_servers_own_text(server: Server) -> None:
    written = ["0000-00-00", "2024-00-15", "2024-02-29", "1000-01-01", "9999-12-31"]
    with (
        contextlib.closing(server.connect(init_command="SET sql_mode = ''")) as connection,
        connection.cursor() as cursor,
    ):
        cursor.execute(f"CREATE DATABASE {DATABASE}")
        cursor.execute(f"CREATE TABLE {DATABASE}.t (k INT, d DATE, m DATETIME(3), s TIMESTAMP(6) NULL)")
        since = log_end(server)
        for number, day in enumerate(written):
            moment = "0" if number < 2 else "'2024-02-29 01:02:03.000004'"
            cursor.execute(f"INSERT INTO {DATABASE}.t VALUES ({number}, '{day}', '{day} 01:02:03.125', {moment})")
        table = capture(server, DATABASE, "t")
        formed_columns = tuple(
            column if column.name == "k" else replace(column, type=replace(column.type, options="dead_letter"))
            for column in table.columns
        )
        table = replace(table, columns=formed_columns)
        chunks = decode(server, planned(table), since)
        cursor.execute(f"SELECT CAST(d AS CHAR), CAST(m AS CHAR), CAST(s AS CHAR) FROM {DATABASE}.t ORDER BY k")
        shown = cursor.fetchall()
        cursor.execute(f"DROP DATABASE {DATABASE}")

    rows = list(changes(chunks, table))
    told = [letter for text in map(dead_letters, chunks) if text for letter in json.loads(text)]
    assert [(letter["column"], letter["text"]) for letter in told] == [
        (column, shown[row][column - 2]) for column in (2, 3, 4) for row in range(5) if rows[row][column] is None
    ]
    assert [row[2] for row in rows] == [None, None, date(2024, 2, 29), date(1000, 1, 1), date(9999, 12, 31)]
    assert [str(row[3]) for row in rows[2:]] == [f"{day} 01:02:03.125000" for day in written[2:]]
    assert [row[4] is None for row in rows] == [True, True, False, False, False]
