"""A run reads its configuration again: one that can be used takes the place of the former between two plans, any other is told and left."""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from typing import TYPE_CHECKING

from sqlalchemy import make_url

from connectors.config import PipelineConfig, can_change, load_config, reread
from connectors.readers.binlog.transport.connection import ConnectionLost
from connectors.reconfiguration.foresight import foresee
from connectors.reconfiguration.reloads import Reload
from connectors.spark.jvm_s3 import jars_for
from historian.errors import ConfigError, HistorianError, LeaseHeld, SourceNotLetIn, StoreNotLetIn, StoreUnreachable
from historian.store import Owner, Store

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from connectors.reconfiguration.effects import Effects

__all__ = ["Reloads"]

_log = logging.getLogger(__name__)
_POLL_S = 1.0
_LONGEST_PAUSE_S = 900.0


class Reloads:
    """The configuration of a run, and wishes that it is read again.

    Attributes:
        config: that the run has, or is to have next.
        listens: whether a signal can bring a wish.
    """

    def __init__(self, config: PipelineConfig) -> None:
        self.config = config
        self.listens = False
        self._was_let_in = False
        self._is_refused = False
        self._freshened = 0
        self._freshened_s = -math.inf
        self._has_refused = False
        self._former: PipelineConfig | None = None
        self._is_wished = threading.Event()

    @property
    def is_wished(self) -> bool:
        """Whether a wish waits for :meth:`look`."""
        return self._is_wished.is_set()

    def wish(self) -> None:
        """Wishes it. Safe in a signal's handler."""
        self._is_wished.set()

    def listening(self, store: Store) -> None:
        """Notes in the store that a signal to this process brings a wish.

        That what was wished is refused says so too, and stands until there is another wish: who waits for it looks from time to time.
        """
        if self.listens and not self._has_refused:
            self._note(Reload.now("listens", self.config, Owner.here()), store)

    def look(self, spark: SparkSession) -> bool:
        """Whether a wish has brought another configuration, with which a run is to go on; :attr:`config` is it then.

        One that is invalid or refused is logged with each problem, and nothing changes.
        """
        if not self._is_wished.is_set():
            return False
        self._is_wished.clear()
        self._has_refused = False
        _log.info("the configuration is read again from %s", self.config.path)
        try:
            found = load_config(self.config.path)
            _check_same(found, self.config)
            effects = foresee(found, spark)
        except HistorianError as error:
            problems = error.problems if isinstance(error, ConfigError) else ()
            self._refuse(self.config, (error.what, *problems) if problems else (str(error),))
            return False
        if effects.is_refused:
            self._refuse(found, effects.refused)
            return False
        for text in _told(effects):
            _log.warning("%s", text)
        self._note(Reload.now("accepted", found, Owner.here()))
        self._former, self.config = self.config, found
        self._was_let_in = self._is_refused = False
        return True

    def let_in(self) -> None:
        """An attempt holds source, store and sinks."""
        self._was_let_in, self._is_refused, self._freshened = True, False, 0

    def not_let_in(self, error: SourceNotLetIn | StoreNotLetIn) -> HistorianError:
        """The error of an attempt that server or store did not let in: it may pass where the run was let in before and what it says can change.

        Who changes a password changes server and file one after the other.
        """
        if not (self._was_let_in and can_change(self.config)):
            return error
        self._is_refused = True
        kind = ConnectionLost if isinstance(error, SourceNotLetIn) else StoreUnreachable
        return kind(
            f"{error.what}, as it did not before",
            where=error.where,
            expected=error.expected,
            found=error.found,
            next_step="references and certificates are read again before the next try; correct what they stand for",
        )

    def has_fresh(self) -> bool:
        """Whether, behind :meth:`not_let_in`, references stand for something else by now; :attr:`config` has it then.

        A program may give another word each time. So each time that the run is not let in with what is fresh, the next look is twice as far away.
        """
        pause_s = min(2.0**self._freshened - 1, _LONGEST_PAUSE_S)
        if not self._is_refused or time.monotonic() - self._freshened_s < pause_s:
            return False
        fresh = reread(self.config)
        if fresh is self.config or _place(fresh) != _place(self.config):
            return False
        self._freshened, self._freshened_s = min(self._freshened + 1, 20), time.monotonic()
        _log.warning("what lets the run in has changed: it goes on with what its configuration refers to now")
        self.config, self._is_refused = fresh, False
        return True

    @contextmanager
    def way_back(self, stopping: threading.Event) -> Iterator[None]:
        """Goes back to the former configuration, where the present one ends the ``with`` with an error before it wrote a plan.

        The error is told, and :attr:`config` is the former one. Where there is no way back, or the run is *stopping*, it passes.
        """
        try:
            yield
        except HistorianError as error:
            if stopping.is_set() or not self._take_back(error):
                raise

    def _take_back(self, error: HistorianError) -> bool:
        former = self._former
        if former is None or isinstance(error, LeaseHeld):
            return False
        self._refuse(self.config, (str(error),))
        self._former, self.config = None, former
        self._was_let_in, self._is_refused = True, False
        return True

    def changes(self, config: PipelineConfig) -> bool:
        """Whether *config*, which an attempt had, gives way to another one, or may do so yet."""
        return self.config is not config or self._former is not None

    def is_held(self) -> None:
        """The present configuration has written a plan, or found that there is none to write: there is no way back."""
        self._former = None

    def wait(self, seconds: float, *, stopping: threading.Event, spark: SparkSession) -> bool:
        """Waits, and says whether attempts with the present configuration are to end: the run is to stop, or has another one."""
        until_s = time.monotonic() + seconds
        while not stopping.is_set() and not self.look(spark):
            left_s = until_s - time.monotonic()
            if left_s <= 0:
                return False
            stopping.wait(min(left_s, _POLL_S))
        return True

    def _refuse(self, config: PipelineConfig, problems: tuple[str, ...]) -> None:
        for problem in problems:
            _log.error("the changed configuration is not used: %s", problem)
        _log.error("the run goes on with the configuration that it has; correct %s, and send SIGHUP again", config.path)
        self._note(Reload.now("refused", config, Owner.here(), problems))
        self._has_refused = True

    def _note(self, reload: Reload, store: Store | None = None) -> None:
        """For `historian apply`. A store that is away is nothing to end a run for."""
        with suppress(HistorianError):
            if store is not None:
                store.note_reload(reload.text())
                return
            with closing(Store.open(self.config.history.store)) as opened:
                opened.note_reload(reload.text())


def _check_same(found: PipelineConfig, held: PipelineConfig) -> None:
    """Raises :class:`ConfigError` where a run cannot take *found* in the place of *held*."""
    problems = []
    if found.name != held.name:
        problems.append(f"expected {held.name}: another name is another connector @ $.name (got {found.name!r})")
    if _place(found) != _place(held):
        problems.append("expected the store that the run has: end the run, and start it again @ $.history.store")
    if found.run.spark != held.run.spark:
        problems.append("expected Spark as it was started: end the run, and start it again @ $.run.spark")
    if set(jars_for(found.sink_paths)) - set(jars_for(held.sink_paths)):
        problems.append("expected sinks that Spark can write to as it was started: start the run again @ $.sinks")
    if problems:
        raise ConfigError("a run cannot change this", problems=tuple(problems), where=str(found.path))


def _place(config: PipelineConfig) -> str:
    """Where the store is, whatever its password."""
    return make_url(config.history.store).set(password=None).render_as_string()


def _told(effects: Effects) -> list[str]:
    tables = [f"{t.table}: {t.action}: {t.why}" for t in effects.tables if t.action != "nothing"]
    summary = f"the run goes on with the changed configuration: {effects.summary()}"
    return [summary, *tables, *effects.settings, *effects.notes]
