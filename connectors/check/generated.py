"""Checks of generated columns, which some servers leave out of row images."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from connectors.check.result import CheckResult, warning
from connectors.check.server import ServerView
from connectors.config import SinkConfig
from connectors.sink_kinds import lakes
from historian.schema.snapshots import Snapshot

__all__ = ["generated_checks"]

_LAST_WHOLE = (11, 8, 6)
"""MariaDB up to here logs generated columns in FULL images; 11.8.9 leaves them out of those of UPDATE, DELETE and REPLACE."""


def generated_checks(
    server: ServerView, tables: Sequence[Snapshot], sinks: Sequence[SinkConfig]
) -> Iterator[CheckResult]:
    """Tables that stop where the log does not tell generated columns are a warning."""
    if server.flavor != "mariadb" or server.version <= _LAST_WHOLE:
        return
    configured = lakes(sinks)
    for snapshot in tables:
        found: list[str] = []
        for settings in (lake.for_table(snapshot.name) for lake in configured):
            rules = settings.rules
            if settings.mirror or settings.history or rules.has_expressions:
                used = " ".join([rules.where, *(text for _, text in rules.compute)]).lower()
                found += [
                    c.name
                    for c in snapshot.columns
                    if c.generated
                    and c.name not in found
                    and (rules.action(c.name).kind != "left out" or c.name.lower() in used)
                ]
        if found:
            names = ", ".join(found)
            yield warning(
                f"generated columns of {snapshot.name}",
                names,
                "none but in a changelog: MariaDB 11.8.9 leaves them out of the images of UPDATE, DELETE and REPLACE, so that a mirror"
                " stops at a change of what they come from, a history and a table with expressions at any",
                f"before the lake has the table, leave {names} out under sinks[].tables, by columns; compute can make them again",
            )
