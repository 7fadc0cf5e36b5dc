"""Rows that lack columns, folded and completed, against a table that takes each change in its turn."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from historian.changelog.missing_columns import ABSENT, UNSEEN, carry_missing, marked, missing_names, name_lists, pack
from historian.changelog.operations import Op
from historian.changelog.partial_folding import completed, partial_net
from historian.errors import TableStopped

COLUMNS = ["k", "a", "b"]
Row = dict[str, Any]


class Log:
    """Changes of a table as rows that lack columns, and the table that they lead to; UNSEEN values are "?"."""

    def __init__(self, table: dict[int, Row]) -> None:
        self.table = {key: dict(row) for key, row in table.items()}
        self.rows: list[tuple[Op, int, Row, set[str]]] = []
        self._event = 0

    def insert(self, row: Row) -> None:
        self._event += 1
        self._add(Op.APPEND, row)
        self.table[row["k"]] = dict(row)

    def delete(self, key: int, told: set[str]) -> None:
        self._event += 1
        row = self.table.pop(key)
        self._add(Op.RETRACT, {name: row[name] for name in told | {"k"} if row[name] != "?"})

    def update(self, key: int, new: Row, told: set[str], unseen: set[str]) -> None:
        """*told*: what the before image has besides the key."""
        self._event += 1
        before = self.table.pop(key)
        told = {name for name in told | {"k"} if before[name] != "?"}
        same = new.get("k", key) == key
        self._add(Op.CORRECT_FROM if same else Op.RETRACT, {name: before[name] for name in told})
        after = {name: value for name, value in before.items() if name in told and name not in unseen} | new
        self._add(Op.CORRECT_TO if same else Op.APPEND, after, unseen)
        self.table[after["k"]] = before | after | dict.fromkeys(unseen, "?")

    def _add(self, op: Op, row: Row, unseen: set[str] = frozenset()) -> None:  # type: ignore[assignment]
        self.rows.append((op, self._event, row, set(unseen)))

    def batch(self) -> pa.Table:
        absent = np.array([[name not in row for name in COLUMNS] for _, _, row, _ in self.rows], np.bool_)
        unseen = np.array([[name in hidden for name in COLUMNS] for _, _, _, hidden in self.rows], np.bool_)
        return pa.table(
            {
                "op": pa.array([int(op) for op, *_ in self.rows], pa.uint8()),
                "source": pa.array([0] * len(self.rows), pa.int16()),
                "sequence": pa.array([event // 3 for _, event, *_ in self.rows], pa.int64()),
                "ordinal": pa.array([event % 3 for _, event, *_ in self.rows], pa.int32()),
                **{name: pa.array([row.get(name) for _, _, row, _ in self.rows], pa.int64()) for name in COLUMNS},
                ABSENT: pack(absent.reshape(-1, 3)),
                UNSEEN: pack(unseen.reshape(-1, 3)),
            }
        )


def table_of(rows: dict[int, Row]) -> pa.Table:
    return pa.Table.from_pylist(list(rows.values()), pa.schema([(name, pa.int64()) for name in COLUMNS]))


def random_log(random: Random, before: dict[int, Row], steps: int) -> Log:
    log = Log(before)

    def value() -> int | None:
        return random.choice([None, random.randrange(100)])

    for _ in range(steps):
        key = random.randrange(6)
        told = set(random.choice([(), ("a",), ("a", "b")]))
        if key not in log.table:
            log.insert({"k": key, "a": value(), "b": value()})
        elif random.random() < 0.2:
            log.delete(key, told)
        else:
            new = {name: value() for name in random.sample(["a", "b"], random.randrange(3))}
            free = [other for other in range(6) if other not in log.table]
            if free and random.random() < 0.3:
                new["k"] = random.choice(free)
            unseen = {name for name in ("a", "b") if name not in new and random.random() < 0.05}
            log.update(key, new, told, unseen)
    return log


@settings(deadline=None, max_examples=200)
@given(st.integers(0, 2**32), st.integers(1, 40))
def test_the_net_change_leads_to_the_same_table(seed: int, steps: int) -> None:
    random = Random(seed)
    before = {key: {"k": key, "a": key, "b": -key} for key in random.sample(range(6), random.randrange(7))}
    log = random_log(random, before, steps)

    net = partial_net(log.batch(), ["k"], COLUMNS)
    whole = completed(net.partial, table_of(before), ["k"], COLUMNS)

    hidden = {row["k"]: set(row[UNSEEN]) for row in net.unseen.to_pylist()}
    assert hidden == {
        key: names for key, row in log.table.items() if (names := {name for name, value in row.items() if value == "?"})
    }
    held = dict(before)
    for row in net.gone.to_pylist():
        held.pop(row["k"], None)
    for row in [*net.whole.to_pylist(), *whole.to_pylist()]:
        held[row["k"]] = row
    assert {key: row for key, row in held.items() if key not in hidden} == {
        key: row for key, row in log.table.items() if key not in hidden
    }


def test_a_row_that_the_table_does_not_have_is_named() -> None:
    log = Log({1: {"k": 1, "a": 1, "b": 1}, 2: {"k": 2, "a": 2, "b": 2}})
    log.update(2, {"k": 3}, set(), set())
    net = partial_net(log.batch(), ["k"], COLUMNS)
    with pytest.raises(TableStopped, match="a change of a row that the mirror lacks") as caught:
        completed(net.partial, table_of({1: log.table[1]}), ["k"], COLUMNS)
    assert caught.value.where == "key 2"


def test_without_its_key_a_row_says_nothing() -> None:
    log = Log({1: {"k": 1, "a": 1, "b": 1}})
    log.update(1, {"a": 2}, set(), set())
    log.rows[0][2].pop("k")
    net = partial_net(log.batch(), ["k"], COLUMNS)
    assert [["k", "a", "b"]] == net.unseen.column(UNSEEN).to_pylist()
    assert 0 == net.whole.num_rows + net.partial.num_rows + net.gone.num_rows


def test_bitmaps_go_with_their_columns() -> None:
    bits = np.array([[True] + [False] * 9, [False] * 10, [False] * 9 + [True]], np.bool_)
    rows = pa.RecordBatch.from_arrays([pack(bits)], names=[ABSENT])
    assert marked(rows, ABSENT, 10).tolist() == bits.tolist()
    assert not marked(rows, UNSEEN, 10).any()
    assert marked(rows.slice(1), ABSENT, 10).tolist() == bits[1:].tolist()
    moved = carry_missing(rows, [9, None, 0], 10)
    assert list(moved) == [ABSENT]
    assert name_lists(moved[ABSENT], ["x", "y", "z"]).to_pylist() == [["z"], None, ["x"]]
    names = [f"c{number}" for number in range(10)]
    assert list(missing_names(rows, names)) == [{ABSENT: ["c0"]}, {}, {ABSENT: ["c9"]}]
    assert list(missing_names(rows.drop_columns([ABSENT]).slice(0, 0), names)) == []
