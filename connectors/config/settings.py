"""A configuration as plain values, the way the rest of the project is given it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from connectors.config.filters import EVERY_TABLE, TableFilter
from connectors.config.values import ServerIds
from connectors.readers.binlog.transport.connection import Compression, TlsSettings
from connectors.readers.kafka.messages.modes import DEFAULT_MODES, DebeziumModes
from connectors.readers.kafka.registry.client import RegistrySettings
from historian.plans.type_options import NO_TYPE_OPTIONS, TypeOptions
from historian.positions import KAFKA
from historian.values.policies import FAIL

__all__ = [
    "NOTIFY_EVENTS",
    "BinlogFilesSource",
    "ChannelConfig",
    "CopyLimits",
    "HistoryConfig",
    "HttpConfig",
    "KafkaSource",
    "NotifyConfig",
    "OpenLineageConfig",
    "PauseAbove",
    "PipelineConfig",
    "RowServer",
    "RunConfig",
    "ServerSource",
    "SinkConfig",
    "SourceConfig",
    "SparkConfig",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class PauseAbove:
    """Above which measures of the server that rows are read from no rows are copied; None: that one does not matter.

    Attributes:
        threads_running: connections that run a statement, a copy's own among them.
        history_list_length: transactions whose old row versions InnoDB keeps.
        replica_lag_s: how far that server, a replica, is behind its own source.
    """

    threads_running: int | None = None
    history_list_length: int | None = None
    replica_lag_s: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyLimits:
    """How much a plan copies from the source.

    Attributes:
        connections: that read side by side.
        chunk_rows, chunk_bytes: what one of them reads in a plan, about.
        rows_per_s, bytes_per_s: over all tables; 0: as many as come.
        pause_above: when nothing is copied.
    """

    connections: int = 2
    chunk_rows: int = 200_000
    chunk_bytes: int = 64_000_000
    rows_per_s: int = 0
    bytes_per_s: int = 0
    pause_above: PauseAbove = PauseAbove()


@dataclass(frozen=True, slots=True, kw_only=True)
class RowServer:
    """A replica of the source that rows are copied from."""

    host: str
    port: int
    user: str
    password: str = field(repr=False)
    tls: TlsSettings
    compression: Compression = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSource:
    """A live server.

    Attributes:
        flavor: "mysql" or "mariadb".
        compression: of what connections send and receive.
        server_ids: that our connections introduce themselves with, one each.
        tables: whose rows are wanted.
        start: where a connector without history begins: "initial" or "initial_only" (at the log's end, with the rows that tables hold),
            "earliest", "latest", GTIDs, or file:offset.
        names_start: whether the configuration says so itself.
        accept_cascades: tables, as ``database.table``, that may change by foreign-key cascades the log does not show.
        schema: SQL file with the tables at ``start``, for those whose CREATE is not in the log.
        backfill: how rows are copied from its tables.
        rows_from: the replica that they are copied from; None: from the server itself.
    """

    flavor: str
    host: str
    port: int = 3306
    user: str
    password: str = field(default="", repr=False)
    tls: TlsSettings = field(default_factory=TlsSettings)
    compression: Compression = "none"
    server_ids: ServerIds
    tables: TableFilter = EVERY_TABLE
    start: str = "initial"
    names_start: bool = False
    accept_cascades: tuple[str, ...] = ()
    schema: Path | None = None
    backfill: CopyLimits = CopyLimits()
    rows_from: RowServer | None = None

    @property
    def log_start(self) -> str:
        """Where those begin who read the log alone: the start, and at the log's beginning where none is named."""
        return "earliest" if self.start == "initial" and not self.names_start else self.start

    @property
    def place(self) -> str:
        """Where the log is, for people."""
        return f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True, kw_only=True)
class BinlogFilesSource:
    """Binlog files without their server: all those in ``directory``, or ``files`` in order; one of the two is given."""

    flavor: str
    directory: Path | None = None
    files: tuple[Path, ...] = ()
    tables: TableFilter = EVERY_TABLE
    start: str = "earliest"
    schema: Path | None = None

    def paths(self) -> tuple[Path, ...]:
        """Where the files are: the directory, or the files one by one."""
        return self.files if self.directory is None else (self.directory,)

    @property
    def log_start(self) -> str:
        """The start: files hold nothing but a log."""
        return self.start

    @property
    def place(self) -> str:
        """Where the log is, for people."""
        return "binlog files"


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaSource:
    """Topics of change events.

    Attributes:
        brokers: ``host:port``, comma separated; ``topics``: names and globs.
        format: how messages are written.
        client: further settings of librdkafka, by its names.
        tables: whose rows are wanted, by their names in the source.
        start: where a connector without history begins: "earliest", "latest", or offsets.
        schema: an SQL file that makes tables of which messages tell too little; ``time_zone``: of TIMESTAMPs without one.
        registry: that has the schemas of messages, where the format wants one.
        modes: of a connector of Debezium's that writes no schema.
        message_schema: a file with the schema of messages that neither have it nor name it.
        schema_topic: with changes of schemas in the place of rows; "": none.
        group: whose offsets at the brokers tell how far a run is; "": none is told.
        unreadable: what becomes of messages that cannot be read, "fail" or "dead_letter".
        normalize: of which tables changes may lack the former row, or come again; None: of none.
        state: where the last row of each key is kept; None: in the first lake.
        tombstones: what messages without a value do, "delete", "ignore" or "refuse", in formats where they may be deletes.
    """

    brokers: str
    topics: tuple[str, ...]
    format: str = "debezium_json"
    client: Mapping[str, str] = field(default_factory=dict, repr=False)
    tables: TableFilter = EVERY_TABLE
    start: str = "earliest"
    flavor: str = KAFKA
    schema: Path | None = None
    time_zone: str = "UTC"
    registry: RegistrySettings | None = None
    unreadable: str = FAIL
    modes: DebeziumModes = DEFAULT_MODES
    message_schema: Path | None = None
    schema_topic: str = ""
    group: str = ""
    normalize: TableFilter | None = None
    state: str | None = None
    tombstones: str = "delete"

    @property
    def log_start(self) -> str:
        """The start: topics hold nothing but a log."""
        return self.start

    @property
    def place(self) -> str:
        """Where the log is, for people."""
        return f"{', '.join(self.topics)} at {self.brokers}"


