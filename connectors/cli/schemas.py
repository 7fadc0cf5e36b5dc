"""``historian schemas``: which schema a table had where."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Annotated, Any

import typer

from connectors.cli.arguments import Config, Json
from connectors.cli.outcome import ending
from connectors.cli.terminal import columns, terminal
from historian.ddl import edits_between
from historian.errors import ConfigError, StoreError, UnknownTable
from historian.information_schema import server_form, tables_form
from historian.positions import LogPosition, parse_position
from historian.schema import Column, Snapshot, TableName

if TYPE_CHECKING:
    from connectors.config import PipelineConfig
    from historian.history import History
    from historian.versions import Version

__all__ = ["schemas"]

schemas = typer.Typer(no_args_is_help=True, rich_markup_mode=None)

_Table = Annotated[str, typer.Argument(metavar="TABLE", help="As database.table.", show_default=False)]


@schemas.callback()
def _config(context: typer.Context, config: Config) -> None:
    """Show what the history knows of tables: their versions, and their columns at a position."""
    context.obj = config


@schemas.command("list")
@ending
def _list_versions(
    context: typer.Context,
    table: Annotated[str | None, typer.Argument(metavar="[TABLE]", help="Only this one.", show_default=False)] = None,
    *,
    as_json: Json = False,
) -> None:
    """List each table's versions: number, position, time, and the statement that made it."""
    from connectors.config import load_config

    config = load_config(context.obj)
    history = _history(config)
    wanted = None if table is None else _name(table)
    found = {
        str(name): [_described(version) for version in versions]
        for name, versions in _tables(history)
        if wanted in (None, name) and (wanted is not None or config.source.tables(name))
    }
    if wanted is not None and not found:
        raise UnknownTable("no such table in the history", where=table)
    if as_json:
        typer.echo(json.dumps([{"table": name, "versions": rows} for name, rows in found.items()], indent=2))
    else:
        _print_versions(found)


@schemas.command("at")
@ending
def _at_position(
    context: typer.Context,
    table: _Table,
    position: Annotated[str, typer.Argument(metavar="POS", help="GTIDs, or file:offset.", show_default=False)],
    *,
    as_json: Json = False,
) -> None:
    """Show a table's columns at a position: after everything up to it."""
    from connectors.config import load_config

    config = load_config(context.obj)
    version = _history(config).at(_name(table), _located(config, position))
    if version.snapshot is None:
        raise UnknownTable(
            "the table does not exist there", where=f"{table} at {position}", found=version.entry.statement
        )
    if as_json:
        form = tables_form(version.edits, [version.snapshot], server_form(config.source.flavor))
        typer.echo(json.dumps({**_described(version), "table": str(version.name), **form}, indent=2))
    else:
        typer.echo(f"{version.name}  version {version.number}  since {_place(version)}")
        _print_columns(version.snapshot)


@schemas.command("diff")
@ending
def _diff(
    context: typer.Context,
    table: _Table,
    first: Annotated[int, typer.Argument(metavar="V1", help="Number of a version.", show_default=False)],
    second: Annotated[int, typer.Argument(metavar="V2", help="Number of another one.", show_default=False)],
    *,
    as_json: Json = False,
) -> None:
    """Show what changed from one version of a table to another, columns told apart by identity, not by name."""
    from connectors.config import load_config

    config = load_config(context.obj)
    versions = dict(_tables(_history(config))).get(_name(table), ())
    before, after = (_in_force(versions, number, table) for number in (first, second))
    changes = list(_changes(before, after))
    if as_json:
        form = tables_form(edits_between(before, after), [after], server_form(config.source.flavor))
        typer.echo(json.dumps({"changes": changes, **form}, indent=2))
        return
    for change in changes:
        typer.echo(" ".join(str(change[key]) for key in ("change", "column", "before", "after") if key in change))
    if not changes:
        typer.echo("no difference")


def _history(config: PipelineConfig) -> History:
    from connectors.recorded import recorded_store

    store = recorded_store(config)
    if store is None:
        raise StoreError(
            "there is no history yet",
            where=config.name,
            next_step="`historian run` makes it; `historian tail` shows a log without one",
        )
    try:
        return store.history()
    finally:
        store.close()


def _name(table: str) -> TableName:
    database, _, name = table.partition(".")
    if not (database and name):
        raise ConfigError("not a table name", problems=(f"expected DATABASE.TABLE (got {table!r})",))
    return TableName(database, name)


