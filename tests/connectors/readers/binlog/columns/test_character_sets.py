"""Every character of every character set of the servers, through a column of that set: what is decoded is what they convert.

And every code that is none of its set's characters is refused: never a question mark or another replacement.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

from historian.charsets.multi_byte import MULTI_BYTE
from historian.charsets.single_byte import NONE, SINGLE_BYTE, characters
from logs.decoder_lab import capture, changes, decode, log_end, planned

if TYPE_CHECKING:
    from databases.servers import Server

DATABASE = "character_sets"
UNICODE = ("gb18030", "ucs2", "utf16", "utf16le", "utf32", "utf8", "utf8mb3", "utf8mb4")
BASIC_PLANE = ("ucs2", "utf8", "utf8mb3")
CODES_A_ROW = 512
IS_CHARACTER = """HEX(CONVERT(v USING {0})) = HEX(v) AND CHAR_LENGTH(CONVERT(v USING {0})) = 1
    AND (v = '?' OR HEX(CONVERT(CONVERT(v USING {0}) USING utf8mb4)) NOT IN ('3F', 'EFBFBD'))"""


@pytest.fixture
def cursor(server: Server) -> Iterator[Any]:
    with contextlib.closing(server.connect()) as connection, connection.cursor() as found:
        found.execute(f"CREATE DATABASE {DATABASE}")
        found.execute(f"USE {DATABASE}")
        found.execute("SET SESSION sql_mode = '', group_concat_max_len = 1000000")
        yield found
        found.execute(f"DROP DATABASE {DATABASE}")


def all_codes() -> list[bytes]:
    """One byte, two, and three as the Japanese sets have them; no question mark behind another byte."""
    codes = [bytes([byte]) for byte in range(256)]
    codes += [bytes([lead, trail]) for lead in range(0x80, 256) for trail in range(256) if trail != ord("?")]
    return codes + [bytes([0x8F, row, cell]) for row in range(0xA0, 256) for cell in range(0xA0, 256)]


BASIC = "".join(chr(code) for code in range(0x10000) if not 0xD800 <= code < 0xE000)
BEYOND = "".join(chr(code) for code in (*range(0x10000, 0x110000, 61), 0x1FFFF, 0x20000, 0x10FFFF))
"""Of the other planes, whose codes follow from their numbers, some."""


def decoder(charset: str) -> Callable[[bytes], str]:
    """What text of that set is decoded by, one value at a time."""
    if charset in MULTI_BYTE:
        return MULTI_BYTE[charset]
    if charset in SINGLE_BYTE:
        table = characters(charset)

        def by_table(piece: bytes) -> str:
            text = "".join(table[byte] for byte in piece)
            if NONE in text:
                raise UnicodeError(piece)
            return text

        return by_table
    return lambda piece: piece.decode("ascii")


def test_every_character_of_every_set_is_decoded_and_nothing_else_is(server: Server, cursor: Any) -> None:
    cursor.execute("SHOW CHARACTER SET")
    lengths = {row[0]: row[3] for row in cursor.fetchall() if row[0] not in ("binary", "filename")}
    cursor.execute("CREATE TABLE codes (k INT PRIMARY KEY, v VARBINARY(4))")
    codes = all_codes()
    rows = ",".join(f"({k}, X'{code.hex()}')" for k, code in enumerate(codes))
    cursor.execute(f"INSERT INTO codes VALUES {rows}")
    cursor.execute("CREATE TABLE characters (k INT PRIMARY KEY, v LONGTEXT CHARACTER SET utf8mb4)")
    every, step = BASIC + BEYOND, 16384
    for k in range(0, len(every), step):
        cursor.execute("INSERT INTO characters VALUES (%s, %s)", (k, every[k : k + step]))
    counts: dict[str, int] = {}
    for charset, length in lengths.items():
        since = log_end(server)
        cursor.execute(f"CREATE TABLE in_{charset} (k INT PRIMARY KEY, v LONGTEXT CHARACTER SET {charset})")
        if charset in UNICODE:
            less = f"WHERE k < {len(BASIC)}" if charset in BASIC_PLANE else ""
            text = f"LEFT(v, {len(BASIC)} - k)" if charset in BASIC_PLANE else "v"
            cursor.execute(f"INSERT INTO in_{charset} SELECT k, {text} FROM characters {less}")
        else:
            test = IS_CHARACTER.format(charset)
            group = "CONVERT(GROUP_CONCAT(HEX(v) ORDER BY k SEPARATOR '') USING utf8mb4)"
            cursor.execute(
                f"INSERT INTO in_{charset} SELECT g, CONVERT(UNHEX(x) USING {charset}) FROM (SELECT k DIV {CODES_A_ROW} AS g,"
                f" {group} AS x FROM codes WHERE LENGTH(v) <= {length} AND {test} GROUP BY g) AS found"
            )
            cursor.execute(f"SELECT v FROM codes WHERE LENGTH(v) <= {length} AND NOT ({test})")
            refuses(charset, [code for (code,) in cursor.fetchall()])
        counts[charset] = compared(server, cursor, charset, since)
    assert {*SINGLE_BYTE, *MULTI_BYTE} - {"gb18030"} <= set(counts)
    assert min(counts.values()) >= 127
    wholes = {charset: len(BASIC) if charset in BASIC_PLANE else len(every) for charset in counts if charset in UNICODE}
    assert wholes == {charset: counts[charset] for charset in wholes}


def refuses(charset: str, codes: list[bytes]) -> None:
    """None of them is one character; two of one byte each may stand behind each other."""
    decode_text = decoder(charset)
    taken = []
    for code in codes:
        with contextlib.suppress(UnicodeError):
            text = decode_text(code)
            if len(text) != len(code) or len(code) == 1:
                taken.append((code, text))
    assert taken == [], charset


def compared(server: Server, cursor: Any, charset: str, since: tuple[str, int]) -> int:
    """How many characters a column of that set holds; each must be what the server converts it to."""
    cursor.execute(f"SELECT k, CONVERT(v USING utf8mb4) FROM in_{charset} ORDER BY k")
    expected = cursor.fetchall()
    snapshot = capture(server, DATABASE, f"in_{charset}")
    found = sorted(changes(decode(server, planned(snapshot), since), snapshot))
    assert len(found) == len(expected)
    for (_, key, text), (k, wanted) in zip(found, expected, strict=True):
        differ = [] if text == wanted else [(a, b) for a, b in zip(text, wanted, strict=False) if a != b]
        assert (key, differ[:20], len(text)) == (k, [], len(wanted)), f"{charset} on {server.version}"
    return sum(len(text) for _, _, text in found)
