"""TiCDC's Avro: rows under their key, by a registry, with types of TiDB in the schema; without a value the row is gone."""

from __future__ import annotations

from connectors.readers.kafka.keyed.declared import DeclaredTypes
from connectors.readers.kafka.keyed.formats import KeyedFormat
from connectors.readers.kafka.messages.events import Conventions
from historian.schema.snapshots import ColumnType

__all__ = ["TICDC_AVRO"]

_CHARSET, _COLLATION = "utf8mb4", "utf8mb4_bin"

_TYPES = DeclaredTypes(
    name="tidb_type",
    names={
        "INT": ColumnType(name="int"),
        "INT UNSIGNED": ColumnType(name="int", unsigned=True),
        "BIGINT": ColumnType(name="bigint"),
        "BIGINT UNSIGNED": ColumnType(name="bigint", unsigned=True),
        "FLOAT": ColumnType(name="float"),
        "FLOAT UNSIGNED": ColumnType(name="float", unsigned=True),
        "DOUBLE": ColumnType(name="double"),
        "DOUBLE UNSIGNED": ColumnType(name="double", unsigned=True),
        "DECIMAL": ColumnType(name="decimal"),
        "DECIMAL UNSIGNED": ColumnType(name="decimal", unsigned=True),
        "BIT": ColumnType(name="bit"),
        "BLOB": ColumnType(name="longblob"),
        "TEXT": ColumnType(name="longtext", charset=_CHARSET, collation=_COLLATION),
        "ENUM": ColumnType(name="enum", charset=_CHARSET, collation=_COLLATION),
        "SET": ColumnType(name="set", charset=_CHARSET, collation=_COLLATION),
        "DATE": ColumnType(name="date"),
        "DATETIME": ColumnType(name="datetime", fraction=6),
        "TIMESTAMP": ColumnType(name="timestamp", fraction=6),
        "TIME": ColumnType(name="time", fraction=6),
        "YEAR": ColumnType(name="year"),
        "JSON": ColumnType(name="json"),
    },
    labels="allowed",
    length="length",
)

TICDC_AVRO = KeyedFormat(
    title="as TiCDC's Avro",
    shape="a record under a key, both by a registry",
    avro="always",
    added="_tidb_",
    ops={"c": "c", "u": "u"},
    times=(("commit_physical_time", 1000),),
    of_record=True,
    types=_TYPES,
    written=Conventions(labels="text", documents="text", wraps=True),
)
