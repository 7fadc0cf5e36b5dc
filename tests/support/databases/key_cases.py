"""Tables by the types and collations of their keys, with values that order differently by server, by collation, and in Python."""

# ruff: noqa: RUF001 - that letters look alike is the point

from __future__ import annotations

import random
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

__all__ = ["KeyCase", "collated", "key_cases", "set_texts"]

WORDS = (
    *("", "a", "A", "b", "B", "a b", "ab", "a!", "a-b", "Z", "z", "_", "~", "0", "10", "9", "a0", "a1", "aa", "AA"),
    *(
        "a\t",
        "a\t\t",
        "\t",
        "a\x01",
        "\x01",
        "ä",
        "Ä",
        "ae",
        "ß",
        "ss",
        "s",
        "sz",
        "é",
        "e",
        "ë",
        "E",
        "ÿ",
        "y",
        "ø",
        "o",
    ),
)
BEYOND_LATIN = (
    "ł",
    "l",
    "ж",
    "Ж",
    "日本",
    "日",
    "本",
    "ｱ",
    "ア",
    "あ",
    "が",
    "か",
    "ﾊﾟ",
    "€",
    "\u3000",
    "한",
    "ch",
    "cz",
)
EMOJI = ("😀", "😁", "😀a", "a😀", "\U0001f600\U0001f600", "\ud7ff", "\ue000", "\uffee", "\U0010fffd")
JAPANESE = ("日本", "日", "本", "ｱ", "ア", "あ", "が", "か", "ﾊ", "亜", "Ａ", "ａ", "\u3000", "α", "Я", "я")
CHINESE = ("日本", "中", "文", "啊", "阿", "一", "丁", "Ａ", "ａ", "\u3000", "α", "Я", "я", "あ", "ア", "丂", "齄")


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyCase:
    """A table whose key is over ``columns`` (name, space, type), with ``rows`` of SQL literals; those equal to one before are not inserted."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    unique: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the key's columns."""
        return tuple(column.partition(" ")[0] for column in self.columns)


def key_cases(name: str, seed: int = 1) -> Iterator[KeyCase]:
    """The cases that there are on the server of that name."""
    draw = random.Random(seed)
    yield from _numbers(draw)
    yield from _times(draw)
    yield from _texts(name, draw)
    yield from _bytes(draw)
    yield from _composites(draw)
    if name.startswith("mariadb"):
        yield from _mariadb(name, draw)


def set_texts(charset: str, maxlen: int) -> list[str]:
    """SQL literals of texts that may be some of a character set: all of one byte, or many characters; and some pairs of each."""
    draw = random.Random(charset)
    if maxlen == 1:
        codes = [f"{code:02x}" for code in range(1, 256)]
    else:
        last = 0x2FFFF if charset in ("utf8mb4", "utf16", "utf16le", "utf32", "gb18030") else 0xFFFF
        drawn = [draw.randrange(0x20, last) for _ in range(250)]
        # Most sets hold a few blocks only: ASCII, European letters, signs, kana, ideographs, Hangul, and forms of several widths.
        for first, end in ((0x20, 0x7F), (0xA0, 0x600), (0x2010, 0x2670), (0x3000, 0x3100), (0x4E00, 0x9FA0)):
            drawn += [draw.randrange(first, end) for _ in range(60)]
        drawn += [draw.randrange(first, end) for first, end in ((0xAC00, 0xD7A4), (0xFF01, 0xFFE6)) for _ in range(60)]
        letters = (*WORDS, *BEYOND_LATIN, *(chr(code) for code in drawn if not 0xD800 <= code < 0xE000))
        codes = [text.encode().hex() for text in letters if text]
    pairs = [draw.choice(codes) + draw.choice(codes) + "20" * draw.choice((0, 0, 1)) for _ in range(60)]
    if maxlen == 1:
        return [f"_{charset} x'{text}'" for text in ("", *codes, *pairs)]
    return [f"CONVERT(_utf8mb4 x'{text}' USING {charset})" for text in ("", *codes, *pairs)]


def collated(charset: str, collation: str, texts: Iterable[str]) -> KeyCase:
    """A key of VARCHAR with those texts."""
    return _one(f"VARCHAR(40) CHARACTER SET {charset} COLLATE {collation}", texts)


def _one(kind: str, values: Iterable[object]) -> KeyCase:
    return KeyCase(columns=(f"k {kind}",), rows=tuple((str(value),) for value in values))


