"""The targets of a lake compared with rows that the source held at a plan's end."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING

from connectors.backfill.spool import Spool
from historian.plans.plans import Plan
from historian.positions import LogPosition
from sinks.contract.local_chunks import LocalChunks
from sinks.delta.writing.comparing import compared

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from historian.changelog.chunks import Chunk
    from historian.schema.snapshots import Snapshot
    from sinks.delta import DeltaSettings

__all__ = ["ComparedRows", "compare"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedRows:
    """How a comparison came out.

    Attributes:
        rows_read: of the source; ``size_bytes``: of them as Arrow.
        rows_differing: changelog rows that would mend the targets.
        end: of the plan as of whose end both sides were read; ``plan``: its number.
    """

    rows_read: int
    rows_differing: int
    size_bytes: int
    end: LogPosition
    plan: int = 0


def compare(
    spark: SparkSession,
    lake: DeltaSettings,
    read: Callable[[Spool], Plan | None],
    tell: Callable[[Chunk, Snapshot], None],
    *,
    threads: int,
    pinned: bool = False,
) -> ComparedRows | None:
    """Compares the rows of a plan of one table with its targets; None where they could not be read as of its end.

    Args:
        read: gives the plan, and puts its rows into the spool, as :func:`connectors.recovery.repairing.read_whole`.
        tell: is told of what differs, and under which schema.
        threads: that work side by side.
        pinned: as of :func:`sinks.delta.writing.comparing.compared`.

    Raises:
        NotComparable, LeftBehind: as of :func:`sinks.delta.writing.comparing.compared`.
    """
    with closing(Spool()) as copied, closing(LocalChunks(threads=threads)) as chunks:
        plan = read(copied)
        if plan is None:
            return None
        chunks.fill([copied.chunks])
        with compared(spark, lake, plan, chunks, pinned=pinned) as found:
            for chunk in found.chunks:
                tell(chunk, found.snapshot)
            return ComparedRows(
                rows_read=found.record.rows_read,
                rows_differing=sum(found.record.operations.values()),
                size_bytes=sum(head.size_bytes for head in chunks.heads),
                end=plan.end,
                plan=plan.previous,
            )
