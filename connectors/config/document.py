"""The YAML document's shape. Each model turns itself into the plain value that the rest of the project is given."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal, cast, get_args

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    SecretStr,
    ValidationInfo,
    WithJsonSchema,
    model_validator,
)

from connectors.config import settings, values
from connectors.config.compaction import compaction_of
from connectors.config.evolution import evolution_settings
from connectors.config.filters import TableFilter, check_pattern
from connectors.config.model import Model
from connectors.config.shards import refuse_shards, refuse_shared
from connectors.config.targets import NOT_ONE_EACH, TableDocument, TargetName, TargetsDocument, properties
from connectors.config.type_options import TypesDocument
from historian.errors import PositionError
from historian.globs import is_exact
from historian.history.online_schema_changes import TOOLS, OnlineChanges
from historian.positions import parse_position
from historian.values.policies import DEAD_LETTER, REASONS

__all__ = [
    "SOURCE_TYPES",
    "BinlogFilesDocument",
    "ConsoleDocument",
    "DeltaDocument",
    "Document",
    "HistoryDocument",
    "ParquetDocument",
    "RunDocument",
    "ServerDocument",
    "TlsDocument",
]

SOURCE_TYPES = ("mysql", "mariadb", "binlog-files")


def _base(info: ValidationInfo) -> Path:
    """The directory that relative paths start from: the YAML file's."""
    context: dict[str, Path] = info.context or {}
    return context.get("base", Path.cwd())


def _path(value: object, info: ValidationInfo) -> Path:
    if not isinstance(value, str) or not value:
        raise ValueError("expected a path")
    return (_base(info) / Path(value).expanduser()).resolve()


def _existing(value: object, info: ValidationInfo) -> Path:
    path = _path(value, info)
    if not path.exists():
        raise ValueError(f"no such file or directory, seen from {_base(info)}")
    return path


def _location(value: object, info: ValidationInfo) -> str:
    """A directory's path, or the URL of one (s3a://...) as it is."""
    return value if isinstance(value, str) and "://" in value else str(_path(value, info))


def _texts(*kinds: str) -> WithJsonSchema:
    return WithJsonSchema({"type": list(kinds) if len(kinds) > 1 else kinds[0]})


def _parsed(parse: Callable[[Any], object]) -> BeforeValidator:
    def convert(value: object) -> object:
        if isinstance(value, bool) or not isinstance(value, (str, int)):
            raise ValueError("expected a text or a number")  # noqa: TRY004 pydantic reports ValueError
        return parse(value)

    return BeforeValidator(convert)


_ExistingPath = Annotated[Any, BeforeValidator(_existing), _texts("string")]
_Location = Annotated[Any, BeforeValidator(_location), _texts("string")]


def _trigger(text: str | int) -> float | str:
    return values.ONCE if text == values.ONCE else values.parse_duration_s(str(text))


_Trigger = Annotated[Any, _parsed(_trigger), _texts("string")]
_Retry = Annotated[Any, _parsed(values.parse_retry_s), _texts("string")]
_Bytes = Annotated[Any, _parsed(values.parse_bytes), _texts("string", "integer")]
_Ids = Annotated[Any, _parsed(values.parse_server_ids), _texts("string", "integer")]


def _patterns(patterns: list[str]) -> list[str]:
    TableFilter(tuple(patterns))
    return patterns


def _start(text: str, info: ValidationInfo) -> str:
    """A start in the form that its kind prints, so that one meaning has one text."""
    if text in ("earliest", "latest"):
        return text
    flavor: str = info.data.get("flavor") or info.data.get("type") or "mysql"
    try:
        return str(parse_position(text, flavor))
    except PositionError as error:
        raise ValueError(f"expected earliest, latest, FILE:OFFSET, or GTIDs of {flavor}: {error.expected}") from None


def _pattern(text: str) -> str:
    check_pattern(text)
    return text


def _glob(text: str) -> str:
    if text.startswith("!"):
        raise ValueError(
            "expected DATABASE.TABLE, each with * and ? as wildcards; of several that match the last one wins"
        )
    return _pattern(text)


