"""A run of several connectors: each in a thread and a session of its own, in one Spark context."""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from connectors.config import PipelineConfig
from connectors.monitoring.observer import Observer, Observers
from connectors.pipeline.opening import own_session
from connectors.pipeline.run import run
from connectors.pipeline.signals import Stopping, hangups, signals
from connectors.together.endpoint import Together, served_together
from connectors.together.open_files import allow_files
from historian.errors import ConfigError
from sinks.session import sessions_beside

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Outcome", "check_together", "run_together"]

_log = logging.getLogger(__name__)
_FAIR = ("spark.scheduler.mode", "FAIR")
_POOL = "spark.scheduler.pool"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How a connector's run ended.

    Attributes:
        stopped: captured tables that sinks have stopped, and why.
        error: what ended it; None: it came to its end.
    """

    stopped: Mapping[str, str] = field(default_factory=dict)
    error: BaseException | None = None


def run_together(
    configs: Sequence[PipelineConfig],
    *,
    once: bool,
    observers: Mapping[str, Observer],
    ended: Callable[[str, Outcome], None],
    stopping: threading.Event | None = None,
) -> Mapping[str, Outcome]:
    """Runs *configs* side by side until all have ended, as :func:`connectors.pipeline.run.run` runs one.

    One that fails ends alone. Spark's jobs of each have an equal share of its tasks. SIGINT and SIGTERM end all, each after its plan.
    Safe to call again: each goes on where it was.

    Args:
        configs: with different names; ``run.spark`` and ``run.http`` say the same in all that say something.
        once: each stops at what its log holds now.
        observers: of connectors, by name, each called in its connector's thread.
        ended: is told of each connector's end, in its thread.
        stopping: set to end all.

    Returns:
        How each ended, by name.

    Raises:
        ConfigError: *configs* do not fit together, or nobody can listen at ``run.http``.
    """
    check_together(configs)
    allow_files(len(configs))
    stopping = Stopping() if stopping is None else stopping
    outcomes: dict[str, Outcome] = {}
    with (
        signals(stopping.set),
        hangups(_not_reloaded, stopping.set),
        served_together(configs) as together,
        own_session(_of_all(configs), stopping.set) as spark,
    ):
        session = sessions_beside(spark)
        threads = [
            threading.Thread(
                target=partial(
                    _one, config, session, once, stopping, observers[config.name], together, outcomes, ended
                ),
                name=f"historian {config.name}",
                daemon=True,
            )
            for config in configs
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    return outcomes


def _one(
    config: PipelineConfig,
    session: Callable[[], SparkSession],
    once: bool,  # noqa: FBT001 of a thread that is told all
    stopping: threading.Event,
    observer: Observer,
    together: Together,
    outcomes: dict[str, Outcome],
    ended: Callable[[str, Outcome], None],
) -> None:
    """Runs one connector; whatever ends it is its outcome."""
    name = config.name
    try:
        # Jobs of this thread are in a pool of their own; pools have equal shares.
        spark = session()
        spark.sparkContext.setLocalProperty(_POOL, name)
        stopped = run(
            replace(config, run=replace(config.run, http=None)),
            once=once,
            observer=Observers(observer, together.observer(name)),
            spark=spark,
            stopping=stopping,
        )
        outcome = Outcome(stopped=stopped)
    except BaseException as error:  # noqa: BLE001 the others go on, whatever it is
        outcome = Outcome(error=error)
    outcomes[name] = outcome
    together.ended(name, "" if outcome.error is None else str(outcome.error) or type(outcome.error).__name__)
    try:
        ended(name, outcome)
    except BaseException as error:  # noqa: BLE001 as above: what it could not look for may be a stop
        outcomes[name] = Outcome(error=outcome.error or error)


def _of_all(configs: Sequence[PipelineConfig]) -> PipelineConfig:
    """What the one session is made for: all sinks, and the settings that one of the configurations says."""
    first = next((each for each in configs if _says_spark(each)), configs[0])
    spark = replace(first.run.spark, conf=(_FAIR, *first.run.spark.conf))
    sinks = tuple(sink for config in configs for sink in config.sinks)
    name = ", ".join(config.name for config in configs[:3]) + (", …" if len(configs) > 3 else "")
    return replace(first, name=name, sinks=sinks, run=replace(first.run, spark=spark))


def check_together(configs: Sequence[PipelineConfig]) -> None:
    """Raises :class:`ConfigError` where *configs* do not fit together, as :func:`run_together` wants them."""
    problems = [
        f"expected different names, {count} configurations have this one @ $.name (got {name!r})"
        for name, count in Counter(config.name for config in configs).items()
        if count > 1
    ]
    problems += [f"missing @ $.sinks of {config.path}" for config in configs if not config.sinks]
    problems += _differing("spark", [(each, each.run.spark) for each in configs if _says_spark(each)])
    problems += _differing("http", [(each, each.run.http) for each in configs if each.run.http is not None])
    if problems:
        raise ConfigError("the configurations cannot run in one process", problems=tuple(problems))


def _differing(key: str, said: Sequence[tuple[PipelineConfig, Any]]) -> list[str]:
    return [
        f"expected what {said[0][0].path} says, since all share it @ $.run.{key} of {config.path}"
        for config, value in said[1:]
        if value != said[0][1]
    ]


def _says_spark(config: PipelineConfig) -> bool:
    return config.run.spark.master is not None or bool(config.run.spark.conf)


def _not_reloaded() -> None:
    _log.warning("SIGHUP: several connectors in one process keep their configurations; end them, and start them again")
