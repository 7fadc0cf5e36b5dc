"""A run tries again: each attempt opens everything anew, since what failed may be any of it."""

from __future__ import annotations

import logging
import math
import threading
from collections.abc import Mapping
from contextlib import AbstractContextManager, closing, suppress
from datetime import datetime, timezone
from functools import partial
from typing import TYPE_CHECKING

from connectors.config import PipelineConfig
from connectors.monitoring.observer import Observer, Observers, on_written
from connectors.pipeline.failures import error_behind
from connectors.pipeline.leasing import RunLease
from connectors.pipeline.pipeline import Pipeline
from connectors.pipeline.reloading import Reloads
from connectors.pipeline.retry import Failure, retried
from connectors.spark.ending import answers
from historian.errors import HistorianError, SinkError, SourceNotLetIn, StoreNotLetIn
from historian.plans.plans import Plan
from historian.store import Lease, Store

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Attempts"]

_log = logging.getLogger(__name__)


class Attempts:
    """Attempts of one run with one configuration, each with a pipeline of its own. What is done stands in the store and in the sinks."""

    def __init__(
        self,
        config: PipelineConfig,
        observer: Observer,
        reloads: Reloads,
        lease: RunLease,
        stopping: threading.Event,
    ) -> None:
        self._config = config
        self._observer = Observers(on_written(self._note_written), observer)
        self._reloads = reloads
        self._lease = lease
        self._stopping = stopping
        self._has_failed = False
        self._plans = 0
        self._stopped: Mapping[str, str] = {}

    def all(self, spark: SparkSession, *, once: bool, until: str | None) -> Mapping[str, str]:
        """Makes attempts until one comes to the run's end, or the run is to stop or has another configuration.

        Gives the tables that sinks have stopped.
        """
        config = self._config
        once = once or config.run.once or config.source.start == "initial_only"
        ends = once or until is not None
        limit_s = config.run.retry_s if config.run.retry_s is not None else 0.0 if ends else math.inf
        try:
            stopped = retried(
                partial(self._make, spark, once=once, until=until),
                limit_s=limit_s,
                progress=lambda: self._plans,
                wait=partial(self._reloads.wait, stopping=self._stopping, spark=spark),
                report=self.failed,
            )
        except Exception:
            if not self._stopping.is_set() or answers(spark):
                raise
            _log.warning("Spark ended with the run; the next run writes the batch that is missing")
            stopped = None
        finally:
            self.forget()
        return self._stopped if stopped is None else stopped

    def _make(self, spark: SparkSession, *, once: bool, until: str | None) -> Mapping[str, str]:
        """Runs a pipeline to its end, and gives the tables that sinks have stopped."""
        if self._reloads.has_fresh():
            return self._stopped
        try:
            with Pipeline.opened(self._config, spark, self._observer, self._leased) as pipeline:
                self._reloads.let_in()
                self._reloads.listening(pipeline.store)
                if self._has_failed:
                    self.forget()
                    _log.warning("goes on behind %s", pipeline.position() or "the beginning of the log")
                pipeline.run(once=once, until=until, stopping=self._stopping, reloads=self._reloads)
                return pipeline.stopped()
        except SinkError as failure:
            raise error_behind(failure) from failure
        except (SourceNotLetIn, StoreNotLetIn) as refusal:
            raise self._reloads.not_let_in(refusal) from refusal

    def _leased(self, store: Store) -> AbstractContextManager[Lease]:
        return self._lease.held(self._config, store, self._is_followed)

    def _is_followed(self) -> bool:
        """Whether another pipeline of the run is to come at once."""
        return not self._stopping.is_set() and self._reloads.changes(self._config)

    def failed(self, failure: Failure) -> None:
        """Takes note of an attempt that failed and is made again."""
        self._has_failed = True
        _log.warning("%s", failure)
        now = datetime.now(timezone.utc).isoformat(timespec="seconds").replace("+00:00", "Z")
        self._note(f"{now}: {failure}")
        self._observer.failed(str(failure))

    def forget(self) -> None:
        """Takes back the note of a failed attempt: the run goes on, or ends."""
        if self._has_failed:
            self._has_failed = False
            self._note("")

    def _note(self, text: str) -> None:
        """For `historian status`. What failed may be the store itself."""
        with suppress(HistorianError), closing(Store.open(self._config.history.store)) as store:
            store.note_retry(text)

    def _note_written(self, plan: Plan, stopped: Mapping[str, str]) -> None:  # noqa: ARG002 as observers are told
        self._plans += 1
        self._stopped = stopped
