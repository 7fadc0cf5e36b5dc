"""What each target does with a statement on its table, told before or while it is done: the sinks' dry runs on the history of the store."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from connectors.sink_kinds import make_dry_run
from historian.errors import HistorianError
from historian.plans.plans import Plan
from historian.plans.segments import planned_tables

if TYPE_CHECKING:
    from connectors.config import PipelineConfig
    from historian.history.history import History
    from historian.history.versions import Version
    from sinks.contract.base import DryRun, DryRunResult, TargetStatus

__all__ = ["TargetEffects", "effect_text"]

_MOST_VERSIONS = 200
"""So many statements on a table are looked at before the one in question: what was decided about them matters for it."""
_MOST_TABLES = 100
_log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Table:
    """A table in dry runs of its own, up to the version of that number."""

    sinks: Sequence[tuple[str, DryRun]]
    upto: int = 0
    plans: int = 0


class TargetEffects:
    """Of one connector; for one thread."""

    def __init__(self, config: PipelineConfig) -> None:
        self._config = config
        self._tables: dict[int, _Table] = {}

    def of(
        self, history: History, number: int, targets: Sequence[TargetStatus], stopped: Mapping[str, str]
    ) -> list[dict[str, Any]]:
        """What targets do with the entry of that number: rows of sink, table, target, kind, effects, and why the table stops.

        Args:
            history: holds the entry.
            number: of the entry.
            targets: as the run noted them, by which targets are called.
            stopped: tables that were stopped before, and why.
        """
        try:
            return [
                _row(sink, one, targets, stopped)
                for version in history.versions_by(number)
                for sink, one in self._of_table(history, version)
            ]
        except HistorianError as error:
            _log.warning("what targets do with a statement cannot be told: %s", error)
        except Exception as error:  # noqa: BLE001 the statement itself is told all the same
            _log.warning("what targets do with a statement cannot be told: %s: %s", type(error).__name__, error)
        self._tables.clear()
        return []

    def _of_table(self, history: History, version: Version) -> Iterator[tuple[str, DryRunResult]]:
        table_id, number = version.table_id, version.number
        table = self._tables.pop(table_id, None)
        if table is None or table.upto >= number:
            table = _Table([(sink.type, run) for sink in self._config.sinks if (run := make_dry_run(sink)) is not None])
        before = [each.number for each in history.versions_of(table_id) if table.upto < each.number < number]
        before = before[-_MOST_VERSIONS:]
        if before and not table.plans:
            self._take(table, self._plan(history, table, table_id, before[0], is_there=True))
            before = before[1:]
        for earlier in before:
            self._take(table, self._plan(history, table, table_id, earlier))
        found = self._take(table, self._plan(history, table, table_id, number))
        table.upto = number
        self._tables[table_id] = table
        while len(self._tables) > _MOST_TABLES:
            self._tables.pop(next(iter(self._tables)))
        return iter(found)

    def _take(self, table: _Table, plan: Plan | None) -> list[tuple[str, DryRunResult]]:
        if plan is None:
            return []
        table.plans += 1
        return [(name, one) for name, sink in table.sinks for one in sink.take(plan)]

    def _plan(
        self, history: History, table: _Table, table_id: int, number: int, *, is_there: bool = False
    ) -> Plan | None:
        """A plan with the table's edits of one entry, or with none where it *is_there* with that entry; None: it has no part in it."""
        entry = history.entry(number)
        planned = planned_tables(
            history,
            base=number if is_there else number - 1,
            last=number,
            captured=self._config.source.tables,
            touched=(table_id,),
            quarantines={},
            type_options=self._config.types,
        )
        mine = tuple(each for each in planned if each.table_id == table_id and each.quarantine is None)
        if entry is None or not mine:
            return None
        return Plan(
            number=table.plans + 1,
            previous=table.plans,
            connector="",
            start=entry.position,
            end=entry.position,
            ranges=(),
            tables=mine,
            version=number,
            system_time_us=0,
            revision="",
        )


def _row(sink: str, one: DryRunResult, targets: Sequence[TargetStatus], stopped: Mapping[str, str]) -> dict[str, Any]:
    row = {"sink": sink, **asdict(one)}
    called = {each.target for each in targets if (each.table, each.kind) == (one.table, one.kind) and not each.ended}
    if len(called) == 1:
        (row["target"],) = called
    if one.stopped is None and one.table in stopped:
        row["effects"], row["stopped"] = (), stopped[one.table]
    return row


def effect_text(row: Mapping[str, Any]) -> str:
    """A row of :meth:`TargetEffects.of` in one line."""
    name = " ".join(filter(None, (row["kind"], row["target"] or row["table"])))
    if row["stopped"] is not None:
        return f"{name} stops: {row['stopped']}"
    return f"{name}: {'; '.join(row['effects']) or 'nothing to do'}"
