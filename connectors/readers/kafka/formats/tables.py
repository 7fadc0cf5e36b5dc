"""What each format calls things: its fields, its operations, and its rules."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from connectors.readers.kafka.debezium.envelope import MEMBERS
from connectors.readers.kafka.messages.events import Conventions

__all__ = ["FLAT_FORMATS", "FlatFormat"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FlatFormat:
    """A format by its names. A dot in a name leads into an object.

    Attributes:
        title: for people; ``shape``: what a message looks like, for errors.
        database, table: of the source; ``qualified``: the table's field is ``DATABASE.TABLE``.
        schema: a field that has the database's place where it is not NULL.
        source: that of Debezium's envelope, which tells how much of its rows a database's log has.
        op: the field of the operation; ``ops``: its values as c(reate), r(ead of a snapshot), u(pdate), d(elete).
        passed_over: values of ``op`` that are no change of a row, nor a statement.
        watermark: of them, that of a message which promises that all before ``watermark_at``, TiDB's timestamp, was sent.
        data, old: the fields of the row after and before.
        deleted: the field in which a delete has its row.
        short_deletes: that may be the key alone, and nothing marks it.
        former: how an update has the row before: "overlay": ``old`` lies over ``data``, by presence; "whole": ``old`` is that row;
            "if_whole": it is, where it has all fields of ``data``.
        old_has_changes: in "overlay", ``old`` names a column at least. Where it is empty the producer leaves NULLs out, of rows too.
        time, time_unit_us: when the source changed the row; of ISO text 0.
        no_rows: fields which mark messages that are neither a row nor a statement, each element all of one kind.
        key: the field of the key's columns; ``key_prefix``: of fields in the message's key that are key columns; None: the key has none.
        types: the field of column types by name; ``types_are``: "types", or "type_names" where they lack lengths and labels.
        truncate: the value of ``op`` of a TRUNCATE of the table; "": there is none.
        place: of the operation in the source's log, by which two TRUNCATEs of the same time are two, where ``source`` has none.
        sql: the field of a statement's text; ``is_ddl``: a field that is true of statements; ``ddl_ops``: values of ``op`` of statements.
        ddl_unit_us: of ``time`` in statements.
        partial: fields that are set where a row is not whole; ``partial_fix``: what to set at the producer.
        without_types: what to do where types are told too little.
        tombstones: messages without a value are passed over, as for compaction; else they are refused.
        exact: numbers are read by their digits.
        written: conventions of values.
        members: paths of all fields that messages usually have, in their order.
    """

    title: str
    shape: str
    database: str
    table: str
    schema: str = ""
    source: str = ""
    qualified: bool = False
    op: str
    ops: Mapping[str, str]
    passed_over: frozenset[str] = frozenset()
    watermark: str = ""
    watermark_at: str = ""
    data: str = "data"
    old: str = "old"
    deleted: str = "data"
    short_deletes: bool = False
    former: str = "overlay"
    old_has_changes: bool = False
    time: str
    time_unit_us: int = 0
    no_rows: tuple[frozenset[str], ...] = ()
    key: str = ""
    key_prefix: str | None = None
    types: str = ""
    types_are: str = "types"
    truncate: str = ""
    place: str = ""
    sql: str = ""
    is_ddl: str = ""
    ddl_ops: frozenset[str] = frozenset()
    ddl_unit_us: int = 1000
    partial: tuple[str, ...] = ()
    partial_fix: str = ""
    without_types: str = "give the tables by source.schema: a file of CREATE TABLE statements"
    tombstones: bool = False
    exact: bool = False
    written: Conventions = field(default_factory=Conventions)
    members: tuple[str, ...] = ()


_MAXWELL = FlatFormat(
    title="Maxwell",
    shape='{"database": ..., "table": ..., "type": "insert", "ts": ..., "data": {...}}',
    database="database",
    table="table",
    op="type",
    ops={"insert": "c", "update": "u", "delete": "d", "bootstrap-insert": "r"},
    passed_over=frozenset(("bootstrap-start", "bootstrap-complete", "heartbeat")),
    old_has_changes=True,
    time="ts",
    time_unit_us=1_000_000,
    key="primary_key_columns",
    key_prefix="pk.",
    sql="sql",
    ddl_ops=frozenset(f"{what}-{verb}" for what in ("table", "database") for verb in ("create", "alter", "drop")),
    without_types="have Maxwell write statements (output_ddl=true), or give the tables by source.schema",
    tombstones=True,
    exact=True,
    members=(
        "database",
        "table",
        "type",
        "ts",
        "xid",
        "xoffset",
        "commit",
        "position",
        "gtid",
        "server_id",
        "primary_key",
        "data",
        "old",
    ),
)

_CANAL = FlatFormat(
    title="Canal's flat JSON",
    shape='{"database": ..., "table": ..., "type": "INSERT", "isDdl": false, "es": ..., "mysqlType": {...}, "data": [{...}]}',
    database="database",
    table="table",
    op="type",
    ops={"INSERT": "c", "UPDATE": "u", "DELETE": "d"},
    passed_over=frozenset(("TRANSACTIONBEGIN", "TRANSACTIONEND", "TRANSACTIONHEARTBEAT")),
    time="es",
    time_unit_us=1000,
    short_deletes=True,
    key="pkNames",
    types="mysqlType",
    sql="sql",
    is_ddl="isDdl",
    ddl_ops=frozenset(("QUERY",)),
    written=Conventions(binary="latin1", labels="number", shapes="bytes", documents="text", whole=True),
    members=(
        "data",
        "database",
        "es",
        "gtid",
        "id",
        "isDdl",
        "mysqlType",
        "old",
        "pkNames",
        "sql",
        "sqlType",
        "table",
        "ts",
        "type",
    ),
)

_TICDC = replace(
    _CANAL,
    title="TiCDC's canal-json",
    watermark="TIDB_WATERMARK",
    watermark_at="_tidb.watermarkTs",
    types_are="type_names",
    partial=("_tidb.onlyHandleKey", "_tidb.claimCheckLocation"),
    partial_fix="large-message-handle-option=none",
    without_types="set content-compatible=true at the changefeed, or give the tables by source.schema",
    written=replace(_CANAL.written, shapes=""),
    members=(
        "id",
        "database",
        "table",
        "pkNames",
        "isDdl",
        "type",
        "es",
        "ts",
        "sql",
        "sqlType",
        "mysqlType",
        "old",
        "data",
        "_tidb",
        "_tidb.commitTs",
        "_tidb.onlyHandleKey",
    ),
)

_OGG = FlatFormat(
    title="Oracle GoldenGate's JSON",
    shape='{"table": "SCHEMA.TABLE", "op_type": "I", "op_ts": ..., "after": {...}}',
    database="",
    table="table",
    qualified=True,
    op="op_type",
    ops={"I": "c", "U": "u", "D": "d"},
    truncate="T",
    place="pos",
    data="after",
    old="before",
    deleted="before",
    short_deletes=True,
    former="whole",
    time="op_ts",
    key="primary_keys",
    exact=True,
    written=Conventions(whole=True, compressed=True),
)

_DEBEZIUM = FlatFormat(
    title="Debezium's as JSON without its schema",
    shape='{"before": ..., "after": {...}, "source": {"db": ..., "table": ...}, "op": "c"}, as schemas.enable=false of JsonConverter writes it',
    database="source.db",
    table="source.table",
    schema="source.schema",
    source="source",
    op="op",
    ops={"c": "c", "r": "r", "u": "u", "d": "d"},
    passed_over=frozenset(("m",)),
    truncate="t",
    data="after",
    old="before",
    deleted="before",
    former="whole",
    time="source.ts_ms",
    time_unit_us=1000,
    no_rows=(frozenset(("status", "id")), frozenset(("ddl", "databaseName")), frozenset(("ts_ms",))),
    key_prefix="",
    without_types="give the tables by source.schema, or have the connector write its schema (schemas.enable=true, format: debezium_json)",
    tombstones=True,
    exact=True,
    written=Conventions(shapes="wkb", documents="text", debezium=True, decimal="base64", wraps=True),
    members=MEMBERS,
)

_DMS = FlatFormat(
    title="AWS DMS",
    shape='{"data": {...}, "metadata": {"record-type": "data", "operation": "insert", "schema-name": ..., "table-name": ..., "timestamp": ...}}',
    database="metadata.schema-name",
    table="metadata.table-name",
    op="metadata.operation",
    ops={"load": "r", "insert": "c", "update": "u", "delete": "d"},
    passed_over=frozenset(
        (
            "create-table",
            "drop-table",
            "rename-table",
            "add-column",
            "drop-column",
            "rename-column",
            "change-columns",
            "column-type-change",
        )
    ),
    truncate="truncate-table",
    old="before-image",
    former="if_whole",
    time="metadata.timestamp",
    exact=True,
    without_types="give the tables, with their keys, by source.schema: a file of CREATE TABLE statements",
    written=Conventions(binary="hex", whole=True),
)

FLAT_FORMATS: Mapping[str, FlatFormat] = {
    "debezium_json_schemaless": _DEBEZIUM,
    "maxwell": _MAXWELL,
    "canal_json": _CANAL,
    "ticdc_canal_json": _TICDC,
    "ogg_json": _OGG,
    "dms_json": _DMS,
}
"""By the name that ``source.format`` has for them."""
