"""What SELECTs give is counted by chunk, and told while they take long, as people look at it."""

from __future__ import annotations

import json
import pickle
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from connectors.backfill.selecting import PieceCounts, PieceSelects
from connectors.backfill.splits import Piece
from connectors.readers.binlog.transport.connection import ServerAddress
from connectors.tracking.ranges import SEQUENCE_BITS
from databases.stores import a_plan
from historian.changelog.chunks import Chunk
from historian.errors import StoreError
from historian.names import TableName
from historian.plans.key_ranges import KeyRange
from historian.plans.plans import CopiedPiece, PlannedVersion
from historian.schema.snapshots import Snapshot

if TYPE_CHECKING:
    import pytest

SNAPSHOT = Snapshot(table_id=1, name=TableName("s", "t"), columns=(), charset="", collation="")
VERSION = PlannedVersion(version=1, place=None, edits=(), snapshot=SNAPSHOT, segment=1)
FIRST, LAST = (
    Piece(table_id=1, version=VERSION, key=None, range=KeyRange(after=after, upto=upto))
    for after, upto in ((None, (5,)), ((5,), None))
)
NUMBERED = {FIRST: 3, LAST: 4}


@dataclass
class _Clock:
    now_s: float = 0.0

    def __call__(self) -> float:
        return self.now_s


def _chunk(number: int, rows: int, *, stopped: str = "") -> Chunk:
    return Chunk(
        table_id=1,
        version=1,
        segment=1,
        sequence=(number << SEQUENCE_BITS) + 7,
        file="b.1",
        first_position="",
        last_position="",
        sources=(),
        rows=pa.RecordBatch.from_pydict({"v": pa.array(range(rows), pa.int64())}),
        stopped=stopped,
    )


def _counted(counts: PieceCounts, clock: _Clock) -> None:
    """A second passes behind each chunk but the first."""
    with counts.of(9, NUMBERED):
        add = counts.adding(lambda _: None)
        add(_chunk(3, 10))
        clock.now_s += 1
        add(_chunk(3, 1))
        counts.ended(FIRST)
        clock.now_s += 1
        add(_chunk(4, 4))
        add(_chunk(4, 5))


def test_what_selects_give_is_told_a_second_apart_and_taken_back_behind_them() -> None:
    told: list[str] = []
    clock = _Clock()
    counts = PieceCounts(told.append, clock_s=clock)

    _counted(counts, clock)

    *on_the_way, last = told
    chunks = [json.loads(text)["chunks"] for text in on_the_way]
    assert [
        [("reading", 11, 88), ("waiting", 0, 0)],
        [("read", 11, 88), ("reading", 4, 32)],
    ] == [[(each["state"], each["rows"], each["bytes"]) for each in row] for row in chunks]
    assert {"s.t"} == {each["table"] for row in chunks for each in row}
    assert [(None, [5]), ([5], None)] == [(each["behind"], each["upto"]) for each in chunks[0]]
    assert "" == last
    assert CopiedPiece(upto=(5,), rows=11, size_bytes=88) == counts.copied(FIRST)
    assert CopiedPiece(upto=None, rows=9, size_bytes=72) == counts.copied(LAST)


def test_a_slow_store_keeps_no_other_select_waiting() -> None:
    asked, answers = threading.Event(), threading.Event()

    def tell(text: str) -> None:
        asked.set()
        assert not text or answers.wait(60)

    clock = _Clock()
    counts = PieceCounts(tell, clock_s=clock)
    with counts.of(9, NUMBERED):
        clock.now_s += 1
        slow = threading.Thread(target=counts.ended, args=(FIRST,))
        slow.start()
        assert asked.wait(60)
        clock.now_s += 1
        others = threading.Thread(target=counts.adding(lambda _: None), args=(_chunk(4, 3),), daemon=True)
        others.start()
        others.join(10)
        is_held_up = others.is_alive()
        answers.set()
        slow.join()
        others.join()
    assert not is_held_up


def test_selects_that_take_less_are_not_told_and_each_plan_counts_anew() -> None:
    told: list[str] = []
    counts = PieceCounts(told.append, clock_s=_Clock())

    for _ in range(2):
        with counts.of(9, NUMBERED):
            counts.adding(lambda _: None)(_chunk(4, 3))

    assert [] == told
    assert 3 == counts.copied(LAST).rows


def test_rows_that_stop_their_table_are_none_of_a_chunks() -> None:
    counts = PieceCounts(clock_s=_Clock())

    with counts.of(9, NUMBERED):
        counts.adding(lambda _: None)(_chunk(4, 3, stopped="a value"))

    assert 0 == counts.copied(LAST).rows


def test_a_store_that_does_not_take_it_ends_no_copy(caplog: pytest.LogCaptureFixture) -> None:
    def refuse(_: str) -> None:
        raise StoreError("no room")

    clock = _Clock()
    with caplog.at_level("INFO"):
        _counted(PieceCounts(refuse, clock_s=clock), clock)

    assert "no room" in caplog.text


def test_another_process_gets_selects_that_tell_nobody_here() -> None:
    selects = PieceSelects(
        server=ServerAddress(host="h", port=1, user="u", password=""),
        identity="",
        is_replica=False,
        flavor="mysql",
        plan=a_plan(),
        numbered=NUMBERED,
        ended=PieceCounts().ended,
    )

    there = pickle.loads(pickle.dumps(selects.elsewhere()))

    there.ended(FIRST)
    assert NUMBERED == there.numbered
