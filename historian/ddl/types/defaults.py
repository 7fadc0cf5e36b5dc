"""What a DEFAULT clause means: the text that ``information_schema`` shows, and the value that rows from before get.

Both are texts of one form, so that a column added by a statement and one captured from a server compare equal:

- numbers as the server prints them (DECIMAL with its scale; FLOAT's default with the six digits that servers show, its
  initial value in full);
- DATE, TIME, DATETIME, YEAR as the server prints them, fractions with as many digits as declared;
- TIMESTAMP: the default as written in the session's time zone, the initial value in UTC;
- BIT as ``b'101'``; BINARY, VARBINARY, BLOBs, GEOMETRY, VECTOR as ``0x`` and hexadecimal digits;
- ENUM and SET by their labels, JSON and all other text as it is.
"""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import timezone
from decimal import Decimal
from typing import NamedTuple

from historian.charsets.client_text import converted, raw_bytes, stored_label, unchanged
from historian.charsets.conversion import encoded, fitted
from historian.ddl.parsing.charsets import decoded, literal_bytes
from historian.ddl.parsing.context import StatementContext
from historian.ddl.parsing.definitions import DefaultSpec
from historian.ddl.types.addresses import address_text
from historian.ddl.types.numbers import as_decimal, declared_float_text, fixed_text, float_text, integer_text
from historian.ddl.types.temporal import at_microsecond, in_session, in_utc, session_zone, temporal_text, year_text
from historian.schema.snapshots import BYTE_TYPES, GEOMETRIES, ColumnType, set_text

__all__ = ["InitialValue", "default_text", "implied_value", "initial_value", "now_text"]

_INTEGER_BITS = {"tinyint": 8, "smallint": 16, "mediumint": 24, "int": 32, "bigint": 64}
_INTEGERS = frozenset(_INTEGER_BITS)
_TEMPORAL = frozenset(("date", "time", "datetime", "timestamp"))
_MOMENTS = frozenset(("date", "datetime", "timestamp"))
_WIDE = frozenset(("ucs2", "utf16", "utf16le", "utf32"))
"""Character sets in which the bytes of ASCII are others."""
_UNCHANGED = frozenset(("", "binary", "utf8mb4"))
"""Charsets of connections whose bytes MariaDB prints as they are; "": a file's."""
_ADDRESSES = frozenset(("inet4", "inet6", "uuid"))
_SAYS = frozenset((*_INTEGERS, *_TEMPORAL, "decimal", "float", "double", "year"))
"""Types that read the characters of an introduced literal; of ``_binary`` too, whose bytes they do not take for a number."""
_NUMBER_BYTES, _SIGN_BIT = 8, 1 << 63
_OFFSETS_SINCE = 80019
"""MySQL from which on literals may have an offset."""
_NUMBERS_UNTIL, _LABELS_SINCE = 80031, 90704
"""MySQL that was seen to take an ENUM's default ``1`` for its first label, and MySQL that was seen to take it for ``'1'``."""
_EVALUATED = ("expression", "now")
_WITHOUT_DEFAULT = frozenset(
    (
        *("tinytext", "text", "mediumtext", "longtext", "tinyblob", "blob", "mediumblob", "longblob", "json"),
        *GEOMETRIES,
    )
)
"""Types that MySQL gives no literal default."""
_RANGED = frozenset(("time", "year", "float", "double"))
"""Types whose values an expression can exceed, and then the server takes the nearest one or zero."""
_ESCAPED = re.compile(rb"[^ -~]|\\")
"""Bytes of an introduced literal that MariaDB prints with a backslash."""
_NUMBER = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
"""What MySQL takes of a text that is to be a DECIMAL."""
_FULL_WIDTHS = {"double": 22, "float": 12}

_IMPLIED = {
    **dict.fromkeys((*_INTEGERS, "decimal", "float", "double"), "0"),
    "bit": "b'0'",
    "year": "0000",
    "date": "0000-00-00",
    "time": "00:00:00",
    "datetime": "0000-00-00 00:00:00",
    "timestamp": "0000-00-00 00:00:00",
    "json": "null",
    "uuid": "00000000-0000-0000-0000-000000000000",
    "inet4": "0.0.0.0",  # noqa: S104 a value, not an address to listen on
    "inet6": "::",
}


class InitialValue(NamedTuple):
    """What rows from before a column was added read; ``known`` is False where only the server can tell."""

    text: str | None
    known: bool = True


_UNKNOWN = InitialValue(None, known=False)


def now_text(fraction: int) -> str:
    """CURRENT_TIMESTAMP as ``information_schema`` of MySQL prints it."""
    return f"CURRENT_TIMESTAMP({fraction})" if fraction else "CURRENT_TIMESTAMP"