SourceConfig = ServerSource | BinlogFilesSource | KafkaSource


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryConfig:
    """Where history and plans are kept: an SQLAlchemy URL, which may hold a password."""

    store: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkConfig:
    """Where rows go.

    Attributes:
        type: the kind of sink, as the document names it; :mod:`connectors.sink_kinds` makes each kind.
        settings: names and values of what sinks of that kind are told, such as :class:`sinks.delta.settings.DeltaSettings`.
    """

    type: str
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def path(self) -> str:
        """Directory or URL that the sink writes to; "" where no path says so."""
        return str(self.settings.get("path", ""))

    @property
    def place(self) -> str:
        """The path, or the catalog that stands for one."""
        return self.path or str(self.settings.get("catalog", ""))


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpConfig:
    """The endpoint of a run.

    Attributes:
        host, port: where it listens.
        token: that metrics and status want; "": none.
        max_tables: so many tables at most have series of their own.
        max_lag_s: a run that is further behind is not ready; ``max_silence_s``: one that is not heard of for longer is not healthy.
    """

    host: str
    port: int
    token: str = field(default="", repr=False)
    max_tables: int = 1000
    max_lag_s: float = math.inf
    max_silence_s: float = 900.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkConfig:
    """The Spark session of a run that makes its own.

    Attributes:
        master: where it runs; None: as Spark itself is told, else on all cores of this machine.
        conf: names and values of settings of Spark, which win over ours.
    """

    master: str | None = None
    conf: tuple[tuple[str, str], ...] = field(default=(), repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenLineageConfig:
    """Where events of OpenLineage go.

    Attributes:
        url: that events are posted to; it may hold a secret.
        api_key: sent as a bearer's token; "": none.
        namespace: of the job, whose name is the connector's.
        source: namespace of the captured tables; "": by the source's address.
    """

    url: str = field(repr=False)
    api_key: str = field(default="", repr=False)
    namespace: str = "historian"
    source: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunConfig:
    """How a run goes.

    Attributes:
        once: end at what the log holds at the start.
        trigger_s: seconds from the start of one plan to that of the next, unless the log goes on behind a full one.
        max_batch_bytes: of log in one plan; the transaction that crosses it is still part of it.
        batch_bytes: of log for which a plan is made before the trigger's time.
        retry_s: how long attempts may fail with what may pass before the run ends; ``inf``: for ever. None: for ever, but a
            run that ends by itself ends with the first.
        http: the endpoint for metrics and health; None: there is none.
        spark: the session that a run makes where it is given none.
        openlineage: where events of lineage go; None: nowhere.
    """

    once: bool = False
    trigger_s: float = 2.0
    max_batch_bytes: int = 256_000_000
    batch_bytes: int = 256_000_000
    retry_s: float | None = None
    http: HttpConfig | None = None
    spark: SparkConfig = SparkConfig()
    openlineage: OpenLineageConfig | None = None


NOTIFY_EVENTS = (
    "table_stopped",
    "schema_change",
    "lag",
    "retention",
    "repair",
    "dead_letters",
    "retry",
    "run_ended",
)
"""What can be told of a run; :mod:`connectors.notifications.messages` says of each when it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelConfig:
    """One that is told: a ``webhook``, else a ``command``, else the log.

    Attributes:
        webhook: the address, which can be a secret; ``template``: the form of what is posted there.
        events: of :data:`NOTIFY_EVENTS`.
    """

    webhook: str = field(default="", repr=False)
    template: str = "json"
    routing_key: str = field(default="", repr=False)
    command: tuple[str, ...] = field(default=(), repr=False)
    events: tuple[str, ...] = NOTIFY_EVENTS


@dataclass(frozen=True, slots=True, kw_only=True)
class NotifyConfig:
    """Who is told of what happens to a run; ``max_lag_s``: from which lag on that is told."""

    channels: tuple[ChannelConfig, ...]
    max_lag_s: float = math.inf


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineConfig:
    """A connector's whole configuration.

    Attributes:
        path: the file that it was read from.
        types: how values are carried, where users have a choice.
        notify: who is told of what happens to a run; None: nobody.
        document: the YAML's values, with references as they are written; None: no file was read.
    """

    path: Path
    name: str
    source: SourceConfig
    history: HistoryConfig
    sinks: tuple[SinkConfig, ...]
    run: RunConfig
    types: TypeOptions = NO_TYPE_OPTIONS
    notify: NotifyConfig | None = None
    document: Any = field(default=None, repr=False, compare=False)

    @property
    def sink_paths(self) -> tuple[str, ...]:
        """Where sinks write, as far as a path says so."""
        return tuple(sink.path for sink in self.sinks if sink.path)
