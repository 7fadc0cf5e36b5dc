"""Entries whose edits are read when they are first asked for are entries like others."""

from __future__ import annotations

import copy
import pickle
from dataclasses import replace

import pytest

from historian import codec
from historian.history.timeline import TimelineEntry
from historian.schema.edits import Edit
from models.timelines import A, create, statement

WHOLE = statement(2, f"{A}:5", create(1, "t", "a"))


@pytest.fixture
def reads() -> list[int]:
    return []


@pytest.fixture
def lazy(reads: list[int]) -> TimelineEntry:
    def read() -> tuple[Edit, ...]:
        reads.append(1)
        return WHOLE.edits

    fields = {name: getattr(WHOLE, name) for name in TimelineEntry.__slots__ if name != "edits"}
    return TimelineEntry.later(read, **fields)


def test_edits_are_read_once_and_only_when_asked_for(lazy: TimelineEntry, reads: list[int]) -> None:
    assert (2, []) == (lazy.number, reads)
    assert (WHOLE.edits, WHOLE.edits, [1]) == (lazy.edits, lazy.edits, reads)


def test_a_lazy_entry_equals_a_whole_one(lazy: TimelineEntry) -> None:
    assert WHOLE == lazy
    assert hash(WHOLE) == hash(lazy)
    assert repr(WHOLE) == repr(lazy)


def test_a_lazy_entry_can_be_copied_pickled_and_written(lazy: TimelineEntry) -> None:
    assert WHOLE == pickle.loads(pickle.dumps(lazy)) == copy.deepcopy(lazy)
    assert codec.dump(TimelineEntry, WHOLE) == codec.dump(TimelineEntry, lazy)
    assert replace(WHOLE, number=3) == replace(lazy, number=3)


def test_an_entry_has_no_other_fields(lazy: TimelineEntry) -> None:
    with pytest.raises(AttributeError, match="nothing"):
        _ = lazy.nothing  # type: ignore[attr-defined]
