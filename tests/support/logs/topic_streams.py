"""Random messages of change events as Debezium and Canal write them, right ones and strange ones, and the table that their rows are of."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st

from connectors.readers.kafka.messages.batch import Batch, Texts
from connectors.readers.kafka.messages.modes import DEFAULT_MODES
from historian.ddl import parse_column_type
from historian.names import TableName
from historian.schema.snapshots import Column, Snapshot

__all__ = ["KINDS", "Kind", "Message", "batch_of", "streams"]

FIRST_MS = 1_700_000_000_000
"""Where Canal's moments begin; they go on for some seconds, not in order."""

Message = tuple[bytes | None, bytes | None]
"""Key and value."""


def batch_of(messages: Sequence[Message], begin: int = 0, time_ms: int = -1) -> Batch:
    """Messages of a partition, from the offset *begin* on, all of one date."""
    offsets, times_ms = np.arange(begin, begin + len(messages)), np.full(len(messages), time_ms)
    keys, values = Texts.of([key for key, _ in messages]), Texts.of([value for _, value in messages])
    return Batch(keys, values, offsets, times_ms)


@dataclass(frozen=True)
class Kind:
    """A column: its type, its field in Debezium's schema, and a strategy of its values in Debezium's JSON and in Canal's."""

    type: str
    field: dict[str, Any]
    debezium: st.SearchStrategy[Any]
    canal: st.SearchStrategy[Any]


def _b64(body: bytes) -> str:
    return base64.b64encode(body).decode()


def _number(low: int, high: int) -> st.SearchStrategy[int]:
    return st.one_of(st.integers(low, high), st.sampled_from([low, high, 0, -1, 1]).filter(lambda n: low <= n <= high))


