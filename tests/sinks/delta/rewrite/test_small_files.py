"""Which files are joined: neighbours, none too large for the others, and only where there are enough."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

from sinks.delta.log.commits import HeldFile
from sinks.delta.rewrite.small_files import Rewrite, crowded, joined_by_size, joined_in_order
from sinks.delta.settings import Compaction

FEW = Compaction(files=2, target_bytes=100)


def _file(name: str, size_bytes: int, low: int | None = None, high: int | None = None) -> HeldFile:
    said = {} if low is None else {"minValues": {"offset": low}, "maxValues": {"offset": low if high is None else high}}
    return HeldFile(path=name, size_bytes=size_bytes, statistics=json.dumps(said), has_deletions=False)


def _names(rewrites: list[Rewrite]) -> list[str]:
    return ["".join(file.path for file in rewrite.files) for rewrite in rewrites]


def test_files_are_joined_in_the_order_of_their_rows() -> None:
    held = [_file("c", 3, 20), _file("a", 3, 0), _file("b", 3, 10)]

    assert _names(joined_in_order(held, "offset", FEW)) == ["abc"]


def test_a_file_that_weighs_more_than_those_behind_it_waits_for_them() -> None:
    held = [_file("a", 40, 0), _file("b", 10, 1), _file("c", 10, 2)]

    assert _names(joined_in_order(held, "offset", FEW)) == ["bc"]
    assert _names(joined_in_order([*held, _file("d", 20, 3)], "offset", FEW)) == ["abcd"]


def test_a_file_of_half_the_target_is_no_small_one_and_divides_those_around_it() -> None:
    held = [_file("a", 3, 0), _file("b", 3, 1), _file("X", 50, 2), _file("c", 3, 3), _file("d", 3, 4)]

    assert _names(joined_in_order(held, "offset", FEW)) == ["ab", "cd"]


def test_what_is_joined_ends_at_the_target() -> None:
    held = [_file(name, 40, at) for at, name in enumerate("abcde")]

    assert _names(joined_in_order(held, "offset", FEW)) == ["ab", "cd"]


def test_too_few_files_stay_as_they_are() -> None:
    held = [_file(name, 1, at) for at, name in enumerate("abcd")]

    assert joined_in_order(held, "offset", Compaction(files=5, target_bytes=100)) == []
    assert _names(joined_in_order(held, "offset", Compaction(files=4, target_bytes=100))) == ["abcd"]


def test_rows_of_files_that_lie_in_each_other_are_sorted() -> None:
    laps = joined_in_order([_file("a", 3, 0, 9), _file("b", 3, 5, 12)], "offset", FEW)
    follows = joined_in_order([_file("a", 3, 0, 9), _file("b", 3, 10, 12)], "offset", FEW)

    assert ([("offset",)], [()]) == ([each.sort_by for each in laps], [each.sort_by for each in follows])


def test_files_that_do_not_say_where_their_rows_stand_are_left_alone() -> None:
    assert joined_in_order([_file("a", 3, 0), _file("b", 3)], "offset", FEW) == []


def test_rows_are_written_anew_as_often_as_the_table_doubles() -> None:
    """A thousand files of a unit: each unit is written about ten times at most, not a hundred times."""
    held: list[HeldFile] = []
    written = 0
    settings = Compaction(files=10, target_bytes=1_000_000)
    for number in range(1000):
        held.append(_file(f"{number}", 10, number))
        for rewrite in joined_in_order(held, "offset", settings):
            written += rewrite.size_bytes
            held = [file for file in held if file not in rewrite.files]
            low = min(json.loads(file.statistics)["minValues"]["offset"] for file in rewrite.files)
            held.append(_file(f"{number}+", rewrite.size_bytes, low, number))

    assert sum(file.size_bytes for file in held) == 10_000
    assert len(held) < 30
    assert written <= 10 * 10_000


def test_files_without_an_order_are_joined_by_size_each_kind_by_itself() -> None:
    held = [_file("a", 1), _file("B", 4), _file("c", 3), _file("D", 4), _file("E", 90), _file("f", 2)]

    assert _names(joined_by_size(held, FEW, apart=lambda file: file.path.isupper())) == ["DB", "afc"]


@pytest.mark.parametrize("lows", [[0, 0, 0, 0], [0, 10, 20, 30, 40, 50]])
def test_a_key_that_stands_in_few_files_is_no_reason_to_sort(lows: list[int]) -> None:
    assert (
        crowded([_file(str(at), 5, low, low + 5) for at, low in enumerate(lows)], [pa.field("offset", pa.int64())])
        == []
    )


def test_files_that_share_a_key_are_sorted_into_each_other_and_others_stay() -> None:
    wide = [_file(name, 5, 0, 100) for name in "abcd"]
    narrow = [_file("m", 5, 40, 50), _file("n", 5, 60, 70), _file("o", 5, 45, 48)]

    found = crowded([*narrow, *wide], [pa.field("offset", pa.int64()), pa.field("b", pa.int64())])

    assert ["".join(sorted(name)) for name in _names(found)] == ["abcdmo"]
    assert [each.sort_by for each in found] == [("offset", "b")]
