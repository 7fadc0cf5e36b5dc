"""A script of statements as the servers' clients read it, with the session settings that it makes on the way."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from historian.ddl.parsing.charsets import built_in_collation, charset_of, normal_charset, normal_collation
from historian.ddl.parsing.context import StatementContext
from historian.ddl.parsing.lexer import END, NAME, NUMBER, STRING, LexError, Tokens, string_end, tokenize
from historian.ddl.parsing.lower_case import lowered

__all__ = ["ScriptError", "ScriptStatement", "read_script"]

_DELIMITER = re.compile(r"[ \t]*delimiter[ \t]+(\S+)[^\n]*", re.IGNORECASE)
_LINE_COMMENT = re.compile(r"(?:--(?=\s|\Z)|\#)[^\n]*")
_SCOPES = frozenset(("SESSION", "LOCAL", "GLOBAL", "PERSIST", "PERSIST_ONLY", "STATEMENT"))
_OF_SERVER = frozenset(("GLOBAL", "PERSIST", "PERSIST_ONLY"))
_OTHER_SETS = frozenset(("NAMES", "CHARACTER", "CHARSET", "PASSWORD", "ROLE", "DEFAULT", "RESOURCE", "TRANSACTION"))
_FOLLOWED = frozenset(
    (
        *("sql_mode", "explicit_defaults_for_timestamp", "default_collation_for_utf8mb4", "time_zone"),
        *("character_set_server", "collation_server"),
    )
)
_ANSI = ("PIPES_AS_CONCAT", "ANSI_QUOTES", "IGNORE_SPACE")
_COMBINED_MODES = {
    "ANSI": ("REAL_AS_FLOAT", *_ANSI),
    **dict.fromkeys(("ORACLE", "MSSQL", "DB2", "POSTGRESQL"), _ANSI),
    "TRADITIONAL": ("STRICT_TRANS_TABLES", "STRICT_ALL_TABLES"),
}
_ON = {"1": True, "ON": True, "TRUE": True, "0": False, "OFF": False, "FALSE": False}


class ScriptError(Exception):
    """A script cannot be read; ``line`` says where."""

    def __init__(self, message: str, line: int) -> None:
        super().__init__(message)
        self.line = line


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptStatement:
    """One statement without its delimiter, the line that it begins on (from 1), and the session that runs it."""

    sql: str
    line: int
    context: StatementContext


def read_script(script: str, context: StatementContext) -> Iterator[ScriptStatement]:
    """The statements of *script* in order, under the session that *context* begins; USE and SET are among them.

    DELIMITER lines are the client's and make no statement. Of SET those settings are followed that decide what later
    statements mean: ``sql_mode``, ``explicit_defaults_for_timestamp``, ``default_collation_for_utf8mb4``, ``time_zone``,
    charset and collation of the server; and user variables, with which dumps restore them.

    Raises:
        ScriptError: it ends inside a quote or comment, or a followed setting gets a value that only a server can compute.
    """
    session = _Session(context=context, first=context)
    at, line, delimiter = 0, 1, ";"
    counted = 0
    while True:
        at = _behind_space(script, at)
        line += script.count("\n", counted, at)
        counted = at
        if at >= len(script):
            return
        directive = _DELIMITER.match(script, at)
        if directive is not None:
            delimiter, at = directive.group(1), directive.end()
            continue
        try:
            end = _end(script, at, delimiter, session.context)
            sql = script[at:end].rstrip()
            if sql:
                found = ScriptStatement(sql=sql, line=line, context=session.context)
                session.take(sql)
                yield found
        except (LexError, ValueError) as error:
            raise ScriptError(str(error), line) from None
        at = end + len(delimiter)


def _behind_space(script: str, at: int) -> int:
    """Behind blanks and comments of a line; comments in ``/* */`` belong to the statement behind them."""
    while at < len(script):
        if script[at].isspace() or script[at] == "\0":
            at += 1
        elif found := _LINE_COMMENT.match(script, at):
            at = found.end()
        else:
            return at
    return at


def _end(script: str, at: int, delimiter: str, context: StatementContext) -> int:
    """Where the delimiter stands that ends the statement at *at*, or the script's end."""
    pattern = re.compile(rf"{re.escape(delimiter)}|['\"`]|/\*|--(?=\s|\Z)|\#")
    while True:
        found = pattern.search(script, at)
        if found is None:
            return len(script)
        mark = found.group()
        if mark == delimiter:
            return found.start()
        if mark in ("--", "#"):
            newline = script.find("\n", found.end())
            at = len(script) if newline < 0 else newline
        elif mark == "/*":
            close = script.find("*/", found.end())
            if close < 0:
                raise LexError(f"a comment that opens at character {found.start()} is not closed")
            at = close + 2
        else:
            at = string_end(script, found.start(), context)


