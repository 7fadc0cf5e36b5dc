"""``historian ddl``: what statements make of tables, without a server."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from connectors.cli.terminal.arguments import Json, configured
from connectors.cli.terminal.outcome import ExitCode, ending
from connectors.cli.terminal.plain_text import as_lines, one_line
from connectors.cli.terminal.tables import print_table, terminal
from historian.errors import ConfigError

if TYPE_CHECKING:
    from connectors.config import PipelineConfig
    from connectors.pipeline.dry_run import SinkDryRun
    from connectors.tracking.schema_file import AppliedStatement
    from historian.ddl.types.information_schema import ServerForm
    from historian.schema.snapshots import Catalog

__all__ = ["Flavor", "ddl"]


class Flavor(str, Enum):
    """Whose statements they are."""

    mysql = "mysql"
    mariadb = "mariadb"


@ending
def ddl(
    file: Annotated[Path, typer.Argument(metavar="FILE.sql", help="The statements.", show_default=False)],
    *,
    schema: Annotated[
        Path | None, typer.Option("--schema", metavar="START.sql", help="Statements that make the tables before FILE.")
    ] = None,
    database: Annotated[str, typer.Option("--database", metavar="D", help="Database of unqualified names.")] = "",
    flavor: Annotated[
        Flavor | None, typer.Option("--flavor", help="mysql or mariadb; by default the CONFIG's, else mysql.")
    ] = None,
    server_version: Annotated[
        str, typer.Option("--server-version", metavar="X.Y.Z", help="Of the server; by default the newest known.")
    ] = "",
    config: Annotated[
        Path | None, typer.Option("--config", metavar="CONFIG", help="Say what the sinks of this file would do.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Apply the statements of a file without a server, and show the edits they make and the tables behind them.

    With --config it is a dry run of a migration: what each sink would do with each statement, and which table would stop
    and why. Ends with 1 where one would.
    """
    from connectors.tracking.schema_file import applied, catalog_of, fresh_server, sql_text
    from historian.ddl.types.information_schema import server_form

    settings = None if config is None else configured(config)
    kind = _flavor(flavor, settings)
    version = _version(server_version)
    start, context = fresh_server(kind, version, database)
    if schema is not None:
        start = catalog_of(sql_text(schema), flavor=kind, where=str(schema), version=version, database=database)
    steps = tuple(applied(sql_text(file), catalog=start, context=context, where=str(file)))
    foreseen = None if settings is None else _dry_runs(settings, start, steps)
    form = server_form(kind, context.version)
    if as_json:
        typer.echo(json.dumps(_json(start, steps, foreseen, form), indent=2, ensure_ascii=False))
    else:
        _print(str(file), start, steps, foreseen, form)
    if any(_stops(one) for one in foreseen or ()):
        raise typer.Exit(ExitCode.FAILED)


def _flavor(asked: Flavor | None, settings: PipelineConfig | None) -> str:
    configured = None if settings is None else settings.source.flavor
    if asked is not None and configured not in (None, asked.value):
        problem = f"expected the flavor of the configuration's source, {configured} (got {asked.value})"
        raise ConfigError("two flavors", problems=(problem,))
    return asked.value if asked is not None else configured or "mysql"


def _version(text: str) -> int:
    if not text:
        return 0
    found = re.fullmatch(r"(\d{1,2})\.(\d{1,2})(?:\.(\d{1,2}))?", text)
    if found is None:
        raise ConfigError("not a server's version", problems=(f"expected a version such as 8.0.36 (got {text!r})",))
    major, minor, patch = (int(part or 0) for part in found.groups())
    return major * 10000 + minor * 100 + patch


def _dry_runs(
    settings: PipelineConfig, start: Catalog, steps: Sequence[AppliedStatement]
) -> list[tuple[SinkDryRun, ...]]:
    """What the sinks would do before the first statement, and behind each."""
    from connectors.pipeline.dry_run import PipelineDryRun

    dry_run = PipelineDryRun(settings, start)
    return [dry_run.at_start, *(dry_run.take(step) for step in steps)]


