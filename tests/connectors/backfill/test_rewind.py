"""Rows brought back by what the log has of them: the same in one part or in many, of which each holds few keys at once."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from connectors.backfill import rewind
from connectors.backfill.rewind import rewound, rewound_bag
from historian.changelog.operations import CHUNK_COLUMNS, Op

_Row = tuple[int | None, str | None, float]
_SCHEMA = pa.schema([*CHUNK_COLUMNS, ("h1", pa.int64()), ("h2", pa.string()), ("h3", pa.float64())])


def _batches(rows: Sequence[tuple[Op, _Row]], size: int) -> list[pa.RecordBatch]:
    def batch(some: Sequence[tuple[Op, _Row]]) -> pa.RecordBatch:
        ops = pa.array([int(op) for op, _ in some], pa.uint8())
        system = [ops, *(pa.array([0] * len(some)).cast(field.type) for field in CHUNK_COLUMNS[1:])]
        columns = [pa.array([row[at] for _, row in some], _SCHEMA.field(f"h{at + 1}").type) for at in range(3)]
        return pa.RecordBatch.from_arrays([*system, *columns], schema=_SCHEMA)

    return [batch(rows[at : at + size]) for at in range(0, len(rows), size)]


def _rows(batches: Any) -> Counter[_Row]:
    return Counter(
        row for batch in batches for row in zip(*(batch.column(f"h{at}").to_pylist() for at in (1, 2, 3)), strict=True)
    )


def _all(rows: pa.RecordBatch) -> Any:
    return np.ones(rows.num_rows, np.bool_)


@pytest.mark.parametrize("parts", [1, 2, 7])
def test_a_bag_is_what_it_was_in_however_many_parts(parts: int) -> None:
    for seed in range(20):
        rng = random.Random(seed)
        before: list[_Row] = [(rng.choice([*range(6), None]), rng.choice(["a", "", None]), 0.0) for _ in range(60)]
        held, log = list(before), list[tuple[Op, _Row]]()
        for _ in range(rng.randrange(150)):
            if held and rng.random() < 0.5:
                gone = held.pop(rng.randrange(len(held)))
                log.append((Op.RETRACT, gone))
            else:
                held.append((rng.randrange(9), rng.choice(["a", "b", None]), rng.random()))
                log.append((Op.APPEND, held[-1]))
        selected = _batches([(Op.APPEND, row) for row in held], 16)

        assert Counter(before) == _rows(rewound_bag(lambda rows=selected: rows, _batches(log, 11), parts=parts))


@pytest.mark.parametrize("parts", [1, 2, 7])
def test_rows_with_keys_are_what_they_were_in_however_many_parts(parts: int) -> None:
    for seed in range(20):
        rng = random.Random(seed)
        before: dict[int, _Row] = {key: (key, rng.choice(["a", None]), 0.0) for key in range(0, 60, 2)}
        held, log = dict(before), list[tuple[Op, _Row]]()
        for _ in range(rng.randrange(150)):
            key = rng.randrange(60)
            if key not in held:
                held[key] = (key, "new", rng.random())
                log.append((Op.APPEND, held[key]))
            elif rng.random() < 0.5:
                log.append((Op.RETRACT, held.pop(key)))
            else:
                log.append((Op.CORRECT_FROM, held[key]))
                held[key] = (key, "changed", rng.random())
                log.append((Op.CORRECT_TO, held[key]))
        selected = _batches([(Op.APPEND, row) for row in held.values()], 16)

        found = rewound(lambda rows=selected: rows, _batches(log, 11), ["h1"], _all, parts=parts)
        assert Counter(before.values()) == _rows(found)


def test_of_each_part_only_its_own_keys_are_held(monkeypatch: pytest.MonkeyPatch) -> None:
    held: list[int] = []

    def counted(real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*given: Any) -> Any:
            found = real(*given)
            held.append(sum(map(len, found)) if isinstance(found, tuple) else len(found))
            return found

        return call

    for name in ("_first_changes", "_balance"):
        monkeypatch.setattr(rewind, name, counted(getattr(rewind, name)))
    rows: list[tuple[Op, _Row]] = [(Op.APPEND, (at, f"v{at}", float(at))) for at in range(4000)]

    for found in (
        rewound(lambda: _batches(rows, 500), _batches(rows, 300), ["h1"], _all, parts=8),
        rewound_bag(lambda: _batches(rows, 500), _batches(rows, 300), parts=8),
    ):
        assert Counter() == _rows(found)

    assert [4000, 4000] == [sum(held[:8]), sum(held[8:])]
    assert max(held) < 600


def test_rows_that_differ_in_a_number_alone_are_of_many_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    held: list[int] = []

    def balance(*given: Any) -> Any:
        found = real(*given)
        held.append(sum(map(len, found)))
        return found

    real = rewind._balance
    monkeypatch.setattr(rewind, "_balance", balance)
    rows: list[tuple[Op, _Row]] = [(Op.APPEND, (1, "a", at / 8)) for at in range(4000)]

    found = rewound_bag(lambda: _batches(rows, 500), _batches(rows, 300), parts=8)

    assert Counter() == _rows(found)
    assert 8 == len(held)
    assert max(held) < 600


@pytest.mark.parametrize("zero", [0.0, -0.0])
def test_numbers_that_are_equal_are_of_one_part_whatever_their_bits(zero: float) -> None:
    before: list[tuple[Op, _Row]] = [(Op.APPEND, (at, "a", zero)) for at in range(50)]
    log: list[tuple[Op, _Row]] = [(Op.RETRACT, (at, "a", -zero)) for at in range(50)]
    late: list[tuple[Op, _Row]] = [(Op.APPEND, (at, "a", -zero)) for at in range(50)]

    assert Counter(row for _, row in before) == _rows(rewound_bag(list, _batches(log, 7), parts=7))
    assert Counter() == _rows(rewound_bag(lambda: _batches(before, 9), _batches(late, 7), parts=7))


def test_of_rows_that_come_and_go_nothing_is_held(monkeypatch: pytest.MonkeyPatch) -> None:
    """A queue: what is inserted is deleted soon."""
    balances: list[Any] = []
    real = rewind._balance
    monkeypatch.setattr(rewind, "_balance", lambda *given: balances.append(real(*given)) or balances[-1])
    log = [(op, (at, "job", 0.0)) for at in range(1000) for op in (Op.APPEND, Op.RETRACT)]

    assert Counter() == _rows(rewound_bag(list, _batches(log, 100)))
    assert [({}, {})] == balances


def test_keys_of_floating_point_are_held_at_once() -> None:
    """0.0 and -0.0 are one key with two forms."""
    before, held = [(1, "a", 0.0)], [(1, "b", -0.0)]
    log = [(Op.CORRECT_FROM, before[0]), (Op.CORRECT_TO, held[0])]
    selected = _batches([(Op.APPEND, row) for row in held], 5)

    assert Counter(before) == _rows(rewound(lambda: selected, _batches(log, 5), ["h3"], _all, parts=9))
