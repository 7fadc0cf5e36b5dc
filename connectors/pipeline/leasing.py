"""A run's lease, which stays held while one configuration gives way to another."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from typing import TYPE_CHECKING

from historian.errors import HistorianError
from historian.store import Lease, Store

if TYPE_CHECKING:
    from connectors.config import PipelineConfig

__all__ = ["RunLease"]

_log = logging.getLogger(__name__)


class RunLease:
    """The lease of one run. Between two pipelines it is held by a connection of its own to the store."""

    def __init__(self) -> None:
        self._between: Lease | None = None
        self._stack = ExitStack()

    @contextmanager
    def held(self, config: PipelineConfig, store: Store, keeps: Callable[[], bool]) -> Iterator[Lease]:
        """Holds it for a pipeline inside the ``with``.

        Args:
            config: of the pipeline.
            store: of the pipeline.
            keeps: whether another pipeline of the run follows at once, asked at the end.

        Raises:
            LeaseHeld: another run has it.
        """
        with store.lease(config.name, follows=self._between) as lease:
            self.close()
            try:
                yield lease
            finally:
                if keeps():
                    self._keep(config, lease)

    def close(self) -> None:
        """Gives back what is held between two pipelines."""
        self._between = None
        stack, self._stack = self._stack, ExitStack()
        stack.close()

    def _keep(self, config: PipelineConfig, lease: Lease) -> None:
        try:
            store = self._stack.enter_context(closing(Store.open(config.history.store)))
            self._between = self._stack.enter_context(store.lease(config.name, follows=lease))
        except HistorianError as error:
            _log.warning("the lease is given back until the run goes on: %s", error)
