"""The type of a column definition, with the words that belong to it."""

from __future__ import annotations

from historian.ddl.parsing.charsets import literal_bytes
from historian.ddl.parsing.cursor import Cursor
from historian.ddl.parsing.definitions import CharsetClause, TypeSpec
from historian.ddl.parsing.lexer import BYTES, NUMBER, STRING

__all__ = ["parse_type"]

_NAMES = {
    "INT": "int",
    "INTEGER": "int",
    "INT4": "int",
    "TINYINT": "tinyint",
    "INT1": "tinyint",
    "SMALLINT": "smallint",
    "INT2": "smallint",
    "MEDIUMINT": "mediumint",
    "MIDDLEINT": "mediumint",
    "INT3": "mediumint",
    "BIGINT": "bigint",
    "INT8": "bigint",
    "DECIMAL": "decimal",
    "DEC": "decimal",
    "NUMERIC": "decimal",
    "FIXED": "decimal",
    "NUMBER": "decimal",
    "FLOAT": "float",
    "FLOAT4": "float",
    "DOUBLE": "double",
    "FLOAT8": "double",
    "BIT": "bit",
    "DATE": "date",
    "TIME": "time",
    "DATETIME": "datetime",
    "TIMESTAMP": "timestamp",
    "YEAR": "year",
    "CHAR": "char",
    "CHARACTER": "char",
    "VARCHAR": "varchar",
    "VARCHARACTER": "varchar",
    "VARCHAR2": "varchar",
    "BINARY": "binary",
    "VARBINARY": "varbinary",
    "RAW": "varbinary",
    "TINYTEXT": "tinytext",
    "TEXT": "text",
    "MEDIUMTEXT": "mediumtext",
    "LONGTEXT": "longtext",
    "CLOB": "longtext",
    "TINYBLOB": "tinyblob",
    "BLOB": "blob",
    "MEDIUMBLOB": "mediumblob",
    "LONGBLOB": "longblob",
    "JSON": "json",
    "GEOMETRY": "geometry",
    "POINT": "point",
    "LINESTRING": "linestring",
    "POLYGON": "polygon",
    "MULTIPOINT": "multipoint",
    "MULTILINESTRING": "multilinestring",
    "MULTIPOLYGON": "multipolygon",
    "GEOMETRYCOLLECTION": "geometrycollection",
    "GEOMCOLLECTION": "geomcollection",
    "VECTOR": "vector",
    "UUID": "uuid",
    "INET4": "inet4",
    "INET6": "inet6",
    "XMLTYPE": "xmltype",
}
_OF_ORACLE = {"DATE": "datetime", "BLOB": "longblob", "NUMBER": "double"}
"""What types without a length mean to MariaDB in ``sql_mode=ORACLE``."""
_VARYING = frozenset(("VARCHAR", "VARCHARACTER"))
_CHARACTERS = frozenset(("CHAR", "CHARACTER"))
_NATIONAL = CharsetClause(charset="utf8mb3")
_SIGNS = frozenset(("UNSIGNED", "SIGNED", "ZEROFILL"))
_CHARACTER_TYPES = frozenset(("char", "varchar", "tinytext", "text", "mediumtext", "longtext", "enum", "set", "json"))


def parse_type(cursor: Cursor) -> TypeSpec:
    """Takes a type with its length, sign and character set.

    ``SERIAL`` is given back as that name: it stands for attributes too.
    """
    word = cursor.key
    charset = CharsetClause()
    if word in ("BOOL", "BOOLEAN"):
        cursor.at += 1
        return TypeSpec(name="tinyint", length=1)
    if word == "SERIAL":
        cursor.at += 1
        return TypeSpec(name="serial", unsigned=True)
    if word in ("ENUM", "SET"):
        cursor.at += 1
        return TypeSpec(name=word.lower(), labels=_labels(cursor), charset=_charset(cursor, charset))
    if word in ("NATIONAL", "NCHAR", "NVARCHAR"):
        name, charset = _national(cursor), _NATIONAL
    elif word == "LONG":
        name = _long(cursor)
    else:
        name = _NAMES.get(word, "")
        if not name and word == "REAL":
            name = "float" if "REAL_AS_FLOAT" in cursor.context.sql_mode else "double"
        if not name:
            raise cursor.fail("a type")
        cursor.at += 1
        if word == "DOUBLE":
            cursor.accept("PRECISION")
        elif name == "char" and cursor.accept("VARYING"):
            name = "varchar"
    length, scale = _numbers(cursor)
    if length is None and word in _OF_ORACLE and "ORACLE" in cursor.context.sql_mode:
        name = _OF_ORACLE[word]
    unsigned, zerofill = _signs(cursor)
    compressed = False
    if name in _CHARACTER_TYPES:
        compressed = _compressed(cursor)
        charset = _charset(cursor, charset)
    return TypeSpec(
        name=name,
        length=length,
        scale=scale,
        unsigned=unsigned,
        zerofill=zerofill,
        charset=charset,
        compressed=compressed,
    )


