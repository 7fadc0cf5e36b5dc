"""What a connector's store tells of its tables, looked at again and again: the history is read once and then grows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any

from connectors.monitoring.copies import copies_left_s, copies_state, copies_wait
from connectors.monitoring.looking import GrownHistory
from connectors.monitoring.picture import SchemaChange
from connectors.monitoring.targets import noted_targets
from connectors.tracking.recorded import reached_plan, recorded_store, stopped_tables
from historian.history.explain import explained
from historian.names import TableName
from historian.positions import LogPosition

if TYPE_CHECKING:
    from connectors.config import PipelineConfig
    from historian.history.history import History
    from historian.store import Store
    from sinks.contract.base import TargetStatus

__all__ = ["Stored", "StoredTables", "place_text"]

_CHANGES = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """What a look at the store finds.

    Attributes:
        position: the last plan's end, as of the first look: a run tells of those that follow.
        tables: names of captured tables by id.
        copies: as :func:`connectors.monitoring.copies.copies_state`, of tables that are not copied whole; ``left_s``: in about how many seconds
            all of them end; None: not known.
        stopped: why captured tables are, by name.
        changes: the last statements on captured tables, the newest first.
        notes: what keeps the run or its copies waiting, as sentences.
    """

    position: str = ""
    tables: Mapping[int, str] = field(default_factory=dict)
    copies: tuple[dict[str, Any], ...] = ()
    left_s: int | None = None
    stopped: Mapping[str, str] = field(default_factory=dict)
    changes: tuple[SchemaChange, ...] = ()
    notes: tuple[str, ...] = ()


class StoredTables:
    """Looks at the store of *config*; for one thread."""

    def __init__(self, config: PipelineConfig) -> None:
        self._config = config
        self._store: Store | None = None
        self._grown = GrownHistory()
        self._is_configured = False
        self._position: str | None = None
        self._tables: dict[int, str] = {}
        self._changes: tuple[SchemaChange, ...] = ()

    def read(self) -> Stored:
        """What stands there now; nothing where there is no store yet.

        Raises:
            StoreError: it cannot be read; a later look may.
        """
        if self._store is None:
            self._store = recorded_store(self._config)
        store = self._store
        if store is None:
            return Stored()
        with store.together():
            return self._read(store)

    def _read(self, store: Store) -> Stored:
        self._grow(store)
        if self._position is None:
            plan = reached_plan(store)
            self._position = "" if plan is None else place_text(plan.end)
        return Stored(
            position=self._position,
            tables=self._tables,
            copies=tuple(copies_state(store, most=0)),
            left_s=copies_left_s(store),
            stopped={str(each.table): each.reason for each in stopped_tables(store) if self._captures(each.table)},
            changes=self._changes,
            notes=tuple(_notes(store)),
        )

    def configured(self, config: PipelineConfig) -> None:
        """From the next look on tables are those that *config*, of the same connector and store, takes in."""
        self._config, self._is_configured = config, False

    def close(self) -> None:
        """Closes the store."""
        if self._store is not None:
            self._store.close()

    def _captures(self, name: TableName) -> bool:
        return self._config.source.tables(name)

    def _grow(self, store: Store) -> None:
        """Takes up new versions, and what tables there are by now."""
        if not self._grown.look(store) and self._is_configured:
            return
        self._is_configured = True
        tables = self.history.catalog.tables
        self._tables = {table.table_id: str(name) for name, table in tables.items() if self._captures(name)}
        newest_first = self._changes_behind(self.history.first_number - 1)
        self._changes = tuple(islice(newest_first, _CHANGES))

    def changes_behind(self, number: int) -> list[SchemaChange]:
        """Statements on captured tables behind that entry of the history, the oldest first, as of the last look."""
        return list(self._changes_behind(max(number, self.history.first_number - 1)))[::-1]

    @property
    def history(self) -> History:
        """The history, as of the last look."""
        return self._grown.history

    def noted_targets(self) -> list[TargetStatus]:
        """Where targets stand, as the run noted it; none where it has not.

        Raises:
            StoreError: the store cannot be read.
        """
        return (noted_targets(self._store) if self._store is not None else None) or []

    @property
    def last_number(self) -> int:
        """Number of the last entry of the history, as of the last look."""
        return self.history.last_number

    def _changes_behind(self, number: int) -> Iterator[SchemaChange]:
        for at in range(self.history.last_number, number, -1):
            entry = self.history.entry(at)
            if entry is None or entry.place is None:  # what was captured is no statement
                continue
            made = [explained(self.history, version) for version in self.history.versions_by(at)]
            mine = [
                each
                for each in made
                if self._captures(each.version.name) or (each.before is not None and self._captures(each.before.name))
            ]
            if mine:
                yield SchemaChange(
                    number=at,
                    time_us=entry.event_time_us,
                    tables=tuple(dict.fromkeys(str(each.version.name) for each in mine)),
                    statement=entry.statement,
                    changes=mine[0].changes,
                )


def place_text(position: LogPosition) -> str:
    """File and offset, which are short, and the GTIDs behind them."""
    return f"{position.at}, {position.gtids}" if position.gtids and position.file else str(position)


def _notes(store: Store) -> list[str]:
    found = []
    if retry := store.retry():
        found.append(f"tries again: {retry}")
    if store.copy_orders().paused:
        found.append("copies are paused; `historian backfill CONFIG --resume` lets them go on")
    if wait := copies_wait(store):
        found.append(f"copies wait: {wait}")
    return found
