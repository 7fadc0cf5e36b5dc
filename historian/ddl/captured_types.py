"""``column_type`` texts of ``information_schema.columns`` to :class:`ColumnType`."""

from __future__ import annotations

from functools import lru_cache

from historian.ddl.charsets import normal_charset, normal_collation
from historian.ddl.column_types import CHARACTER_TYPES, column_type
from historian.ddl.context import StatementContext
from historian.ddl.cursor import Cursor
from historian.ddl.lexer import tokenize
from historian.ddl.parse_types import parse_type
from historian.schema import ColumnType

__all__ = ["parse_column_type"]

_PLAIN = StatementContext(sql_mode=frozenset(("NO_BACKSLASH_ESCAPES",)))


@lru_cache(maxsize=4096)
def parse_column_type(
    text: str, charset: str | None = None, collation: str | None = None, flavor: str = "mysql"
) -> ColumnType:
    """The type that a server prints as *text*, with what it prints as charset and collation.

    Raises:
        ParseError: the text is of no type that is known here.
    """
    cursor = Cursor(tokenize(text, _PLAIN), _PLAIN)
    spec = parse_type(cursor)
    kind = column_type(spec, "", "", StatementContext(flavor=flavor))
    if kind.name in CHARACTER_TYPES or charset:
        # MySQL 8 prints no charset for an ENUM or SET of bytes.
        charset, collation = charset or "binary", collation or "binary"
        return ColumnType(
            name=spec.name,
            length=kind.length,
            members=kind.members,
            charset=normal_charset(charset),
            collation=normal_collation(collation),
        )
    return kind
