"""Debezium's messages: what schema they have, which rows, and what is refused."""

from __future__ import annotations

import base64
import contextlib
import json
from dataclasses import replace
from datetime import date, datetime, timezone
from decimal import Decimal
from struct import pack, unpack
from typing import Any

import pyarrow as pa
import pytest

from connectors.readers.kafka import rows as rows_module
from connectors.readers.kafka.debezium.events import EventReader
from connectors.readers.kafka.debezium.replaced_nulls import check_defaults
from connectors.readers.kafka.debezium.schemas import columns_of, labels_of
from connectors.readers.kafka.debezium.values import arrow_column
from connectors.readers.kafka.messages.events import Event, RowSchema
from connectors.readers.kafka.rows import ChunkMaker
from historian.changelog.chunks import Chunk, positions
from historian.changelog.missing_columns import ABSENT, marked
from historian.errors import SourceError, UnsupportedEvent, ValueUnrepresentable
from historian.names import TableName
from historian.plans.plans import PartitionRange, Passage, PlannedTable, PlannedVersion
from historian.schema.snapshots import Column, ColumnType, Snapshot

ID = {"type": "int32", "optional": False, "field": "id"}
V = {"type": "string", "optional": True, "field": "v"}


def message(op: str, before: Any, after: Any, *fields: dict[str, Any], **payload: Any) -> tuple[bytes, bytes]:
    """Key and value as Kafka Connect's JsonConverter writes them."""
    row = {"type": "struct", "fields": list(fields or (ID, V)), "optional": True, "name": "p.shop.t.Value"}
    envelope = {
        "type": "struct",
        "fields": [{**row, "field": "before"}, {**row, "field": "after"}],
        "optional": False,
        "name": "p.shop.t.Envelope",
    }
    source = {"db": "shop", "table": "t", "ts_ms": 1_700_000_000_123, "ts_us": 1_700_000_000_123_456}
    whole = {"before": before, "after": after, "source": source, "op": op, **payload}
    schema = {"type": "struct", "fields": [ID], "optional": False, "name": "p.shop.t.Key"}
    key = {"schema": schema, "payload": {"id": (after or before or {}).get("id")}}
    value = {"schema": envelope, "payload": whole}
    return tuple(json.dumps(each, separators=(",", ":")).encode() for each in (key, value))  # type: ignore[return-value]


def column(number: int, name: str, kind: str, **more: Any) -> Column:
    return Column(id=number, name=name, type=ColumnType(name=kind, **more))


def snapshot(*columns: Column) -> Snapshot:
    return Snapshot(
        table_id=1, name=TableName("shop", "t"), columns=columns, primary_key=(1,), charset="utf8mb4", collation="c"
    )


BOTH = snapshot(column(1, "id", "int"), column(2, "v", "longtext"))


def made(
    messages: list[tuple[bytes, bytes]], *passages: Passage, stops: bool = False, target: Snapshot = BOTH
) -> list[Chunk]:
    part = PartitionRange(
        topic="t",
        partition=0,
        start=5,
        end=99,
        bytes_read=1,
        passages=passages or (Passage(table_id=1, version=3, offset=5),),
    )
    version = PlannedVersion(version=3, place=None, edits=(), snapshot=target, segment=0)
    maker = ChunkMaker(part, [PlannedTable(table_id=1, versions=(version,))], sequence=7, as_text=False, stops=stops)
    reader, chunks = EventReader(), list[Chunk]()
    for offset, (key, value) in enumerate(messages, 5):
        event = reader.event(key, value, f"t:0:{offset}")
        if event is not None:
            chunks += maker.take(offset, event)
    return [*chunks, *maker.rest()]


def rows(chunk: Chunk) -> list[tuple[Any, ...]]:
    batch = chunk.rows
    return list(zip(batch["op"].to_pylist(), batch["h1"].to_pylist(), batch["h2"].to_pylist(), strict=True))


def test_operations_are_rows_of_a_changelog_named_by_their_offsets() -> None:
    one, two = {"id": 1, "v": "a"}, {"id": 1, "v": None}
    (chunk,) = made([message("r", None, one), message("u", one, two), message("d", two, None), message("c", None, one)])

    assert [(0, 1, "a"), (2, 1, "a"), (3, 1, None), (1, 1, None), (0, 1, "a")] == rows(chunk)
    assert ["t:0:5", "t:0:6", "t:0:6", "t:0:7", "t:0:8"] == positions(chunk).to_pylist()
    assert ("t:0:5", "t:0:8", 7, 3) == (chunk.first_position, chunk.last_position, chunk.sequence, chunk.version)
    moment = datetime(2023, 11, 14, 22, 13, 20, 123456, tzinfo=timezone.utc)
    assert {moment} == set(chunk.rows["event_time"].to_pylist())