def default_text(default: DefaultSpec | None, kind: ColumnType, context: StatementContext) -> tuple[str | None, bool]:
    """The default's text, and whether it is an expression."""
    if default is None or default.kind == "null":
        return None, False
    if default.kind == "now":
        return now_text(kind.fraction if context.flavor == "mariadb" else default.fraction), True
    if default.kind == "expression":
        if context.flavor == "mariadb" and default.literal is not None:
            return default_text(default.literal, kind, context)  # MariaDB forgets the parentheses
        return default.text, True
    if context.flavor == "mysql" and kind.name in _WITHOUT_DEFAULT:
        return None, False  # only a warning, outside of strict mode
    if _is_of_today(default, kind):
        return f"TIME'{default.text}'", True
    default = _converted(default, kind, context)
    text = _literal_text(default, kind, context)
    return (default.text if text is None else text), False


def initial_value(
    default: DefaultSpec | None, kind: ColumnType, context: StatementContext, *, nullable: bool
) -> InitialValue:
    """What ADD COLUMN gives to the rows that are there."""
    if default is None or (
        default.kind not in _EVALUATED and kind.name in _WITHOUT_DEFAULT and context.flavor == "mysql"
    ):
        return InitialValue(None if nullable else implied_value(kind))
    if default.kind == "now":
        return _now(kind, context)
    if default.kind == "expression":
        return _expression_initial(default.literal, kind, context)
    return _literal_initial(default, kind, context)


def _expression_initial(literal: DefaultSpec | None, kind: ColumnType, context: StatementContext) -> InitialValue:
    if literal is None:
        return _UNKNOWN
    if context.flavor == "mysql" and literal.kind == "number" and kind.name in ("enum", "set"):
        label = _by_number(literal, kind)
        return _UNKNOWN if label is None else InitialValue(label)
    return _stored(_literal_initial(literal, kind, context), kind)


def _literal_initial(default: DefaultSpec, kind: ColumnType, context: StatementContext) -> InitialValue:
    if default.kind == "null":
        return InitialValue(None)
    if _is_of_today(default, kind):
        return _UNKNOWN
    default = _converted(default, kind, context)
    if kind.name == "float" and kind.scale is None:
        number = _number(default, kind)
        return _UNKNOWN if number is None else InitialValue(float_text(number, single=False))
    if (
        context.flavor == "mariadb"
        and kind.name in _WITHOUT_DEFAULT
        and default.introduced
        and _ESCAPED.search(default.raw)
    ):
        return _UNKNOWN  # MariaDB keeps it as it prints it, escapes and all
    text = _literal_text(default, kind, context)
    if text is not None and kind.name == "timestamp":
        text = in_utc(text, session_zone(context.time_zone))
    return _UNKNOWN if text is None else InitialValue(text)


def _is_of_today(default: DefaultSpec, kind: ColumnType) -> bool:
    """Whether the server adds a literal of TIME to the day of the statement, in a time zone that not all statements tell."""
    return default.is_time and kind.name in _MOMENTS


def _converted(default: DefaultSpec, kind: ColumnType, context: StatementContext) -> DefaultSpec:
    """A literal as the client sent it becomes what the server made of it; for columns of bytes it is just these bytes."""
    client = context.client_charset
    if default.raw and kind.name in BYTE_TYPES:
        return replace(default, kind="bytes", text=f"0x{default.raw.hex()}")
    if (default.introduced or default.raw) and kind.name in _SAYS:
        return replace(
            default,
            kind="string",
            text=default.raw.decode("ascii", "surrogateescape") if default.kind == "bytes" else default.text,
        )
    connection = context.connection_charset or client
    if default.kind == "string" and not default.introduced and connection == "binary" and kind.charset in _WIDE:
        unit = 4 if kind.charset == "utf32" else 2
        raw = raw_bytes(default.text, client)  # bytes of the column's characters, filled up from the left
        return replace(default, kind="bytes", text=f"0x{raw.rjust(-(-len(raw) // unit) * unit, bytes(1)).hex()}")
    plain = default.text.isascii() and unchanged(default.text, client) and connection not in _WIDE
    if default.kind != "string" or default.introduced or plain:
        return default
    if not client and kind.name not in BYTE_TYPES:
        return default
    raw = raw_bytes(default.text, client)
    if client not in (connection, "binary"):
        raw = encoded(fitted(converted(raw, client, context.flavor, context.version), connection), connection)
    if kind.name in BYTE_TYPES or kind.name == "bit":
        if context.flavor == "mariadb" and kind.name in _WITHOUT_DEFAULT and connection not in _UNCHANGED:
            # It keeps such a default as it prints it, in UTF-8.
            raw = encoded(converted(raw, connection, context.flavor, context.version), "utf8mb4")
        return replace(default, kind="bytes", text=f"0x{raw.hex()}")
    # Bytes of no charset are those of the column's.
    bytes_of = (kind.charset or connection) if connection == "binary" else connection
    text = (
        stored_label(raw, "binary", "")
        if kind.charset == "binary"
        else converted(raw, bytes_of, context.flavor, context.version)
    )
    return replace(default, text=text)


