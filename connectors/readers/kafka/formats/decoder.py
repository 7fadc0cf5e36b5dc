"""Messages of a flat format as events: one decoder, led by the format's table."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from typing import Any

from connectors.readers.kafka.debezium.changes import place_of, settled, truncated
from connectors.readers.kafka.debezium.names import schema_name
from connectors.readers.kafka.debezium.replaced_nulls import is_marked
from connectors.readers.kafka.formats.schemas import UNTOLD, inferred, told
from connectors.readers.kafka.formats.tables import FlatFormat
from connectors.readers.kafka.formats.values import rows_of
from connectors.readers.kafka.messages.events import Event, RowSchema, SqlEvent, Watermark
from connectors.readers.kafka.messages.modes import DEFAULT_MODES, DebeziumModes
from connectors.readers.kafka.messages.parsing import parsed
from connectors.readers.kafka.messages.timestamps import time_us
from connectors.readers.kafka.messages.whole_rows import only_key_sent
from historian.errors import UnsupportedEvent
from historian.names import TableName

__all__ = ["LAST_US", "FlatDecoder"]

_SHOWN = 60
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
LAST_US = (datetime.max.replace(tzinfo=timezone.utc) - _EPOCH) // timedelta(microseconds=1)
"""The last time that is one, UTC microseconds; the first is 0."""


class FlatDecoder:
    """Reads messages of one format. Not for several threads at once.

    Args:
        format: its table.
        zone: of TIMESTAMPs that are written without one.
        tells: events say what schema their message has; else they say none, for rows whose schema a plan knows.
        modes: of a connector of Debezium's.
    """

    def __init__(
        self,
        format: FlatFormat,  # noqa: A002 its name
        *,
        zone: str = "UTC",
        tells: bool = True,
        modes: DebeziumModes = DEFAULT_MODES,
    ) -> None:
        self.format = format
        self._tells, self._modes = tells, modes
        self._written = replace(format.written, zone=zone)
        self._told: dict[tuple[TableName, str], RowSchema] = {}
        self._inferred: dict[TableName, RowSchema] = {}

    def events(
        self,
        key: bytes | None,
        value: bytes | None,
        where: str,
        time_us: int = 0,  # noqa: ARG002 messages tell when the source changed the row
    ) -> tuple[Event | SqlEvent | Watermark, ...]:
        """The events of a message, in order; none of one that changes nothing, see :class:`connectors.readers.kafka.messages.events.Decoder`.

        Raises:
            UnsupportedEvent: it is none of this format, or of a kind that is not read.
        """
        form = self.format
        if value is None:
            if form.tombstones:
                return ()
            raise self._unlike(where, "no value")
        message = self._parsed(value, where)
        op = _at(message, form.op)
        if op is None and any(
            fields <= message.keys() and (len(fields) > 1 or len(message) == 1) for fields in form.no_rows
        ):
            return ()
        if not isinstance(op, str):
            raise self._unlike(where, f"no `{form.op}`, with the fields {', '.join(map(str, message))[:_SHOWN]}")
        if (form.is_ddl and message.get(form.is_ddl) is True) or op in form.ddl_ops:
            return self._statement(message, where)
        if op in form.passed_over:
            return ()
        if form.truncate and op == form.truncate:
            return (self._truncated(message, where),)
        if form.watermark and op == form.watermark:
            return self._watermark(message, where)
        if op not in form.ops:
            raise self._unlike(where, f"`{form.op}` is {op!r}, which is none of {', '.join(form.ops)}")
        cut = next((path for path in form.partial if _at(message, path)), None)
        if cut is not None:
            found = f"{cut}: {_at(message, cut)}"[:_SHOWN]
            raise only_key_sent(where, found, f"set at the changefeed: {form.partial_fix}")
        return self._rows(message, form.ops[op], key, where)

    @property
    def inferred(self) -> Mapping[TableName, RowSchema]:
        """What rows have told of their tables so far, where messages tell no types."""
        return self._inferred

    def forget(self) -> None:
        """What columns there were so far says nothing of those behind: a statement came that stands elsewhere."""
        self._inferred.clear()

    @property
    def modes(self) -> DebeziumModes:
        """Of a connector of Debezium's."""
        return self._modes

    def source(self, value: bytes) -> Mapping[str, Any]:
        """The envelope's ``source`` of a message, where its format has such a thing."""
        found = _at(self._loaded(value), self.format.source)
        return found if isinstance(found, dict) else {}

    # ---- rows ------------------------------------------------------------------------------------------------------
    def _rows(self, message: Mapping[str, Any], op: str, key: bytes | None, where: str) -> tuple[Event, ...]:
        form = self.format
        table = self._table(message, where)
        if form.types and not isinstance(message.get(form.types) or {}, dict):
            raise self._unlike(where, f"`{form.types}` is no object")
        rows = rows_of(_at(message, form.deleted if op == "d" else form.data))
        keyed = rows is None and op == "d" and form.former == "whole" and _at(message, form.deleted) is None
        after = rows_of(self._key_fields(key)) if keyed else rows
        if after is None:
            raise self._unlike(where, f"`{form.data}` holds no row")
        old = rows_of(_at(message, form.old)) if op == "u" else None
        if (
            form.former == "if_whole"
            and old is not None
            and [each.keys() for each in old] != [each.keys() for each in after]
        ):
            old = None
        if old is not None and len(old) != len(after):
            raise UnsupportedEvent(
                "an update without all rows before it",
                where=f"{table} at {where}",
                expected=f"`{form.old}` with a former row for each row of `{form.data}`",
                found=f"{len(old)} former rows of {len(after)}",
                next_step="have the producer send former rows",
            )
        # A scan looks for schemas, and does not see this of messages that compiled code reads.
        if form.old_has_changes and not self._tells and old is not None and not all(old):
            raise UnsupportedEvent(
                "an update that names no column which changed: NULLs are left out",
                where=f"{table} at {where}",
                expected=f"`{form.old}` with what changed, NULLs among it, as output_nulls=true of Maxwell writes it",
                found=f"`{form.old}` without a column",
                next_step="have the producer write NULLs, and its topics anew",
            )
        time_us = self._time_us(message, form.time_unit_us, where)
        columns = self._key(message, key)
        by_key = op == "d" and form.short_deletes and bool(columns)
        events = []
        source = _at(message, form.source)
        for number, row in enumerate(after):
            former = None
            if old is not None:
                # What `old` names had another value, NULL too; what it does not name had the same.
                former = {**row, **old[number]} if form.former == "overlay" else dict(old[number])
            is_key = by_key and row.keys() == {*(columns or ())}
            schema = self._schema(table, message, row, former, columns, is_key=is_key) if self._tells else UNTOLD
            event = Event(
                table=table,
                schema=schema,
                op=op,
                before=dict(row) if op == "d" else former,
                after=None if op == "d" else dict(row),
                event_time_us=time_us,
                number=number,
                written=self._written,
                keyed=keyed or is_key,
            )
            if isinstance(source, dict):
                event = settled(event, source, lambda: self._key_fields(key), self._modes)
                if is_marked(source) and not self._modes.accepts_defaults:
                    event = replace(event, may_lack_nulls=True)
            events.append(event)
        return tuple(events)

    def _schema(
        self,
        table: TableName,
        message: Mapping[str, Any],
        row: Mapping[str, Any],
        former: Mapping[str, Any] | None,
        key: tuple[str, ...] | None,
        *,
        is_key: bool,
    ) -> RowSchema:
        form = self.format
        if form.types:
            types = message.get(form.types) or {}
            names = tuple(row)
            text = repr((names, types, key, is_key))
            held = self._told.get((table, text))
            if held is None:
                held = told(types, names, key, form.types_are)
                if is_key or not types:
                    # A delete of the key alone does not say that there are no other columns.
                    held = replace(held, certainty="names")
                self._told[table, text] = held
            return held
        held = inferred(row, self._inferred.get(table), key)
        if former is not None:
            held = inferred(former, held, key)
        self._inferred[table] = held
        return held

    def _key(self, message: Mapping[str, Any], key: bytes | None) -> tuple[str, ...] | None:
        """The names of the key's columns; None where the message does not tell."""
        form = self.format
        names = _at(message, form.key) if form.key else None
        if isinstance(names, list):
            return tuple(map(str, names))
        if form.types:
            return ()  # a format that tells types tells a key too, where there is one
        return None if form.key_prefix is None else tuple(self._key_fields(key) or ()) or None

    def _key_fields(self, key: bytes | None) -> dict[str, Any] | None:
        """The fields of a message's key that are columns, by name; None where it is no object."""
        prefix = self.format.key_prefix
        if prefix is None or not key or not key.startswith(b"{"):
            return None
        try:
            fields = self._loaded(key)
        except (ValueError, RecursionError):
            return None
        return {name.removeprefix(prefix): value for name, value in fields.items() if name.startswith(prefix)}

    def _table(self, message: Mapping[str, Any], where: str) -> TableName:
        form = self.format
        database, table = _at(message, form.database), _at(message, form.table)
        if form.qualified and isinstance(table, str):
            database, _, table = table.rpartition(".")
        schema = _at(message, form.schema) if form.schema else None
        if isinstance(schema, str):
            database = schema_name(_at(message, "source.connector"), database, schema)
        if not isinstance(table, str) or not table:
            raise self._unlike(where, f"no `{form.table}`")
        if not isinstance(database, str):
            raise self._unlike(where, f"no `{form.database}`")
        return TableName(database, table)

    # ---- statements ------------------------------------------------------------------------------------------------
    def _statement(self, message: Mapping[str, Any], where: str) -> tuple[SqlEvent, ...]:
        form = self.format
        sql = message.get(form.sql)
        if not isinstance(sql, str) or not sql.strip():
            raise self._unlike(where, f"a statement without `{form.sql}`")
        database = _at(message, form.database)
        self.forget()
        return (
            SqlEvent(
                sql=sql,
                database=database if isinstance(database, str) else "",
                event_time_us=self._time_us(message, form.ddl_unit_us, where),
            ),
        )

    def _truncated(self, message: Mapping[str, Any], where: str) -> SqlEvent:
        form = self.format
        source = _at(message, form.source)
        place = place_of(source) if isinstance(source, dict) else place_of(message, filter(None, (form.place,)))
        return truncated(self._table(message, where), self._time_us(message, form.time_unit_us, where), place)

    def _watermark(self, message: Mapping[str, Any], where: str) -> tuple[Watermark, ...]:
        try:
            return (Watermark(time_us=time_us(_at(message, self.format.watermark_at))),)
        except ValueError as error:
            raise self._unlike(where, f"`{self.format.watermark_at}`: {error}") from None

    # ---- parts of a message ----------------------------------------------------------------------------------------
    def _parsed(self, value: bytes, where: str) -> dict[str, Any]:
        try:
            message = self._loaded(value)
        except (ValueError, RecursionError) as error:
            raise self._unlike(where, f"broken JSON: {error}") from None
        if not isinstance(message, dict):
            raise self._unlike(where, value[:_SHOWN].decode("utf-8", "replace"))
        return message

    def _loaded(self, text: bytes) -> Any:
        return parsed(text, exact=self.format.exact)

    def _time_us(self, message: Mapping[str, Any], unit_us: int, where: str) -> int:
        found = _at(message, self.format.time)
        time_us = -1
        if unit_us and isinstance(found, int) and not isinstance(found, bool):
            time_us = found * unit_us
        elif not unit_us and isinstance(found, str):
            with contextlib.suppress(ValueError, OverflowError):
                at = datetime.fromisoformat(found.replace("Z", "+00:00"))
                time_us = ((at if at.tzinfo else at.replace(tzinfo=timezone.utc)) - _EPOCH) // timedelta(microseconds=1)
        if not 0 <= time_us <= LAST_US:
            raise self._unlike(where, f"`{self.format.time}` is no time: {str(found)[:_SHOWN]}")
        return time_us

    def _unlike(self, where: str, found: str) -> UnsupportedEvent:
        return UnsupportedEvent(
            f"a message is none of {self.format.title}",
            where=where,
            expected=self.format.shape,
            found=found,
            next_step="correct source.topics, or source.format",
        )


def _at(message: Mapping[str, Any], path: str) -> Any:
    if "." not in path:
        return message.get(path) if path else None
    found: Any = message
    for name in path.split("."):
        if not isinstance(found, dict):
            return None
        found = found.get(name)
    return found
