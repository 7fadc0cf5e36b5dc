"""Messages of a partition in memory: their keys and values behind each other, without an object for each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from connectors.readers.kafka.kernels.layout import SLACK

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Batch", "Texts"]


_MESSAGE_BYTES = 34
"""Offset, date, and where key and value begin and whether they are there."""


class Texts:
    """Texts behind each other in memory.

    Attributes:
        body: their bytes, and at least :data:`SLACK` more; behind the last text of a whole batch these are quotes.
        starts: where each begins in *body*, and where the last one ends; the first is 0.
        absent: which of them are none; they are empty in *body*.
        address: of *body*.
    """

    __slots__ = ("absent", "address", "body", "starts")

    def __init__(self, body: NDArray[np.uint8], starts: NDArray[np.int64], absent: NDArray[np.bool_]) -> None:
        self.body, self.starts, self.absent = body, starts, absent
        self.address = int(body.ctypes.data)

    @classmethod
    def of(cls, texts: Sequence[bytes | None]) -> Texts:
        """Those of a list."""
        starts = np.zeros(len(texts) + 1, np.int64)
        np.cumsum(np.fromiter((len(text or b"") for text in texts), np.int64, len(texts)), out=starts[1:])
        body = b"".join([*(text or b"" for text in texts), b'"' * SLACK])
        absent = np.fromiter((text is None for text in texts), np.bool_, len(texts))
        return cls(np.frombuffer(body, np.uint8), starts, absent)

    def __reduce__(self) -> tuple[type[Texts], tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.bool_]]]:
        # Behind a part stands the next text, and behind that one nothing: quotes end what is alone.
        body = np.concatenate((self.body[: self.starts[-1]], np.full(SLACK, ord('"'), np.uint8)))
        return Texts, (body, self.starts, self.absent)

    @property
    def sizes(self) -> NDArray[np.int64]:
        """How many bytes each has."""
        return np.diff(self.starts)

    def part(self, begin: int, end: int) -> Texts:
        """The texts from *begin* to *end*, in the same memory."""
        first = int(self.starts[begin])
        # What stands behind a part ends it as quotes do: another text, and quotes in the end.
        return Texts(self.body[first:], self.starts[begin : end + 1] - first, self.absent[begin:end])

    def between(self, begin: int, end: int) -> bytes:
        """The bytes of *body* from *begin* to *end*."""
        return self.body[begin:end].tobytes()

    def __getitem__(self, number: int) -> bytes | None:
        if self.absent[number]:
            return None
        return self.between(int(self.starts[number]), int(self.starts[number + 1]))

    def __iter__(self) -> Iterator[bytes | None]:
        return (self[number] for number in range(len(self)))

    def __len__(self) -> int:
        return len(self.absent)


class Batch:
    """Messages of one partition, in order.

    Args:
        keys, values: of the messages.
        offsets: of the messages.
        times_ms: when they are dated, -1 where they are not; UTC milliseconds.
    """

    __slots__ = ("keys", "offsets", "times_ms", "values")

    def __init__(self, keys: Texts, values: Texts, offsets: NDArray[np.int64], times_ms: NDArray[np.int64]) -> None:
        self.keys, self.values, self.offsets, self.times_ms = keys, values, offsets, times_ms

    @classmethod
    def of(cls, keys: Sequence[bytes | None], values: Sequence[bytes | None], offsets: NDArray[np.int64]) -> Batch:
        """A batch of messages without dates."""
        return cls(Texts.of(keys), Texts.of(values), offsets, np.full(len(offsets), -1, np.int64))

    @property
    def sizes(self) -> NDArray[np.int64]:
        """How many bytes each has, its key among them."""
        return self.keys.sizes + self.values.sizes

    @property
    def size_bytes(self) -> int:
        """How much memory they take, as :class:`connectors.readers.base.CachedLog`."""
        return int(self.keys.starts[-1] + self.values.starts[-1]) + _MESSAGE_BYTES * len(self)

    def part(self, begin: int, end: int) -> Batch:
        """The messages from *begin* to *end*, in the same memory."""
        texts = self.keys.part(begin, end), self.values.part(begin, end)
        return Batch(*texts, self.offsets[begin:end], self.times_ms[begin:end])

    def time_us(self, number: int) -> int:
        """When a message was sent, UTC microseconds, by its producer or the broker; 0 where none tells."""
        return 1000 * max(0, int(self.times_ms[number]))

    @property
    def end(self) -> int:
        """The offset behind the last one; 0 where there is none."""
        return int(self.offsets[-1]) + 1 if len(self) else 0

    def before(self, offset: int) -> Batch:
        """Those before *offset*."""
        return self if self.end <= offset else self.part(0, int(np.searchsorted(self.offsets, offset)))

    def behind(self, offset: int) -> Batch:
        """Those at *offset* and behind it."""
        begin = int(np.searchsorted(self.offsets, offset))
        return self.part(begin, len(self)) if begin else self

    def without(self, ranges: Sequence[tuple[int, int]]) -> Iterator[Batch]:
        """What is left of them outside of *ranges* of offsets, which are in order; each range's end lies behind it."""
        begin = 0
        for place in [
            *np.searchsorted(self.offsets, np.array(ranges, np.int64).reshape(-1, 2)).tolist(),
            [len(self)] * 2,
        ]:
            if begin < place[0]:
                yield self.part(begin, place[0])
            begin = place[1]

    def __len__(self) -> int:
        return len(self.offsets)
