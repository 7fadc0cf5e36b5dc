"""Column types: from what a statement or ``information_schema`` says to :class:`ColumnType`."""

from __future__ import annotations

from dataclasses import replace

from historian.charsets.client_text import declared_label
from historian.ddl.parsing.charsets import (
    binary_collation,
    built_in_collation,
    charset_of,
    collation_name,
    default_collation,
    is_mysql_8,
    maximum_bytes,
)
from historian.ddl.parsing.context import StatementContext
from historian.ddl.parsing.definitions import CharsetClause, TypeSpec
from historian.schema.snapshots import ColumnType

__all__ = [
    "CHARACTER_TYPES",
    "Charset",
    "charset_clause",
    "column_type",
    "converted_type",
    "display_width",
    "integer_type",
    "most_bytes",
    "natural_width",
    "resized_type",
    "resolves_default_charset",
    "sized_text",
]

_TEXTS = {"tinytext": 255, "text": 65535, "mediumtext": 16777215, "longtext": 4294967295}
_BLOBS = {"tinyblob": 255, "blob": 65535, "mediumblob": 16777215, "longblob": 4294967295}
Charset = tuple[str, str]
"""A character set and a collation of it."""

CHARACTER_TYPES = frozenset(("char", "varchar", "enum", "set", *_TEXTS))
"""Types that have a character set."""

_AS_BYTES = {"char": "binary", "varchar": "varbinary", **dict(zip(_TEXTS, _BLOBS, strict=True))}
_WIDTHS = {"tinyint": 3, "smallint": 5, "mediumint": 8, "int": 10, "bigint": 20}
_LONGEST_VARCHAR_BYTES = 65535
_LENGTH_ONE = frozenset(("char", "binary", "bit"))
_FRACTIONAL = frozenset(("time", "datetime", "timestamp"))


def column_type(spec: TypeSpec, charset: str, collation: str, context: StatementContext) -> ColumnType:  # noqa: C901, PLR0911 a case a family
    """The type that the server gives a column declared so in a table with these defaults."""
    name = spec.name
    if name in CHARACTER_TYPES:
        return _character_type(spec, charset, collation, context)
    if name in _WIDTHS:
        return integer_type(name, spec.length, unsigned=spec.unsigned, zerofill=spec.zerofill)
    if name == "decimal":
        precision = spec.length or 10
        return _numeric(spec, precision=precision, scale=spec.scale or 0)
    if name in ("float", "double"):
        return _floating(spec)
    if name in _FRACTIONAL:
        return ColumnType(name=name, fraction=spec.length or 0)
    if name in _BLOBS:
        return ColumnType(name=sized_text(spec.length or 0, "blob") if _is_sized(spec.length, context) else name)
    if name == "json" and context.flavor == "mariadb":
        return ColumnType(name="longtext", charset="utf8mb4", collation="utf8mb4_bin")
    if name == "varbinary" and (spec.length or 0) > _LONGEST_VARCHAR_BYTES:
        return ColumnType(name=sized_text(spec.length or 0, "blob"))
    if name == "year":
        return ColumnType(name=name, length=2 if spec.length == 2 else None)
    if name == "vector":
        return ColumnType(name=name, length=spec.length or 2048)
    if name == "geometrycollection" and is_mysql_8(context):
        return ColumnType(name="geomcollection")
    length = (spec.length or 1) if name == "bit" else spec.length
    if name in _LENGTH_ONE and length is None:
        length = 1
    return ColumnType(name=name, length=length)


def integer_type(name: str, length: int | None, *, unsigned: bool, zerofill: bool) -> ColumnType:
    """An integer type. A display width is kept for ``tinyint(1)`` and with ZEROFILL only: servers differ in the others."""
    if zerofill:
        return ColumnType(name=name, unsigned=True, zerofill=True, length=length or _WIDTHS[name])
    keep = name == "tinyint" and length == 1 and not unsigned
    return ColumnType(name=name, unsigned=unsigned, length=1 if keep else None)


def display_width(spec: TypeSpec, context: StatementContext) -> int | None:
    """What :attr:`Column.display_width` is for a column declared so. MySQL prints none since 8.0.19."""
    if spec.length is None or spec.zerofill or spec.name not in _WIDTHS:
        return None
    if context.flavor == "mysql" and not 0 < context.version < 80019:
        return None
    if spec.name == "tinyint" and spec.length == 1 and not spec.unsigned:
        return None
    return None if spec.length == natural_width(spec.name, unsigned=spec.unsigned) else spec.length


def natural_width(name: str, *, unsigned: bool) -> int | None:
    """The width that servers print of an integer type declared without one; None for another type.

    >>> natural_width("int", unsigned=False), natural_width("bigint", unsigned=False)
    (11, 20)
    """
    digits = _WIDTHS.get(name)
    return digits if digits is None or unsigned or name == "bigint" else digits + 1


def sized_text(length: int, kind: str, maximum: int = 1) -> str:
    """The smallest of the four ``text`` or ``blob`` types that holds *length* characters of *maximum* bytes.

    >>> sized_text(64, "text", 4)
    'text'
    """
    sizes = _TEXTS if kind == "text" else _BLOBS
    return next((name for name, most in sizes.items() if length * maximum <= most), f"long{kind}")


