"""Messages whose schemas a registry has, as events: which table, under which schema, what was done, with what rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, Protocol, TypeVar

from connectors.readers.kafka.debezium.changes import changed, is_change
from connectors.readers.kafka.debezium.names import is_of_mysql
from connectors.readers.kafka.debezium.schemas import UNLIKE_A_SCHEMA, row_schema
from connectors.readers.kafka.messages.events import Event, RowSchema, SqlEvent
from connectors.readers.kafka.messages.modes import DEFAULT_MODES, DebeziumModes
from historian.errors import UnsupportedEvent

__all__ = ["MessageSchema", "RegisteredEvents"]

_NO_ROWS = (".common.Heartbeat", ".common.TransactionMetadataValue", ".SchemaChangeValue")
"""How schemas of messages that are no rows are named, behind Debezium's package."""


class MessageSchema(Protocol):
    """A schema that messages name by its ``number``."""

    @property
    def number(self) -> int:
        """Its id in the registry."""

    @property
    def name(self) -> str:
        """What it calls itself, "" where it has no name."""

    def value(self, message: bytes, where: str) -> dict[str, Any]:
        """What *message* holds behind its header; UnsupportedEvent where that is none of this schema."""

    def fields(self, part: str = "") -> list[dict[str, Any]]:
        """The fields of what it describes, or of its field *part*, in Kafka Connect's words; KeyError and the like where there are none."""


S = TypeVar("S", bound=MessageSchema)


class RegisteredEvents(Generic[S]):
    """Reads messages. Not for several threads at once.

    Args:
        schema_of: gives the schema that a message names, of the message and its name in errors.
        form: what messages are events of Debezium's as, in errors; *expected*: and how such a one looks.
    """

    def __init__(
        self,
        schema_of: Callable[[bytes, str], S],
        *,
        form: str,
        expected: str,
        modes: DebeziumModes = DEFAULT_MODES,
    ) -> None:
        self._schema_of, self._form, self._expected, self._modes = schema_of, form, expected, modes
        self._schemas: dict[tuple[S | None, S], RowSchema] = {}

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
            UnsupportedEvent: it is none of Debezium's in this form, or of a kind that is not read yet.
            RegistryDown, SourceError: its schema cannot be had.
        """
        if value is None:
            return ()
        schema = self._schema_of(value, where)
        payload = schema.value(value, where)
        if not is_change(payload) and schema.name.endswith(_NO_ROWS):
            return ()
        found = changed(
            payload,
            lambda: self._row_schema(key, schema, where),
            where,
            self._unlike,
            lambda: self._key_fields(key, where),
            self._modes,
        )
        return () if found is None else (found,)

    @property
    def modes(self) -> DebeziumModes:
        """Of the connector."""
        return self._modes

    def schema(self, value: bytes) -> S:
        """The schema that a message was written with; raises as :meth:`events` does."""
        return self._schema_of(value, "a message")

    def is_plain(self, value: bytes) -> bool:
        """Whether the table of a message is named by what compiled code compares; raises as :meth:`events` does."""
        source = self.schema(value).value(value, "a message").get("source")
        return isinstance(source, dict) and is_of_mysql(source)

    def _key_fields(self, key: bytes | None, where: str) -> dict[str, Any] | None:
        where = f"the key of {where}"
        return None if key is None else self._schema_of(key, where).value(key, where)

    def _row_schema(self, key: bytes | None, schema: S, where: str) -> RowSchema:
        key_schema = None if key is None else self._schema_of(key, f"the key of {where}")
        held = self._schemas.get((key_schema, schema))
        if held is not None:
            return held
        try:
            key_fields = () if key_schema is None else key_schema.fields()
            found = row_schema(schema.fields("after"), key_fields, where, self._modes.binary)
        except UNLIKE_A_SCHEMA as error:
            name = schema.name or "without a name"
            raise self._unlike(where, f"schema {schema.number}, {name}: {error!r}") from None
        self._schemas[key_schema, schema] = found
        return found

    def _unlike(self, where: str, found: str) -> UnsupportedEvent:
        return UnsupportedEvent(
            f"a message is no event of Debezium's as {self._form}",
            where=where,
            expected=self._expected,
            found=found,
            next_step="correct source.topics, or source.format",
        )