def _stops(foreseen: Sequence[SinkDryRun]) -> bool:
    return any(one.stopped is not None for sink in foreseen for one in sink.foreseen)


def _json(
    start: Catalog,
    steps: Sequence[AppliedStatement],
    foreseen: Sequence[tuple[SinkDryRun, ...]] | None,
    form: ServerForm,
) -> dict[str, Any]:
    from historian.ddl.types.information_schema import tables_form

    behind = steps[-1].after if steps else start
    edits = [edit for step in steps for edit in step.resolution.edits]
    found = tables_form(edits, [behind.tables[name] for name in sorted(behind.tables)], form)
    if foreseen is not None:
        found["sinks"] = [
            {"line": line, "statement": statement, "sink": sink.sink, **asdict(one)}
            for (line, statement), sinks in zip(_statements(steps), foreseen, strict=True)
            for sink in sinks
            for one in sink.foreseen
        ]
    return found


def _statements(steps: Sequence[AppliedStatement]) -> Iterator[tuple[int | None, str | None]]:
    yield None, None  # before the first
    for step in steps:
        yield step.statement.line, step.statement.sql


def _print(
    file: str,
    start: Catalog,
    steps: Sequence[AppliedStatement],
    foreseen: Sequence[tuple[SinkDryRun, ...]] | None,
    form: ServerForm,
) -> None:
    from rich.text import Text

    from connectors.cli.terminal.edit_text import edit_text
    from historian.schema.applying import apply

    console = terminal()
    effects = foreseen or [()] * (len(steps) + 1)
    if _stops(effects[0]):
        console.print(Text("before the first statement", style="bold"))
        _print_foreseen(effects[0])
    for step, sinks in zip(steps, effects[1:], strict=True):
        resolution = step.resolution
        if not (resolution.edits or resolution.kind == "rows"):
            continue
        shown = " ".join(step.statement.sql.split())
        console.print(Text(f"{file}:{step.statement.line}", style="dim"), Text(shown, style="bold"))
        catalog = step.before
        for edit in resolution.edits:
            console.print(Text(as_lines(f"  {edit_text(edit, catalog, form)}")), soft_wrap=True)
            catalog = apply(edit, catalog)
        if resolution.kind == "rows":
            told = f"  {resolution.reason}: {', '.join(map(str, resolution.tables))}"
            console.print(Text(as_lines(told), style="yellow"))
        _print_foreseen(sinks)
    behind = steps[-1].after if steps else start
    for name in sorted(behind.tables):
        console.print()
        console.print(Text(one_line(str(name)), style="bold"))
        _print_table(behind, name, form)


def _print_foreseen(sinks: Sequence[SinkDryRun]) -> None:
    from rich.text import Text

    console = terminal()
    for sink in sinks:
        for one in sink.foreseen:
            if one.stopped is not None:
                console.print(
                    Text(as_lines(f"  {sink.sink}: {one.table} STOPS: {one.stopped}"), style="red"), soft_wrap=True
                )
            else:
                effects = "; ".join(one.effects) or "nothing to do"
                console.print(Text(as_lines(f"  {sink.sink}: {one.kind} {one.target}: {effects}")), soft_wrap=True)


def _print_table(catalog: Catalog, name: Any, form: ServerForm) -> None:
    from historian.ddl.types.information_schema import table_form

    keys = ("id", "name", "type", "nullable", "default", "collation", "key", "extra")
    rows = (
        {**row, "nullable": "yes" if row["nullable"] else "no"}
        for row in table_form(catalog.tables[name], form)["columns"]
    )
    print_table(
        ("id", "column", "type", "null", "default", "charset", "key", "extra"),
        ([row[key] for key in keys] for row in rows),
    )
