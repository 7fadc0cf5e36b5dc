"""Foresees what a run with a configuration would do: the checks that the run makes, asked without writing anything."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from connectors.backfill.estimates import estimated_rows
from connectors.check import require
from connectors.check.rules import check_expressions
from connectors.check.sizes import ROWS_PER_S
from connectors.config import PipelineConfig, ServerSource, TableFilter
from connectors.reconfiguration.effects import Effects, TableEffect, strongest
from connectors.reconfiguration.noted import NotedConfig
from connectors.reconfiguration.sink_effects import COMPARED, SinkEffects, sink_effects
from connectors.tracking.copier import copies_rows
from connectors.tracking.recorded import recorded_store
from connectors.tracking.scope import stops_by_filter
from connectors.tracking.sources import make_reader, server_address
from connectors.tracking.type_options import check_type_options
from historian.errors import ConfigError, HistorianError
from historian.names import TableName
from historian.plans.plans import Plan
from historian.plans.segments import planned_tables

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from historian.history.history import History
    from historian.schema.snapshots import Catalog, Snapshot
    from historian.store import Store

__all__ = ["foresee"]


def foresee(config: PipelineConfig, spark: SparkSession) -> Effects:
    """What a run with *config* would do. Reads source, store and sinks, and writes nothing; may be asked beside a run.

    Raises:
        ConfigError: there is no sink.
        HistorianError: what may pass keeps source, store or sinks from being asked; it is ``retryable``.
    """
    if not config.sinks:
        raise ConfigError("there is nothing to write to", problems=("missing @ $.sinks",), where=str(config.path))
    refused: list[str] = []
    with _refusals(refused):
        require(config)
    store: Store | None = None
    try:
        with _refusals(refused):
            store = recorded_store(config)
        if store is None or refused:
            return _first_effects(config, spark, refused)
        with _refusals(refused):
            store.connector(config.name)
        plan = store.last_plan()
        if refused or plan is None:
            return _first_effects(config, spark, refused)
        return _effects(config, spark, _Recorded(store=store, plan=plan, history=store.history()), refused)
    finally:
        if store is not None:
            store.close()


class _refusals:  # noqa: N801 reads as the function that it is
    """Adds an error inside the ``with`` to *refused*, but for one that may pass."""

    def __init__(self, refused: list[str]) -> None:
        self._refused = refused

    def __enter__(self) -> None:
        """Nothing is to be done."""

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        if not isinstance(error, HistorianError) or error.retryable:
            return False
        self._refused.append(str(error))
        return True


@dataclass(frozen=True, slots=True, kw_only=True)
class _Recorded:
    """What the store has of a connector that has begun."""

    store: Store
    plan: Plan
    history: History

    @property
    def catalog(self) -> Catalog:
        """The tables that are known behind the last plan."""
        return self.history.catalog_at(self.plan.version)


def _effects(config: PipelineConfig, spark: SparkSession, recorded: _Recorded, refused: list[str]) -> Effects:
    """Of a connector that has begun."""
    store, plan = recorded.store, recorded.plan
    former = NotedConfig.parse(store.configuration())
    noted = NotedConfig.of(config, None if former is None else former.salt)
    captured = [name for name in sorted(recorded.catalog.tables) if config.source.tables(name)]
    found: dict[TableName, list[TableEffect]] = defaultdict(list)
    for name in captured:
        found[name].append(TableEffect(table=str(name), action="nothing"))
    for effect in (
        *_by_filter(config, recorded, spark),
        *_stopped(config, recorded),
        *_type_options(config, recorded, refused),
    ):
        found[_name(effect.table)].append(effect)
    sinks: list[SinkEffects] = []
    with _refusals(refused):
        first = _first_plan(store)
        known = {snapshot.table_id: snapshot for snapshot in recorded.catalog.tables.values()}
        former_sinks = () if former is None else former.sinks
        # What one of several sinks has stopped goes on in the others.
        repairs = len(config.sinks) == 1 and copies_rows(config.source, store)
        connector = store.connector(config.name)
        sinks = sink_effects(config, noted.sinks, former_sinks, spark, connector, first, known, repairs=repairs)
    notes = [] if former is not None else ["no run has noted its configuration yet: changed settings are not told"]
    for sink in sinks:
        refused += sink.refused
        notes += sink.notes
        if sink.is_new:
            with _refusals(refused):
                _check_log(config, first)
        for name in captured:
            found[name] += sink.of(name)
    if any(sink.is_new for sink in sinks):
        with _refusals(refused):
            check_expressions(config.sinks, [recorded.catalog.tables[name] for name in captured], spark)
    tables = [strongest(effects) for _, effects in sorted(found.items())]
    return Effects(
        connector=config.name,
        behind=f"plan {plan.number}, {plan.end}",
        tables=tuple(_estimated(config, tables)),
        settings=tuple(() if former is None else noted.differences(former)),
        refused=tuple(dict.fromkeys(refused)),
        notes=tuple(dict.fromkeys(notes)),
    )


def _first_effects(config: PipelineConfig, spark: SparkSession, refused: list[str]) -> Effects:
    """Of a connector whose store has no plan: it begins, or its store is made again from its lake."""
    notes: list[str] = []
    tables: list[TableEffect] = []
    sinks: list[SinkEffects] = []
    with _refusals(refused):
        sinks = sink_effects(config, NotedConfig.of(config).sinks, (), spark, None, None, {}, repairs=False)
    held = next((sink for sink in sinks if sink.holds), None)
    for sink in sinks:
        refused += sink.refused
    if held is not None:
        notes.append("the history store has no plan: it is made again from the lake, and the run goes on from there")
        wanted = config.source.tables
        effects = {name: held.of(name) for name in held.holds}
        tables = [
            strongest(found or [TableEffect(table=str(name), action="nothing")])
            for name, found in sorted(effects.items())
            if wanted(name)
        ]
    elif isinstance(config.source, ServerSource) and not refused:
        copied = copies_rows(config.source, None)
        word = "its rows are copied, and its changes follow" if copied else f"its changes from {config.source.start} on"
        present = _present(config.source)
        with _refusals(refused):
            check_expressions(config.sinks, present, spark)
        tables = [
            TableEffect(table=str(snapshot.name), action="copied" if copied else "anew", why=word)
            for snapshot in present
        ]
    if not refused and held is None:
        notes.append(f"its first run begins as source.start says: {config.source.start}")
    return Effects(
        connector=config.name,
        behind="",
        tables=tuple(_estimated(config, tables)),
        refused=tuple(dict.fromkeys(refused)),
        notes=tuple(notes),
    )


def _by_filter(config: PipelineConfig, recorded: _Recorded, spark: SparkSession) -> Iterator[TableEffect]:
    """Tables that the configuration takes in or leaves out otherwise than the last plan's."""
    plan = recorded.plan
    if not plan.captured:
        return
    copies = copies_rows(config.source, recorded.store)
    held = recorded.store.quarantines()
    for table_id, name, stop in stops_by_filter(plan.captured, config.source.tables, recorded.catalog, plan.end):
        if table_id in held and held[table_id] != stop:
            continue
        if copies and config.source.tables(name) and table_id not in held:
            try:
                check_expressions(config.sinks, [recorded.catalog.tables[name]], spark)
            except ConfigError as error:
                why = f"expressions do not fit it: {'; '.join(error.problems)}"
                yield TableEffect(table=str(name), action="stopped", why=why)
                continue
            yield TableEffect(table=str(name), action="copied", why="the configuration takes it in from here on")
        else:
            yield TableEffect(table=str(name), action="stopped", why=stop.reason)


