"""What a connector has recorded so far, for those who only look."""

from __future__ import annotations

from pathlib import Path

from connectors.config import PipelineConfig
from historian.store import Store

__all__ = ["recorded_store"]


def recorded_store(config: PipelineConfig) -> Store | None:
    """The configured store; None where it is an SQLite file that is not there. None is made.

    Raises:
        StoreError: a store that cannot be opened.
    """
    scheme, _, path = config.history.store.partition(":///")
    if scheme.startswith("sqlite") and not (path and Path(path).exists()):
        return None
    return Store.open(config.history.store)
