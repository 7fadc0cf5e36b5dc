"""Rows of the binary protocol made by hand, and damaged ones: what becomes of them, and that nothing else is touched."""

from __future__ import annotations

import random
import struct
from decimal import Decimal

import numpy as np
import pytest

from connectors.readers.binlog.kernels.results import layout as at
from connectors.readers.binlog.kernels.results.encoding import encode
from logs.guarded import guarded, guarded_room
from logs.row_events import wire_decimal

COLUMNS = [
    (at.COPY_4, 4, 0),
    (at.VARYING, 1, 0),
    (at.DECIMAL, 6, 10 | 2 << 8),
    (at.DATETIME, 8, 3),
    (at.TIMESTAMP, 4, 0),
    (at.TIME, 5, 2),
    (at.DATE, 3, 0),
    (at.YEAR, 1, 0),
    (at.CUT_8, 2, 0),
    (at.BYTES, 2, 0),
    (at.CUT_4, 3, 0),
]
VALUES = [
    struct.pack("<i", -5),
    b"\3abc",
    b"\x0a-123456.78",
    b"\x0b" + struct.pack("<HBBBBBI", 2024, 2, 29, 23, 59, 58, 987654),
    b"\4" + struct.pack("<HBB", 2001, 9, 9),
    b"\x0c" + struct.pack("<BIBBBI", 1, 34, 22, 59, 59, 120000),
    b"\4" + struct.pack("<HBB", 2024, 0, 31),
    struct.pack("<H", 2155),
    struct.pack("<Q", 300),
    b"\2\x01\xff",
    struct.pack("<i", -(2**23)),
]


def packet(payload: bytes) -> bytes:
    return struct.pack("<I", len(payload))[:3] + b"\0" + payload


