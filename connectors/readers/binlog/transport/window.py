"""A window: consecutive whole events of one binlog file in one buffer, found but not yet decoded."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from historian.plans.plans import PreparedTable

__all__ = ["Committed", "Window"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Committed:
    """The XA COMMIT by which a window's events count: they are part of its transaction, which the window before began.

    Attributes:
        file, offset: of the QUERY event with XA COMMIT.
        time_us: of its execution.
        tables: whose rows are wanted; None: those in force where the events stand.
    """

    file: str
    offset: int
    time_us: int
    tables: tuple[PreparedTable, ...] | None = None


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
        committed: of events that stood before, in a prepared XA transaction.
    """

    buffer: NDArray[np.uint8]
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    offsets: NDArray[np.int64]
    file: str
    server_version: int = 0
    committed: Committed | None = None

    def part(self, first: int, behind: int) -> Window:
        """The events from index *first* up to *behind*."""
        return replace(
            self,
            starts=self.starts[first:behind],
            ends=self.ends[first:behind],
            offsets=self.offsets[first:behind],
        )

    def copied(self) -> Window:
        """The same events in memory of their own."""
        begin, end = int(self.starts[0]), int(self.ends[-1])
        return replace(
            self,
            buffer=self.buffer[begin:end].copy(),
            starts=self.starts - begin,
            ends=self.ends - begin,
            offsets=self.offsets.copy(),
        )

    def event(self, index: int) -> bytes:
        """One event's bytes."""
        return self.buffer[int(self.starts[index]) : int(self.ends[index])].tobytes()

    def where(self, index: int) -> str:
        """File and offset of an event, as text."""
        return f"{self.file}:{int(self.offsets[index])}"

    def __reduce__(self) -> tuple[Any, ...]:
        raise TypeError("a window is a view of a reader's buffer and does not travel")
