"""GoldenGate's updates that leave out what did not change: values that the state of a normalised table has."""

from __future__ import annotations

import json
from typing import Any

import pytest

from connectors.readers.kafka.decoders import decoder_of
from connectors.readers.kafka.messages.events import Event
from connectors.readers.kafka.rows import ChunkMaker
from historian.changelog.chunks import Chunk
from historian.changelog.missing_columns import ABSENT, marked
from historian.errors import ValueUnrepresentable
from historian.names import TableName
from historian.plans.plans import PartitionRange, Passage, PlannedTable, PlannedVersion
from historian.schema.snapshots import Column, ColumnType, Snapshot

TABLE = Snapshot(
    table_id=1,
    name=TableName("SHOP", "T"),
    columns=(
        Column(id=1, name="ID", type=ColumnType(name="bigint")),
        Column(id=2, name="V", type=ColumnType(name="longtext")),
        Column(id=3, name="N", type=ColumnType(name="bigint")),
    ),
    primary_key=(1,),
    charset="utf8mb4",
    collation="utf8mb4_bin",
)


def update(before: dict[str, Any], after: dict[str, Any]) -> bytes:
    told = {"table": "SHOP.T", "op_type": "U", "op_ts": "2020-05-13 15:40:05.000000", "primary_keys": ["ID"]}
    return json.dumps({**told, "before": before, "after": after}).encode()


def made(*messages: bytes, normalized: bool = True) -> list[Chunk]:
    part = PartitionRange(
        topic="t", partition=0, start=0, end=9, bytes_read=1, passages=(Passage(table_id=1, version=3, offset=0),)
    )
    version = PlannedVersion(version=3, place=None, edits=(), snapshot=TABLE, segment=0)
    tables = [PlannedTable(table_id=1, versions=(version,))]
    maker = ChunkMaker(part, tables, sequence=0, as_text=False, stops=False, normalized=lambda _: normalized)
    decoder = decoder_of("ogg_json", tells=False)
    for offset, value in enumerate(messages):
        for event in decoder.events(None, value, f"t:0:{offset}"):
            assert isinstance(event, Event)
            assert [] == list(maker.take(offset, event))
    return list(maker.rest())


def test_what_an_update_leaves_out_is_absent_and_an_explicit_null_is_not() -> None:
    (chunk,) = made(
        update({"ID": 1, "V": "a"}, {"ID": 1, "V": None}),
        update({"ID": 1, "N": 4}, {"ID": 1, "V": "b", "N": 5}),
        update({"ID": 1, "V": "b", "N": 5}, {"ID": 1, "V": "c", "N": 5}),
    )

    rows = list(zip(*(chunk.rows[name].to_pylist() for name in ("op", "h1", "h2", "h3")), strict=True))
    assert [(3, 1, None, None), (3, 1, "b", 5), (2, 1, "b", 5), (3, 1, "c", 5)] == rows
    assert [[False, False, True], *[[False] * 3] * 3] == marked(chunk.rows, ABSENT, 3).tolist()


def test_without_a_state_and_about_a_changed_key_such_an_update_is_no_row() -> None:
    for messages, normalized in (
        ([update({"ID": 1, "V": "a"}, {"ID": 1, "V": "b"})], False),
        ([update({"ID": 1}, {"ID": 2})], True),
    ):
        with pytest.raises(ValueUnrepresentable, match="a row without it"):
            made(*messages, normalized=normalized)


def test_a_value_that_the_row_before_has_and_the_row_after_lacks_was_not_left_out() -> None:
    with pytest.raises(ValueUnrepresentable, match="a row without it"):
        made(update({"ID": 1, "V": "a", "N": 4}, {"ID": 1, "N": 5}))
