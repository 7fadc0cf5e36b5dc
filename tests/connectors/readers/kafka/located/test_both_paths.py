"""Rows by compiled code and rows one by one are the same, whatever messages are."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from connectors.readers.kafka.decoders import decoder_of, locator_of
from connectors.readers.kafka.located import batches
from connectors.readers.kafka.located.batches import Batch, LocatedRows
from connectors.readers.kafka.messages.events import Event
from connectors.readers.kafka.rows import ChunkMaker
from historian.changelog.chunks import Chunk
from historian.ddl import parse_column_type
from historian.errors import HistorianError, UnsupportedEvent
from historian.names import TableName
from historian.plans.plans import PartitionRange, Passage, PlannedTable, PlannedVersion
from historian.schema.snapshots import Column, Snapshot

Message = tuple[bytes | None, bytes | None]


@dataclass(frozen=True)
class Kind:
    """A column: its type, its field in Debezium's schema, and a strategy of its values in Debezium's JSON and in Canal's."""

    type: str
    field: dict[str, Any]
    debezium: st.SearchStrategy[Any]
    canal: st.SearchStrategy[Any]


def b64(body: bytes) -> str:
    return base64.b64encode(body).decode()


def number(low: int, high: int) -> st.SearchStrategy[int]:
    return st.one_of(st.integers(low, high), st.sampled_from([low, high, 0, -1, 1]).filter(lambda n: low <= n <= high))


