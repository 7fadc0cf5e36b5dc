"""Whether a lake can go on with other settings than those that made it, table by table, for those who ask before a run does."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from historian.errors import HistorianError, SinkError
from sinks.contract.tables import target_name
from sinks.delta.schema.stops import repairable
from sinks.delta.settings import KINDS, DeltaSettings
from sinks.delta.writing.sink import DeltaSink
from sinks.shaping.bindings import Bindings, check_bindings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from historian.names import TableName
    from historian.plans.plans import Plan
    from historian.schema.snapshots import Snapshot
    from sinks.contract.locations import TableLocation

__all__ = ["LakeFit", "TableFit", "lake_fit"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TableFit:
    """A table of a lake beside settings.

    Attributes:
        table_id: of the history; ``name``: its present name; ``came_as``: the name by which settings are chosen.
        stopped: why the lake has stopped it; "" where it has not.
        comes_back: whether it goes on with the settings once it is compared with the source.
        refused: what opening the lake with the settings says of it; None: its targets go on.
        keeps: directories that keep the names with which they were made, though the settings name them otherwise.
    """

    table_id: int
    name: str
    came_as: TableName
    stopped: str = ""
    comes_back: bool = False
    refused: HistorianError | None = None
    keeps: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LakeFit:
    """A lake beside settings.

    Attributes:
        connector: identity of the connector whose it is.
        last: the last plan that it has recorded; None where none is.
        refused: what opening it with the settings says of it as a whole.
        tables: those that were not dropped.
    """

    connector: str
    last: Plan | None
    refused: SinkError | None
    tables: tuple[TableFit, ...]


def lake_fit(
    spark: SparkSession, settings: DeltaSettings, connector: str | None, known: Mapping[int, Snapshot]
) -> LakeFit | None:
    """What opening the lake with *settings* would say; None where there is no lake yet. Reads only.

    Args:
        spark: a session.
        settings: of the sink.
        connector: identity of the connector that would open it; None: whoever's it is.
        known: tables as they are behind the lake's last plan, by id.
    """
    state = DeltaSink(spark, settings).reading()
    if state is None:
        return None
    owner = state.connector
    state.connector = owner if connector is None else connector
    refused: SinkError | None = None
    try:
        state.check_owner()
    except SinkError as error:
        refused = error
    tables, back = [], repairable(state.locations.values(), settings)
    for _, location in sorted(state.locations.items()):
        if location.dropped or location.is_replaced:
            continue
        why: HistorianError | None = None
        try:
            state.check_settings(location)
            _check_plain(location, settings, known.get(location.table_id))
        except HistorianError as error:
            why = error
        tables.append(
            TableFit(
                table_id=location.table_id,
                name=location.name,
                came_as=location.came_as,
                stopped=location.stopped,
                comes_back=location.table_id in back,
                refused=why,
                keeps=() if why is not None else _kept(location, settings),
            )
        )
    return LakeFit(connector=owner, last=state.last, refused=refused, tables=tuple(tables))


def _check_plain(location: TableLocation, settings: DeltaSettings, snapshot: Snapshot | None) -> None:
    """As the next plan with the table does where nothing was ever done to its columns: the lake does not list those then."""
    if snapshot is not None and not location.columns:
        came = {column.id: (column.name, "") for column in snapshot.columns}
        check_bindings(location.name, Bindings(settings.rules_of(location.came_as), came))


def _kept(location: TableLocation, settings: DeltaSettings) -> tuple[str, ...]:
    chosen = settings.for_table(location.came_as)
    kept = []
    for kind in KINDS:
        held, pattern = getattr(location, kind), getattr(chosen, kind)
        # One that had no free name, or that was read again, has a mark behind it.
        if held and pattern and _MARK.sub("", held) != _MARK.sub("", target_name(pattern, location.came_as)):
            kept.append(f"{kind} {held}")
    return tuple(kept)


_MARK = re.compile(r"__[rt]\d+$")
