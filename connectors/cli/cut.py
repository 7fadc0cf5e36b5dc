"""``historian cut``: at which Delta versions the tables of a lake stand at one position."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from connectors.cli.terminal.arguments import Config, Json, configured
from connectors.cli.terminal.outcome import ending, tell
from connectors.cli.terminal.sessions import session
from connectors.cli.terminal.tables import print_table, terminal

if TYPE_CHECKING:
    from sinks.delta.reading.cuts import ConsistentCut

__all__ = ["cut"]


@ending
def cut(
    config: Config,
    *,
    at: Annotated[
        str | None,
        typer.Option(
            "--at", metavar="POS", help="The first cut that holds all up to this position; by default the newest."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Show the Delta version of each table in which all of them hold one position of the source. This starts Spark."""
    from connectors.pipeline.lakes import consistent

    settings = configured(config)
    with session(f"cut {settings.name}", settings.sink_paths, settings.run.spark) as spark:
        found = consistent(spark, settings, at=at)
    if as_json:
        typer.echo(json.dumps(_plain(found), indent=2))
    else:
        _print(found)


def _plain(found: ConsistentCut) -> dict[str, object]:
    return {
        "plan": found.plan,
        "position": {"gtids": found.position.gtids, "at": str(found.position.at) if found.position.file else ""},
        "tables": [asdict(table) for table in found.tables],
        "left_out": dict(found.left_out),
    }


def _print(found: ConsistentCut) -> None:
    from rich.text import Text

    terminal().print(Text(f"plan {found.plan}, up to {found.position}\n"))
    rows = ((table.name, table.kind, table.version, table.path) for table in found.tables)
    print_table(("table", "kind", "version", "path"), rows)
    for name, why in found.left_out.items():
        tell(f"left out: {name}\n  {why}")
