"""Envelopes of Avro that no connector of Debezium's writes are understood by compiled code as by the library, or left to it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from connectors.readers.kafka.avro.columnar import reading_of
from connectors.readers.kafka.avro.instructions import Unwalkable, instructions_of
from connectors.readers.kafka.avro.writers import Writers
from connectors.readers.kafka.decoders import decoder_of
from connectors.readers.kafka.located import batches
from connectors.readers.kafka.locators import locator_of
from connectors.readers.kafka.messages.batch import Batch
from connectors.readers.kafka.messages.events import Field
from connectors.readers.kafka.messages.modes import DEFAULT_MODES
from historian.schema.snapshots import Column, ColumnType
from logs.topic_messages import body, recorded_writers

SOURCE = {"db": "string", "table": "string", "ts_us": ["null", "long"], "ts_ms": "long"}


def envelope(*, op: Any = "string", nullable: bool = False, **source: Any) -> dict[str, Any]:
    row = {"type": "record", "name": "Row", "fields": [{"name": "a", "type": "int"}]}
    fields = [{"name": name, "type": kind} for name, kind in {**SOURCE, **source}.items()]
    record = {"type": "record", "name": "Source", "fields": fields}
    parts = {"before": ["null", row], "after": ["null", "Row"], "source": ["null", record] if nullable else record}
    return {
        "type": "record",
        "name": "Envelope",
        "fields": [{"name": name, "type": kind} for name, kind in {**parts, "op": op}.items()],
    }


def writers_of(schema: dict[str, Any]) -> Writers:
    writers = recorded_writers({"registry": {"2": schema}})
    assert writers is not None
    return writers


@pytest.mark.parametrize(
    "strange",
    [
        {"op": "long"}, {"op": "bytes"}, {"db": "long"}, {"db": ["null", "int"]}, {"table": "bytes"}, {"table": "double"},
        {"ts_us": ["null", "double"]}, {"ts_us": ["null", "boolean"]}, {"ts_us": ["null", "string"]},
        {"ts_ms": "double"}, {"ts_ms": ["null", "boolean"]}, {"ts_ms": {"type": "fixed", "name": "F", "size": 8}},
    ],
)  # fmt: skip
def test_names_that_are_no_texts_and_times_that_are_no_integers_are_left_to_the_library(
    strange: dict[str, Any],
) -> None:
    with pytest.raises(Unwalkable):
        instructions_of(writers_of(envelope(**strange)).of(b"\0\0\0\0\2", ""))


@pytest.mark.parametrize(
    "usual",
    [{"op": {"type": "string", "connect.name": "o"}}, {"db": ["null", "string"]}, {"ts_us": "int"}, {"ts_ms": ["null", "int"]}],
)  # fmt: skip
def test_other_spellings_of_texts_and_integers_are_walked(usual: dict[str, Any]) -> None:
    code, slots = instructions_of(writers_of(envelope(**usual)).of(b"\0\0\0\0\2", ""))

    assert len(code) > 10
    assert slots == {"a": 0}


@pytest.mark.parametrize("accepts", [False, True])
@pytest.mark.parametrize("first", [None, "true", "false"])
def test_messages_that_write_defaults_for_nulls_are_left_to_the_library_wherever_they_stand(
    first: str | None, accepts: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batches, "_MOST_SLOW", 0)
    schema = envelope(connector="string", snapshot=["null", "string"])
    row = schema["fields"][0]["type"][1]["fields"][0]
    row.update(type=[{"type": "int", "connect.default": 1}, "null"], default=1)
    marks = [first, "false", None, "true", "false", "fals", "false1"]
    source = {"connector": "mysql", "db": "d", "table": "t", "ts_us": None, "ts_ms": 7}
    messages = [
        body(
            {
                "schema": 2,
                "record": {"before": None, "after": {"a": 2}, "source": {**source, "snapshot": mark}, "op": "c"},
            },
            {"2": schema},
        )
        for mark in marks
    ]
    modes = replace(DEFAULT_MODES, accepts_defaults=accepts)
    locator = locator_of(decoder_of("debezium_avro", tells=False, writers=writers_of(schema), modes=modes))
    assert locator is not None

    runs = list(locator.runs(Batch.of([None] * len(marks), messages, np.arange(len(marks)))))

    expected = [] if accepts else [number for number, mark in enumerate(marks) if mark == "false"]
    assert expected == [run for run in runs if isinstance(run, int)]


def test_a_message_without_a_source_is_no_row_of_a_table_without_a_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "_MOST_SLOW", 0)
    schema = envelope(nullable=True, db=["null", "string"], table=["null", "string"])
    writers = writers_of(schema)
    unnamed = {"db": None, "table": None, "ts_us": None, "ts_ms": 7}
    records = [{"before": None, "after": {"a": 1}, "source": source, "op": "c"} for source in (unnamed, None, unnamed)]
    messages = [body({"schema": 2, "record": record}, {"2": schema}) for record in records]
    locator = locator_of(decoder_of("debezium_avro", tells=False, writers=writers))
    assert locator is not None

    runs = list(locator.runs(Batch.of([None] * 3, messages, np.arange(3))))

    assert [run if isinstance(run, int) else [rows.offsets.tolist() for rows in run] for run in runs] == [
        [[0]],
        1,
        [[2]],
    ]


@pytest.mark.parametrize(
    "parameters, is_compiled", [({}, False), ({"allowed": "a\\,b,c"}, False), ({"allowed": "a,c"}, True)]
)
def test_labels_that_may_have_a_comma_are_left_to_the_library(parameters: dict[str, str], is_compiled: bool) -> None:
    kind = ColumnType(name="enum", labels=("a,b", "c"))
    field = Field(
        column=Column(id=0, name="e", type=kind), type="string", name="io.debezium.data.Enum", parameters=parameters
    )

    assert (reading_of(field, kind) is not None) == is_compiled
