"""The key of a message as columns of its row."""

from __future__ import annotations

from typing import Any

from connectors.readers.kafka.messages.parsing import parsed
from historian.errors import UnsupportedEvent

__all__ = ["KEY", "key_fields"]

KEY = "key"
"""The column of a key that is no object."""


def key_fields(key: bytes | None, where: str) -> dict[str, Any]:
    """The columns of a message's key: an object's fields, or the text of any other key in the column "key".

    Raises:
        UnsupportedEvent: there is no key, or none that is text.
    """
    if key is None:
        raise UnsupportedEvent(
            "a message without a key",
            where=where,
            expected="a key, which says of what row the message is",
            found="none",
            next_step="have the producer write keys, or leave the topic out of source.topics",
        )
    if key.startswith((b"{", b'"')):
        try:
            found = parsed(key, exact=True)
        except (ValueError, RecursionError):
            found = None
        if isinstance(found, dict) and found:
            return found
        if isinstance(found, str):
            return {KEY: found}
    try:
        return {KEY: key.decode("utf-8")}
    except UnicodeDecodeError as error:
        raise UnsupportedEvent(
            "a key that is neither text nor JSON", where=where, expected="UTF-8", found=str(error)
        ) from None
