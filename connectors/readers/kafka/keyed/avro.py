"""Avro under a key, by a registry: the row as it is from now on; without a value it is gone."""

from __future__ import annotations

from typing import Any

from connectors.readers.kafka.avro.writers import Writer, Writers
from connectors.readers.kafka.debezium.schemas import UNLIKE_A_SCHEMA, columns_of
from connectors.readers.kafka.keyed.keys import key_fields
from connectors.readers.kafka.keyed.names import table_of
from connectors.readers.kafka.messages.events import Event, Field, RowSchema
from historian.errors import UnsupportedEvent

__all__ = ["AvroRows"]

_TEXT = {"type": "string", "optional": False}


class AvroRows:
    """Reads the messages of one topic. Not for several threads at once; *writers* may be others' too.

    Args:
        topic: whose name tells the table's.
    """

    def __init__(self, topic: str, writers: Writers) -> None:
        self._table = table_of(topic)
        self._writers = writers
        self._schemas: dict[tuple[Writer | None, Writer | None], RowSchema] = {}
        self._last: Writer | None = None

    def events(self, key: bytes | None, value: bytes | None, where: str, time_us: int = 0) -> tuple[Event, ...]:
        """The event of a message, see :class:`connectors.readers.kafka.messages.events.Decoder`.

        Raises:
            UnsupportedEvent: it has no key, or is no record of Avro with a schema of the registry.
            RegistryDown, SourceError: its schema cannot be had.
        """
        key_writer = self._writers.of(key, f"the key of {where}") if key is not None and key[:1] == b"\0" else None
        fields = key_fields(key, where) if key_writer is None else key_writer.value(key or b"", f"the key of {where}")
        before, after = None, None
        if value is None:
            before = fields
        else:
            self._last = self._writers.of(value, where)
            after = {**fields, **self._last.value(value, where)}
        return (
            Event(
                table=self._table,
                # What columns a row has that is gone, the last row tells that was there.
                schema=self._schema(key_writer, self._last, fields, where),
                op="d" if after is None else "u",
                before=before,
                after=after,
                event_time_us=time_us,
                keyed=after is None,
            ),
        )

    def _schema(self, key_writer: Writer | None, writer: Writer | None, key: dict[str, Any], where: str) -> RowSchema:
        held = self._schemas.get((key_writer, writer))
        if held is not None:
            return held
        try:
            names = tuple(key)
            of_key = [{"field": name, **_TEXT} for name in names] if key_writer is None else key_writer.fields()
            of_row = [] if writer is None else writer.fields()
            found = {str(each["field"]): each for each in (*of_key, *of_row)}
            fields: tuple[Field, ...] = columns_of({"fields": list(found.values())}, where)
        except UNLIKE_A_SCHEMA as error:
            raise UnsupportedEvent(
                "a message is no row as Avro",
                where=where,
                expected="records of Avro as key and value",
                found=repr(error),
                next_step="correct source.topics, or source.format",
            ) from None
        schema = RowSchema(fields=fields, key=names, certainty="names" if writer is None else "exact")
        self._schemas[key_writer, writer] = schema
        return schema
