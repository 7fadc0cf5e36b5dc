"""Hypothesis strategies of columns and of the bytes of their values, as they stand in row images."""

from __future__ import annotations

import struct
from typing import Any

from hypothesis import strategies as st

from historian.schema.snapshots import ColumnType
from logs.row_events import WireType, wire_decimal

__all__ = ["json_bytes", "wire_columns"]

INTEGERS = (("tinyint", 1, 1), ("smallint", 2, 2), ("mediumint", 9, 3), ("int", 3, 4), ("bigint", 8, 8))
MEMBERS = tuple(f"m{number}" for number in range(300))

Column = tuple[WireType, "st.SearchStrategy[bytes]"]


def _column(code: int, metadata: bytes, values: st.SearchStrategy[bytes], **kind: Any) -> Column:
    return WireType(type=ColumnType(**kind), code=code, metadata=metadata, encode=bytes), values


def _sized(size: int) -> st.SearchStrategy[bytes]:
    return st.binary(min_size=size, max_size=size)


def _prefixed(width: int, values: st.SearchStrategy[bytes]) -> st.SearchStrategy[bytes]:
    return values.map(lambda data: len(data).to_bytes(width, "little") + data)


@st.composite
def _integer(draw: st.DrawFn) -> Column:
    name, code, size = draw(st.sampled_from(INTEGERS))
    return _column(code, b"", _sized(size), name=name, unsigned=draw(st.booleans()))


@st.composite
def _decimal(draw: st.DrawFn) -> Column:
    precision = draw(st.integers(1, 65))
    scale = draw(st.integers(0, min(30, precision)))
    kind = wire_decimal(precision, scale)
    most = 10**precision - 1
    edges = st.sampled_from([0, 1, -1, most, -most])
    numbers = (edges | st.integers(-most, most)).map(lambda n: _decimal_bytes(n, precision, scale))
    return WireType(type=kind.type, code=246, metadata=kind.metadata, encode=bytes), numbers


