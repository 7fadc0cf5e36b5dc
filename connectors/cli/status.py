"""``historian status``: where a connector stands."""

from __future__ import annotations

import json
from contextlib import closing, nullcontext
from dataclasses import asdict
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Any

import typer

from connectors.cli.terminal.arguments import Config, Json, configured
from connectors.cli.terminal.outcome import ExitCode, ending
from connectors.cli.terminal.tables import print_table, terminal
from connectors.monitoring.state import connector_state, or_reason, time_text
from historian.errors import StoreError
from historian.names import TableName
from historian.positions import parse_position

if TYPE_CHECKING:
    from connectors.config import PipelineConfig

__all__ = ["status"]


@ending
def status(
    config: Config,
    *,
    as_json: Json = False,
    targets: Annotated[bool, typer.Option(help="Ask the sinks where each target stands; this starts Spark.")] = True,
) -> None:
    """Show where a connector stands: its position and lag, its targets, and tables that stopped.

    Where the store is lost, the lake says what it holds. Ends with 1 where a table is stopped that the configuration takes in.
    """
    from connectors.tracking.recorded import recorded_store

    settings = configured(config)
    store = recorded_store(settings)
    with nullcontext() if store is None else closing(store):
        shown = or_reason(lambda: _targets(settings)) if targets and settings.sinks else None
        if store is None and not (shown and isinstance(shown, list)):
            raise StoreError(
                "the connector has not run yet", where=settings.name, next_step="`historian run` starts it"
            )
        found = connector_state(settings, store)
    found["targets"] = shown
    if isinstance(shown, list):
        _add_lags(settings, shown, found["lag"])
    if as_json:
        typer.echo(json.dumps(found, indent=2))
    else:
        _print(found)
    rows = [*found["stopped"], *(found["targets"] if isinstance(found["targets"], list) else ())]
    if any(row.get("stopped", row.get("reason")) and _is_captured(settings, row["table"]) for row in rows):
        raise typer.Exit(ExitCode.FAILED)


def _is_captured(config: PipelineConfig, table: str) -> bool:
    database, _, name = table.partition(".")
    return config.source.tables(TableName(database, name))


def _add_lags(config: PipelineConfig, targets: list[dict[str, Any]], lag: dict[str, Any]) -> None:
    """Adds to each target how far it is behind the log: when its plan was made, and transactions where there are GTIDs."""
    end = lag.get("log_end")
    for target in targets:
        made_us = target.pop("made_us")
        target["made"] = time_text(made_us) if made_us else None
        target["behind"] = None
        if end is not None and end["gtids"] and target["position"]:
            ended = parse_position(end["gtids"], config.source.flavor)
            target["behind"] = ended.transactions_since(parse_position(target["position"], config.source.flavor))


def _targets(config: PipelineConfig) -> list[dict[str, Any]]:
    from connectors.pipeline.run import idle_sinks

    with idle_sinks(config, "status") as sinks:
        return [asdict(target) for sink in sinks for target in sink.status()]


def _print(found: dict[str, Any]) -> None:
    from rich.table import Table
    from rich.text import Text

    console = terminal()
    facts = Table(show_header=False, show_edge=False, pad_edge=False, box=None)
    facts.add_column(style="bold")
    facts.add_column(overflow="fold")
    for name, text in _facts(found):
        facts.add_row(name, Text(text))
    console.print(facts)
    if isinstance(found["targets"], list):
        console.print()
        headings = ("table", "target", "kind", "plan", "made", "behind", "writer", "stopped")
        rows = ({**row, "stopped": row["stopped"] or row["ended"]} for row in found["targets"])
        print_table(headings, ([row[heading] for heading in headings] for row in rows))
    open_copies = [row for row in found["copies"] if row["state"] != "done"]
    if open_copies:
        console.print()
        names = ("table", "state", "rows", "estimate", "rows_per_s", "left_s", "begun")
        cells = ([row[name] for name in names] for row in open_copies)
        print_table(("table", "copied", "rows", "of about", "rows/s", "seconds left", "begun"), cells)
    for row in found["stopped"]:
        console.print(Text(f"\nstopped: {row['table']} at {row['position']}\n  {row['reason']}", style="red"))
    for warning in found["warnings"]:
        console.print(Text(f"\nwarning: {warning}", style="yellow"))
    for row in found["nulled"]:
        console.print(Text(f"\n{row['table']}.{row['column']}: {row['values']} values stand as NULL", style="yellow"))
    for row in found["nulled_defaults"]:
        what = f"default {row['default']} stands as NULL in all rows from before {row['statement']}"
        console.print(Text(f"\n{row['table']}.{row['column']}: {what}", style="yellow"))


def _facts(found: dict[str, Any]) -> list[tuple[str, str]]:
    plan, lag = found["last_plan"], found["lag"]
    behind = lag.get("unknown") or ", ".join(f"{lag[key]} {key}" for key in ("transactions", "bytes") if key in lag)
    facts = [
        ("connector", f"{found['name']} ({found['connector'] or 'its store is not there'})"),
        ("tracked to", "nothing yet" if found["tracked"] is None else _place(found["tracked"])),
        (
            "last plan",
            "none yet" if plan is None else f"{plan['number']}, made {plan['made']}, to {_place(plan['end'])}",
        ),
        ("behind", behind or "unknown: the log has moved on to another file"),
        ("timeline", f"{found['schema_versions']} entries"),
    ]
    if isinstance(found["log_kept_s"], int):
        kept, left = (str(timedelta(seconds=found[name])) for name in ("log_kept_s", "log_left_s"))
        facts.append(("log", f"kept by the source for {kept}; what is behind the last plan for {left} more"))
    facts += [
        ("notify", f"{each['channel']}: {each['waiting']} messages wait since {each['since']}: {each['error']}")
        for each in found["notifications"]
    ]
    if found["retry"]:
        facts.append(("run", found["retry"]))
    if found["copies_paused"]:
        facts.append(("copies", "paused; `historian backfill CONFIG --resume` lets them go on"))
    if found["copies_wait"]:
        facts.append(("copies", f"wait: {found['copies_wait']}"))
    if isinstance(found["targets"], dict):
        facts.append(("targets", found["targets"]["unknown"]))
    return facts


def _place(position: dict[str, str]) -> str:
    return f"{position['gtids']} ({position['at']})" if position["gtids"] else position["at"]
