"""Events that messages are read as, what they say of their rows, and what reads them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from historian.names import TableName
from historian.schema.snapshots import Column

__all__ = ["Conventions", "Decoder", "Event", "Field", "RowSchema", "SqlEvent", "Watermark"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """A field of the row.

    Attributes:
        column: what it is as a column, id 0.
        type: of Kafka Connect; ``name``: of what it means, "" for the plain type.
        parameters: that the schema gives with the meaning.
        default: of one that may be NULL, as the schema has it; None: there is none.
    """

    column: Column
    type: str
    name: str
    parameters: Mapping[str, str]
    default: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RowSchema:
    """What a message says of its rows: their fields in order, and the names of those that are its key.

    Attributes:
        key: None where the message does not tell.
        certainty: of the fields, as :attr:`connectors.readers.base.SchemaMet.certainty`.
    """

    fields: tuple[Field, ...]
    key: tuple[str, ...] | None
    certainty: str = "exact"

    @property
    def is_of_key_alone(self) -> bool:
        """Whether deletes with the same fields may be of a table that has more columns."""
        return {field.column.name for field in self.fields} == {*(self.key or ())}

    def tells_no_more_than(self, held: RowSchema | None) -> bool:
        """Whether it is of some columns alone, all of which *held* has so."""
        if held is None or self.certainty != "names" or self.key != held.key:
            return False
        return all(field in held.fields for field in self.fields)


@dataclass(frozen=True, slots=True, kw_only=True)
class Conventions:
    """How a format writes values for which JSON has no type.

    Attributes:
        binary: bytes: "base64", "base64-url-safe", "latin1" (each byte as the character of its number) or "hex".
        labels: ENUM and SET: "text", or "number" as the server stores them.
        shapes: geometries: "bytes" as the server stores them, in the form of ``binary``; "wkb" as Debezium's objects; "": not exactly.
        documents: JSON columns: "inline" as a part of the message, or "text".
        zone: of TIMESTAMPs that are written without one.
        whole: each row names all its columns; else a column that is missing is NULL.
        compressed: an update may leave out values that did not change, before it and behind it.
        debezium: temporal values are Debezium's by its mode ``temporal``, and ``decimal`` "base64" is its unscaled number.
        decimal: "text" (or a number), or "base64" (or a number).
        wraps: a BIGINT UNSIGNED above the signed ones may be written as the signed number of the same bits.
    """

    binary: str = "base64"
    labels: str = "text"
    shapes: str = ""
    documents: str = "inline"
    zone: str = "UTC"
    whole: bool = False
    compressed: bool = False
    debezium: bool = False
    temporal: str = "adaptive_time_microseconds"
    decimal: str = "text"
    wraps: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One change.

    Attributes:
        table: in the source; ``schema``: of its rows.
        op: c(reate), r(ead of a snapshot), u(pdate), d(elete). An update without ``before`` may be of a row that is new.
        before, after: the row by field; None where the event has none.
        event_time_us: of the change in the source, UTC microseconds.
        number: of the change in its message, from 0.
        written: how values are written where the schema does not say; None: it says.
        keyed: ``before`` has the columns of the key alone.
        unknown: fields of ``after`` whose values the message does not have.
        former_name: of the table, in plans of earlier releases; None: the same.
        moved: what this and another event have in common if both are one change of the key; "": it is none for sure.
        may_lack_nulls: where a nullable column has its default there may have been a NULL.
        source: of Debezium's, what its message says under that name, as where the change stands in the source's log; None: the message has to be looked at.
    """

    table: TableName
    schema: RowSchema
    op: str
    before: dict[str, Any] | None
    after: dict[str, Any] | None
    event_time_us: int
    number: int = 0
    written: Conventions | None = None
    keyed: bool = False
    unknown: tuple[str, ...] = ()
    former_name: TableName | None = None
    moved: str = ""
    may_lack_nulls: bool = False
    source: Mapping[str, Any] | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class SqlEvent:
    """A statement that the source executed.

    Attributes:
        database: the default one of names without; "" where none is told.
        event_time_us: UTC microseconds.
        source: where the source's log has it, as :attr:`connectors.readers.base.Statement.source`; "": that is not told.
        snapshot_source: as ``source``, of a statement that a snapshot makes: where the log stood.
    """

    sql: str
    database: str
    event_time_us: int
    source: str = ""
    snapshot_source: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Watermark:
    """A promise: what the source committed before is all in the partition by now.

    Attributes:
        time_us: UTC microseconds; what comes behind with an earlier time came before, or is late.
    """

    time_us: int


class Decoder(Protocol):
    """Reads messages of one format. Not for several threads at once."""

    def events(
        self, key: bytes | None, value: bytes | None, where: str, time_us: int = 0
    ) -> tuple[Event | SqlEvent | Watermark, ...]:
        """The events of a message, in order; none of one that changes nothing.

        Args:
            where: names the message in errors.
            time_us: of the message, UTC microseconds, for formats that tell no other.

        Raises:
            UnsupportedEvent: it is none of the format, or of a kind that is not read.
        """
