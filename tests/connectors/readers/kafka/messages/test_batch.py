"""Parts of batches are what parts of lists are."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from connectors.readers.kafka.messages.batch import Batch

BODIES = st.one_of(st.none(), st.binary(max_size=5))


@given(messages=st.lists(st.tuples(BODIES, BODIES), min_size=1), data=st.data())
def test_a_part_of_a_part_has_the_messages_of_its_list(
    messages: list[tuple[bytes | None, bytes | None]], data: st.DataObject
) -> None:
    cuts = [data.draw(st.integers(0, len(messages))) for _ in range(2)]
    begin, end = min(cuts), max(cuts)
    inner = data.draw(st.integers(0, end - begin))
    batch = Batch.of([key for key, _ in messages], [value for _, value in messages], np.arange(len(messages)))

    part = batch.part(begin, end).part(inner, end - begin)

    assert messages[begin + inner : end] == list(zip(part.keys, part.values, strict=True))
    assert list(range(begin + inner, end)) == part.offsets.tolist()
    assert [len(key or b"") + len(value or b"") for key, value in messages[begin + inner : end]] == part.sizes.tolist()


@given(offsets=st.lists(st.integers(0, 30), min_size=1, unique=True), before=st.integers(-1, 31))
def test_messages_before_an_offset_are_those_of_lower_ones(offsets: list[int], before: int) -> None:
    batch = Batch.of([None] * len(offsets), [None] * len(offsets), np.sort(offsets))

    assert [each for each in sorted(offsets) if each < before] == batch.before(before).offsets.tolist()


@given(
    offsets=st.lists(st.integers(0, 30), min_size=1, unique=True),
    cuts=st.lists(st.integers(0, 31), unique=True, max_size=6),
)
def test_batches_without_ranges_have_the_messages_outside_of_them(offsets: list[int], cuts: list[int]) -> None:
    batch = Batch.of([None] * len(offsets), [None] * len(offsets), np.sort(offsets))
    ends = sorted(cuts)
    ranges = list(zip(ends[::2], ends[1::2], strict=False))

    left = [offset for each in batch.without(ranges) for offset in each.offsets.tolist()]

    assert [each for each in sorted(offsets) if not any(begin <= each < end for begin, end in ranges)] == left
