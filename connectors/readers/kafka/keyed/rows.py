"""Rows under their keys: a message is the row as it is from now on, and without a value it is gone. One decoder, led by the format's table.

Each key and each value says itself how it was written, as far as the format leaves that open. By its first byte it has a schema in a registry,
by its first member its schema inline, else none.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from connectors.readers.kafka.avro.writers import Writers
from connectors.readers.kafka.debezium.changes import with_known
from connectors.readers.kafka.debezium.placeholders import placeholders_of
from connectors.readers.kafka.debezium.schemas import UNLIKE_A_SCHEMA, columns_of
from connectors.readers.kafka.formats.schemas import UNTOLD, inferred
from connectors.readers.kafka.keyed.declared import declared_fields
from connectors.readers.kafka.keyed.deletes import TOMBSTONES_DELETE, Deletes
from connectors.readers.kafka.keyed.formats import KeyedFormat
from connectors.readers.kafka.keyed.keys import key_fields
from connectors.readers.kafka.keyed.names import table_of
from connectors.readers.kafka.messages.events import Conventions, Event, RowSchema
from connectors.readers.kafka.messages.modes import DEFAULT_MODES
from connectors.readers.kafka.messages.parsing import parsed
from historian.errors import UnsupportedEvent
from historian.names import TableName

__all__ = ["KeyedRows"]

_INLINE = b'{"schema":'
_FIRST_BYTE = b"\0"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """A key or a value: its fields, what gives their schema in Kafka Connect's words (None where none is told), and its record's name."""

    values: Mapping[str, Any]
    told: Callable[[], list[Any]] | None = None
    id: Hashable = None
    name: str = ""


class KeyedRows:
    """Reads the messages of one topic. Not for several threads at once; *writers* may be others' too.

    Args:
        topic: whose name tells the table's where no message does.
        written: how values are written without a schema.
        tells: events say what schema their message has, where it stands in none, and rows are checked by *deletes*. Those that are planned were.
        unavailable: see :class:`connectors.readers.kafka.messages.modes.DebeziumModes`.
        deletes: where they are, in formats with a mark of rows that are gone.
    """

    def __init__(
        self,
        form: KeyedFormat,
        topic: str,
        *,
        written: Conventions,
        writers: Writers | None = None,
        tells: bool = True,
        unavailable: str = DEFAULT_MODES.unavailable,
        deletes: Deletes = TOMBSTONES_DELETE,
    ) -> None:
        self._form, self._table = form, table_of(topic)
        self._written, self._writers, self._tells = written, writers, tells
        self._placeholders = placeholders_of(unavailable)
        self._schemas: dict[tuple[Hashable, ...], RowSchema] = {}
        self._inferred: dict[TableName, RowSchema] = {}
        self._last: dict[TableName, _Part] = {}
        self._deletes = deletes

    def events(self, key: bytes | None, value: bytes | None, where: str, time_us: int = 0) -> tuple[Event, ...]:
        """The event of a message, see :class:`connectors.readers.kafka.messages.events.Decoder`.

        Raises:
            UnsupportedEvent: it is no row of the format, or has no key.
            RegistryDown, DeletesElsewhere: its schema cannot be had; or it is a row of a topic whose deletes are elsewhere.
        """
        if value is None and self._tells:
            self._deletes.refuse(where)
        if value is None and self._deletes.tombstones == "ignore":
            return ()
        of_key = self._key(key, where)
        told = None if value is None else self._part(value, where)
        added = self._added({} if told is None else told.values)
        row = {**of_key.values, **({} if told is None else self._columns(told.values))}
        table = self._named(of_key, added)
        if told is not None and self._tells and self._form.deleted:
            self._deletes.check(table, f"{self._form.added}{self._form.deleted}", told.values, self._table, where)
        # What columns a row has that is gone, the last row of the table tells that was there.
        last = self._last.get(table) if told is None else told
        if told is not None:
            self._last[table] = told
        part = last or of_key
        op = self._op(added, where, is_gone=value is None)
        is_gone = op == "d"
        after, unknown = with_known(None, row, self._placeholders) if self._form.debezium else (row, ())
        return (
            Event(
                table=table,
                schema=self._schema(of_key, last, table, row, where),
                op=op,
                before=dict(of_key.values) if is_gone else None,
                after=None if is_gone else after,
                event_time_us=self._time_us(added, time_us),
                written=self._written if part.told is None or self._form.types else None,
                keyed=is_gone,
                unknown=() if is_gone else unknown,
            ),
        )

    # ---- parts of a message ----------------------------------------------------------------------------------------
    def _key(self, key: bytes | None, where: str) -> _Part:
        is_avro = self._form.avro != "never" and key is not None and key.startswith(_FIRST_BYTE)
        if key is not None and (is_avro or self._form.of_record or (self._form.inline and key.startswith(_INLINE))):
            return self._part(key, f"the key of {where}")
        return _Part(values=key_fields(key, where))

    def _part(self, text: bytes, where: str) -> _Part:
        if self._form.avro == "always" or (self._form.avro == "maybe" and text.startswith(_FIRST_BYTE)):
            if self._writers is None:
                raise self._unlike(where, "a schema in a registry, and no source.registry")
            writer = self._writers.of(text, where)
            return _Part(values=writer.value(text, where), told=writer.fields, id=writer, name=writer.name)
        try:
            message = parsed(text, exact=True)
        except (ValueError, RecursionError) as error:
            raise self._unlike(where, f"broken JSON: {error}") from None
        if not isinstance(message, dict):
            raise self._unlike(where, text[:60].decode("utf-8", "replace"))
        if not (self._form.inline and text.startswith(_INLINE) and message.keys() == {"schema", "payload"}):
            return _Part(values=message)
        schema, payload = message["schema"], message["payload"]
        if not isinstance(payload, dict) or not isinstance(schema, dict):
            raise self._unlike(where, "a payload that is no object")
        return _Part(values=payload, told=lambda: list(schema["fields"]), id=json.dumps(schema, default=str))

    def _columns(self, values: Mapping[str, Any]) -> Mapping[str, Any]:
        added = self._form.added
        return {name: each for name, each in values.items() if not name.startswith(added)} if added else values

    def _added(self, values: Mapping[str, Any]) -> Mapping[str, Any]:
        """The fields that are no columns, without what their names begin with."""
        added = self._form.added
        return {name[len(added) :]: each for name, each in values.items() if added and name.startswith(added)}

    def _op(self, added: Mapping[str, Any], where: str, *, is_gone: bool) -> str:
        form = self._form
        if is_gone or str(added.get(form.deleted)).lower() == "true":
            return "d"
        told = str(added.get(form.op) or "")
        # Without its operation a row may be new, or not.
        if told and told not in form.ops:
            raise self._unlike(where, f"`{form.added}{form.op}` is {told!r}")
        return form.ops[told] if told else "u"

    def _named(self, key: _Part, added: Mapping[str, Any]) -> TableName:
        """The table, where messages tell it; else that of the topic."""
        form = self._form
        if form.of_record:
            # The record's namespace ends with the database.
            namespace, _, name = key.name.rpartition(".")
            return TableName(namespace.rpartition(".")[2], name)
        table, database = _first(added, form.table), _first(added, form.database)
        if table is None:
            return self._table
        return TableName(self._table.database if database is None else database, table)

    def _time_us(self, added: Mapping[str, Any], time_us: int) -> int:
        """When the source changed the row, as far as it is told; else when the message was sent."""
        for name, unit_us in self._form.times:
            found = added.get(name)
            if isinstance(found, int) and not isinstance(found, bool) and 0 < found * unit_us < 2**62:
                return found * unit_us
        return time_us

    # ---- schemas ---------------------------------------------------------------------------------------------------
    def _schema(
        self, key: _Part, last: _Part | None, table: TableName, row: Mapping[str, Any], where: str
    ) -> RowSchema:
        part, names = last or key, tuple(key.values)
        if part.told is None:
            if not self._tells:
                return UNTOLD
            found = self._inferred[table] = inferred(row, self._inferred.get(table), names)
            return found
        at = (key.id, names, part.id, last is None)
        held = self._schemas.get(at)
        if held is None:
            try:
                held = self._told(part.told(), key, where, is_key=last is None)
            except UNLIKE_A_SCHEMA as error:
                raise self._unlike(where, f"a schema that is none of a row: {error!r}") from None
            self._schemas[at] = held
        return held

    def _told(self, part: list[Any], key: _Part, where: str, *, is_key: bool) -> RowSchema:
        """The schema of rows by what a record tells of its fields."""
        names = tuple(key.values)
        of_key = key.told() if key.told else [{"field": name, "type": "string"} for name in names]
        fields = {**self._columns({str(each["field"]): each for each in part})}
        for each in of_key:
            fields.setdefault(str(each["field"]), each)
        types = self._form.types
        if types is not None:
            found = declared_fields(fields.values(), names, types)
            return RowSchema(fields=found, key=names, certainty="names" if is_key else "types")
        found = columns_of({"fields": list(fields.values())}, where)
        return RowSchema(fields=found, key=names, certainty="names" if is_key else "exact")

    def _unlike(self, where: str, found: str) -> UnsupportedEvent:
        return UnsupportedEvent(
            f"a message is no row {self._form.title}",
            where=where,
            expected=self._form.shape,
            found=found,
            next_step="correct source.topics, or source.format",
        )


def _first(fields: Mapping[str, Any], names: Iterable[str]) -> str | None:
    """The first text that is told under one of *names*."""
    return next((found for name in names if isinstance(found := fields.get(name), str) and found), None)
