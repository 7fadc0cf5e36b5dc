"""What a scan keeps of its messages."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from connectors.readers.kafka.kernels.layout import SLACK
from connectors.readers.kafka.message_cache import MessageCache
from connectors.readers.kafka.messages.batch import Batch
from connectors.readers.room import Room
from historian.plans.plans import PartitionRange


def _batch(*offsets: int) -> Batch:
    values = [b"%066d" % offset for offset in offsets]
    return Batch.of([None] * len(offsets), values, np.array(offsets, np.int64))


def _range(start: int, end: int, partition: int = 0) -> PartitionRange:
    return PartitionRange(topic="t", partition=partition, start=start, end=end, bytes_read=1)


def _offsets(cache: MessageCache, planned: PartitionRange) -> list[int] | None:
    found = cache.cached(planned)
    return None if found is None else [offset for part in found for offset in part.offsets.tolist()]


def test_a_range_has_its_own_messages_however_they_came() -> None:
    cache = MessageCache()
    cache.add(("t", 0), _batch(3, 4, 7))
    cache.add(("t", 1), _batch(0))
    cache.add(("t", 0), _batch(8, 12))
    # Offsets without a message are of a compacted topic, or of the end of a transaction.
    ranges = [_range(1, 4), _range(4, 9), _range(9, 20), _range(20, 21), _range(0, 1, partition=1)]

    cache.close(ranges)

    assert [_offsets(cache, each) for each in ranges] == [[3], [4, 7, 8], [12], [], [0]]
    assert _offsets(cache, _range(1, 5)) is None


@pytest.mark.parametrize(
    "most, kept", [(0, [None, None, None]), (350, [[0, 1], [2], None]), (1000, [[0, 1], [2], [5]])]
)
def test_what_is_too_much_is_read_again_by_the_range(most: int, kept: list[list[int] | None]) -> None:
    cache = MessageCache(Room(most))
    cache.add(("t", 0), _batch(0, 1, 2))
    cache.add(("t", 0), _batch(5))
    ranges = [_range(0, 2), _range(2, 4), _range(4, 6)]
    cache.close(ranges)
    assert [_offsets(cache, each) for each in ranges] == kept


def test_messages_that_follow_what_was_left_out_are_left_out() -> None:
    cache = MessageCache(Room(250))
    cache.add(("t", 0), _batch(0))
    cache.add(("t", 0), _batch(1, 2))
    cache.add(("t", 0), _batch(3))
    cache.close([_range(0, 1), _range(1, 4)])
    assert (_offsets(cache, _range(0, 1)), _offsets(cache, _range(1, 4))) == ([0], None)


def test_room_is_given_back_when_nobody_has_the_messages() -> None:
    room = Room(1000)
    cache = MessageCache(room)
    cache.add(("t", 0), _batch(0, 1, 2, 3))
    broken_off = MessageCache(room)
    broken_off.add(("t", 0), _batch(0, 1, 2, 3))
    assert not room.take(300)
    del broken_off
    cache.close([_range(0, 3), _range(3, 4)])
    held = cache.cached(_range(0, 3))
    assert held is not None
    assert cache.cached(_range(0, 3)) is None
    assert not room.take(601)
    del held
    assert room.take(900)
    del cache
    assert room.take(100)
    assert not room.take(1)


def test_a_part_of_a_batch_travels_without_the_rest() -> None:
    whole = Batch.of([b"k"] * 100, [b"v" * 1000] * 99 + [None], np.arange(100))
    part = whole.part(97, 100)
    sent = pickle.dumps(part)
    back = pickle.loads(sent)
    assert len(sent) < 3500
    assert (list(back.values), list(back.keys)) == (list(part.values), list(part.keys))
    assert back.offsets.tolist() == [97, 98, 99]
    # A kernel that looks for the end of a text finds one, and no memory of others.
    assert all(texts.body[texts.starts[-1] :].tobytes() == b'"' * SLACK for texts in (back.values, back.keys))
    assert pickle.loads(pickle.dumps(whole.part(0, 3))).values.body[3000:].tobytes() == b'"' * SLACK
