"""Messages that producers hardly write are understood by compiled code as one by one, or left to that."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from connectors.readers.kafka.debezium import columnar
from connectors.readers.kafka.debezium.values import arrow_column
from connectors.readers.kafka.decoders import decoder_of
from connectors.readers.kafka.located import batches, columns
from connectors.readers.kafka.located.batches import LocatedRows
from connectors.readers.kafka.locators import locator_of, scanning_locator_of
from connectors.readers.kafka.messages.batch import Batch
from connectors.readers.kafka.messages.events import Field
from historian.schema.snapshots import Column, ColumnType


@pytest.fixture(autouse=True)
def _few_understood(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many messages are not understood, the others are located."""
    monkeypatch.setattr(batches, "_MOST_SLOW", 0)


def enveloped(value: Any, **source: Any) -> bytes:
    """A message of Debezium's with its schema inline."""
    row = {"type": "struct", "fields": [{"type": "int32", "optional": True, "field": "a"}], "optional": True}
    schema = {"type": "struct", "fields": [{**row, "field": "before"}, {**row, "field": "after"}]}
    payload = {"after": {"a": value}, "op": "c", **source}
    return json.dumps({"schema": schema, "payload": payload}, separators=(",", ":")).encode()


def located(messages: list[bytes]) -> list[list[LocatedRows] | int]:
    locator = locator_of(decoder_of("debezium_json"))
    assert locator is not None
    return list(locator.runs(Batch.of([None] * len(messages), messages, np.arange(len(messages)))))


def understood(runs: list[list[LocatedRows] | int]) -> list[int]:
    return [offset for run in runs if not isinstance(run, int) for rows in run for offset in rows.offsets.tolist()]


@pytest.mark.parametrize("source", [{"source": None}, {"source": 5}, {"source": []}, {"source": "x"}, {}])
def test_a_message_without_a_source_is_no_row_of_a_table_without_a_name(source: dict[str, Any]) -> None:
    unnamed = enveloped(1, source={})

    assert understood(located([unnamed, enveloped(2, **source), unnamed])) == [0, 2]


DECIMAL = Field(
    column=Column(id=0, name="a", type=ColumnType(name="decimal")),
    type="bytes",
    name="org.apache.kafka.connect.data.Decimal",
    parameters={"scale": "2"},
)
FLOAT = Field(column=Column(id=0, name="a", type=ColumnType(name="float")), type="float", name="", parameters={})


def column_of(value: Any, field: Field, kind: ColumnType) -> pa.Array:
    """A column of one value by compiled code."""
    (run,) = located([enveloped(value, source={})])
    assert not isinstance(run, int)
    reading = columnar.reading_of(field, kind)
    assert reading is not None
    return columns.array_of(run[0], "a", reading, lambda strange: arrow_column(strange, field, kind), whole=True)


@pytest.mark.parametrize("body", ["gAAAAAAAAAA=", "gAAAAAAAAAE=", "f/////////8="])
def test_digits_beyond_a_decimals_precision_are_refused(body: str) -> None:
    kind = ColumnType(name="decimal", precision=10, scale=2)
    with pytest.raises(pa.ArrowInvalid):
        arrow_column([body], DECIMAL, kind)

    with pytest.raises(pa.ArrowInvalid):
        column_of(body, DECIMAL, kind)


def test_the_least_number_of_eight_bytes_is_a_decimal_where_it_fits() -> None:
    found = column_of("gAAAAAAAAAA=", DECIMAL, ColumnType(name="decimal", precision=20, scale=2))

    assert found.to_pylist() == [Decimal(-(2**63)).scaleb(-2)]


@pytest.mark.parametrize("number", [2**24 + 1, 2**24 + 2, -(2**24) - 1])
def test_integers_that_a_float_may_not_hold_exactly_are_refused(number: int) -> None:
    kind = ColumnType(name="float")
    with pytest.raises(pa.ArrowInvalid):
        arrow_column([number], FLOAT, kind)

    with pytest.raises(pa.ArrowInvalid):
        column_of(number, FLOAT, kind)


@pytest.mark.parametrize("number", [2**24, -(2**24), 16777217.0, 3])
def test_other_numbers_are_floats(number: float) -> None:
    kind = ColumnType(name="float")

    assert column_of(number, FLOAT, kind).to_pylist() == arrow_column([number], FLOAT, kind).to_pylist()


def test_messages_of_canal_without_types_are_scanned_by_compiled_code() -> None:
    change = {"data": [{"id": "1"}], "database": "shop", "table": "t", "type": "INSERT", "es": 1000, "isDdl": False}
    untyped = json.dumps({**change, "mysqlType": None, "pkNames": ["id"]}).encode()
    strange = json.dumps({**change, "mysqlType": [], "pkNames": ["id"]}).encode()
    typed = json.dumps({**change, "mysqlType": {"id": "int"}, "pkNames": ["id"]}).encode()
    broken = untyped.replace(b"null", b"nullx")
    locator = scanning_locator_of(decoder_of("canal_json"))
    assert locator is not None

    messages = [untyped, untyped, strange, broken, typed, untyped]
    runs = list(locator.runs(Batch.of([None] * len(messages), messages, np.arange(len(messages)))))

    assert sorted(understood(runs)) == [0, 1, 4, 5]
    by_schema = [rows.offsets.tolist() for run in runs[-1:] if not isinstance(run, int) for rows in run]
    assert sorted(by_schema) == [[4], [5]]
