"""Which changes of a column's type leave every value as it is, so that old rows and new ones stand side by side.

A server may convert values and yet not change them: an INT as DECIMAL(12,2) is the same number. What it may make another
value, round, cut short or refuse is not carried.
"""

from __future__ import annotations

import ctypes
from dataclasses import replace

from historian.schema.snapshots import GEOMETRIES, TEXT_TYPES, Column, ColumnType

__all__ = ["is_compatible", "resembles", "retyped"]

_INTEGER_BITS = {"tinyint": 8, "smallint": 16, "mediumint": 24, "int": 32, "bigint": 64}
_TEXT_BYTES = {"tinytext": 2**8 - 1, "text": 2**16 - 1, "mediumtext": 2**24 - 1, "longtext": 2**32 - 1}
_BLOB_BYTES = {"tinyblob": 2**8 - 1, "blob": 2**16 - 1, "mediumblob": 2**24 - 1, "longblob": 2**32 - 1}
_UNICODE = {"utf8mb4": 4, "utf16": 4, "utf16le": 4, "utf32": 4}
_BASIC_PLANE = {"utf8mb3": 3, "utf8": 3, "ucs2": 2}
_ASCII_INCOMPATIBLE = {"utf16", "utf16le", "utf32", "ucs2", "swe7"}
_OTHER_WIDTHS = {
    "big5": 2,
    "gb2312": 2,
    "gbk": 2,
    "sjis": 2,
    "cp932": 2,
    "euckr": 2,
    "ujis": 3,
    "eucjpms": 3,
    "gb18030": 4,
}
_GEOMETRIES = {*GEOMETRIES[1:], "geometrycollection"}


def is_compatible(old: ColumnType, new: ColumnType) -> bool:
    """Whether every value of *old* is the same value under *new*, so that rows of both may stand side by side.

    Text counts as what it says, whatever charset stores it; ENUM and SET values as their labels' text; a DATE as the
    midnight that it begins with. The Arrow values of *old* need a cast to those of *new* (:mod:`historian.changelog.projection`).
    """
    return resembles(old, new) or _crosses(old, new)


def resembles(old: ColumnType, new: ColumnType) -> bool:
    """Whether *new* carries the values of *old* and is of its kind: numbers of one form, texts, bytes, times of one form.

    So values print alike too, decimals but for their digits. And a column that comes in the place of one of its name can
    be taken for it, where nobody knows what happened in between.
    """
    if replace(old, options=old.shape) == replace(new, options=new.shape):
        return True
    for family in (_forms, _integers, _decimals, _floats, _texts, _bytes, _labels, _temporals, _bits, _shapes):
        verdict = family(old, new)
        if verdict is not None:
            return verdict
    return False


def retyped(column: Column, kind: ColumnType) -> Column:
    """*column* with another type; what rows from before it read there is converted as the server does."""
    text, old = column.initial, column.type.name
    if text is not None and column.initial_known and is_compatible(column.type, kind):
        if (old, kind.name) == ("float", "double"):
            # The text is that of a number which FLOAT rounds; DOUBLE keeps what it was rounded to.
            text = repr(ctypes.c_float(float(text)).value)
        elif (old, kind.name) == ("date", "datetime"):
            text += " 00:00:00" + ("." + "0" * kind.fraction if kind.fraction else "")
    return replace(column, type=kind, initial=text)


def _crosses(old: ColumnType, new: ColumnType) -> bool:
    """Pairs of two families, by the rule of Delta's type widening: integers need room for all of their width in files."""
    if old.shape or new.shape:
        return False
    if old.name == "date":
        # What is no day becomes a time that is none, under every mode of the server's: NULL remains NULL.
        return new.name == "datetime"
    if old.name not in _INTEGER_BITS or (new.unsigned and not old.unsigned):
        return False
    # Unsigned integers take the next wider signed type, but for MEDIUMINT, whose type has room.
    is_long = old.name == "bigint" or (old.name == "int" and old.unsigned)
    if new.name == "double":
        return not is_long and new.precision is None
    if new.name != "decimal":
        return False
    digits, scale = new.precision or 10, new.scale or 0
    return digits <= _NUMBER_DIGITS and digits - scale >= (20 if is_long else 10)


def _forms(old: ColumnType, new: ColumnType) -> bool | None:
    """Types whose values are carried otherwise than by default, where that makes them others."""
    a, b = _shown(old), _shown(new)
    if not a and not b:
        return None
    # Text shows every fractional digit that its type has.
    return a == b and (old.name, old.unsigned, old.fraction) == (new.name, new.unsigned, new.fraction)


