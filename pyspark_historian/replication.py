"""Replication beside other code of a Spark job or a notebook: ``replicate("shop.yaml", spark)`` returns at once, with a handle."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Generator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal

from connectors.config import PipelineConfig, load_config
from connectors.monitoring.observer import Observer, WrittenPlan
from historian.errors import ConfigError
from sinks.session import session_beside

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from typing_extensions import Self

__all__ = ["Replication", "ReplicationStatus", "replicate"]

_State = Literal["starts", "runs", "tries again", "stops", "ended", "failed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicationStatus:
    """What a replication did so far.

    Attributes:
        state: ``starts`` until it holds the connector's lease, ``runs``, ``tries again`` after what may pass, ``stops`` once it
            was told to, and ``ended`` or ``failed`` for good.
        position: of the source up to which all sinks hold it, by this replication; "" before its first plan.
        plans: how many it has written; ``rows``: of changelogs in them.
        waiting_bytes: about so much log is known to wait.
        stopped: captured tables that sinks have stopped, and why.
        failure: of the last attempt that failed, where it tries again, or the error with which it failed.
    """

    connector: str
    state: _State
    position: str = ""
    plans: int = 0
    rows: int = 0
    waiting_bytes: int = 0
    stopped: Mapping[str, str] = field(default_factory=dict)
    failure: str = ""


class Replication:
    """A connector at work in a thread. As a context manager it is stopped at the end of the ``with``; ``await`` waits for its outcome.

    Made by :func:`replicate`. It ends with the process; what it was writing then is written by the next run.
    """

    def __init__(self, config: PipelineConfig, spark: SparkSession, *, once: bool, until: str | None) -> None:
        from connectors.pipeline.signals import Stopping

        self._config = config
        self._stopping = Stopping()
        self._told = _Told(config.name)
        self._outcome: Mapping[str, str] = {}
        self._error: BaseException | None = None
        self._thread = threading.Thread(
            target=self._run,
            kwargs={"spark": spark, "once": once, "until": until},
            name=f"historian {config.name}",
            daemon=True,
        )
        self._thread.start()

    def status(self) -> ReplicationStatus:
        """What it did so far. Asks neither source, store nor lake."""
        status = self._told.status
        if self._thread.is_alive():
            return replace(status, state="stops") if self._stopping.is_set() else status
        if self._error is not None:
            return replace(status, state="failed", failure=str(self._error))
        return replace(status, state="ended", stopped=self._outcome, failure="")

    def stop(self, timeout_s: float | None = None) -> None:
        """Ends it after the plan that is being written, and waits for that; calling it again changes nothing.

        The error of one that failed is raised by :meth:`wait`, not here.

        Raises:
            TimeoutError: it has not ended within *timeout_s*; it will.
        """
        self._stopping.set()
        self._join(timeout_s)

    def wait(self, timeout_s: float | None = None) -> Mapping[str, str]:
        """Waits for its end, and gives the captured tables that sinks have stopped, and why; complete are all others.

        Raises:
            TimeoutError: it has not ended within *timeout_s*; it goes on.
            HistorianError: what it failed with, as :func:`connectors.pipeline.run.run`.
        """
        self._join(timeout_s)
        if self._error is not None:
            raise self._error
        return self._outcome

    def __await__(self) -> Generator[Any, None, Mapping[str, str]]:
        return asyncio.to_thread(self.wait).__await__()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
        if error is None:
            self.wait()

    def _join(self, timeout_s: float | None) -> None:
        self._thread.join(timeout_s)
        if self._thread.is_alive():
            raise TimeoutError(f"{self._config.name} has not ended within {timeout_s} s")

    def _run(self, *, spark: SparkSession, once: bool, until: str | None) -> None:
        from connectors.pipeline.run import run

        try:
            self._outcome = run(
                self._config, once=once, until=until, observer=self._told, spark=spark, stopping=self._stopping
            )
        except BaseException as error:  # noqa: BLE001 who waits is told
            self._error = error


def replicate(
    config: str | Path | PipelineConfig, spark: SparkSession, *, once: bool = False, until: str | None = None
) -> Replication:
    """Begins to replicate in *spark*'s context, in a thread and a session of its own, and returns at once.

    ::

        with replicate("shop.yaml", spark) as shop:
            ...
            shop.status().position

    No setting of *spark* is changed. ``run.spark`` of the configuration is not used, since the session is there.

    Args:
        config: a YAML file, or what :func:`connectors.config.load_config` made of one.
        spark: a session of this process with Delta.
        once: end at what the log holds now.
        until: end at this position: GTIDs.

    Raises:
        ConfigError: the configuration cannot be used.
        SessionUnusable: the session cannot: it is a client of Spark Connect, was stopped, or has no Delta.
    """
    loaded = config if isinstance(config, PipelineConfig) else load_config(config)
    if once and until is not None:
        raise ValueError("give once or until, not both")
    if not loaded.sinks:
        raise ConfigError("there is nothing to write to", problems=("missing @ $.sinks",), where=str(loaded.path))
    return Replication(loaded, session_beside(spark), once=once, until=until)


class _Told(Observer):
    """Keeps what a run tells. One thread writes :attr:`status`, whole, and others read it."""

    def __init__(self, connector: str) -> None:
        self.status = ReplicationStatus(connector=connector, state="starts")

    def opened(self) -> None:
        self.status = replace(self.status, state="runs", failure="")

    def written(self, written: WrittenPlan) -> None:
        status = self.status
        self.status = replace(
            status,
            position=str(written.plan.end),
            plans=status.plans + 1,
            rows=status.rows + sum(written.rows.values()),
            stopped=dict(written.stopped),
        )

    def waits(self, waiting_bytes: int) -> None:
        self.status = replace(self.status, waiting_bytes=waiting_bytes)

    def failed(self, failure: str) -> None:
        self.status = replace(self.status, state="tries again", failure=failure)