def test_rows_of_an_older_schema_are_brought_to_the_plans_by_column_id() -> None:
    older = snapshot(column(1, "id", "int"), column(9, "gone", "int"))
    newer = snapshot(column(1, "id", "int"), Column(id=2, name="v", type=ColumnType(name="longtext"), initial="before"))
    gone = {"type": "int32", "optional": True, "field": "gone"}
    passages = (Passage(table_id=1, version=2, offset=2, snapshot=older), Passage(table_id=1, version=3, offset=6))

    chunks = made(
        [message("c", None, {"id": 1, "gone": 4}, ID, gone), message("c", None, {"id": 2, "v": "x"})],
        *passages,
        target=newer,
    )

    assert [[(0, 1, "before")], [(0, 2, "x")]] == [rows(chunk) for chunk in chunks]
    assert {3} == {chunk.version for chunk in chunks}


@pytest.mark.parametrize(
    "value,reason",
    [
        (b"{", "its schema inline"),
        (b'{"schema":{},"payload":{"op":"c","source":{}', "broken JSON"),
        (b'{"schema":{},"payload":{"id":1}}', "`op` or `source` is missing"),
        (b'{"schema":{},"payload":{"op":"c","source":{"db":"a","table":"b"}}}', "none of a change event"),
        (b'{"before":null,"after":{"id":1},"op":"c"}', "schemas.enable=true"),
        (b'{"schema":{},"payload":{"op":"t","source":{}}}', "TRUNCATE of no table"),
        (b'{"schema":{},"payload":[1]}', "no object"),
        (b'{"schema":{},"payload":{"op":"c","source":{"ts_ms":4611686018427387000}}}', "a time of the source"),
    ],
)
def test_what_is_no_event_is_refused_with_its_place(value: bytes, reason: str) -> None:
    with pytest.raises(UnsupportedEvent, match=rf"(?s)t:0:5.*{reason}|{reason}.*t:0:5"):
        EventReader().event(None, value, "t:0:5")


def test_tombstones_and_messages_of_the_log_are_no_rows() -> None:
    reader = EventReader()

    assert (None, None) == (reader.event(b"{}", None, "t:0:5"), reader.event(*message("m", None, None), "t:0:5"))


def test_an_event_without_the_row_that_it_takes_back_is_refused() -> None:
    with pytest.raises(UnsupportedEvent, match="binlog_row_image=FULL"):
        made([message("u", None, {"id": 1, "v": "a"})])


def test_rows_that_the_plan_does_not_know_are_refused() -> None:
    with pytest.raises(SourceError, match="does not know"):
        made([message("c", None, {"id": 1, "v": "a"})], Passage(table_id=1, version=3, offset=6))


def test_a_value_of_another_type_stops_the_table_or_the_reading() -> None:
    wrong = [message("c", None, {"id": "text", "v": "a"}), message("c", None, {"id": 2, "v": "a"})]

    with pytest.raises(ValueUnrepresentable, match=r"shop\.t\.id"):
        made(wrong)
    (stopped,) = made(wrong, stops=True)
    assert "shop.t.id" in stopped.stopped
    assert 0 == stopped.rows.num_rows


def named(meaning: str, kind: str, **parameters: str) -> dict[str, Any]:
    return {"type": kind, "optional": True, "name": meaning, "parameters": parameters, "field": "f"}


def b64(body: bytes) -> str:
    return base64.b64encode(body).decode()


MOMENT = datetime(2024, 1, 2, 3, 4, 5, 123456)  # noqa: DTZ001 the server has no zone for it
US = 1_704_164_645_123_456