def converted_type(old: ColumnType, charset: str, collation: str, context: StatementContext) -> ColumnType:
    """The type of an existing column after CONVERT TO CHARACTER SET: texts grow so that they hold as many characters.

    A VARCHAR that becomes too long becomes a text; MySQL 8 takes its characters for bytes when it sizes that.
    """
    if old.charset is None or old.charset == "binary":
        return old
    name, length = old.name, old.length
    if name in _TEXTS and name != "longtext":
        characters = _TEXTS[name] // maximum_bytes(old.charset)
        name = sized_text(characters, "text", maximum_bytes(charset))
    new = _in_charset(replace(old, name=name, length=length), charset, collation)
    if old.name == "varchar" and new.name in _TEXTS and is_mysql_8(context):
        size_bytes = (old.length or 0) * maximum_bytes(charset) // maximum_bytes(old.charset)
        new = replace(new, name=sized_text(size_bytes, "text"))
    return new


def _is_sized(length: int | None, context: StatementContext) -> bool:
    """Whether a length picks the size of a TEXT or BLOB; before MySQL 8, and in MariaDB, 0 is none."""
    return length is not None and (length > 0 or is_mysql_8(context))


def _character_type(spec: TypeSpec, charset: str, collation: str, context: StatementContext) -> ColumnType:
    charset, collation = charset_clause(spec.charset, (charset, collation), context)
    name, length = spec.name, spec.length
    if name == "char":
        length = 1 if length is None else length
    elif name in _TEXTS:
        if name == "text" and _is_sized(length, context):
            name = sized_text(length or 0, "text", maximum_bytes(charset))
        length = None
    labels = tuple(
        declared_label(label, context.client_charset, charset, context.flavor, context.version) for label in spec.labels
    )
    return _in_charset(ColumnType(name=name, length=length, labels=labels), charset, collation)


def most_bytes(kind: ColumnType) -> int:
    """Bytes of the longest value, where its type is one of text or bytes; else 0."""
    if kind.name in ("char", "varchar", "binary", "varbinary"):
        return (kind.length or 0) * maximum_bytes(kind.charset or "")
    return _TEXTS.get(kind.name) or _BLOBS.get(kind.name, 0)


def resized_type(old: ColumnType, new: ColumnType) -> ColumnType | None:
    """The TEXT or BLOB that MODIFY without a length gives beside CONVERT TO CHARACTER SET in MySQL 8: sized as the old column.

    The longest ones stay what they are. None where the old column's length in characters is not known here.
    """
    if new.name in ("longtext", "longblob") or (new.name not in _TEXTS and new.name not in _BLOBS):
        return new
    length = _TEXTS.get(old.name) or _BLOBS.get(old.name)
    if length is None and old.name in ("char", "varchar", "binary", "varbinary"):
        length = old.length or 0
    if length is None:
        return None
    size_bytes = length * maximum_bytes(new.charset or "") // maximum_bytes(old.charset or "")
    return replace(new, name=sized_text(size_bytes, "text" if new.name in _TEXTS else "blob", 1))


def resolves_default_charset(context: StatementContext) -> bool:
    """Whether CHARACTER SET DEFAULT has MariaDB's own meaning, which came with 10.9; before it is much as in MySQL."""
    return context.flavor == "mariadb" and not 0 < context.version < 100900


def charset_clause(
    clause: CharsetClause, inherited: Charset, context: StatementContext, default: Charset | None = None
) -> Charset:
    """Charset and collation of a column, table or database: what its clause says over what it inherits.

    *default*: what DEFAULT stands for; MariaDB takes the charset of it alone since 10.9.
    """
    charset, collation = inherited
    if clause.charset == "" and default is not None:
        charset, collation = default
        if resolves_default_charset(context):
            collation = built_in_collation(charset, context)
    elif clause.charset:
        charset, collation = clause.charset, default_collation(clause.charset, context)
    if clause.collation:
        charset = charset_of(clause.collation) or charset
        collation = collation_name(clause.collation, charset)
    elif clause.collation is not None:
        collation = default_collation(charset, context)
    elif clause.binary:
        collation = binary_collation(charset)
    return charset, collation


def _in_charset(kind: ColumnType, charset: str, collation: str) -> ColumnType:
    """*kind* with that charset; bytes where it is ``binary``, a text where a VARCHAR becomes too long."""
    if charset == "binary" and kind.name in _AS_BYTES:
        kind = replace(kind, name=_AS_BYTES[kind.name], charset=None, collation=None)
        family, maximum = "blob", 1
    else:
        kind = replace(kind, charset=charset, collation=collation)
        family, maximum = "text", maximum_bytes(charset)
    if kind.name in ("varchar", "varbinary") and (kind.length or 0) * maximum > _LONGEST_VARCHAR_BYTES:
        return replace(kind, name=sized_text(kind.length or 0, family, maximum), length=None)
    return kind


def _numeric(spec: TypeSpec, *, precision: int | None, scale: int | None) -> ColumnType:
    return ColumnType(
        name=spec.name,
        unsigned=spec.unsigned or spec.zerofill,
        zerofill=spec.zerofill,
        precision=precision,
        scale=scale,
    )


def _floating(spec: TypeSpec) -> ColumnType:
    if spec.scale is not None:
        return _numeric(spec, precision=spec.length, scale=spec.scale)
    if spec.name == "float" and (spec.length or 0) > 24:
        spec = replace(spec, name="double")
    return _numeric(spec, precision=None, scale=None)
