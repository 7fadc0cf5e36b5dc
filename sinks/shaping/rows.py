"""Chunks of a table in the shape of the lake."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from historian.changelog.chunks import Chunk
from historian.changelog.missing_columns import WHOLE_IMAGES, carry_missing, lacking
from historian.changelog.operations import CHUNK_COLUMNS, Op, column_id, physical_name
from historian.schema.snapshots import Snapshot
from historian.values.arrow_types import arrow_type
from sinks.shaping.columns import shaped_values
from sinks.shaping.rules import PLAIN
from sinks.shaping.tables import TableShape

__all__ = ["WHOLE_ROWS", "EvaluatedRows", "kept_ops", "shaped_chunk", "shaped_dead_letters"]

WHOLE_ROWS = (
    f"an expression needs rows whose images have all columns: expected {WHOLE_IMAGES}, or a table without expressions"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluatedRows:
    """What expressions gave for the rows of one chunk.

    Attributes:
        keep: which rows are wanted; None: all.
        computed: column id to values.
    """

    keep: pa.Array | None = None
    computed: Mapping[int, pa.Array]


def shaped_chunk(chunk: Chunk, written: Snapshot, shape: TableShape, evaluated: EvaluatedRows | None = None) -> Chunk:
    """*chunk* as the lake has it; dead letters of columns that are shaped say nothing of the value.

    Args:
        chunk: with columns of *written*.
        written: the source's schema in force for its rows.
        shape: of the table.
        evaluated: where the table has expressions.
    """
    rows = chunk.rows
    if shape.bindings.rules.has_expressions and not shape.spared.issuperset(lacking(rows)):
        return replace(chunk, stopped=WHOLE_ROWS, rows=rows.slice(0, 0))
    arrays = {name: rows.column(name) for name in (field.name for field in CHUNK_COLUMNS)}
    kept = [c for c in written.columns if shape.bindings.action(c).kind != "left out"]
    for column in kept:
        name = physical_name(column.id)
        arrays[name] = shaped_values(rows.column(name), column, shape.bindings.action(column))
    if evaluated is not None:
        for column in shape.computed:
            arrays[physical_name(column.id)] = evaluated.computed[column.id].cast(arrow_type(column.type))
    places: list[int | None] = [at for at, c in enumerate(written.columns) if c in kept]
    arrays |= carry_missing(rows, [*places, *(None for _ in shape.computed)], len(written.columns))
    stays = np.ones(rows.num_rows, np.bool_)
    if evaluated is not None and evaluated.keep is not None:
        stays, ops = kept_ops(
            rows.column("op").to_numpy(), evaluated.keep.fill_null(False).to_numpy(zero_copy_only=False)
        )
        arrays["op"] = pa.array(ops, pa.uint8())
    shaped = _batch(arrays, rows.schema, _metadata(rows, shape, stays))
    return replace(chunk, rows=shaped if stays.all() else shaped.filter(pa.array(stays)))


def kept_ops(ops: np.ndarray, keep: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Which rows of a chunk stay, and their operations: of a -C and +C of which one half stays, it is a -R or a +A."""
    half = np.zeros(len(ops), np.bool_)
    firsts = np.flatnonzero(ops == Op.CORRECT_FROM)
    half[firsts] = keep[firsts] & ~keep[firsts + 1]
    half[firsts + 1] = keep[firsts + 1] & ~keep[firsts]
    alone = np.where(ops == Op.CORRECT_FROM, np.uint8(Op.RETRACT), np.uint8(Op.APPEND))
    return keep, np.where(half, alone, ops).astype(np.uint8)


def shaped_dead_letters(letters: str, shape: TableShape) -> str:
    """The dead letters of a chunk (:func:`historian.changelog.chunks.dead_letters`) as :func:`shaped_chunk` leaves them where all rows stay."""
    found = []
    for letter in json.loads(letters or "[]"):
        action = shape.bindings.actions.get(letter["column"], PLAIN)
        if action.kind != "left out":
            found.append({**letter, "raw": "", "text": ""} if action.kind else letter)
    return json.dumps(found) if found else ""


def _batch(arrays: Mapping[str, pa.Array], schema: pa.Schema, metadata: Mapping[str, str]) -> pa.RecordBatch:
    fields = [
        schema.field(name).with_type(values.type) if name in schema.names else pa.field(name, values.type)
        for name, values in arrays.items()
    ]
    return pa.RecordBatch.from_arrays(list(arrays.values()), schema=pa.schema(fields, metadata=dict(metadata)))


def _metadata(rows: pa.RecordBatch, shape: TableShape, stays: np.ndarray) -> dict[str, str]:
    held = rows.schema.metadata or {}
    found = {}
    if b"nulled" in held:
        counts = json.loads(held[b"nulled"])
        found["nulled"] = json.dumps({n: c for n, c in counts.items() if _kind(n, shape) != "left out"})
    if b"dead_letters" in held:
        places = np.cumsum(stays) - 1
        letters = []
        for row, name, raw, text, reason in json.loads(held[b"dead_letters"]):
            kind = _kind(name, shape)
            if stays[row] and kind != "left out":
                letters.append([int(places[row]), name, "" if kind else raw, "" if kind else text, reason])
        if letters:
            found["dead_letters"] = json.dumps(letters)
    return found


def _kind(name: str, shape: TableShape) -> str:
    action = shape.bindings.actions.get(column_id(name))
    return "" if action is None else action.kind