def _tables(history: History) -> Iterator[tuple[TableName, tuple[Version, ...]]]:
    """Each name that a table ever had, with what it stood for, oldest first."""
    names = {version.name for entry in history.entries for version in history.versions_by(entry.number)}
    for name in sorted(names):
        yield name, history.versions(name)


def _located(config: PipelineConfig, text: str) -> LogPosition:
    """The position; a file's place is looked up in the log, since versions are known by GTID where there are any."""
    position = parse_position(text, config.source.flavor)
    if not position.file:
        return position
    from connectors.sources import make_reader

    reader = make_reader(config.source)
    try:
        return reader.locate(position)
    finally:
        reader.close()


def _in_force(versions: tuple[Version, ...], number: int, table: str) -> Snapshot:
    found = next((version for version in reversed(versions) if version.number <= number), None)
    if found is None or found.snapshot is None:
        known = ", ".join(str(version.number) for version in versions) or "none"
        raise UnknownTable(
            "the table has no schema at that version", where=f"{table} {number}", expected=f"one of {known}"
        )
    return found.snapshot


def _place(version: Version) -> str:
    place = version.entry.place
    if place is None:
        return str(version.entry.position)
    return place.gtid or f"{place.file}:{place.offset}"


def _described(version: Version) -> dict[str, Any]:
    entry, snapshot = version.entry, version.snapshot
    time = datetime.fromtimestamp(entry.event_time_us / 1e6, timezone.utc) if entry.event_time_us else None
    return {
        "version": version.number,
        "position": _place(version),
        "ordinal": 0 if entry.place is None else entry.place.ordinal,
        "time": None if time is None else time.isoformat(timespec="microseconds").replace("+00:00", "Z"),
        "statement": entry.statement or None,
        "unknown": version.unknown,
        "columns": None if snapshot is None else [_column(snapshot, column) for column in snapshot.columns],
    }


def _column(snapshot: Snapshot, column: Column) -> dict[str, Any]:
    return {
        "id": column.id,
        "name": column.name,
        "type": str(column.type),
        "charset": column.type.charset,
        "nullable": column.nullable,
        "default": column.default,
        "primary_key": column.id in snapshot.primary_key,
    }


def _changes(before: Snapshot, after: Snapshot) -> Iterator[dict[str, Any]]:
    if before.name != after.name:
        yield {"change": "renamed table", "before": str(before.name), "after": str(after.name)}
    for column in before.columns:
        if after.column_by_id(column.id) is None:
            yield {"change": "dropped", "column": column.name, "before": str(column.type)}
    for column in after.columns:
        earlier = before.column_by_id(column.id)
        if earlier is None:
            yield {"change": "added", "column": column.name, "after": str(column.type)}
            continue
        if earlier.name != column.name:
            yield {"change": "renamed", "column": column.name, "before": earlier.name, "after": column.name}
        pairs = (
            ("type", str(earlier.type), str(column.type)),
            ("charset", earlier.type.charset, column.type.charset),
            ("nullable", earlier.nullable, column.nullable),
            ("default", earlier.default, column.default),
        )
        for what, was, now in pairs:
            if was != now:
                yield {"change": what, "column": column.name, "before": was, "after": now}
    keys = [[c.name for i in s.primary_key if (c := s.column_by_id(i)) is not None] for s in (before, after)]
    if before.primary_key != after.primary_key:
        yield {"change": "primary key", "before": keys[0], "after": keys[1]}


def _print_versions(found: dict[str, list[dict[str, Any]]]) -> None:
    from rich.text import Text

    console = terminal()
    for name, versions in found.items():
        console.print(Text(name, style="bold"))
        table = columns("version", "position", "time", "statement")
        for row in versions:
            statement = " ".join((row["unknown"] or row["statement"] or "as captured").split())
            table.add_row(str(row["version"]), Text(row["position"]), row["time"] or "", Text(statement))
        console.print(table)
        console.print()


def _print_columns(snapshot: Snapshot) -> None:
    from rich.text import Text

    table = columns("id", "column", "type", "null", "default", "key")
    for column in snapshot.columns:
        row = _column(snapshot, column)
        cells = (row["id"], row["name"], row["type"], "yes" if row["nullable"] else "no", row["default"] or "")
        table.add_row(*(Text(str(cell)) for cell in cells), "primary" if row["primary_key"] else "")
    terminal().print(table)
