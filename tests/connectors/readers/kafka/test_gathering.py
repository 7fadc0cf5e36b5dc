"""Messages as librdkafka holds them are what is put behind each other."""

from __future__ import annotations

import ctypes
from typing import ClassVar

import numpy as np

from connectors.readers.kafka.kernels.gathering import FACTS, facts, gather


class Held(ctypes.Structure):
    """``rd_kafka_message_t``."""

    _fields_: ClassVar = [
        ("error", ctypes.c_int),
        ("topic", ctypes.c_void_p),
        ("partition", ctypes.c_int32),
        ("value", ctypes.c_char_p),
        ("value_bytes", ctypes.c_size_t),
        ("key", ctypes.c_char_p),
        ("key_bytes", ctypes.c_size_t),
        ("offset", ctypes.c_int64),
        ("private", ctypes.c_void_p),
    ]


@ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.POINTER(Held), ctypes.POINTER(ctypes.c_int))
def dated(held: ctypes._Pointer[Held], kind: ctypes._Pointer[ctypes.c_int]) -> int:
    """As ``rd_kafka_message_timestamp``: those of even offsets have a date."""
    kind[0] = 1 - held[0].offset % 2
    return 1000 + int(held[0].offset)


def test_errors_are_no_messages_and_none_is_not_empty() -> None:
    held = [
        Held(0, 16, 3, b"first", 5, b"k", 1, 6, None),
        Held(-191, 16, 3, b"the end", 7, None, 0, 7, None),
        Held(0, 32, -1, b"", 0, None, 0, 8, None),
        Held(0, 16, 3, None, 0, b"", 0, 9, None),
        Held(0, 16, 3, b"last", 4, b"key", 3, 10, None),
    ]
    messages = np.array([ctypes.addressof(each) for each in held])
    found, scratch = np.full((FACTS, len(held)), -7), np.zeros(1, np.int64)
    date = ctypes.cast(dated, ctypes.c_void_p).value or 0

    facts(messages.ctypes.data, len(held), date, scratch.ctypes.data, found.ctypes.data)
    values, keys = np.full(10, ord("-"), np.uint8), np.full(5, ord("-"), np.uint8)
    chosen = np.array([0, 2, 3, 4])
    gather(messages.ctypes.data, chosen.ctypes.data, len(chosen), values.ctypes.data, keys.ctypes.data)

    assert [
        [0, -191, 0, 0, 0],
        [16, 16, 32, 16, 16],
        [3, 3, -1, 3, 3],
        [6, 7, 8, 9, 10],
        [1006, -1, 1008, -1, 1010],
        [0b11, 0, 0b01, 0b10, 0b11],
        [5, 0, 0, 0, 4],
        [1, 0, 0, 0, 3],
    ] == found.tolist()
    assert (b"firstlast-", b"kkey-") == (values.tobytes(), keys.tobytes())
