"""Character sets of one byte a character, as the servers convert them: Python's codec and where the servers differ.

Taken from MySQL 5.7, 8.0 and 9.7 and MariaDB 10.11 and 11.8, which agree: ``CONVERT(CONVERT(byte USING set) USING utf8mb4)``
for each byte.
"""

from __future__ import annotations

__all__ = ["NONE", "SINGLE_BYTE", "characters"]

NONE = "\ufffd"
"""Stands where a byte has no character."""

# First byte and the characters from there on that replace the codec's.
_Changes = tuple[tuple[int, str], ...]

SINGLE_BYTE: dict[str, tuple[str, _Changes]] = {
    "latin1": ("cp1252", ((0x81, "\x81"), (0x8D, "\x8d"), (0x8F, "\x8f\x90"), (0x9D, "\x9d"))),
    "latin2": ("iso8859_2", ()),
    "latin5": ("iso8859_9", ()),
    "latin7": ("iso8859_13", ()),
    "greek": ("iso8859_7", ((0xA1, "\u02bd\u02bc"), (0xA4, NONE * 2), (0xAA, NONE))),
    "hebrew": ("iso8859_8", ((0xAF, "\u203e"),)),
    "cp1250": ("cp1250", ()),
    "cp1251": ("cp1251", ()),
    "cp1256": ("cp1256", tuple((byte, NONE) for byte in (0x8A, 0x8F, 0x98, 0x9A, 0x9F, 0xAA, 0xC0, 0xFF))),
    "cp1257": ("cp1257", ()),
    "cp850": ("cp850", ()),
    "cp852": ("cp852", ()),
    "cp866": ("cp866", ((0xFC, "\u207f\xb2"),)),
    "koi8r": ("koi8_r", ()),
    "koi8u": ("koi8_u", ((0x95, "\u2022"),)),
    "tis620": ("tis_620", ()),
    "macce": ("mac_latin2", ()),
    "macroman": ("mac_roman", ()),
    "hp8": ("hp_roman8", ()),
    "dec8": (
        "latin_1",
        (
            *((byte, NONE) for byte in (0xA4, 0xA6, 0xB4, 0xB8, 0xBE, 0xD0, 0xDE, 0xF0)),
            (0xA8, "\xa4"),
            (0xAC, NONE * 4),
            (0xD7, "\u0152"),
            (0xDD, "\u0178"),
            (0xF7, "\u0153"),
            (0xFD, "\xff" + NONE * 2),
        ),
    ),
    "armscii8": (
        "latin_1",
        (
            (0xA1, "\u2741\xa7\u0589)(\xbb\xab\u2014.\u055d,-\u055f\u2026\u055c\u055b\u055e"),
            (0xB2, "".join(chr(0x531 + i) + chr(0x561 + i) for i in range(38))),
            (0xFE, "\u2019'"),
        ),
    ),
    "geostd8": (
        "latin_1",
        (
            (0x80, f"\u20ac{NONE}\u201a{NONE}\u201e\u2026\u2020\u2021{NONE}\u2030{NONE}\u2039" + NONE * 5),
            (0x91, "\u2018\u2019\u201c\u201d\u2022\u2013\u2014" + NONE * 3 + "\u203a" + NONE * 4),
            (0xC0, "\u10d0\u10d1\u10d2\u10d3\u10d4\u10d5\u10d6\u10f1\u10d7\u10d8\u10d9\u10da\u10db\u10dc\u10f2\u10dd"),
            (0xD0, "\u10de\u10df\u10e0\u10e1\u10e2\u10f3\u10e3\u10e4\u10e5\u10e6\u10e7\u10e8\u10e9\u10ea\u10eb\u10ec"),
            (0xE0, "\u10ed\u10ee\u10f4\u10ef\u10f0\u10f5" + NONE * 23 + "\u2116" + NONE * 2),
        ),
    ),
    "keybcs2": (
        "cp437",
        (
            (0x80, "\u010c"),
            (0x83, "\u010f"),
            (0x85, "\u010e\u0164\u010d\u011b\u011a\u0139\xcd\u013e\u013a"),
            (0x8F, "\xc1"),
            (0x91, "\u017e\u017d"),
            (0x95, "\xd3\u016f\xda\xfd"),
            (0x9B, "\u0160\u013d\xdd\u0158\u0165"),
            (0xA4, "\u0148\u0147\u016e\xd4\u0161\u0159\u0155\u0154"),
        ),
    ),
    "swe7": (
        "ascii",
        (
            (0x40, "\xc9"),
            (0x5B, "\xc4\xd6\xc5\xdc"),
            (0x60, "\xe9"),
            (0x7B, "\xe4\xf6\xe5\xfc" + NONE),
        ),
    ),
}


def characters(charset: str) -> str:
    """The 256 characters of a set of :data:`SINGLE_BYTE`, :data:`NONE` where there is none."""
    codec, changes = SINGLE_BYTE[charset]
    found = [bytes([byte]).decode(codec, "replace") for byte in range(256)]
    for first, text in changes:
        found[first : first + len(text)] = text
    return "".join(found)
