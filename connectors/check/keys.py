"""Checks of what tells the rows of captured tables apart: a primary key, a configured one, or nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from connectors.check.result import CheckResult, failed, shortened, warning
from connectors.config import SinkConfig
from connectors.sink_kinds import lakes
from historian.schema.snapshots import Snapshot

if TYPE_CHECKING:
    from sinks.delta.settings import TableSettings

__all__ = ["key_checks"]


def key_checks(tables: Sequence[Snapshot], sinks: Sequence[SinkConfig]) -> Iterator[CheckResult]:
    """Configured keys that tables lack columns of fail; tables that have a changelog alone for want of a key are a warning."""
    configured, without = lakes(sinks), []
    for snapshot in tables:
        chosen = [lake.for_table(snapshot.name) for lake in configured]
        for settings in chosen:
            lacks = [column for column in settings.key if snapshot.column(column) is None]
            if lacks:
                mend = "name columns of the table under sinks[].tables"
                yield failed(f"key of {snapshot.name}", f"no column {', '.join(lacks)}", "columns of the table", mend)
        if not snapshot.primary_key and not (chosen and all(map(_has_mirror, chosen))):
            without.append(str(snapshot.name))
    if without:
        mend = f"ALTER TABLE {without[0]} ADD COLUMN id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY"
        yield warning(
            "primary keys",
            f"none on {shortened(without)}",
            "one on each table, or `key` or `keyless: rows` of a Delta sink: without there is a changelog only",
            mend,
        )


def _has_mirror(settings: TableSettings) -> bool:
    return bool(settings.key) or settings.keyless == "rows"
