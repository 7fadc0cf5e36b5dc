"""``historian plan``: what a changed configuration would do."""

from __future__ import annotations

import json
from dataclasses import asdict
from datetime import timedelta
from typing import TYPE_CHECKING

import typer

from connectors.cli.terminal.arguments import Config, Json, configured
from connectors.cli.terminal.outcome import ExitCode, ending, say, tell
from connectors.cli.terminal.sessions import session
from connectors.cli.terminal.tables import print_table

if TYPE_CHECKING:
    from connectors.reconfiguration.effects import Effects

__all__ = ["plan", "print_effects"]

_STYLES = {"refused": "bold red", "stopped": "yellow", "copied": "green", "repaired": "green", "anew": "green"}


@ending
def plan(config: Config, *, as_json: Json = False) -> None:
    """Tell what a run with this configuration would do with each table, compared with what store and lake hold.

    Changes nothing, and may be asked beside a run. Starts Spark. Ends with 1 where a run would be refused.
    """
    from connectors.reconfiguration.foresight import foresee

    settings = configured(config)
    with session(f"plan {settings.name}", settings.sink_paths, settings.run.spark) as spark:
        effects = foresee(settings, spark)
    if as_json:
        typer.echo(json.dumps({**asdict(effects), "refuses": effects.is_refused}, indent=2))
    else:
        print_effects(effects)
        if not (effects.is_refused or effects.is_nothing):
            tell(f"Nothing was changed. Next: `historian {'apply' if effects.behind else 'run'} {config}`")
    if effects.is_refused:
        raise typer.Exit(ExitCode.FAILED)


def print_effects(effects: Effects) -> None:
    """Prints a line a table, other changes, each refusal whole, and what it comes to."""
    from rich.text import Text

    where = f"goes on behind {effects.behind}" if effects.behind else "has not begun"
    say(f"{effects.connector}: {where}")
    rows = (
        (
            table.table,
            Text(table.action, style=_STYLES.get(table.action, "")),
            "" if table.rows is None else f"{table.rows:,}",
            "" if table.seconds is None else str(timedelta(seconds=table.seconds)),
            # What is refused stands below, whole.
            table.why.partition("\n")[0].partition(". Next: ")[0],
        )
        for table in effects.tables
    )
    print_table(("table", "", "rows", "at most", "why"), rows)
    for text in effects.settings:
        say(f"setting: {text}")
    for text in effects.notes:
        say(f"note: {text}")
    for text in effects.refused:
        say(f"refused: {text}")
    say(effects.summary())