def row(values: list[bytes | None]) -> bytes:
    nulls = sum(1 << index + 2 for index, value in enumerate(values) if value is None)
    bitmap = nulls.to_bytes((len(values) + 9) // 8, "little")
    return packet(b"\0" + bitmap + b"".join(value or b"" for value in values))


def encoded(data: bytes, columns: list[tuple[int, int, int]], room: int = 4096) -> tuple[int, bytes, np.ndarray]:
    """Code, images and state; behind the data and behind the room there is nothing but the slack that kernels may use."""
    buffer, images = guarded(data + bytes(at.SLACK)), guarded_room(room + at.SLACK)
    program = np.array(columns, np.int64)
    state = np.zeros(at.STATE_WORDS, np.int64)
    state[at.COLUMNS], state[at.PROGRAM] = len(columns), program.ctypes.data
    state[at.MOST_FIXED] = (len(columns) + 7) // 8 + sum(size for _, size, _ in columns)
    state[at.IMAGES], state[at.IMAGES_END] = images.ctypes.data, images.ctypes.data + room
    code = encode(state.ctypes.data, buffer.ctypes.data, len(data))
    used = int(state[at.IMAGES]) - images.ctypes.data
    assert 0 <= used <= room
    return code, images[:used].tobytes(), state


def test_an_image_has_values_as_the_log_has_them() -> None:
    code, images, state = encoded(row(VALUES) + row([None] * len(VALUES)), COLUMNS)

    assert (at.MORE, 2) == (code, state[at.IMAGE_ROWS])
    months = 2024 * 13 + 2
    moment = 1 << 39 | months << 22 | 29 << 17 | 23 << 12 | 59 << 6 | 58
    time = (1 << 39) - ((838 << 12 | 59 << 6 | 59) << 16 | 1200)
    values = [
        VALUES[0],
        VALUES[1],
        bytes.fromhex("7f") + bytes.fromhex("fffe1dbf") + b"\xb1",
        moment.to_bytes(5, "big") + (987654).to_bytes(3, "big"),
        (999993600).to_bytes(4, "big"),
        time.to_bytes(5, "big"),
        (2024 << 9 | 31).to_bytes(3, "little"),
        b"\xff",
        struct.pack("<H", 300),
        b"\x01\xff",
        b"\0\0\x80",
    ]
    body = b"".join(values)
    # The bits behind that of the last column are nobody's.
    nulls = [int.from_bytes(images[place : place + 2], "little") & 0x7FF for place in (0, 2 + len(body))]
    assert ([0, 0x7FF], body) == (nulls, images[2 : 2 + len(body)])
    assert len(body) + 4 == len(images)


@pytest.mark.parametrize("digits,scale", [(1, 0), (9, 9), (10, 0), (18, 9), (20, 10), (65, 0), (65, 30), (38, 1)])
def test_decimals_are_packed_as_the_log_packs_them(digits: int, scale: int) -> None:
    draw = random.Random(digits)
    kind = wire_decimal(digits, scale)
    most = 10**digits - 1
    for number in (0, 1, -1, most, -most, *(draw.randint(-most, most) for _ in range(50))):
        text = f"{Decimal(number).scaleb(-scale, None):f}" if digits < 28 else _text(number, scale)
        size = len(kind.encode(Decimal(text)))
        column = (at.DECIMAL, size, digits - scale | scale << 8)
        for written in (text, text.replace("-0.", "-.") if digits == scale else text.replace("-", "-000")):
            code, images, _ = encoded(row([bytes([len(written)]) + written.encode()]), [column])
            assert (at.MORE, kind.encode(Decimal(text))) == (code, images[1:]), written


def _text(number: int, scale: int) -> str:
    digits = str(abs(number)).rjust(scale + 1, "0")
    return ("-" if number < 0 else "") + (f"{digits[:-scale]}.{digits[-scale:]}" if scale else digits)


@pytest.mark.parametrize("text", ["", "-", "1", "12.3", "12.345", "1a.00", "+1.00", "123456789.00", "1.0x", "1 00"])
def test_texts_that_are_no_such_decimal_are_told(text: str) -> None:
    data = row([struct.pack("<i", 1), bytes([len(text)]) + text.encode()])
    code, images, state = encoded(data, [(at.COPY_4, 4, 0), (at.DECIMAL, 5, 8 | 2 << 8)])

    assert (at.MISFIT, b"", 1) == (code, images, state[at.COLUMN])


@pytest.mark.parametrize(
    "column,value",
    [
        ((at.DATE, 3, 0), b"\4" + struct.pack("<HBB", 10000, 1, 1)),
        ((at.DATE, 3, 0), b"\4" + struct.pack("<HBB", 2024, 13, 1)),
        ((at.DATE, 3, 0), b"\5" + bytes(5)),
        ((at.DATETIME, 5, 0), b"\7" + struct.pack("<HBBBBB", 2024, 1, 1, 24, 0, 0)),
        ((at.DATETIME, 8, 3), b"\x0b" + struct.pack("<HBBBBBI", 2024, 1, 1, 0, 0, 0, 1000000)),
        ((at.TIMESTAMP, 4, 0), b"\4" + struct.pack("<HBB", 2024, 2, 30)),
        ((at.TIMESTAMP, 4, 0), b"\4" + struct.pack("<HBB", 1969, 12, 31)),
        ((at.TIME, 3, 0), b"\x08" + struct.pack("<BIBBB", 0, 34, 23, 0, 0)),
        ((at.YEAR, 1, 0), struct.pack("<H", 1900)),
        ((at.CUT_8, 1, 0), struct.pack("<Q", 256)),
        ((at.BYTES, 2, 0), b"\1a"),
        ((at.VARYING, 1, 0), b"\xfc\x00\x01" + bytes(256)),
        ((at.VARYING, 1, 0), b"\4abc"),
        ((at.COPY_8, 8, 0), bytes(9)),
    ],
)
def test_values_that_their_column_cannot_have_are_told(column: tuple[int, int, int], value: bytes) -> None:
    assert at.MISFIT == encoded(row([value]), [column])[0]


def test_what_ends_a_result_and_what_is_not_there_yet() -> None:
    whole = row(VALUES)
    assert at.END == encoded(packet(b"\xfe\0\0\2\0"), COLUMNS)[0]
    assert at.ERROR == encoded(packet(b"\xff\x48\4#HY000no"), COLUMNS)[0]
    assert at.MISFIT == encoded(packet(b""), COLUMNS)[0]
    assert at.PARTS == encoded(b"\xff\xff\xff\0" + bytes(5), COLUMNS)[0]
    assert at.FULL == encoded(whole, COLUMNS, room=len(whole) - 4)[0]
    for cut in range(len(whole)):
        code, images, state = encoded(whole[:cut], COLUMNS)
        assert (at.MORE, b"") == (code, images)
        assert state[at.NEEDED] == (len(whole) if cut >= 4 else 4)


def test_damaged_rows_are_read_within_their_bounds() -> None:
    draw = random.Random(5)
    whole = row(VALUES)
    found = set()
    for _ in range(5000):
        damaged = bytearray(whole)
        for _ in range(draw.randint(1, 4)):
            damaged[draw.randrange(4, len(damaged))] = draw.randrange(256)
        found.add(encoded(bytes(damaged), COLUMNS)[0])
    assert found <= {at.MORE, at.MISFIT, at.END, at.ERROR}
    assert {at.MORE, at.MISFIT} <= found
