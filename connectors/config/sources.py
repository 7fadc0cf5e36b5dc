"""The document's part on sources: a live server, or binlog files."""

from __future__ import annotations

from typing import Annotated, Any, Literal, get_args

from pydantic import AfterValidator, Field, SecretStr, ValidationInfo, model_validator

from connectors.config import settings, values
from connectors.config.filters import TableFilter, check_pattern
from connectors.config.model import Bytes, ExistingPath, Model, parsed, schema_types
from connectors.readers.binlog.transport.connection import Compression, TlsSettings
from historian.errors import PositionError
from historian.history.online_schema_changes import TOOLS, OnlineChanges
from historian.positions import parse_position

__all__ = [
    "SOURCE_TYPES",
    "BackfillDocument",
    "BinlogFilesDocument",
    "PauseAboveDocument",
    "RowServerDocument",
    "ServerDocument",
    "TlsDocument",
]

SOURCE_TYPES = ("mysql", "mariadb", "binlog-files", "kafka")


_STARTS = {
    "initial": "initial",
    "initial_only": "initial_only",
    "earliest": "earliest",
    "latest": "latest",
    "changes_only": "latest",
}


def _patterns(patterns: list[str]) -> list[str]:
    TableFilter(tuple(patterns))
    return patterns


def _start(text: str, info: ValidationInfo) -> str:
    """A start in the form that its kind prints, so that one meaning has one text."""
    if text in _STARTS:
        return _STARTS[text]
    flavor: str = info.data.get("flavor") or info.data.get("type") or "mysql"
    try:
        return str(parse_position(text, flavor))
    except PositionError as error:
        raise ValueError(
            f"expected {', '.join(_STARTS)}, FILE:OFFSET, or GTIDs of {flavor}: {error.expected}"
        ) from None


def _files_start(text: str) -> str:
    if text.startswith("initial"):
        raise ValueError(
            "binlog files have no tables to copy rows from: expected earliest, latest, FILE:OFFSET, or GTIDs"
        )
    return text


def _pattern(text: str) -> str:
    check_pattern(text)
    return text


def _table_name(text: str) -> str:
    database, _, table = text.partition(".")
    if not (database and table):
        raise ValueError("expected DATABASE.TABLE")
    return text


_Ids = Annotated[Any, parsed(values.parse_server_ids), schema_types("string", "integer")]
_Patterns = Annotated[list[Annotated[str, AfterValidator(_pattern)]], Field(min_length=1), AfterValidator(_patterns)]
_Start = Annotated[str, Field(min_length=1), AfterValidator(_start)]
_FilesStart = Annotated[_Start, AfterValidator(_files_start)]
_Tool = Literal["gh-ost", "pt-online-schema-change", "spirit", "vitess"]
_TOOL_NAMES: tuple[_Tool, ...] = get_args(_Tool)
_TableNames = list[Annotated[str, AfterValidator(_table_name)]]


def _filter(patterns: list[str], tools: list[_Tool]) -> TableFilter:
    return TableFilter(tuple(patterns), OnlineChanges(tuple(tool for tool in TOOLS if tool.name in tools)))


_TABLES = "Patterns of captured tables: globs on `DATABASE.TABLE`. A pattern with `!` takes tables out. Tables that a later change takes in or out stop."
_START = "Where the first run begins: `earliest`, `changes_only` (or `latest`: the log's present end), GTIDs, or `FILE:OFFSET`."
_SERVER_START = f"{_START} With `initial` it begins at the log's end and copies the rows that the tables hold; `initial_only` ends when they are copied. A connector that has begun goes on as it did."
_TOOLS = "Tools whose swaps are followed as changes of one table. Their own tables are not captured."
_COMPRESSION = "How connections to the server are compressed, for a network that is slow or costs. MySQL 8.0.18 and later have `zstd`; all servers have `zlib`."
_SCHEMA = "SQL file that makes the tables as they were at `start`, if their CREATE is not in the log."


