"""The position of a reader: GTIDs first, files where there are none."""

from __future__ import annotations

import pickle

import pytest

from historian import codec
from historian.errors import PositionError
from historian.positions import GtidSet, LogPosition, MariadbGtids, parse_position
from models.timelines import A, B, position


@pytest.mark.parametrize(
    "mine,theirs,expected",
    [
        (f"{A}:1-5", f"{A}:1-4", True),
        (f"{A}:1-5", f"{A}:1-4,{B}:1", False),
        (f"{A}:1-5,{B}:1-2", f"{A}:1-4,{B}:1", True),
        (f"{A}:1-4", "", True),
        ("", f"{A}:1", False),
    ],
)
def test_gtids_decide_whatever_the_files_say(mine: str, theirs: str, expected: bool) -> None:
    assert expected == position(mine, offset=4).covers(position(theirs, offset=900))


def test_two_positions_can_lie_side_by_side() -> None:
    one, other = position(f"{A}:1-5"), position(f"{B}:1-5")

    assert (False, False) == (one.covers(other), other.covers(one))


def test_files_decide_without_gtids() -> None:
    assert (True, False) == (
        position(offset=900).covers(position(offset=4)),
        position(offset=4).covers(position(offset=900)),
    )


def test_flavor_says_how_gtids_read() -> None:
    mariadb = LogPosition(flavor="mariadb", gtids="0-1-7", file="", offset=0)

    assert (MariadbGtids(((0, 1, 7),)), GtidSet.parse(f"{A}:1")) == (mariadb.gtid_set, position(f"{A}:1").gtid_set)
    assert mariadb.covers(LogPosition(flavor="mariadb", gtids="0-9-7", file="", offset=0))


def test_prints_gtids_else_the_file() -> None:
    assert (f"{A}:1", "binlog.000001:77") == (str(position(f"{A}:1")), str(position(offset=77)))


def test_travels_as_json_and_pickle() -> None:
    here = position(f"{A}:1-5", offset=77)

    assert here == codec.load(LogPosition, codec.dump(LogPosition, here)) == pickle.loads(pickle.dumps(here))


def test_files_of_two_servers_cannot_be_compared() -> None:
    with pytest.raises(PositionError, match="two servers"):
        position(offset=900).covers(position(offset=4, server=B))
    assert position(offset=900).covers(position(offset=4, server=""))


def test_the_beginning_lies_before_everything() -> None:
    beginning = LogPosition(flavor="mysql", gtids="", file="", offset=0)

    assert (True, False, True) == (
        position(offset=4).covers(beginning),
        beginning.covers(position(offset=4)),
        beginning.covers(beginning),
    )


@pytest.mark.parametrize("text", [A, f"{A}:5-4", ","])
def test_who_writes_no_transaction_is_told(text: str) -> None:
    with pytest.raises(PositionError, match="names no transaction"):
        parse_position(text, "mysql")


def test_white_space_around_what_people_write_does_not_matter() -> None:
    assert ("0-1-5", 77) == (
        parse_position(" 0-1-5\n", "mariadb").gtids,
        parse_position("b.000001:77 ", "mysql").offset,
    )
    assert parse_position("", "mysql") == LogPosition(flavor="mysql", gtids="", file="", offset=0)
