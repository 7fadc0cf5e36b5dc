"""``historian schemas CONFIG watch``: each schema change as it is recorded."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import closing
from typing import TYPE_CHECKING, Annotated, Any

import typer

from connectors.cli.terminal.arguments import configured
from connectors.cli.terminal.outcome import ending, say
from connectors.cli.terminal.schema_forms import change_form, change_text, columns_form, entry_form
from historian.history.explain import Explanation, explained

if TYPE_CHECKING:
    from connectors.config import PipelineConfig
    from historian.history.history import History
    from historian.history.timeline import TimelineEntry

__all__ = ["watch_changes"]

_EVERY_S = 1.0


@ending
def watch_changes(
    context: typer.Context,
    *,
    after: Annotated[
        int | None,
        typer.Option("--after", metavar="V", help="Begin behind this version; by default with what comes from now on."),
    ] = None,
    once: Annotated[bool, typer.Option("--once", help="Print what is recorded, by default all, and end.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print a line of JSON a change.")] = False,
) -> None:
    """Print each change of a captured table's schema as a run records it, until Ctrl-C."""
    config = configured(context.obj)
    for entry, changed in _changes(config, after, once=once):
        if as_json:
            typer.echo(_line(entry, changed))
        else:
            say(_text(entry, changed))


def _changes(
    config: PipelineConfig, after: int | None, *, once: bool
) -> Iterator[tuple[TimelineEntry, tuple[Explanation, ...]]]:
    """Entries behind *after* that change captured tables, with what they change."""
    history: History | None = None
    while True:
        history = _grown(config, history, once=once)
        last = 0 if history is None else history.last_number
        if after is None:
            after = 0 if once else last
        if history is not None:
            for number in range(after + 1, last + 1):
                entry, changed = history.entry(number), tuple(_captured(history, number, config))
                if entry is not None and changed:
                    yield entry, changed
        if once:
            return
        after = max(after, last)
        time.sleep(_EVERY_S)


def _grown(config: PipelineConfig, history: History | None, *, once: bool) -> History | None:
    """The history with what the store has more; None where there is no store yet."""
    from connectors.cli.terminal.recorded_history import open_recorded
    from connectors.tracking.recorded import recorded_store

    store = open_recorded(config) if once else recorded_store(config)
    if store is None:
        return history
    with closing(store):
        if history is None:
            return store.history()
        for entry in store.entries(history.last_number):
            history.record(entry)
    return history


def _captured(history: History, number: int, config: PipelineConfig) -> Iterator[Explanation]:
    """What the entry of that number did to tables whose name is captured, or was until then."""
    for version in history.versions_by(number):
        found = explained(history, version)
        before = found.before
        if config.source.tables(version.name) or (before is not None and config.source.tables(before.name)):
            yield found


def _line(entry: TimelineEntry, changed: tuple[Explanation, ...]) -> str:
    tables: list[dict[str, Any]] = [
        {
            "table": str(found.version.name),
            "table_id": found.version.table_id,
            "changes": [change_form(change) for change in found.changes],
            "columns": columns_form(found.version.snapshot),
        }
        for found in changed
    ]
    form = {**entry_form(entry), "database": entry.database or None, "server": entry.server or None}
    return json.dumps({**form, "tables": tables})


def _text(entry: TimelineEntry, changed: tuple[Explanation, ...]) -> str:
    form = entry_form(entry)
    statement = " ".join(entry.statement.split()) or "as captured"
    head = " ".join(filter(None, (form["time"], f"version {entry.number}", form["position"])))
    tables = (
        f"  {found.version.name}: {'; '.join(map(change_text, found.changes)) or 'no difference'}" for found in changed
    )
    return "\n".join((f"{head}: {statement}", *tables))
