"""Positions by file and offset."""

from __future__ import annotations

import pytest

from historian.errors import PositionError
from historian.positions import FilePosition


@pytest.mark.parametrize("text", ["binlog.000003:4711", "host:3306-bin.000001:4"])
def test_text_form_reads_back_as_the_same_value(text: str) -> None:
    assert text == str(FilePosition.parse(text))


@pytest.mark.parametrize(
    "position,other,expected",
    [
        (("b.000002", 4), ("b.000001", 900), True),
        (("b.000001", 900), ("b.000002", 4), False),
        (("b.000001", 900), ("b.000001", 900), True),
        (("b.000001", 899), ("b.000001", 900), False),
        (("b.1000000", 4), ("b.999999", 4), True),
    ],
)
def test_files_compare_by_number(position: tuple[str, int], other: tuple[str, int], expected: bool) -> None:
    assert expected == FilePosition(*position).covers(FilePosition(*other))


@pytest.mark.parametrize(
    "text", ["binlog.000003", ":4", "binlog.000003:x", "", "binlog.000003:\u00b2", "binlog.000003:-4"]
)
def test_text_that_is_no_file_position_is_refused(text: str) -> None:
    with pytest.raises(PositionError, match="not a file position"):
        FilePosition.parse(text)


def test_a_file_without_number_cannot_be_compared() -> None:
    with pytest.raises(PositionError, match="does not end in a number"):
        FilePosition("binlog", 4).covers(FilePosition("binlog", 4))


def test_files_of_two_logs_cannot_be_compared() -> None:
    with pytest.raises(PositionError, match="two different logs"):
        FilePosition("mysql-bin.000001", 4).covers(FilePosition("binlog.000001", 4))
