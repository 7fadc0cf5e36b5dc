"""Arguments that several commands take, and the configuration that one of them names."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from connectors.config import PipelineConfig

__all__ = ["Config", "Json", "Position", "Table", "configured"]

Config = Annotated[Path, typer.Argument(metavar="CONFIG", help="The connector's YAML file.", show_default=False)]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
Table = Annotated[str, typer.Argument(metavar="TABLE", help="As database.table.", show_default=False)]
Position = Annotated[str, typer.Argument(metavar="POS", help="GTIDs, or file:offset.", show_default=False)]


def configured(path: Path) -> PipelineConfig:
    """The configuration of that file; a command that only prints its help does not load what reads it."""
    from connectors.config import load_config

    return load_config(path)