def _numbers(draw: random.Random) -> Iterator[KeyCase]:
    for name, bits in (("TINYINT", 8), ("SMALLINT", 16), ("MEDIUMINT", 24), ("INT", 32), ("BIGINT", 64)):
        half = 2 ** (bits - 1)
        some = [draw.randrange(2 * half) for _ in range(40)]
        yield _one(name, [-half, 1 - half, -1, 0, 1, half - 1, *(number - half for number in some)])
        yield _one(f"{name} UNSIGNED", [0, 1, half - 1, half, half + 1, 2 * half - 1, *some])
    yield _one("INT", range(-30, 60))
    yield _one("BIGINT UNSIGNED", range(2**63 - 20, 2**63 + 20))
    # Most rows stand close together, some far away.
    yield _one("BIGINT", [*range(60), *(2**60 + 2**number for number in range(20))])
    yield _one("DECIMAL(5,2)", [number / 4 for number in range(-40, 40)])
    yield _one("DECIMAL(65,30)", [f"{sign}{10**number}.{number:030}" for number in range(20) for sign in ("", "-")])
    yield _one("DECIMAL(38,10)", [f"{sign}{10**number}.{number:010}" for number in range(20) for sign in ("", "-")])
    yield _one("BIT(1)", [0, 1])
    yield _one("BIT(64)", [0, 1, 2**63 - 1, 2**63, 2**64 - 1, *(draw.randrange(2**64) for _ in range(20))])
    yield _one("BIT(9)", range(0, 512, 7))
    yield _one("YEAR", [0, *range(1901, 1911), *range(1965, 1975), *range(2000, 2010), 2155])


def _times(draw: random.Random) -> Iterator[KeyCase]:
    days = [f"'{draw.randint(1, 9999):04}-{draw.randint(1, 12):02}-{draw.randint(1, 28):02}'" for _ in range(30)]
    yield _one("DATE", ["'0001-01-01'", "'9999-12-31'", "'1970-01-01'", "'1969-12-31'", *days])
    moments = [
        f"{day[:-1]} {draw.randint(0, 23):02}:{draw.randint(0, 59):02}:59.{draw.randint(0, 999999):06}'" for day in days
    ]
    yield _one("DATETIME", moments)
    yield _one("DATETIME(6)", [*moments, *(f"'2020-02-02 02:02:02.{number:06}'" for number in range(20))])
    stamps = [f"FROM_UNIXTIME({draw.randint(1, 2**31 - 1)}.{draw.randint(0, 999999):06})" for _ in range(30)]
    yield _one("TIMESTAMP(6)", ["FROM_UNIXTIME(1)", "FROM_UNIXTIME(2147483647)", *stamps])
    yield _one("TIMESTAMP", stamps)
    lengths = [draw.randint(-838 * 3600, 838 * 3600) for _ in range(30)]
    yield _one("TIME", [f"SEC_TO_TIME({length})" for length in (-1, 0, 1, *lengths)])
    yield _one("TIME(6)", [f"SEC_TO_TIME({length}.{abs(length) % 1000000:06})" for length in (-1, 0, 1, *lengths)])


def _texts(name: str, draw: random.Random) -> Iterator[KeyCase]:
    unicode = (*WORDS, *BEYOND_LATIN, *EMOJI)
    short = tuple(word for word in unicode if not word or max(word) <= "\uffff")
    kinds = [
        ("utf8mb4", collation, unicode)
        for collation in ("general_ci", "bin", "unicode_ci", "unicode_520_ci", "swedish_ci")
    ]
    if name in ("mysql8", "mysql9"):
        kinds += [
            ("utf8mb4", each, unicode)
            for each in ("0900_ai_ci", "0900_as_cs", "0900_as_ci", "ja_0900_as_cs", "de_pb_0900_ai_ci")
        ]
        kinds.append(("utf8mb4", "0900_bin", unicode))
    if name.startswith("mariadb"):
        kinds += [("utf8mb4", each, unicode) for each in ("general_nopad_ci", "nopad_bin", "unicode_nopad_ci")]
        kinds.append(("latin1", "swedish_nopad_ci", WORDS))
    if name in ("mariadb1011", "mariadb118"):
        kinds += [("utf8mb4", each, unicode) for each in ("uca1400_ai_ci", "uca1400_as_cs", "uca1400_nopad_as_ci")]
        kinds.append(("utf8mb3", "uca1400_ai_ci", short))
    kinds += [
        ("utf8mb3", "general_ci", short),
        ("utf8mb3", "bin", short),
        ("ucs2", "general_ci", short),
        ("utf16", "unicode_ci", unicode),
    ]
    kinds += [("latin1", each, WORDS) for each in ("swedish_ci", "german2_ci", "bin", "german1_ci")]
    kinds += [("sjis", each, (*WORDS[:20], *JAPANESE)) for each in ("japanese_ci", "bin")]
    kinds += [("cp932", "japanese_ci", (*WORDS[:20], *JAPANESE)), ("ujis", "japanese_ci", (*WORDS[:20], *JAPANESE))]
    kinds += [("gbk", each, (*WORDS[:20], *CHINESE)) for each in ("chinese_ci", "bin")]
    kinds += [
        ("big5", "chinese_ci", ("a", "B", "日", "中", "一")),
        ("ascii", "general_ci", WORDS[:25]),
        ("cp1251", "general_ci", ("ж", "Ж", "a", "Я")),
    ]
    if name.startswith("mysql"):
        kinds.append(("gb18030", "chinese_ci", (*unicode[:20], *CHINESE, "😀")))
    for number, (charset, collation, words) in enumerate(kinds):
        more = [draw.choice(words) + draw.choice(words) + " " * draw.choice((0, 0, 0, 1)) for _ in range(30)]
        kind = ("VARCHAR(40)", "CHAR(20)")[number % 3 == 2]
        texts = [
            f"CONVERT(_utf8mb4 x'{text.encode('utf-8', 'replace').hex()}' USING {charset})" for text in (*words, *more)
        ]
        yield _one(f"{kind} CHARACTER SET {charset} COLLATE {charset}_{collation}", texts)
        if number % 3 != 2 and "0900" in collation:
            yield _one(f"CHAR(20) CHARACTER SET {charset} COLLATE {charset}_{collation}", texts)


