"""Events of more images than are decoded at a time: the same rows and chunks as of one row an event."""

from __future__ import annotations

import random
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from connectors.readers.binlog.events.table_maps import table_map as described
from connectors.readers.binlog.kernels.values import layout
from connectors.readers.binlog.rows.builder import runs
from connectors.readers.binlog.rows.program import Style, program
from logs.decoder_lab import decode_events
from logs.row_events import WireType, commit, rows_event, snapshot_of, table_map, wire_decimal, wire_integer, wire_text
from models.plain_decoder import decoded_rows, plain_rows_of

INT = wire_integer("int", 3, 4, unsigned=False)
WIDE = wire_integer("bigint", 8, 8, unsigned=True)
KEY = WireType(type=INT.type, code=3, metadata=b"", encode=bytes)
NARROW: tuple[WireType, ...] = (KEY, wire_text(300), wire_decimal(12, 2), WIDE)
BROAD = (*NARROW, *[INT] * 70, wire_text(20), *[INT] * 60)


def some_rows(types: tuple[WireType, ...], count: int) -> list[tuple[Any, ...]]:
    """Rows with few NULLs, which are in any column but the first."""
    chosen = random.Random(f"{len(types)} {count}")

    def value(wire: WireType) -> Any:
        if chosen.random() < 0.01:
            return None
        if wire.type.name == "varchar":
            return "é" * chosen.choice((0, 1, 3, 8, 16, 17, 90)) if wire.type.length == 300 else "x" * 20
        if wire.type.name == "decimal":
            return Decimal(chosen.randrange(1 - 10**12, 10**12)).scaleb(-2)
        return chosen.randrange(1 << 31)

    return [(number.to_bytes(4, "little"), *map(value, types[1:])) for number in range(count)]


def log_of(kind: int, types: tuple[WireType, ...], rows: list[tuple[Any, ...]], rows_an_event: int) -> list[bytes]:
    parts = [rows[first : first + rows_an_event] for first in range(0, len(rows), rows_an_event)]
    return commit(1, table_map(5, types), *(rows_event(kind, 5, types, part) for part in parts))


@pytest.mark.parametrize("types", [NARROW, BROAD], ids=["narrow", "broad"])
@pytest.mark.parametrize("kind", [30, 31, 32])
def test_rows_of_large_events_are_those_of_the_plain_decoder(kind: int, types: tuple[WireType, ...]) -> None:
    snapshot = snapshot_of(types)
    events = log_of(kind, types, some_rows(types, 300), 300)
    chunks = decode_events(events, snapshot)
    assert decoded_rows(chunks, snapshot) == [repr(row) for row in plain_rows_of(events, snapshot)]


@pytest.mark.parametrize("kind", [30, 31])
@pytest.mark.parametrize("limits", [{"max_chunk_rows": 100}, {"max_chunk_bytes": 5000}, {"max_chunk_bytes": 1}])
def test_chunks_end_at_the_same_rows_whatever_events_the_rows_come_in(kind: int, limits: dict[str, int]) -> None:
    snapshot, rows = snapshot_of(NARROW), some_rows(NARROW, 300)
    sizes = []
    for rows_an_event in (300, 2):
        chunks = decode_events(log_of(kind, NARROW, rows, rows_an_event), snapshot, **limits)
        sizes.append([chunk.rows.num_rows for chunk in chunks])
    assert sizes[0] == sizes[1]
    assert len(sizes[0]) > 2


def test_a_run_ends_behind_a_text_and_where_the_next_64_columns_begin() -> None:
    types = (KEY, INT, wire_text(20), *[INT] * 62, WIDE)
    event = table_map(5, types)
    steps = program(snapshot_of(types), described(event, "mysql").columns, style=Style())
    found, distances = runs(steps)
    assert found[:, [layout.RUN_FIRST, layout.RUN_COUNT, layout.RUN_SIZE, layout.RUN_PREFIX]].tolist() == [
        [0, 3, 9, 1],
        [3, 61, 244, 0],
        [64, 2, 12, 0],
    ]
    masks = found[:, layout.RUN_MASK].view(np.uint64).tolist()
    assert masks == [0b111, ((1 << 61) - 1) << 3, 0b11]
    assert distances[: len(types)].tolist() == [0, 4, 8, *range(0, 244, 4), 0, 4]
