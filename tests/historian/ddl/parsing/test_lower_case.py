"""Names in small letters: those of our servers."""

from __future__ import annotations

from databases.servers import Server
from historian.ddl.parsing.lower_case import lowered

CHARACTERS = [chr(number) for number in range(0x20, 0x10000) if not 0xD800 <= number < 0xE000]


def test_each_character_is_made_small_as_servers_do(server: Server) -> None:
    expected = ""
    for begin in range(0, len(CHARACTERS), 4000):
        part = "".join(CHARACTERS[begin : begin + 4000])
        # utf8 is another charset's alias in no server of ours yet: names are in what it stands for.
        ((small,),) = server.sql("SELECT LOWER(CONVERT(%s USING utf8) COLLATE utf8_general_ci)", part)
        expected += small

    assert expected == "".join(map(lowered, CHARACTERS))


def test_a_character_is_made_small_by_itself() -> None:
    assert lowered("ΣΣ") == "\u03c3\u03c3"
    assert lowered("İX") == "ix"
    assert lowered("𐐀") == "𐐀"
