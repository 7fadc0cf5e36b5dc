"""The edge out: the Delta changelog, mirror and history, and further sinks.

Sources and configuration files do not belong here (:mod:`connectors`).

Open to other rooms: ``console``, ``late_session``, ``session``, ``spark_settings``.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from historian.positions import LogPosition
    from sinks.delta.reading.cuts import ConsistentCut
    from sinks.delta.settings import DeltaSettings

__all__ = ["consistent"]


def consistent(
    spark: SparkSession,
    lake: DeltaSettings | str | Path,
    *,
    at: str | LogPosition | None = None,
    kinds: Collection[str] = ("changelog", "mirror", "history"),
) -> ConsistentCut:
    """The tables of a lake at one position of the source, so that a join of them is of one moment. Reads only.

    Args:
        spark: a session with Delta.
        lake: its path, or the settings of its sink.
        at: take the first plan that holds everything up to this position, such as the GTID of a transaction that must be in
            it. By default the newest plan that every target holds. ``position`` of what is returned is the one that it has.
        kinds: of the tables that are wanted.

    Raises:
        PositionAhead: the lake does not hold *at* yet; retryable.
        PositionExpired: a table's log is not kept back to there.
        SinkError: there is no lake.
    """
    from sinks.delta.reading.cuts import consistent_cut
    from sinks.delta.settings import DeltaSettings

    settings = lake if isinstance(lake, DeltaSettings) else DeltaSettings(path=str(lake))
    return consistent_cut(spark, settings, at=at, kinds=kinds)