ANY_TEXT = st.one_of(st.text(st.characters(exclude_categories=["Cs"]), max_size=12), st.just(DEFAULT_MODES.unavailable))
LATIN1 = st.text(st.characters(max_codepoint=255), max_size=9)
DECIMAL = st.decimals(min_value=-9999, max_value=9999, places=3, allow_nan=False)
DOUBLE = st.floats(allow_nan=False, allow_infinity=False)
MOMENT = st.datetimes()
KINDS = {
    "tiny": Kind("tinyint", {"type": "int16"}, _number(-128, 127), _number(-128, 127).map(str)),
    "flag": Kind("tinyint", {"type": "boolean"}, st.booleans(), _number(0, 1).map(str)),
    "long": Kind("bigint", {"type": "int64"}, _number(-(2**63), 2**63 - 1), _number(-(2**63), 2**63 - 1).map(str)),
    "huge": Kind("bigint unsigned", {"type": "int64"}, _number(-(2**63), 2**63 - 1), _number(0, 2**64 - 1).map(str)),
    "amount": Kind(
        "decimal(7,3)",
        {"type": "bytes", "name": "org.apache.kafka.connect.data.Decimal", "parameters": {"scale": "3"}},
        _number(-9999999, 9999999).map(lambda n: _b64(n.to_bytes((n.bit_length() + 8) // 8, "big", signed=True))),
        DECIMAL.map(str),
    ),
    "weight": Kind("double", {"type": "double"}, DOUBLE, DOUBLE.map(repr)),
    "rate": Kind(
        "float", {"type": "float"}, st.floats(width=32, allow_nan=False, allow_infinity=False), DECIMAL.map(str)
    ),
    "text": Kind("varchar(50)", {"type": "string"}, ANY_TEXT, ANY_TEXT),
    "body": Kind("varbinary(50)", {"type": "bytes"}, st.binary(max_size=9).map(_b64), LATIN1),
    "day": Kind(
        "date", {"type": "int32", "name": "io.debezium.time.Date"}, _number(-719162, 2932896), st.dates().map(str)
    ),
    "made": Kind(
        "datetime(3)",
        {"type": "int64", "name": "io.debezium.time.Timestamp"},
        _number(-62135596800000, 253402300799999),
        MOMENT.map(lambda at: at.isoformat(" ", "milliseconds")),
    ),
    "seen": Kind(
        "timestamp(6)",
        {"type": "string", "name": "io.debezium.time.ZonedTimestamp"},
        MOMENT.map(lambda at: at.isoformat() + "Z"),
        MOMENT.map(lambda at: at.isoformat(" ")),
    ),
    "spent": Kind(
        "time(6)",
        {"type": "int64", "name": "io.debezium.time.MicroTime"},
        _number(-3020399000000, 3020399000000),
        st.from_regex(r"-?(\d\d|8[0-3]\d):[0-5]\d:[0-5]\d(\.\d{1,6})?", fullmatch=True),
    ),
    "state": Kind(
        "enum('new','paid')",
        {"type": "string", "name": "io.debezium.data.Enum", "parameters": {"allowed": "new,paid"}},
        st.sampled_from(["new", "paid"]),
        st.sampled_from(["0", "1", "2"]),
    ),
    "bit": Kind("bit(1)", {"type": "boolean"}, st.booleans(), st.sampled_from(["0", "1"])),
    "place": Kind(
        "point",
        {"type": "struct", "name": "io.debezium.data.geometry.Point"},
        st.binary(max_size=9).map(lambda body: {"wkb": _b64(body), "srid": 4326}),
        LATIN1,
    ),
}
STRANGE = st.sampled_from(
    [None, True, 0, -1, 10**30, 1.5, 1e300, -0.0, "", "x", "1", "1.0", "-0", "0001", "2024-13-45", "AAAA", "é", "\u0000", [], {}, {"a": [1]}, "9" * 40]
)  # fmt: skip


def _snapshot(names: list[str]) -> Snapshot:
    columns = []
    for position, name in enumerate(names, 1):
        kind = parse_column_type(KINDS[name].type, "utf8mb4", "utf8mb4_bin") if "(" in KINDS[name].type else None
        kind = kind or parse_column_type(KINDS[name].type, None, None)
        columns.append(Column(id=position, name=name, type=kind))
    return Snapshot(
        table_id=1,
        name=TableName("shop", "t"),
        columns=tuple(columns),
        primary_key=(1,),
        charset="utf8mb4",
        collation="c",
    )


def _texted(value: Any, style: int) -> str:
    """JSON as one or another producer writes it."""
    separators = (",", ":") if style < 2 else (" ,\n", " :\t ")
    return json.dumps(value, separators=separators, ensure_ascii=style in (0, 2))


@st.composite
def _rows(draw: Any, names: list[str], form: str, strange: bool) -> dict[str, Any]:
    row = {}
    for name in names:
        if strange and draw(st.integers(0, 20)) == 0:
            if draw(st.booleans()):
                row[name] = draw(STRANGE)
            continue
        values = KINDS[name].canal if form == "canal_json" else KINDS[name].debezium
        row[name] = None if draw(st.integers(0, 7)) == 0 else draw(values)
    if strange and draw(st.integers(0, 20)) == 0:
        row["other"] = draw(STRANGE)
    if strange and draw(st.integers(0, 20)) == 0:
        row = dict(reversed(row.items()))
    return row


_MOMENT_MS = st.integers(0, 5).map(lambda number: FIRST_MS + 1000 * number)


def _statement(at_ms: int) -> dict[str, Any]:
    sql = "alter table t comment 'c'"
    return {"database": "shop", "table": "t", "type": "ALTER", "isDdl": True, "es": at_ms, "sql": sql}


_SERVERS: tuple[dict[str, str], ...] = (
    {"connector": "mysql"},
    {"connector": "postgresql", "db": "inventory", "schema": "shop"},
    {"connector": "oracle", "db": "inventory", "schema": "shop"},
    {"connector": "sqlserver", "schema": "dbo"},
)
"""What is told of the source; a table of SQL Server's is named by both."""

_Made = tuple[dict[str, Any] | None, dict[str, Any]]
"""A statement that comes before, and the message."""


@st.composite
def _canal(
    draw: Any, kind: str, before: dict[str, Any], after: dict[str, Any], source: dict[str, Any], names: list[str]
) -> _Made:
    statement = _statement(draw(_MOMENT_MS)) if draw(st.integers(0, 19)) == 0 else None
    changed = {name: value for name, value in before.items() if draw(st.booleans())}
    count = draw(st.integers(1, 3))
    return statement, {
        "data": [after] * count,
        "database": "shop",
        "es": draw(_MOMENT_MS),
        "isDdl": False,
        "mysqlType": {name: KINDS[name].type for name in names},
        "old": [changed] * count if kind == "u" else None,
        "pkNames": ["long"],
        "table": source["table"],
        "type": {"c": "INSERT", "u": "UPDATE", "d": "DELETE"}[kind],
    }


@st.composite
def _maxwell(
    draw: Any, kind: str, before: dict[str, Any], after: dict[str, Any], source: dict[str, Any], _names: list[str]
) -> _Made:
    statement = None
    if draw(st.integers(0, 19)) == 0:
        statement = {"type": "table-alter", "database": "shop", "table": "t", "sql": "alter table t comment 'c'"}
        statement["ts"] = draw(_MOMENT_MS)
    message = {
        "database": "shop",
        "table": source["table"],
        "type": {"c": "insert", "u": "update", "d": "delete"}[kind],
        "ts": draw(_MOMENT_MS) // 1000,
        "data": after,
    }
    if kind == "u":
        message["old"] = {name: value for name, value in before.items() if draw(st.booleans())}
    if draw(st.booleans()):
        message["primary_key_columns"] = draw(st.sampled_from([["long"], ["long"], ["text"], []]))
    return statement, message


def _enveloped(
    kind: str, before: dict[str, Any], after: dict[str, Any], source: dict[str, Any], _names: list[str]
) -> st.SearchStrategy[_Made]:
    rows = {"before": None if kind == "c" else before, "after": None if kind == "d" else after}
    return st.just((None, {**rows, "source": source, "op": kind, "ts_ms": 18}))


_MESSAGES = {"canal_json": _canal, "maxwell": _maxwell}


@st.composite
def streams(draw: Any, form: str) -> tuple[Snapshot, list[Message]]:
    """A table and messages of the format *form*, most of which are of it."""
    names = [
        "long",
        *draw(st.lists(st.sampled_from([name for name in KINDS if name != "long"]), unique=True, max_size=6)),
    ]
    strange = draw(st.booleans())
    messages = list[Message]()
    style = draw(st.integers(0, 3))
    server = draw(st.sampled_from(_SERVERS))
    for _ in range(draw(st.integers(1, 12))):
        if strange and draw(st.integers(0, 5)) == 0:
            style = draw(st.integers(0, 3))
        kind = "cud"[draw(st.integers(0, 2))]
        before, after = draw(_rows(names, form, strange)), draw(_rows(names, form, strange))
        if draw(st.booleans()):
            after["long"] = before.get("long")
        if strange and draw(st.integers(0, 9)) == 0:
            messages.append((None, draw(st.sampled_from([None, b"", b"{", b"[]", b"{}", b'{"schema":{}}']))))
        source = {
            "name": "x",
            "db": "shop",
            "table": "t" if draw(st.integers(0, 9)) else "u",
            "ts_ms": 17,
            "ts_us": 17001,
            **server,
        }
        if strange:
            source["ts_us"] = draw(st.sampled_from([None, 17001, True, 1.5, "1"]))
        statement, message = draw(_MESSAGES.get(form, _enveloped)(kind, before, after, source, names))
        if statement is not None:
            messages.append((None, _texted(statement, style).encode()))
        if strange and draw(st.integers(0, 9)) == 0:
            message[draw(st.sampled_from(list(message)))] = draw(STRANGE)
        text = _texted(message, style)
        if strange and draw(st.integers(0, 9)) == 0:
            at = draw(st.integers(0, len(text)))
            text = (
                text[:at]
                + draw(st.sampled_from(["", "\\", '"', "\\ud83d", "}", ",", "é", "1", "\x01"]))
                + text[at + draw(st.integers(0, 2)) :]
            )
        value, key = text.encode(), _texted({"long": 1}, style).encode()
        if form == "debezium_json":
            fields = [{**KINDS[name].field, "optional": True, "field": name} for name in names]
            row = {"type": "struct", "fields": fields, "field": "after"}
            schema = json.dumps({"type": "struct", "fields": [row]}, separators=(",", ":")).encode()
            ids = json.dumps({"fields": [{"field": "long"}]}, separators=(",", ":")).encode()
            value = b'{"schema":' + schema + b',"payload":' + value + b"}"
            key = b'{"schema":' + ids + b',"payload":' + key + b"}"
        messages.append((key if draw(st.integers(0, 9)) else None, value))
        if draw(st.integers(0, 9)) == 0:
            messages.append((key, None))
    return _snapshot(names), messages
