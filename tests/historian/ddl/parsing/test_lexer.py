import pytest

from historian.ddl.parsing.context import StatementContext
from historian.ddl.parsing.lexer import END, NAME, STRING, LexError, tokenize

MYSQL = StatementContext(version=80031)


def tokens(sql: str, context: StatementContext = MYSQL) -> list[tuple[str, str]]:
    found = tokenize(sql, context)
    assert found.keys[-1] == END
    return list(zip(found.keys[:-1], found.values[:-1], strict=True))


def test_words_are_compared_in_upper_case_and_kept_as_written() -> None:
    assert tokens("Alter tAbLe été_1 $x") == [
        ("ALTER", "Alter"),
        ("TABLE", "tAbLe"),
        ("ÉTÉ_1", "été_1"),
        ("$X", "$x"),
    ]


def test_quoted_names_hold_any_character() -> None:
    assert tokens("`a ``b``;' \n--` `DROP`") == [(NAME, "a `b`;' \n--"), (NAME, "DROP")]


def test_strings_are_unescaped() -> None:
    assert tokens("'it''s \\'x\\' \\n\\t\\\\ \\% \\q' \"say \"\"a'b\" \"\" ") == [
        (STRING, "it's 'x' \n\t\\ \\% q"),
        (STRING, "say \"a'b"),
        (STRING, ""),
    ]


def test_ansi_quotes_make_names_of_double_quotes() -> None:
    ansi = StatementContext(sql_mode=frozenset(("ANSI_QUOTES",)))
    assert tokens('"a ""b" \'c"d\'', ansi) == [(NAME, 'a "b'), (STRING, 'c"d')]


def test_no_backslash_escapes_leaves_backslashes() -> None:
    plain = StatementContext(sql_mode=frozenset(("NO_BACKSLASH_ESCAPES",)))
    assert tokens(r"'a\' 'b''c'", plain) == [(STRING, "a\\"), (STRING, "b'c")]


def test_numbers_literals_and_names_that_begin_with_digits() -> None:
    assert [value for _, value in tokens("1 1.5 .5 1e3 0x4F x'4f' b'01' 1a t.2 `t`.5")] == [
        *("1", "1.5", ".5", "1e3", "0x4F", "0x4f", "0b01", "1a", "t", ".", "2", "t", ".", "5"),
    ]


def test_comments_vanish() -> None:
    assert [value for _, value in tokens("a -- b\n c # d\n e/* ' f */g --\n h--1")] == [
        "a",
        "c",
        "e",
        "g",
        "h",
        "-",
        "-",
        "1",
    ]


@pytest.mark.parametrize(
    "comment,mysql57,mysql8,mariadb",
    [
        ("/*! x */", True, True, True),
        ("/*!50110 x */", True, True, True),
        ("/*!50708 x */", True, True, False),
        ("/*!80016 x */", False, True, False),
        ("/*!080016 x */", False, True, False),
        ("/*!99999 x */", False, False, False),
        ("/*!100100 x */", False, False, True),
        ("/*M! x */", False, False, True),
        ("/*M!100100 x */", False, False, True),
        ("/*M!120000 x */", False, False, False),
        ("/*+ x */", False, False, False),
    ],
)
def test_executable_comments_count_by_server(comment: str, mysql57: bool, mysql8: bool, mariadb: bool) -> None:
    servers = (
        StatementContext(version=50722),
        MYSQL,
        StatementContext(flavor="mariadb", version=101119),
    )
    seen = tuple("X" in tokenize(f"a {comment} b", server).keys for server in servers)
    assert seen == (mysql57, mysql8, mariadb)


def test_a_comment_inside_a_skipped_executable_comment_is_part_of_it() -> None:
    assert [value for _, value in tokens("a /*!99999 b /* c */ d */ e /* f /* g */ h")] == ["a", "e", "h"]


@pytest.mark.parametrize("sql", ["a 'b", 'a "b', "a `b", "a /* b", "a 'b\\'", "/*!99999 /* */"])
def test_text_that_ends_inside_a_quote_or_comment_is_an_error(sql: str) -> None:
    with pytest.raises(LexError):
        tokenize(sql, MYSQL)


def test_more_words_than_any_statement_has_are_an_error() -> None:
    with pytest.raises(LexError, match="more than 200000 words"):
        tokenize("a " * 200_001, MYSQL)


def test_a_limit_gives_what_stands_before_an_error() -> None:
    assert tokenize("ALTER TABLE t ADD c CHAR(1) DEFAULT 'x", MYSQL, limit=40).keys[:3] == ["ALTER", "TABLE", "T"]
    assert tokenize("a b c d", MYSQL, limit=2).keys == ["A", "B", END]
