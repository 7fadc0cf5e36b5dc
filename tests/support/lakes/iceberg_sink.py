"""A sink of changelogs in Apache Iceberg, which shows that :class:`sinks.contract.base.Sink` needs nothing more for it.

Tables stand in a catalog in SQLite beside them. A table of plans is written last: a plan in it is held by every target.
It has no mirrors, no histories and no absent columns, folds what TRUNCATE takes back in this process, and reaches local disks only.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import CommitFailedException, TableAlreadyExistsError
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField, StringType
from sqlalchemy import URL

from historian import codec
from historian.errors import ChainBroken, SinkError, TableStopped, ValueUnrepresentable
from historian.history.timeline import TimelineEntry
from historian.plans.plans import Plan
from iceberg_changelog import MADE_WITH, NAMESPACE, Changelog, write_chunks
from sinks.contract.base import RecoveredStore, TargetStatus
from sinks.contract.chain import check_connector, check_follows
from sinks.contract.chunks import Chunks
from sinks.contract.held_plans import HeldPlan
from sinks.contract.locations import TableLocation
from sinks.contract.parts import Part, check_planned, count_rows, parts_of
from sinks.contract.tables import assign, stopped_locations
from sinks.parquet.settings import ParquetSettings

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyiceberg.table import Table

__all__ = ["IcebergSink", "open_catalog"]

_CATALOG = "catalog.db"
_LEDGER = (NAMESPACE, "_plans")
_CONNECTOR, _LAST = "historian.connector", "historian.plan"
_PLANS = Schema(
    NestedField(field_id=1, name="number", field_type=LongType(), required=True),
    NestedField(field_id=2, name="held", field_type=StringType(), required=True, doc="JSON of HeldPlan"),
)


@contextmanager
def open_catalog(path: Path) -> Iterator[Catalog]:
    """The catalog of the sink at *path*, made where there is none; its connections end with the context."""
    path.mkdir(parents=True, exist_ok=True)
    uri = URL.create("sqlite", database=str(path / _CATALOG)).render_as_string()
    with SqlCatalog("historian", uri=uri, warehouse=str(path)) as catalog:
        yield catalog


class IcebergSink:
    """Implements :class:`sinks.contract.base.Sink`. It keeps no connection between calls: nobody tells a sink that it ends."""

    def __init__(self, path: Path) -> None:
        self._path = path.absolute()
        self._names = ParquetSettings(path=str(self._path))
        self._connector: str | None = None
        self._held: HeldPlan | None = None

    def recover(self) -> RecoveredStore | None:
        """See :class:`sinks.contract.base.Sink`."""
        held = self._read()
        if not held:
            return None
        return RecoveredStore(
            connector=held[-1].plan.connector,
            timeline=tuple(entry for one in held for entry in one.changes),
            plans=tuple(one.plan for one in held),
        )

    def open(self, connector: str) -> int:
        """See :class:`sinks.contract.base.Sink`."""
        with open_catalog(self._path) as catalog:
            if not catalog.table_exists(_LEDGER):
                catalog.create_namespace_if_not_exists(NAMESPACE)
                catalog.create_table(_LEDGER, _PLANS, properties={**MADE_WITH, _CONNECTOR: connector})
            ledger = catalog.load_table(_LEDGER)
            claimed = ledger.properties[_CONNECTOR]
            if claimed != connector:
                raise SinkError(
                    "the tables are another connector's", where=str(self._path), expected=connector, found=claimed
                )
            self._connector, self._held = connector, _last(ledger)
        return self.held()

    def write(self, plan: Plan, timeline: Callable[[int], Sequence[TimelineEntry]], chunks: Chunks) -> None:
        """See :class:`sinks.contract.base.Sink`."""
        where = str(self._path)
        check_connector(plan, self._connector, where)
        with open_catalog(self._path) as catalog, _alone(where):
            ledger = catalog.load_table(_LEDGER)
            # Read again: a commit that failed for its caller may have been made.
            held = self._held = _last(ledger)
            number = 0 if held is None else held.plan.number
            if plan.number <= number:
                if _plans(ledger, f"number = {plan.number}")[0].plan != plan:
                    raise ChainBroken("another plan is held under a plan's number", where=f"{where}, {plan.number}")
                return
            check_follows(plan, number, where, holder="the tables", elsewhere="choose another path")
            rows, stops, partial = count_rows(chunks)
            check_planned(plan, rows)
            locations = assign({} if held is None else {h.table_id: h for h in held.locations}, plan, self._names)
            locations = stopped_locations(locations, stops, plan.number)
            after = _write_parts(catalog, plan, dict(locations), parts_of(plan, locations, rows, partial), chunks)
            recorded = 0 if held is None else held.plan.version
            changes = tuple(entry for entry in timeline(recorded) if entry.number <= plan.version)
            news = HeldPlan(plan=plan, changes=changes, locations=after)
            _record(ledger, news)
        self._held = news

    def repairable(self) -> Mapping[int, int]:
        """See :class:`sinks.contract.base.Sink`."""
        return {}

    def due_us(self) -> Mapping[int, int]:
        """See :class:`sinks.contract.base.Sink`."""
        return {}

    def commit_s(self) -> Sequence[float]:
        """See :class:`sinks.contract.base.Sink`: not measured."""
        return ()

    def held(self) -> int:
        """See :class:`sinks.contract.base.Sink`."""
        held = self._newest()
        return 0 if held is None else held.plan.number

    def stopped(self) -> Mapping[str, str]:
        """See :class:`sinks.contract.base.Sink`."""
        return {} if self._held is None else self._held.stopped

    def status(self) -> Sequence[TargetStatus]:
        """See :class:`sinks.contract.base.Sink`."""
        held = self._newest()
        return () if held is None else held.status(str(self._path))

    def _newest(self) -> HeldPlan | None:
        return self._held or next(reversed(self._read()), None)

    def _read(self) -> list[HeldPlan]:
        if not (self._path / _CATALOG).exists():
            return []
        with open_catalog(self._path) as catalog:
            return _plans(catalog.load_table(_LEDGER)) if catalog.table_exists(_LEDGER) else []


def _write_parts(
    catalog: Catalog, plan: Plan, locations: dict[int, TableLocation], parts: Sequence[Part], chunks: Chunks
) -> tuple[TableLocation, ...]:
    """Writes *parts*: the n-th part of every table at once, then a commit a table; the locations, some of them stopped."""
    identity = hashlib.sha256(codec.dump(Plan, plan).encode()).hexdigest()
    logs = {d: Changelog(catalog, d, plan, identity) for d in sorted({part.location.changelog for part in parts})}
    for log in logs.values():
        if log.holds:
            locations = dict(stopped_locations(locations, log.table_status.stops, plan.number))
    for index in sorted({part.index for part in parts}):
        works, prepared = {}, {}
        for part in (part for part in parts if part.index == index):
            table_id, log = part.location.table_id, logs[part.location.changelog]
            if log.holds or locations[table_id].stopped:
                continue
            try:
                works[table_id, part.segment] = log.prepare(part)
                prepared[table_id, part.segment] = part
            except (TableStopped, ValueUnrepresentable) as error:
                locations[table_id] = replace(locations[table_id], stopped=str(error), stopped_in=plan.number)
                log.stop(table_id, str(error))
        wanted = any(part.rows for part in prepared.values())
        files = dict(chunks.map(write_chunks(works), by_table=True)) if wanted else {}
        for at, part in prepared.items():
            logs[part.location.changelog].append(part, files.get(at, []))
    for log in logs.values():
        log.commit()
    return tuple(locations.values())


@contextmanager
def _alone(where: str) -> Iterator[None]:
    try:
        yield
    except (CommitFailedException, TableAlreadyExistsError) as error:
        raise ChainBroken("somebody else writes the tables", where=where, found=str(error)) from error


def _record(ledger: Table, held: HeldPlan) -> None:
    row = {"number": [held.plan.number], "held": [codec.dump(HeldPlan, held)]}
    with ledger.transaction() as transaction:
        transaction.append(pa.table(row, schema=_PLANS.as_arrow()))
        transaction.set_properties({_LAST: str(held.plan.number)})


def _last(ledger: Table) -> HeldPlan | None:
    number = int(ledger.properties.get(_LAST, 0))
    return _plans(ledger, f"number = {number}")[0] if number else None


def _plans(ledger: Table, wanted: str = "true") -> list[HeldPlan]:
    texts = ledger.scan(row_filter=wanted).to_arrow().sort_by("number").column("held").to_pylist()
    return [codec.load(HeldPlan, text) for text in texts]
