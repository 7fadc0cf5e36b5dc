"""Types of MariaDB that are bytes of one length in the log and text to a reader: UUID, INET4, INET6."""

from __future__ import annotations

import ipaddress
import uuid
from collections.abc import Callable
from typing import TYPE_CHECKING

from connectors.readers.binlog.columns.arrays import Cells, Finish, text_array
from historian.values.texts import inet6_text

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["FIXED_TEXTS", "fixed_text"]

FIXED_TEXTS: dict[str, Callable[[bytes], str]] = {
    "uuid": lambda piece: str(uuid.UUID(bytes=piece)),
    "inet4": lambda piece: str(ipaddress.IPv4Address(piece)),
    "inet6": inet6_text,
}
"""By the type's name: what makes the server's text of its bytes."""


def fixed_text(name: str) -> Finish:
    """Values of the type *name* as the server prints them."""
    text = FIXED_TEXTS[name]

    def finish(cells: Cells) -> pa.Array:
        return text_array(None if piece is None else text(piece) for piece in cells.pieces())

    return finish
