"""Column definitions: name, type and attributes, in any order that a server takes them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from historian.charsets.client_text import raw_bytes
from historian.ddl.parsing.charsets import decoded, literal_bytes, normal_charset
from historian.ddl.parsing.cursor import Cursor
from historian.ddl.parsing.definitions import NOW, ColumnSpec, DefaultSpec, TypeSpec
from historian.ddl.parsing.lexer import BYTES, NAME, NUMBER, STRING
from historian.ddl.parsing.references import parse_reference
from historian.ddl.parsing.types import parse_type
from historian.schema.system_versioning import ROW_END, ROW_START

__all__ = ["parse_column", "parse_default"]

_SIGNS = frozenset("+-")
_ONE_WORD_OPTIONS = frozenset(("COLUMN_FORMAT", "STORAGE"))
_STRING_OPTIONS = frozenset(("COMMENT", "ENGINE_ATTRIBUTE", "SECONDARY_ENGINE_ATTRIBUTE"))


def parse_column(cursor: Cursor, name: str | None = None) -> ColumnSpec:
    """Takes a column definition; *name* where it has been taken already."""
    if name is None:
        name = cursor.column_name()
    kind = parse_type(cursor)
    attributes: dict[str, Any] = {"compressed": kind.compressed}
    if kind.name == "serial":
        kind = TypeSpec(name="bigint", unsigned=True)
        attributes = {"nullable": False, "auto_increment": True, "unique": True}
    charset = kind.charset
    while True:
        if cursor.accept("COLLATE"):
            charset = replace(charset, collation=cursor.collation())
        elif not _attribute(cursor, attributes):
            break
    if cursor.context.flavor == "mariadb" and attributes.get("primary"):
        attributes["unique"] = False  # one key for one column
    if charset is not kind.charset:
        kind = replace(kind, charset=charset)
    return ColumnSpec(name=name, type=kind, **attributes)


def _attribute(cursor: Cursor, attributes: dict[str, Any]) -> bool:
    """Takes one attribute into *attributes*; False where none comes next."""
    parse = _ATTRIBUTES.get(cursor.key)
    if parse is not None:
        cursor.at += 1
        parse(cursor, attributes)
        return True
    if cursor.is_name() and cursor.key != NAME and cursor.following() == "=":  # an option of an engine of MariaDB's
        cursor.at += 2
        if cursor.key not in (STRING, NUMBER):
            cursor.name()
        else:
            cursor.at += 1
        return True
    return False


def _not(cursor: Cursor, attributes: dict[str, Any]) -> None:
    if cursor.accept("NULL"):
        attributes["nullable"] = False
    elif not (cursor.accept("SECONDARY") or cursor.accept("ENFORCED")):
        raise cursor.fail("NULL")


def _null(_: Cursor, attributes: dict[str, Any]) -> None:
    attributes["nullable"] = True


def _default(cursor: Cursor, attributes: dict[str, Any]) -> None:
    attributes["default"] = parse_default(cursor)


def _on(cursor: Cursor, attributes: dict[str, Any]) -> None:
    cursor.expect("UPDATE")
    now = _now(cursor)
    if now is None:
        raise cursor.fail("CURRENT_TIMESTAMP")
    attributes["on_update"] = now.fraction


def _auto_increment(_: Cursor, attributes: dict[str, Any]) -> None:
    attributes.update(auto_increment=True, nullable=False)  # a NULL behind it wins


def _serial(cursor: Cursor, attributes: dict[str, Any]) -> None:
    cursor.expect("DEFAULT", "VALUE")
    attributes.update(nullable=False, auto_increment=True, unique=True)


def _primary(cursor: Cursor, attributes: dict[str, Any]) -> None:
    cursor.expect("KEY")
    attributes["primary"] = True


def _key(_: Cursor, attributes: dict[str, Any]) -> None:
    attributes["primary"] = True


def _unique(cursor: Cursor, attributes: dict[str, Any]) -> None:
    cursor.accept("KEY")
    attributes["unique"] = True


def _text_option(cursor: Cursor, _: dict[str, Any]) -> None:
    cursor.accept("=")
    cursor.string()


def _word_option(cursor: Cursor, _: dict[str, Any]) -> None:
    cursor.name()


def _srid(cursor: Cursor, _: dict[str, Any]) -> None:
    cursor.accept("=")
    cursor.number()


def _constraint(cursor: Cursor, attributes: dict[str, Any]) -> None:
    if cursor.key != "CHECK":
        cursor.name()
    cursor.expect("CHECK")
    _check(cursor, attributes)


def _check(cursor: Cursor, _: dict[str, Any]) -> None:
    cursor.skip_parentheses()
    if not cursor.accept("NOT", "ENFORCED"):
        cursor.accept("ENFORCED")


def _references(cursor: Cursor, attributes: dict[str, Any]) -> None:
    attributes["references"] = parse_reference(cursor)


def _generated(cursor: Cursor, attributes: dict[str, Any]) -> None:
    cursor.expect("ALWAYS")
    cursor.expect("AS")
    _as(cursor, attributes)


def _as(cursor: Cursor, attributes: dict[str, Any]) -> None:
    if cursor.accept("ROW"):
        says = ROW_START if cursor.accept("START") else ROW_END
        if says == ROW_END:
            cursor.expect("END")
        attributes.update(generated="stored", generation_expression=says, nullable=False)
        return
    attributes["generation_expression"] = cursor.inside_parentheses()
    attributes["generated"] = "virtual"
    if cursor.accept("STORED") or cursor.accept("PERSISTENT"):
        attributes["generated"] = "stored"
    else:
        cursor.accept("VIRTUAL")


def _invisible(_: Cursor, attributes: dict[str, Any]) -> None:
    attributes["invisible"] = True


def _visible(_: Cursor, attributes: dict[str, Any]) -> None:
    attributes["invisible"] = False


def _compressed(cursor: Cursor, attributes: dict[str, Any]) -> None:
    attributes["compressed"] = True
    if cursor.accept("="):
        cursor.word_or_string()


def _with(cursor: Cursor, attributes: dict[str, Any]) -> None:
    cursor.expect("SYSTEM", "VERSIONING")
    attributes["system_versioned"] = True


def _without(cursor: Cursor, attributes: dict[str, Any]) -> None:
    cursor.expect("SYSTEM", "VERSIONING")
    attributes["system_versioned"] = False


_ATTRIBUTES = {
    "NOT": _not,
    "NULL": _null,
    "DEFAULT": _default,
    "ON": _on,
    "AUTO_INCREMENT": _auto_increment,
    "SERIAL": _serial,
    "PRIMARY": _primary,
    "KEY": _key,
    "UNIQUE": _unique,
    "CONSTRAINT": _constraint,
    "CHECK": _check,
    "REFERENCES": _references,
    "GENERATED": _generated,
    "AS": _as,
    "VISIBLE": _visible,
    "INVISIBLE": _invisible,
    "SRID": _srid,
    "REF_SYSTEM_ID": _srid,
    "COMPRESSED": _compressed,
    "WITH": _with,
    "WITHOUT": _without,
    **dict.fromkeys(_STRING_OPTIONS, _text_option),
    **dict.fromkeys(_ONE_WORD_OPTIONS, _word_option),
}


def parse_default(cursor: Cursor) -> DefaultSpec:
    """Takes what stands behind DEFAULT."""
    if cursor.key == "(":
        opening = cursor.at
        text = cursor.inside_parentheses()
        closing, cursor.at, depth = cursor.at, opening + 1, 1
        while cursor.key == "(":
            cursor.at, depth = cursor.at + 1, depth + 1
        literal = _literal(cursor)
        whole = literal is not None and cursor.at == closing - depth
        cursor.at = closing
        return DefaultSpec(kind="expression", text=text, literal=literal if whole else None)
    now = _now(cursor)
    if now is not None:
        return now
    literal = _literal(cursor)
    if literal is not None:
        return literal
    return _bare_expression(cursor)


def _now(cursor: Cursor) -> DefaultSpec | None:
    if not cursor.accept_any(NOW):
        return None
    fraction = 0
    if cursor.accept("("):
        fraction = cursor.number() if cursor.key == NUMBER else 0
        cursor.expect(")")
    return DefaultSpec(kind="now", fraction=fraction)


def _literal(cursor: Cursor) -> DefaultSpec | None:
    key = cursor.key
    if key == STRING:
        text = cursor.literal()
        is_null = not text and "EMPTY_STRING_IS_NULL" in cursor.context.sql_mode
        return DefaultSpec(kind="null") if is_null else DefaultSpec(kind="string", text=text)
    if key == "{" and cursor.following() in ("D", "T", "TS"):
        is_time = cursor.following() == "T"
        cursor.at += 2
        literal = _literal(cursor)
        cursor.expect("}")
        return replace(literal, is_time=is_time) if literal is not None else None
    if key == NUMBER or (key in _SIGNS and cursor.following() == NUMBER):
        sign = "-" if cursor.accept("-") else ""
        cursor.accept("+")
        cursor.at += 1
        return DefaultSpec(kind="number", text=sign + cursor.values[cursor.at - 1])
    if key == BYTES:
        cursor.at += 1
        text = cursor.values[cursor.at - 1]
        # MariaDB reads x'3132' as the characters 12, and 0x3132 as a number where one is wanted.
        written = cursor.tokens.sql[cursor.tokens.spans[cursor.at - 1][0]]
        says = cursor.context.flavor == "mariadb" and written in "xX"
        return DefaultSpec(kind="bytes", text=text, raw=literal_bytes(text) if says else b"")
    if key in ("NULL", "TRUE", "FALSE"):
        cursor.at += 1
        if key == "NULL":
            return DefaultSpec(kind="null")
        return DefaultSpec(kind="number", text=str(int(key == "TRUE")))
    if cursor.following() in (STRING, BYTES) and (key in ("N", "DATE", "TIME", "TIMESTAMP") or key.startswith("_")):
        cursor.at += 1
        literal = _literal(cursor)
        if literal is not None and key.startswith("_"):
            return _introduced(literal, key[1:].lower(), cursor)
        if literal is not None and key == "N":
            # Unlike behind an introducer, MariaDB does not print the bytes of such a text with backslashes.
            return replace(_introduced(literal, "utf8mb3", cursor), raw=b"")
        return replace(literal, is_time=True) if literal is not None and key == "TIME" else literal
    return None


def _introduced(literal: DefaultSpec, charset: str, cursor: Cursor) -> DefaultSpec:
    """``_charset literal``: the bytes that the client sent, or that the digits say, are text of that character set."""
    client = cursor.context.client_charset
    try:
        raw = literal_bytes(literal.text) if literal.kind == "bytes" else raw_bytes(literal.text, client)
        if charset == "binary":
            return DefaultSpec(kind="bytes", text=f"0x{raw.hex()}", introduced=True, raw=raw)
        return DefaultSpec(kind="string", text=decoded(raw, normal_charset(charset)), introduced=True, raw=raw)
    except UnicodeError:
        return DefaultSpec(kind="expression", text=literal.text)  # nobody here knows that character set


def _bare_expression(cursor: Cursor) -> DefaultSpec:
    """MariaDB takes a call, a name, a variable or NEXT VALUE FOR without parentheses."""
    begin = cursor.tokens.spans[cursor.at][0]
    if cursor.accept("NEXT", "VALUE", "FOR"):
        cursor.table_name()
    elif cursor.accept("@"):
        cursor.accept("@")
        cursor.column_name()
    else:
        cursor.column_name()
        if cursor.key == "(":
            cursor.skip_parentheses()
    return DefaultSpec(kind="expression", text=cursor.tokens.sql[begin : cursor.tokens.spans[cursor.at - 1][1]])
