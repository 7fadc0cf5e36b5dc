"""Checks of generated columns, which some servers leave out of row images."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict

from connectors.check.result import CheckResult, warning
from connectors.check.server import ServerView
from connectors.config.settings import DeltaSinkConfig, SinkConfig
from historian.schema import Snapshot
from sinks.delta.settings import DeltaSettings

__all__ = ["generated_checks"]

_LAST_WHOLE = (11, 8, 6)
"""MariaDB up to here logs generated columns in FULL images; 11.8.9 leaves them out of those of UPDATE, DELETE and REPLACE."""


def generated_checks(
    server: ServerView, tables: Sequence[Snapshot], sinks: Sequence[SinkConfig]
) -> Iterator[CheckResult]:
    """Tables whose mirror or history has generated columns that the log tells in part are a warning."""
    if server.flavor != "mariadb" or server.version <= _LAST_WHOLE:
        return
    lakes = [DeltaSettings(**asdict(sink)) for sink in sinks if isinstance(sink, DeltaSinkConfig)]
    for snapshot in tables:
        found: list[str] = []
        for settings in (lake.for_table(snapshot.name) for lake in lakes):
            if settings.mirror or settings.history:
                kept = [c.name for c in snapshot.columns if settings.rules.action(c.name).kind != "left out"]
                found += [c.name for c in snapshot.columns if c.generated and c.name in kept and c.name not in found]
        if found:
            names = ", ".join(found)
            yield warning(
                f"generated columns of {snapshot.name}",
                names,
                "none in a mirror or history: MariaDB 11.8.9 leaves them out of the images of UPDATE, DELETE and REPLACE, so that a"
                " mirror stops at a change of what they come from, and a history at any change",
                f"columns: {{exclude: [{names}]}} under sinks[].tables; compute makes them anew",
            )
