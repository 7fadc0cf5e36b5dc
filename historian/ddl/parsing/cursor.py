"""Walking over tokens: what every part of the parser is made of."""

from __future__ import annotations

import re
from dataclasses import replace

from historian.charsets.client_text import converted, raw_bytes, unchanged
from historian.ddl.parsing.charsets import is_mysql_8, normal_charset, normal_collation
from historian.ddl.parsing.context import StatementContext
from historian.ddl.parsing.definitions import CharsetClause
from historian.ddl.parsing.lexer import BYTES, END, NUMBER, STRING, Tokens
from historian.ddl.parsing.lower_case import lowered
from historian.names import TableName

__all__ = ["Cursor", "ParseError"]

_NO_CLAUSE = CharsetClause()
_BEYOND_THREE_BYTES = re.compile("[^\0-\uffff]")
_MOST_DIGITS = 20
_NO_NAME = frozenset((END, STRING, NUMBER, BYTES, *"(),.;=+-*/%@&|^~!<>:?{}[]"))


class ParseError(Exception):
    """The text is not of the grammar that is known here; the message says where."""


class Cursor:
    """A place in a statement's tokens.

    The parsers read ``key`` (see :mod:`historian.ddl.parsing.lexer`) and call the methods, each of which moves behind what it took.
    *printed*: the text is what a server prints of a column, not a statement.
    """

    __slots__ = ("at", "context", "converts", "keys", "printed", "tokens", "values")

    def __init__(self, tokens: Tokens, context: StatementContext, *, printed: bool = False) -> None:
        self.tokens = tokens
        self.keys = tokens.keys
        self.values = tokens.values
        self.context = context
        self.at = 0
        self.printed = printed
        self.converts = not tokens.sql.isascii() or context.client_charset == "swe7"

    @property
    def key(self) -> str:
        """Key of the next token."""
        return self.keys[self.at]

    def following(self, distance: int = 1) -> str:
        """Key of the token *distance* behind the next one."""
        at = self.at + distance
        return self.keys[at] if at < len(self.keys) else END

    def fail(self, expected: str) -> ParseError:
        """The error to raise where something else than *expected* stands."""
        begin = self.tokens.spans[self.at][0]
        found = self.tokens.sql[begin : begin + 40] or "the end"
        return ParseError(f"expected {expected}, found {found!r} at character {begin}")

    def accept(self, *words: str) -> bool:
        """Takes these tokens if they are the next ones."""
        keys, at = self.keys, self.at
        for word in words:
            if keys[at] != word:
                return False
            at += 1
        self.at = at
        return True

    def accept_any(self, words: frozenset[str]) -> str:
        """Takes the next token if it is one of *words*, and gives its key; else ""."""
        key = self.keys[self.at]
        if key in words and key != END:
            self.at += 1
            return key
        return ""

    def expect(self, *words: str) -> None:
        """Takes these tokens or raises."""
        if not self.accept(*words):
            raise self.fail(" ".join(words))

    def name(self) -> str:
        """Takes an identifier, quoted or not; any word will do."""
        key = self.keys[self.at]
        if key in _NO_NAME:
            raise self.fail("a name")
        self.at += 1
        return self._kept_name(self.text(self.values[self.at - 1]))

    def _kept_name(self, name: str) -> str:
        """The name as the server keeps it: MySQL's are of three bytes a character at most, and others become question marks."""
        if name.isascii() or self.context.flavor != "mysql":
            return name
        return _BEYOND_THREE_BYTES.sub("?", name)

    def is_name(self) -> bool:
        """Whether an identifier comes next."""
        return self.keys[self.at] not in _NO_NAME

    def column_name(self) -> str:
        """Takes a column name, which may have its table and database before it."""
        name = self.name()
        while self.accept("."):
            name = self._behind_dot()
        return name

    def table_name(self) -> TableName:
        """Takes a table name; unqualified: of the session's default database."""
        name = self.table_name_in(self.context.database)
        if not name.database:
            raise ParseError(f"no default database for the table {name.table!r}")
        return name

    def table_name_in(self, database: str) -> TableName:
        """Takes a table name; unqualified: of *database*."""
        if self.accept("."):
            table = self._behind_dot()
        else:
            table = self.name()
            if self.accept("."):
                database, table = table, self._behind_dot()
        if self.context.lower_case_table_names == 1:
            return TableName(lowered(database), lowered(table))
        return TableName(database, table)

    def database_name(self) -> str:
        """Takes a database name."""
        name = self.name()
        return lowered(name) if self.context.lower_case_table_names == 1 else name

    def _behind_dot(self) -> str:
        if self.keys[self.at] == NUMBER:  # `db.123`: digits alone can be a name there
            self.at += 1
            return self.values[self.at - 1]
        return self.name()

    def number(self) -> int:
        """Takes a whole number."""
        if (
            self.keys[self.at] != NUMBER
            or not self.values[self.at].isdigit()
            or len(self.values[self.at]) > _MOST_DIGITS
        ):
            raise self.fail("a number")
        self.at += 1
        return int(self.values[self.at - 1])

    def text(self, value: str) -> str:
        """What the server makes of a token's value, which is as the client sent it."""
        charset = self.context.client_charset
        if not self.converts or unchanged(value, charset):
            return value
        return converted(raw_bytes(value, charset), charset, self.context.flavor, self.context.version)

    def string(self) -> str:
        """Takes a string literal, and those adjacent to it."""
        return self.text(self.literal())

    def literal(self) -> str:
        """Takes a string literal, and those adjacent to it, as the client sent it (:mod:`historian.charsets.client_text`)."""
        if self.keys[self.at] != STRING:
            raise self.fail("a string")
        text = ""
        while self.keys[self.at] == STRING:
            text += self.values[self.at]
            self.at += 1
        return text

    def word_or_string(self) -> str:
        """Takes a name or a string: what character sets, engines and option values may be written as."""
        return self.string() if self.keys[self.at] == STRING else self.name()

    def inside_parentheses(self) -> str:
        """Takes a balanced pair of parentheses and gives the text between."""
        first = self.at
        self.skip_parentheses()
        spans = self.tokens.spans
        return self.tokens.sql[spans[first][1] : spans[self.at - 1][0]].strip()

    def skip_parentheses(self) -> None:
        """Takes a balanced pair of parentheses."""
        self.expect("(")
        keys, at, depth = self.keys, self.at, 1
        while depth:
            key = keys[at]
            if key == "(":
                depth += 1
            elif key == ")":
                depth -= 1
            elif key == END:
                raise self.fail("as many closing as opening parentheses")
            at += 1
        self.at = at

    def skip_item(self) -> None:
        """Takes all up to the next comma or closing parenthesis of this level, or the end."""
        while (key := self.keys[self.at]) not in (",", ")", END, ";"):
            if key == "(":
                self.skip_parentheses()
            else:
                self.at += 1

    def at_end(self) -> bool:
        """Whether nothing but semicolons is left."""
        at = self.at
        while self.keys[at] == ";":
            at += 1
        return self.keys[at] == END

    def expect_end(self) -> None:
        """Raises where something is left."""
        while self.accept(";"):
            pass
        if self.keys[self.at] != END:
            raise self.fail("the end")

    def accept_charset_word(self) -> bool:
        """Takes CHARACTER SET, CHAR SET or CHARSET."""
        return self.accept("CHARSET") or self.accept("CHARACTER", "SET") or self.accept("CHAR", "SET")

    def charset(self) -> str:
        """Takes a character set's name; "" for DEFAULT."""
        return "" if self.accept("DEFAULT") else normal_charset(self.word_or_string())

    def collation(self) -> str:
        """Takes a collation's name; "" for DEFAULT."""
        return "" if self.accept("DEFAULT") else normal_collation(self.word_or_string())

    def charset_options(self, clause: CharsetClause = _NO_CLAUSE) -> CharsetClause | None:
        """Takes the ``[DEFAULT] CHARACTER SET [=] x`` and ``COLLATE [=] y`` that come next over those in *clause*.

        None where there are none. In MySQL 5.7 the last one wins; later ones, and MariaDB, hold on to the collation.
        """
        found = False
        last_wins = self.context.flavor == "mysql" and not is_mysql_8(self.context)
        while True:
            start = self.at
            self.accept("DEFAULT")
            if self.accept_charset_word():
                self.accept("=")
                clause = replace(clause, charset=self.charset(), collation=None if last_wins else clause.collation)
            elif self.accept("COLLATE"):
                self.accept("=")
                collation = self.collation()
                clause = replace(clause, collation=collation)
                if last_wins:
                    clause = CharsetClause(collation=collation) if collation else CharsetClause(charset="")
            else:
                self.at = start
                return clause if found else None
            found = True