def _stopped(config: PipelineConfig, recorded: _Recorded) -> Iterator[TableEffect]:
    """Tables that are stopped already, and whether a run brings them back."""
    copies = copies_rows(config.source, recorded.store)
    former = TableFilter.parse(recorded.plan.captured) if recorded.plan.captured else config.source.tables
    for table_id, name, stop in recorded.store.stopped():
        if not config.source.tables(name):
            continue
        first = stop.reason.splitlines()[0]
        if copies and table_id and stop.repairable and not stop.is_cancelled:
            yield TableEffect(table=str(name), action="repaired", why=f"stopped: {first}; {COMPARED}")
        elif not former(name):
            yield TableEffect(
                table=str(name), action="stopped", why=f"it is stopped, and stays so until `historian heal`: {first}"
            )
        else:
            yield TableEffect(table=str(name), action="nothing", why=f"it is stopped already: {first}")


def _type_options(config: PipelineConfig, recorded: _Recorded, refused: list[str]) -> Iterator[TableEffect]:
    """Tables of which a value would get another type than their targets have."""
    plan, held = recorded.plan, recorded.store.type_options()
    former = TableFilter.parse(plan.captured) if plan.captured else config.source.tables
    names = {
        s.table_id: name for name, s in recorded.catalog.tables.items() if config.source.tables(name) and former(name)
    }
    tables = planned_tables(
        recorded.history,
        base=plan.version,
        last=plan.version,
        captured=config.source.tables,
        touched=names,
        quarantines={},
        type_options=config.types,
    )
    with _refusals(refused):
        check_type_options(replace(plan, tables=tables), held)
        return
    for table in tables:
        try:
            check_type_options(replace(plan, tables=(table,)), held)
        except ConfigError as error:
            yield TableEffect(table=str(names[table.table_id]), action="refused", why=str(error))


def _first_plan(store: Store) -> Plan | None:
    """The first one that a sink which holds nothing would be given."""
    return store.plan(store.begin_behind(0) + 1)


def _check_log(config: PipelineConfig, first: Plan | None) -> None:
    """Raises :class:`SourceError` where the log no longer holds what a sink that is new would be given."""
    if first is not None:
        with closing(make_reader(config.source)) as reader:
            reader.locate(first.start)


def _present(source: ServerSource) -> list[Snapshot]:
    """The captured tables that the server has now, by name."""
    from connectors.tracking.capture.catalog import capture_catalog

    with closing(server_address(source).connect()) as connection:
        tables = capture_catalog(connection, 1, 1, exact=False).tables
    return [snapshot for name, snapshot in sorted(tables.items()) if source.tables(name)]


def _estimated(config: PipelineConfig, tables: list[TableEffect]) -> Iterator[TableEffect]:
    """With about how many rows are read from the source, and how long that takes at most."""
    source = config.source
    names = [_name(each.table) for each in tables if each.action in ("copied", "repaired")]
    rows: Mapping[TableName, int] = {}
    if isinstance(source, ServerSource) and names:
        rows = estimated_rows(server_address(source), names)
    limit = source.backfill.rows_per_s if isinstance(source, ServerSource) else 0
    rate = min(ROWS_PER_S, limit or ROWS_PER_S)
    for each in tables:
        count = rows.get(_name(each.table)) if each.action in ("copied", "repaired") else None
        yield each if count is None else replace(each, rows=count, seconds=-(-count // rate))


def _name(text: str) -> TableName:
    database, _, table = text.partition(".")
    return TableName(database, table)
