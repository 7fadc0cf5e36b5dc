"""Random changelogs of a small keyed table, with the table that they lead to, for tests of folding and conversions."""

from __future__ import annotations

from datetime import datetime, timezone
from random import Random
from typing import Any

import pyarrow as pa

from historian.changelog.operations import CHUNK_COLUMNS, Op, physical_name
from historian.schema.snapshots import Snapshot
from historian.values.arrow_types import arrow_type

WHEN = datetime(2024, 1, 1, tzinfo=timezone.utc)
KEY = ("k", "l")
DATA = ("k", "l", "v", "w")
SCHEMA = pa.schema(
    [
        pa.field("offset", pa.int64()),
        pa.field("op", pa.uint8(), nullable=False),
        pa.field("k", pa.string()),
        pa.field("l", pa.decimal128(6, 2)),
        pa.field("v", pa.binary()),
        pa.field("w", pa.float64()),
    ]
)

Row = tuple[Any, ...]


def rows_of(random: Random, steps: int, held: dict[Row, Row]) -> list[Row]:
    """``(op, k, l, v, w)`` of *steps* inserts, updates, deletes and key changes on *held*, which is changed along."""
    rows: list[Row] = []
    for _ in range(steps):
        choice = random.random()
        key = random.choice(sorted(held)) if held and choice > 0.35 else _key(random)
        if key not in held:
            held[key] = (*key, *_rest(random))
            rows.append((Op.APPEND, *held[key]))
        elif choice < 0.6:
            rows.append((Op.RETRACT, *held.pop(key)))
        elif choice < 0.7 and (other := _key(random)) not in held:
            rows.append((Op.RETRACT, *held.pop(key)))
            held[other] = (*other, *_rest(random))
            rows.append((Op.APPEND, *held[other]))
        else:
            rows.append((Op.CORRECT_FROM, *held[key]))
            held[key] = (*key, *_rest(random))
            rows.append((Op.CORRECT_TO, *held[key]))
    return rows


def batch(rows: list[Row], first_offset: int = 0) -> pa.RecordBatch:
    """Rows as an Arrow batch of :data:`SCHEMA`."""
    columns = [range(first_offset, first_offset + len(rows)), *([row[i] for row in rows] for i in range(5))]
    arrays = [
        pa.array([int(v) if isinstance(v, Op) else v for v in c], f.type) for c, f in zip(columns, SCHEMA, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)


def plain(rows: pa.RecordBatch | pa.Table, *names: str) -> list[Row]:
    """Rows as tuples of *names*, by default op and data."""
    wanted = names or ("op", *DATA)
    columns = [rows.column(name).to_pylist() for name in wanted]
    return list(zip(*columns, strict=True)) if rows.num_rows else []


def _key(random: Random) -> Row:
    from decimal import Decimal

    return random.choice(("a", "A", "", "ä")), Decimal(random.randint(-2, 2)) / 2


def _rest(random: Random) -> Row:
    return random.choice((None, b"", b"\x00", b"x")), random.choice((None, 0.0, 0.5, -1.5))


def appended(written: Snapshot, *rows: tuple[Any, ...]) -> pa.RecordBatch:
    """Appended rows of *written*."""
    count = len(rows)
    system = [[0] * count, [WHEN] * count, [0] * count, list(range(count)), list(range(count))]
    data = [[row[i] for row in rows] for i in range(len(written.columns))]
    fields = [*CHUNK_COLUMNS, *(pa.field(physical_name(c.id), arrow_type(c.type)) for c in written.columns)]
    arrays = [pa.array(values, field.type) for values, field in zip([*system, *data], fields, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))
