"""TiCDC's Avro: rows under their key, by a registry, with types of TiDB in the schema; without a value the row is gone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from connectors.readers.kafka.avro.connect_schemas import LOGICAL
from connectors.readers.kafka.avro.writers import Writer, Writers
from connectors.readers.kafka.debezium.schemas import labels_of
from connectors.readers.kafka.messages.events import Conventions, Event, Field, RowSchema
from historian.errors import UnsupportedEvent
from historian.names import TableName
from historian.schema.snapshots import Column, ColumnType

__all__ = ["TidbAvroRows"]

_OURS = "_tidb_"
_CHARSET, _COLLATION = "utf8mb4", "utf8mb4_bin"
_TYPES: Mapping[str, ColumnType] = {
    "INT": ColumnType(name="int"),
    "INT UNSIGNED": ColumnType(name="int", unsigned=True),
    "BIGINT": ColumnType(name="bigint"),
    "BIGINT UNSIGNED": ColumnType(name="bigint", unsigned=True),
    "FLOAT": ColumnType(name="float"),
    "FLOAT UNSIGNED": ColumnType(name="float", unsigned=True),
    "DOUBLE": ColumnType(name="double"),
    "DOUBLE UNSIGNED": ColumnType(name="double", unsigned=True),
    "BLOB": ColumnType(name="longblob"),
    "TEXT": ColumnType(name="longtext", charset=_CHARSET, collation=_COLLATION),
    "DATE": ColumnType(name="date"),
    "DATETIME": ColumnType(name="datetime", fraction=6),
    "TIMESTAMP": ColumnType(name="timestamp", fraction=6),
    "TIME": ColumnType(name="time", fraction=6),
    "YEAR": ColumnType(name="year"),
    "JSON": ColumnType(name="json"),
}


class TidbAvroRows:
    """Reads messages. Not for several threads at once; *writers* may be others' too.

    Args:
        zone: of TIMESTAMPs, in which the changefeed runs.
    """

    def __init__(self, writers: Writers, *, zone: str = "UTC") -> None:
        self._writers = writers
        self._written = Conventions(labels="text", documents="text", zone=zone, decimal="base64", wraps=True)
        self._schemas: dict[tuple[Writer, Writer | None], RowSchema] = {}
        self._last: Writer | None = None

    def events(self, key: bytes | None, value: bytes | None, where: str, time_us: int = 0) -> tuple[Event, ...]:
        """The event of a message, see :class:`connectors.readers.kafka.messages.events.Decoder`.

        Raises:
            UnsupportedEvent: it has no key, or is no record of TiCDC's.
            RegistryDown, SourceError: its schema cannot be had.
        """
        if key is None:
            raise _unlike(where, "a message without a key")
        key_writer = self._writers.of(key, f"the key of {where}")
        fields = key_writer.value(key, f"the key of {where}")
        if value is None:
            schema = self._schema(key_writer, self._last, where)
            return (self._event(key_writer, schema, "d", fields, None, time_us),)
        self._last = self._writers.of(value, where)
        whole = self._last.value(value, where)
        row = {name: each for name, each in whole.items() if not name.startswith(_OURS)}
        op = whole.get("_tidb_op") or "u"
        if op not in ("c", "u"):
            raise _unlike(where, f"`_tidb_op` is {op!r}")
        told_ms = whole.get("_tidb_commit_physical_time")
        at_us = told_ms * 1000 if isinstance(told_ms, int) and 0 < told_ms < 2**52 else time_us
        schema = self._schema(key_writer, self._last, where)
        return (self._event(key_writer, schema, op, None, {**fields, **row}, at_us),)

    def _event(
        self,
        key: Writer,
        schema: RowSchema,
        op: str,
        before: dict[str, Any] | None,
        after: dict[str, Any] | None,
        time_us: int,
    ) -> Event:
        # The namespace is the changefeed's, then the database's.
        database, _, table = key.name.rpartition(".")
        return Event(
            table=TableName(database.rpartition(".")[2], table),
            schema=schema,
            op=op,
            before=before,
            after=after,
            event_time_us=time_us,
            written=self._written,
            keyed=op == "d",
        )

    def _schema(self, key: Writer, row: Writer | None, where: str) -> RowSchema:
        held = self._schemas.get((key, row))
        if held is not None:
            return held
        try:
            names = tuple(str(each["name"]) for each in key.parsed["fields"])
            told = [each for each in (row or key).parsed["fields"] if not str(each["name"]).startswith(_OURS)]
            fields = tuple(_field(each, is_key=each["name"] in names) for each in told)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise _unlike(where, f"a schema that is none of TiCDC's: {error!r}") from None
        certainty = "names" if row is None else "types"
        found = self._schemas[key, row] = RowSchema(fields=fields, key=names, certainty=certainty)
        return found


def _field(told: Mapping[str, Any], *, is_key: bool) -> Field:
    branches = told["type"] if isinstance(told["type"], list) else [told["type"]]
    (kind,) = (each for each in branches if each != "null")
    column = Column(id=0, name=str(told["name"]), type=_type(kind), nullable=not is_key and len(branches) > 1)
    return Field(column=column, type="", name="", parameters={})


def _type(kind: Mapping[str, Any]) -> ColumnType:
    parameters = kind["connect.parameters"]
    name = str(parameters["tidb_type"])
    if name in ("ENUM", "SET"):
        return ColumnType(
            name=name.lower(), labels=labels_of(str(parameters["allowed"])), charset=_CHARSET, collation=_COLLATION
        )
    if name == "BIT":
        return ColumnType(name="bit", length=int(parameters["length"]))
    if name.startswith("DECIMAL"):
        unsigned = name.endswith("UNSIGNED")
        if kind.get(LOGICAL) != "decimal":  # avro-decimal-handling-mode=string tells no digits
            return ColumnType(name="decimal", unsigned=unsigned)
        return ColumnType(name="decimal", precision=int(kind["precision"]), scale=int(kind["scale"]), unsigned=unsigned)
    return _TYPES.get(name) or ColumnType(name=name.lower())


def _unlike(where: str, found: str) -> UnsupportedEvent:
    return UnsupportedEvent(
        "a message is no row as TiCDC's Avro",
        where=where,
        expected="a record under a key, both by a registry",
        found=found,
        next_step="correct source.topics, or source.format",
    )
