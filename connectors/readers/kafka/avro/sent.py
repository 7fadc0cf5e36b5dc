"""What messages of Debezium's as Avro say, and what of it stays the same where a producer sends them again."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from io import BytesIO
from typing import TYPE_CHECKING, Any

from connectors.readers.kafka.registry.wire import HEADER_BYTES
from historian.errors import UnsupportedEvent

if TYPE_CHECKING:
    from connectors.readers.kafka.avro.writers import Writer, Writers

__all__ = ["AvroSent"]

_WHEN_SENT = ("ts_ms", "ts_us", "ts_ns", "transaction")


class AvroSent:
    """Reads messages of *writers*' schemas by the library. Not for several threads at once."""

    def __init__(self, writers: Writers) -> None:
        self._writers = writers
        self._heads: dict[int, _Head | None] = {}

    def payload(self, value: bytes) -> Any:
        """The envelope that a message has; None where it has none."""
        try:
            return self._writers.of(value, "a message").value(value, "a message")
        except UnsupportedEvent:
            return None

    def hash_of(self, value: bytes, end: int) -> int:
        """Of a message all but when it was sent, which stands behind its operation; 0 where that is not all that stands there.

        *end*: behind the operation; 0: the library looks for it.
        """
        writer = self._writers.of(value, "a message")
        if writer.number not in self._heads:
            self._heads[writer.number] = _head_of(writer)
        head = self._heads[writer.number]
        if head is None:
            return 0
        if head.is_before_transaction and writer.value(value, "a message")["transaction"] is not None:
            return 0
        begin = value[: end or head.end_in(value)]
        return int.from_bytes(blake2b(begin, digest_size=8).digest(), "little") or 1


@dataclass(frozen=True, slots=True, kw_only=True)
class _Head:
    """A message's schema up to its operation. Behind it may stand which transaction of several topics the message is of."""

    schema: Any
    is_before_transaction: bool

    def end_in(self, value: bytes) -> int:
        from fastavro import schemaless_reader

        body = BytesIO(value)
        body.seek(HEADER_BYTES)
        schemaless_reader(body, self.schema, None)
        return body.tell()


def _head_of(writer: Writer) -> _Head | None:
    """None where more than when it was sent stands behind."""
    names = [str(field["name"]) for field in writer.parsed["fields"]]
    count = names.index("op") + 1 if "op" in names else 0
    if not {"before", "after", "source"} <= {*names[:count]} or not {*names[count:]} <= {*_WHEN_SENT}:
        return None
    schema = {**writer.parsed, "fields": writer.parsed["fields"][:count]}
    return _Head(schema=schema, is_before_transaction="transaction" in names[count:])
