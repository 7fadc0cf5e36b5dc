"""GTID algebra and text forms against the servers' own functions."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import closing
from random import Random
from typing import TYPE_CHECKING

import pytest
from pymysql.err import MySQLError

from databases.servers import Server
from historian.errors import PositionError
from historian.positions import GtidSet, MariadbGtids, missing_from

if TYPE_CHECKING:
    from pymysql.cursors import Cursor

SEEDS = (1, 2, 3)
PAIRS = 150
TEXTS = 1600
UUIDS = tuple(f"{digit}e11fa47-71ca-11e1-9e33-c80aa9429562" for digit in "3a")
ODD_UUIDS = (UUIDS[0].replace("-", ""), f"{{{UUIDS[1]}}}")
MALFORMED = {1772, 1941, 1943}
"""Of MySQL a malformed set; of MariaDB a list that cannot be parsed, and one with a domain twice."""


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


def mutated(random: Random, text: str, bits: tuple[str, ...]) -> str:
    """The text with up to three bits put in, taken out, or repeated."""
    for _ in range(random.choice((0, 1, 1, 2, 3))):
        begin, end = sorted(random.choices(range(len(text) + 1), k=2))
        text = random.choice(
            (
                text[:begin] + random.choice(bits) + text[begin:],
                text[:begin] + text[begin + 1 :],
                text[:end] + text[begin:],
            )
        )
    return text


def ours(parse: Callable[[str], object], text: str) -> str | None:
    """The canonical text; None where *text* is refused."""
    try:
        return str(parse(text))
    except PositionError:
        return None


def theirs(cursor: Cursor, text: str, *statements: str) -> str | None:
    """The same from the server: what the last of *statements* gives."""
    try:
        for statement in statements:
            cursor.execute(statement, (text,) if "%s" in statement else None)
    except MySQLError as error:
        if error.args[0] not in MALFORMED:
            raise
        return None
    row = cursor.fetchone()
    assert row is not None
    return str(row[0]).replace("\n", "")


TAGS = ("backup", "a_1", "")


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name,tags", [("mysql9", TAGS), ("mysql8", ("",)), ("mysql57", ("",))])
def test_algebra_is_the_servers(request: pytest.FixtureRequest, name: str, tags: tuple[str, ...], seed: int) -> None:
    server: Server = request.getfixturevalue(name)
    random = Random(seed)

    with closing(server.connect()) as connection, connection.cursor() as cursor:
        for _ in range(PAIRS):
            left, right = random_text(random, tags), random_text(random, tags)
            a, b = GtidSet.parse(left), GtidSet.parse(right)
            cursor.execute(
                "SELECT GTID_SUBSET(%s, %s), GTID_SUBTRACT(%s, %s), GTID_SUBTRACT(%s, ''),"
                " GTID_SUBTRACT(CONCAT(%s, ',', %s), ''), GTID_SUBTRACT(%s, GTID_SUBTRACT(%s, %s))",
                (left, right, left, right, left, left, right, left, left, right),
            )
            subset, *sets = cursor.fetchone() or ()

            plain = [text.replace("\n", "").replace(" ", "") for text in sets]
            expected = [str(found) for found in (a.subtract(b), a, a.union(b), a.subtract(a.subtract(b)))]
            assert [bool(subset), *plain] == [b.covers(a), *expected], (left, right)


BITS = (
    ":",
    ",",
    "-",
    " ",
    "\t",
    "\n",
    "\v",
    "0",
    "1",
    "03",
    "9223372036854775806",
    "9223372036854775807",
    "tag",
    "B",
    "_",
    "+",
)
BITS = (*BITS, *UUIDS, *ODD_UUIDS, "{", "}", ";", "x", "t" * 32)


def odd_text(random: Random) -> str:
    """A set in a spelling that a server may take or not."""
    text = random_text(random, TAGS).replace(":", random.choice((":", " :", ": ")), 1)
    if random.random() < 0.3:
        text = text.replace(UUIDS[0], ODD_UUIDS[0]).replace(UUIDS[1], ODD_UUIDS[1])
    return mutated(random, text, BITS)


def test_any_text_is_taken_or_refused_as_mysql_does(mysql9: Server) -> None:
    random, taken = Random(9), 0

    with closing(mysql9.connect()) as connection, connection.cursor() as cursor:
        for _ in range(TEXTS):
            text = odd_text(random)
            expected = theirs(cursor, text, "SELECT GTID_SUBTRACT(%s, '')")
            taken += expected is not None
            assert expected == ours(GtidSet.parse, text), text
    assert TEXTS / 8 < taken < TEXTS * 7 / 8


NEW = re.compile(rf"[a-z_]|[{{}}]|{'[0-9a-f]' * 32}", re.IGNORECASE | re.ASCII)
OLD = re.compile(r"0[0-9x]|\+|-\s*(?:[,:]|$)")


@pytest.mark.parametrize("name", ["mysql8", "mysql57"])
def test_older_servers_differ_by_tags_and_by_numbers_as_in_c(request: pytest.FixtureRequest, name: str) -> None:
    """They read ``010`` as 8, ``0x10`` as 16, ``+1`` as 1 and ``1-`` as nothing, and know no UUID in another form."""
    server: Server = request.getfixturevalue(name)
    random, compared = Random(8), 0

    with closing(server.connect()) as connection, connection.cursor() as cursor:
        for _ in range(TEXTS):
            text = odd_text(random)
            rest = re.sub("|".join(UUIDS), "", text, flags=re.IGNORECASE)
            if NEW.search(rest) or OLD.search(rest):
                continue
            compared += 1
            expected = theirs(cursor, text, "SELECT GTID_SUBTRACT(%s, '')")
            assert expected == ours(GtidSet.parse, text), text
        for spelled, number in (("010", "8"), ("0x10", "16"), ("+1", "1")):
            text = f"{UUIDS[0]}:{spelled}"
            assert theirs(cursor, text, "SELECT GTID_SUBTRACT(%s, '')") == f"{UUIDS[0]}:{number}"
    assert compared > TEXTS / 8


@pytest.mark.parametrize(
    "text",
    ["x", f"{UUIDS[0]}:0", f"{UUIDS[0]}:1-", f"{UUIDS[0]}:-1", f"{UUIDS[0]}:1-2-3", f"{UUIDS[0]}:1;", UUIDS[0][1:]],
)
def test_what_the_server_refuses_we_refuse(mysql9: Server, text: str) -> None:
    with pytest.raises(MySQLError, match="Malformed GTID"):
        mysql9.sql("SELECT GTID_SUBSET(%s, '')", text)
    with pytest.raises(PositionError):
        GtidSet.parse(text)


def test_what_a_server_has_purged_is_missing_from_the_positions_that_it_refuses(
    fresh_server: Callable[..., Server],
) -> None:
    server = fresh_server("mysql9")
    uuid = str(server.sql("SELECT @@server_uuid")[0][0])
    for number in range(4):
        server.sql(f"CREATE DATABASE purged_{number}")
        server.sql("FLUSH BINARY LOGS")
    server.sql("PURGE BINARY LOGS TO %s", server.binlog_files()[2].name)
    purged = GtidSet.parse(str(server.sql("SELECT @@gtid_purged")[0][0]))

    assert purged.contains(uuid, 1)
    for last in range(6):
        position = GtidSet.of({uuid: [(1, last)]})
        (subset,) = server.sql("SELECT GTID_SUBSET(@@gtid_purged, %s)", str(position))[0]
        assert bool(subset) == (missing_from(purged, position) is None), position


MARIADB = ["mariadb105", "mariadb1011", "mariadb118"]
MARIADB_BITS = (*" \t\n\v\f\r+-,x;0", "1", "00", "+1", " +", "+ ", "4294967296", "18446744073709551616")


def random_gtids(random: Random, most: int = 6) -> str:
    """A MariaDB position over three domains, out of order."""
    domains = random.sample(range(3), random.randint(0, 3))
    return ",".join(f"{domain}-{random.randint(1, 3)}-{random.randint(1, most)}" for domain in domains)


@pytest.mark.parametrize("name", MARIADB)
def test_any_text_is_taken_or_refused_as_mariadb_does(request: pytest.FixtureRequest, name: str) -> None:
    server: Server = request.getfixturevalue(name)
    random, taken = Random(11), 0

    with closing(server.connect()) as connection, connection.cursor() as cursor:
        for _ in range(TEXTS // 2):
            text = mutated(
                random, random_gtids(random, 2**64 - 1).replace(",", random.choice((",", ", "))), MARIADB_BITS
            )
            expected = theirs(cursor, text, "SET GLOBAL gtid_slave_pos = %s", "SELECT @@gtid_slave_pos")
            taken += expected is not None
            assert expected == ours(MariadbGtids.parse, text), text
        cursor.execute("SET GLOBAL gtid_slave_pos = ''")
    assert TEXTS / 16 < taken < TEXTS * 7 / 16


@pytest.mark.parametrize("name", MARIADB)
def test_a_position_covers_what_mariadb_has_waited_for(request: pytest.FixtureRequest, name: str) -> None:
    server: Server = request.getfixturevalue(name)
    random, reached = Random(12), 0

    with closing(server.connect()) as connection, connection.cursor() as cursor:
        for _ in range(PAIRS):
            held, wanted = random_gtids(random), random_gtids(random)
            a, b = MariadbGtids.parse(held), MariadbGtids.parse(wanted)
            cursor.execute("SET GLOBAL gtid_slave_pos = %s", (held,))
            waited = theirs(cursor, wanted, "SELECT MASTER_GTID_WAIT(%s, 0)") == "0"
            reached += waited
            assert waited == a.covers(b) == (missing_from(b, a) is None), (held, wanted)
            union = a.union(b)
            cursor.execute("SET GLOBAL gtid_slave_pos = %s", (str(union),))
            assert theirs(cursor, "", "SELECT @@gtid_slave_pos") == str(union)
            assert theirs(cursor, str(b), "SELECT MASTER_GTID_WAIT(%s, 0)") == "0"
        cursor.execute("SET GLOBAL gtid_slave_pos = ''")
    assert PAIRS / 8 < reached < PAIRS * 7 / 8