class TlsDocument(Model):
    """How the connection is protected."""

    mode: Literal["disabled", "preferred", "required", "verify_ca", "verify_identity"] = Field(
        default="preferred",
        description="`preferred`: where the server offers it. `verify_ca` checks the certificate, `verify_identity` the name too.",
    )
    ca: ExistingPath = Field(default=None, description="PEM file of the authorities to verify with.")
    cert: ExistingPath = Field(default=None, description="PEM file of the client's certificate.")
    key: ExistingPath = Field(default=None, description="PEM file of the certificate's key.")

    @model_validator(mode="after")
    def _whole(self) -> TlsDocument:
        if self.mode == "verify_ca" and self.ca is None:
            raise ValueError("mode verify_ca needs ca, the file to verify the server's certificate with")
        if (self.cert is None) != (self.key is None):
            raise ValueError("cert and key are given together or not at all")
        return self

    def plain(self) -> TlsSettings:
        """The plain value."""
        ca, cert, key = (None if path is None else str(path) for path in (self.ca, self.cert, self.key))
        return TlsSettings(mode=self.mode, ca=ca, cert=cert, key=key)


class PauseAboveDocument(Model):
    """While one of these is above its limit at the server that rows are read from, no rows are copied. The log is followed."""

    threads_running: int | None = Field(
        default=None, ge=1, description="`Threads_running`: connections that run a statement, our own among them."
    )
    history_list_length: int | None = Field(
        default=None,
        ge=1,
        description="Transactions whose old row versions InnoDB keeps. MySQL needs the PROCESS privilege for it.",
    )
    replica_lag_seconds: int | None = Field(
        default=None,
        ge=0,
        description="Where that server is a replica: seconds behind its own source. MariaDB needs SLAVE MONITOR for it.",
    )

    def plain(self) -> settings.PauseAbove:
        """The plain value."""
        return settings.PauseAbove(
            threads_running=self.threads_running,
            history_list_length=self.history_list_length,
            replica_lag_s=self.replica_lag_seconds,
        )


class RowServerDocument(Model):
    """A replica of the source, which rows are copied from in its place. What is not given is the source's own."""

    host: str = Field(min_length=1, description="The replica's name or address.")
    port: int = Field(default=3306, ge=1, le=65535, description="The replica's port.")
    user: str | None = Field(
        default=None,
        min_length=1,
        description="Needs SELECT and REPLICATION CLIENT. MariaDB: SELECT and SLAVE MONITOR.",
    )
    password: SecretStr | None = Field(default=None, description="Best a reference: `${env:NAME}`.")
    tls: TlsDocument | None = Field(default=None, description="As `source.tls`.")
    compression: Compression | None = Field(default=None, description="As `source.compression`.")


class BackfillDocument(Model):
    """How rows are copied from the source."""

    connections: int = Field(default=2, ge=1, le=16, description="So many SELECTs read side by side.")
    chunk_rows: int = Field(default=200_000, ge=1, description="Rows that one of them reads at a time, at most.")
    chunk_bytes: Bytes = Field(default=64_000_000, description="The same in bytes, about.")
    rows_per_second: int = Field(default=0, ge=0, description="Over all tables; 0: as many as come.")
    bytes_per_second: Bytes | None = Field(
        default=None,
        description="The same in bytes, such as `10 MB`. By default as many as come. If both are set, the stricter holds.",
    )
    pause_above: PauseAboveDocument = Field(
        default=PauseAboveDocument(), description="When nothing is copied, since the server is busy."
    )
    server: RowServerDocument | None = Field(
        default=None, description="A replica that rows are copied from. The log is the source's all the same."
    )

    def plain(self) -> settings.CopyLimits:
        """The plain value."""
        return settings.CopyLimits(
            connections=self.connections,
            chunk_rows=self.chunk_rows,
            chunk_bytes=self.chunk_bytes,
            rows_per_s=self.rows_per_second,
            bytes_per_s=self.bytes_per_second or 0,
            pause_above=self.pause_above.plain(),
        )