def _stored(initial: InitialValue, kind: ColumnType) -> InitialValue:
    """The value of an expression as a column keeps it: unlike a literal it may be too long or too large outside strict mode."""
    text, length = initial.text, kind.length or 0
    if text is None:
        return initial
    if kind.name in ("char", "varchar"):
        return InitialValue(text[:length])
    if kind.name in ("binary", "varbinary"):
        return InitialValue(text[: 2 + 2 * length])
    return initial if _is_in_range(text, kind) else _UNKNOWN


def _is_in_range(text: str, kind: ColumnType) -> bool:
    if kind.name in _INTEGER_BITS:
        bits = _INTEGER_BITS[kind.name]
        least = 0 if kind.unsigned else -(1 << bits - 1)
        return least <= int(text) < least + (1 << bits)
    if kind.name == "decimal":
        return abs(Decimal(text)) < Decimal(10) ** ((kind.precision or 10) - (kind.scale or 0))
    if kind.name == "bit":
        return len(text) - len("b''") <= (kind.length or 1)
    return kind.name not in _RANGED


def implied_value(kind: ColumnType) -> str:
    """What a NOT NULL column without a default gets."""
    if kind.name == "enum":
        return kind.labels[0] if kind.labels else ""
    if kind.name == "binary":
        return "0x" + "00" * (kind.length or 0)
    if kind.name in BYTE_TYPES or kind.name.endswith(("geometry", "point", "linestring", "polygon", "collection")):
        return "0x"
    text = _IMPLIED.get(kind.name, "")
    if kind.scale:
        return fixed_text(Decimal(0), kind.scale)
    return f"{text}.{'0' * kind.fraction}" if kind.fraction else text


def _now(kind: ColumnType, context: StatementContext) -> InitialValue:
    if not context.time_us:
        return _UNKNOWN
    if kind.name == "timestamp":
        return InitialValue(at_microsecond(context.time_us, timezone.utc, kind.fraction))
    zone = session_zone(context.time_zone)
    if kind.name != "datetime" or zone is None:
        return _UNKNOWN
    return InitialValue(at_microsecond(context.time_us, zone, kind.fraction))


def _literal_text(default: DefaultSpec, kind: ColumnType, context: StatementContext) -> str | None:
    """A literal as a value of that type; None where it does not fit what is known of the type."""
    name = kind.name
    if name == "decimal" and default.kind == "string" and context.flavor == "mysql":
        begins = _NUMBER.match(default.text.strip())
        default = replace(default, text=begins[0] if begins else "0")
    if name in _INTEGERS or name in ("decimal", "float", "double"):
        return _number_text(default, kind)
    if name == "bit":
        bits = _bit_number(default, kind)
        return None if bits is None else f"b'{bits:b}'"
    if name in BYTE_TYPES:
        return _bytes_text(default, kind)
    if name == "year" and default.kind == "bytes":
        default = replace(default, kind="number", text=str(_number(default, kind)))
    if name in _ADDRESSES:
        return address_text(name, literal_bytes(default.text) if default.kind == "bytes" else default.text)
    text = _as_text(default, kind.charset or "utf8mb4")
    if text is None:
        return None
    return _text_of(default, text, kind, context)


def _text_of(default: DefaultSpec, text: str, kind: ColumnType, context: StatementContext) -> str | None:
    """A literal's characters as a value of a type that is written as text."""
    name = kind.name
    rounds = _rounds_fractions(context, name)
    if name == "year":
        return year_text(text, is_number=default.kind == "number")
    if name in _TEMPORAL and context.flavor == "mysql" and context.version >= _OFFSETS_SINCE:
        local = in_session(name, text, session_zone(context.time_zone), kind.fraction, rounds=rounds)
        return None if local is None else temporal_text(name, local, kind.fraction, is_mysql=True, rounds=rounds)
    if name in _TEMPORAL:
        return temporal_text(name, text, kind.fraction, is_mysql=context.flavor == "mysql", rounds=rounds)
    if name == "char":
        return text.rstrip(" ")
    if name == "varchar" and kind.length is not None:
        return text[: kind.length]  # what is cut off is blanks
    if name in ("enum", "set"):
        label = _labels_text(text, kind)
        return label if default.kind != "number" else _numbered(label, _by_number(default, kind), context)
    return text


