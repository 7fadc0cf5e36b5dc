"""A window: consecutive whole events of one binlog file in one buffer, found but not yet decoded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Window"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """Consecutive whole events; checksums are verified before a window is made.

    The buffer may be reused for the next window: whoever keeps bytes copies them.

    Attributes:
        buffer: bytes that hold the events, among others (packet headers of the network, checksums).
        starts: index in ``buffer`` of each event's 19-byte header.
        ends: index behind each event's body, its checksum left out.
        offsets: each event's first byte in ``file``; of unpacked events that of the one they were packed in.
        file: the binlog file that the events are of; a window never crosses files.
        server_version: of the server that wrote the file, as a number like 80031; 0: not known.
    """

    buffer: NDArray[np.uint8]
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    offsets: NDArray[np.int64]
    file: str
    server_version: int = 0

    def __reduce__(self) -> tuple[Any, ...]:
        raise TypeError("a window is a view of a reader's buffer and does not travel")