def _table_name(text: str) -> str:
    database, _, table = text.partition(".")
    if not (database and table):
        raise ValueError("expected DATABASE.TABLE")
    return text


_Patterns = Annotated[list[Annotated[str, AfterValidator(_pattern)]], Field(min_length=1), AfterValidator(_patterns)]
_Start = Annotated[str, Field(min_length=1), AfterValidator(_start)]
_Tool = Literal["gh-ost", "pt-online-schema-change", "spirit", "vitess"]
_TOOL_NAMES: tuple[_Tool, ...] = get_args(_Tool)
_TableNames = list[Annotated[str, AfterValidator(_table_name)]]


def _filter(patterns: list[str], tools: list[_Tool]) -> TableFilter:
    return TableFilter(tuple(patterns), OnlineChanges(tuple(tool for tool in TOOLS if tool.name in tools)))


def _schema(text: str) -> str:
    if text.count(".") != 1 or not all(text.split(".")):
        raise ValueError("expected catalog.schema")
    return text


_Schema = Annotated[str, AfterValidator(_schema)]

_TABLES = "Patterns of captured tables: globs on `DATABASE.TABLE`. A pattern with `!` takes tables out. Tables that a later change takes in or out stop."
_START = "Where the first run begins: `earliest`, `latest`, GTIDs, or `FILE:OFFSET`."
_TOOLS = "Tools whose swaps are followed as changes of one table. Their own tables are not captured."
_SCHEMA = "SQL file that makes the tables as they were at `start`, if their CREATE is not in the log."


class TlsDocument(Model):
    """How the connection is protected."""

    mode: Literal["disabled", "preferred", "required", "verify_ca", "verify_identity"] = Field(
        default="preferred",
        description="`preferred`: where the server offers it. `verify_ca` checks the certificate, `verify_identity` the name too.",
    )
    ca: _ExistingPath = Field(default=None, description="PEM file of the authorities to verify with.")
    cert: _ExistingPath = Field(default=None, description="PEM file of the client's certificate.")
    key: _ExistingPath = Field(default=None, description="PEM file of the certificate's key.")

    @model_validator(mode="after")
    def _whole(self) -> TlsDocument:
        if self.mode == "verify_ca" and self.ca is None:
            raise ValueError("mode verify_ca needs ca, the file to verify the server's certificate with")
        if (self.cert is None) != (self.key is None):
            raise ValueError("cert and key are given together or not at all")
        return self

    def plain(self) -> settings.Tls:
        """The plain value."""
        return settings.Tls(mode=self.mode, ca=self.ca, cert=self.cert, key=self.key)


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
    server_id: _Ids = Field(
        default=None,
        description="An id, or a range such as `5400-5499`: one id for each connection. By default a hundred ids that follow from `name`.",
    )
    tables: _Patterns = Field(default=["*.*"], description=_TABLES)
    online_changes: list[_Tool] = Field(default=list(_TOOL_NAMES), description=_TOOLS)
    start: _Start = Field(default="earliest", description=_START)
    schema_file: _ExistingPath = Field(default=None, alias="schema", description=_SCHEMA)
    accept_cascades: _TableNames = Field(
        default=[],
        description="Child tables that cascades may change without a trace in the log. Their targets can then be wrong.",
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
            server_ids=self.server_id or values.server_ids_of(name),
            tables=_filter(self.tables, self.online_changes),
            start=self.start,
            accept_cascades=tuple(self.accept_cascades),
            schema=self.schema_file,
        )


class BinlogFilesDocument(Model):
    """Binlog files without their server."""

    type: Literal["binlog-files"]
    flavor: Literal["mysql", "mariadb"] = Field(default="mysql", description="Whose files they are.")
    directory: _ExistingPath = Field(
        default=None, description="Directory of binlog files. Either this key or `files` is required."
    )
    files: list[_ExistingPath] = Field(default=[], description="Binlog files and directories, oldest first.")
    tables: _Patterns = Field(default=["*.*"], description=_TABLES)
    online_changes: list[_Tool] = Field(default=list(_TOOL_NAMES), description=_TOOLS)
    start: _Start = Field(default="earliest", description=_START)
    schema_file: _ExistingPath = Field(default=None, alias="schema", description=_SCHEMA)

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


