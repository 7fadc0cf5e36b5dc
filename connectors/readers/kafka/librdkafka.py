"""Messages by the batch from librdkafka's C interface, which confluent-kafka brings along: without a Python object for each message.

The functions are those of :file:`rdkafka.h`, whose interface stays the same through librdkafka 2.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from connectors.readers.kafka.consuming import Fetched
from connectors.readers.kafka.kernels.gathering import FACTS, facts, gather, release
from connectors.readers.kafka.kernels.layout import SLACK
from connectors.readers.kafka.messages.batch import Batch, Texts
from historian.errors import SourceError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from connectors.readers.kafka.messages.partitions import Partition

__all__ = ["Fetcher"]

_CONSUMER = 1
_VERSION = 2
_TEXT_BYTES = 512
_TEXT_AT, _TEXT_BYTES_AT = 24, 32
"""Where a message that is an error has its text: where others have their value."""
_POINTER, _NUMBER, _TEXT, _SIZE = ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_size_t

_FUNCTIONS = {
    "rd_kafka_version": (_NUMBER, ()),
    "rd_kafka_conf_new": (_POINTER, ()),
    "rd_kafka_conf_set": (_NUMBER, (_POINTER, _TEXT, _TEXT, _TEXT, _SIZE)),
    "rd_kafka_conf_destroy": (None, (_POINTER,)),
    "rd_kafka_new": (_POINTER, (_NUMBER, _POINTER, _TEXT, _SIZE)),
    "rd_kafka_poll_set_consumer": (_NUMBER, (_POINTER,)),
    "rd_kafka_queue_get_consumer": (_POINTER, (_POINTER,)),
    "rd_kafka_queue_destroy": (None, (_POINTER,)),
    "rd_kafka_topic_partition_list_new": (_POINTER, (_NUMBER,)),
    "rd_kafka_topic_partition_list_add": (_POINTER, (_POINTER, _TEXT, ctypes.c_int32)),
    "rd_kafka_topic_partition_list_set_offset": (_NUMBER, (_POINTER, _TEXT, ctypes.c_int32, ctypes.c_int64)),
    "rd_kafka_topic_partition_list_destroy": (None, (_POINTER,)),
    "rd_kafka_assign": (_NUMBER, (_POINTER, _POINTER)),
    "rd_kafka_incremental_unassign": (_POINTER, (_POINTER, _POINTER)),
    "rd_kafka_error_destroy": (None, (_POINTER,)),
    "rd_kafka_consume_batch_queue": (ctypes.c_ssize_t, (_POINTER, _NUMBER, _POINTER, _SIZE)),
    "rd_kafka_topic_name": (_TEXT, (_POINTER,)),
    "rd_kafka_last_error": (_NUMBER, ()),
    "rd_kafka_err2str": (_TEXT, (_NUMBER,)),
    "rd_kafka_consumer_close": (_NUMBER, (_POINTER,)),
    "rd_kafka_destroy": (None, (_POINTER,)),
}
"""By name what a function gives and takes."""


class Fetcher:
    """A consumer that is given its partitions by offset. Not for several threads at once.

    Args:
        settings: librdkafka's, by name.
        most: so many messages come at once.

    Raises:
        SourceError: the settings are not taken.
    """

    def __init__(self, settings: Mapping[str, str], most: int) -> None:
        self._library = library = _library()
        self._destroy, self._date = (
            _address(library, name) for name in ("rd_kafka_message_destroy", "rd_kafka_message_timestamp")
        )
        text = ctypes.create_string_buffer(_TEXT_BYTES)
        conf = library.rd_kafka_conf_new()
        for name, value in settings.items():
            if library.rd_kafka_conf_set(conf, name.encode(), value.encode(), text, _TEXT_BYTES):
                library.rd_kafka_conf_destroy(conf)
                raise _refused(text.value)
        self._handle = library.rd_kafka_new(_CONSUMER, conf, text, _TEXT_BYTES)
        if not self._handle:
            library.rd_kafka_conf_destroy(conf)
            raise _refused(text.value)
        library.rd_kafka_poll_set_consumer(self._handle)
        self._queue = library.rd_kafka_queue_get_consumer(self._handle)
        self._most = most
        self._messages = np.zeros(most, np.int64)
        self._scratch = np.zeros(1, np.int64)

    def assign(self, offsets: Mapping[Partition, int]) -> None:
        """Takes messages of these partitions from now on, from these offsets, and of no other; what was fetched before is left."""

        def take(listed: int) -> None:
            error = self._library.rd_kafka_assign(self._handle, listed)
            if error:
                raise self._failed("partitions are not taken", error)

        self._with_list(offsets, take)

    def unassign(self, partitions: Iterable[Partition]) -> None:
        """Takes no more messages of these."""

        def leave(listed: int) -> None:
            error = self._library.rd_kafka_incremental_unassign(self._handle, listed)
            if error:
                self._library.rd_kafka_error_destroy(error)

        self._with_list(dict.fromkeys(partitions, 0), leave)

    def _with_list(self, offsets: Mapping[Partition, int], use: Callable[[int], object]) -> None:
        listed = self._library.rd_kafka_topic_partition_list_new(len(offsets))
        try:
            for (topic, number), offset in offsets.items():
                self._library.rd_kafka_topic_partition_list_add(listed, topic.encode(), number)
                self._library.rd_kafka_topic_partition_list_set_offset(listed, topic.encode(), number, offset)
            use(listed)
        finally:
            self._library.rd_kafka_topic_partition_list_destroy(listed)

    def fetch(self, timeout_s: float) -> Fetched[Batch]:
        """The next messages: as many as come at once, or within *timeout_s*."""
        messages = self._messages.ctypes.data
        count = self._library.rd_kafka_consume_batch_queue(self._queue, round(timeout_s * 1000), messages, self._most)
        if count < 0:
            raise self._failed("no messages are given", self._library.rd_kafka_last_error())
        if not count:
            return Fetched([], [])
        try:
            return self._taken(count)
        finally:
            release(messages, count, self._destroy)

    def _taken(self, count: int) -> Fetched[Batch]:
        found = np.empty((FACTS, count), np.int64)
        facts(self._messages.ctypes.data, count, self._date, self._scratch.ctypes.data, found.ctypes.data)
        errors, topics, partitions, offsets = found[:4]
        told = [
            (
                self._partition(topics[number], partitions[number]),
                int(errors[number]),
                self._text(number, int(errors[number])),
                int(offsets[number]),
            )
            for number in np.flatnonzero(errors).tolist()
        ]
        chosen = np.flatnonzero(errors == 0)
        if not len(chosen):
            return Fetched([], told)
        # Partitions come in turns, of a few hundred messages each.
        chosen = chosen[np.lexsort((partitions[chosen], topics[chosen]))]
        of = np.stack((topics[chosen], partitions[chosen]))
        ends = np.flatnonzero(np.any(of[:, 1:] != of[:, :-1], axis=0)) + 1
        return Fetched(
            [
                (self._partition(*of[:, begin]), self._batch(chosen[begin:end], found))
                for begin, end in pairwise([0, *ends.tolist(), len(chosen)])
            ],
            told,
        )

    def _batch(self, chosen: NDArray[np.intp], found: NDArray[np.int64]) -> Batch:
        """The messages of one partition, in memory of their own: who keeps them keeps no other ones."""
        _, _, _, offsets, times_ms, has, value_bytes, key_bytes = found
        values, keys = (
            Texts(_memory(int(starts[-1]) + SLACK), starts, has[chosen] & bit == 0)
            for sizes, bit in ((value_bytes, 1), (key_bytes, 2))
            for starts in [np.concatenate(([0], np.cumsum(sizes[chosen])))]
        )
        for texts in (values, keys):
            texts.body[texts.starts[-1] :] = ord('"')
        gather(self._messages.ctypes.data, chosen.ctypes.data, len(chosen), values.address, keys.address)
        return Batch(keys, values, offsets[chosen], times_ms[chosen])

    def _failed(self, what: str, error: int) -> SourceError:
        found = self._library.rd_kafka_err2str(error).decode()
        return SourceError(f"librdkafka refuses: {what}", where="source.topics", found=found)

    def _partition(self, topic: int, number: int) -> Partition:
        name = self._library.rd_kafka_topic_name(int(topic)) if topic else b""
        return name.decode(), int(number)

    def _text(self, number: int, error: int) -> str:
        """What librdkafka says of an error: as the text of its message, or what it says of all of its code."""
        message = int(self._messages[number])
        address, size = (ctypes.c_size_t.from_address(message + place).value for place in (_TEXT_AT, _TEXT_BYTES_AT))
        text = ctypes.string_at(address, size) if address else self._library.rd_kafka_err2str(error)
        return str(text.decode(errors="replace"))

    def close(self) -> None:
        """Closes connections. It is closed once, and not used again."""
        self._library.rd_kafka_queue_destroy(self._queue)
        self._library.rd_kafka_consumer_close(self._handle)
        self._library.rd_kafka_destroy(self._handle)


def _memory(size_bytes: int) -> NDArray[np.uint8]:
    # Arrow keeps for a while what is given back, where the system would clear each page of so much memory again.
    return np.frombuffer(pa.allocate_buffer(size_bytes), np.uint8)


@cache
def _library() -> ctypes.CDLL:
    from confluent_kafka import cimpl

    # What is looked for in an extension is looked for in the libraries, too, that it was linked with.
    try:
        library = ctypes.CDLL(cimpl.__file__)
        found = f"librdkafka {library.rd_kafka_version() >> 24}"
        for name, (result, arguments) in _FUNCTIONS.items():
            function = getattr(library, name)
            function.restype, function.argtypes = result, arguments
    except (OSError, AttributeError) as error:
        found = str(error)
    if found != f"librdkafka {_VERSION}":
        raise SourceError(
            "another librdkafka than messages are read with",
            where=cimpl.__file__,
            expected=f"librdkafka {_VERSION}",
            found=found,
            next_step="install confluent-kafka from its wheel, which brings it",
        )
    return library


def _address(library: ctypes.CDLL, name: str) -> int:
    return ctypes.cast(library[name], ctypes.c_void_p).value or 0


def _refused(text: bytes) -> SourceError:
    return SourceError("the client's settings are not taken", where="source.client", found=text.decode())
