"""A configuration as plain values, the way the rest of the project is given it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from connectors.config.filters import EVERY_TABLE, TableFilter
from connectors.config.values import ServerIds
from historian.plans.evolution import EVOLVE, EvolutionSettings
from historian.plans.type_options import NO_TYPE_OPTIONS, TypeOptions

__all__ = [
    "BinlogFilesSource",
    "ConsoleSinkConfig",
    "DeltaSinkConfig",
    "HistoryConfig",
    "ParquetSinkConfig",
    "PipelineConfig",
    "RunConfig",
    "ServerSource",
    "SinkConfig",
    "SourceConfig",
    "Tls",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tls:
    """How a connection is protected.

    Attributes:
        mode: disabled, preferred (where the server offers it), required, verify_ca, or verify_identity (the name too).
        ca, cert, key: PEM files.
    """

    mode: str = "preferred"
    ca: Path | None = None
    cert: Path | None = None
    key: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSource:
    """A live server.

    Attributes:
        flavor: "mysql" or "mariadb".
        server_ids: that our connections introduce themselves with, one each.
        tables: whose rows are wanted.
        start: where a connector without history begins: "earliest", "latest", GTIDs, or file:offset.
        accept_cascades: tables, as ``database.table``, that may change by foreign-key cascades the log does not show.
        schema: SQL file with the tables at ``start``, for those whose CREATE is not in the log.
    """

    flavor: str
    host: str
    port: int = 3306
    user: str
    password: str = field(default="", repr=False)
    tls: Tls = Tls()
    server_ids: ServerIds
    tables: TableFilter = EVERY_TABLE
    start: str = "earliest"
    accept_cascades: tuple[str, ...] = ()
    schema: Path | None = None


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


SourceConfig = ServerSource | BinlogFilesSource


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryConfig:
    """Where history and plans are kept: an SQLAlchemy URL, which may hold a password."""

    store: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeltaSinkConfig:
    """A lake of Delta tables.

    Attributes:
        path: directory or URL of the lake; "" where a catalog is given.
        catalog: ``catalog.schema`` of Spark; "" where a path is given.
        changelog, mirror, history: names of a table's targets, with ``{database}`` and ``{table}``; None: none of that kind.
        changelog_columns: which of ``position``, ``ordinal`` and ``transaction`` a changelog has besides.
        mirror_deletes: what a mirror makes of a deleted row: "hard" takes it away, "soft" marks it.
        history_names: how a history calls its times, "plain" or "auto_cdc".
        key: columns that tell rows apart in mirror and history in place of the primary key.
        keyless: what a table without a key has: "changelog", or "rows": a mirror by whole rows too.
        mirror_every_us: how long a table's mirror and history may leave rows to later plans that its changelog has; 0: they do not.
        cluster: whether mirrors are clustered by their key.
        table_properties: Delta's, name and value, for tables as they are made; None leaves one out that we choose.
        evolution: what becomes of targets when a table's schema changes.
        compact: so many small files of a target are joined to ones of that size in bytes; None: none are.
        writer: who writes targets, "native" or "spark".
        tables: globs on ``database.table`` with what of this is otherwise for the tables that they match.
    """

    path: str = ""
    catalog: str = ""
    changelog: str | None = "{database}_{table}_changes"
    changelog_columns: tuple[str, ...] = ()
    mirror: str | None = "{database}_{table}"
    mirror_deletes: Literal["hard", "soft"] = "hard"
    history: str | None = None
    history_names: Literal["plain", "auto_cdc"] = "plain"
    key: tuple[str, ...] = ()
    keyless: Literal["changelog", "rows"] = "changelog"
    mirror_every_us: int = 0
    cluster: bool = False
    table_properties: tuple[tuple[str, str | None], ...] = ()
    evolution: EvolutionSettings = EVOLVE
    compact: tuple[int, int] | None = (50, 128_000_000)
    writer: Literal["native", "spark"] = "native"
    tables: tuple[tuple[str, tuple[tuple[str, Any], ...]], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ParquetSinkConfig:
    """Directories of Parquet files.

    Attributes:
        path: directory or URL that holds them.
        changelog: name of a table's directory, with ``{database}`` and ``{table}``.
    """

    path: str
    changelog: str = "{database}_{table}_changes"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsoleSinkConfig:
    """Lines of JSON on standard output."""


SinkConfig = DeltaSinkConfig | ParquetSinkConfig | ConsoleSinkConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class RunConfig:
    """How a run goes.

    Attributes:
        once: end at what the log holds at the start.
        trigger_s: seconds from the start of one plan to that of the next, unless the log goes on behind a full one.
        max_batch_bytes: of log in one plan; the transaction that crosses it is still part of it.
        batch_bytes: of log for which a plan is made before the trigger's time.
        retry_s: how long attempts may fail with what may pass before the run ends; ``inf``: for ever; None: for ever, but a
            run that ends by itself ends with the first.
    """

    once: bool = False
    trigger_s: float = 2.0
    max_batch_bytes: int = 256_000_000
    batch_bytes: int = 256_000_000
    retry_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineConfig:
    """A connector's whole configuration.

    Attributes:
        path: the file that it was read from.
        types: how values are carried, where users have a choice.
    """

    path: Path
    name: str
    source: SourceConfig
    history: HistoryConfig
    sinks: tuple[SinkConfig, ...]
    run: RunConfig
    types: TypeOptions = NO_TYPE_OPTIONS

    @property
    def sink_paths(self) -> tuple[str, ...]:
        """Where sinks write, as far as a path says so."""
        return tuple(sink.path for sink in self.sinks if not isinstance(sink, ConsoleSinkConfig))
