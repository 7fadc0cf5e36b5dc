"""The kinds of sinks that a configuration may name, and how each is made. Nothing else tells one kind from another."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from connectors.config import SinkConfig

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from connectors.config import CopyLimits, ServerSource
    from historian.names import TableName
    from sinks.contract.base import DryRun, Sink
    from sinks.delta import DeltaSettings

__all__ = ["compares_ranges", "keeps_rows", "lake", "lakes", "make_dry_run", "make_sink", "repair_limits", "tells_rows"]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kind:
    """How a kind of sink is made.

    Attributes:
        settings: of the names and values of a configuration.
        sink: of a session and those settings.
        dry_run: of the settings alone; None: such a sink takes whatever comes.
        keeps_rows: whether rows that are read again would stand there twice.
    """

    settings: Callable[..., Any]
    sink: Callable[[SparkSession, Any], Sink]
    dry_run: Callable[[Any], DryRun] | None = None
    keeps_rows: bool = True


def _delta() -> _Kind:
    from sinks.delta import DeltaDryRun, DeltaSettings, DeltaSink

    return _Kind(settings=DeltaSettings, sink=DeltaSink, dry_run=DeltaDryRun)


def _parquet() -> _Kind:
    from sinks.parquet import ParquetDryRun, ParquetSettings, ParquetSink

    return _Kind(settings=ParquetSettings, sink=ParquetSink, dry_run=ParquetDryRun)


def _console() -> _Kind:
    from sinks.console import ConsoleSink

    return _Kind(settings=dict, sink=ConsoleSink, keeps_rows=False)


_KINDS: Mapping[str, Callable[[], _Kind]] = {"delta": _delta, "parquet": _parquet, "console": _console}
_LAKE = "delta"


def compares_ranges(sinks: Sequence[SinkConfig]) -> bool:
    """Whether tables may be repaired by ranges of their keys: the one sink does, or says that a table is to be compared as a whole."""
    return [sink.type for sink in sinks] == [_LAKE]


def tells_rows(sinks: Sequence[SinkConfig], name: TableName) -> bool:
    """Whether rows of a table can be told in the sinks by the values that the source has: nothing else is said of them there."""
    from sinks.shaping.rules import NO_RULES

    found = lake(sinks[0]) if compares_ranges(sinks) else None
    if found is None:
        return False
    chosen = found.for_table(name)
    return chosen.rules == NO_RULES and not chosen.key and chosen.into is None


def repair_limits(source: ServerSource, sinks: Sequence[SinkConfig]) -> CopyLimits | None:
    """What a plan of a repair reads; None: the whole table."""
    return source.backfill if compares_ranges(sinks) else None


def make_sink(config: SinkConfig, spark: SparkSession) -> Sink:
    """The configured sink; it is not opened."""
    kind = _KINDS[config.type]()
    return kind.sink(spark, kind.settings(**config.settings))


def make_dry_run(config: SinkConfig) -> DryRun | None:
    """What tells without rows what the sink would do; None: nothing is to be told of it."""
    kind = _KINDS[config.type]()
    return None if kind.dry_run is None else kind.dry_run(kind.settings(**config.settings))


def keeps_rows(config: SinkConfig) -> bool:
    """Whether rows that are read again would stand in the sink twice."""
    return _KINDS[config.type]().keeps_rows


def lake(config: SinkConfig) -> DeltaSettings | None:
    """The settings of the lake that the sink writes; None: it writes no lake."""
    if config.type != _LAKE:
        return None
    from sinks.delta.settings import DeltaSettings

    return DeltaSettings(**config.settings)


def lakes(sinks: Sequence[SinkConfig]) -> list[DeltaSettings]:
    """The settings of all lakes that the sinks write."""
    return [settings for config in sinks if (settings := lake(config)) is not None]
