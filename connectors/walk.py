"""One walk over what a scan yields: statements become timeline entries, TABLE_MAPs are checked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from connectors.readers.base import Bound, Scanned, Statement, TableMapped
from connectors.readers.binlog.crosscheck import mismatch
from historian.ddl import Resolution, resolve
from historian.edits import Edit, ForgetTable, apply_all
from historian.plans import Place, Quarantine
from historian.positions import LogPosition
from historian.schema import Catalog, Snapshot, TableName
from historian.timeline import TimelineEntry

if TYPE_CHECKING:
    from historian.history import History
    from historian.store import Store

__all__ = ["Walk"]

_SHOWN_CHARACTERS = 200


@dataclass
class Walk:
    """Carries the catalog along the log from the entry *number* on.

    Attributes:
        number: of the last entry at or before the place reached.
        new_entries: not recorded before, in order.
        touched: ids of captured tables with rows in what was walked.
        quarantines: of captured tables, by table id, those of earlier walks included.
    """

    history: History
    number: int
    store: Store
    captured: Callable[[TableName], bool]
    flavor: str
    reached: LogPosition
    new_entries: list[TimelineEntry] = field(default_factory=list)
    touched: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.catalog: Catalog = self.history.catalog_at(self.number)
        self.quarantines: dict[int, Quarantine] = dict(self.store.quarantines())

    def take(self, item: Scanned) -> Bound | None:
        """Takes the next item; returns it where it is a bound."""
        if isinstance(item, Bound):
            self.reached = item.position
            return item
        if isinstance(item, Statement):
            self._statement(item)
        else:
            self._mapped(item)
        return None

    def _statement(self, statement: Statement) -> None:
        recorded = self.history.recorded(statement.place, self.reached.server)
        if recorded is not None and recorded.number == self.number + 1:
            self._advance(recorded)
            return
        resolution = resolve(statement.sql, statement.context, self.catalog)
        edits: list[Edit] = list(resolution.edits)
        if resolution.kind in ("dml", "not_understood"):
            reason = _why_stopped(resolution, statement.sql)
            for table in resolution.tables:
                self._stop(table, statement.place, reason)
                if resolution.kind == "not_understood" and table in self.catalog.tables:
                    edits.append(ForgetTable(table=table, reason=reason))
        if edits:
            self._record(statement, tuple(edits))
        if resolution.kind == "rows":  # tables that the statement makes are among them
            for table in resolution.tables:
                self._stop(table, statement.place, _why_stopped(resolution, statement.sql))

    def _mapped(self, mapped: TableMapped) -> None:
        snapshot = self.catalog.tables.get(mapped.table)
        captured = self.captured(mapped.table)
        if snapshot is None:
            if captured:
                known = self.catalog.unknown.get(mapped.table)
                self._stop(mapped.table, mapped.place, known or "its CREATE TABLE is not in the log that was read")
            return
        if not captured:
            return
        self.touched.add(snapshot.table_id)
        if snapshot.table_id in self.quarantines:
            return
        difference = mismatch(snapshot, mapped.columns, self.flavor)
        if difference is not None:
            self._stop(
                mapped.table, mapped.place, f"the log's TABLE_MAP does not fit the schema in force\n{difference}"
            )

    def _record(self, statement: Statement, edits: tuple[Edit, ...]) -> None:
        entry = TimelineEntry(
            number=self.number + 1,
            place=statement.place,
            position=self.reached,
            edits=edits,
            statement=statement.sql,
            database=statement.context.database,
            event_time_us=statement.event_time_us,
            server=self.reached.server,
        )
        self.new_entries.append(entry)
        self._advance(entry)

    def _advance(self, entry: TimelineEntry) -> None:
        self.catalog = apply_all(entry.edits, self.catalog)
        self.number = entry.number

    def _stop(self, table: TableName, place: Place, reason: str) -> None:
        snapshot: Snapshot | None = self.catalog.tables.get(table)
        if not self.captured(table):
            return
        quarantine = Quarantine(place=place, reason=reason)
        if snapshot is None:
            self.store.quarantine(0, table, quarantine)
            return
        self.touched.add(snapshot.table_id)
        if snapshot.table_id not in self.quarantines:
            self.store.quarantine(snapshot.table_id, table, quarantine)
            self.quarantines[snapshot.table_id] = quarantine


def _why_stopped(resolution: Resolution, sql: str) -> str:
    why = "a statement was not understood"
    if resolution.kind == "dml":
        why = "changed by a statement, expected binlog_format=ROW in every session"
    elif resolution.kind == "rows":
        why = "its rows are not known any more, its schema is"
    reason = resolution.reason
    shown = sql if len(sql) <= _SHOWN_CHARACTERS else f"{sql[:_SHOWN_CHARACTERS]}..."
    return f"{why}: {reason}" if shown in reason else f"{why}: {reason}\n  in: {shown}"
