"""Rows by compiled code and rows one by one are the same, whatever messages are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
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
from historian.errors import HistorianError, UnsupportedEvent
from historian.plans.plans import PartitionRange, Passage, PlannedTable, PlannedVersion
from historian.schema.snapshots import Snapshot
from logs.topic_streams import Message, streams


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
