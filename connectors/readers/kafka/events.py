"""What messages of any format say beside changes of rows, and what reads them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from connectors.readers.kafka.debezium.events import Event

__all__ = ["Decoder", "SqlEvent"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SqlEvent:
    """A statement that the source executed.

    Attributes:
        database: the default one of names without; "" where none is told.
        event_time_us: UTC microseconds.
    """

    sql: str
    database: str
    event_time_us: int


class Decoder(Protocol):
    """Reads messages of one format. Not for several threads at once."""

    def events(self, key: bytes | None, value: bytes | None, where: str) -> tuple[Event | SqlEvent, ...]:
        """The events of a message, in order; none of one that changes nothing.

        Args:
            where: names the message in errors.

        Raises:
            UnsupportedEvent: it is none of the format, or of a kind that is not read.
        """
