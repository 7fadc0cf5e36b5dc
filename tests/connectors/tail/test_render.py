"""One line a row: numbers as numbers, bytes as base64, the rest as the server's own text."""

from __future__ import annotations

import json
from datetime import date
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from rich.console import Console

from connectors.tail.json_lines import ndjson_rows
from connectors.tail.tables import rich_table
from historian.changelog.chunks import Chunk
from historian.changelog.operations import CHUNK_COLUMNS, physical_name
from historian.errors import ValueUnrepresentable
from historian.names import TableName
from historian.schema.snapshots import Column, ColumnType, Snapshot

UUID = "3e11fa47-71ca-11e1-9e33-c80aa9429562"


def _column(number: int, name: str, kind: str, **more: Any) -> Column:
    return Column(id=number, name=name, type=ColumnType(name=kind, **more))


def _snapshot(*columns: Column, table: str = "orders") -> Snapshot:
    name = TableName("shop", table)
    return Snapshot(table_id=1, name=name, columns=columns, charset="utf8mb4", collation="utf8mb4_bin")


def _chunk(snapshot: Snapshot, *data: pa.Array, sources: tuple[str, ...] = (UUID,), **words: Any) -> Chunk:
    rows = len(data[0])
    given = {
        "op": [0] * rows,
        "event_time": [1_700_000_000_000_001] * rows,
        "source": [0] * rows,
        "sequence": list(range(1, rows + 1)),
        "ordinal": [2] * rows,
        **words,
    }
    arrays = [pa.array(given[field.name], field.type) for field in CHUNK_COLUMNS]
    fields = [pa.field(physical_name(c.id), a.type) for c, a in zip(snapshot.columns, data, strict=True)]
    return Chunk(
        table_id=1,
        version=7,
        segment=0,
        sequence=0,
        file="binlog.000003",
        first_position=f"{UUID}:1",
        last_position=f"{UUID}:{rows}",
        sources=sources,
        rows=pa.RecordBatch.from_arrays([*arrays, *data], schema=pa.schema([*CHUNK_COLUMNS, *fields])),
    )


def _values(column: Column, data: pa.Array) -> list[str]:
    """The text that each value of a column has."""
    snapshot = _snapshot(column)
    start = f'"data": {{"{column.name}": '
    return [row[row.index(start) + len(start) : -2] for row in ndjson_rows(_chunk(snapshot, data), snapshot)]


def test_a_row_has_just_the_promised_keys_in_order() -> None:
    snapshot = _snapshot(_column(4, "id", "bigint"), _column(9, "note", "text"))
    chunk = _chunk(snapshot, pa.array([2**63 - 1], pa.int64()), pa.array(['ä\n"x"'], pa.string()), op=[3])

    rows = list(ndjson_rows(chunk, snapshot))

    head = (
        f'{{"table": "shop.orders", "position": "{UUID}:1", "op": "+C", "event_time": "2023-11-14T22:13:20.000001Z", '
    )
    tail = '"schema_version": 7, "data": {"id": 9223372036854775807, "note": "ä\\n\\"x\\""}}'
    assert rows == [head + tail]


def test_each_operation_has_its_sign() -> None:
    snapshot = _snapshot(_column(1, "id", "int"))
    chunk = _chunk(snapshot, pa.array([1, 2, 3, 4], pa.int32()), op=[0, 1, 2, 3])

    assert [json.loads(row)["op"] for row in ndjson_rows(chunk, snapshot)] == ["+A", "-R", "-C", "+C"]


def test_positions_of_mariadb_of_tags_and_without_gtid() -> None:
    snapshot = _snapshot(_column(1, "id", "int"))
    sources = ("0-5", f"{UUID}:tag")
    chunk = _chunk(
        snapshot, pa.array([1, 2, 3], pa.int32()), sources=sources, source=[0, 1, -1], sequence=[812, 9, 4711]
    )

    found = [json.loads(row)["position"] for row in ndjson_rows(chunk, snapshot)]

    assert found == ["0-5-812", f"{UUID}:tag:9", "binlog.000003:4711"]


def _decimals(precision: int, scale: int, *texts: str | None) -> pa.Array:
    values = [None if text is None else Decimal(text) for text in texts]
    return pa.array(values, pa.decimal128(precision, scale))


