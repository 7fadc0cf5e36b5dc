"""Fingerprints of rows: equal for equal rows in any order, and rows that differ are among the few that are looked at."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from historian.changelog.fingerprints import Fingerprints, kernels
from models.random_rows import NARROW_AND_WIDE, SCALARS

_KINDS = [*SCALARS, *NARROW_AND_WIDE]


@st.composite
def _rows(draw: st.DrawFn) -> tuple[pa.Table, pa.Table]:
    """Rows with a key, and others of the same columns of which some are the same."""
    kinds = draw(st.lists(st.sampled_from(_KINDS), min_size=1, max_size=4))
    row = st.tuples(st.integers(0, 30), *(st.none() | values for _, values in kinds))
    first = draw(st.lists(row, max_size=20))
    both = draw(st.permutations([*first, *draw(st.lists(row, max_size=3))]))[: draw(st.integers(0, 23))]
    schema = pa.schema([("k", pa.int64()), *((f"c{at}", kind) for at, (kind, _) in enumerate(kinds))])
    one, other = (_table(rows, schema) for rows in (first, both))
    return one, other


def _table(rows: list[tuple[Any, ...]], schema: pa.Schema) -> pa.Table:
    columns = zip(*rows, strict=True) if rows else [()] * len(schema)
    return pa.table(
        [pa.array(list(column), field.type) for column, field in zip(columns, schema, strict=True)], schema=schema
    )


def _bits(rows: pa.Table) -> Counter[tuple[Any, ...]]:
    """Each row as often as it is there; a float by its bits."""
    columns = [
        column.combine_chunks().view(pa.int32() if column.type.bit_width == 32 else pa.int64())
        if pa.types.is_floating(column.type)
        else column
        for column in rows.columns
    ]
    return Counter(zip(*(column.to_pylist() for column in columns), strict=True))


@given(_rows(), st.booleans(), st.integers(0, 2**64 - 1))
@settings(max_examples=300, deadline=None)
def test_rows_outside_the_differing_buckets_are_the_same(
    tables: tuple[pa.Table, pa.Table], keyed: bool, seed: int
) -> None:
    prints = [Fingerprints(seed, ("k",) if keyed else ()) for _ in tables]
    for found, rows in zip(prints, tables, strict=True):
        found.add(rows)
    buckets = prints[0].differing(prints[1])
    few = [rows.filter(pa.array(prints[0].among(rows, buckets))) for rows in tables]
    left = [_bits(rows) - _bits(some) for rows, some in zip(tables, few, strict=True)]
    assert left[0] == left[1]
    assert [rows.num_rows for rows in few] == [found.count_in(buckets) for found in prints]
    assert bool(buckets.any()) == (_bits(tables[0]) != _bits(tables[1]))


@given(_rows(), st.randoms())
@settings(max_examples=100, deadline=None)
def test_order_and_pieces_do_not_matter(tables: tuple[pa.Table, pa.Table], rng: Any) -> None:
    rows = tables[0]
    order = rng.sample(range(rows.num_rows), rows.num_rows)
    one, other, rest = (Fingerprints(7, ("k",)) for _ in range(3))
    one.add(rows)
    mixed = pa.concat_tables([rows.slice(0, 0), rows.take(pa.array(order, pa.int64()))])
    cut = rng.randint(0, rows.num_rows)
    other.add(mixed.slice(0, cut))
    rest.add(mixed.slice(cut))
    other.merge(rest)
    assert not one.differing(other).any()


@pytest.mark.parametrize("count", [1, 200_000])
def test_one_row_among_many_is_found_with_few_others(count: int) -> None:
    rows = pa.table({"k": np.arange(count), "v": pa.array([f"value {number % 97}" for number in range(count)])})
    changed = rows.set_column(1, "v", pa.array([*rows.column("v").to_pylist()[:-1], "another"]))
    one, other = (Fingerprints(7, ("k",)) for _ in range(2))
    one.add(rows)
    other.add(changed)
    buckets = one.differing(other)
    assert buckets.sum() == 1
    assert changed.filter(pa.array(one.among(changed, buckets))).column("v").to_pylist().count("another") == 1


def test_a_kernel_is_compiled_once_whoever_owns_the_values() -> None:
    owned = pa.array(["a", None]).buffers()
    others = pa.StringArray.from_buffers(
        2, pa.py_buffer(bytearray(owned[1])), pa.py_buffer(bytearray(owned[2])), owned[0]
    )
    for values in (pa.array(["a", None]), others, pa.array([1, None])):
        Fingerprints(0).add(pa.table({"v": values}))
    for kernel in (kernels.mix_words, kernels.mix_bytes, kernels.add_to_buckets):
        assert len(kernel.signatures) == 1
