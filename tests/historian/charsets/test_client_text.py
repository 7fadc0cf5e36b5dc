"""What servers make of bytes that a client sent; tests/integration/test_client_charsets.py compares with servers."""

from __future__ import annotations

import random

import pytest

from historian.charsets.client_text import converted, lexed, printable, raw_bytes
from historian.charsets.multi_byte import MULTI_BYTE
from historian.charsets.single_byte import SINGLE_BYTE

CLIENTS = sorted(
    {*SINGLE_BYTE, *MULTI_BYTE, "utf8mb3", "utf8mb4", "binary", "ascii"} - {"ucs2", "utf16", "utf16le", "utf32"}
)


@pytest.mark.parametrize("charset", CLIENTS)
def test_a_lexers_text_gives_back_the_bytes(charset: str) -> None:
    rng = random.Random(charset)
    for _ in range(300):
        raw = bytes(rng.choices(range(256), k=rng.randrange(1, 9)))
        assert raw == raw_bytes(lexed(raw, charset), charset)


@pytest.mark.parametrize("charset", sorted({*MULTI_BYTE} - {"ucs2", "utf16", "utf16le", "utf32"}))
def test_the_second_byte_of_a_pair_is_no_quote_and_no_backslash(charset: str) -> None:
    for lead in range(0x81, 0xFF):
        for trail in b"\\`":
            text = lexed(bytes((lead, trail)), charset)
            is_pair = len(lexed(bytes((lead, trail, 0x27)), charset)) == 2
            assert not (is_pair and chr(trail) in text)


@pytest.mark.parametrize(
    "raw,charset,mysql,mariadb",
    [
        (b"a\x81b", "cp1250", "a?b", "a?b"),
        (b"a\xe2\x82b", "utf8mb4", "a??b", "a??b"),
        (b"a\xe2\x82", "utf8mb4", "a", "a??"),
        (b"a\xffb", "utf8mb4", "a", "a?b"),
        (b"a\xffbcd", "utf8mb4", "a?bcd", "a?bcd"),
        (b"a\xf5b", "utf8mb4", "a", "a?b"),
        (b"a\xffb", "utf8mb3", "a?b", "a?b"),
        (b"\x9d", "sjis", "", "?"),
        (b"\xfdA", "sjis", "?A", "?A"),
        (b"a\x90b", "big5", "a?", "a?b"),
        (b"\x81 x", "euckr", "?x", "? x"),
        (b"\xaa\xa1x", "gb2312", "?x", "?x"),
        (b"\x8f\xa1x", "ujis", "??x", "??x"),
        (b"\x8f\xa1", "ujis", "", "??"),
        (b"\x810x", "gb18030", "", "?0x"),
    ],
)
def test_what_is_no_character_is_replaced_as_each_server_does_it(
    raw: bytes, charset: str, mysql: str, mariadb: str
) -> None:
    assert (mysql, mariadb) == (converted(raw, charset, "mysql"), converted(raw, charset, "mariadb"))


def test_mysql_5_7_cuts_text_off_before_bytes_that_may_begin_a_character_alone() -> None:
    assert "a?b" == converted(b"a\xffb", "utf8mb4", "mysql", 50722)
    assert "a" == converted(b"a\xf5b", "utf8mb4", "mysql", 50722)


def test_a_printed_statement_has_no_surrogates() -> None:
    assert "a\\x81b" == printable(lexed(b"a\x81b", "utf8mb4"))