INT = ColumnType(name="tinyint")
VALUES: list[tuple[ColumnType, pa.Array, list[str]]] = [
    (INT, pa.array([-128, None], pa.int8()), ["-128", "null"]),
    (ColumnType(name="bigint", unsigned=True), _decimals(20, 0, str(2**64 - 1)), [str(2**64 - 1)]),
    (ColumnType(name="year"), pa.array([2024, 0], pa.int16()), ["2024", "0"]),
    (ColumnType(name="float"), pa.array([0.1, 3.4e38, -0.0, 1e-45], pa.float32()), ["0.1", "3.4e+38", "-0.0", "1e-45"]),
    (ColumnType(name="double"), pa.array([0.1, 1e22, 5e-324, -0.0, 1.0]), ["0.1", "1e+22", "5e-324", "-0.0", "1.0"]),
    (ColumnType(name="decimal"), _decimals(6, 2, "-12.50", None), ['"-12.50"', "null"]),
    (ColumnType(name="decimal"), _decimals(12, 10, "0.0000000001", "0"), ['"0.0000000001"', '"0.0000000000"']),
    (ColumnType(name="decimal"), pa.array(["9" * 65], pa.string()), [f'"{"9" * 65}"']),
    (ColumnType(name="bit", length=1), pa.array([True, False, None]), ["1", "0", "null"]),
    (ColumnType(name="bit", length=64), pa.array([b"\xff" * 8], pa.binary()), [str(2**64 - 1)]),
    (ColumnType(name="blob"), pa.array([b"\x00\xff", b"", None], pa.binary()), ['"AP8="', '""', "null"]),
    (ColumnType(name="point"), pa.array([b"\x01\x02\x03"], pa.binary()), ['"AQID"']),
    (ColumnType(name="date"), pa.array(["0000-00-00"], pa.string()), ['"0000-00-00"']),
    (ColumnType(name="time"), pa.array(["-838:59:59.000001"], pa.string()), ['"-838:59:59.000001"']),
    (ColumnType(name="date"), pa.array([date(1, 2, 3), None]), ['"0001-02-03"', "null"]),
    (
        ColumnType(name="datetime"),
        pa.array([0, -1], pa.timestamp("us")),
        ['"1970-01-01 00:00:00"', '"1969-12-31 23:59:59"'],
    ),
    (ColumnType(name="datetime", fraction=3), pa.array([1_250_000], pa.timestamp("us")), ['"1970-01-01 00:00:01.250"']),
    (
        ColumnType(name="timestamp", fraction=6),
        pa.array([1], pa.timestamp("us", "UTC")),
        ['"1970-01-01 00:00:00.000001"'],
    ),
    (ColumnType(name="time"), pa.array([-3020399 * 10**6, 0], pa.int64()), ['"-838:59:59"', '"00:00:00"']),
    (ColumnType(name="time", fraction=2), pa.array([61_250_000], pa.int64()), ['"00:01:01.25"']),
    (ColumnType(name="json"), pa.array(['{"a": 1.0}'], pa.string()), ['"{\\"a\\": 1.0}"']),
    (ColumnType(name="text"), pa.array(["100%s", "\x00\u2028", "null"]), ['"100%s"', '"\\u0000\u2028"', '"null"']),
]


@pytest.mark.parametrize("kind, data, expected", VALUES)
def test_values_are_written_by_their_type(kind: ColumnType, data: pa.Array, expected: list[str]) -> None:
    assert _values(Column(id=1, name="c", type=kind), data) == expected


def test_names_with_quotes_and_percent_signs_are_safe() -> None:
    snapshot = _snapshot(_column(1, '50%"s', "int"), table='a"%d')
    row = json.loads(next(ndjson_rows(_chunk(snapshot, pa.array([1], pa.int32())), snapshot)))

    assert (row["table"], row["data"]) == ('shop.a"%d', {'50%"s': 1})


def test_a_column_without_a_text_is_an_error() -> None:
    snapshot = _snapshot(_column(1, "at", "int"))
    chunk = _chunk(snapshot, pa.array([[0]], pa.list_(pa.int32())))

    with pytest.raises(ValueUnrepresentable, match=r"no text for a column \(at int\); found list"):
        list(ndjson_rows(chunk, snapshot))


def test_a_table_for_a_terminal_tells_null_from_text() -> None:
    snapshot = _snapshot(_column(1, "id", "int"), _column(2, "note", "text"))
    chunk = _chunk(snapshot, pa.array([1, 2], pa.int32()), pa.array([None, "x" * 60], pa.string()), op=[0, 1])
    console = Console(width=120)

    with console.capture() as captured:
        console.print(rich_table(chunk, snapshot))
    lines = [line.strip() for line in captured.get().splitlines()]

    assert lines == [
        f"shop.orders  schema version 7  {UUID}:1",
        "op ┃ id ┃ note",
        "━━━╇━━━━╇━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━",
        "+A │ 1  │ NULL",
        f"-R │ 2  │ {'x' * 39}…",
        "",
    ]


def test_a_cell_shows_text_as_it_is_but_for_control_characters() -> None:
    snapshot = _snapshot(_column(1, "j", "json"))
    console = Console(width=120)

    with console.capture() as captured:
        console.print(rich_table(_chunk(snapshot, pa.array(['{"a": "\x1b[31m\n"}'])), snapshot))

    assert captured.get().splitlines()[3].rstrip() == '+A │ {"a": "\\x1b[31m\\n"}'


@pytest.mark.parametrize("kind,arrow", [("float", pa.float32()), ("double", pa.float64())])
def test_floats_that_json_has_no_number_for_are_texts(kind: str, arrow: pa.DataType) -> None:
    """MySQL 5.7 keeps an infinite value where FLOAT(255,0) UNSIGNED overflows."""
    snapshot = _snapshot(_column(1, "f", kind))
    data = pa.array([1.5, float("inf"), None, float("-inf"), float("nan")], arrow)

    found = [
        json.loads(row, parse_constant=pytest.fail)["data"]["f"]
        for row in ndjson_rows(_chunk(snapshot, data), snapshot)
    ]

    assert found == [1.5, "Infinity", None, "-Infinity", "NaN"]