@dataclass(slots=True)
class _Session:
    context: StatementContext
    first: StatementContext
    variables: dict[str, str | None] = field(default_factory=dict)

    def take(self, sql: str) -> None:
        """Follows USE and SET; other statements change no setting."""
        tokens = tokenize(sql, self.context, limit=2)
        if tokens.keys[0] == "USE":
            tokens = tokenize(sql, self.context)
            name = tokens.values[1]
            lower = self.context.lower_case_table_names == 1
            self.context = replace(self.context, database=lowered(name) if lower else name)
        elif tokens.keys[0] == "SET" and tokens.keys[1] not in _OTHER_SETS:
            for assignment in _assignments(tokenize(sql, self.context)):
                self._assign(assignment)

    def _assign(self, tokens: list[tuple[str, str]]) -> None:
        scopes = {key for key, _ in tokens if key in _SCOPES}
        parts = [token for token in tokens if token[0] not in _SCOPES and token[0] != "."]
        at = next((at for at, (key, _) in enumerate(parts) if key == "="), len(parts))
        target = [value for key, value in parts[:at] if key not in ("@", ":")]
        marks = sum(key == "@" for key, _ in parts[:at])
        if len(target) != 1 or scopes & _OF_SERVER:
            return
        name, value = target[0].lower(), self._value(parts[at + 1 :])
        if marks == 1:
            self.variables[name] = value
        elif name in _FOLLOWED:
            if value is None:
                raise ValueError(f"{name} is set to what only a server can compute")
            self._set(name, value)

    def _value(self, tokens: list[tuple[str, str]]) -> str | None:
        words = [token for token in tokens if token[0] != ";"]
        if len(words) == 2 and words[0][0] == "@":
            return self.variables.get(words[1][1].lower(), "")
        if len(words) == 3 and words[0][0] == words[1][0] == "@":
            return self._setting(words[2][1].lower(), self.context)
        if len(words) != 1:
            return None
        key, value = words[0]
        return value if key in (STRING, NAME, NUMBER) or key.isidentifier() else None

    def _setting(self, name: str, context: StatementContext) -> str:
        explicit = context.explicit_defaults_for_timestamp
        return {
            "sql_mode": ",".join(sorted(context.sql_mode)),
            "explicit_defaults_for_timestamp": "DEFAULT" if explicit is None else str(int(explicit)),
            "default_collation_for_utf8mb4": context.utf8mb4_collation,
            "time_zone": context.time_zone,
            "character_set_server": context.charset,
            "collation_server": context.collation,
        }.get(name, "")

    def _set(self, name: str, value: str) -> None:
        context = self.context
        if value.upper() == "DEFAULT":
            value = self._setting(name, self.first)
        if name == "sql_mode":
            self.context = replace(context, sql_mode=_modes(value))
        elif name == "explicit_defaults_for_timestamp":
            self.context = replace(context, explicit_defaults_for_timestamp=_ON.get(value.upper()))
        elif name == "default_collation_for_utf8mb4":
            self.context = replace(context, utf8mb4_collation=normal_collation(value))
        elif name == "time_zone":
            self.context = replace(context, time_zone=value)
        elif name == "character_set_server" and value:
            charset = normal_charset(value)
            self.context = replace(context, charset=charset, collation=built_in_collation(charset, context))
        elif name == "collation_server" and value:
            collation = normal_collation(value)
            self.context = replace(context, charset=charset_of(collation) or context.charset, collation=collation)


def _modes(text: str) -> frozenset[str]:
    if text.isdigit() and text != "0":
        raise ValueError("sql_mode is set to a number")
    names = {name.strip().upper() for name in text.split(",")} - {"", "0"}
    for name in tuple(names):
        names.update(_COMBINED_MODES.get(name, ()))
    return frozenset(names)


def _assignments(tokens: Tokens) -> Iterator[list[tuple[str, str]]]:
    """Key and value of the tokens behind SET, cut at commas outside of parentheses."""
    depth = 0
    found: list[tuple[str, str]] = []
    for key, value in zip(tokens.keys[1:], tokens.values[1:], strict=True):
        depth += (key == "(") - (key == ")")
        if key == END or (key == "," and depth == 0):
            yield found
            found = []
        else:
            found.append((key, value))
