"""The lakes that a configuration writes, for those who read them."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

from connectors.config import PipelineConfig, load_config
from connectors.sink_kinds import lakes
from historian.errors import ConfigError, StoreError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from historian.positions import LogPosition
    from historian.store import Store
    from sinks.delta.reading.cuts import ConsistentCut

__all__ = ["check_made_here", "consistent"]


def check_made_here(store: Store, held: int) -> None:
    """Refuses targets that hold plans which *store* has not made.

    Raises:
        StoreError: another connector of this name, with a store of its own, has gone on with the targets.
    """
    last = store.last_plan()
    made = 0 if last is None else last.number
    if made < held:
        raise StoreError(
            "the targets hold plans that this store has not made",
            expected=f"plan {made} or one before it",
            found=f"plan {held}: another connector of this name has written them, or the store is an old copy",
            next_step="run that one; or put this store away, and it is made again from the lake",
        )


def consistent(
    spark: SparkSession,
    config: PipelineConfig | str | Path,
    *,
    at: str | LogPosition | None = None,
    kinds: Collection[str] = ("changelog", "mirror", "history"),
) -> ConsistentCut:
    """:func:`sinks.consistent` of the one lake that *config* writes.

    Raises :class:`ConfigError` where it writes none, or several: then ask for one by its path.
    """
    import sinks

    settings = config if isinstance(config, PipelineConfig) else load_config(config)
    configured = lakes(settings.sinks)
    if len(configured) != 1:
        found = ", ".join(lake.path or lake.catalog for lake in configured) or "none"
        raise ConfigError("expected one lake", problems=(f"expected one sink of type delta @ $.sinks (got {found})",))
    return sinks.consistent(spark, configured[0], at=at, kinds=kinds)
