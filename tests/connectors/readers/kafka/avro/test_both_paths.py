"""Rows and schemas by compiled code and by the library are the same, whatever the bytes of messages are."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest

from connectors.readers.kafka.avro.instructions import Unwalkable, instructions_of
from connectors.readers.kafka.avro.writers import Writers
from connectors.readers.kafka.client import KafkaSettings
from connectors.readers.kafka.decoders import decoder_of
from connectors.readers.kafka.located import batches
from connectors.readers.kafka.located.batches import LocatedRows
from connectors.readers.kafka.locators import locator_of
from connectors.readers.kafka.messages.events import Event
from connectors.readers.kafka.rows import ChunkMaker
from connectors.readers.kafka.scanning import TopicScan
from historian.changelog.chunks import Chunk
from historian.ddl import parse_column_type
from historian.errors import HistorianError, UnsupportedEvent
from historian.names import TableName
from historian.plans.plans import PartitionRange, Passage, PlannedTable, PlannedVersion
from historian.schema.snapshots import Column, Snapshot
from logs.topic_messages import body, recorded_writers
from logs.topic_streams import batch_of

Message = tuple[bytes | None, bytes | None]
Make = Callable[[random.Random], Any]


def named(kind: str, name: str, **parameters: str) -> dict[str, Any]:
    return {"type": kind, "connect.name": name, "connect.parameters": parameters}


def number(low: int, high: int) -> Make:
    return lambda numbers: numbers.choice((low, high, 0, 1, -1, numbers.randint(low, high), numbers.randint(-200, 200)))


def text(numbers: random.Random) -> str:
    return "".join(numbers.choices('ab \\"\u00e9\u20ac\U0001f600\u0000', k=numbers.randrange(14)))


def moment(numbers: random.Random) -> str:
    return numbers.choice(
        ("2024-01-02T03:04:05Z", "2024-01-02T03:04:05.123456Z", "2024-01-02T05:04:05+02:00", "no time")
    )


KINDS: dict[str, tuple[str, Any, Make]] = {
    "tiny": ("tinyint", {"type": "int", "connect.type": "int16"}, number(-128, 127)),
    "flag": ("tinyint", "boolean", lambda numbers: numbers.random() < 0.5),
    "long": ("bigint", "long", number(-(2**63), 2**63 - 1)),
    "huge": ("bigint unsigned", "long", number(-(2**63), 2**63 - 1)),
    "amount": (
        "decimal(7,3)",
        named("bytes", "org.apache.kafka.connect.data.Decimal", scale="3"),
        lambda numbers: numbers.randint(-(10**8), 10**8).to_bytes(numbers.choice((4, 8, 12)), "big", signed=True),
    ),
    "wide": (
        "decimal(50,3)",
        named("bytes", "org.apache.kafka.connect.data.Decimal", scale="3"),
        lambda numbers: numbers.randint(-(10**40), 10**40).to_bytes(20, "big", signed=True),
    ),
    "weight": ("double", "double", lambda numbers: numbers.choice((0.0, -0.0, 1e300, numbers.random()))),
    "rate": ("float", "float", lambda numbers: struct.unpack("f", struct.pack("f", numbers.random()))[0]),
    "text": ("varchar(50)", "string", text),
    "body": ("varbinary(50)", "bytes", lambda numbers: numbers.randbytes(numbers.randrange(9))),
    "day": ("date", named("int", "io.debezium.time.Date"), number(-719162, 2932896)),
    "made": ("datetime(3)", named("long", "io.debezium.time.Timestamp"), number(-62135596800000, 253402300799999)),
    "nano": ("datetime(6)", named("long", "io.debezium.time.NanoTimestamp"), number(-(2**62), 2**62)),
    "seen": ("timestamp(6)", named("string", "io.debezium.time.ZonedTimestamp"), moment),
    "spent": ("time(6)", named("long", "io.debezium.time.MicroTime"), number(-3020399000000, 3020399000000)),
    "state": ("enum('new','a,b')", named("string", "io.debezium.data.Enum", allowed="new,a\\,b"), lambda _: "a\\,b"),
    "bit": ("bit(1)", "boolean", lambda numbers: numbers.random() < 0.5),
    "bits": ("bit(12)", named("bytes", "io.debezium.data.Bits", length="12"), lambda _: b"\x01\x0a"),
    "place": (
        "point",
        {
            "type": "record",
            "name": "Point",
            "fields": [{"name": "wkb", "type": "bytes"}, {"name": "srid", "type": ["null", "int"]}],
            "connect.name": "io.debezium.data.geometry.Point",
        },
        lambda numbers: {"wkb": numbers.randbytes(3), "srid": numbers.choice((None, 4326))},
    ),
    "vector": (
        "vector",
        {"type": "array", "items": "float", "connect.name": "io.debezium.data.FloatVector"},
        lambda numbers: [1.5] * numbers.randrange(4),
    ),
}
SOURCE: list[tuple[str, Any]] = [
    ("version", "string"), ("ts_ms", "long"), ("snapshot", ["string", "null"]), ("db", "string"), ("sequence", ["null", "string"]),
    ("ts_us", ["null", "long"]), ("table", ["null", "string"]), ("pos", "long"),
]  # fmt: skip
KEY = {"type": "record", "name": "Key", "fields": [{"name": "id", "type": "int"}]}


def envelope(names: list[str], nullable: set[str]) -> dict[str, Any]:
    row = [{"name": "id", "type": "int"}] + [
        {"name": name, "type": ["null", KINDS[name][1]] if name in nullable else KINDS[name][1]} for name in names
    ]
    parts: list[tuple[str, Any]] = [
        ("before", ["null", {"type": "record", "name": "Value", "fields": row}]),
        ("after", ["null", "Value"]),
        ("source", {"type": "record", "name": "Source", "fields": [{"name": n, "type": t} for n, t in SOURCE]}),
        ("transaction", ["null", {"type": "record", "name": "block", "fields": [{"name": "id", "type": "string"}]}]),
        ("op", "string"),
        ("ts_ms", ["null", "long"]),
    ]
    fields = [{"name": name, "type": kind} for name, kind in parts]
    return {"type": "record", "name": "Envelope", "namespace": "d.shop.t", "fields": fields}


def snapshot(names: list[str]) -> Snapshot:
    types = ["int", *(KINDS[name][0] for name in names)]
    columns = tuple(
        Column(
            id=at,
            name=name,
            type=parse_column_type(
                kind, *(("utf8mb4", "utf8mb4_bin") if kind[:4] in ("varc", "enum") else (None, None))
            ),
        )
        for at, (name, kind) in enumerate(zip(["id", *names], types, strict=True), 1)
    )
    name = TableName("shop", "t")
    return Snapshot(table_id=1, name=name, columns=columns, primary_key=(1,), charset="utf8mb4", collation="c")


def chunks(writers: Writers, messages: list[Message], table: Snapshot, *, located: bool) -> list[Chunk] | str:
    part = PartitionRange(
        topic="t", partition=0, start=0, end=999, bytes_read=1, passages=(Passage(table_id=1, version=3, offset=0),)
    )
    version = PlannedVersion(version=3, place=None, edits=(), snapshot=table, segment=0)
    maker = ChunkMaker(part, [PlannedTable(table_id=1, versions=(version,))], sequence=0, as_text=False, stops=True)
    decoder = decoder_of("debezium_avro", tells=False, writers=writers)
    locator = locator_of(decoder)
    assert locator is not None
    batch = batch_of(messages)
    runs: Iterator[list[LocatedRows] | int] = locator.runs(batch) if located else iter(range(len(messages)))
    found = list[Chunk]()
    try:
        for run in runs:
            if not isinstance(run, int):
                found += maker.take_located(run)
                continue
            try:
                for event in decoder.events(*messages[run], f"t:0:{run}"):
                    if isinstance(event, Event):
                        found += maker.take(run, event)
            except UnsupportedEvent as error:
                found += maker.take_unread(str(run), 0, b"", str(error))
        return [*found, *maker.rest()]
    except HistorianError as error:
        return str(error)


def made(
    numbers: random.Random, names: list[str], nullable: set[str], registry: dict[str, Any], number: int = 2
) -> Message:
    def row() -> dict[str, Any]:
        values = {
            name: None if name in nullable and numbers.random() < 0.3 else KINDS[name][2](numbers) for name in names
        }
        return {"id": numbers.randrange(3), **values}

    op = numbers.choices("cruudmt", (4, 1, 4, 4, 2, 0.1, 0.1))[0]
    strange = numbers.random() < 0.05
    record = {
        "before": row() if (op in "ud") != strange else None,
        "after": row() if (op in "cru") != strange else None,
        "source": {
            "version": "3",
            "ts_ms": numbers.choice((1_700_000_000_123, -5)),
            "snapshot": None,
            "db": "shop" if numbers.random() < 0.97 else "store",
            "sequence": numbers.choice((None, "x")),
            "ts_us": numbers.choice((None, 1_700_000_000_123_456, 2**62 + 1 if strange else 7)),
            "table": "t" if numbers.random() < 0.97 else None,
            "pos": numbers.randrange(2**33),
        },
        "transaction": numbers.choice((None, {"id": "x"})),
        "op": op,
        "ts_ms": None,
    }
    key = body({"schema": 1, "record": {"id": 1}}, registry)
    return (key if numbers.random() < 0.98 else None), body({"schema": number, "record": record}, registry)


def mutated(numbers: random.Random, message: Message) -> Message:
    changed = bytearray(message[1] or b"")
    start = numbers.randrange(len(changed) + 1)
    changed[start : start + numbers.randrange(3)] = numbers.randbytes(numbers.randrange(3))
    return message[0], bytes(changed)


def compared(seed: int) -> tuple[int, int]:
    """Compares both ways over a batch of random messages, some of them damaged; how many rows compiled code has read, and how many there are."""
    numbers = random.Random(seed)
    names = numbers.sample(sorted(KINDS), numbers.randrange(1, 7))
    nullable = {name for name in names if numbers.random() < 0.5}
    registry = {"1": KEY, "2": envelope(names, nullable)}
    writers = recorded_writers({"registry": registry})
    assert writers is not None
    messages = [made(numbers, names, nullable, registry) for _ in range(60)]
    messages = [mutated(numbers, each) if numbers.random() < 0.05 else each for each in messages]
    messages.insert(7, (messages[0][0], None))
    table = snapshot(names)

    one_by_one = chunks(writers, messages, table, located=False)

    assert same(one_by_one) == same(chunks(writers, messages, table, located=True)), (seed, names)
    locator = locator_of(decoder_of("debezium_avro", tells=False, writers=writers))
    assert locator is not None
    batch = batch_of(messages)
    located = sum(len(rows) for run in locator.runs(batch) if not isinstance(run, int) for rows in run)
    return located, 0 if isinstance(one_by_one, str) else sum(chunk.rows.num_rows for chunk in one_by_one)


def shown(column: pa.Array) -> str:
    """The values of a column; moments and days as numbers, since Python has none of many that Arrow has."""
    kind = column.type
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        column = column.cast(pa.int64() if pa.types.is_timestamp(kind) else pa.int32())
    return repr(column.to_pylist())


def same(found: list[Chunk] | str) -> Any:
    """What must be the same; numbers that are none are equal to themselves."""
    if isinstance(found, str):
        return found
    return [
        (each.table_id, each.sequence, each.first_position, each.last_position, each.stopped, str(each.rows.schema), [shown(column) for column in each.rows.columns])
        for each in found
    ]  # fmt: skip


def test_random_messages_are_the_same_rows_either_way() -> None:
    found = [compared(seed) for seed in range(60)]

    assert sum(located for located, _ in found) > 1500


def told(writers: Writers, messages: list[Any]) -> tuple[Any, ...]:
    settings = KafkaSettings(brokers="", topics=("t",), format="debezium_avro", keeps_unread=True)
    scan = TopicScan({("t", 0): (0, len(messages))}, settings, writers)
    scan.take(("t", 0), batch_of(messages))
    return scan.found, scan.ranges(), scan.event_time_us, scan.size_bytes, scan.message_count


def test_scans_of_batches_tell_what_their_messages_do(monkeypatch: pytest.MonkeyPatch) -> None:
    found = 0
    for seed in range(20):
        numbers = random.Random(seed)
        names = numbers.sample(sorted(KINDS), 3)
        registry = {"1": KEY, "2": envelope(names, set(names)), "3": envelope(names[:2], {names[0]})}
        writers = recorded_writers({"registry": registry})
        assert writers is not None
        older = [made(numbers, names, set(names), registry) for _ in range(60)]
        newer = [made(numbers, names[:2], {names[0]}, registry, number=3) for _ in range(60)]
        turns = [*older, (older[0][0], None), *newer, *older[:9]]
        sent = [mutated(numbers, m) if m[1] and at % 30 == 7 else m for at, m in enumerate(turns)]
        monkeypatch.setattr(batches, "FEWEST_LOCATED", 1_000_000)
        one_by_one = told(writers, sent)
        monkeypatch.setattr(batches, "FEWEST_LOCATED", 0)

        assert one_by_one == told(writers, sent), seed
        found += len(one_by_one[0])
    assert found > 60


@pytest.mark.soak
def test_many_random_messages_are_the_same_rows_either_way() -> None:
    for seed in range(1000, 3000):
        compared(seed)


@pytest.mark.parametrize(
    "kind", [["int", "string"], {"type": "map", "values": "int"}, {"type": "array", "items": "string"}, {"type": "enum", "name": "E", "symbols": ["a"]}]
)  # fmt: skip
def test_schemas_that_the_walk_does_not_know_are_left_to_the_library(kind: Any) -> None:
    schema = envelope(["tiny"], set())
    schema["fields"][0]["type"][1]["fields"].append({"name": "more", "type": kind})
    writers = recorded_writers({"registry": {"2": schema}})
    assert writers is not None

    with pytest.raises(Unwalkable):
        instructions_of(writers.of(b"\0\0\0\0\2", ""))