def _shown(kind: ColumnType) -> str:
    return kind.shape if kind.shape in ("text", "boolean") else ""


def _integers(old: ColumnType, new: ColumnType) -> bool | None:
    if old.name not in _INTEGER_BITS or new.name not in _INTEGER_BITS:
        return None
    a, b = _INTEGER_BITS[old.name], _INTEGER_BITS[new.name]
    if old.unsigned:
        return b >= a if new.unsigned else b > a
    return b >= a and not new.unsigned


def _decimals(old: ColumnType, new: ColumnType) -> bool | None:
    if old.name != "decimal" or new.name != "decimal":
        return None
    a, b, p, q = old.scale or 0, new.scale or 0, old.precision or 10, new.precision or 10
    if new.unsigned and not old.unsigned:
        return False
    return b >= a and q - b >= p - a and (q <= _NUMBER_DIGITS or (p > _NUMBER_DIGITS and a == b))


_NUMBER_DIGITS = 38
"""Decimals of more digits travel as text, and text does not become a number side by side."""


def _floats(old: ColumnType, new: ColumnType) -> bool | None:
    if old.name not in {"float", "double"} or new.name not in {"float", "double"}:
        return None
    same = (new.name, new.precision, new.scale) == (old.name, old.precision, old.scale)
    rounds = new.precision is not None and not same
    return not rounds and (old.unsigned or not new.unsigned) and (old.name, new.name) != ("double", "float")


def _texts(old: ColumnType, new: ColumnType) -> bool | None:
    """CHAR, VARCHAR and TEXTs: the longest old value fits. To CHAR only from CHAR, since CHAR drops trailing blanks."""
    if old.name not in TEXT_TYPES or new.name not in TEXT_TYPES:
        return None
    if (new.name == "char" and old.name != "char") or not _charset_holds(old.charset, new.charset):
        return False
    narrowest = 1 if old.charset not in {"utf16", "utf16le", "ucs2", "utf32"} else 2
    characters = old.length or 0 if old.name in {"char", "varchar"} else _TEXT_BYTES[old.name] // narrowest
    if new.name in {"char", "varchar"}:
        return characters <= (new.length or 0)
    if old.name in _TEXT_BYTES and old.charset == new.charset:
        return _TEXT_BYTES[old.name] <= _TEXT_BYTES[new.name]
    return characters * _width(new.charset) <= _TEXT_BYTES[new.name]


def _charset_holds(old: str | None, new: str | None) -> bool:
    if old == new or new in _UNICODE:
        return True
    if old in _BASIC_PLANE and new in _BASIC_PLANE:
        return True
    return old == "ascii" and new not in _ASCII_INCOMPATIBLE


def _width(charset: str | None) -> int:
    """The most bytes that one character takes."""
    name = charset or ""
    return _UNICODE.get(name) or _BASIC_PLANE.get(name) or _OTHER_WIDTHS.get(name) or 1


def _bytes(old: ColumnType, new: ColumnType) -> bool | None:
    """BINARY, VARBINARY and BLOBs. A longer BINARY pads its values with zero bytes, so they change."""
    kinds = {"binary", "varbinary", *_BLOB_BYTES}
    if old.name not in kinds or new.name not in kinds:
        return None
    longest = _BLOB_BYTES.get(old.name) or old.length or 0
    return new.name != "binary" and longest <= (_BLOB_BYTES.get(new.name) or new.length or 0)


def _labels(old: ColumnType, new: ColumnType) -> bool | None:
    if old.name != new.name or old.name not in {"enum", "set"}:
        return None
    if not _charset_holds(old.charset, new.charset):
        return False
    if old.name == "enum":
        return set(old.labels) <= set(new.labels)
    # A SET prints its labels in the order of the definition.
    return [label for label in new.labels if label in old.labels] == list(old.labels)


def _temporals(old: ColumnType, new: ColumnType) -> bool | None:
    if old.name != new.name or old.name not in {"time", "datetime", "timestamp"}:
        return None
    return new.fraction >= old.fraction


def _bits(old: ColumnType, new: ColumnType) -> bool | None:
    """BIT travels as bytes, BIT(1) as a boolean: values stay alike while the number of bytes does."""
    if old.name != "bit" or new.name != "bit":
        return None
    a, b = old.length or 1, new.length or 1
    return (a > 1 or old.shape == "binary") and a <= b and (a + 7) // 8 == (b + 7) // 8


def _shapes(old: ColumnType, new: ColumnType) -> bool | None:
    collections = {"geomcollection", "geometrycollection"}
    if old.name in _GEOMETRIES and new.name == "geometry":
        return True
    return True if {old.name, new.name} <= collections else None
