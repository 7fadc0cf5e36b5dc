"""Messages of Debezium's as Avro, as events."""

from __future__ import annotations

from connectors.readers.kafka.avro.writers import Writer, Writers
from connectors.readers.kafka.debezium.registered import RegisteredEvents
from connectors.readers.kafka.messages.modes import DEFAULT_MODES, DebeziumModes

__all__ = ["AvroEvents"]


class AvroEvents(RegisteredEvents[Writer]):
    """Reads messages. Not for several threads at once; *writers* may be others' too."""

    def __init__(self, writers: Writers, modes: DebeziumModes = DEFAULT_MODES) -> None:
        super().__init__(writers.of, form="Avro", expected="a record with before, after, source and op", modes=modes)
