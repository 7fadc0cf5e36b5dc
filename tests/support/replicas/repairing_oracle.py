"""A connector whose stopped tables are repaired range by range: each row that its changelog takes back is there, just so."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

from connectors.config import CopyLimits
from connectors.recovery.healing import heal
from connectors.recovery.repairing import repair, repairable
from databases.servers import Server
from historian.changelog.chunks import Chunk
from historian.names import TableName
from historian.plans.plans import Plan
from logs.binlog_lab import address
from replicas.copying_oracle import CopyingOracle

__all__ = ["RepairingOracle"]


class RepairingOracle(CopyingOracle):
    """See :class:`CopyingOracle`. A table that stops stays as it was until its repair."""

    begun_anew = 0
    """Repairs that stopped on their way, and began anew."""

    def __init__(self, server: Server, directory: Path, limits: CopyLimits, database: str = "") -> None:
        super().__init__(server, directory, limits, database)
        self.reasons: list[str] = []

    def repair(self) -> None:
        """Begins the repairs of tables that have stopped."""
        with self._tracker() as tracker:
            under_way = {i for i, progress in tracker.store.copies().items() if progress.repairs}
            for table_id, stop in repairable(tracker).items():
                self.reasons.append(stop.reason)
                self.begun_anew += table_id in under_way
                repair(tracker, address(self.server), table_id, stop.reason.splitlines()[0], limits=self.limits)
        self.stopped = {}

    def heal(self, name: TableName) -> None:
        """Captures a stopped table anew."""
        with self._tracker() as tracker:
            heal(tracker, name)
        self.stopped = {}

    def took(self, plan: Plan, chunks: list[Chunk]) -> None:
        tables = tuple(replace(table, quarantine=None) for table in plan.tables)
        self.mirror.apply(replace(plan, tables=tables), chunks)
        for name, snapshot in self.mirror.snapshots().items():
            rows = self.mirror.rows(name)
            keys = [rows.column(column.name) for column in snapshot.columns if column.id in snapshot.primary_key]
            counts = Counter(zip(*(key.to_pylist() for key in keys), strict=True))
            assert not keys or max(counts.values(), default=0) < 2, f"{name} at {plan.end}: {counts.most_common(1)}"
