"""What TiCDC's own protocols have in common: events that say what they are, and rows by column. One decoder, led by a protocol's table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from connectors.readers.kafka.messages.events import Conventions, Event, RowSchema, SqlEvent, Watermark
from connectors.readers.kafka.messages.timestamps import time_us as time_of
from connectors.readers.kafka.messages.whole_rows import only_key_sent
from historian.errors import UnsupportedEvent
from historian.names import TableName

__all__ = ["TidbDecoder", "TidbProtocol", "TidbRows"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TidbProtocol:
    """A protocol by its names.

    Attributes:
        title: for people; ``shape``: what a message looks like, for errors.
        kind: the field that says what an event is. It is a row by its operation, of ``ops``; None: that is told by which rows it has.
            Or it is one of ``statements``, a ``watermark``, or one of ``passed_over``.
        time: the field of TiDB's timestamp.
        database, table: fields of a row's names; ``sql``: of a statement's text.
        data, deleted, old: fields of the row after, of a row that is gone, and of the row before, which may leave out what did not change.
        cut: fields that are set where a row is not in its message, with what is found then.
    """

    title: str
    shape: str
    kind: str
    ops: Mapping[Any, str | None]
    statements: frozenset[Any]
    watermark: Any
    passed_over: frozenset[Any] = frozenset()
    time: str
    database: str
    table: str
    sql: str
    data: str
    deleted: str
    old: str
    cut: Mapping[str, str]


class TidbRows(Protocol):
    """What a protocol has of its own: how events stand in messages, and what they tell of schemas and values.

    Methods raise ValueError, TypeError, KeyError or AttributeError of what is none of the protocol.
    """

    @property
    def written(self) -> Conventions:
        """How values are written."""

    def events(self, key: bytes | None, value: bytes | None) -> Sequence[Mapping[str, Any]]:
        """The events of a message, each with its fields; what they tell of tables serves for those behind them."""

    def database(self, event: Mapping[str, Any], named: str) -> str:
        """The database of names without one in a statement, whose field for it is *named* so."""

    def schema(
        self, event: Mapping[str, Any], table: TableName, told: Mapping[str, Any], *, is_gone: bool
    ) -> RowSchema:
        """The schema of a row, which is *told* by column."""

    def value(self, told: Any) -> Any:
        """A column's value as JSON has it."""

    def is_key(self, row: Mapping[str, Any], schema: RowSchema) -> bool:
        """Whether a row that is gone is told by its key alone."""


class TidbDecoder:
    """Reads messages. Not for several threads at once.

    Args:
        rows: the protocol's own part.
    """

    def __init__(self, protocol: TidbProtocol, rows: TidbRows) -> None:
        self._protocol, self._rows = protocol, rows

    def events(
        self,
        key: bytes | None,
        value: bytes | None,
        where: str,
        time_us: int = 0,  # noqa: ARG002 messages tell when the source changed the row
    ) -> tuple[Event | SqlEvent | Watermark, ...]:
        """The events of a message, see :class:`connectors.readers.kafka.messages.events.Decoder`.

        Raises:
            UnsupportedEvent: it is none of the protocol, or an event's row is not in it.
        """
        try:
            events = enumerate(self._rows.events(key, value))
            found = (self._event(event, number, where) for number, event in events)
            return tuple(each for each in found if each is not None)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise UnsupportedEvent(
                f"a message is none of {self._protocol.title}",
                where=where,
                expected=self._protocol.shape,
                found=str(error),
                next_step="correct source.topics, or source.format",
            ) from None

    def _event(self, event: Mapping[str, Any], number: int, where: str) -> Event | SqlEvent | Watermark | None:
        protocol, kind = self._protocol, event[self._protocol.kind]
        if kind in protocol.passed_over:
            return None
        at_us = time_of(event[protocol.time])
        if kind == protocol.watermark:
            return Watermark(time_us=at_us)
        if kind in protocol.statements:
            sql = event[protocol.sql]
            if not isinstance(sql, str) or not sql:
                raise ValueError("a statement without text")
            return SqlEvent(sql=sql, database=self._rows.database(event, protocol.database), event_time_us=at_us)
        if kind not in protocol.ops:
            raise ValueError(f"an event of type {kind!r}")
        found = next((text for name, text in protocol.cut.items() if event.get(name)), None)
        if found is not None:
            raise only_key_sent(where, found, "set at the changefeed: large-message-handle-option=none")
        # Without a former row an update looks as an insert does, where the changefeed sends none at all.
        told_by_rows = "d" if protocol.data not in event else "u" if event.get(protocol.old) else "c"
        return self._row(event, protocol.ops[kind] or told_by_rows, number, at_us)

    def _row(self, event: Mapping[str, Any], op: str, number: int, at_us: int) -> Event:
        protocol = self._protocol
        table = TableName(str(event[protocol.database]), str(event[protocol.table]))
        name = protocol.deleted if op == "d" else protocol.data
        row = self._values(event, name)
        schema = self._rows.schema(event, table, event[name], is_gone=op == "d")
        former = {**row, **self._values(event, protocol.old)} if op == "u" else None
        return Event(
            table=table,
            schema=schema,
            op=op,
            before=row if op == "d" else former,
            after=None if op == "d" else row,
            event_time_us=at_us,
            number=number,
            written=self._rows.written,
            keyed=op == "d" and self._rows.is_key(row, schema),
        )

    def _values(self, event: Mapping[str, Any], name: str) -> dict[str, Any]:
        told = event.get(name)
        if not isinstance(told, dict) or not told:
            raise ValueError(f"no row in `{name}`")
        return {column: self._rows.value(each) for column, each in told.items()}
