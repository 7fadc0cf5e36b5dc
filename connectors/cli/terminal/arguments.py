"""Arguments that several commands take."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["Config", "Json", "Position", "Table"]

Config = Annotated[Path, typer.Argument(metavar="CONFIG", help="The connector's YAML file.", show_default=False)]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
Table = Annotated[str, typer.Argument(metavar="TABLE", help="As database.table.", show_default=False)]
Position = Annotated[str, typer.Argument(metavar="POS", help="GTIDs, or file:offset.", show_default=False)]