def _decimal_bytes(number: int, precision: int, scale: int) -> bytes:
    whole, text, out, at = precision - scale, f"{abs(number):0{precision}d}", b"", 0
    for size in (whole % 9, *[9] * (whole // 9), *[9] * (scale // 9), scale % 9):
        out += int(text[at : at + size] or "0").to_bytes((0, 1, 1, 2, 2, 3, 3, 4, 4, 4)[size], "big")
        at += size
    out = bytes(byte ^ 0xFF for byte in out) if number < 0 else out
    return bytes([out[0] ^ 0x80]) + out[1:]


@st.composite
def _text(draw: st.DrawFn) -> Column:
    charset = draw(st.sampled_from(["utf8mb4", "ascii", "latin1", None]))
    length = draw(st.sampled_from([2, 63, 64, 255, 256, 700]))
    longest = length * (4 if charset == "utf8mb4" else 1)
    values: st.SearchStrategy[bytes]
    if charset is None:
        values = st.binary(max_size=length)
    else:
        codec = {"utf8mb4": "utf-8", "ascii": "ascii", "latin1": "cp1252"}[charset]
        values = st.text(st.characters(codec=codec), max_size=length).map(lambda text: text.encode(codec))
    name, width = ("varchar" if charset else "varbinary"), (1 if longest < 256 else 2)
    bounded = _prefixed(width, values)
    return _column(15, struct.pack("<H", longest), bounded, name=name, length=length, charset=charset)


@st.composite
def _blob(draw: st.DrawFn) -> Column:
    width = draw(st.integers(1, 4))
    name = ("tinyblob", "blob", "mediumblob", "longblob")[width - 1]
    values = st.binary(max_size=100) | st.integers(0, 255).map(bytes)
    return _column(252, bytes([width]), _prefixed(width, values), name=name)


@st.composite
def _binary(draw: st.DrawFn) -> Column:
    longest = draw(st.integers(1, 255))
    values = st.binary(max_size=longest).map(lambda data: data.rstrip(b"\0"))
    return _column(254, bytes([254, longest]), _prefixed(1, values), name="binary", length=longest)


@st.composite
def _bit(draw: st.DrawFn) -> Column:
    bits = draw(st.integers(1, 64))
    values = st.integers(0, 2**bits - 1).map(lambda number: number.to_bytes((bits + 7) // 8, "big"))
    return _column(16, bytes([bits % 8, bits // 8]), values, name="bit", length=bits)


@st.composite
def _labels(draw: st.DrawFn) -> Column:
    if draw(st.booleans()):
        count = draw(st.sampled_from([1, 2, 255, 256, 300]))
        width = 1 if count < 256 else 2
        values = st.integers(0, count).map(lambda number: number.to_bytes(width, "little"))
        return _column(254, bytes([247, width]), values, name="enum", labels=MEMBERS[:count], charset="utf8mb4")
    count = draw(st.integers(1, 64))
    width = next(width for width in (1, 2, 3, 4, 8) if 8 * width >= count)
    values = st.integers(0, 2**count - 1).map(lambda number: number.to_bytes(width, "little"))
    return _column(254, bytes([248, width]), values, name="set", labels=MEMBERS[:count], charset="utf8mb4")


def _fractions(digits: int) -> st.SearchStrategy[bytes]:
    size = (digits + 1) // 2
    most = 10 ** (2 * size) - 1
    return st.integers(0, most).map(lambda number: number.to_bytes(size, "big"))


@st.composite
def _temporal(draw: st.DrawFn) -> Column:
    """Dates with any month and day, those that the calendar lacks included."""
    name = draw(st.sampled_from(["date", "datetime", "timestamp", "time", "year"]))
    digits = draw(st.integers(0, 6))
    clock = st.tuples(st.integers(0, 23), st.integers(0, 59), st.integers(0, 59))
    days = st.tuples(st.integers(0, 9999), st.integers(0, 12), st.integers(0, 31))
    if name == "year":
        return _column(13, b"", _sized(1), name=name)
    if name == "date":
        packed = days.map(lambda d: (d[0] << 9 | d[1] << 5 | d[2]).to_bytes(3, "little"))
        return _column(10, b"", packed, name=name)
    if name == "timestamp":
        seconds = st.just(bytes(4)) | st.integers(0, 2**31 - 1).map(lambda number: number.to_bytes(4, "big"))
        return _column(
            17, bytes([digits]), st.builds(bytes.__add__, seconds, _fractions(digits)), name=name, fraction=digits
        )
    if name == "datetime":
        packed = st.builds(
            lambda d, c: (1 << 39 | (d[0] * 13 + d[1]) << 22 | d[2] << 17 | c[0] << 12 | c[1] << 6 | c[2]).to_bytes(
                5, "big"
            ),
            days,
            clock,
        )
        return _column(
            18, bytes([digits]), st.builds(bytes.__add__, packed, _fractions(digits)), name=name, fraction=digits
        )
    size = 3 + (digits + 1) // 2
    times = st.builds(
        lambda hours, c, part, sign: (
            (1 << (8 * size - 1))
            + sign * int.from_bytes((hours << 12 | c[1] << 6 | c[2]).to_bytes(3, "big") + part, "big")
        ).to_bytes(size, "big"),
        st.integers(0, 838),
        clock,
        _fractions(digits),
        st.sampled_from([1, -1]),
    )
    return _column(19, bytes([digits]), times, name=name, fraction=digits)


@st.composite
def _float(draw: st.DrawFn) -> Column:
    single = draw(st.booleans())
    size = 4 if single else 8
    finite = st.floats(width=8 * size, allow_nan=False).map(struct.Struct("<f" if single else "<d").pack)
    return _column(4 if single else 5, bytes([size]), finite, name="float" if single else "double")


def _documents() -> st.SearchStrategy[Any]:
    edges = st.sampled_from([-(2**15), 2**15, 2**16, -(2**31), 2**31, 2**32, -(2**63), 2**63, 2**64 - 1])
    numbers = st.integers(-(2**63), 2**64 - 1) | edges | st.integers(-5, 5) | st.sampled_from([0.5, -1.25, 3.0, 1e9])
    words = st.text(st.characters(codec="utf-8", exclude_characters="\x7f"), max_size=9) | st.integers(120, 140).map(
        "x".__mul__
    )
    return st.recursive(
        st.none() | st.booleans() | numbers | words,
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(words, inner, max_size=4),
        max_leaves=12,
    )


def _json() -> st.SearchStrategy[Column]:
    return st.just(_column(245, b"\4", _prefixed(4, _documents().map(json_bytes)), name="json"))


def json_bytes(document: Any) -> bytes:
    """A document in MySQL's binary form, in which containers under 64 KB are small."""
    kind, data = _json_value(document)
    return bytes([kind]) + data


def _json_value(document: Any) -> tuple[int, bytes]:
    if document is None or isinstance(document, bool):
        return 4, bytes([0 if document is None else 1 if document else 2, 0])
    if isinstance(document, int):
        for kind, (low, high, size) in enumerate(INTEGER_KINDS, 5):
            if low <= document <= high:
                return kind, document.to_bytes(size, "little", signed=low < 0)
    if isinstance(document, float):
        return 11, struct.pack("<d", document)
    if isinstance(document, str):
        data = document.encode()
        length, out = len(data), b""
        while length > 127:
            out += bytes([length & 127 | 128])
            length >>= 7
        return 12, out + bytes([length]) + data
    return _json_container(document)


INTEGER_KINDS = (
    (-(2**15), 2**15 - 1, 2),
    (0, 2**16 - 1, 2),
    (-(2**31), 2**31 - 1, 4),
    (0, 2**32 - 1, 4),
    (-(2**63), 2**63 - 1, 8),
    (0, 2**64 - 1, 8),
)


def _json_container(document: Any) -> tuple[int, bytes]:
    is_object = isinstance(document, dict)
    names = sorted((name.encode() for name in document), key=lambda name: (len(name), name)) if is_object else []
    items = [document[name.decode()] for name in names] if is_object else document
    at = 4 + 4 * len(names) + 3 * len(items)
    head, tail = b"", b""
    for name in names:
        head += struct.pack("<HH", at + len(tail), len(name))
        tail += name
    for item in items:
        kind, data = _json_value(item)
        head += bytes([kind])
        if kind in (4, 5, 6):
            head += data
        else:
            head += struct.pack("<H", at + len(tail))
            tail += data
    return (0 if is_object else 2), struct.pack("<HH", len(items), at + len(tail)) + head + tail


def wire_columns() -> st.SearchStrategy[Column]:
    """A column, and what makes bytes of its values."""
    makers = (_integer, _decimal, _float, _text, _blob, _binary, _bit, _labels, _temporal, _json)
    return st.one_of(*(make() for make in makers))
