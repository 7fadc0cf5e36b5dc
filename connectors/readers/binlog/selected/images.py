"""One WRITE_ROWS event of our own making, whose row images are those of selected rows, and what decodes it into chunks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from connectors.readers.binlog.kernels.results import layout as result
from connectors.readers.binlog.kernels.rows.walk import walk
from connectors.readers.binlog.kernels.values import layout as at
from connectors.readers.binlog.rows.builder import TableBuilder
from connectors.readers.binlog.selected.columns import (
    decoding_steps,
    encoding_words,
    encodings,
    most_fixed_bytes,
    wire_columns,
)
from historian.errors import SourceError
from historian.plans.plans import PlannedVersion
from historian.schema.snapshots import Snapshot

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Images"]

_WRITE_ROWS = 30
_TABLE_NUMBER = 1
_NEVER = 2**63 - 1
_IMAGES_BYTES = 1 << 20
# A SELECT is of many rows mostly. Memory that is not written costs little.
_FIRST_BYTES = 1 << 20
_LEAST_ROWS = 64


class Images:
    """Memory for row images that the kernel makes of a result, and the unfinished chunk that they are decoded into.

    Attributes:
        builder: of the unfinished chunk.

    Args:
        snapshot: of *version*.
        offset: that rows have as the number of their transaction, which has no GTID.

    Raises:
        ValueUnrepresentable: a column type or character set that is not read yet.
    """

    def __init__(
        self,
        version: PlannedVersion,
        snapshot: Snapshot,
        *,
        flavor: str,
        offset: int,
        event_time_us: int,
        max_rows: int,
        max_bytes: int,
    ) -> None:
        wire = wire_columns(snapshot, flavor)
        steps = decoding_steps(snapshot, wire)
        found = encodings(snapshot, steps, wire)
        self._encodings = encoding_words(found)
        self._most_fixed = most_fixed_bytes(found)
        self._head = _event_head(len(steps))
        self._take_room(_IMAGES_BYTES + self._most_fixed)
        self._words = np.zeros((1, at.TABLE_WORDS), np.int64)
        self.builder = TableBuilder(
            words=self._words[0],
            version=version,
            written=snapshot,
            snapshot=snapshot,
            wire=wire,
            steps=steps,
            generated_from=None,
            max_rows=max(2, max_rows),
            first_rows=max(_LEAST_ROWS, _FIRST_BYTES // (self._most_fixed + _LEAST_ROWS)),
        )
        self._scratch = np.zeros(at.SCRATCH_WORDS + at.RUN_STEP, np.int64)
        self._maps = np.zeros((2, at.MAP_WORDS), np.int64)
        self._maps[_TABLE_NUMBER] = (_TABLE_NUMBER + 1, 0, 0, 0)
        self._bounds = np.zeros((3, 1), np.int64)
        self._state = state = np.zeros(at.STATE_WORDS, np.int64)
        state[at.TRANSACTION], state[at.SOURCE], state[at.SEQUENCE] = at.OPEN, -1, offset
        state[at.COMMIT_TIME], state[at.REBIND] = event_time_us, _NEVER
        state[at.MAX_ROWS], state[at.MAX_BYTES], state[at.MAX_OPEN_BYTES] = max(2, max_rows), max_bytes, _NEVER
        state[at.MAPS], state[at.MAPS_MASK] = self._maps.ctypes.data, len(self._maps) - 1
        state[at.TABLES], state[at.SCRATCH] = self._words.ctypes.data, self._scratch.ctypes.data

    def _take_room(self, size: int) -> None:
        self._buffer: NDArray[np.uint8] = np.zeros(len(self._head) + size + result.SLACK, np.uint8)
        self._buffer[: len(self._head)] = self._head

    def receive_from(self, state: NDArray[np.int64]) -> None:
        """Tells the kernel of a result, whose words *state* are, of the columns and where the next images go."""
        state[result.COLUMNS], state[result.PROGRAM] = len(self._encodings), self._encodings.ctypes.data
        state[result.MOST_FIXED] = self._most_fixed
        state[result.IMAGES] = self._buffer.ctypes.data + len(self._head)
        state[result.IMAGES_END] = self._buffer.ctypes.data + len(self._buffer) - result.SLACK

    def bytes_in(self, state: NDArray[np.int64]) -> int:
        """How many bytes of images there are."""
        return int(state[result.IMAGES]) - self._buffer.ctypes.data - len(self._head)

    def grow(self, packet_bytes: int) -> None:
        """Makes room for the image of a packet; there are no images."""
        self._take_room(packet_bytes + self._most_fixed + _IMAGES_BYTES)

    def decoded(self, image_bytes: int) -> Iterator[None]:
        """Decodes the images into the unfinished chunk; gives way each time that it is full and must be taken."""
        state, words = self._state, self._words[0]
        self._bounds[1] = len(self._head) + image_bytes
        state[at.EVENT] = state[at.AT] = 0
        starts, ends, offsets = (part.ctypes.data for part in self._bounds)
        arguments = (state.ctypes.data, self._buffer.ctypes.data, len(self._buffer), starts, ends, offsets, 1)
        while code := walk(*arguments):
            if code == at.GROW_ROWS:
                self.builder.grow_rows()
            elif code == at.GROW_DATA:
                self.builder.grow_data(int(state[at.COLUMN]), int(state[at.DETAIL]))
            elif code == at.FLUSH:
                state[at.OPEN_BYTES] -= words[at.BYTES]
                yield
            else:
                raise SourceError(
                    "a selected row became an image that cannot be decoded",
                    where=str(self.builder.snapshot.name),
                    found=f"code {code}, column {state[at.COLUMN]}, detail {state[at.DETAIL]}",
                    next_step="report this error with the table's definition",
                )


def _event_head(columns: int) -> NDArray[np.uint8]:
    """A WRITE_ROWS event up to its first image: all columns are in each."""
    header = bytes(4) + bytes([_WRITE_ROWS]) + bytes(14)
    body = _TABLE_NUMBER.to_bytes(6, "little") + bytes(2) + (2).to_bytes(2, "little")
    count = bytes([columns]) if columns < 251 else b"\xfc" + columns.to_bytes(2, "little")
    return np.frombuffer(header + body + count + b"\xff" * ((columns + 7) // 8), np.uint8)
