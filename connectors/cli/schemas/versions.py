"""``historian schemas CONFIG list``, ``at`` and ``diff``: versions of tables, and their columns."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from connectors.cli.terminal.arguments import Json, Position, Table, configured
from connectors.cli.terminal.outcome import ending, say
from connectors.cli.terminal.plain_text import one_line
from connectors.cli.terminal.recorded_history import recorded_history, table_named, version_at, versions_by_table
from connectors.cli.terminal.schema_forms import change_form, change_text, column_form, place_text, version_form
from connectors.cli.terminal.tables import print_table, terminal
from historian.ddl import edits_between
from historian.ddl.types.information_schema import server_form, tables_form
from historian.errors import UnknownTable
from historian.schema.diff import diff

if TYPE_CHECKING:
    from historian.history.versions import Version
    from historian.schema.snapshots import Snapshot

__all__ = ["compare_versions", "list_versions", "show_version"]


@ending
def list_versions(
    context: typer.Context,
    table: Annotated[str | None, typer.Argument(metavar="[TABLE]", help="Only this one.", show_default=False)] = None,
    *,
    as_json: Json = False,
) -> None:
    """List each table's versions: number, position, time, and the statement that made it."""
    config = configured(context.obj)
    history = recorded_history(config)
    wanted = None if table is None else table_named(table)
    found = {
        str(name): [version_form(version) for version in versions]
        for name, versions in versions_by_table(history)
        if wanted in (None, name) and (wanted is not None or config.source.tables(name))
    }
    if wanted is not None and not found:
        raise UnknownTable("no such table in the history", where=table)
    if as_json:
        typer.echo(json.dumps([{"table": name, "versions": rows} for name, rows in found.items()], indent=2))
    else:
        _print_versions(found)


@ending
def show_version(context: typer.Context, table: Table, position: Position, *, as_json: Json = False) -> None:
    """Show a table's columns at a position: after everything up to it."""
    config = configured(context.obj)
    version = version_at(config, table_named(table), position)
    if version.snapshot is None:
        raise UnknownTable(
            "the table does not exist there", where=f"{table} at {position}", found=version.entry.statement
        )
    if as_json:
        form = tables_form(version.edits, [version.snapshot], server_form(config.source.flavor))
        typer.echo(json.dumps({**version_form(version), "table": str(version.name), **form}, indent=2))
    else:
        say(f"{version.name}  version {version.number}  since {place_text(version.entry)}")
        _print_columns(version.snapshot)


@ending
def compare_versions(
    context: typer.Context,
    table: Table,
    first: Annotated[int, typer.Argument(metavar="V1", help="Number of a version.", show_default=False)],
    second: Annotated[int, typer.Argument(metavar="V2", help="Number of another one.", show_default=False)],
    *,
    as_json: Json = False,
) -> None:
    """Show what changed from one version of a table to another, columns told apart by identity, not by name."""
    config = configured(context.obj)
    versions = recorded_history(config).versions(table_named(table))
    before, after = (_in_force(versions, number, table) for number in (first, second))
    changes = diff(before, after)
    if as_json:
        form = tables_form(edits_between(before, after), [after], server_form(config.source.flavor))
        typer.echo(json.dumps({"changes": [change_form(change) for change in changes], **form}, indent=2))
        return
    for change in changes:
        say(change_text(change))
    if not changes:
        say("no difference")


def _in_force(versions: tuple[Version, ...], number: int, table: str) -> Snapshot:
    found = next((version for version in reversed(versions) if version.number <= number), None)
    if found is None or found.snapshot is None:
        known = ", ".join(str(version.number) for version in versions) or "none"
        raise UnknownTable(
            "the table has no schema at that version", where=f"{table} {number}", expected=f"one of {known}"
        )
    return found.snapshot


def _print_versions(found: dict[str, list[dict[str, Any]]]) -> None:
    from rich.text import Text

    console = terminal()
    for name, versions in found.items():
        console.print(Text(one_line(name), style="bold"))
        statements = (row["unknown"] or row["statement"] or "as captured" for row in versions)
        print_table(
            ("version", "position", "time", "statement"),
            (
                (row["version"], row["position"], row["time"], " ".join(statement.split()))
                for row, statement in zip(versions, statements, strict=True)
            ),
        )
        console.print()


def _print_columns(snapshot: Snapshot) -> None:
    rows = []
    for column in snapshot.columns:
        row = column_form(snapshot, column)
        null, key = "yes" if row["nullable"] else "no", "primary" if row["primary_key"] else ""
        rows.append((row["id"], row["name"], row["type"], null, row["default"], key))
    print_table(("id", "column", "type", "null", "default", "key"), rows)
