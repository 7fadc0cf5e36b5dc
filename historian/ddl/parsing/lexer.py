"""Statement text to tokens: quotes, comments, and comments that some servers execute.

One compiled expression finds each token, so the time is linear in the text. A token is two strings at the same index of
two lists. One is its *key*, which the parser compares (a word in upper case, a punctuation mark, or one of the marks below).
The other is its *value* (a word as written, what a quoted name or string says, digits of a number).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from historian.ddl.parsing.context import StatementContext

__all__ = ["BYTES", "END", "NAME", "NUMBER", "STRING", "LexError", "Tokens", "string_end", "tokenize"]

NAME = "`"
"""Key of a quoted identifier."""
STRING = "'"
"""Key of a string literal; its value is what it says."""
NUMBER = "0"
"""Key of a number."""
BYTES = "0x"
"""Key of a hexadecimal or bit literal; its value is digits, with ``0x`` or ``0b`` before them."""
END = ""
"""Key behind the last token."""

_WORD = r"[0-9A-Za-z_$\x80-\U0010ffff]"
_TOKEN = re.compile(
    rf"""
    [\s\x00]*
    (?:
        (?P<word> (?![xXbB]') [A-Za-z_$\x80-\U0010ffff]{_WORD}* )
      | (?P<mark> [(),;=@] )
      | (?P<quoted> `[^`]*(?:``[^`]*)*` )
      | (?P<string> ['"] )
      | (?P<bytes> 0x[0-9A-Fa-f]+(?!{_WORD}) | 0b[01]+(?!{_WORD}) | [xX]'[0-9A-Fa-f]*' | [bB]'[01]*' )
      | (?P<number>
            (?: \d+(?:\.\d*)? | (?<![0-9A-Za-z_$`"\x80-\U0010ffff])\.\d+ ) (?: [eE][+-]?\d+ )? (?!{_WORD})
        )
      | (?P<name> {_WORD}+ )
      | (?P<space> --(?=[\s\x00-\x20]|$)[^\n]* | \#[^\n]* | \Z )
      | (?P<executed> /\*M?!\d* )
      | (?P<comment> /\* )
      | (?P<close> \*/ )
      | (?P<other> . )
    )
    """,
    re.VERBOSE | re.DOTALL | re.ASCII,
)

_ESCAPED = {
    "'": re.compile(r"'([^'\\]*(?:(?:\\.|'')[^'\\]*)*)'", re.DOTALL),
    '"': re.compile(r'"([^"\\]*(?:(?:\\.|"")[^"\\]*)*)"', re.DOTALL),
}
_PLAIN = {
    "'": re.compile(r"'([^']*(?:''[^']*)*)'"),
    '"': re.compile(r'"([^"]*(?:""[^"]*)*)"'),
}
_QUOTED_NAME = re.compile(r"`[^`]*(?:``[^`]*)*`")
_BRACKETED = re.compile(r"\[([^]]*(?:]][^]]*)*)]")
_ESCAPE = re.compile(r"\\(.)|''|\"\"", re.DOTALL)
_ESCAPES = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a", "%": "\\%", "_": "\\_"}
_MOST_TOKENS = 200_000
"""A table has up to 4096 columns and 8192 partitions, an ENUM 65535 labels: no statement on tables needs more."""
_COMMENT_MARK = re.compile(r"/\*|\*/")


class LexError(Exception):
    """The text ends inside a quote or comment."""


@dataclass(frozen=True, slots=True)
class Tokens:
    """The tokens of one statement; the last key is :data:`END`.

    Attributes:
        sql: the text they are of.
        keys, values: see the module.
        spans: where each begins and ends in the text.
    """

    sql: str
    keys: list[str]
    values: list[str]
    spans: list[tuple[int, int]]


def string_end(sql: str, at: int, context: StatementContext) -> int:
    """Where the string or quoted name ends that opens at *at*.

    Raises:
        LexError: it does not.
    """
    if sql[at] == NAME:
        found = _QUOTED_NAME.match(sql, at)
    else:
        strings = _PLAIN if "NO_BACKSLASH_ESCAPES" in context.sql_mode else _ESCAPED
        found = strings[sql[at]].match(sql, at)
    if found is None:
        raise LexError(f"a quote that opens at character {at} is not closed")
    return found.end()


def tokenize(sql: str, context: StatementContext, limit: int = 0) -> Tokens:  # noqa: C901, PLR0912, PLR0915 one hot loop
    """The tokens of *sql*. With a *limit*: at most so many, and those before an error.

    Raises:
        LexError: no limit is given, and the text ends inside a quote or comment, or has more tokens than any table needs.
    """
    keys: list[str] = []
    values: list[str] = []
    spans: list[tuple[int, int]] = []
    ansi_quotes = "ANSI_QUOTES" in context.sql_mode or "ANSI" in context.sql_mode
    no_escapes = "NO_BACKSLASH_ESCAPES" in context.sql_mode
    brackets = "MSSQL" in context.sql_mode and context.flavor == "mariadb"
    strings = _PLAIN if no_escapes else _ESCAPED
    match_token = _TOKEN.match
    most = limit or _MOST_TOKENS
    at, end = 0, len(sql)
    while at < end and len(keys) < most:
        found = match_token(sql, at)
        if found is None:  # the pattern's last branch takes any character
            raise LexError(f"no token at character {at}")
        kind: str = found.lastgroup  # type: ignore[assignment]  # some branch has matched
        begin, at = found.span(kind)
        if kind == "word":
            value = found[kind]
            key = value.upper()
        elif kind == "mark":
            key = value = found[kind]
        elif kind == "quoted":
            value = sql[begin + 1 : at - 1]
            key = NAME
            if NAME in value:
                value = value.replace("``", "`")
        elif kind == "string":
            quote = found[kind]
            whole = strings[quote].match(sql, begin)
            if whole is None:
                if limit:
                    break
                raise LexError(f"a quote that opens at character {begin} is not closed")
            at = whole.end()
            if quote == '"' and ansi_quotes:
                key, value = NAME, whole.group(1).replace('""', '"')
            else:
                key, value = STRING, _unescape(whole.group(1), quote, no_escapes=no_escapes)
        elif kind == "number":
            key, value = NUMBER, found[kind]
        elif kind in {"space", "close"}:
            continue
        elif kind == "bytes":
            key, value = BYTES, _digits(found[kind])
        elif kind in {"name", "other"}:
            value = found[kind]
            key = value.upper()
            if key == "[" and brackets and (name := _BRACKETED.match(sql, begin)) is not None:
                key, value, at = NAME, name[1].replace("]]", "]"), name.end()
            elif key == NAME:  # it opens, and nothing closes it
                if limit:
                    break
                raise LexError(f"a quote that opens at character {begin} is not closed")
        elif kind == "executed" and _is_executed(found[kind], context):
            continue
        else:
            at = _behind_comment(sql, at, nested=kind == "executed")
            if at < 0:
                if limit:
                    break
                raise LexError(f"a comment that opens at character {begin} is not closed")
            continue
        keys.append(key)
        values.append(value)
        spans.append((begin, at))
    if len(keys) >= _MOST_TOKENS:
        raise LexError(f"more than {_MOST_TOKENS} words")
    keys.append(END)
    values.append("")
    spans.append((end, end))
    return Tokens(sql, keys, values, spans)


def _unescape(text: str, quote: str, *, no_escapes: bool) -> str:
    if no_escapes:
        return text.replace(quote + quote, quote)
    if "\\" not in text:
        return text.replace(quote + quote, quote) if quote in text else text

    def one(found: re.Match[str]) -> str:
        escaped = found.group(1)
        if escaped is None:
            doubled = found.group()
            return quote if doubled[0] == quote else doubled
        return _ESCAPES.get(escaped, escaped)

    return _ESCAPE.sub(one, text)


def _digits(text: str) -> str:
    """``x'41'`` and ``0x41`` alike as ``0x41``; ``b'1'`` as ``0b1``."""
    if text[1] == "'":
        return f"0{text[0].lower()}{text[2:-1]}"
    return text


def _is_executed(mark: str, context: StatementContext) -> bool:
    """Whether the server that ran the statement executed a comment that opens with ``/*!50110``, ``/*M!100100``, ..."""
    mariadb = context.flavor == "mariadb"
    only_mariadb = mark[2] == "M"
    if only_mariadb and not mariadb:
        return False
    digits = mark[4 if only_mariadb else 3 :]
    if len(digits) < 5:
        return True
    wanted = int(digits[:6])
    if mariadb and not only_mariadb and 50700 <= wanted <= 99999:
        return False  # MariaDB knows that these are features of MySQL
    return context.version == 0 or wanted <= context.version


def _behind_comment(sql: str, at: int, *, nested: bool) -> int:
    """Where the comment ends whose inside begins at *at*; *nested*: comments inside it have ends of their own.

    -1 where it does not end.
    """
    closes = sql.find("*/", at)
    if closes < 0:
        return -1
    if not nested or "/*" not in sql[at:closes]:
        return closes + 2
    depth = 1
    for found in _COMMENT_MARK.finditer(sql, at):
        depth += 1 if found.group() == "/*" else -1
        if depth == 0:
            return found.end()
    return -1
