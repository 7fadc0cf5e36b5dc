"""What becomes of the targets of each sink with other settings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING

from connectors.config import PipelineConfig, SinkConfig
from connectors.reconfiguration.effects import TableEffect
from connectors.sink_kinds import lake, make_sink
from historian.names import TableName

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from historian.plans.plans import Plan
    from historian.schema.snapshots import Snapshot
    from sinks.delta import DeltaSettings

__all__ = ["COMPARED", "SinkEffects", "sink_effects"]

COMPARED = "compared with the source, it goes on"

_EFFECTS = {
    "table_properties": "for targets that are made from here on",
    "cluster": "for targets that are made from here on",
    "evolution": "from the next schema change on",
}
"""What changed settings of a table hold for; others hold from the next plan on."""
_NAMES = ("changelog", "mirror", "history")
_UNITS = {"mirror_every_us": "mirror_every"}


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkEffects:
    """What becomes of one sink.

    Attributes:
        refused: why a run would not begin.
        notes: what else there is to know of it.
        is_new: whether it holds nothing yet.
        holds: the tables that it has, by name.
        tables: what becomes of some of them.
        anew: what becomes of tables that it does not have; None: nothing.
    """

    refused: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    is_new: bool = False
    holds: frozenset[TableName] = frozenset()
    tables: Mapping[TableName, tuple[TableEffect, ...]] = field(default_factory=dict)
    anew: str = ""

    def of(self, name: TableName) -> list[TableEffect]:
        """What becomes of the table *name*, which the configuration takes in."""
        found = list(self.tables.get(name, ()))
        return found or ([TableEffect(table=str(name), action="anew", why=self.anew)] if self.anew else [])


@dataclass(frozen=True, slots=True, kw_only=True)
class _Begun:
    """What is known of the connector, as :func:`sink_effects` takes it."""

    connector: str | None
    first: Plan | None
    known: Mapping[int, Snapshot]
    repairs: bool


def sink_effects(
    config: PipelineConfig,
    noted: Sequence[SinkConfig],
    former: Sequence[SinkConfig],
    spark: SparkSession,
    connector: str | None,
    first: Plan | None,
    known: Mapping[int, Snapshot],
    *,
    repairs: bool,
) -> list[SinkEffects]:
    """What becomes of each sink of *config*, in order.

    Args:
        config: of the run.
        noted: its sinks as they are noted; ``former``: those of the last run, () where it has not noted them.
        spark: a session.
        connector: identity of the connector; None: it has not begun.
        first: the first plan that a sink which is new would be given; None: the connector has not begun.
        known: tables as they are behind the last plan, by id.
        repairs: whether a table that a sink has stopped may be compared with the source.
    """
    before = {(sink.type, sink.place): sink for sink in former}
    begun = _Begun(connector=connector, first=first, known=known, repairs=repairs)
    found = []
    for sink, mine in zip(config.sinks, noted, strict=True):
        settings = lake(sink)
        if settings is None:
            found.append(_other(sink, spark, connector))
        else:
            found.append(_lake(sink, mine, before.get((sink.type, sink.place)), settings, spark, begun))
    left = [f"{sink.type} {sink.place}" for place, sink in before.items() if place not in {_at(s) for s in noted}]
    if left and found:
        gone = SinkEffects(notes=tuple(f"{sink} is written no more, and stands as it is" for sink in left))
        found.append(gone)
    return found


def _at(sink: SinkConfig) -> tuple[str, str]:
    return sink.type, sink.place


def _other(sink: SinkConfig, spark: SparkSession, connector: str | None) -> SinkEffects:
    """A sink that has no settings which its targets keep: whose it is decides alone. Opening such a one reads only."""
    if connector is not None:
        make_sink(sink, spark).open(connector)
    return SinkEffects()


def _lake(
    sink: SinkConfig,
    noted: SinkConfig,
    former: SinkConfig | None,
    settings: DeltaSettings,
    spark: SparkSession,
    begun: _Begun,
) -> SinkEffects:
    from sinks.delta.reading.settings_fit import lake_fit

    fit = lake_fit(spark, settings, begun.connector, begun.known)
    if fit is None or fit.last is None:
        if fit is not None and fit.refused is not None:
            return SinkEffects(refused=(str(fit.refused),))
        return _new(sink, begun.first)
    refused = [] if fit.refused is None else [str(fit.refused)]
    now, then = lake(noted), None if former is None else lake(former)
    tables: dict[TableName, tuple[TableEffect, ...]] = {}
    for table in fit.tables:
        name = TableName(*table.name.split(".", 1))
        if table.refused is not None and fit.refused is None:
            refused.append(str(table.refused))
        why = table.refused or fit.refused
        if why is not None:
            tables[name] = (TableEffect(table=table.name, action="refused", why=str(why)),)
            continue
        effects = [TableEffect(table=table.name, action="nothing")]
        if table.stopped:
            reason = table.stopped.splitlines()[0]
            effects.append(
                TableEffect(table=table.name, action="repaired", why=f"stopped: {reason}; {COMPARED}")
                if begun.repairs and table.comes_back
                else TableEffect(table=table.name, action="nothing", why=f"it is stopped already: {reason}")
            )
        if table.keeps and not settings.catalog:
            why_kept = f"its targets keep their names: {', '.join(table.keeps)}"
            effects.append(TableEffect(table=table.name, action="nothing", why=why_kept))
        if now is not None and then is not None:
            changed = "; ".join(_changed(now, then, table.came_as))
            if changed:
                effects.append(TableEffect(table=table.name, action="changed", why=changed))
        tables[name] = tuple(effects)
    return SinkEffects(refused=tuple(refused), holds=frozenset(tables), tables=tables)


def _new(sink: SinkConfig, first: Plan | None) -> SinkEffects:
    if first is None:
        return SinkEffects(is_new=True)
    if first.previous:
        why = (
            f"a sink that is new would lack plans that the store has forgotten: {sink.type} {sink.place}\n"
            f"  expected plan 1, found plan {first.number} as the first\n"
            "  next: start a connector with a name and a store of its own for it"
        )
        return SinkEffects(refused=(why,), is_new=True)
    anew = f"its targets are made in {sink.place}, from plan {first.number} on"
    return SinkEffects(is_new=True, anew=anew)


def _changed(now: DeltaSettings, then: DeltaSettings, name: TableName) -> Iterator[str]:
    """What is said of a table otherwise than before. Names, which targets keep, are told of elsewhere."""
    mine, before = now.for_table(name), then.for_table(name)
    for each in fields(before):
        key, new, old = each.name, getattr(mine, each.name), getattr(before, each.name)
        if new != old and key not in _NAMES:
            holds = _EFFECTS.get(key, "from the next plan on")
            yield f"{_UNITS.get(key, key)}: {_text(new)}, was {_text(old)}, {holds}"


def _text(value: object) -> str:
    if isinstance(value, tuple):
        return ", ".join(
            f"{one[0]} {one[1]}" if isinstance(one, tuple) and len(one) == 2 else str(one) for one in value
        )
    return "none" if value is None else str(value)