def _compressed(cursor: Cursor) -> bool:
    """MariaDB's word for how values are stored, which it prints before the character set."""
    if cursor.context.flavor != "mariadb" or not cursor.accept("COMPRESSED"):
        return False
    if cursor.accept("="):
        cursor.word_or_string()
    return True


def _signs(cursor: Cursor) -> tuple[bool, bool]:
    """Whether UNSIGNED and ZEROFILL come next."""
    unsigned = zerofill = False
    while sign := cursor.accept_any(_SIGNS):
        unsigned = unsigned or sign == "UNSIGNED"
        zerofill = zerofill or sign == "ZEROFILL"
    return unsigned, zerofill


def _national(cursor: Cursor) -> str:
    """NATIONAL CHAR, NATIONAL VARCHAR, NCHAR, NCHAR VARCHAR, NVARCHAR, … [VARYING]."""
    word = cursor.key
    cursor.at += 1
    if word == "NVARCHAR":
        return "varchar"
    if cursor.accept_any(_VARYING):
        return "varchar"
    if word == "NATIONAL" and not cursor.accept_any(_CHARACTERS):
        raise cursor.fail("CHAR or VARCHAR")
    return "varchar" if cursor.accept("VARYING") else "char"


def _long(cursor: Cursor) -> str:
    cursor.expect("LONG")
    if cursor.accept("VARBINARY"):
        return "mediumblob"
    if cursor.key in _CHARACTERS and cursor.following() == "VARYING":
        cursor.at += 2
    else:
        cursor.accept_any(_VARYING)
    return "mediumtext"


def _numbers(cursor: Cursor) -> tuple[int | None, int | None]:
    if cursor.key != "(" or cursor.following() != NUMBER:
        return None, None
    cursor.at += 1
    whole, point, _ = cursor.values[cursor.at].partition(".")
    if (
        point and whole.isdigit() and cursor.following() == ")"
    ):  # servers drop the fraction of a length that stands alone
        cursor.at += 2
        return int(whole), None
    length = cursor.number()
    scale = cursor.number() if cursor.accept(",") else None
    cursor.expect(")")
    return length, scale


def _labels(cursor: Cursor) -> tuple[str | bytes, ...]:
    cursor.expect("(")
    labels = []
    while True:
        labels.append(_label(cursor))
        if not cursor.accept(","):
            break
    cursor.expect(")")
    return tuple(labels)


def _label(cursor: Cursor) -> str | bytes:
    """A label as the client sent it; the bytes of a hexadecimal or bit literal."""
    if cursor.key == BYTES:
        cursor.at += 1
        return literal_bytes(cursor.values[cursor.at - 1])
    if cursor.key != STRING:
        cursor.accept("N")
    return cursor.literal()


def _charset(cursor: Cursor, clause: CharsetClause) -> CharsetClause:
    """Takes what may stand behind a character type: its set, its collation, and the BINARY attribute."""
    charset, collation, binary = clause.charset, clause.collation, clause.binary
    while True:
        if cursor.accept_charset_word():
            charset = cursor.charset()
        elif cursor.accept("ASCII"):
            charset = "latin1"
        elif cursor.accept("UNICODE"):
            charset = "ucs2"
        elif cursor.accept("BYTE"):
            charset = "binary"
        elif cursor.accept("BINARY"):
            binary = True
        elif cursor.accept("COLLATE"):
            collation = cursor.collation()
        else:
            break
    return CharsetClause(charset=charset, collation=collation, binary=binary)
