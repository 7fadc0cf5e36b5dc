"""What a run asks the source itself for: rows that a plan copies, and repairs of stopped tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from typing import TYPE_CHECKING, NamedTuple

from connectors.backfill.copying_again import copy_again
from connectors.backfill.spool import Spool, chunk_of
from connectors.config import ServerSource
from connectors.recovery.repairing import repair, repairable
from connectors.tracking.sources import server_address
from historian.changelog.chunks import Chunk
from historian.plans.plans import Plan

if TYPE_CHECKING:
    from connectors.config import SourceConfig
    from connectors.tracking.tracker import Tracker

__all__ = ["SourceRows"]


class SourceRows:
    """Rows of a run's source that do not come from its log.

    Args:
        stopped_by_sink: as :meth:`sinks.contract.base.Sink.repairable`.
        by_ranges: whether tables may be repaired range by range.
    """

    def __init__(
        self,
        source: SourceConfig,
        tracker: Tracker,
        stopped_by_sink: Callable[[], Mapping[int, int]],
        *,
        by_ranges: bool,
    ) -> None:
        self._source = source
        self._tracker = tracker
        self._stopped_by_sink = stopped_by_sink
        self._by_ranges = by_ranges
        self._tried: set[tuple[int, str | int]] = set()

    def copied(self, plan: Plan) -> Iterator[Chunk]:
        """The rows that a plan copies; of a store that was lost they are read again, as of the same position."""
        found = 0
        for body in self._tracker.store.copied_chunks(plan.number):
            chunk = chunk_of(body)
            found += chunk.rows.num_rows
            yield chunk
        has_copied = any(table.copy is not None and table.copy.rows for table in plan.tables)
        if not found and has_copied and isinstance(self._source, ServerSource):
            with closing(Spool()) as spool:
                copy_again(self._tracker, server_address(self._source), plan, spool)
                yield from map(chunk_of, spool)

    def repaired(self, number: int) -> Plan | None:
        """A plan behind plan *number*, the last one, that brings a stopped table back by a look at the source; None: there is none now.

        Each stop is tried once in a run: what stops a table in its repair would stop it again. None while copies are paused.
        """
        tracker = self._tracker
        if tracker.copier is None or not isinstance(self._source, ServerSource):
            return None
        stops: dict[int, _Stop] = {
            i: _Stop("its sink stopped it at a statement that changes rows", behind, behind)
            for i, behind in self._stopped_by_sink().items()
        }
        copies = tracker.store.copies() if stops else {}
        # What its sink stops while ranges of it are compared is compared as a whole.
        whole = {i for i in stops if i in copies and copies[i].repairs}
        stops |= {
            i: _Stop(stop.reason.splitlines()[0], str(stop.place), None) for i, stop in repairable(tracker).items()
        }
        if not stops or tracker.store.copy_orders().paused:
            return None
        for table_id, stop in stops.items():
            if (table_id, stop.place) in self._tried:
                continue
            last = tracker.store.last_plan()
            if last is None or last.number != number:
                return None
            limits = self._source.backfill if self._by_ranges and table_id not in whole else None
            address = server_address(self._source)
            plan = repair(tracker, address, table_id, stop.reason, behind=stop.behind, limits=limits)
            if plan is not None:
                # One by the sink in the repair itself stands behind the same plan as this one's.
                copy = tracker.store.copies().get(table_id)
                again = (plan.number - 1,) if copy is None or copy.is_done else ()
                self._tried |= {(table_id, place) for place in (stop.place, *again)}
                return plan
        return None


class _Stop(NamedTuple):
    """Why a table stopped, what tells that stop from others, and the plan that its targets hold where it is their own."""

    reason: str
    place: str | int
    behind: int | None
