from __future__ import annotations

import pytest

from historian.codec import dump_short, load
from historian.plans.key_ranges import Key, KeyRange


@pytest.mark.parametrize(
    "after, upto",
    [(None, None), ((1,), None), ((-(2**63), "61"), (2**64 - 1, "")), (("1",), ("2020-01-01 00:00:00.000000",))],
)
def test_a_range_survives_its_stored_form(after: Key | None, upto: Key | None) -> None:
    keys = KeyRange(after=after, upto=upto)

    assert keys == load(KeyRange, dump_short(KeyRange, keys))


def test_the_stored_form_of_a_range_is_small() -> None:
    assert '{"after":[7,"61"]}' == dump_short(KeyRange, KeyRange(after=(7, "61")))
