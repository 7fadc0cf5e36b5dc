"""Checks of tables that are to be one table in a lake: whether their schemas fit together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from connectors.check.result import CheckResult, ok, warning
from connectors.config import SinkConfig
from connectors.sink_kinds import lakes
from historian.errors import TableStopped
from historian.plans.shards import Into
from historian.schema.snapshots import Snapshot
from sinks.shards.reconcile import Reconciler

if TYPE_CHECKING:
    from sinks.delta.settings import DeltaSettings

__all__ = ["shard_checks"]


def shard_checks(sinks: Sequence[SinkConfig], tables: Sequence[Snapshot]) -> Iterator[CheckResult]:
    """Whether *tables*, those that are captured, can be the shards that sinks are configured for.

    What does not fit stops the shards' one table alone, so that a run begins all the same.
    """
    for settings in lakes(sinks):
        yield from _groups(settings, tables)


def _groups(settings: DeltaSettings, tables: Sequence[Snapshot]) -> Iterator[CheckResult]:
    groups: dict[Into, list[Snapshot]] = {}
    for snapshot in tables:
        into_settings = settings.for_table(snapshot.name).into
        if into_settings is not None:
            groups.setdefault(Into.of(into_settings), []).append(snapshot)
    for into, shards in groups.items():
        one, wrong = Reconciler(into, None), False
        for snapshot in sorted(shards, key=lambda shard: shard.table_id):
            try:
                if settings.for_table(snapshot.name) != settings.for_table(into.name):
                    yield warning(
                        f"shards of {into.name}",
                        f"sinks[].tables has other settings for {snapshot.name}",
                        f"the settings of {into.name}",
                        "let the same globs match both, or set them beside into",
                    )
                    wrong = True
                one.join(snapshot)
            except TableStopped as error:
                yield warning(
                    f"shards of {into.name}",
                    f"{error.what}: {error.where}",
                    "shards that are alike",
                    error.next_step or "",
                )
                wrong = True
        if not wrong:
            yield ok(f"shards of {into.name}", f"{len(shards)}")
