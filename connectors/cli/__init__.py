"""The command ``historian``: a module for each command, or a room for those that belong together.

What a command does does not belong here, only its arguments and what it prints.
"""

from __future__ import annotations

import gc
from importlib.metadata import version
from typing import Annotated

import typer

from connectors.cli.apply import apply
from connectors.cli.backfill import backfill
from connectors.cli.bundle import bundle
from connectors.cli.changelogs.commands import changelog
from connectors.cli.check import check
from connectors.cli.cut import cut
from connectors.cli.ddl import ddl
from connectors.cli.dead_letters import replay_dead_letters
from connectors.cli.heal import ddl_override, heal
from connectors.cli.init import init
from connectors.cli.orphans import orphans
from connectors.cli.page import page
from connectors.cli.plan import plan
from connectors.cli.replay import replay
from connectors.cli.run import run
from connectors.cli.schemas.commands import schemas
from connectors.cli.status import status
from connectors.cli.tail import tail
from connectors.cli.terminal.logs import LogFormat, LogLevel, configure_logs
from connectors.cli.terminal.outcome import DEBUG
from connectors.cli.verify import verify
from connectors.spark.quiet import SHOWS_EVERYTHING

__all__ = ["app", "main"]

app = typer.Typer(
    name="historian",
    help="Change data capture that decodes every change with the schema it was written under.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _print_version(wanted: bool) -> None:  # noqa: FBT001 typer's way
    if wanted:
        typer.echo(version("pyspark-historian"))
        raise typer.Exit


@app.callback()
def _options(
    context: typer.Context,
    *,
    debug: Annotated[
        bool, typer.Option("--debug", help="Print tracebacks of errors, and all that Spark says.")
    ] = False,
    log_format: Annotated[
        LogFormat,
        typer.Option(
            "--log-format", envvar="HISTORIAN_LOG_FORMAT", help="What standard error has: lines, or JSON objects."
        ),
    ] = LogFormat.TEXT,
    log_level: Annotated[
        LogLevel,
        typer.Option("--log-level", envvar="HISTORIAN_LOG_LEVEL", help="From which level on the log is shown."),
    ] = LogLevel.WARNING,
    _version: Annotated[
        bool, typer.Option("--version", help="Print the version.", is_eager=True, callback=_print_version)
    ] = False,
) -> None:
    """Options of all commands."""
    DEBUG.set(debug)
    SHOWS_EVERYTHING.set(debug)
    context.call_on_close(configure_logs(log_format, log_level))


app.command()(init)
app.command()(plan)
app.command()(apply)
app.command()(run)
app.command()(backfill)
app.command()(verify)
app.command()(check)
app.command()(ddl)
app.add_typer(schemas, name="schemas")
app.command()(status)
app.command()(page)
app.command()(cut)
app.command()(orphans)
app.command()(heal)
app.command("ddl-override")(ddl_override)
app.command()(replay)
app.command("replay-dead-letters")(replay_dead_letters)
app.command()(tail)
app.command()(bundle)
app.add_typer(changelog, name="changelog")


def main() -> None:
    """Runs the command line of this process and exits."""
    try:
        app()
    finally:
        # At its end Python would look through all that was imported for garbage, which goes with the process anyway.
        gc.freeze()
