"""The composition: a run of a connector, from its Spark session to its end, with whichever configuration it has by then."""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping
from contextlib import ExitStack, closing
from typing import TYPE_CHECKING

from connectors.check import require
from connectors.config import PipelineConfig
from connectors.monitoring.observer import Observer
from connectors.pipeline.attempts import Attempts
from connectors.pipeline.leasing import RunLease
from connectors.pipeline.opening import own_session
from connectors.pipeline.reloading import Reloads
from connectors.pipeline.signals import Stopping, hangups, signals
from connectors.pipeline.watching import watching

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["run"]

_log = logging.getLogger(__name__)


def run(
    config: PipelineConfig,
    *,
    once: bool = False,
    until: str | None = None,
    observer: Observer | None = None,
    spark: SparkSession | None = None,
    stopping: threading.Event | None = None,
) -> Mapping[str, str]:
    """Replicates the log into the configured sinks until stopped, or with *once* or *until* up to a position.

    SIGINT and SIGTERM end it after the running batch, or before the first one. Where they have ended Spark's process too, at
    once: that batch is written again by the next run. At SIGHUP it reads its file again, between two plans, and goes on with
    what stands there, or with what it has where that is refused. What may pass (errors that are ``retryable``)
    ends an attempt: everything is closed, and opened again after a pause, for as long as ``run.retry`` says.

    Args:
        config: of the pipeline.
        once: stop at what the log holds now.
        until: stop at this position.
        observer: is told what the run does. With ``run.http`` an endpoint's own is told too.
        spark: session to run in; by default one of its own, stopped at the end.
        stopping: set to end it as SIGTERM does, from any thread. A :class:`Stopping` wakes it up, any other is seen within seconds.

    Returns:
        The tables that sinks have stopped, in this run or before, and why.

    Raises:
        LeaseHeld: another run of this connector is alive.
        HistorianError: what stopped the run.
    """
    stopping = Stopping() if stopping is None else stopping
    reloads = Reloads(config)
    stopped: Mapping[str, str] = {}
    is_checked = False
    with signals(stopping.set), ExitStack() as stack:
        lease = stack.enter_context(closing(RunLease()))
        reloads.listens = stack.enter_context(hangups(reloads.wish, stopping.set))
        while True:
            config = reloads.config
            is_stream = not (once or until is not None or config.run.once or config.source.start == "initial_only")
            # Inside too: who watches is not told that the run ends where it goes back.
            with (
                reloads.way_back(stopping),
                watching(config, observer, is_stream=is_stream) as told,
                reloads.way_back(stopping),
            ):
                told.configured(config)
                attempts = Attempts(config, told, reloads, lease, stopping)
                if not is_checked:  # One that takes another's place was looked at before.
                    require(config)
                    is_checked = True
                if spark is None:
                    try:
                        spark = stack.enter_context(own_session(config, stopping.set, late=not is_stream))
                    except Exception:
                        if not stopping.is_set():
                            raise
                        _log.warning("Spark ended with the run before it had started")
                        return {}
                stopped = attempts.all(spark, once=once, until=until)
            if reloads.config is config:
                return stopped
