"""``historian schemas CONFIG explain`` and ``lineage``: why a table looks as it does, and the life of a column."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from connectors.cli.terminal.arguments import Json, Position, Table, configured
from connectors.cli.terminal.outcome import ending, say
from connectors.cli.terminal.recorded_history import located, recorded_history, table_named
from connectors.cli.terminal.schema_forms import change_form, change_text, columns_form, entry_form, place_text
from connectors.cli.terminal.tables import print_table
from historian.history.explain import Explanation, explain
from historian.history.lineage import LineageStep, column_named, lineage

if TYPE_CHECKING:
    from historian.schema.snapshots import Column

__all__ = ["explain_version", "show_lineage"]


@ending
def explain_version(context: typer.Context, table: Table, position: Position, *, as_json: Json = False) -> None:
    """Show which statement made a table what it is at a position, when, and what it changed."""
    config = configured(context.obj)
    history = recorded_history(config)
    found = explain(history, table_named(table), located(config, position, history))
    if as_json:
        typer.echo(json.dumps(_explanation_form(found), indent=2))
    else:
        _print_explanation(found)


@ending
def show_lineage(
    context: typer.Context,
    table: Table,
    column: Annotated[str, typer.Argument(metavar="COLUMN", help="Its name there.", show_default=False)],
    *,
    at: Annotated[
        str | None,
        typer.Option(
            "--at", metavar="POS", help="TABLE and COLUMN are names at this position; by default the last such column."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Show a column's names and types over time, over renames of the column and of its table."""
    config = configured(context.obj)
    history = recorded_history(config)
    place = None if at is None else located(config, at, history)
    column_id, table_id = column_named(history, table_named(table), column, place)
    steps = lineage(history, column_id, table_id)
    if as_json:
        typer.echo(json.dumps({"id": column_id, "steps": [_step_form(step) for step in steps]}, indent=2))
    else:
        _print_steps(steps)


def _explanation_form(found: Explanation) -> dict[str, Any]:
    entry = found.version.entry
    return {
        "table": str(found.version.name),
        **entry_form(entry),
        "database": entry.database or None,
        "server": entry.server or None,
        "changes": [change_form(change) for change in found.changes],
        "before": columns_form(found.before),
        "after": columns_form(found.version.snapshot),
    }


def _print_explanation(found: Explanation) -> None:
    entry = found.version.entry
    form = entry_form(entry)
    say(f"{found.version.name}  version {entry.number}")
    facts = {
        "position": place_text(entry),
        "time": form["time"],
        "server": entry.server,
        "statement": " ".join(entry.statement.split()) or "as captured",
    }
    for name, fact in facts.items():
        if fact:
            say(f"  {name:<9} {fact}")
    for change in found.changes:
        say(f"  {change_text(change)}")
    if not found.changes:
        say("  no difference")


def _step_form(step: LineageStep) -> dict[str, Any]:
    column = step.column
    return {
        **entry_form(step.version.entry),
        "table": str(step.version.name),
        "unknown": step.version.unknown,
        "column": None if column is None else _column_form(column),
    }


def _column_form(column: Column) -> dict[str, Any]:
    return {
        "name": column.name,
        "type": str(column.type),
        "charset": column.type.charset,
        "collation": column.type.collation,
        "nullable": column.nullable,
        "default": column.default,
    }


def _print_steps(steps: tuple[LineageStep, ...]) -> None:
    rows = []
    for step in steps:
        form = entry_form(step.version.entry)
        gone = "unknown" if step.version.unknown else "gone"
        name, kind = (gone, "") if step.column is None else (step.column.name, str(step.column.type))
        statement = " ".join((step.version.unknown or form["statement"] or "as captured").split())
        rows.append((form["version"], form["position"], form["time"], step.version.name, name, kind, statement))
    print_table(("version", "position", "time", "table", "column", "type", "statement"), rows)
