"""What a pipeline is opened with: a Spark session, the sinks of its configuration, its store."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from connectors.config import PipelineConfig
from connectors.pipeline.signals import signals
from connectors.sink_kinds import make_sink
from connectors.spark.ending import stop
from historian.store import Store

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from sinks.contract.base import Sink

__all__ = ["idle_sinks", "make_sinks", "open_store", "own_session"]


@contextmanager
def own_session(config: PipelineConfig, ended: Callable[[], None], *, late: bool = False) -> Iterator[SparkSession]:
    """A session for one run, stopped behind it; *ended* is called at SIGINT and SIGTERM.

    *late*: on this machine it is made when it is needed (:class:`~sinks.late_session.LateSession`).
    """
    spark = _session(config, config.name, late=late)
    try:
        # A Spark context takes SIGINT for itself.
        with signals(ended):
            yield spark
    finally:
        stop(spark)


def open_store(config: PipelineConfig, sinks: Sequence[Sink]) -> tuple[Store, str]:
    """The store and the connector's identity; a lost store is rebuilt from the first sink that holds one.

    One with an imported history takes the plans from there.
    """
    store = Store.open(config.history.store)
    if store.last_plan() is None:
        recovered = next(filter(None, (sink.recover() for sink in sinks)), None)
        if recovered is not None:
            store.restore(config.name, recovered.connector, recovered.timeline, recovered.plans)
    return store, store.connector(config.name)


@contextmanager
def idle_sinks(config: PipelineConfig, purpose: str) -> Iterator[tuple[Sink, ...]]:
    """The configured sinks, not opened, to be asked what they hold; in a session of their own, named for *purpose*."""
    spark = _session(config, f"{purpose} {config.name}")
    try:
        yield make_sinks(config, spark)
    finally:
        spark.stop()


def make_sinks(config: PipelineConfig, spark: SparkSession) -> tuple[Sink, ...]:
    """The configured sinks, in order."""
    return tuple(make_sink(sink, spark) for sink in config.sinks)


def _session(config: PipelineConfig, name: str, *, late: bool = False) -> SparkSession:
    from connectors.spark.jvm_s3 import jars_for
    from connectors.spark.quiet import SHOWS_EVERYTHING, quiet_child, quiet_start
    from sinks.session import late_session, runs_here, spark_session

    spark, settings = config.run.spark, dict(config.run.spark.conf)
    known: dict[str, Any] = {"jars": jars_for(config.sink_paths), "master": spark.master, "settings": settings}
    loopback = runs_here(spark.master)
    quietly = partial(quiet_start, loopback=loopback)
    if late:
        java = partial(quiet_child, loopback=loopback, everything=SHOWS_EVERYTHING.get())
        return cast("SparkSession", late_session(name=f"historian {name}", **known, around=quietly, java=java))
    with quietly():
        return spark_session(name=f"historian {name}", **known)
