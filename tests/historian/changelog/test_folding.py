"""Folding against models that go row by row."""

# ruff: noqa: DTZ001 a DATETIME has no time zone
from __future__ import annotations

from collections import Counter
from datetime import date, datetime, timezone
from decimal import Decimal
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from historian.changelog.folding import BAG_COUNT, fold_bag, net_changes
from historian.changelog.operations import Op
from historian.errors import HistorianError
from models.changes import DATA, KEY, SCHEMA, Row, batch, plain, rows_of

seeds = st.integers(0, 2**32)


def keyed(op_and_key: list[tuple[Op, Any]], kind: pa.DataType) -> pa.RecordBatch:
    ops = pa.array([int(op) for op, _ in op_and_key], pa.uint8())
    keys = pa.array([key for _, key in op_and_key], kind)
    return pa.RecordBatch.from_arrays([ops, keys, pa.array(range(len(ops)))], names=["op", "k", "row"])


def last_rows(rows: list[Row]) -> list[Row]:
    """The last row of each key, in order."""
    last = {row[1:3]: i for i, row in enumerate(rows)}
    return [rows[i] for i in sorted(last.values())]


@settings(deadline=None, max_examples=150)
@given(seeds, st.integers(0, 40))
def test_net_change_is_the_last_row_of_each_key(seed: int, steps: int) -> None:
    random = Random(seed)
    held: dict[Row, Row] = {}
    rows_of(random, 10, held)
    before = dict(held)
    rows = rows_of(random, steps, held)

    net = net_changes(batch(rows), KEY)

    assert last_rows(rows) == plain(net)
    assert SCHEMA == net.schema
    merged = before | {row[1:3]: row[1:] for row in plain(net)}
    gone = {row[1:3] for row in plain(net) if row[0] == Op.RETRACT}
    assert held == {key: row for key, row in merged.items() if key not in gone}


@settings(deadline=None, max_examples=60)
@given(seeds, st.integers(1, 30), st.integers(0, 30))
def test_folding_parts_first_is_the_same(seed: int, steps: int, more: int) -> None:
    random, held = Random(seed), dict[Row, Row]()
    first, second = rows_of(random, steps, held), rows_of(random, more, held)

    parts = pa.Table.from_batches([net_changes(batch(rows), KEY) for rows in (first, second)])
    whole = plain(net_changes(batch(first + second), KEY))

    assert whole == plain(net_changes(parts, KEY))
    assert whole == plain(net_changes(parts.combine_chunks().to_batches()[0], KEY))


@pytest.mark.parametrize(
    "kind,one,other",
    [
        (pa.int64(), 1, -1),
        (pa.string(), "a", "A"),
        (pa.string(), "", "\0"),
        (pa.binary(), b"a", b"a\0"),
        (pa.decimal128(38, 10), Decimal("0.0000000001"), Decimal(0)),
        (pa.float64(), 0.1, 0.2),
        (pa.float32(), 0.5, -0.5),
        (pa.bool_(), True, False),
        (pa.date32(), date(1970, 1, 1), date(1969, 12, 31)),
        (
            pa.timestamp("us", tz="UTC"),
            datetime(2024, 1, 1, tzinfo=timezone.utc),
            datetime(1, 1, 1, tzinfo=timezone.utc),
        ),
        (pa.timestamp("us"), datetime(2024, 1, 1), datetime(2024, 1, 1, 0, 0, 0, 1)),
    ],
    ids=str,
)
def test_keys_of_any_type_compare_as_stored(kind: pa.DataType, one: object, other: object) -> None:
    rows = keyed([(Op.APPEND, one), (Op.APPEND, other), (Op.CORRECT_FROM, one), (Op.CORRECT_TO, one)], kind)

    net = net_changes(rows, ["k"])

    assert [(Op.APPEND, 1), (Op.CORRECT_TO, 3)] == plain(net, "op", "row")


def test_minus_zero_and_zero_are_one_key_as_for_the_server() -> None:
    rows = keyed([(Op.APPEND, 0.0), (Op.RETRACT, 0.0), (Op.APPEND, -0.0)], pa.float64())

    net = net_changes(rows, ["k"])

    assert [(Op.APPEND, 2)] == plain(net, "op", "row")
    assert "-0.0" == str(net.column("k")[0].as_py())


def test_a_key_change_is_a_delete_and_an_upsert() -> None:
    rows = keyed([(Op.APPEND, "a"), (Op.RETRACT, "a"), (Op.APPEND, "A")], pa.string())

    assert [(Op.RETRACT, "a"), (Op.APPEND, "A")] == plain(net_changes(rows, ["k"]), "op", "k")


def test_a_changelog_cut_inside_a_correction_is_refused() -> None:
    with pytest.raises(HistorianError, match="cut between -C and"):
        net_changes(keyed([(Op.APPEND, 1), (Op.CORRECT_FROM, 1)], pa.int64()), ["k"])


@settings(deadline=None, max_examples=100)
@given(seeds, st.integers(0, 40))
def test_a_bag_counts_rows(seed: int, steps: int) -> None:
    random, held = Random(seed), dict[Row, Row]()
    before = rows_of(random, random.randint(0, 8), held)
    rows = rows_of(random, steps, held)
    names = DATA[2:]  # not unique, so that rows repeat

    bag = fold_bag(batch(rows), names)

    expected: Counter[Row] = Counter()
    for row in rows:
        expected[row[3:]] += 1 if row[0] in {Op.APPEND, Op.CORRECT_TO} else -1
    assert {row: count for row, count in expected.items() if count} == {
        row[:-1]: row[-1] for row in plain(bag, *names, BAG_COUNT)
    }
    whole = fold_bag(pa.Table.from_batches([batch(before), batch(rows)]), names)
    assert Counter(row[2:] for row in held.values()) == Counter(
        {row[:-1]: row[-1] for row in plain(whole, *names, BAG_COUNT)}
    )


def test_an_empty_changelog_folds_to_nothing() -> None:
    empty = batch([])

    assert (0, SCHEMA) == (net_changes(empty, KEY).num_rows, net_changes(empty, KEY).schema)
    assert (0, [*DATA, BAG_COUNT]) == (fold_bag(empty, DATA).num_rows, fold_bag(empty, DATA).column_names)


def test_a_column_named_count_is_no_trouble() -> None:
    rows = pa.table({"op": pa.array([0, 0], pa.int32()), "count": [5, 5], "row": [1, 1]})

    assert [(5, 1, 2)] == plain(fold_bag(rows, ["count", "row"]), "count", "row", BAG_COUNT)