class HistoryDocument(Model):
    """Where history and plans are kept."""

    store: SecretStr = Field(
        default=SecretStr(""),
        description="URL of SQLite, `mysql://`, `mariadb://` or `postgresql://`. By default `sqlite:///state/NAME.db`.",
    )

    def plain(self, name: str, base: Path) -> settings.HistoryConfig:
        """The plain value; the path of an SQLite file is made absolute."""
        url = self.store.get_secret_value() or f"sqlite:///state/{name}.db"
        scheme, found, path = url.partition(":///")
        if found and scheme.startswith("sqlite") and path and not path.startswith(":memory:"):
            url = f"{scheme}:///{(base / path).resolve()}"
        return settings.HistoryConfig(store=url)


class DeltaDocument(TargetsDocument):
    """A lake of Delta tables."""

    type: Literal["delta"]
    path: _Location = Field(
        default=None,
        description="Directory of the lake, or a URL that Spark can write to. Either this key or `catalog` is required.",
    )
    catalog: _Schema = Field(default="", description="Schema of a Spark catalog, such as `spark_catalog.lake`.")
    tables: dict[Annotated[str, AfterValidator(_glob)], TableDocument] = Field(
        default={},
        description="Keys for some tables, by a glob on `DATABASE.TABLE`. If several globs match, the last one wins.",
    )

    @model_validator(mode="after")
    def _targets(self) -> DeltaDocument:
        for pattern, chosen in self._chosen().items():
            kinds = (chosen.get(kind, getattr(self, kind)) for kind in ("changelog", "mirror", "history"))
            names = [name for name in kinds if name is not None]
            if not (is_exact(pattern) or chosen.get("into") or all("{table" in name for name in names)):
                raise ValueError(f"{NOT_ONE_EACH} (of tables {pattern})")
            if not names or len(set(names)) < len(names):
                where = f" (of tables {pattern})" if pattern else ""
                raise ValueError(
                    f"expected different names for changelog, mirror and history, at least one of them{where}"
                )
            if chosen.get("mirror_every_us", self.mirror_every) and chosen.get("changelog", self.changelog) is None:
                where = f" (of tables {pattern})" if pattern else ""
                raise ValueError(
                    f"expected a changelog, from which rows are applied, where mirror_every is said{where}"
                )
            refuse_shards(pattern, chosen)
        refuse_shared({pattern: chosen["into"] for pattern, chosen in self._chosen().items() if chosen.get("into")})
        if (self.path is None) == (not self.catalog):
            raise ValueError("expected path or catalog, one of the two")
        return self

    def _chosen(self) -> dict[str, dict[str, Any]]:
        """What each pattern says, and "" for what holds for all tables."""
        own = {"evolution": evolution_settings(self.evolution.model_dump())}
        return {"": own, **{pattern: {**own, **dict(chosen.chosen())} for pattern, chosen in self.tables.items()}}

    def plain(self) -> settings.SinkConfig:
        """The plain value."""
        return settings.DeltaSinkConfig(
            path=self.path or "",
            catalog=self.catalog,
            changelog=self.changelog,
            changelog_columns=tuple(self.changelog_columns),
            mirror=self.mirror,
            mirror_deletes=self.mirror_deletes,
            history=self.history,
            history_names=self.history_names,
            key=tuple(self.key),
            keyless=self.keyless,
            mirror_every_us=self.mirror_every,
            cluster=self.cluster,
            table_properties=properties(self.table_properties),
            evolution=evolution_settings(self.evolution.model_dump()),
            compact=compaction_of(self.compact),
            writer=self.writer,
            tables=tuple((pattern, chosen.chosen()) for pattern, chosen in self.tables.items()),
        )


