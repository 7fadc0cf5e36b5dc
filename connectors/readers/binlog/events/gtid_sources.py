"""Names of MySQL's sources of transactions, ``uuid`` or ``uuid:tag``, and the words that kernels compare them by."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import numpy as np

from connectors.readers.binlog.events.layout import HEADER_BYTES, EventType, uuid_text
from connectors.readers.binlog.kernels.log.gtids import GTID_WORDS, NUMBER, SOURCE_KEY_WORDS, mysql_gtid
from historian.errors import LogCorrupt

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["event_gtid", "source_name", "source_words"]

_UUID_BYTES = 16
_TAG_BYTES = 32


def source_name(words: NDArray[np.int64]) -> str:
    """The source's text."""
    data = np.ascontiguousarray(words[:SOURCE_KEY_WORDS], "<i8").tobytes()
    tag = data[_UUID_BYTES:].rstrip(b"\0").decode("ascii", "backslashreplace")
    uuid = uuid_text(data[:_UUID_BYTES])
    return f"{uuid}:{tag}" if tag else uuid


def source_words(name: str) -> tuple[int, ...]:
    """The words of the source of that text."""
    uuid, _, tag = name.partition(":")
    data = bytes.fromhex(uuid.replace("-", "")) + tag.encode("ascii").ljust(_TAG_BYTES, b"\0")
    return struct.unpack(f"<{SOURCE_KEY_WORDS}q", data)


def event_gtid(event: bytes, where: str) -> tuple[str, int]:
    """Source and number that a GTID or GTID_TAGGED event says.

    Raises:
        LogCorrupt: it is too short; it stands at *where*.
    """
    if event[4] == EventType.GTID and len(event) >= HEADER_BYTES + 25:
        return uuid_text(event[20:36]), int.from_bytes(event[36:44], "little")
    words: NDArray[np.int64] = np.empty(GTID_WORDS, np.int64)
    data = np.frombuffer(event, np.uint8)
    begin = data.ctypes.data
    if not mysql_gtid(begin + HEADER_BYTES, begin + len(event), event[4], words.ctypes.data):
        raise LogCorrupt("a GTID event is shorter than its own fields", where=where, found=event.hex(" "))
    return source_name(words), int(words[NUMBER])
