"""Arguments that several commands take."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["Config", "Json"]

Config = Annotated[Path, typer.Argument(metavar="CONFIG", help="The connector's YAML file.", show_default=False)]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
