"""What ``information_schema.columns`` prints as types and defaults, read back."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from historian.charsets.client_text import declared_label, read_as_one
from historian.ddl.parsing.charsets import normal_charset, normal_collation
from historian.ddl.parsing.columns import parse_default
from historian.ddl.parsing.context import StatementContext
from historian.ddl.parsing.cursor import Cursor, ParseError
from historian.ddl.parsing.lexer import LexError, tokenize
from historian.ddl.parsing.types import parse_type
from historian.ddl.types.column_types import CHARACTER_TYPES, column_type, display_width
from historian.ddl.types.defaults import default_text
from historian.errors import HistorianError
from historian.schema.snapshots import ColumnType

__all__ = ["UnknownColumnType", "parse_column_type", "parse_default_text", "parse_display_width"]

_PRINTED = StatementContext()
"""Servers escape backslashes and line ends in labels, whatever the mode."""

_RENAMING_NOTHING = {flavor: StatementContext(flavor=flavor, version=50700) for flavor in ("mysql", "mariadb")}
"""MySQL 8 calls a GEOMETRYCOLLECTION otherwise than 5.7; the name stays as it was printed."""


class UnknownColumnType(HistorianError):
    """A server prints a column type that is not known here."""


@lru_cache(maxsize=4096)
def parse_column_type(
    text: str, charset: str | None = None, collation: str | None = None, flavor: str = "mysql"
) -> ColumnType:
    """The type that a server prints as *text*, with what it prints as charset and collation.

    Raises:
        UnknownColumnType: the text is of no type that is known here.
    """
    try:
        cursor = Cursor(tokenize(text, _PRINTED), _PRINTED, printed=True)
        spec = parse_type(cursor)
    except (LexError, ParseError) as error:
        raise UnknownColumnType("a column type that is not known", where=text, found=str(error)) from None
    kind = column_type(replace(spec, labels=()), "", "", _RENAMING_NOTHING[flavor])
    if kind.name in CHARACTER_TYPES or charset:
        # MySQL 8 prints no charset for an ENUM or SET of bytes.
        charset, collation = charset or "binary", collation or "binary"
        labels = tuple(declared_label(label, "utf8mb4", normal_charset(charset), flavor) for label in spec.labels)
        if same := read_as_one(labels):
            raise UnknownColumnType("two labels of a column read the same", where=text, found=same)
        return ColumnType(
            name=spec.name,
            length=kind.length,
            labels=labels,
            charset=normal_charset(charset),
            collation=normal_collation(collation),
        )
    return kind


def parse_display_width(text: str, flavor: str) -> int | None:
    """The display width of a type that a server prints as *text*, as :attr:`historian.schema.snapshots.Column.display_width`."""
    if "int(" not in text:
        return None
    return display_width(
        parse_type(Cursor(tokenize(text, _PRINTED), _PRINTED, printed=True)), _RENAMING_NOTHING[flavor]
    )


def parse_default_text(text: str, kind: ColumnType, context: StatementContext) -> tuple[str | None, bool]:
    """A default as MariaDB prints it, which is as it may be written: its text as a snapshot has it, and whether an expression.

    *context*: flavor, version and sql_mode of the session that printed it.
    """
    try:
        cursor = Cursor(tokenize(text, context), context)
        default = parse_default(cursor)
        if cursor.at_end():
            return default_text(default, kind, context)
    except (ParseError, LexError):
        pass  # an expression of any form
    return text, True
