"""What each format of rows under their keys calls things."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from connectors.readers.kafka.keyed.declared import DeclaredTypes
from connectors.readers.kafka.messages.events import Conventions

__all__ = ["KEYED_FORMATS", "KeyedFormat"]


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyedFormat:
    """A format of rows under their keys.

    Attributes:
        title: for people, behind "a row"; ``shape``: what a message looks like, for errors.
        avro: whether messages are Avro by a registry: "never", "maybe" or "always".
        inline: messages may have their schema inline, as Kafka Connect's.
        added: what names of fields begin with that are no columns; "": all are. What follows are names of those fields, without it.
        op: of the operation; ``ops``: its values as c(reate), r(ead of a snapshot), u(pdate), d(elete). None: the row may be new, or not.
        deleted: of a mark of rows that are gone; "": there is none.
        times: of when the source changed the row, with their units in microseconds, best first.
        table, database: of the table's names and of its database's, best first; the topic's name tells what they do not.
        of_record: in their place the key's record names the table. Keys are Avro then.
        types: how fields of records declare what a column is in the database; None: as Kafka Connect does.
        debezium: values that did not change may have Debezium's placeholder, and others are as Debezium writes them.
        written: conventions of values else.
    """

    title: str
    shape: str
    avro: str = "never"
    inline: bool = False
    added: str = ""
    op: str = "op"
    ops: Mapping[str, str] = field(default_factory=dict)
    deleted: str = ""
    times: tuple[tuple[str, int], ...] = ()
    table: tuple[str, ...] = ()
    database: tuple[str, ...] = ()
    of_record: bool = False
    types: DeclaredTypes | None = None
    debezium: bool = False
    written: Conventions = field(default_factory=Conventions)


KEYED_FORMATS: Mapping[str, KeyedFormat] = {
    "debezium_unwrapped": KeyedFormat(
        title="that Debezium's ExtractNewRecordState writes",
        shape="the fields of a row",
        avro="maybe",
        inline=True,
        added="__",
        ops={"c": "c", "r": "r", "u": "u", "d": "d"},
        deleted="deleted",
        times=(("source_ts_us", 1), ("source_ts_ms", 1000), ("ts_us", 1), ("ts_ms", 1000)),
        table=("table", "source_table"),
        database=("schema", "source_schema", "db", "source_db"),
        debezium=True,
    ),
    "json_upsert": KeyedFormat(title="as JSON", shape="an object"),
    "avro_upsert": KeyedFormat(title="as Avro", shape="records of Avro as key and value", avro="always"),
}
"""By the name that ``source.format`` has for them."""
