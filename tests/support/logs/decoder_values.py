"""Column types with boundary and random values, and what the server's own text of a value must decode to."""

from __future__ import annotations

import random
import struct
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

__all__ = [
    "CHARSETS",
    "UNICODE",
    "Case",
    "cases",
    "charset_cases",
    "mariadb_cases",
    "temporal_cases",
    "vector_cases",
]

Values = Sequence[Any]
EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - DATETIME has no zone
ZERO_DATE = "0000-00-00"


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A column type; ``values`` are parameters of an INSERT, or SQL where they are bytes beginning with b"sql:".

    ``read`` selects the value exactly; ``expect`` makes of that what the decoder must give. ``text``: the same with the
    decoder's ``as_text``.
    """

    type: str
    values: Values
    read: str = "CAST(v AS CHAR)"
    expect: Callable[[Any], Any] = str
    text: Callable[[Any], Any] | None = None


def _integers(draw: random.Random) -> list[Case]:
    found = []
    for name, bits in (("TINYINT", 8), ("SMALLINT", 16), ("MEDIUMINT", 24), ("INT", 32), ("BIGINT", 64)):
        low, high = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
        signed = [low, low + 1, -1, 0, 1, high - 1, high, *(draw.randint(low, high) for _ in range(20))]
        unsigned = [0, 1, high, high + 1, 2**bits - 1, *(draw.randint(0, 2**bits - 1) for _ in range(20))]
        found.append(Case(type=name, values=signed, expect=int))
        found.append(Case(type=f"{name} UNSIGNED", values=unsigned, expect=Decimal if bits == 64 else int))
    found.append(Case(type="TINYINT(1)", values=[0, 1, -128, 127], expect=int))
    found.append(Case(type="YEAR", values=[0, 1901, 1970, 2000, 2155], expect=int, text=int))
    return found


def _floats(draw: random.Random) -> list[Case]:
    single = ["0", "-0", "1.5", "3.4028234663852886e38", "-1.17549435e-38", "1e-45", "0.1"]
    double = ["0", "-0", "0.1", "1.7976931348623157e308", "-2.2250738585072014e-308", "5e-324"]
    single += [repr(struct.unpack("<f", struct.pack("<f", draw.uniform(-1e6, 1e6)))[0]) for _ in range(20)]
    double += [repr(draw.uniform(-1, 1) * 10.0 ** draw.randint(-300, 300)) for _ in range(40)]
    # Adding 0e0 would lose the sign of -0.
    exact = {"read": "v * 1e0", "expect": float}
    return [
        Case(type="FLOAT", values=[_sql(f"{v}e0" if "e" not in v else v) for v in single], **exact),
        Case(type="DOUBLE", values=[_sql(f"{v}e0" if "e" not in v else v) for v in double], **exact),
        Case(type="FLOAT(10,3)", values=[1.5, -0.125, 1234567.891], **exact),
        Case(type="DOUBLE(20,4)", values=[1.5, -0.125, 1234567.8912], **exact),
    ]


def _decimals(draw: random.Random) -> list[Case]:
    found = []
    shapes = [(1, 0), (1, 1), (9, 0), (9, 9), (10, 0), (10, 2), (12, 2), (18, 0), (18, 9), (19, 10), (20, 0), (27, 18)]
    shapes += [(38, 0), (38, 38 - 8), (38, 10), (39, 0), (65, 0), (65, 30), (40, 30), (30, 30)]
    for digits, scale in shapes:
        most = 10**digits - 1
        numbers = [0, 1, -1, most, -most, 10 ** (digits - 1), -(10 ** (digits // 2))]
        numbers += [draw.randint(-most, most) for _ in range(12)] + [draw.randint(-1000, 1000) for _ in range(3)]
        texts = [str(Decimal(n if abs(n) <= most else most).scaleb(-scale, _wide())) for n in numbers]
        expect = str if digits > 38 else Decimal
        found.append(Case(type=f"DECIMAL({digits},{scale})", values=texts, expect=expect))
    return found


def _wide() -> Any:
    from decimal import Context

    return Context(prec=100)


def _binary(draw: random.Random) -> list[Case]:
    some = [b"", b"\0", b"\0\0", b"a", b"a ", b"\xff\x00\xfe", draw.randbytes(16), draw.randbytes(17)]
    found = [
        Case(type="BIT(1)", values=[0, 1], read="v + 0", expect=bool),
        Case(type="BINARY(1)", values=[b"\0", b"a", b""], read="HEX(v)", expect=bytes.fromhex),
        Case(type="BINARY(20)", values=[*some, b"x" * 20], read="HEX(v)", expect=bytes.fromhex),
        Case(type="BINARY(255)", values=some, read="HEX(v)", expect=bytes.fromhex),
        Case(type="VARBINARY(255)", values=[*some, draw.randbytes(255)], read="HEX(v)", expect=bytes.fromhex),
        Case(type="VARBINARY(256)", values=[*some, draw.randbytes(256)], read="HEX(v)", expect=bytes.fromhex),
        Case(
            type="GEOMETRY",
            values=[_sql("ST_GeomFromText('POINT(1 2)')"), _sql("ST_GeomFromText('LINESTRING(0 0,1 1,2 5)', 4326)")],
            read="HEX(v)",
            expect=bytes.fromhex,
        ),
        Case(type="POINT", values=[_sql("ST_GeomFromText('POINT(-1.5 2e300)')")], read="HEX(v)", expect=bytes.fromhex),
    ]
    for bits in (2, 8, 9, 31, 63, 64):
        size = (bits + 7) // 8
        numbers = [0, 1, 2**bits - 1, 2 ** (bits - 1), *(draw.getrandbits(bits) for _ in range(5))]
        found.append(
            Case(type=f"BIT({bits})", values=numbers, read="v + 0", expect=lambda n, s=size: int(n).to_bytes(s, "big"))
        )
    for name, size in (("TINYBLOB", 255), ("BLOB", 65535), ("MEDIUMBLOB", 70000), ("LONGBLOB", 300000)):
        found.append(Case(type=name, values=[*some, draw.randbytes(size)], read="HEX(v)", expect=bytes.fromhex))
    return found


def _date(text: str) -> date | None:
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None


def _datetime(text: str) -> datetime | None:
    head, _, fraction = text.partition(".")
    try:
        whole = datetime.strptime(head, "%Y-%m-%d %H:%M:%S")  # noqa: DTZ007 - DATETIME has no zone
    except ValueError:
        return None
    return whole + timedelta(microseconds=int((fraction + "000000")[:6]))


def _timestamp(text: str) -> datetime | None:
    found = _datetime(text)
    return found and found.replace(tzinfo=ZoneInfo("UTC"))


def _time_us(text: str) -> int:
    sign, text = (-1, text[1:]) if text.startswith("-") else (1, text)
    head, _, fraction = text.partition(".")
    hours, minutes, seconds = map(int, head.split(":"))
    return sign * (((hours * 60 + minutes) * 60 + seconds) * 1_000_000 + int((fraction + "000000")[:6]))


def _temporal(draw: random.Random) -> list[Case]:
    days = [ZERO_DATE, "2024-00-00", "2024-05-00", "0000-05-01", "2023-02-31", "2024-02-29", "2023-02-29", "1900-02-29"]
    days += [
        "2000-02-29",
        "0001-01-01",
        "1000-01-01",
        "1969-12-31",
        "1970-01-01",
        "9999-12-31",
        "2023-04-31",
        "2023-12-31",
    ]
    days += [str(date.fromordinal(draw.randint(1, 3652059))) for _ in range(40)]
    found = [Case(type="DATE", values=days, expect=_date, text=str)]
    for digits in range(7):
        ends = ["." + "9" * digits, "." + "0" * digits, "." + "".join(draw.choices("0123456789", k=digits))]
        tails = [end if digits else "" for end in ends]
        clocks = ["00:00:00", "23:59:59", f"{draw.randint(0, 23)}:{draw.randint(0, 59)}:{draw.randint(0, 59)}"]
        stamps = [f"{day} {clock}{tail}" for day in days for clock, tail in zip(clocks, tails, strict=True)]
        found.append(Case(type=f"DATETIME({digits})", values=stamps, expect=_datetime, text=str))
        seconds = [1, 2**31 - 1, *(draw.randint(1, 2**31 - 1) for _ in range(20))]
        stamps = [f"{EPOCH + timedelta(seconds=s)}{tail}" for s in seconds for tail in tails]
        zero = f"{ZERO_DATE} 00:00:00"
        found.append(Case(type=f"TIMESTAMP({digits}) NULL", values=[zero, *stamps], expect=_timestamp, text=str))
        clocks = ["00:00:00", "-00:00:00", "838:59:59", "-838:59:59", "-00:00:01", "24:00:00", "12:34:56"]
        clocks += [
            f"{draw.choice(('', '-'))}{draw.randint(0, 838)}:{draw.randint(0, 59)}:{draw.randint(0, 58)}"
            for _ in range(9)
        ]
        times = [clock + ("" if "838:59:59" in clock else tail) for clock in clocks for tail in tails]
        found.append(Case(type=f"TIME({digits})", values=times, expect=_time_us, text=str))
    return found


def _members(draw: random.Random) -> list[Case]:
    small = ["a", "b,c".replace(",", ""), "it''s", "ä", ""]
    many = [f"m{i}" for i in range(300)]
    bits = [f"s{i}" for i in range(64)]
    sets = [",".join(draw.sample(bits, draw.randint(0, 64))) for _ in range(20)]
    listed = ",".join(f"'{m}'" for m in many)
    return [
        Case(
            type="ENUM({}) CHARACTER SET utf8mb4".format(",".join(f"'{m}'" for m in small)),
            values=["a", "bc", "it's", "ä", "", "no such member", _sql("0")],
        ),
        Case(type=f"ENUM({listed})", values=["m0", "m254", "m255", "m256", "m299", _sql("0")]),
        Case(type="SET('x','y','z')", values=["", "x", "z,x", "x,y,z"]),
        *(
            Case(
                type="SET({})".format(",".join(f"'{m}'" for m in bits[:count])),
                values=["", bits[0], bits[count - 1], ",".join(bits[:count])],
            )
            for count in (8, 9, 17, 25, 33)
        ),
        Case(type="SET({})".format(",".join(f"'{m}'" for m in bits)), values=["", bits[63], ",".join(bits), *sets]),
    ]


CHARSETS = (
    *(
        "armscii8",
        "cp1250",
        "cp1251",
        "cp1256",
        "cp1257",
        "cp850",
        "cp852",
        "cp866",
        "dec8",
        "geostd8",
        "greek",
        "hebrew",
    ),
    *(
        "hp8",
        "keybcs2",
        "koi8r",
        "koi8u",
        "latin1",
        "latin2",
        "latin5",
        "latin7",
        "macce",
        "macroman",
        "swe7",
        "tis620",
    ),
    *(
        "big5",
        "cp932",
        "eucjpms",
        "euckr",
        "gb2312",
        "gbk",
        "sjis",
        "ujis",
        "ucs2",
        "utf16",
        "utf16le",
        "utf32",
        "gb18030",
    ),
    *("ascii", "utf8", "utf8mb4"),
)
UNICODE = {"ucs2", "utf16", "utf16le", "utf32", "gb18030", "utf8", "utf8mb4"}


def charset_cases(draw: random.Random, charset: str, characters: str = "") -> list[Case]:
    """Texts of a character set: of its *characters* of one byte and some Asian ones, or random ones of Unicode."""
    if charset in UNICODE:
        top = 0xFFFF if charset in {"ucs2", "utf8"} else 0x10FFFF
        chars = [chr(c) for c in (draw.randint(1, top) for _ in range(2000)) if not 0xD800 <= c <= 0xDFFF]
        texts = ["".join(chars[i : i + 20]) for i in range(0, len(chars), 20)]
    else:
        # What the set does not have becomes question marks on the way in.
        texts = [characters[first : first + 20] for first in range(0, len(characters), 20)]
        texts += [
            "".join(chr(draw.randint(first, first + 90)) for _ in range(20)) for first in (0x4E00, 0xAC00, 0x3041)
        ]
    plain = ["", "a", " leading", "mixed Ascii 123", "x" * 60]
    suffix = f"CHARACTER SET {charset}"
    return [
        Case(type=f"CHAR(60) {suffix}", values=[*plain, "trailing  ", *texts]),
        Case(type=f"VARCHAR(60) {suffix}", values=[*plain, "trailing  ", *texts]),
        Case(type=f"VARCHAR(300) {suffix}", values=[*plain, "y" * 300, *texts]),
        Case(type=f"TEXT {suffix}", values=[*plain, "z" * 5000, *texts]),
        Case(type=f"ENUM('one','two') {suffix}", values=["one", "two"]),
    ]


def _text(draw: random.Random) -> list[Case]:
    return [
        *(case for charset in ("ascii", "utf8mb4", "latin1") for case in charset_cases(draw, charset, "abc")),
        Case(type="CHAR(255) CHARACTER SET utf8mb4", values=["", "\N{GRINNING FACE}" * 255, "é" * 128]),
        Case(type="TINYTEXT CHARACTER SET utf8mb4", values=["", "é" * 127]),
        Case(type="MEDIUMTEXT CHARACTER SET utf8mb4", values=["", "é" * 40000]),
        Case(type="LONGTEXT CHARACTER SET utf8mb4", values=["", "é" * 70000]),
        Case(type="VARCHAR(0) CHARACTER SET utf8mb4", values=[""]),
    ]


def mariadb_cases(seed: int) -> list[Case]:
    """Types that only MariaDB has: addresses, UUIDs, columns that it keeps compressed."""
    draw = random.Random(seed)
    ids = [str(uuid.UUID(int=n)) for n in (0, 1, 2**128 - 1, 0x123E4567E89B12D3A456426655440000)]
    ids += [str(uuid.UUID(int=draw.getrandbits(128), version=draw.choice((1, 3, 4, 5)))) for _ in range(20)]
    ids += [str(uuid.UUID(int=draw.getrandbits(128))) for _ in range(20)]
    six = ["::", "::1", "::1.2.3.4", "::ffff:192.0.2.1", "1::", "0:1::", "1:0:2:3:4:5:6:0", "::fffe:1.2.3.4", "::1:0:0"]
    six += [":".join(f"{draw.choice((0, 0, draw.getrandbits(16))):x}" for _ in range(8)) for _ in range(200)]
    four = [
        "0.0.0.0",
        "255.255.255.255",
        "1.2.3.0",
        *(".".join(str(draw.randrange(256)) for _ in range(4)) for _ in "abc"),
    ]
    found = [Case(type="UUID", values=ids), Case(type="INET6", values=six), Case(type="INET4", values=four)]
    texts = ["", "a", " ", "é" * 60, "x" * 127, "".join(map(chr, draw.choices(range(0x20, 0xD7FF), k=300)))]
    raw = [b"", b"\0", b"\x8a", draw.randbytes(120), bytes(250), b"".join(draw.choices((b"ab", b"c"), k=120))]
    for name in ("TINYTEXT", "VARCHAR(250)", "VARCHAR(400)", "TEXT", "MEDIUMTEXT", "LONGTEXT"):
        fitting = [t for t in texts if name != "TINYTEXT" or len(t.encode()) < 250]
        fitting = [t for t in fitting if "250" not in name or len(t) <= 250]
        longer = (
            ["é" * 30000, "".join(draw.choices("abc", k=65000))] if name.endswith("TEXT") and name != "TINYTEXT" else []
        )
        found.append(Case(type=f"{name} COMPRESSED CHARACTER SET utf8mb4", values=[*fitting, *longer]))
    found.append(Case(type="VARCHAR(200) COMPRESSED CHARACTER SET latin1", values=["", "é", "é" * 200]))
    found.append(Case(type="VARCHAR(200) COMPRESSED CHARACTER SET ucs2", values=["", "é", "é" * 200]))
    for name in ("TINYBLOB", "VARBINARY(250)", "VARBINARY(256)", "BLOB", "MEDIUMBLOB", "LONGBLOB"):
        longer = [draw.randbytes(60000), bytes(65000)] if name in ("BLOB", "MEDIUMBLOB", "LONGBLOB") else []
        longer += [bytes(300000)] if name in ("MEDIUMBLOB", "LONGBLOB") else []
        found.append(Case(type=f"{name} COMPRESSED", values=[*raw, *longer], read="HEX(v)", expect=bytes.fromhex))
    return found


def vector_cases(seed: int, function: str) -> list[Case]:
    """VECTOR, whose texts the server's *function* reads."""
    draw = random.Random(seed)
    found = []
    for size in (1, 3, 63, 64, 500):
        values = [[0.0] * size, [-1.5] * size, *([draw.uniform(-1e9, 1e9) for _ in range(size)] for _ in range(5))]
        written = [_sql(f"{function}('[{','.join(f'{number:.9g}' for number in each)}]')") for each in values]
        found.append(Case(type=f"VECTOR({size})", values=written, read="HEX(v)", expect=bytes.fromhex))
    return found


def temporal_cases(seed: int) -> list[Case]:
    """DATE, TIME, DATETIME and TIMESTAMP."""
    return _temporal(random.Random(seed))


def _sql(text: str) -> bytes:
    return b"sql:" + text.encode()


def cases(seed: int) -> list[Case]:
    """All types but JSON, with values drawn from *seed*."""
    draw = random.Random(seed)
    makers = (_integers, _floats, _decimals, _binary, _temporal, _members, _text)
    return [case for make in makers for case in make(draw)]
