"""TiCDC's open protocol: several events a message, whose columns say their types by number."""

from __future__ import annotations

from collections.abc import Mapping

from connectors.readers.kafka.tidb.decoder import TidbProtocol
from connectors.readers.kafka.tidb.typed_columns import TypedColumns
from historian.schema.snapshots import ColumnType

__all__ = ["OPEN_COLUMNS", "OPEN_PROTOCOL"]

OPEN_PROTOCOL = TidbProtocol(
    title="TiCDC's open protocol",
    shape="version 1: lengths of 8 bytes, each before a JSON object",
    kind="t",
    ops={1: None},
    statements=frozenset((2,)),
    watermark=3,
    time="ts",
    database="scm",
    table="tbl",
    sql="q",
    data="u",
    deleted="d",
    old="p",
    cut={"ohk": "ohk: true", "ccl": "ccl: a place in a storage"},
)

_CHARSET, _COLLATION = "utf8mb4", "utf8mb4_bin"
_TYPES: Mapping[int, ColumnType] = {
    1: ColumnType(name="tinyint"),
    2: ColumnType(name="smallint"),
    3: ColumnType(name="int"),
    4: ColumnType(name="float"),
    5: ColumnType(name="double"),
    6: ColumnType(name=""),
    7: ColumnType(name="timestamp", fraction=6),
    8: ColumnType(name="bigint"),
    9: ColumnType(name="mediumint"),
    10: ColumnType(name="date"),
    11: ColumnType(name="time", fraction=6),
    12: ColumnType(name="datetime", fraction=6),
    13: ColumnType(name="year"),
    14: ColumnType(name="date"),
    16: ColumnType(name="bit"),
    245: ColumnType(name="json"),
    246: ColumnType(name="decimal"),
    247: ColumnType(name="enum", charset=_CHARSET, collation=_COLLATION),
    248: ColumnType(name="set", charset=_CHARSET, collation=_COLLATION),
}

OPEN_COLUMNS = TypedColumns(
    type="t",
    value="v",
    flags="f",
    handle="h",
    binary=0x01,
    is_handle=0x02,
    primary=0x08,
    nullable=0x40,
    unsigned=0x80,
    types=_TYPES,
    # VARCHAR, VARBINARY, CHAR and BINARY are told without their length.
    texts={15: "long", 249: "tiny", 250: "medium", 251: "long", 252: "", 253: "long", 254: "long"},
    base64=frozenset((249, 250, 251, 252)),
    quoted=frozenset((15, 253, 254)),
)
