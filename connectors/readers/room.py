"""Memory for what scans of a process keep of logs, so that nobody reads it from its source again."""

from __future__ import annotations

import threading

__all__ = ["MAX_KEPT_BYTES", "NO_ROOM", "ROOM", "Room"]

MAX_KEPT_BYTES = 640 << 20
"""So much is kept in a process: two plans of the size that is set by default, one that is written and one that is scanned."""


class Room:
    """Room for so many bytes, which several caches share."""

    def __init__(self, size_bytes: int) -> None:
        self._left_bytes = size_bytes
        self._lock = threading.Lock()

    def take(self, size_bytes: int) -> bool:
        """Whether there is room for so much more, which is taken then."""
        with self._lock:
            is_room = size_bytes <= self._left_bytes
            self._left_bytes -= size_bytes if is_room else 0
            return is_room

    def give(self, size_bytes: int) -> None:
        """Gives back what was taken."""
        with self._lock:
            self._left_bytes += size_bytes


ROOM = Room(MAX_KEPT_BYTES)
"""Of this process."""

NO_ROOM = Room(0)
