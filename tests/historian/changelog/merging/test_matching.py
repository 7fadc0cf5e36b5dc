"""Keys are found as the server compares stored values: by their bytes, NULL being one, and both zeros the same."""

from __future__ import annotations

from datetime import date, datetime, timezone
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from historian.changelog.merging.matching import KeyIndex

UTC = timezone.utc
COLUMNS = {
    "int": pa.array([3, None, -1], pa.int32()),
    "unsigned bigint": pa.array([Decimal(2**64 - 1), None, Decimal(0)], pa.decimal128(20, 0)),
    "decimal": pa.array([Decimal("1.10"), None, Decimal("-1.10")], pa.decimal128(38, 10)),
    "text": pa.array(["a", None, "A"]),
    "trailing space": pa.array(["a ", "", "a"]),
    "binary": pa.array([b"a\0", None, b"a"]),
    "double": pa.array([0.5, None, -0.5]),
    "date": pa.array([date(1, 1, 1), None, date(9999, 12, 31)]),
    "time": pa.array([datetime(2024, 1, 1, 0, 0, 0, 1, UTC), None, datetime(2024, 1, 1, tzinfo=UTC)]),
    "boolean": pa.array([True, None, False]),
}


@pytest.mark.parametrize("values", COLUMNS.values(), ids=COLUMNS)
def test_a_key_of_any_type_is_found(values: pa.Array) -> None:
    rows = pa.table({"k": values, "l": ["x", "y", "z"]})
    for key in (["k"], ["k", "l"], ["l", "k"]):
        index = KeyIndex(rows, key)

        assert 3 == index.count
        assert [0, 1, 2] == index.numbers.tolist()
        assert [2, 0, 1] == index.find(rows.take([2, 0, 1])).tolist()
        assert [-1, -1] == index.find(pa.table({"k": values.take([0, 1]), "l": ["z", "?"]})).tolist() or key == ["k"]
        assert [] == KeyIndex(rows.slice(0, 0), key).numbers.tolist()
        assert [-1, -1, -1] == KeyIndex(rows.slice(0, 0), key).find(rows).tolist()


def test_both_zeros_are_one_key_unless_bits_count() -> None:
    rows = pa.table({"k": [0.0, -0.0, 1.0]})

    assert [0, 0, 1] == KeyIndex(rows, ["k"]).numbers.tolist()
    exact = KeyIndex(rows, ["k"], exact=True)
    assert [0, 1, 2] == exact.numbers.tolist()
    assert [1, 0] == exact.find(pa.table({"k": [-0.0, 0.0]})).tolist()


def test_a_key_of_known_values_in_an_unknown_pair_is_not_found() -> None:
    index = KeyIndex(pa.table({"a": [1, 2], "b": ["x", "y"]}), ["a", "b"])

    found: list[Any] = index.find(pa.table({"a": [1, 2, 1, None], "b": ["y", "y", "x", "x"]})).tolist()
    assert [-1, 1, 0, -1] == found
