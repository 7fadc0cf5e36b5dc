"""What messages of Debezium's as Avro say, and what of it stays the same where a producer sends them again."""

from __future__ import annotations

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
        self._heads: dict[int, Any] = {}

    def payload(self, value: bytes) -> Any:
        """The envelope that a message has; None where it has none."""
        try:
            return self._writers.of(value, "a message").value(value, "a message")
        except UnsupportedEvent:
            return None

    def hash_of(self, value: bytes) -> int:
        """Of a message all but when it was sent, which stands behind its operation; 0 where that is not all that stands there."""
        from fastavro import schemaless_reader

        writer = self._writers.of(value, "a message")
        if writer.number not in self._heads:
            self._heads[writer.number] = _head_of(writer)
        head = self._heads[writer.number]
        if head is None or writer.value(value, "a message").get("transaction") is not None:
            return 0
        body = BytesIO(value)
        body.seek(HEADER_BYTES)
        schemaless_reader(body, head, None)
        return int.from_bytes(blake2b(value[: body.tell()], digest_size=8).digest(), "little") or 1


def _head_of(writer: Writer) -> Any:
    """The schema of a message up to its operation; None where more than when it was sent stands behind."""
    names = [str(field["name"]) for field in writer.parsed["fields"]]
    count = names.index("op") + 1 if "op" in names else 0
    if not {"before", "after", "source"} <= {*names[:count]} or not {*names[count:]} <= {*_WHEN_SENT}:
        return None
    return {**writer.parsed, "fields": writer.parsed["fields"][:count]}
