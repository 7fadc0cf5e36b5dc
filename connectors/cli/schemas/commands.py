"""``historian schemas``: which schema a table had where, and the history as a whole."""

from __future__ import annotations

import typer

from connectors.cli.schemas.explain import explain_version, show_lineage
from connectors.cli.schemas.gc import gc
from connectors.cli.schemas.transfer import export_history, import_history
from connectors.cli.schemas.versions import compare_versions, list_versions, show_version
from connectors.cli.schemas.watch import watch_changes
from connectors.cli.terminal.arguments import Config

__all__ = ["schemas"]

schemas = typer.Typer(no_args_is_help=True, rich_markup_mode=None)


@schemas.callback()
def _config(context: typer.Context, config: Config) -> None:
    """Show what the history knows of tables: their versions, and their columns at a position."""
    context.obj = config


schemas.command("list")(list_versions)
schemas.command("at")(show_version)
schemas.command("diff")(compare_versions)
schemas.command("explain")(explain_version)
schemas.command("lineage")(show_lineage)
schemas.command("watch")(watch_changes)
schemas.command("export")(export_history)
schemas.command("import")(import_history)
schemas.command("gc")(gc)