def _bytes(draw: random.Random) -> Iterator[KeyCase]:
    some = ["", "00", "0000", "61", "6100", "6120", "20", "ff", "ff00", "fe", "7f", "80", "27", "5c", "2561"]
    some += [draw.randbytes(draw.randint(1, 8)).hex() for _ in range(30)]
    yield _one("VARBINARY(16)", [f"x'{text}'" for text in some])
    yield _one("BINARY(8)", [f"x'{text}'" for text in some])
    yield _one("BINARY(16)", [f"x'{draw.randbytes(16).hex()}'" for _ in range(40)])


def _composites(draw: random.Random) -> Iterator[KeyCase]:
    def pairs(left: Iterable[str], right: Iterable[str]) -> tuple[tuple[str, ...], ...]:
        return tuple((one, other) for one in left for other in right)

    numbers = [str(number) for number in range(9)]
    words = ["'a'", "'A '", "'b'", "'B!'", "''"]
    yield KeyCase(columns=("a INT", "b INT UNSIGNED"), rows=pairs(numbers, numbers))
    # One tenant has nearly all of the rows.
    yield KeyCase(columns=("a INT", "b BIGINT"), rows=(*pairs("5", map(str, range(80))), *pairs(numbers, "7")))
    yield KeyCase(columns=("b VARCHAR(9) CHARACTER SET latin1", "a TINYINT"), rows=pairs(words, numbers))
    yield KeyCase(
        columns=("a DATE", "b VARCHAR(9) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin"),
        rows=pairs(["'2020-01-01'", "'2020-01-02'"], words),
    )
    yield KeyCase(
        columns=("e ENUM('z','b','a','ä','m')", "id INT"), rows=pairs(["'z'", "'b'", "'a'", "'ä'", "'m'"], numbers)
    )
    yield KeyCase(columns=("e ENUM('z','b','a')",), rows=(("'z'",), ("'b'",), ("'a'",)))
    three = tuple((one, other, third) for one in numbers[:4] for other in words for third in numbers[:4])
    yield KeyCase(
        columns=("a BIGINT UNSIGNED", "w CHAR(5) CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci", "c SMALLINT"),
        rows=three,
    )
    yield KeyCase(columns=("a INT NOT NULL", "`b``c` INT NOT NULL"), rows=pairs(numbers, numbers[:4]), unique=True)
    yield KeyCase(columns=("`%s` INT",), rows=tuple((number,) for number in numbers))


def _mariadb(name: str, draw: random.Random) -> Iterator[KeyCase]:
    addresses = [
        "::",
        "::1",
        "ffff::",
        "::ffff:1.2.3.4",
        "2001:db8::1",
        *(f"{draw.randrange(65536):x}::{draw.randrange(65536):x}" for _ in range(20)),
    ]
    yield _one("INET6", [f"'{address}'" for address in addresses])
    if name in ("mariadb1011", "mariadb118"):
        ids = [uuid.UUID(bytes=draw.randbytes(16), version=draw.choice((1, 3, 4, 5))) for _ in range(40)]
        ids += [uuid.UUID(int=draw.getrandbits(128)) for _ in range(20)]
        yield _one("UUID", [f"'{one}'" for one in (*ids, uuid.UUID(int=0), uuid.UUID(int=2**128 - 1))])
        yield _one(
            "INET4", [f"'{draw.randrange(256)}.{draw.randrange(256)}.0.{draw.randrange(256)}'" for _ in range(30)]
        )
