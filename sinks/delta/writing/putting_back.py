"""Targets that someone else wrote to: what was done to them, and how they get back to what the connector left."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sinks.delta.log.foreign import ForeignCommits, foreign_commits, put_back
from sinks.delta.log.target import CHANGED_BY_OTHERS
from sinks.delta.settings import DeltaSettings
from sinks.delta.writing.sink import DeltaSink

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["ForeignChanges", "foreign_changes"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignChanges:
    """What others did to the targets of a table.

    Attributes:
        targets: that they changed.
        behind: the plan that the targets hold, where the lake has stopped the table for it; None where it goes on.
    """

    targets: Sequence[ForeignCommits] = ()
    behind: int | None = None


def foreign_changes(
    spark: SparkSession, settings: DeltaSettings, table_id: int, *, puts_back: bool = False
) -> ForeignChanges:
    """What others did to the targets of a table since the connector's last commits to them.

    Args:
        puts_back: each of them is put back as it was then, by one commit of the connector, whose lease the caller holds. Safe to try again.

    Raises:
        CannotPutBack: one of them cannot be. Those before it are.
    """
    state = DeltaSink(spark, settings).reading()
    location = None if state is None else state.locations.get(table_id)
    if state is None or location is None or location.dropped:
        return ForeignChanges()
    targets = [state.target(location, directory) for directory in (*location.directories, *location.previous)]
    looked = [(target, foreign_commits(state.kernel, state.connector, target)) for target in targets]
    found = [(target, foreign) for target, foreign in looked if foreign is not None]
    for target, foreign in found if puts_back else ():
        put_back(spark, state.kernel, state.connector, target, foreign)
    is_stopped = location.stopped.startswith(CHANGED_BY_OTHERS) and not location.quarantined
    return ForeignChanges(
        targets=[foreign for _, foreign in found], behind=location.stopped_in - 1 if is_stopped else None
    )
