"""GTID algebra against the server's own functions."""

from __future__ import annotations

from contextlib import closing
from random import Random

import pytest
from pymysql.err import MySQLError

from historian.errors import PositionError
from historian.positions import GtidSet
from servers import Server

SEEDS = (1, 2, 3)
PAIRS = 150
UUIDS = tuple(f"{digit}e11fa47-71ca-11e1-9e33-c80aa9429562" for digit in "3a")


def random_text(random: Random, tags: tuple[str, ...]) -> str:
    """A set as a person could write it: out of order, overlapping, in any case."""
    parts = []
    for _ in range(random.randrange(5)):
        source = random.choice(UUIDS)
        if random.random() < 0.5:
            source = source.upper()
        pieces = []
        for _ in range(random.randint(1, 4)):
            if random.random() < 0.3:
                pieces += [tag] if (tag := random.choice(tags)) else []
            first = random.randint(1, 30)
            pieces.append(random.choice((str(first), f"{first}-{first + random.randint(0, 9)}")))
        parts.append(f"{source}:{':'.join(pieces)}")
    return random.choice((",", ", ", ",\n")).join(parts)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name,tags", [("mysql9", ("backup", "a_1", "")), ("mysql8", ("",))])
def test_algebra_is_the_servers(request: pytest.FixtureRequest, name: str, tags: tuple[str, ...], seed: int) -> None:
    server: Server = request.getfixturevalue(name)
    random = Random(seed)

    with closing(server.connect()) as connection, connection.cursor() as cursor:
        for _ in range(PAIRS):
            left, right = random_text(random, tags), random_text(random, tags)
            a, b = GtidSet.parse(left), GtidSet.parse(right)
            cursor.execute(
                "SELECT GTID_SUBSET(%s, %s), GTID_SUBTRACT(%s, %s),"
                " GTID_SUBTRACT(%s, ''), GTID_SUBTRACT(CONCAT(%s, ',', %s), '')",
                (left, right, left, right, left, left, right),
            )
            subset, rest, same, both = cursor.fetchone()

            plain = [text.replace("\n", "").replace(" ", "") for text in (rest, same, both)]
            assert [bool(subset), *plain] == [b.covers(a), str(a.subtract(b)), str(a), str(a.union(b))], (left, right)


@pytest.mark.parametrize(
    "text",
    ["x", f"{UUIDS[0]}:0", f"{UUIDS[0]}:1-", f"{UUIDS[0]}:-1", f"{UUIDS[0]}:1-2-3", f"{UUIDS[0]}:1;", UUIDS[0][1:]],
)
def test_what_the_server_refuses_we_refuse(mysql9: Server, text: str) -> None:
    with pytest.raises(MySQLError, match="Malformed GTID"):
        mysql9.sql("SELECT GTID_SUBSET(%s, '')", text)
    with pytest.raises(PositionError):
        GtidSet.parse(text)