ANY_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
LATIN1 = st.text(st.characters(max_codepoint=255), max_size=9)
DECIMAL = st.decimals(min_value=-9999, max_value=9999, places=3, allow_nan=False)
DOUBLE = st.floats(allow_nan=False, allow_infinity=False)
MOMENT = st.datetimes()
KINDS = {
    "tiny": Kind("tinyint", {"type": "int16"}, number(-128, 127), number(-128, 127).map(str)),
    "flag": Kind("tinyint", {"type": "boolean"}, st.booleans(), number(0, 1).map(str)),
    "long": Kind("bigint", {"type": "int64"}, number(-(2**63), 2**63 - 1), number(-(2**63), 2**63 - 1).map(str)),
    "huge": Kind("bigint unsigned", {"type": "int64"}, number(-(2**63), 2**63 - 1), number(0, 2**64 - 1).map(str)),
    "amount": Kind(
        "decimal(7,3)",
        {"type": "bytes", "name": "org.apache.kafka.connect.data.Decimal", "parameters": {"scale": "3"}},
        number(-9999999, 9999999).map(lambda n: b64(n.to_bytes((n.bit_length() + 8) // 8, "big", signed=True))),
        DECIMAL.map(str),
    ),
    "weight": Kind("double", {"type": "double"}, DOUBLE, DOUBLE.map(repr)),
    "rate": Kind(
        "float", {"type": "float"}, st.floats(width=32, allow_nan=False, allow_infinity=False), DECIMAL.map(str)
    ),
    "text": Kind("varchar(50)", {"type": "string"}, ANY_TEXT, ANY_TEXT),
    "body": Kind("varbinary(50)", {"type": "bytes"}, st.binary(max_size=9).map(b64), LATIN1),
    "day": Kind(
        "date", {"type": "int32", "name": "io.debezium.time.Date"}, number(-719162, 2932896), st.dates().map(str)
    ),
    "made": Kind(
        "datetime(3)",
        {"type": "int64", "name": "io.debezium.time.Timestamp"},
        number(-62135596800000, 253402300799999),
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
        number(-3020399000000, 3020399000000),
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
        st.binary(max_size=9).map(lambda body: {"wkb": b64(body), "srid": 4326}),
        LATIN1,
    ),
}
STRANGE = st.sampled_from(
    [None, True, 0, -1, 10**30, 1.5, 1e300, -0.0, "", "x", "1", "1.0", "-0", "0001", "2024-13-45", "AAAA", "é", "\u0000", [], {}, {"a": [1]}, "9" * 40]
)  # fmt: skip


def snapshot(names: list[str]) -> Snapshot:
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


def chunks(name: str, messages: list[Message], table: Snapshot, *, located: bool, stops: bool) -> list[Chunk] | str:
    part = PartitionRange(
        topic="t", partition=0, start=0, end=99, bytes_read=1, passages=(Passage(table_id=1, version=3, offset=0),)
    )
    version = PlannedVersion(version=3, place=None, edits=(), snapshot=table, segment=0)
    maker = ChunkMaker(part, [PlannedTable(table_id=1, versions=(version,))], sequence=0, as_text=False, stops=stops)
    decoder = decoder_of(name, tells=False)
    locator = locator_of(decoder)
    assert locator is not None
    batch = Batch([key for key, _ in messages], [value for _, value in messages], np.arange(len(messages)))
    runs: Iterator[LocatedRows | int] = locator.runs(batch) if located else iter(range(len(messages)))
    found = list[Chunk]()
    try:
        for run in runs:
            if isinstance(run, LocatedRows):
                found += maker.take_located(run)
                continue
            try:
                for event in decoder.events(*messages[run], f"t:0:{run}"):
                    if isinstance(event, Event):
                        found += maker.take(run, event)
            except UnsupportedEvent as error:
                found.append(maker.unread([(str(run), 0, b"", str(error))]))
        return [*found, *maker.rest()]
    except HistorianError as error:
        return str(error)


def compared(found: list[Chunk] | str) -> Any:
    """What is the same by both paths: rows of the table in order, dead letters, errors."""
    if isinstance(found, str):
        return found
    rows = [chunk for chunk in found if chunk.table_id]
    letters = [chunk.rows.schema.metadata for chunk in found if not chunk.table_id]
    return [
        (replace(chunk, sequence=0, rows=None), chunk.rows.to_pylist(), chunk.rows.schema) for chunk in rows
    ], letters  # type: ignore[arg-type]


def texted(value: Any, draw: Callable[[st.SearchStrategy[Any]], Any], style: int) -> str:
    """JSON as one or another producer writes it."""
    separators = (",", ":") if style < 2 else (" ,\n", " :\t ")
    return json.dumps(value, separators=separators, ensure_ascii=style in (0, 2))


@st.composite
def rows(draw: Any, names: list[str], form: str, strange: bool) -> dict[str, Any]:
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


@st.composite
def streams(draw: Any, form: str) -> tuple[Snapshot, list[Message]]:
    names = [
        "long",
        *draw(st.lists(st.sampled_from([name for name in KINDS if name != "long"]), unique=True, max_size=6)),
    ]
    strange = draw(st.booleans())
    messages = list[Message]()
    style = draw(st.integers(0, 3))
    for _ in range(draw(st.integers(1, 12))):
        if strange and draw(st.integers(0, 5)) == 0:
            style = draw(st.integers(0, 3))
        kind = "cud"[draw(st.integers(0, 2))]
        before, after = draw(rows(names, form, strange)), draw(rows(names, form, strange))
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
        }
        if strange:
            source["ts_us"] = draw(st.sampled_from([None, 17001, True, 1.5, "1"]))
        if form == "canal_json":
            changed = {k: v for k, v in before.items() if draw(st.booleans())}
            count = draw(st.integers(1, 3))
            message: dict[str, Any] = {
                "data": [after] * count,
                "database": "shop",
                "es": 1700000000000,
                "isDdl": False,
                "mysqlType": {name: KINDS[name].type for name in names},
                "old": [changed] * count if kind == "u" else None,
                "pkNames": ["long"],
                "table": source["table"],
                "type": {"c": "INSERT", "u": "UPDATE", "d": "DELETE"}[kind],
            }
        else:
            message = {
                "before": None if kind == "c" else before,
                "after": None if kind == "d" else after,
                "source": source,
                "op": kind,
                "ts_ms": 18,
            }
        if strange and draw(st.integers(0, 9)) == 0:
            message[draw(st.sampled_from(list(message)))] = draw(STRANGE)
        text = texted(message, draw, style)
        if strange and draw(st.integers(0, 9)) == 0:
            at = draw(st.integers(0, len(text)))
            text = (
                text[:at]
                + draw(st.sampled_from(["", "\\", '"', "\\ud83d", "}", ",", "é", "1", "\x01"]))
                + text[at + draw(st.integers(0, 2)) :]
            )
        value, key = text.encode(), texted({"long": 1}, draw, style).encode()
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
    return snapshot(names), messages


FORMS = ("debezium_json", "debezium_json_schemaless", "canal_json")


@pytest.fixture(autouse=True)
def _short_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many messages are not understood, the others are located."""
    monkeypatch.setattr(batches, "_MOST_SLOW", 0)


@pytest.mark.parametrize("form", FORMS)
@settings(max_examples=60, deadline=None)
@given(data=st.data(), stops=st.booleans())
def test_messages_are_the_same_rows_by_both_paths(form: str, data: st.DataObject, stops: bool) -> None:
    table, messages = data.draw(streams(form))

    one_by_one = chunks(form, messages, table, located=False, stops=stops)
    located = chunks(form, messages, table, located=True, stops=stops)

    assert compared(one_by_one) == compared(located)