@pytest.mark.parametrize(
    "field,value,type_text,expected",
    [
        (named("org.apache.kafka.connect.data.Decimal", "bytes", scale="3", **{"connect.decimal.precision": "12"}),
         b64((-123450).to_bytes(3, "big", signed=True)), "decimal(12,3)", Decimal("-123.450")),
        (named("io.debezium.data.Bits", "bytes", length="12"), b64(b"\xaa\x0a"), "bit(12)", b"\x0a\xaa"),
        (named("io.debezium.data.Bits", "bytes", length="20"), b64(b"\x01"), "bit(20)", b"\0\0\x01"),
        (named("io.debezium.time.Date", "int32"), 19782, "date", date(2024, 2, 29)),
        (named("io.debezium.time.Date", "int32"), -354285, "date", date(1000, 1, 1)),
        (named("io.debezium.time.Timestamp", "int64"), US // 1000, "datetime(3)", MOMENT.replace(microsecond=123000)),
        (named("org.apache.kafka.connect.data.Timestamp", "int64"), US // 1000, "datetime(3)", MOMENT.replace(microsecond=123000)),
        (named("io.debezium.time.MicroTimestamp", "int64"), US, "datetime(6)", MOMENT),
        (named("io.debezium.time.NanoTimestamp", "int64"), US * 1000, "datetime(6)", MOMENT),
        (named("io.debezium.time.ZonedTimestamp", "string"), "2024-01-02T03:04:05.123456Z", "timestamp(6)",
         MOMENT.replace(tzinfo=timezone.utc)),
        (named("io.debezium.time.ZonedTimestamp", "string"), "2024-01-02T05:04:05+02:00", "timestamp(6)",
         MOMENT.replace(microsecond=0, tzinfo=timezone.utc)),
        (named("io.debezium.time.MicroTime", "int64"), -45296789000, "time(6)", -45296789000),
        (named("io.debezium.time.Time", "int32"), 1500, "time(3)", 1_500_000),
        (named("io.debezium.time.Year", "int32"), 2024, "year(4)", 2024),
        (named("io.debezium.data.Enum", "string", allowed="a,b\\,c"), "b\\,c", "enum('a','b,c')", "b,c"),
        (named("io.debezium.data.EnumSet", "string", allowed="x,y"), "x,y", "set('x','y')", "x,y"),
        (named("io.debezium.data.Json", "string"), '{"a":1}', "json", '{"a":1}'),
        (named("io.debezium.data.FloatVector", "array"), [1.0, -2.0], "vector", b"\0\0\x80\x3f\0\0\0\xc0"),
        (named("io.debezium.data.geometry.Point", "struct"), {"wkb": b64(b"\1\2"), "srid": 4326, "x": 1.0, "y": 2.0},
         "geometry", b"\xe6\x10\0\0\1\2"),
        (named("", "boolean"), True, "bit(1)", True),
        (named("", "bytes"), b64(b"\xff\0"), "longblob", b"\xff\0"),
        (named("", "int8"), -3, "tinyint", -3),
        (named("", "float"), 1.5, "float", 1.5),
        (named("", "double"), 0.1, "double", 0.1),
        (named("", "int64"), 2**63 - 1, "bigint", 2**63 - 1),
    ],
)  # fmt: skip
def test_values_are_what_their_schema_says(field: dict[str, Any], value: Any, type_text: str, expected: Any) -> None:
    (found,) = columns_of({"fields": [field]}, "t:0:5")

    assert (type_text, "f") == (str(found.column.type), found.column.name)
    array = arrow_column([value, None], found, found.column.type)
    assert [expected, None] == array.to_pylist()


def test_a_type_that_is_not_read_is_refused_by_name() -> None:
    with pytest.raises(UnsupportedEvent, match=r"t:0:5\.f.*array io\.debezium\.data\.Tensor"):
        columns_of({"fields": [named("io.debezium.data.Tensor", "array")]}, "t:0:5")


def test_decimals_that_no_arrow_type_holds_travel_as_text() -> None:
    field = named("org.apache.kafka.connect.data.Decimal", "bytes", scale="2", **{"connect.decimal.precision": "65"})
    (found,) = columns_of({"fields": [field]}, "")
    number = 12345678901234567890123456789012345678901234567890

    array = arrow_column([b64(number.to_bytes(30, "big", signed=True))], found, found.column.type)

    assert pa.string() == array.type
    assert [f"{number // 100}.{number % 100:02}"] == array.to_pylist()


@pytest.mark.parametrize(
    "field,default,initial",
    [
        ({"type": "string", "optional": False, "field": "f"}, "dd", "dd"),
        (named("org.apache.kafka.connect.data.Decimal", "bytes", scale="2"), b64(b"\x07"), "0.07"),
        (named("io.debezium.time.Date", "int32"), 19782, "2024-02-29"),
        (named("io.debezium.time.MicroTimestamp", "int64"), US, "2024-01-02 03:04:05.123456"),
        (named("io.debezium.time.MicroTime", "int64"), -45296789000, "-12:34:56.789000"),
        (named("io.debezium.time.NanoTime", "int64"), 3_600_000_000_000, "01:00:00.000000"),
        (named("io.debezium.time.NanoTimestamp", "int64"), US * 1000, "2024-01-02 03:04:05.123456"),
        (named("io.debezium.time.NanoDuration", "int64"), 3_600_000_000_000, "3600000000000"),
        (named("io.debezium.time.IsoDate", "string"), "2024-02-29Z", "2024-02-29"),
        (named("io.debezium.time.IsoTime", "string"), "01:02:03.5Z", "01:02:03.5"),
        (named("io.debezium.time.IsoTimestamp", "string"), "2024-01-02T03:04:05.123456Z", "2024-01-02 03:04:05.123456"),
        (named("org.apache.kafka.connect.data.Decimal", "bytes", scale="2"), -1.5, "-1.50"),
        (
            named("org.apache.kafka.connect.data.Decimal", "bytes", scale="0"),
            18446744073709551615,
            "18446744073709551615",
        ),
        ({"type": "bytes", "optional": True, "field": "f"}, b64(b"abc"), "0x616263"),
        (named("", "boolean"), True, "b'1'"),
    ],
)
def test_defaults_are_the_servers_text(field: dict[str, Any], default: Any, initial: str) -> None:
    (found,) = columns_of({"fields": [{**field, "default": default}]}, "")

    assert (initial, True) == (found.column.initial, found.column.initial_known)


@pytest.mark.parametrize(
    "field,default",
    [
        (named("io.debezium.time.NanoTimestamp", "int64"), US * 1000 + 1),
        (named("org.apache.kafka.connect.data.Decimal", "bytes", scale="20"), 0.12345678901234568),
        (named("io.debezium.data.FloatVector", "array"), [1.0]),
        # As DEFAULT x'00ff' has it.
        ({"type": "bytes", "optional": True, "field": "f"}, b64(b"00ff")),
        # As a function of PostgreSQL has it.
        (named("io.debezium.data.Uuid", "string"), "00000000-0000-0000-0000-000000000000"),
        # As CURRENT_TIMESTAMP has it, and zero dates.
        (named("io.debezium.time.ZonedTimestamp", "string"), "1970-01-01T00:00:00Z"),
        (named("io.debezium.time.MicroTimestamp", "int64"), 0),
        (named("io.debezium.time.Date", "int32"), 0),
    ],
)
def test_a_default_that_is_not_told_exactly_is_not_known(field: dict[str, Any], default: Any) -> None:
    (found,) = columns_of({"fields": [{**field, "default": default}]}, "")

    assert (None, False) == (found.column.initial, found.column.initial_known)


@pytest.mark.parametrize(
    "field,value",
    [
        (named("io.debezium.time.NanoTimestamp", "int64"), 1520085154000000999),
        (named("io.debezium.time.NanoTime", "int64"), 1),
        (named("io.debezium.time.ZonedTimestamp", "string"), "2024-01-02T03:04:05.1234567+02:00"),
        (named("io.debezium.time.IsoTimestamp", "string"), "2024-01-02T03:04:05.1234567Z"),
    ],
)
def test_a_fraction_of_a_microsecond_is_no_value_of_a_column(field: dict[str, Any], value: Any) -> None:
    (found,) = columns_of({"fields": [field]}, "")

    with pytest.raises(ValueError, match="a fraction of a microsecond, which no column holds"):
        arrow_column([value], found, found.column.type)


FLOAT = {"type": "float", "field": "f"}
DECIMAL = named("org.apache.kafka.connect.data.Decimal", "bytes", scale="2")


@pytest.mark.parametrize(
    "field,default,value",
    [
        # As Avro has it, and as numbers of JSON in exact digits are.
        (FLOAT, 0.1, unpack("<f", pack("<f", 0.1))[0]),
        (FLOAT, 0.1, Decimal("0.1")),
        ({**FLOAT, "type": "float64"}, 0.1, Decimal("0.1")),
        ({**FLOAT, "type": "double"}, "NaN", float("nan")),
        (DECIMAL, 0.1, Decimal("0.10")),
        (DECIMAL, 12345678901234567890.5, Decimal("12345678901234567890.50")),
        (DECIMAL, b64(b"\0\x96"), b"\0\x96"),
        (
            named("io.debezium.data.VariableScaleDecimal", "struct"),
            {"scale": 0, "value": "\x96"},
            {"scale": 0, "value": b"\x96"},
        ),
        ({"type": "array", "field": "f"}, [0.1, "\x96"], [Decimal("0.1"), b"\x96"]),
    ],
)
def test_a_default_that_may_be_a_null_is_known_in_each_way_that_values_are_written(
    field: dict[str, Any], default: Any, value: Any
) -> None:
    fields = columns_of({"fields": [{**field, "optional": True, "default": default}]}, "")
    event = Event(
        table=TableName("shop", "t"),
        schema=RowSchema(fields=fields, key=None),
        op="c",
        before=None,
        after={"f": value},
        event_time_us=0,
        may_lack_nulls=True,
    )

    check_defaults(replace(event, after={"f": None}), "here")
    with pytest.raises(UnsupportedEvent, match="a value that may be NULL at the source"):
        check_defaults(event, "here")


def test_a_default_is_the_same_in_a_message_that_is_written_otherwise() -> None:
    fields = (ID, {**named("org.apache.kafka.connect.data.Decimal", "bytes", scale="2"), "default": 12.5})
    key, value = message("c", None, {"id": 1, "f": 12.5}, *fields)
    reader = EventReader()

    events = [reader.event(key, each, "here") for each in (value, json.dumps(json.loads(value)).encode())]

    assert ["12.50", "12.50"] == [each.schema.fields[1].column.initial for each in events if isinstance(each, Event)]


def test_labels_with_commas_are_kept_whole() -> None:
    assert ("a", "b,c", "") == labels_of(r"a,b\,c,")


@pytest.mark.parametrize(
    "declared,length,field,values,kind,expected",
    [
        ("BIGINT UNSIGNED", None, {"type": "int64"}, [-1, 7], ("bigint", True, None), [Decimal(2**64 - 1), Decimal(7)]),
        ("TINYINT", "1", {"type": "int16"}, [-3], ("tinyint", False, 1), [-3]),
        ("INT UNSIGNED ZEROFILL", None, {"type": "int64"}, [2**32 - 1], ("int", True, None), [2**32 - 1]),
        ("VARCHAR", "20", {"type": "string"}, ["x"], ("varchar", False, 20), ["x"]),
        ("MEDIUMTEXT", None, {"type": "string"}, ["x"], ("mediumtext", False, None), ["x"]),
        ("VARBINARY", "9", {"type": "bytes"}, ["/w=="], ("varbinary", False, 9), [b"\xff"]),
        ("TINYINT", "1", {"type": "boolean"}, [True], ("bit", False, 1), [True]),
        ("BOOLEAN", None, {"type": "boolean", "default": True}, [False], ("tinyint", False, 1), [0]),
        ("JSONB", None, {"type": "string"}, ["x"], ("longtext", False, None), ["x"]),
    ],
)
def test_a_type_that_the_connector_propagates_is_the_servers_own(
    declared: str,
    length: str | None,
    field: dict[str, Any],
    values: list[Any],
    kind: tuple[str, bool, int | None],
    expected: list[Any],
) -> None:
    parameters = {"__debezium.source.column.type": declared} | (
        {} if length is None else {"__debezium.source.column.length": length}
    )
    (found,) = columns_of({"fields": [{"field": "a", "optional": True, "parameters": parameters, **field}]}, "t:0:0")

    type_ = found.column.type
    assert kind == (type_.name, type_.unsigned, type_.length)
    assert expected == arrow_column(values, found, type_).to_pylist()


def test_no_row_of_a_table_follows_its_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows_module, "_CHUNK_ROWS", 2)
    wrong, right = (message("c", None, {"id": number, "v": "a"}) for number in ("text", 2))

    chunks = made([right, wrong, right, right], stops=True)

    assert [(True, 0)] == [(bool(chunk.stopped), chunk.rows.num_rows) for chunk in chunks]


def test_tables_that_are_not_asked_for_are_passed_over() -> None:
    one = message("c", None, {"id": 1, "v": "a"})

    (chunk,) = made([one], Passage(table_id=1, version=3, offset=5), Passage(table_id=2, version=4, offset=5))

    assert [(0, 1, "a")] == rows(chunk)


def test_a_plan_that_calls_a_table_by_its_database_is_refused_and_not_passed_over() -> None:
    key, value = message("c", None, {"id": 1, "v": "a"})
    of_schema = value.replace(b'"db":"shop"', b'"db":"shop","schema":"public"')

    with pytest.raises(SourceError, match="a plan of an earlier release calls a table by another name") as caught:
        made([(key, of_schema)])
    assert "public.t at t:0:5" in str(caught.value)
    assert "shop.t" in str(caught.value)
    # Another schema's table of that name, beside one that is called as its database is.
    (chunk,) = made([(key, of_schema), (key, value)])
    assert [(0, 1, "a")] == rows(chunk)


def test_a_value_that_the_log_does_not_hold_is_marked_as_absent_where_the_table_is_normalised() -> None:
    part = PartitionRange(
        topic="t", partition=0, start=5, end=9, bytes_read=1, passages=(Passage(table_id=1, version=3, offset=5),)
    )
    version = PlannedVersion(version=3, place=None, edits=(), snapshot=BOTH, segment=0)
    tables = [PlannedTable(table_id=1, versions=(version,))]
    maker = ChunkMaker(part, tables, sequence=0, as_text=False, stops=False, normalized=lambda _: True)
    texts = [
        message("c", None, {"id": 1, "v": "a"}),
        message("u", None, {"id": 1, "v": "__debezium_unavailable_value"}),
        # What is left of an update that changed the key.
        message("c", None, {"id": 2, "v": "__debezium_unavailable_value"}),
        # A former row by REPLICA IDENTITY USING INDEX.
        message("u", {"id": 1, "v": None}, {"id": 1, "v": "__debezium_unavailable_value"}),
    ]
    reader = EventReader()
    for offset, (key, value) in enumerate(texts, 5):
        event = reader.event(key, value.replace(b'"db":"shop"', b'"db":"d","schema":"shop"'), "")
        assert isinstance(event, Event)
        assert [] == list(maker.take(offset, event))
    (chunk,) = maker.rest()

    assert [(0, 1, "a"), (3, 1, None), (0, 2, None), (3, 1, None)] == rows(chunk)
    assert [[False, False], *[[False, True]] * 3] == marked(chunk.rows, ABSENT, 2).tolist()


def test_both_events_of_a_changed_key_tell_that_they_are_of_one_change() -> None:
    part = PartitionRange(
        topic="t", partition=0, start=5, end=9, bytes_read=1, passages=(Passage(table_id=1, version=3, offset=5),)
    )
    version = PlannedVersion(version=3, place=None, edits=(), snapshot=BOTH, segment=0)
    tables = [PlannedTable(table_id=1, versions=(version,))]
    texts = [
        message("c", None, {"id": 1, "v": "a"}),
        message("d", {"id": 1, "v": None}, None),
        message("c", None, {"id": 2, "v": "__debezium_unavailable_value"}),
    ]
    found, reader = {}, EventReader()
    for is_read_so in (True, False):
        maker = ChunkMaker(
            part, tables, sequence=0, as_text=False, stops=True, normalized=lambda _, is_so=is_read_so: is_so
        )
        with contextlib.suppress(UnsupportedEvent):
            for offset, (key, value) in enumerate(texts, 5):
                place = b'"db":"d","schema":"shop","connector":"postgresql","lsn":7,"txId":9'
                event = reader.event(key, value.replace(b'"db":"shop"', place), "")
                assert isinstance(event, Event)
                assert [] == list(maker.take(offset, event))
        (chunk,) = maker.rest()
        found[is_read_so] = chunk.rows.column("moved").to_pylist() if "moved" in chunk.rows.schema.names else None

    assert {True: [None, "7/9", "7/9"], False: None} == found


def test_a_former_row_of_the_key_alone_does_not_tell_a_value_that_is_left_out() -> None:
    before, after = {"id": 1, "v": None}, {"id": 1, "v": "__debezium_unavailable_value"}
    key, value = message("u", before, after)
    with pytest.raises(UnsupportedEvent, match=r"no value of v.*source\.normalize"):
        made([(key, value.replace(b'"db":"shop"', b'"db":"d","schema":"shop"'))])
