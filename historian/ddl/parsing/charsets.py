"""Character sets: their default collations by server, and how wide a character may be.

Facts of ``information_schema.character_sets`` and ``.collations`` of MySQL 5.7, 8.0 and 9.7, MariaDB 10.11 and 11.8. The
name ``utf8`` and collations ``utf8_…``, which older servers print, are written ``utf8mb3`` here.
"""

from __future__ import annotations

from historian.charsets import conversion
from historian.ddl.parsing.context import StatementContext

__all__ = [
    "binary_collation",
    "built_in_collation",
    "charset_of",
    "collation_name",
    "decoded",
    "default_collation",
    "is_mysql_8",
    "keeps_bytes",
    "literal_bytes",
    "maximum_bytes",
    "normal_charset",
    "normal_collation",
]

_DEFAULTS = {
    "armscii8": "general_ci",
    "ascii": "general_ci",
    "big5": "chinese_ci",
    "cp1250": "general_ci",
    "cp1251": "general_ci",
    "cp1256": "general_ci",
    "cp1257": "general_ci",
    "cp850": "general_ci",
    "cp852": "general_ci",
    "cp866": "general_ci",
    "cp932": "japanese_ci",
    "dec8": "swedish_ci",
    "eucjpms": "japanese_ci",
    "euckr": "korean_ci",
    "gb18030": "chinese_ci",
    "gb2312": "chinese_ci",
    "gbk": "chinese_ci",
    "geostd8": "general_ci",
    "greek": "general_ci",
    "hebrew": "general_ci",
    "hp8": "english_ci",
    "keybcs2": "general_ci",
    "koi8r": "general_ci",
    "koi8u": "general_ci",
    "latin1": "swedish_ci",
    "latin2": "general_ci",
    "latin5": "turkish_ci",
    "latin7": "general_ci",
    "macce": "general_ci",
    "macroman": "general_ci",
    "sjis": "japanese_ci",
    "swe7": "swedish_ci",
    "tis620": "thai_ci",
    "ucs2": "general_ci",
    "ujis": "japanese_ci",
    "utf16": "general_ci",
    "utf16le": "general_ci",
    "utf32": "general_ci",
    "utf8mb3": "general_ci",
    "utf8mb4": "general_ci",
}

_BYTES = {
    **dict.fromkeys(("big5", "cp932", "euckr", "gb2312", "gbk", "sjis", "ucs2"), 2),
    **dict.fromkeys(("eucjpms", "ujis", "utf8mb3"), 3),
    **dict.fromkeys(("gb18030", "utf16", "utf16le", "utf32", "utf8mb4"), 4),
}

_WIDTHS = {"ucs2": 2, "utf16": 2, "utf16le": 2, "utf32": 4}
"""Bytes of a unit in character sets that do not contain ASCII as it is."""
_UTF8 = frozenset(("utf8mb3", "utf8mb4"))

_UCA_CHARSETS = frozenset(("ucs2", "utf16", "utf32", "utf8mb3", "utf8mb4"))
_UCA_DEFAULT = "_uca1400_ai_ci"
_UCA = "uca1400_"


def normal_charset(name: str) -> str:
    """The name in lower case, ``utf8mb3`` for ``utf8``.

    >>> normal_charset("UTF8")
    'utf8mb3'
    """
    name = name.lower()
    return "utf8mb3" if name == "utf8" else name


def normal_collation(name: str) -> str:
    """The name in lower case, ``utf8mb3_…`` for ``utf8_…``.

    >>> normal_collation("utf8_bin")
    'utf8mb3_bin'
    """
    name = name.lower()
    return f"utf8mb3_{name[5:]}" if name.startswith("utf8_") else name


def charset_of(collation: str) -> str:
    """The character set of a collation, from its name; "" where it holds for several (MariaDB's ``uca1400_…``).

    >>> charset_of("latin1_german1_ci")
    'latin1'
    """
    return "" if collation.startswith(_UCA) else collation.partition("_")[0]


def collation_name(collation: str, charset: str) -> str:
    """The collation's full name on a column of that character set: adds the charset where the name leaves it out."""
    return f"{charset}_{collation}" if collation.startswith(_UCA) else collation


def default_collation(charset: str, context: StatementContext) -> str:
    """The collation that a character set alone stands for, in the session of the statement."""
    chosen = context.utf8mb4_collation
    if context.flavor == "mariadb":
        if charset == "utf8mb4" and chosen:
            return chosen
        if charset in _UCA_CHARSETS and chosen.endswith(_UCA_DEFAULT):
            return charset + _UCA_DEFAULT
    elif charset == "utf8mb4" and chosen:
        return chosen
    return built_in_collation(charset, context)


def built_in_collation(charset: str, context: StatementContext) -> str:
    """The default collation of a character set where no setting says otherwise."""
    if charset == "binary":
        return "binary"
    if charset == "utf8mb4" and is_mysql_8(context):
        return "utf8mb4_0900_ai_ci"
    return f"{charset}_{_DEFAULTS.get(charset, 'general_ci')}"


def is_mysql_8(context: StatementContext) -> bool:
    """Whether the server is MySQL 8.0 or later; where the version is not known, it is taken for one."""
    return context.flavor == "mysql" and not 0 < context.version < 80000


def binary_collation(charset: str) -> str:
    """The collation that compares bytes: what the BINARY attribute of a character column means."""
    return "binary" if charset == "binary" else f"{charset}_bin"


def maximum_bytes(charset: str) -> int:
    """Bytes of the widest character.

    >>> maximum_bytes("utf8mb4")
    4
    """
    return _BYTES.get(charset, 1)


def keeps_bytes(text: str, old: str, new: str) -> bool:
    """Whether *text* is of the same bytes in both character sets."""
    if old == new or (old in _UTF8 and new in _UTF8):
        return True
    return text.isascii() and old not in _WIDTHS and new not in _WIDTHS


def literal_bytes(digits: str) -> bytes:
    """The bytes of a binary literal, as ``0x41`` or ``0b1``."""
    if digits.startswith("0b"):
        bits = digits[2:]
        return int(bits or "0", 2).to_bytes((len(bits) + 7) // 8, "big")
    return bytes.fromhex(digits[2:] if len(digits) % 2 == 0 else f"0{digits[2:]}")


def decoded(raw: bytes, charset: str) -> str:
    """The text of a binary literal in that character set; leading zeros may be missing.

    Raises:
        UnicodeError: it is none.
    """
    width = _WIDTHS.get(charset, 1)
    padded = raw.rjust(-(-len(raw) // width) * width, b"\0")
    return conversion.decoded(padded, charset)