class ParquetDocument(Model):
    """Directories of Parquet files."""

    type: Literal["parquet"]
    path: _Location = Field(description="Directory of the changelogs, or a URL that `pyarrow.fs` can write to.")
    changelog: TargetName = Field(default="{database}_{table}_changes", description="Name of each table's directory.")

    def plain(self) -> settings.SinkConfig:
        """The plain value."""
        return settings.ParquetSinkConfig(path=self.path or "", changelog=self.changelog)


class ConsoleDocument(Model):
    """Lines of JSON on standard output."""

    type: Literal["console"]

    def plain(self) -> settings.SinkConfig:
        """The plain value."""
        return settings.ConsoleSinkConfig()


class RunDocument(Model):
    """How a run goes."""

    checkpoint: str | None = Field(default=None, description="Of earlier releases. Accepted and not used.")
    trigger: _Trigger = Field(
        default=2.0,
        description="Time from the start of one plan to the next, such as `2 seconds`. `once`: end at the present end of the log.",
    )
    max_batch_bytes: _Bytes = Field(
        default=256_000_000, description="The most log in one plan, such as `256 MB`. A transaction is never cut."
    )
    batch_bytes: _Bytes | None = Field(
        default=None,
        description="The log for which a plan is made before the trigger's time. By default `max_batch_bytes`.",
    )
    retry: _Retry | None = Field(
        default=None,
        description="How long a run tries again where what failed may pass, such as a server's restart: `forever`, `never` or a "
        "time such as `10 minutes`. By default `forever`, and `never` for runs with `--once` or `--until`.",
    )

    @model_validator(mode="after")
    def _fits(self) -> RunDocument:
        if self.batch_bytes is not None and self.batch_bytes > self.max_batch_bytes:
            raise ValueError("expected a batch_bytes of max_batch_bytes at most")
        return self

    def plain(self) -> settings.RunConfig:
        """The plain value."""
        once = self.trigger == values.ONCE
        return settings.RunConfig(
            once=once,
            trigger_s=0.0 if once else cast("float", self.trigger),
            max_batch_bytes=self.max_batch_bytes,
            batch_bytes=self.batch_bytes or self.max_batch_bytes,
            retry_s=self.retry,
        )


_Source = Annotated[ServerDocument | BinlogFilesDocument, Field(discriminator="type")]
_Sink = Annotated[DeltaDocument | ParquetDocument | ConsoleDocument, Field(discriminator="type")]


class Document(Model):
    """A connector's configuration."""

    name: str = Field(
        pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$",
        max_length=100,
        description="Names the connector in store and lake. Another name is another connector.",
    )
    source: Annotated[_Source, Field(description="Where the log is.")]
    history: HistoryDocument = Field(default=HistoryDocument(), description="Where schema versions and plans are kept.")
    sinks: list[_Sink] = Field(
        default=[],
        description="Where rows go. `run` needs a sink; `check`, `tail`, `schemas` and the Spark source do not.",
    )
    types: TypesDocument = Field(
        default=TypesDocument(), description="Which type a value gets, where there is a choice."
    )
    run: RunDocument = Field(default=RunDocument(), description="When plans are made, and how large they are.")

    @model_validator(mode="after")
    def _keeps_letters(self) -> Document:
        chosen = (self.types, *self.types.columns.values())
        for key in REASONS:
            wanted = any(getattr(type_options, key) == DEAD_LETTER for type_options in chosen)
            if wanted and any(sink.type == "parquet" for sink in self.sinks):
                raise ValueError(
                    f"types.{key}: dead_letter needs sinks that keep dead letters, and type: parquet does not"
                )
        return self

    def plain(self, path: Path) -> settings.PipelineConfig:
        """The plain value; *path* is the file that it was read from."""
        base = path.parent
        return settings.PipelineConfig(
            path=path,
            name=self.name,
            source=self.source.plain(self.name),
            history=self.history.plain(self.name, base),
            sinks=tuple(sink.plain() for sink in self.sinks),
            run=self.run.plain(),
            types=self.types.plain(),
        )
