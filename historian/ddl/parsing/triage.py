"""The first words of a statement decide what it can do, without parsing the rest."""

from __future__ import annotations

from typing import Literal, NamedTuple

from historian.ddl.parsing.lexer import END, Tokens

__all__ = ["FIRST_TOKENS", "Triage", "triage"]

FIRST_TOKENS = 40
"""How many tokens decide: room for OR REPLACE, DEFINER=user@host, ALGORITHM=… and SQL SECURITY …."""


class Triage(NamedTuple):
    """What kind of statement it is, and for a DDL the words that say which: ``("CREATE", "TABLE")``.

    A "wrapper" may carry another statement, which is to be judged by itself. What is no known head is "unknown", never "irrelevant".
    """

    kind: Literal["irrelevant", "ddl", "dml", "wrapper", "unknown"]
    verb: tuple[str, str] = ("", "")


_IRRELEVANT = Triage("irrelevant")
_DML = Triage("dml")
_UNKNOWN = Triage("unknown")
_WRAPPER = Triage("wrapper")

_FIRST_IRRELEVANT = frozenset(
    (
        *(END, ";"),
        *("BACKUP", "BEGIN", "BINLOG", "CACHE", "CHANGE", "CHECK", "CHECKSUM", "CLONE", "COMMIT"),
        *("DEALLOCATE", "DESC", "DESCRIBE", "EXPLAIN", "FLUSH", "GET", "GRANT", "HELP", "INSTALL", "KILL", "LOCK"),
        *("OPTIMIZE", "PREPARE", "PURGE", "RELEASE", "REPAIR", "RESET", "RESIGNAL", "RESTART", "REVOKE", "ROLLBACK"),
        *("SAVEPOINT", "SHOW", "SHUTDOWN", "SIGNAL", "START", "STOP", "TABLE", "UNINSTALL", "UNLOCK", "USE"),
        *("VALUES", "XA"),
    )
)
_FIRST_DML = frozenset(("CALL", "DELETE", "DO", "INSERT", "LOAD", "REPLACE", "SELECT", "UPDATE", "WITH", "("))
_OBJECTS_IRRELEVANT = frozenset(
    (
        *("EVENT", "FUNCTION", "INSTANCE", "LIBRARY", "LOGFILE", "MASKING", "PACKAGE", "PREPARE"),
        *("PROCEDURE", "RESOURCE", "ROLE", "SEQUENCE", "SERVER", "TABLESPACE", "TRIGGER", "UNDO", "USER", "VIEW"),
    )
)
_NO_TABLES = frozenset(("SEQUENCE", "TRIGGER", "VIEW"))
_FUNCTIONS = frozenset(("FUNCTION", "PACKAGE"))
_MODIFIERS = frozenset(
    (
        "AGGREGATE",
        "JSON",
        "RELATIONAL",
        "DUALITY",
        "ONLINE",
        "OFFLINE",
        "IGNORE",
        "UNIQUE",
        "FULLTEXT",
        "SPATIAL",
        "VECTOR",
    )
)
_ANALYZED = frozenset(("INSERT", "REPLACE", "UPDATE", "DELETE", "SELECT", "WITH", "FORMAT"))
_WRAPPERS = {"SET": frozenset(("STATEMENT",)), "ANALYZE": _ANALYZED}
_OBJECTS_DDL = {"TABLE": "TABLE", "TABLES": "TABLE", "DATABASE": "DATABASE", "SCHEMA": "DATABASE", "INDEX": "INDEX"}


def triage(tokens: Tokens) -> Triage:
    """Judges by the first tokens of a statement."""
    keys = tokens.keys
    first = keys[0]
    if first in ("CREATE", "ALTER", "DROP"):
        return _object(first, keys)
    if first in _FIRST_IRRELEVANT:
        return _IRRELEVANT
    if first in _WRAPPERS:
        return _WRAPPER if keys[1] in _WRAPPERS[first] else _IRRELEVANT
    if first in _FIRST_DML:
        return _DML
    if first == "TRUNCATE":
        return Triage("ddl", ("TRUNCATE", "TABLE"))
    if first == "RENAME":
        return Triage("ddl", ("RENAME", "TABLE")) if keys[1] in ("TABLE", "TABLES") else _IRRELEVANT
    return _UNKNOWN


def _object(verb: str, keys: list[str]) -> Triage:
    """Finds the kind of object that CREATE, ALTER or DROP is about, behind its modifiers."""
    at = 1
    while at < len(keys):
        key = keys[at]
        if key in _NO_TABLES and verb != "ALTER":
            return Triage("ddl", (verb, key))
        if key in _FUNCTIONS and verb == "CREATE":
            return Triage("ddl", (verb, "FUNCTION"))
        if key in _OBJECTS_DDL:
            return Triage("ddl", (verb, _OBJECTS_DDL[key]))
        if key in _OBJECTS_IRRELEVANT or key == "TEMPORARY":
            return _IRRELEVANT
        if key == "SPATIAL" and keys[at + 1 : at + 2] == ["REFERENCE"]:
            return _IRRELEVANT
        if key in _MODIFIERS:
            at += 1
        elif key == "OR":
            at += 2
        elif key == "DEFINER":
            at = _behind_definer(keys, at)
        elif key in ("ALGORITHM", "SQL"):  # ALGORITHM = x, SQL SECURITY x
            at += 3
        else:
            break
    return _UNKNOWN


def _behind_definer(keys: list[str], at: int) -> int:
    """``DEFINER = user[@host]``, ``CURRENT_USER[()]``; each a word or quoted."""
    at += 3
    if keys[at : at + 2] == ["(", ")"]:
        return at + 2
    if keys[at : at + 1] == ["@"]:
        at += 2
        while keys[at : at + 1] in (["."], ["-"]):
            at += 2
    return at