class ServerDocument(Model):
    """A live server."""

    type: Literal["mysql", "mariadb"]
    host: str = Field(min_length=1, description="The server's name or address.")
    port: int = Field(default=3306, ge=1, le=65535, description="The server's port.")
    user: str = Field(
        min_length=1,
        description="Needs REPLICATION SLAVE, REPLICATION CLIENT and SELECT. MariaDB 10.5 and later: BINLOG MONITOR.",
    )
    password: SecretStr = Field(default=SecretStr(""), description="Best a reference: `${env:NAME}`.")
    tls: TlsDocument = Field(
        default=TlsDocument(), description="How the connection is encrypted and the server verified."
    )
    compression: Compression = Field(default="none", description=_COMPRESSION)
    server_id: _Ids = Field(
        default=None,
        description="An id, or a range such as `5400-5499`: one id for each connection. By default a hundred ids that follow from `name`.",
    )
    tables: _Patterns = Field(default=["*.*"], description=_TABLES)
    online_changes: list[_Tool] = Field(default=list(_TOOL_NAMES), description=_TOOLS)
    start: _Start = Field(default="initial", description=_SERVER_START)
    schema_file: ExistingPath = Field(default=None, alias="schema", description=_SCHEMA)
    accept_cascades: _TableNames = Field(
        default=[],
        description="Child tables that cascades may change without a trace in the log. Their targets can then be wrong.",
    )

    backfill: BackfillDocument = Field(
        default=BackfillDocument(), description="How rows are copied that tables held before the log tells of them."
    )

    def plain(self, name: str) -> settings.SourceConfig:
        """The plain value, for a connector of that *name*."""
        return settings.ServerSource(
            flavor=self.type,
            host=self.host,
            port=self.port,
            user=self.user,
            password=self.password.get_secret_value(),
            tls=self.tls.plain(),
            compression=self.compression,
            server_ids=self.server_id or values.server_ids_of(name),
            tables=_filter(self.tables, self.online_changes),
            start=self.start,
            names_start="start" in self.model_fields_set,
            accept_cascades=tuple(self.accept_cascades),
            schema=self.schema_file,
            backfill=self.backfill.plain(),
            rows_from=self._rows_from(),
        )

    def _rows_from(self) -> settings.RowServer | None:
        server = self.backfill.server
        if server is None:
            return None
        password = self.password if server.password is None else server.password
        return settings.RowServer(
            host=server.host,
            port=server.port,
            user=server.user or self.user,
            password=password.get_secret_value(),
            tls=(server.tls or self.tls).plain(),
            compression=server.compression or self.compression,
        )


class BinlogFilesDocument(Model):
    """Binlog files without their server."""

    type: Literal["binlog-files"]
    flavor: Literal["mysql", "mariadb"] = Field(default="mysql", description="Whose files they are.")
    directory: ExistingPath = Field(
        default=None, description="Directory of binlog files. Either this key or `files` is required."
    )
    files: list[ExistingPath] = Field(default=[], description="Binlog files and directories, oldest first.")
    tables: _Patterns = Field(default=["*.*"], description=_TABLES)
    online_changes: list[_Tool] = Field(default=list(_TOOL_NAMES), description=_TOOLS)
    start: _FilesStart = Field(default="earliest", description=_START)
    schema_file: ExistingPath = Field(default=None, alias="schema", description=_SCHEMA)

    @model_validator(mode="after")
    def _one_place(self) -> BinlogFilesDocument:
        if (self.directory is None) == (not self.files):
            raise ValueError("expected either directory or files")
        return self

    def plain(self, name: str) -> settings.SourceConfig:  # noqa: ARG002 as the other source's
        """The plain value."""
        return settings.BinlogFilesSource(
            flavor=self.flavor,
            directory=self.directory,
            files=tuple(self.files),
            tables=_filter(self.tables, self.online_changes),
            start=self.start,
            schema=self.schema_file,
        )
