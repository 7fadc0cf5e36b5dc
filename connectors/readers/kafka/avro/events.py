"""Messages of Debezium's as Avro, as events: which table, under which schema, what was done, with what rows."""

from __future__ import annotations

from typing import Any

from connectors.readers.kafka.avro.writers import Writer, Writers
from connectors.readers.kafka.debezium.changes import changed, is_change
from connectors.readers.kafka.debezium.names import is_of_mysql
from connectors.readers.kafka.debezium.schemas import UNLIKE_A_SCHEMA, columns_of
from connectors.readers.kafka.messages.events import Event, RowSchema, SqlEvent
from historian.errors import UnsupportedEvent

__all__ = ["AvroEventReader"]

_NO_ROWS = (".common.Heartbeat", ".common.TransactionMetadataValue", ".SchemaChangeValue")
"""How records that are no rows are named, behind Debezium's package."""


class AvroEventReader:
    """Reads messages. Not for several threads at once; *writers* may be others' too."""

    def __init__(self, writers: Writers, *, binary: str = "bytes") -> None:
        self._writers, self._binary = writers, binary
        self._schemas: dict[tuple[Writer | None, Writer], RowSchema] = {}

    def events(
        self,
        key: bytes | None,
        value: bytes | None,
        where: str,
        time_us: int = 0,  # noqa: ARG002 messages tell when the source changed the row
    ) -> tuple[Event | SqlEvent, ...]:
        """The event of a message; none of one that is no change of a row: a tombstone, a heartbeat, or another message of Debezium's own.

        Args:
            where: names the message in errors.

        Raises:
            UnsupportedEvent: it is none of Debezium's as Avro, or of a kind that is not read yet.
            RegistryDown, SourceError: its schema cannot be had.
        """
        if value is None:
            return ()
        writer = self._writers.of(value, where)
        payload = writer.value(value, where)
        if not is_change(payload) and writer.name.endswith(_NO_ROWS):
            return ()
        found = changed(
            payload, lambda: self._schema(key, writer, where), where, _unlike, lambda: self._key_fields(key, where)
        )
        return () if found is None else (found,)

    def is_plain(self, value: bytes) -> bool:
        """Whether the table of a message is named by what compiled code compares; raises as :meth:`events` does."""
        source = self.writer(value).value(value, "a message").get("source")
        return isinstance(source, dict) and is_of_mysql(source)

    def _key_fields(self, key: bytes | None, where: str) -> dict[str, Any] | None:
        where = f"the key of {where}"
        return None if key is None else self._writers.of(key, where).value(key, where)

    def writer(self, value: bytes) -> Writer:
        """The schema that a message was written with; raises as :meth:`events` does."""
        return self._writers.of(value, "a message")

    def _schema(self, key: bytes | None, writer: Writer, where: str) -> RowSchema:
        key_writer = None if key is None else self._writers.of(key, f"the key of {where}")
        held = self._schemas.get((key_writer, writer))
        if held is not None:
            return held
        try:
            row = {"fields": writer.fields("after")}
            names = () if key_writer is None else tuple(str(each["field"]) for each in key_writer.fields())
            found = RowSchema(fields=columns_of(row, where, self._binary), key=names)
        except UNLIKE_A_SCHEMA as error:
            raise _unlike(where, f"schema {writer.number} of {writer.name}: {error!r}") from None
        self._schemas[key_writer, writer] = found
        return found


def _unlike(where: str, found: str) -> UnsupportedEvent:
    return UnsupportedEvent(
        "a message is no event of Debezium's as Avro",
        where=where,
        expected="a record with before, after, source and op",
        found=found,
        next_step="correct source.topics, or source.format",
    )
