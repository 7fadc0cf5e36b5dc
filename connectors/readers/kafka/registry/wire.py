"""Which schema of a registry a message was written with: a zero byte, the id in four bytes, and the message."""

from __future__ import annotations

from historian.errors import UnsupportedEvent

__all__ = ["HEADER_BYTES", "schema_id"]

HEADER_BYTES = 5


def schema_id(message: bytes, where: str) -> int:
    """The id, from 1.

    Args:
        where: names the message in errors.

    Raises:
        UnsupportedEvent: the message does not begin so.
    """
    if len(message) < HEADER_BYTES or message[0] != 0:
        found = f"{len(message)} bytes" if len(message) < HEADER_BYTES else f"a first byte 0x{message[0]:02x}"
        raise _unlike(where, found, "correct source.format: JSON has no such bytes")
    number = int.from_bytes(message[1:HEADER_BYTES], "big")
    if number == 0:
        # Ids begin at 1, and four zeros are the first half of the wide ids that Apicurio's converter writes by default.
        raise _unlike(
            where,
            "id 0: an id of 8 bytes",
            "have Apicurio's converter write what Confluent's does: apicurio.registry.as-confluent=true, use-id=contentId",
        )
    return number


def _unlike(where: str, found: str, next_step: str) -> UnsupportedEvent:
    return UnsupportedEvent(
        "a message does not name its schema as the serializers of a registry do",
        where=where,
        expected="a zero byte, and a schema's id in 4 bytes",
        found=found,
        next_step=next_step,
    )