def _rounds_fractions(context: StatementContext, name: str) -> bool:
    """Whether the session rounds surplus digits of a second for a column of that type; else it cuts them."""
    if context.flavor == "mysql":
        return "TIME_TRUNCATE_FRACTIONAL" not in context.sql_mode
    return "TIME_ROUND_FRACTIONAL" in context.sql_mode and name != "date"


def _number(default: DefaultSpec, kind: ColumnType) -> Decimal | None:
    if default.kind == "bytes":
        raw = literal_bytes(default.text)
        number = int.from_bytes(raw, "big")
        if len(raw) > _NUMBER_BYTES or (kind.name in _FULL_WIDTHS and number >= _SIGN_BIT):
            return None  # servers take it for the largest number, and not all for the same one
        return Decimal(number)
    return as_decimal(default.text)


def _number_text(default: DefaultSpec, kind: ColumnType) -> str | None:
    number = _number(default, kind)
    if number is None:
        return None
    if kind.scale is not None and kind.name in _FULL_WIDTHS:
        text, width = declared_float_text(number, kind.scale, single=kind.name == "float"), kind.precision or 0
    elif kind.scale is not None:
        text, width = fixed_text(number, kind.scale), (kind.precision or 0) + (1 if kind.scale else 0)
    elif kind.name in _FULL_WIDTHS:
        text, width = float_text(number, single=kind.name == "float"), _FULL_WIDTHS[kind.name]
    else:
        text, width = integer_text(number), kind.length or 0
    return text.rjust(width, "0") if kind.zerofill else text


def _bit_number(default: DefaultSpec, kind: ColumnType) -> int | None:
    if default.kind == "string":
        return int.from_bytes(default.raw or default.text.encode(), "big")
    number = _number(default, kind)
    return None if number is None else int(integer_text(number))


def _bytes_text(default: DefaultSpec, kind: ColumnType) -> str | None:
    text = _as_text(default, "utf8mb4") if default.kind == "number" else default.text
    if text is None:
        return None
    raw = literal_bytes(text) if default.kind == "bytes" else text.encode("utf-8", "surrogateescape")
    if kind.name == "binary":
        raw = raw.ljust(kind.length or 0, b"\0")
    return f"0x{raw.hex().upper()}"


def _as_text(default: DefaultSpec, charset: str) -> str | None:
    if default.kind == "bytes":
        raw = literal_bytes(default.text)
        try:
            return decoded(raw, charset)
        except UnicodeError:
            return stored_label(raw, charset, "") if charset in ("ascii", "binary") else None
    if default.kind == "number":
        text = default.text
        if "e" in text.lower():
            number = as_decimal(text)
            return None if number is None else float_text(number, single=False)
        sign, digits = ("-", text[1:]) if text.startswith("-") else ("", text)
        whole, point, rest = digits.partition(".")
        plain = (whole.lstrip("0") or "0") + (point if rest else "") + rest
        return plain if not plain.strip("0.") else sign + plain
    return default.text


def _numbered(label: str | None, by_number: str | None, context: StatementContext) -> str | None:
    """An ENUM's or SET's number without quotes: older servers ask for a label of that text, and take its number then."""
    if label == by_number or (context.flavor == "mysql" and context.version >= _LABELS_SINCE):
        return label
    return by_number if context.flavor == "mariadb" or context.version <= _NUMBERS_UNTIL else None


def _by_number(default: DefaultSpec, kind: ColumnType) -> str | None:
    """The label that an ENUM's number counts to, or the labels that the bits of a SET's number name."""
    number = _number(default, kind)
    if number is None or number != int(number):
        return None
    chosen = 1 << int(number) >> 1 if kind.name == "enum" else int(number)
    if not 0 < chosen < 1 << len(kind.labels):
        return None
    return set_text(label for bit, label in enumerate(kind.labels) if chosen >> bit & 1)


def _labels_text(text: str, kind: ColumnType) -> str | None:
    """Members as declared, a SET's in their order; the literal may differ in case."""
    text = text if kind.charset == "binary" else text.rstrip(" ")
    by_lower = {label.lower(): label for label in kind.labels}
    wanted = text.split(",") if kind.name == "set" else [text]
    if kind.name == "set" and not text:
        return ""
    found = {label if label in kind.labels else by_lower.get(label.lower()) for label in wanted}
    if None in found:
        return None
    return set_text(label for label in kind.labels if label in found)
