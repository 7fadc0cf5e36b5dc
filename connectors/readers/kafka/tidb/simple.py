"""TiCDC's simple protocol: rows name the version of their table's schema, which messages before them have told."""

from __future__ import annotations

from connectors.readers.kafka.tidb.decoder import TidbProtocol
from connectors.readers.kafka.tidb.table_schemas import ToldSchemas

__all__ = ["SIMPLE_PROTOCOL", "SIMPLE_SCHEMAS"]

SIMPLE_PROTOCOL = TidbProtocol(
    title="TiCDC's simple protocol",
    shape='{"version": 1, "type": ..., "commitTs": ...}',
    kind="type",
    ops={"INSERT": "c", "UPDATE": "u", "DELETE": "d"},
    statements=frozenset(("CREATE", "RENAME", "CINDEX", "DINDEX", "ERASE", "TRUNCATE", "ALTER", "QUERY")),
    watermark="WATERMARK",
    passed_over=frozenset(("BOOTSTRAP",)),
    time="commitTs",
    database="database",
    table="table",
    sql="sql",
    data="data",
    deleted="old",
    old="old",
    cut={"handleKeyOnly": "handleKeyOnly: true", "claimCheckLocation": "claimCheckLocation"},
)

SIMPLE_SCHEMAS = ToldSchemas(
    messages=1,
    told=("preTableSchema", "tableSchema"),
    row_version="schemaVersion",
    version="version",
    database=("schema", "database"),  # in JSON, and in Avro
    table="table",
    columns="columns",
    column="name",
    nullable="nullable",
    indexes="indexes",
    primary="primary",
    indexed="columns",
    type="dataType",
    type_name="mysqlType",
    length="length",
    digits="decimal",
    unsigned="unsigned",
    zerofill="zerofill",
    labels="elements",
    charset="charset",
    collation="collate",
    value="value",
    zone="location",
)
